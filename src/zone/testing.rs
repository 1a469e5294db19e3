//! What tests share, here and in the rooms above: small zones out of text, and a plain table of names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Found, NameForms, NameTree, Nameserver, SoaTimers, Zone, ZoneFile, ZoneSet, ZoneSpec};
use crate::model::{LowerName, NameRef, ServiceIndex, Ttl};

/// Reads a name.
pub(crate) fn name(text: &str) -> LowerName {
    text.parse().unwrap()
}

/// Makes the specification of a zone with one name server outside of it and a file of this text.
pub(super) fn spec(apex: &str, text: &str) -> ZoneSpec {
    let ttl = |seconds| Ttl::new(seconds).unwrap();
    ZoneSpec {
        apex: name(apex),
        nameservers: vec![Nameserver {
            name: name("ns.other"),
            addresses: vec![[192, 0, 2, 53].into()],
        }],
        contact: None,
        soa: SoaTimers {
            ttl: ttl(3600),
            refresh: Duration::from_secs(3600),
            retry: Duration::from_secs(600),
            expire: Duration::from_secs(1_209_600),
        },
        ns_ttl: ttl(3600),
        ttl: ttl(30),
        negative_ttl: ttl(60),
        file: Some(ZoneFile {
            path: "/zones/test.zone".into(),
            text: format!("$TTL 300\n{text}").into_bytes().into(),
            includes: Vec::new(),
        }),
        serial: 7,
        acme: None,
        forms: NameForms::default(),
    }
}

/// Compiles a zone of which nothing may be wrong.
pub(crate) fn zone(apex: &str, text: &str) -> Arc<Zone> {
    Arc::new(Zone::compile(&spec(apex, text)).unwrap())
}

/// Compiles a zone without records of its own that makes names of these forms.
pub(crate) fn zone_making(apex: &str, forms: NameForms) -> Arc<Zone> {
    let spec = ZoneSpec {
        forms,
        ..spec(apex, "")
    };
    Arc::new(Zone::compile(&spec).unwrap())
}

/// A plain table of names: the slow counterpart of the snapshot's.
#[derive(Debug, Default)]
pub(super) struct PlainTree(BTreeMap<LowerName, Found>);

impl PlainTree {
    /// Enters all names of the zones and these services (name, whether it is a CNAME), which must not conflict; then the
    /// empty non-terminals between.
    pub(super) fn new(zones: &ZoneSet, services: &[(LowerName, bool)]) -> Self {
        let mut tree = Self::default();
        for (index, zone) in zones.iter() {
            for (owner, node) in zone.names() {
                // The parent's cut at a child's apex that we serve is the child's name.
                if zones.find(owner) == Some(index) {
                    tree.enter(zones, owner).node = Some(node);
                }
            }
        }
        for (number, (owner, is_cname)) in services.iter().enumerate() {
            let entry = tree.enter(zones, owner.as_ref());
            entry.service = Some(ServiceIndex(number.try_into().unwrap()));
            entry.is_cname = *is_cname;
        }
        let owners: Vec<LowerName> = tree.0.keys().cloned().collect();
        for owner in owners {
            let zone = zones.get(zones.find(owner.as_ref()).unwrap()).unwrap();
            let mut ancestor = owner.as_ref();
            while ancestor != zone.apex().as_ref() {
                tree.enter(zones, ancestor);
                ancestor = ancestor.parent().unwrap();
            }
        }
        tree
    }

    fn enter(&mut self, zones: &ZoneSet, owner: NameRef<'_>) -> &mut Found {
        self.0.entry(owner.to_lower()).or_insert_with(|| Found {
            zone: zones.find(owner).unwrap(),
            node: None,
            service: None,
            is_cname: false,
        })
    }
}

impl NameTree for PlainTree {
    fn find(&self, name: NameRef<'_>) -> Option<Found> {
        self.0.get(&name.to_lower()).copied()
    }
}
