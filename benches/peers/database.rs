//! The embedded country database as networks: clients are drawn from them, and the peers read them from an MMDB file.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use anyhow::Context;
use ipnet::{IpNet, Ipv4Net};
use meridian::geo::{GeoDb, Source, SourceKind};
use meridian::model::{ClientSubnet, Continent, Location, PrefixLen};

use crate::mmdb_writer::{Mmdb, Value};

/// The database, and its IPv4 networks with a known continent.
pub(crate) struct Networks {
    geo: GeoDb,
    pub(crate) v4: Vec<(Ipv4Net, Continent)>,
}

impl Networks {
    /// Reads the embedded database.
    pub(crate) fn embedded() -> anyhow::Result<Self> {
        let source = Source {
            name: "embedded".into(),
            kind: SourceKind::EmbeddedCountry,
            bytes: [].into(),
        };
        let (geo, rejections) = GeoDb::compile(&[source], &[]);
        if let Some(rejection) = rejections.first() {
            anyhow::bail!("no embedded country database: {rejection}");
        }
        let mut v4 = Vec::new();
        walk(&geo, 32, |network, _, location| {
            if let (IpNet::V4(network), Some(continent)) = (network, location.continent) {
                v4.push((network, continent));
            }
        });
        Ok(Self { geo, v4 })
    }

    /// Writes all of it, IPv6 too, as an MMDB file of the Country kind.
    pub(crate) fn write_mmdb(&self, path: &Path) -> anyhow::Result<()> {
        let mut file = Mmdb::new("GeoLite2-Country");
        // The embedded database says nothing of 6to4 and Teredo.
        file.aliases = false;
        let mut by_place = HashMap::new();
        for family in [32, 128] {
            walk(&self.geo, family, |network, place, location| {
                let record = *by_place
                    .entry(place)
                    .or_insert_with(|| file.record(record(location)));
                file.add(network, record);
            });
        }
        std::fs::write(path, file.write()).context("cannot write the MMDB file")
    }
}

/// Makes the record of a place: continent, and country where there is one.
fn record(location: &Location) -> Value {
    let mut entries = Vec::new();
    if let Some(continent) = location.continent {
        let code = Value::Map(vec![("code", continent.code().into())]);
        entries.push(("continent", code));
    }
    if let Some(country) = location.country {
        let code = Value::Map(vec![("iso_code", country.as_str().into())]);
        entries.push(("country", code));
    }
    Value::Map(entries)
}

/// Walks over the known networks of a family (32 or 128 bits) in order, each the widest whose addresses share one place, with
/// the place's number.
fn walk(geo: &GeoDb, family: u8, mut each: impl FnMut(IpNet, u32, &Location)) {
    let address = |bits: u128| match family {
        32 => IpAddr::V4(Ipv4Addr::from(bits as u32)),
        _ => IpAddr::V6(Ipv6Addr::from(bits)),
    };
    let mut next = Some(0_u128);
    while let Some(bits) = next.filter(|bits| family == 128 || bits >> 32 == 0) {
        let located = geo.locate(ClientSubnet::host(address(bits)));
        let PrefixLen(length) = located.scope;
        if let Some(location) = located.location {
            let network = IpNet::new_assert(address(bits), length);
            each(network.trunc(), located.place, location);
        }
        let size = 1_u128.checked_shl(u32::from(family - length));
        next = size.and_then(|size| bits.checked_add(size));
    }
}
