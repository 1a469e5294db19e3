//! Raw UDP for benches: the bare echo that is the floor of every comparison, the generator of queries, and what the kernel
//! says of threads. Knows nothing of servers: `udp` and `peers` bring those. Begin with [`generator::load`].

#![allow(dead_code, reason = "each bench uses a part")]

pub(crate) mod echo;
pub(crate) mod generator;
pub(crate) mod messages;
pub(crate) mod queries;
pub(crate) mod threads;
