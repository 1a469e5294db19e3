//! The client of the API: what commands ask nodes through.
//!
//! `http` makes one request and bounds its answer; `tls` knows whom to trust; `fault` says in words what went wrong and what to do;
//! `nodes` knows that there are several. It knows paths and shapes of the API, and nothing of tables, targets or waiting. Called by
//! `status`, `operate` and `explain`.

mod ask;
mod fault;
mod files;
mod http;
mod nodes;
#[cfg(test)]
mod tests;
mod tls;

pub(super) use ask::Ask;
pub(super) use fault::{Fault, FaultKind};
pub(super) use http::{Client, Made};
pub(super) use nodes::{Found, Much, Nodes, Unusable, first, list};

/// Makes the runtime that requests run on: they wait, and need no second thread.
///
/// # Errors
///
/// When the system gives no thread or descriptor.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
