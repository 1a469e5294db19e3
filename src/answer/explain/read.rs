//! Reads our own replies back, into presentation form. Slow, and independent of the encoder.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::ecs;
use super::super::wire::{HEADER, u16_at};
use crate::model::{NameRef, RecordType};

/// A record in presentation form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Its type.
    pub(super) rtype: RecordType,
    /// Its TTL.
    pub(super) ttl: u32,
    /// Owner, TTL, class, type, data.
    pub(super) text: String,
}

/// What a reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// The RCODE, its extended part included; `None` when the reply could not be read.
    pub(super) rcode: Option<u16>,
    /// The answer section.
    pub(super) answer: Vec<Shown>,
    /// The authority section.
    pub(super) authority: Vec<Shown>,
    /// The scope in ECS.
    pub(super) scope: u8,
    /// The extended error (RFC 8914).
    pub(super) error: Option<u16>,
}

/// Reads a reply whose question ends at `question_end`. `None` when it is malformed: a bug, for we wrote it.
pub(super) fn read(message: &[u8], question_end: usize) -> Option<Read> {
    let mut read = Read {
        rcode: Some(u16_at(message, 2)? & 0x0f),
        ..Read::default()
    };
    let mut at = question_end;
    for section in 0..3 {
        for _ in 0..u16_at(message, 6 + section * 2)? {
            at = read.record(message, at, section)?;
        }
    }
    (at == message.len()).then_some(read)
}

impl Read {
    /// Reads one record; gives its end.
    fn record(&mut self, message: &[u8], start: usize, section: usize) -> Option<usize> {
        let (owner, at) = name(message, start)?;
        let rtype = RecordType(u16_at(message, at)?);
        let ttl = u32::from_be_bytes(*message.get(at + 4..)?.first_chunk()?);
        let data = at + 10;
        let end = data + usize::from(u16_at(message, at + 8)?);
        message.get(data..end)?;
        if rtype == RecordType::OPT {
            let [extended, ..] = ttl.to_be_bytes();
            self.rcode = self.rcode.map(|low| u16::from(extended) << 4 | low);
            self.options(message.get(data..end)?)?;
            return Some(end);
        }
        let text = format!(
            "{owner} {ttl} IN {rtype} {}",
            rdata(message, rtype, data, end)?
        );
        let shown = Shown { rtype, ttl, text };
        match section {
            0 => self.answer.push(shown),
            1 => self.authority.push(shown),
            _ => {}
        }
        Some(end)
    }

    /// Reads the options of OPT.
    fn options(&mut self, mut rest: &[u8]) -> Option<()> {
        while !rest.is_empty() {
            let (code, length) = (u16_at(rest, 0)?, usize::from(u16_at(rest, 2)?));
            let data = rest.get(4..4 + length)?;
            match code {
                ecs::OPTION => self.scope = *data.get(3)?,
                super::super::edns::EXTENDED_ERROR => self.error = u16_at(data, 0),
                _ => {}
            }
            rest = rest.get(4 + length..)?;
        }
        Some(())
    }
}

/// Reads a name, compressed or not: its presentation form with the last dot, and the end of what stands here.
fn name(message: &[u8], start: usize) -> Option<(String, usize)> {
    let mut wire = Vec::new();
    let (mut at, mut end) = (start, None);
    loop {
        let length = *message.get(at)?;
        if length >= 0xc0 {
            end = end.or(Some(at + 2));
            let target = usize::from(u16_at(message, at)? & 0x3fff);
            // Backwards only, and never into the header (RFC 1035 section 4.1.4).
            if target >= at || target < HEADER {
                return None;
            }
            at = target;
            continue;
        }
        wire.extend_from_slice(message.get(at..=at + usize::from(length))?);
        at += usize::from(length) + 1;
        if length == 0 {
            let shown = NameRef::from_wire(&wire).ok()?.to_string();
            let dot = if shown == "." { "" } else { "." };
            return Some((shown + dot, end.unwrap_or(at)));
        }
    }
}

/// Shows the data of a record: in its own form for the common types, else as RFC 3597 section 5 has it.
fn rdata(message: &[u8], rtype: RecordType, start: usize, end: usize) -> Option<String> {
    let octets = message.get(start..end)?;
    Some(match rtype {
        RecordType::A => Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).to_string(),
        RecordType::AAAA => Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).to_string(),
        RecordType::NS | RecordType::CNAME | RecordType::PTR | RecordType::DNAME => {
            name(message, start)?.0
        }
        RecordType::MX => format!("{} {}", u16_at(octets, 0)?, name(message, start + 2)?.0),
        RecordType::SRV => {
            let [priority, weight, port] = [0, 2, 4].map(|at| u16_at(octets, at));
            let target = name(message, start + 6)?.0;
            format!("{} {} {} {target}", priority?, weight?, port?)
        }
        RecordType::TXT | RecordType::HINFO => strings(octets)?,
        RecordType::SOA => soa(message, start)?,
        // Ours, and checked when the zone was read: but what cannot be shown in its own form has the general one.
        _ => super::rdata::show(rtype, octets).unwrap_or_else(|| super::rdata::unknown(octets)),
    })
}

/// Shows character strings (RFC 1035 section 3.3.14).
fn strings(mut rest: &[u8]) -> Option<String> {
    let mut shown = Vec::new();
    while let Some((&length, tail)) = rest.split_first() {
        let (string, next) = tail.split_at_checked(usize::from(length))?;
        shown.push(super::rdata::quoted(string));
        rest = next;
    }
    Some(shown.join(" "))
}

/// Shows SOA (RFC 1035 section 3.3.13).
fn soa(message: &[u8], start: usize) -> Option<String> {
    let (mname, at) = name(message, start)?;
    let (rname, at) = name(message, at)?;
    let numbers = message.get(at..at + 20)?;
    let numbers: Vec<String> = numbers
        .as_chunks::<4>()
        .0
        .iter()
        .map(|number| u32::from_be_bytes(*number).to_string())
        .collect();
    Some(format!("{mname} {rname} {}", numbers.join(" ")))
}
