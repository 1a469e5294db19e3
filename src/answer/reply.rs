//! A reply under construction: the facts of its header and OPT, the sections in order.

use std::net::IpAddr;

use super::ecs::{self, EcsReply};
use super::edns::{self, Edns, Keepalive};
use super::encode::{Full, Owner, Writer, put_head};
use super::query::{CD, Query, RD};
use super::stages::Transport;
use super::tsig::bad_key;
use crate::model::{PrefixLen, RecordType, Ttl, ZoneSlot};
use crate::snapshot::Settings;

/// A datagram's size without EDNS (RFC 1035 section 4.2.1), and the least that EDNS can say (RFC 6891 section 6.2.3).
const PLAIN_SIZE: u16 = 512;
/// Octets of an OPT record without options.
const OPT: usize = 11;
/// Octets of an option's code and length.
const OPTION: usize = 4;
/// Flags of the header's third octet.
const QR: u8 = 0x80;
const AA: u8 = 0x04;
const TC: u8 = 0x02;

/// What a reply says of itself (IANA registry of DNS RCODEs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rcode {
    /// NOERROR
    #[default]
    NoError = 0,
    /// FORMERR
    FormErr = 1,
    /// SERVFAIL
    ServFail = 2,
    /// NXDOMAIN
    NxDomain = 3,
    /// NOTIMP
    NotImp = 4,
    /// REFUSED
    Refused = 5,
    /// YXDOMAIN
    YxDomain = 6,
    /// NOTAUTH
    NotAuth = 9,
    /// BADVERS, an extended code
    BadVers = 16,
}

/// Extended DNS errors that we tell (RFC 8914 section 4, RFC 9824 section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtendedError {
    /// A fence leaves this client nothing.
    Prohibited = 18,
    /// The name is in no zone of ours.
    NotAuthoritative = 20,
    /// A type that cannot be asked for: NXNAME.
    InvalidQueryType = 30,
}

/// A section that records go to, in the order of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// Answer.
    Answer,
    /// Authority.
    Authority,
    /// Additional.
    Additional,
}

/// The header's facts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// The code.
    pub(super) rcode: Rcode,
    /// AA.
    pub(super) authoritative: bool,
    /// TC: an RRset that belongs here was left out whole.
    pub(super) truncated: bool,
    /// This is a referral, for counting.
    pub(super) referral: bool,
    /// The zone of the name asked for, for counting.
    pub(super) zone: ZoneSlot,
    /// The scope for ECS.
    pub(super) scope: u8,
    /// A reason beyond the code.
    pub(super) error: Option<ExtendedError>,
}

/// A reply under construction.
#[derive(Debug)]
pub(super) struct Reply<'b> {
    writer: Writer<'b>,
    /// What it says.
    pub(super) facts: Facts,
    /// Records by section: answer, authority, additional.
    counts: [u16; 3],
    /// Octets kept back for OPT.
    reserved: usize,
}

impl<'b> Reply<'b> {
    /// Begins the reply to a query behind its question, which [`put_question`] put there and gave the limit.
    #[inline(always)]
    pub(super) fn begin(
        query: &Query<'_>,
        transport: Transport,
        (out, limit): (&'b mut [u8], usize),
    ) -> Self {
        let mut writer = Writer::behind(out, query.head().len(), limit);
        let reserved = query
            .edns()
            .map_or(0, |edns| opt_len(edns, transport).min(writer.room()));
        writer.reserve(reserved);
        Self {
            writer,
            facts: Facts::default(),
            counts: [0; 3],
            reserved,
        }
    }

    /// Counts the records of the answer section.
    pub(super) fn answers(&self) -> u16 {
        let [answers, ..] = self.counts;
        answers
    }

    /// Gives the writer, for looking back.
    pub(super) fn writer(&self) -> &Writer<'b> {
        &self.writer
    }

    /// Adds one RRset whole; `write` gives the count of its records and something of its own.
    #[inline]
    pub(super) fn add<T>(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Writer<'b>) -> Result<(u16, T), Full>,
    ) -> Result<T, Full> {
        let (records, result) = self.writer.whole(write)?;
        if let Some(count) = self.counts.get_mut(section as usize) {
            *count = count.saturating_add(records);
        }
        Ok(result)
    }

    /// Adds one RRset that belongs here: where it does not fit, TC says so (RFC 2181 section 9).
    #[inline]
    pub(super) fn must_add<T>(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Writer<'b>) -> Result<(u16, T), Full>,
    ) -> Option<T> {
        let result = self.add(section, write);
        self.facts.truncated |= result.is_err();
        result.ok()
    }

    /// Adds the one address record of the answer: whole, as it is one write.
    #[inline]
    pub(super) fn must_add_address(&mut self, owner: Owner<'_>, ttl: Ttl, address: &IpAddr) {
        let Owner::At(offset) = owner else {
            let mut one = std::iter::once(*address);
            self.must_add(Section::Answer, |writer| {
                Ok((writer.addresses(owner, ttl, &mut one)?, ()))
            });
            return;
        };
        let [answers, ..] = &mut self.counts;
        match self.writer.address_at(offset, ttl, address) {
            Ok(()) => *answers += 1,
            Err(Full) => self.facts.truncated = true,
        }
    }

    /// Adds OPT (RFC 6891 section 6.1): it fits by its reservation but in buffers too small for any sensible use.
    #[inline]
    fn add_opt(&mut self, packet: &[u8], edns: &Edns, shell: (Transport, &Settings)) {
        let facts = self.facts;
        let rare = !edns.is_plain()
            || facts.error.is_some()
            || matches!(facts.rcode, Rcode::FormErr | Rcode::BadVers);
        if rare {
            let _ = self.add(Section::Additional, |writer| {
                Ok((1, write_opt(writer, (packet, edns), facts, shell)?))
            });
            return;
        }
        let (_, settings) = shell;
        let [h0, h1, h2, h3, h4, h5, h6, h7, h8] =
            opt_head(edns.dnssec_ok(), facts.rcode, settings);
        let length = edns.ecs.as_ref().map_or(0, ecs::reply_len);
        let head = [h0, h1, h2, h3, h4, h5, h6, h7, h8, 0, length];
        let written = match &edns.ecs {
            None => self.writer.put(head),
            Some(ecs) => {
                let reply = EcsReply::new(*ecs, PrefixLen(facts.scope));
                match reply.parts(packet) {
                    Some((fixed, address))
                        if self.writer.room() >= head.len() + usize::from(length) =>
                    {
                        let _ = self.writer.put(head);
                        let _ = self.writer.put(fixed);
                        self.writer.put_few(address)
                    }
                    _ => Err(Full),
                }
            }
        };
        if written.is_ok() {
            let [.., additional] = &mut self.counts;
            *additional = additional.saturating_add(1);
        }
    }

    /// Ends the reply: OPT and header. Gives its length.
    #[inline]
    pub(super) fn end(
        &mut self,
        query: &Query<'_>,
        transport: Transport,
        settings: &Settings,
    ) -> usize {
        self.writer.release(self.reserved);
        if let Some(edns) = query.edns() {
            self.add_opt(query.packet(), edns, (transport, settings));
        }
        if self.facts.rcode == Rcode::NotAuth {
            self.add_bad_key(query.packet());
        }
        let (facts, counts) = (self.facts, self.counts);
        if let Some(header) = self.writer.header() {
            fill_header(header, facts, counts);
        }
        self.writer.len()
    }
}

impl Reply<'_> {
    /// Adds the TSIG that says why NOTAUTH, as the last record (RFC 8945 section 5.3.2). No name is so long that 512 octets do not
    /// hold it, but for those made for it: they get the code alone.
    #[cold]
    fn add_bad_key(&mut self, packet: &[u8]) {
        if let Some(tsig) = bad_key(packet) {
            let _ = self.add(Section::Additional, |writer| {
                Ok((1, writer.put_slice(tsig.as_ref())?))
            });
        }
    }
}

/// Puts the question of a query where its reply begins, and gives the reply's greatest length. `Full` when not even the question
/// fits.
#[inline]
pub(super) fn put_question(
    query: &Query<'_>,
    transport: Transport,
    settings: &Settings,
    out: &mut [u8],
) -> Result<usize, Full> {
    put_head(out, query.head(), limit(query.edns(), transport, settings))
}

/// Gives the greatest length of a reply.
#[inline]
fn limit(edns: Option<&Edns>, transport: Transport, settings: &Settings) -> usize {
    usize::from(match (transport, edns) {
        (Transport::Tcp, _) => u16::MAX,
        (Transport::Udp, None) => PLAIN_SIZE,
        (Transport::Udp, Some(edns)) => edns.payload.min(settings.udp_payload).max(PLAIN_SIZE),
    })
}

/// Counts the octets of OPT that must fit. NSID and extended errors go in only where room is left.
#[inline]
fn opt_len(edns: &Edns, transport: Transport) -> usize {
    let keepalive = if keeps_alive(edns, transport) {
        OPTION + 2
    } else {
        0
    };
    OPT + edns
        .ecs
        .as_ref()
        .map_or(0, |query| ecs::reply_len(query).into())
        + keepalive
}

/// Tells whether the idle time is announced: over TCP, when offered (RFC 7828 section 3.3.2).
#[inline]
fn keeps_alive(edns: &Edns, transport: Transport) -> bool {
    transport == Transport::Tcp && edns.keepalive() == Keepalive::Offered
}

/// Writes an OPT record that few replies have (RFC 6891 section 6.1). FORMERR and BADVERS carry no option: the query's were not
/// taken.
#[cold]
fn write_opt(
    writer: &mut Writer<'_>,
    (packet, edns): (&[u8], &Edns),
    facts: Facts,
    shell: (Transport, &Settings),
) -> Result<(), Full> {
    let (_, settings) = shell;
    writer.put(opt_head(edns.dnssec_ok(), facts.rcode, settings))?;
    writer.sized(|writer| {
        let taken = !matches!(facts.rcode, Rcode::FormErr | Rcode::BadVers);
        if let Some(ecs) = edns.ecs.filter(|_| taken) {
            let reply = EcsReply::new(ecs, PrefixLen(facts.scope));
            let (fixed, address) = reply.parts(packet).ok_or(Full)?;
            writer.put(fixed)?;
            writer.put_few(address)?;
        }
        write_rare(writer, edns, facts, shell)
    })
}

/// Writes the options that few replies have.
#[cold]
fn write_rare(
    writer: &mut Writer<'_>,
    edns: &Edns,
    facts: Facts,
    (transport, settings): (Transport, &Settings),
) -> Result<(), Full> {
    if !matches!(facts.rcode, Rcode::FormErr | Rcode::BadVers) {
        if keeps_alive(edns, transport) {
            write_option(writer, edns::KEEPALIVE, &settings.keepalive.to_be_bytes())?;
        }
        if edns.wants_nsid() && !settings.identity.is_empty() {
            let _ = write_option(writer, edns::NSID, &settings.identity);
        }
    }
    if let Some(error) = facts.error {
        let code = (error as u16).to_be_bytes();
        let _ = write_option(writer, edns::EXTENDED_ERROR, &code);
    }
    Ok(())
}

/// Gives OPT up to its options: owner, type, payload size, extended code, version 0, flags with all but DO clear.
#[inline]
fn opt_head(dnssec_ok: bool, rcode: Rcode, settings: &Settings) -> [u8; 9] {
    let [t0, t1] = RecordType::OPT.0.to_be_bytes();
    let [p0, p1] = settings.udp_payload.to_be_bytes();
    let flags = if dnssec_ok { 0x80 } else { 0 };
    [0, t0, t1, p0, p1, rcode as u8 >> 4, 0, flags, 0]
}

/// Writes one option, or nothing.
fn write_option(writer: &mut Writer<'_>, code: u16, data: &[u8]) -> Result<(), Full> {
    writer.whole(|writer| {
        writer.put(code.to_be_bytes())?;
        writer.sized(|writer| writer.put_slice(data))
    })
}

/// Turns the query's header into the reply's. RD and CD are copied, RA and AD stay clear (RFC 4035 section 3.1.6).
#[inline]
fn fill_header(header: &mut [u8; 12], facts: Facts, counts: [u16; 3]) {
    let [_, _, high, low, _, _, sections @ ..] = header;
    let aa = if facts.authoritative { AA } else { 0 };
    let tc = if facts.truncated { TC } else { 0 };
    *high = QR | (*high & RD) | aa | tc;
    *low = (*low & CD) | (facts.rcode as u8 & 0x0f);
    let [an, ns, ar] = counts.map(u16::to_be_bytes);
    *sections = [an[0], an[1], ns[0], ns[1], ar[0], ar[1]];
}

/// Writes a FORMERR for a query that could not be parsed: `head` is its header and, where it was whole, its question. Gives
/// the length; `None` when not even that fits.
#[cold]
pub(super) fn form_error(
    head: &[u8],
    edns: bool,
    settings: &Settings,
    out: &mut [u8],
) -> Option<usize> {
    let mut writer = Writer::begin(out, head, usize::from(PLAIN_SIZE)).ok()?;
    let opt = edns
        && writer
            .whole(|writer| {
                writer.put(opt_head(false, Rcode::FormErr, settings))?;
                writer.put([0, 0])
            })
            .is_ok();
    let facts = Facts {
        rcode: Rcode::FormErr,
        ..Facts::default()
    };
    let has_question = head.len() > 12;
    let header = writer.header()?;
    fill_header(header, facts, [0, 0, u16::from(opt)]);
    let [_, _, _, _, question @ .., _, _, _, _, _, _] = header;
    *question = u16::from(has_question).to_be_bytes();
    Some(writer.len())
}
