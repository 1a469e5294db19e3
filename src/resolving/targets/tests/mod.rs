//! Targets by table and property with a clock that is handed in, and the task against a DNS server of its own on loopback.

mod flatten;
mod many;
mod property;
mod task;
mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use super::known::Outcome;
use super::own::OwnZones;
use crate::model::{LowerName, Moment, Ttl};

fn at(seconds: u64) -> Moment {
    Moment(Duration::from_secs(seconds))
}

fn name(text: &str) -> LowerName {
    text.parse().unwrap()
}

fn names(texts: &[&str]) -> BTreeSet<LowerName> {
    texts.iter().map(|text| name(text)).collect()
}

/// Zones of ours, by their apexes.
fn ours(apexes: &[&str]) -> OwnZones {
    OwnZones {
        apexes: apexes.iter().map(|text| name(text)).collect(),
        ..OwnZones::default()
    }
}

/// An answer: addresses with blanks between them.
fn answer(addresses: &str, ttl: u32) -> Outcome {
    Outcome::Addresses {
        addresses: addresses
            .split_whitespace()
            .map(|text| text.parse().unwrap())
            .collect(),
        ttl: Ttl::from_wire(ttl),
    }
}

fn failed() -> Outcome {
    Outcome::Failed("192.0.2.53:53 answers SERVFAIL".into())
}
