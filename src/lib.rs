//! Meridian: an authoritative Geo-DNS global load balancer.

#![allow(
    dead_code,
    clippy::todo,
    clippy::cast_possible_truncation,
    reason = "skeleton"
)]

pub mod admin;
pub mod answer;
pub mod app;
pub mod config;
pub mod controller;
pub mod geo;
pub mod health;
pub mod inventory;
pub mod lifecycle;
pub mod model;
pub mod prefix;
pub mod prober;
pub mod resolving;
pub mod snapshot;
pub mod source;
pub mod steering;
pub mod telemetry;
pub mod transport;
pub mod zone;
