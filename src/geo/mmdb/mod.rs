//! MMDB files: the only folder that knows maxminddb.
//!
//! The file is in memory as bytes, whole, and is trusted in nothing. The metadata and the records are read through
//! maxminddb, which bounds depth and size of what it decodes; the search tree is walked by [`tree`], which bounds the steps.
//! Every record is decoded once, however many networks point at it.

mod tree;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use maxminddb::{MaxMindDbError, Reader};
use serde::Deserialize;

use self::tree::{Family, Tree};
use super::compiled::{Compiled, DatabaseInfo, MAX_BYTES};
use super::places::{Places, UnknownCodes, printable};
use crate::model::{Coordinates, Location};
use crate::prefix::Table;

/// Why an MMDB file was refused. The caller keeps its old table, if it has one.
#[derive(Debug, thiserror::Error)]
pub(super) enum MmdbError {
    /// No byte in the file.
    #[error("the file is empty")]
    Empty,
    /// More than 1 GiB.
    #[error("the file has {0} octets, more than the {limit} allowed", limit = MAX_BYTES)]
    TooLarge(usize),
    /// No metadata, metadata that cannot be, or a tree that does not fit the file: garbage, or a file cut short.
    #[error("no usable MMDB file: {0}")]
    Unreadable(MaxMindDbError),
    /// The search tree is broken; the file was damaged after it was written.
    #[error("the search tree is damaged: {0}")]
    Tree(&'static str),
    /// A record of the data section is damaged or laid out in another way.
    #[error(
        "the record of {address} is damaged or of another layout than Country, City or ASN: {error}"
    )]
    Record {
        /// The first address of the first network with this record.
        address: IpAddr,
        /// What maxminddb says.
        error: MaxMindDbError,
    },
    /// A record names a point that is not on the globe.
    #[error("the record of {0} has coordinates that are not on the globe")]
    Coordinates(IpAddr),
    /// Not one record says where a network is or whose it is.
    #[error(
        "a database of type `{0}` holds no country, no coordinates and no AS number; name one of the Country, City or ASN kind"
    )]
    NoPlaces(String),
}

/// The most characters kept of a database's own type.
const TYPE_CHARACTERS: usize = 64;

/// Compiles a file. Linear in its nodes and records; never panics, whatever the bytes.
pub(super) fn compile(name: &str, bytes: &[u8]) -> Result<Compiled, MmdbError> {
    if bytes.is_empty() {
        return Err(MmdbError::Empty);
    }
    if bytes.len() > MAX_BYTES {
        return Err(MmdbError::TooLarge(bytes.len()));
    }
    let reader = Reader::from_source(bytes).map_err(MmdbError::Unreadable)?;
    let metadata = reader.metadata();
    let tree = Tree::new(
        bytes,
        metadata.node_count,
        metadata.record_size,
        match metadata.ip_version {
            4 => Family::V4,
            _ => Family::V6,
        },
    )?;
    let mut records = Records {
        reader: &reader,
        by_pointer: HashMap::new(),
        places: Places::new(),
        unknown: UnknownCodes::default(),
        networks: 0,
    };
    let table = read_networks(&tree, &mut records)?;
    let database_type = printable(&metadata.database_type, TYPE_CHARACTERS);
    let places = records.places.into_list();
    if places.len() == 1 {
        return Err(MmdbError::NoPlaces(database_type));
    }
    Ok(Compiled {
        table,
        places,
        info: DatabaseInfo {
            name: name.to_owned(),
            database_type,
            build_epoch: metadata.build_epoch,
            networks: records.networks,
            unknown_codes: records.unknown.into_list(),
        },
    })
}

/// Reads all networks of both families into one table.
fn read_networks(tree: &Tree<'_>, records: &mut Records<'_, '_>) -> Result<Table, MmdbError> {
    let mut table = Table::builder(0);
    tree.walk(Family::V4, |start, pointer| {
        // Walked from the left: an IPv4 address is the upper 32 bits.
        let start = u32::try_from(start >> 96).unwrap_or(u32::MAX);
        let address = Ipv4Addr::from_bits(start).into();
        table.v4(start, records.place(address, pointer)?);
        Ok(())
    })?;
    tree.walk(Family::V6, |start, pointer| {
        let address = Ipv6Addr::from_bits(start).into();
        table.v6(start, records.place(address, pointer)?);
        Ok(())
    })?;
    Ok(table.build())
}

/// The data section: each record decoded once.
struct Records<'a, 'b> {
    reader: &'a Reader<&'b [u8]>,
    /// Record pointer -> place.
    by_pointer: HashMap<u32, u32>,
    places: Places,
    unknown: UnknownCodes,
    networks: u64,
}

impl Records<'_, '_> {
    /// Gives the place of a network that starts at `address` and points at a record, or at none.
    fn place(&mut self, address: IpAddr, pointer: Option<u32>) -> Result<u32, MmdbError> {
        let Some(pointer) = pointer else { return Ok(0) };
        self.networks += 1;
        if let Some(&place) = self.by_pointer.get(&pointer) {
            return Ok(place);
        }
        let record: Option<Record<'_>> = self
            .reader
            .lookup(address)
            .and_then(|found| found.decode())
            .map_err(|error| MmdbError::Record { address, error })?;
        let location = match record {
            Some(record) => record
                .location(&mut self.unknown)
                .ok_or(MmdbError::Coordinates(address))?,
            None => Location::default(),
        };
        let place = self.places.number(location);
        self.by_pointer.insert(pointer, place);
        Ok(place)
    }
}

// === Layout ===

/// The parts that we read of a record, of the layouts that MaxMind and DB-IP share. All else is skipped.
///
/// `registered_country` (where the network's holder is registered) and `represented_country` (whose army is there) do not
/// say where clients are, so they are not read: such a network is unknown rather than put in a wrong place.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    continent: Option<ContinentPart<'a>>,
    #[serde(borrow)]
    country: Option<CodePart<'a>>,
    #[serde(borrow)]
    subdivisions: Option<Vec<CodePart<'a>>>,
    location: Option<PointPart>,
    autonomous_system_number: Option<u32>,
    traits: Option<TraitsPart>,
}

/// `continent`.
#[derive(Deserialize)]
struct ContinentPart<'a> {
    code: Option<&'a str>,
}

/// `country` and each of `subdivisions`, from the largest.
#[derive(Deserialize)]
struct CodePart<'a> {
    iso_code: Option<&'a str>,
}

/// `location`, in decimal degrees.
#[derive(Deserialize)]
struct PointPart {
    latitude: Option<f64>,
    longitude: Option<f64>,
}

/// `traits`: GeoIP2 Enterprise and DB-IP's full databases have the AS number in it.
#[derive(Deserialize)]
struct TraitsPart {
    autonomous_system_number: Option<u32>,
}

impl Record<'_> {
    /// Turns a record into a place; `None` when its coordinates are not on the globe.
    fn location(&self, unknown: &mut UnknownCodes) -> Option<Location> {
        let code = self.country.as_ref().and_then(|part| part.iso_code);
        let mut place = code.map(|code| unknown.read(code)).unwrap_or_default();
        if let Some(point) = &self.location
            && let (Some(latitude), Some(longitude)) = (point.latitude, point.longitude)
        {
            place.coordinates = Some(Coordinates::new(latitude, longitude).ok()?);
        }
        let continent = self.continent.as_ref().and_then(|part| part.code);
        place.continent = continent
            .and_then(|code| code.parse().ok())
            .or(place.continent);
        place.subdivision = place.country.and_then(|country| {
            let part = self.subdivisions.as_ref()?.first()?.iso_code?;
            format!("{country}-{part}").parse().ok()
        });
        let in_traits = self
            .traits
            .as_ref()
            .and_then(|part| part.autonomous_system_number);
        place.asn = self.autonomous_system_number.or(in_traits);
        Some(place)
    }
}

#[cfg(test)]
mod tests;
