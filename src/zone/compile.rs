//! From a zone as configured to a zone as served.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::rrset::Rrset;
use super::set::{Cut, Node};
use crate::model::{LowerName, NameRef, NodeIndex, Rejection, Ttl};

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
    /// Its text, and that of each included file by canonical path, read by the shell beforehand (size-limited).
    pub text: Arc<[u8]>,
    /// Included files: (path as written in the file that includes it, joined to the folder; text).
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
}

/// A zone as served. Immutable.
#[derive(Clone, Debug)]
pub struct Zone {
    spec: ZoneSpec,
}

impl Zone {
    /// Reads the file, adds what configuration gives, and checks the whole: exactly one SOA and at least one NS at the apex,
    /// CNAME alone, DNAME without names below, in-zone name servers with addresses, names inside the zone (out-of-zone
    /// records are refused), SVCB mandatory keys, limits of size, depth and count.
    ///
    /// # Errors
    /// Every fault with file and line; the zone's former state goes on being served.
    pub fn compile(spec: &ZoneSpec) -> Result<Self, Vec<Rejection>> {
        let _ = spec;
        todo!()
    }

    /// Gives the apex.
    #[must_use]
    pub fn apex(&self) -> &LowerName {
        &self.spec.apex
    }

    /// Gives the default TTL of steered names.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.spec.ttl
    }

    /// Gives the SOA RRset with its own TTL.
    #[must_use]
    pub fn soa(&self) -> &Rrset {
        todo!()
    }

    /// Gives the TTL of negative replies: the smaller of the SOA's TTL and its MINIMUM (RFC 2308 section 5).
    #[must_use]
    pub fn negative_ttl(&self) -> Ttl {
        todo!()
    }

    /// Gives the serial served.
    #[must_use]
    pub fn serial(&self) -> u32 {
        todo!()
    }

    /// Lists every owner name that must be found by lookup, with its node: the apex, authoritative owners, zone cuts and
    /// DNAME owners; not empty non-terminals, and nothing below a cut or DNAME (glue lives in its [`Cut`]).
    pub fn names(&self) -> impl Iterator<Item = (NameRef<'_>, NodeIndex)> {
        std::iter::empty()
    }

    /// Gives a node.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        let _ = index;
        todo!()
    }

    /// Finds the zone cut at exactly this name: for DS at a child's apex that we serve as well (RFC 4035 section 3.1.4.1).
    #[must_use]
    pub fn cut(&self, name: NameRef<'_>) -> Option<&Cut> {
        let _ = name;
        todo!()
    }

    /// Tells why a service must not claim `name` here: at or below a cut or DNAME, or beside a static A, AAAA, CNAME, SRV or
    /// HTTPS (DESIGN section 7). `None`: it may.
    #[must_use]
    pub fn conflict(&self, name: NameRef<'_>) -> Option<String> {
        let _ = name;
        todo!()
    }

    /// Gives the address RRsets (A, AAAA) at a name in this zone, glue below cuts included: for the additional section.
    pub fn addresses(&self, name: NameRef<'_>) -> impl Iterator<Item = &Rrset> {
        let _ = name;
        std::iter::empty()
    }
}
