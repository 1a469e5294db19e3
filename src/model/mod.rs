//! The nouns of the house: what two rooms or more speak about.
//!
//! This room knows how each noun is written, what is valid, and how it is shown. It knows no policy, no clock, no socket
//! and no file. Every other room may import it; it imports none of ours.

mod address;
mod challenge;
mod chance;
mod chunked;
mod cluster;
mod counted;
mod endpoint;
mod fair;
mod federation;
mod headless;
mod id;
mod index;
mod lookup;
mod monitor;
mod name;
mod operate;
mod place;
mod policy;
mod pools;
mod port;
mod record_id;
mod record_type;
mod rejection;
mod servers;
mod slab;
mod time;
mod ttl;
mod verdict;
mod words;

pub use address::{not_reachable, not_unicast, parse_prefix};
pub use challenge::{Token, TokenError};
pub use chance::Chance;
pub use chunked::Chunked;
pub use cluster::{Cluster, Provider};
pub use counted::counted;
pub use endpoint::{Endpoint, Weight};
pub use fair::fair;
pub use federation::{FederationName, FederationNameError};
pub use headless::{HeadlessEndpoint, HostLabel, HostLabelError};
pub use id::{ClusterId, IdError, ServiceKey};
pub use index::{
    AreaIndex, ClusterIndex, EndpointIndex, Generation, NodeIndex, PolicyIndex, ServiceIndex,
    ZoneIndex, ZoneSlot,
};
pub use lookup::Lookup;
pub use monitor::{Check, HttpCheck, MonitorSpec, Origin, StatusRange, Target, TcpCheck, TlsMode};
pub use name::{LowerName, NameError, NameRef, Names, SERVICE_LABEL};
pub use operate::{
    CHALLENGE_SECONDS, Intent, MAX_AHEAD, MAX_CHALLENGES, MAX_CHALLENGES_OF_ONE, MAX_RECORDS,
    MAX_STANDING, OperatorRecord, OperatorRecords, OperatorTarget, Phase, Said, WallTime,
};
pub use place::{
    ClientSubnet, Continent, Coordinates, CountryCode, Location, PlaceError, PrefixLen, Subdivision,
};
pub use policy::{
    ClientSelector, ClusterSelector, FallbackSpec, FenceRule, Groups, MapEntry, PolicySpec,
    SelectorError, Steer, parse_tag,
};
pub use pools::{PoolRef, Pools, PoolsBuilder, PoolsError};
pub use port::{Carrier, NamedPort, PortName, PortNameError};
pub use record_id::{RecordId, RecordIdError};
pub use record_type::RecordType;
pub use rejection::{Refusals, Rejection};
pub use servers::ZoneServers;
pub use slab::Slab;
pub use time::{Moment, Tick};
pub use ttl::Ttl;
pub use verdict::{Condition, EndpointState, Forced, Verdict};
pub use words::{MAX_WORDS, WordsError, check_words};
