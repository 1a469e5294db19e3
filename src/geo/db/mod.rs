//! The compiled database.

use std::net::IpAddr;
use std::sync::Arc;

use super::compiled::{Compiled, DatabaseInfo, MAX_BYTES};
use super::overrides::{Override, OverridePlace};
use super::places::{Places, complete, join};
use super::{country, mmdb};
use crate::model::{ClientSubnet, Location, PrefixLen, Rejection};
use crate::prefix::{Match, Table};

/// What the bytes of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// The embedded country database; its bytes are compiled in, `Source::bytes` is empty.
    EmbeddedCountry,
    /// An MMDB file of the GeoLite2, GeoIP2 or DB-IP layout: Country, City or ASN.
    Mmdb,
}

/// One database to compile.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file's name as the operator wrote it, or `embedded`.
    pub name: String,
    /// What the bytes are.
    pub kind: SourceKind,
    /// The whole file, at most [`GeoDb::MAX_BYTES`].
    pub bytes: Arc<[u8]>,
}

/// Where a client network is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located<'a> {
    /// The place's number: an index of [`GeoDb::places`]. 0 is the unknown place.
    pub place: u32,
    /// `None` for the unknown place.
    pub location: Option<&'a Location>,
    /// Leading bits that decided, 0..=32 or 0..=128. An unknown place has the scope of the hole.
    pub scope: PrefixLen,
}

/// All databases and overrides in one table.
#[derive(Clone, Debug)]
pub struct GeoDb {
    table: Table,
    /// Never empty: the first is the unknown place.
    places: Vec<Location>,
    databases: Vec<DatabaseInfo>,
}

impl Default for GeoDb {
    /// Knows nothing: everyone is in the unknown place.
    fn default() -> Self {
        Self {
            table: Table::default(),
            places: Places::new().into_list(),
            databases: Vec::new(),
        }
    }
}

impl GeoDb {
    /// The largest database file accepted: 1 GiB.
    pub const MAX_BYTES: usize = MAX_BYTES;

    /// Compiles sources and overrides. Where two sources know the same part of a place, the later one wins part by part
    /// (City beside ASN beside Country); overrides win over all. A source that is broken, empty or of a wrong type is left
    /// out and reported; the caller decides whether to keep its old table instead.
    ///
    /// Parts that follow from others are filled in from the table of countries: the continent and the center of a country
    /// without coordinates. Work grows with the sources' networks; a broken file cannot make it more.
    #[must_use]
    pub fn compile(sources: &[Source], overrides: &[Override]) -> (Self, Vec<Rejection>) {
        let mut all = Self::default();
        let mut rejections = Vec::new();
        for source in sources {
            match compile_source(source) {
                Ok(compiled) => all.add(compiled),
                Err(reason) => rejections.push(Rejection {
                    source: source.name.clone(),
                    place: String::new(),
                    reason,
                }),
            }
        }
        all.finish(overrides);
        (all, rejections)
    }

    /// Joins one more source to those before.
    fn add(&mut self, source: Compiled) {
        self.databases.push(source.info);
        // The first source has nothing to be joined with; that is most nodes' only one, and tables are large.
        if self.places.len() == 1 {
            self.table = source.table;
            self.places = source.places;
            return;
        }
        let mut places = Places::new();
        let unknown = Location::default();
        self.table = self.table.zip(&source.table, |earlier, later| {
            let earlier = place(&self.places, earlier).unwrap_or(&unknown);
            let later = place(&source.places, later).unwrap_or(&unknown);
            places.number(join(earlier, later))
        });
        self.places = places.into_list();
    }

    /// Puts the overrides on top and completes every place.
    fn finish(&mut self, overrides: &[Override]) {
        let numbered = (1_u32..).zip(overrides);
        let on_top = Table::build(
            numbered.map(|(number, entry)| (entry.canonical_prefix(), number)),
            0,
        );
        let mut places = Places::new();
        self.table = self.table.zip(&on_top, |database, entry| {
            let index = (entry as usize).checked_sub(1);
            let location = match index.and_then(|index| overrides.get(index)) {
                Some(entry) => entry.location(),
                None => place(&self.places, database).cloned().unwrap_or_default(),
            };
            places.number(complete(location))
        });
        self.places = places.into_list();
    }

    /// Locates a client network. The most specific match wins, overrides before databases. Never fails, never allocates.
    ///
    /// An IPv4-mapped IPv6 network is located as the IPv4 network it is, and the scope counts the bits as they were given:
    /// 96 more. RFC 7871 section 7.2.1.
    #[inline]
    #[must_use]
    pub fn locate(&self, subnet: ClientSubnet) -> Located<'_> {
        let address = subnet.address.to_canonical();
        let Match {
            value,
            scope: PrefixLen(bits),
        } = self.table.lookup(address);
        let mapped = address.is_ipv4() && matches!(subnet.address, IpAddr::V6(_));
        Located {
            place: value,
            location: place(&self.places, value),
            scope: PrefixLen(if mapped { bits + 96 } else { bits }),
        }
    }

    /// Gives the table: address to place number. Callers turn IPv4-mapped IPv6 addresses into IPv4 first.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Gives all places by number; the first is the unknown place (`Location::default()`).
    #[must_use]
    pub fn places(&self) -> &[Location] {
        &self.places
    }

    /// Tells what was compiled.
    #[must_use]
    pub fn databases(&self) -> &[DatabaseInfo] {
        &self.databases
    }
}

/// Compiles one source, or says why not.
fn compile_source(source: &Source) -> Result<Compiled, String> {
    match source.kind {
        SourceKind::EmbeddedCountry => {
            country::compile(&source.name).map_err(|error| error.to_string())
        }
        SourceKind::Mmdb => {
            mmdb::compile(&source.name, &source.bytes).map_err(|error| error.to_string())
        }
    }
}

/// Gives a known place by number.
fn place(places: &[Location], number: u32) -> Option<&Location> {
    if number == 0 {
        return None;
    }
    places.get(number as usize)
}

impl Override {
    /// Gives the prefix with an IPv4-mapped IPv6 one turned into the IPv4 prefix that lookups see.
    fn canonical_prefix(&self) -> ipnet::IpNet {
        if let ipnet::IpNet::V6(net) = self.prefix
            && let Some(address) = net.network().to_ipv4_mapped()
            && let Some(len) = net.prefix_len().checked_sub(96)
            && let Ok(net) = ipnet::Ipv4Net::new(address, len)
        {
            return net.into();
        }
        self.prefix
    }

    /// Gives the place that it puts its clients in.
    fn location(&self) -> Location {
        match &self.place {
            OverridePlace::Cluster(cluster, location) => Location {
                cluster: Some(cluster.clone()),
                ..location.clone()
            },
            OverridePlace::Place(location) => location.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
