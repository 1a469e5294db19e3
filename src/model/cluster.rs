//! A cluster: a name, a place, a price.

use std::fmt;
use std::str::FromStr;

use super::id::ClusterId;
use super::place::Location;

/// A provider of cloud regions whose places are in the built-in table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// `aws`
    Aws,
    /// `gcp`
    Gcp,
    /// `azure`
    Azure,
    /// `alibaba`
    Alibaba,
    /// `tencent`
    Tencent,
    /// `huawei`
    Huawei,
    /// `oci`
    Oci,
    /// `digitalocean`
    DigitalOcean,
    /// `hetzner`
    Hetzner,
    /// `ovh`
    Ovh,
    /// `scaleway`
    Scaleway,
    /// `linode`
    Linode,
    /// `ibm`
    Ibm,
}

impl Provider {
    /// Every provider, in the order of the documents.
    pub const ALL: [Self; 13] = [
        Self::Aws,
        Self::Gcp,
        Self::Azure,
        Self::Alibaba,
        Self::Tencent,
        Self::Huawei,
        Self::Oci,
        Self::DigitalOcean,
        Self::Hetzner,
        Self::Ovh,
        Self::Scaleway,
        Self::Linode,
        Self::Ibm,
    ];

    /// Gives the name used in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Huawei => "huawei",
            Self::Oci => "oci",
            Self::DigitalOcean => "digitalocean",
            Self::Hetzner => "hetzner",
            Self::Ovh => "ovh",
            Self::Scaleway => "scaleway",
            Self::Linode => "linode",
            Self::Ibm => "ibm",
        }
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is no provider with a built-in table; write one of {all}, or give `location`")
        })
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A cluster as steering sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub id: ClusterId,
    /// Where it is; configuration fills it from `location` or the built-in table of regions.
    pub location: Location,
    /// The cloud region's name, if any: what `region:` selectors match.
    pub region: Option<Box<str>>,
    /// The provider as written, also one without a built-in table: what `provider:` selectors match.
    pub provider: Option<Box<str>>,
    /// The availability zones: what `zone:` selectors match.
    pub zones: Vec<Box<str>>,
    /// Words of its own, such as `eu`: what `tag:` selectors match. k8gb calls them geo tags.
    pub tags: Vec<Box<str>>,
    /// The price of traffic as kilometers added to every distance, 0.0..=40_000.0.
    pub cost_km: f64,
}

impl Cluster {
    /// Makes one of which nothing but its name is known.
    #[must_use]
    pub fn named(id: ClusterId) -> Self {
        Self {
            id,
            location: Location::default(),
            region: None,
            provider: None,
            zones: Vec::new(),
            tags: Vec::new(),
            cost_km: 0.0,
        }
    }
}
