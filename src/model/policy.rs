//! Steering policies as written: configuration and annotations parse into these alike.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::endpoint::Weight;
use super::id::ClusterId;
use super::name::LowerName;
use super::place::{Continent, CountryCode, Subdivision};

/// How the best tier is used (DESIGN section 4.2). `failover` is `Proximity` with tiers required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Steer {
    /// Nearest first.
    #[default]
    Proximity,
    /// A cluster drawn by weight, per query.
    Weighted,
    /// One cluster a query, in turn.
    RoundRobin,
    /// Every usable endpoint.
    All,
}

impl Steer {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Proximity, Self::Weighted, Self::RoundRobin, Self::All];

    /// Gives its word, in the configuration, in annotations and in what is shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proximity => "proximity",
            Self::Weighted => "weighted",
            Self::RoundRobin => "roundRobin",
            Self::All => "all",
        }
    }

    /// Finds the one that has this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|steer| steer.as_str() == word)
    }
}

/// Why a selector was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no selector: {hint}")]
pub struct SelectorError {
    /// What was written.
    pub text: String,
    /// What would be right.
    pub hint: String,
}

/// Which clients a rule is for: the left side of fences, and one selector of a map entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientSelector {
    /// `*`: every client whose place is known.
    Any,
    /// `unknown`: clients whose place is not known.
    Unknown,
    /// `continent:EU`.
    Continent(Continent),
    /// `country:DE`.
    Country(CountryCode),
    /// `subdivision:US-CA`.
    Subdivision(Subdivision),
    /// `asn:64496`.
    Asn(u32),
    /// `prefix:192.0.2.0/24`, or the prefix alone.
    Prefix(IpNet),
    /// `group:EU-27`: built in, or from `groups` in the configuration.
    Group(Box<str>),
    /// `cluster:NAME`: clients that an override puts inside this cluster.
    Cluster(ClusterId),
}

/// Which clusters a rule is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterSelector {
    /// `*`: every cluster.
    Any,
    /// `cluster:NAME`.
    Cluster(ClusterId),
    /// A bare word: the cluster of this name; where there is none, those with this tag; where there are none, those in this
    /// region.
    Word(Box<str>),
    /// `tag:eu`.
    Tag(Box<str>),
    /// `region:eu-west-1`.
    Region(Box<str>),
    /// `zone:eu-west-1a`.
    Zone(Box<str>),
    /// `provider:aws`.
    Provider(Box<str>),
    /// `country:DE`: clusters in this country.
    Country(CountryCode),
    /// `subdivision:US-CA`.
    Subdivision(Subdivision),
    /// `continent:EU`.
    Continent(Continent),
    /// `group:EU-27`: clusters in a country of this group.
    Group(Box<str>),
}

impl FromStr for ClientSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let error = |hint: &str| SelectorError {
            text: text.to_owned(),
            hint: hint.to_owned(),
        };
        match text {
            "*" => return Ok(Self::Any),
            "unknown" => return Ok(Self::Unknown),
            _ => {}
        }
        if let Ok(prefix) = text.parse::<IpNet>() {
            return Ok(Self::Prefix(prefix.trunc()));
        }
        let (kind, value) = text.split_once(':').ok_or_else(|| {
            error("clients are `*`, `unknown`, a prefix, or continent:, country:, subdivision:, asn:, group: or cluster: with a value")
        })?;
        Ok(match kind {
            "continent" => Self::Continent(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "country" => Self::Country(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "subdivision" => Self::Subdivision(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "asn" => Self::Asn(
                value
                    .trim_start_matches("AS")
                    .parse()
                    .map_err(|_| error("an ASN is a number"))?,
            ),
            "prefix" => Self::Prefix(
                value
                    .parse::<IpNet>()
                    .map_err(|_| error("write a prefix such as 192.0.2.0/24"))?
                    .trunc(),
            ),
            "group" if !value.is_empty() => Self::Group(value.into()),
            "cluster" => Self::Cluster(
                value
                    .parse()
                    .map_err(|e: super::IdError| error(&e.to_string()))?,
            ),
            _ => {
                return Err(error(
                    "clients are `*`, `unknown`, a prefix, or continent:, country:, subdivision:, asn:, group: or cluster: with a value",
                ));
            }
        })
    }
}

impl FromStr for ClusterSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let error = |hint: &str| SelectorError {
            text: text.to_owned(),
            hint: hint.to_owned(),
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let Some((kind, value)) = text.split_once(':') else {
            return word(text).map_err(|why| error(&why));
        };
        Ok(match kind {
            "cluster" => Self::Cluster(
                value
                    .parse()
                    .map_err(|e: super::IdError| error(&e.to_string()))?,
            ),
            "tag" => Self::Tag(parse_tag(value).map_err(|why| error(&why))?),
            "region" if !value.is_empty() => Self::Region(value.into()),
            "zone" if !value.is_empty() => Self::Zone(value.into()),
            "provider" if !value.is_empty() => Self::Provider(value.into()),
            "country" => Self::Country(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "subdivision" => Self::Subdivision(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "continent" => Self::Continent(
                value
                    .parse()
                    .map_err(|e: super::PlaceError| error(&e.to_string()))?,
            ),
            "group" if !value.is_empty() => Self::Group(value.into()),
            _ => {
                return Err(error(
                    "clusters are `*`, a name, or cluster:, tag:, region:, zone:, provider:, country:, subdivision:, continent: or group: with a value",
                ));
            }
        })
    }
}

/// Reads a bare word. Kuadrant writes a continent as `GEO-EU`.
fn word(text: &str) -> Result<ClusterSelector, String> {
    let continent = text.strip_prefix("GEO-").and_then(|code| code.parse().ok());
    if let Some(continent) = continent {
        return Ok(ClusterSelector::Continent(continent));
    }
    match text.parse::<ClusterId>() {
        Ok(_) => Ok(ClusterSelector::Word(text.into())),
        // Tags may have capitals, names of clusters have none.
        Err(_) if parse_tag(text).is_ok() => Ok(ClusterSelector::Word(text.into())),
        Err(why) => Err(why.to_string()),
    }
}

/// Reads a tag of a cluster: 1 to 63 letters, digits and hyphens.
///
/// # Errors
/// What is wanted.
pub fn parse_tag(text: &str) -> Result<Box<str>, String> {
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
    if (1..=63).contains(&text.len()) && text.bytes().all(fits) {
        Ok(text.into())
    } else {
        Err("a tag has 1 to 63 letters, digits and hyphens".to_owned())
    }
}

impl fmt::Display for ClientSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Unknown => f.write_str("unknown"),
            Self::Continent(value) => write!(f, "continent:{value}"),
            Self::Country(value) => write!(f, "country:{value}"),
            Self::Subdivision(value) => write!(f, "subdivision:{value}"),
            Self::Asn(value) => write!(f, "asn:{value}"),
            Self::Prefix(value) => write!(f, "{value}"),
            Self::Group(value) => write!(f, "group:{value}"),
            Self::Cluster(value) => write!(f, "cluster:{value}"),
        }
    }
}

impl fmt::Display for ClusterSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Cluster(value) => write!(f, "cluster:{value}"),
            Self::Word(value) => f.write_str(value),
            Self::Tag(value) => write!(f, "tag:{value}"),
            Self::Region(value) => write!(f, "region:{value}"),
            Self::Zone(value) => write!(f, "zone:{value}"),
            Self::Provider(value) => write!(f, "provider:{value}"),
            Self::Country(value) => write!(f, "country:{value}"),
            Self::Subdivision(value) => write!(f, "subdivision:{value}"),
            Self::Continent(value) => write!(f, "continent:{value}"),
            Self::Group(value) => write!(f, "group:{value}"),
        }
    }
}

/// One rule of a fence: clients matching any of `clients` may be answered with clusters matching any of `clusters`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceRule {
    /// Never empty.
    pub clients: Vec<ClientSelector>,
    /// May be empty: nothing is allowed to these clients.
    pub clusters: Vec<ClusterSelector>,
}

/// One entry of a map: clients matching any of `clients` get the clusters in this order. No clients: the catch-all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapEntry {
    /// Any may match; empty matches every client, the unknown place included.
    pub clients: Vec<ClientSelector>,
    /// In order of preference; never empty.
    pub clusters: Vec<ClusterSelector>,
}

/// What to answer instead of endpoints: `fenceAnswer` and `fallback`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FallbackSpec {
    /// These addresses; never empty.
    Addresses(Vec<IpAddr>),
    /// A CNAME to this name.
    Hostname(LowerName),
}

/// A policy as written. The default is nearest first over one tier, without fences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicySpec {
    /// How the best tier is used.
    pub steer: Steer,
    /// Tiers in order, each a set of clusters; empty: all in one tier.
    pub tiers: Vec<Vec<ClusterSelector>>,
    /// Weights by selector, first match wins, a cluster not matched has 0; empty: the endpoints' own weights.
    pub weights: Vec<(ClusterSelector, Weight)>,
    /// Geoproximity bias by selector, -99..=99, first match wins.
    pub bias: Vec<(ClusterSelector, i8)>,
    /// Explicit maps, first match wins; before distance.
    pub maps: Vec<MapEntry>,
    /// Fences, each a list of rules; all must allow (zone, operator and tenant intersect). Empty: no fence.
    pub fences: Vec<Vec<FenceRule>>,
    /// What a refused client gets; `None`: NODATA with Extended DNS Error 18.
    pub fence_answer: Option<FallbackSpec>,
    /// What is answered when nothing is up.
    pub fallback: Option<FallbackSpec>,
    /// Share of undrained endpoints, 0.0..=1.0, below which health is ignored for the name.
    pub panic: f64,
    /// Addresses per family, 1..=32; 0 stands for the default of 8.
    pub answers: u8,
}

impl PolicySpec {
    /// Gives the greatest number of addresses per family: 1..=32, default 8.
    #[must_use]
    pub fn max_answers(&self) -> usize {
        if self.answers == 0 {
            8
        } else {
            usize::from(self.answers.min(32))
        }
    }
}

/// Groups of countries by name: `EU-27`, `EEA`, `EFTA`, `GDPR` built in, and those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(pub BTreeMap<Box<str>, Vec<CountryCode>>);

impl Groups {
    /// Tells whether a country is in a group; false for a group nobody defined.
    #[must_use]
    pub fn contains(&self, group: &str, country: CountryCode) -> bool {
        self.0
            .get(group)
            .is_some_and(|countries| countries.contains(&country))
    }

    /// Says which groups there are where nobody defined one; `None`: there is such a group.
    #[must_use]
    pub fn missing(&self, group: &str) -> Option<String> {
        let all = || self.0.keys().map(|name| &**name).collect::<Vec<_>>();
        let is_missing = !self.0.contains_key(group);
        is_missing.then(|| {
            format!(
                "no group is called `{group}` (there are {})",
                all().join(", ")
            )
        })
    }
}
