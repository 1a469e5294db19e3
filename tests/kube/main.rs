//! Real clusters: each a kube-apiserver and an etcd, several at once, and the real program beside them.
//!
//! Only two things are played, by requests of the tests: the controller that gives load balancers their addresses, and the
//! kubelets whose pods stand in EndpointSlices. Nobody else is there: a namespace that is deleted stays `Terminating`, and what
//! has an owner outlives it.
//!
//! Both servers are built once from the Go module in `servers/`. Tests that leave servers alone share three clusters; a test
//! that stops, kills or compacts starts one of its own.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test binary has nobody outside, and fails by panicking"
)]

#[path = "../it/harness/mod.rs"]
mod harness;

mod api_server;
mod cluster;
mod clusters_from;
mod clusters_from_secrets;
mod crds;
mod deployed;
mod fences;
mod forms;
mod go;
mod joining;
mod keys;
mod kinds;
mod levels;
mod meant;
mod node;
mod objects;
mod objects_served;
mod running;
mod servers;
mod size;
mod smoke;
mod story;
mod walk;
mod watchman;
mod write_back;
