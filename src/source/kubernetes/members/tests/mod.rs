//! The watches as a whole, against API servers of our own that misbehave.

mod access;
mod api;
mod faults;
mod kinds;
mod kubeconfig;
mod owner;
mod roster;
mod run;
mod secrets;
