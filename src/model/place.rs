//! Where a client or a cluster is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::id::ClusterId;

/// Why a place was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlaceError {
    /// Latitude outside -90..=90, longitude outside -180..=180, or no number.
    #[error("latitude is -90 to 90 and longitude -180 to 180 decimal degrees")]
    Coordinates,
    /// Not two ASCII letters.
    #[error("`{0}` is no country code; write two letters of ISO 3166-1, such as DE")]
    Country(String),
    /// Not one of the seven continent codes.
    #[error("`{0}` is no continent; write one of AF, AN, AS, EU, NA, OC, SA")]
    Continent(String),
    /// Not `CC-SSS`.
    #[error("`{0}` is no subdivision; write a code of ISO 3166-2, such as US-CA")]
    Subdivision(String),
}

/// A point on the globe in decimal degrees: latitude -90..=90, longitude -180..=180, both finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    latitude: f64,
    longitude: f64,
}

impl Coordinates {
    /// Checks and makes a point.
    ///
    /// # Errors
    /// When a value is not finite or out of range.
    pub fn new(latitude: f64, longitude: f64) -> Result<Self, PlaceError> {
        if (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude) {
            Ok(Self {
                latitude,
                longitude,
            })
        } else {
            Err(PlaceError::Coordinates)
        }
    }

    /// Gives degrees north.
    #[must_use]
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Gives degrees east.
    #[must_use]
    pub fn longitude(self) -> f64 {
        self.longitude
    }
}

/// A country: two upper-case letters of ISO 3166-1 alpha-2 (`XK` and the like included: the form is checked, not the list).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Gives the two letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("??")
    }

    /// Gives the place among all pairs of letters, 0..676: `AA` first.
    #[must_use]
    #[inline]
    pub fn ordinal(self) -> usize {
        let [first, second] = self.0.map(|letter| usize::from(letter.wrapping_sub(b'A')));
        first * 26 + second
    }
}

impl FromStr for CountryCode {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match text.as_bytes() {
            &[a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => {
                Ok(Self([a.to_ascii_uppercase(), b.to_ascii_uppercase()]))
            }
            _ => Err(PlaceError::Country(text.to_owned())),
        }
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A continent, by the two-letter codes that GeoIP databases use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Continent {
    /// `AF`
    Africa,
    /// `AN`
    Antarctica,
    /// `AS`
    Asia,
    /// `EU`
    Europe,
    /// `NA`
    NorthAmerica,
    /// `OC`
    Oceania,
    /// `SA`
    SouthAmerica,
}

impl Continent {
    /// Gives the two-letter code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Africa => "AF",
            Self::Antarctica => "AN",
            Self::Asia => "AS",
            Self::Europe => "EU",
            Self::NorthAmerica => "NA",
            Self::Oceania => "OC",
            Self::SouthAmerica => "SA",
        }
    }
}

impl FromStr for Continent {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        Ok(match text.to_ascii_uppercase().as_str() {
            "AF" => Self::Africa,
            "AN" => Self::Antarctica,
            "AS" => Self::Asia,
            "EU" => Self::Europe,
            "NA" => Self::NorthAmerica,
            "OC" => Self::Oceania,
            "SA" => Self::SouthAmerica,
            _ => return Err(PlaceError::Continent(text.to_owned())),
        })
    }
}

impl fmt::Display for Continent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A part of a country by ISO 3166-2: the country and one to three letters or digits, such as `US-CA`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subdivision {
    country: CountryCode,
    part: [u8; 3],
}

impl Subdivision {
    /// Gives the country.
    #[must_use]
    pub fn country(self) -> CountryCode {
        self.country
    }
}

impl FromStr for Subdivision {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let error = || PlaceError::Subdivision(text.to_owned());
        let (country, part) = text.split_once('-').ok_or_else(error)?;
        let country = country.parse().map_err(|_| error())?;
        if part.is_empty()
            || part.len() > 3
            || !part.bytes().all(|octet| octet.is_ascii_alphanumeric())
        {
            return Err(error());
        }
        let mut padded = [0; 3];
        for (to, from) in padded.iter_mut().zip(part.bytes()) {
            *to = from.to_ascii_uppercase();
        }
        Ok(Self {
            country,
            part: padded,
        })
    }
}

impl fmt::Display for Subdivision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = std::str::from_utf8(&self.part)
            .unwrap_or("")
            .trim_end_matches('\0');
        write!(f, "{}-{part}", self.country)
    }
}

impl fmt::Debug for Subdivision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is known of a place. Every part may be unknown; all unknown is an unknown place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Location {
    /// The point to measure distance from.
    pub coordinates: Option<Coordinates>,
    /// The continent.
    pub continent: Option<Continent>,
    /// The country.
    pub country: Option<CountryCode>,
    /// The part of the country.
    pub subdivision: Option<Subdivision>,
    /// The autonomous system number, from an ASN database.
    pub asn: Option<u32>,
    /// The cluster that an operator's override puts these clients inside; it is then nearest by definition.
    pub cluster: Option<ClusterId>,
}

impl Location {
    /// Tells whether nothing at all is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Fills what is open from another source. One that is in another country tells nothing of this place.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let is_elsewhere = self.country.is_some() && other.country != self.country
            || self.continent.is_some() && other.continent != self.continent;
        if is_elsewhere {
            return self;
        }
        Self {
            coordinates: self.coordinates.or(other.coordinates),
            continent: self.continent.or(other.continent),
            country: self.country.or(other.country),
            subdivision: self.subdivision.or(other.subdivision),
            asn: self.asn.or(other.asn),
            cluster: self.cluster.or_else(|| other.cluster.clone()),
        }
    }
}

/// A count of leading bits: 0..=32 for IPv4, 0..=128 for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixLen(pub u8);

/// The network a query came from: of the ECS option when its source prefix length is above 0 and it is trusted, else the
/// sender's address as a host prefix. Bits beyond the prefix are zero. IPv4-mapped IPv6 addresses are IPv4 here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSubnet {
    /// The network address.
    pub address: IpAddr,
    /// The source prefix length.
    pub source: PrefixLen,
}

impl ClientSubnet {
    /// Makes the host prefix of one sender, /32 or /128, with IPv4-mapped IPv6 addresses turned into IPv4.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self {
            address,
            source: PrefixLen(if address.is_ipv4() { 32 } else { 128 }),
        }
    }

    /// Gives the network of at most so many bits that holds this one.
    #[must_use]
    pub fn cut(self, bits: u8) -> Self {
        let source = PrefixLen(self.source.0.min(bits));
        let shift = |whole: u8| u32::from(whole.saturating_sub(source.0));
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(shift(32)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(shift(128)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Self { address, source }
    }
}

impl fmt::Display for ClientSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.source.0)
    }
}
