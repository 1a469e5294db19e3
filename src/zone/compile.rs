//! From a zone as configured to a zone as served.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::acme::AcmeTarget;
use super::assemble::{self, Assembled};
use super::master_file;
use super::names::NameForms;
use super::owners::Owners;
use super::rrset::Rrset;
use super::set::{Cut, Node};
use crate::model::{LowerName, NameRef, NodeIndex, RecordType, Rejection, Ttl, ZoneServers};

/// A name server of a zone as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nameserver {
    /// Its name.
    pub name: LowerName,
    /// Its addresses; needed when the name lies in the zone.
    pub addresses: Vec<IpAddr>,
}

/// The numbers of a SOA record (RFC 1035 section 3.3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoaTimers {
    /// The SOA record's own TTL.
    pub ttl: Ttl,
    /// REFRESH.
    pub refresh: Duration,
    /// RETRY.
    pub retry: Duration,
    /// EXPIRE.
    pub expire: Duration,
}

/// A master file as read from disk, its `$INCLUDE`s resolved while compiling, below the file's own folder only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFile {
    /// Its path, for messages and `$INCLUDE`.
    pub path: PathBuf,
    /// Its text, read by the shell beforehand (size-limited).
    pub text: Arc<[u8]>,
    /// Included files: (path as [`includes`](super::includes()) gives it, joined to the folder of `path`; text).
    /// Paths in included files are relative to that same folder.
    pub includes: Vec<(PathBuf, Arc<[u8]>)>,
}

/// A zone as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSpec {
    /// The apex.
    pub apex: LowerName,
    /// Name servers; may be empty when the file has NS at the apex.
    pub nameservers: Vec<Nameserver>,
    /// SOA RNAME, as a name (`hostmaster.example.com`).
    pub contact: Option<LowerName>,
    /// SOA numbers; the file's SOA wins where it has one.
    pub soa: SoaTimers,
    /// TTL of NS made from `nameservers`, and of their glue.
    pub ns_ttl: Ttl,
    /// Default TTL of steered names.
    pub ttl: Ttl,
    /// SOA MINIMUM: TTL of NXDOMAIN and NODATA (RFC 2308 section 5).
    pub negative_ttl: Ttl,
    /// Static records.
    pub file: Option<ZoneFile>,
    /// SOA serial where the file has none (DESIGN section 7).
    pub serial: u32,
    /// Where the challenges of its steered names are answered; `None`: only here.
    pub acme: Option<AcmeTarget>,
    /// Names that it makes of services.
    pub forms: NameForms,
}

/// What a zone's file says itself, so that nothing is made of what configuration says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Precedence {
    /// The SOA record, and with it everything that is configured of it.
    pub soa: bool,
    /// The NS records at the apex.
    pub ns: bool,
    /// No NS record and no address of a name server was made, so that their TTL is nobody's.
    pub ns_ttl: bool,
}

/// A zone as served. Immutable, and compact: names stand in one allocation, nodes beside them.
#[derive(Clone, Debug)]
pub struct Zone {
    apex: LowerName,
    ttl: Ttl,
    acme: Option<AcmeTarget>,
    forms: NameForms,
    soa: Rrset,
    precedence: Precedence,
    /// Owner names found by lookup; `nodes` has one entry for each.
    owners: Owners,
    nodes: Box<[Node]>,
    /// Owner names of addresses at or below cuts; `glue` has the address RRsets of each.
    glue_owners: Owners,
    glue: Box<[Box<[Rrset]>]>,
    /// Some name has a cut or a DNAME.
    is_divided: bool,
}

impl Zone {
    /// Reads the file, adds what configuration gives, and checks the whole: exactly one SOA and at least one NS at the apex,
    /// CNAME alone, DNAME without names below, in-zone name servers with addresses, names inside the zone (out-of-zone
    /// records are refused), SVCB mandatory keys, limits of size, depth and count.
    ///
    /// # Errors
    /// Every fault with file and line (the first hundred); the zone's former state goes on being served.
    pub fn compile(spec: &ZoneSpec) -> Result<Self, Vec<Rejection>> {
        let mut report = master_file::Report::new(format!("zone {}", spec.apex));
        let records = match &spec.file {
            Some(file) => master_file::read(&spec.apex, file, &mut report),
            None => Vec::new(),
        };
        let assembled = assemble::assemble(spec, records, &mut report);
        match assembled {
            Some(assembled) if report.is_clean() => Ok(Self::new(spec, assembled)),
            _ => Err(report.into_faults()),
        }
    }

    /// Packs what was assembled.
    fn new(spec: &ZoneSpec, assembled: Assembled) -> Self {
        let is_divided =
            |node: &Node| node.cut.is_some() || node.rrset(RecordType::DNAME).is_some();
        Self {
            apex: spec.apex.clone(),
            ttl: spec.ttl,
            acme: spec.acme.clone(),
            forms: spec.forms,
            soa: assembled.soa,
            precedence: assembled.precedence,
            is_divided: assembled.nodes.iter().any(|(_, node)| is_divided(node)),
            owners: Owners::new(assembled.nodes.iter().map(|(name, _)| name)),
            nodes: assembled.nodes.into_iter().map(|(_, node)| node).collect(),
            glue_owners: Owners::new(assembled.glue.keys()),
            glue: assembled.glue.into_values().map(Into::into).collect(),
        }
    }

    /// Gives what the parent must show: the zone's servers, and the addresses it has of them.
    #[must_use]
    pub fn delegation(&self) -> ZoneServers {
        let mut wanted = ZoneServers::default();
        let Some(rrset) = self.apex_ns() else {
            return wanted;
        };
        wanted.ttl = rrset.ttl().seconds();
        for rdata in rrset.iter() {
            let Ok(name) = NameRef::from_wire(rdata.wire()) else {
                continue;
            };
            let name = name.to_lower();
            for address in self.addresses(name.as_ref()).flat_map(|rrset| rrset.iter()) {
                let octets = address.wire();
                let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
                let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
                let address = v4.or(v6).ok();
                wanted
                    .glue
                    .extend(address.map(|address| (name.clone(), address)));
            }
            wanted.nameservers.insert(name);
        }
        wanted
    }

    /// Gives the records that the parent must have, as lines of a master file.
    #[must_use]
    pub fn delegation_records(&self) -> Vec<String> {
        let (apex, wanted) = (self.apex(), self.delegation());
        let ttl = wanted.ttl;
        let names = wanted.nameservers.iter();
        let ns = names.map(|name| format!("{apex}. {ttl} IN NS {name}."));
        let is_inside =
            |(name, _): &&(LowerName, IpAddr)| name.as_ref().is_at_or_below(apex.as_ref());
        let glue = wanted.glue.iter().filter(is_inside);
        let glue = glue.map(|(name, address)| {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            format!("{name}. {ttl} IN {kind} {address}")
        });
        ns.chain(glue).collect()
    }

    /// Gives the apex.
    #[must_use]
    pub fn apex(&self) -> &LowerName {
        &self.apex
    }

    /// Gives the default TTL of steered names.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Gives where the challenges of its steered names are answered.
    #[must_use]
    pub fn acme(&self) -> Option<&AcmeTarget> {
        self.acme.as_ref()
    }

    /// Gives which names it makes of services.
    #[must_use]
    #[inline]
    pub fn forms(&self) -> NameForms {
        self.forms
    }

    /// Tells what its file says itself.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        self.precedence
    }

    /// Gives the SOA RRset with its own TTL.
    #[must_use]
    pub fn soa(&self) -> &Rrset {
        &self.soa
    }

    /// Gives the NS RRset at the apex.
    #[must_use]
    pub fn apex_ns(&self) -> Option<&Rrset> {
        let at_apex = |(name, _): &(NameRef<'_>, NodeIndex)| *name == self.apex.as_ref();
        let (_, index) = self.names().find(at_apex)?;
        self.node(index)?.rrset(RecordType::NS)
    }

    /// Gives the TTL of negative replies: the smaller of the SOA's TTL and its MINIMUM (RFC 2308 section 5).
    #[must_use]
    pub fn negative_ttl(&self) -> Ttl {
        let rdata = self.soa.iter().next();
        let minimum = rdata.map_or(Ttl::MAX, |rdata| master_file::minimum(rdata.wire()));
        minimum.min(self.soa.ttl())
    }

    /// Gives the serial served.
    #[must_use]
    pub fn serial(&self) -> u32 {
        // Five numbers of 32 bits end the data, the serial first (RFC 1035 section 3.3.13).
        let numbers = self
            .soa
            .iter()
            .next()
            .and_then(|rdata| rdata.wire().last_chunk::<20>());
        let serial = numbers.and_then(|numbers| numbers.first_chunk());
        serial.map_or(0, |octets| u32::from_be_bytes(*octets))
    }

    /// Lists every owner name that must be found by lookup, with its node: the apex, authoritative owners, zone cuts and
    /// DNAME owners; not empty non-terminals, and nothing below a cut or DNAME (glue lives in its [`Cut`]).
    pub fn names(&self) -> impl Iterator<Item = (NameRef<'_>, NodeIndex)> {
        self.owners.iter().zip((0..).map(NodeIndex))
    }

    /// Gives a node.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.nodes.get(index.get())
    }

    /// Finds the zone cut at exactly this name: for DS at a child's apex that we serve as well (RFC 4035 section 3.1.4.1).
    #[must_use]
    pub fn cut(&self, name: NameRef<'_>) -> Option<&Cut> {
        self.node_at(name)?.cut.as_deref()
    }

    /// Tells whether a cut stands at `name` or above it in this zone: what lies there is somebody else's.
    #[must_use]
    pub fn delegates(&self, name: NameRef<'_>) -> bool {
        self.is_divided
            && std::iter::successors(Some(name), |name| name.parent())
                .take_while(|ancestor| ancestor.as_wire().len() > self.apex.as_wire().len())
                .any(|ancestor| self.cut(ancestor).is_some())
    }

    /// Tells why a service must not claim `name` here: at or below a cut or DNAME, or beside a static A, AAAA, CNAME, SRV or
    /// HTTPS (DESIGN section 7). `None`: it may.
    #[must_use]
    pub fn conflict(&self, name: NameRef<'_>) -> Option<String> {
        if !name.is_at_or_below(self.apex.as_ref()) {
            return Some(format!("{name} lies outside of the zone {}", self.apex));
        }
        if let Some(reason) = self.division_above(name) {
            return Some(reason);
        }
        let steered = [
            RecordType::A,
            RecordType::AAAA,
            RecordType::CNAME,
            RecordType::SRV,
            RecordType::HTTPS,
        ];
        let node = self.node_at(name)?;
        let beside = steered.iter().find(|rtype| node.rrset(**rtype).is_some())?;
        Some(format!("the zone has a static {beside} record at {name}"))
    }

    /// Tells of a cut or DNAME at or above a name.
    fn division_above(&self, name: NameRef<'_>) -> Option<String> {
        if !self.is_divided {
            return None;
        }
        std::iter::successors(Some(name), |name| name.parent())
            .take_while(|ancestor| ancestor.as_wire().len() >= self.apex.as_wire().len())
            .find_map(|ancestor| {
                let node = self.node_at(ancestor)?;
                let what = if node.cut.is_some() {
                    "delegates"
                } else if node.rrset(RecordType::DNAME).is_some() {
                    "redirects by DNAME"
                } else {
                    return None;
                };
                Some(format!("the zone {what} {ancestor} and all below it"))
            })
    }

    /// Gives the address RRsets (A, AAAA) at a name in this zone, glue below cuts included: for the additional section.
    pub fn addresses(&self, name: NameRef<'_>) -> impl Iterator<Item = &Rrset> {
        let node = self.node_at(name).filter(|node| node.cut.is_none());
        let rrsets = match node {
            Some(node) => &node.rrsets,
            None => self
                .glue_owners
                .find(name)
                .and_then(|position| self.glue.get(position))
                .map_or(&[][..], |rrsets| rrsets),
        };
        rrsets.iter().filter(|rrset| is_address(rrset.rtype()))
    }

    /// Finds the node at exactly this name.
    fn node_at(&self, name: NameRef<'_>) -> Option<&Node> {
        self.nodes.get(self.owners.find(name)?)
    }
}

/// Tells whether a type is an address.
pub(super) fn is_address(rtype: RecordType) -> bool {
    matches!(rtype, RecordType::A | RecordType::AAAA)
}
