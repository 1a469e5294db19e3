//! What Kubernetes objects say, as model types. So far: the annotations of services.
//!
//! Pure: an object in, model types and refusals out. Nothing here asks a server.

mod annotations;

pub use annotations::{
    CheckKind, Checks, Drain, Key, Level, MinReady, PREFIX, PortRef, Read, Refused, Service,
    Target, keys, read,
};
