//! What Kubernetes objects say, as model types.
//!
//! Objects become records at the door, each kind in a file of its own: pure functions, an object in, a record and what was
//! refused out. Nothing of an object that nobody reads is kept. `members` follows the clusters; of the records of one cluster,
//! `world` makes its shards; `write_back` knows what is said in the clusters, where that is wanted.

pub mod annotations;
mod directory;
mod endpoint_slice;
mod fields;
mod gateway;
mod ingress;
mod joining;
mod members;
mod names;
mod node;
mod object;
mod parts;
mod read;
mod records;
mod route;
mod rules;
mod secret;
mod service;
mod words;
mod world;
mod write_back;

pub use directory::{FoundCluster, Kubeconfig, Listing, list_directory};
pub use joining::{
    Deed, Entry, Granted, JoinError, Joined, Leaving, Namespace, Place, Step, Wish, join,
    kubeconfig_file, leave, remove_file,
};
pub use members::{
    KindState, KindStatus, Link, MemberStatus, Members, MembersHandle, SecretsHandle, Update,
    read_list,
};
pub use object::Object;
pub use read::read;
pub use records::{
    AddressType, Backend, Common, Event, GatewayRecord, IngressRecord, Ingresses, Key, Listener,
    NodeRecord, Parent, Port, Protocol, Record, RouteRecord, ServiceRecord, SliceEndpoint,
    SliceRecord, Watched,
};
pub use rules::{
    Absence, Access, Admit, ClusterSource, Config, FoundIn, MassDeletion, MemberConfig, Rules,
    SecretsPlace, Trust, WriteBack,
};
pub use secret::{HeldKubeconfig, SecretText};
pub use world::{HeldDeletions, KindOverview, Overview, Reading, Told, World};
pub use write_back::{Reason, Statement, Statements, WriteBackStatus};
