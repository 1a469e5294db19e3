//! The parser: one message in, a checked query out.
//!
//! Bounds hold whatever the octets, nothing is allocated, the cost is linear in the message's length.

use super::edns::Edns;
use super::wire::{self, HEADER, Record};
use crate::model::{NameRef, RecordType};

/// The class Internet.
const IN: u16 = 1;
/// Flags of the header's third and fourth octet (RFC 1035 section 4.1.1, RFC 4035 section 3.1.6).
const QR: u8 = 0x80;
const OPCODE: u8 = 0x78;
pub(super) const RD: u8 = 0x01;
pub(super) const CD: u8 = 0x10;

/// Why octets are no query we answer with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// Fewer than 12 octets, or QR set: no reply at all (loop safety).
    Drop,
    /// FORMERR with what could be read.
    Malformed,
    /// An opcode other than QUERY: the rare lane.
    Rare,
}

/// The question of a query.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Where it ends: behind QCLASS.
    end: u16,
    qtype: RecordType,
    qclass: u16,
}

impl Question {
    /// Reads the question behind the header.
    #[inline]
    fn read(packet: &[u8]) -> Option<Self> {
        let name_end = wire::plain_name_end(packet, HEADER)?;
        let &[t0, t1, c0, c1] = packet.get(name_end..)?.first_chunk()?;
        Some(Self {
            end: u16::try_from(name_end + 4).ok()?,
            qtype: RecordType(u16::from_be_bytes([t0, t1])),
            qclass: u16::from_be_bytes([c0, c1]),
        })
    }
}

/// What the sections behind the question say.
#[derive(Clone, Copy, Debug, Default)]
struct Extras {
    edns: Option<Edns>,
    signed: bool,
}

impl Extras {
    /// Walks the sections up to the packet's end, however many records they have.
    #[cold]
    fn read(packet: &[u8], start: usize, counts: u64) -> Option<Self> {
        let [_, _, an0, an1, ns0, ns1, ar0, ar1] = counts.to_be_bytes();
        let mut at = start;
        let ignored =
            u32::from(u16::from_be_bytes([an0, an1])) + u32::from(u16::from_be_bytes([ns0, ns1]));
        for _ in 0..ignored {
            let record = Record::read(packet, at)?;
            if matches!(record.rtype, RecordType::OPT | RecordType::TSIG) {
                return None;
            }
            at = record.end;
        }
        let mut extras = Self::default();
        for _ in 0..u16::from_be_bytes([ar0, ar1]) {
            let record = Record::read(packet, at)?;
            extras = extras.with(&record)?;
            at = record.end;
        }
        (at == packet.len()).then_some(extras)
    }

    /// Takes one record of the additional section.
    fn with(self, record: &Record<'_>) -> Option<Self> {
        if self.signed {
            return None;
        }
        match record.rtype {
            RecordType::OPT if self.edns.is_some() => None,
            RecordType::OPT => Some(Self {
                edns: Some(Edns::read(record)?),
                ..self
            }),
            RecordType::TSIG => Some(Self {
                signed: true,
                ..self
            }),
            _ => Some(self),
        }
    }
}

/// A query, borrowed from its packet.
#[derive(Clone, Copy, Debug)]
pub struct Query<'p> {
    packet: &'p [u8],
    question: Question,
    edns: Option<Edns>,
    /// A TSIG record ends the message.
    signed: bool,
}

impl<'p> Query<'p> {
    /// Parses one message. Never panics, whatever the octets.
    ///
    /// Malformed are: any count of questions but one (RFC 9619 section 4), a compressed name in the question, records that do
    /// not fit, octets left over, OPT twice, outside the additional section or with a malformed option (RFC 6891 section
    /// 6.1.1), and TSIG anywhere but last (RFC 8945 section 5.1). Other records are skipped.
    ///
    /// # Errors
    /// Says what to do with what is no query.
    #[inline(always)]
    pub fn parse(packet: &'p [u8]) -> Result<Self, QueryError> {
        let header: &[u8; HEADER] = packet.first_chunk().ok_or(QueryError::Drop)?;
        let &[_, _, flags, _, c0, c1, c2, c3, c4, c5, c6, c7] = header;
        if flags & QR != 0 {
            return Err(QueryError::Drop);
        }
        if flags & OPCODE != 0 {
            return Err(QueryError::Rare);
        }
        // All four counts at once: questions, answers, authority, additional.
        let counts = u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
        if counts >> 48 != 1 {
            return Err(QueryError::Malformed);
        }
        Self::read(packet, counts).ok_or(QueryError::Malformed)
    }

    /// Reads all but the header. `counts` are its four counts, in order.
    #[inline(always)]
    fn read(packet: &'p [u8], counts: u64) -> Option<Self> {
        /// One question, and a record in the additional section.
        const ONE_MORE: u64 = 1 << 48 | 1;
        let question = Question::read(packet)?;
        let at = question.end.into();
        // Nearly every query: OPT alone, or nothing.
        let plain = if counts == ONE_MORE {
            Edns::alone(packet, at)
        } else {
            None
        };
        let (edns, signed) = match plain {
            Some(_) => (plain, false),
            None if counts == 1 << 48 && at == packet.len() => (None, false),
            None => {
                let extras = Extras::read(packet, at, counts)?;
                (extras.edns, extras.signed)
            }
        };
        Some(Self {
            packet,
            question,
            edns,
            signed,
        })
    }

    /// Gives the name asked for, as written.
    #[must_use]
    pub fn name(&self) -> NameRef<'p> {
        NameRef::from_checked(self.name_wire())
    }

    /// Gives the type asked for.
    #[must_use]
    pub fn qtype(&self) -> RecordType {
        self.question.qtype
    }

    /// Tells whether the class is IN.
    pub(super) fn is_internet(&self) -> bool {
        self.question.qclass == IN
    }

    #[inline]
    fn question_end(&self) -> usize {
        self.question.end.into()
    }

    /// Gives the packet.
    pub(super) fn packet(&self) -> &'p [u8] {
        self.packet
    }

    /// Gives the name's octets.
    #[inline]
    pub(super) fn name_wire(&self) -> &'p [u8] {
        self.packet
            .get(HEADER..self.question_end() - 4)
            .unwrap_or(&[0])
    }

    /// Gives the header and the question.
    #[inline]
    pub(super) fn head(&self) -> &'p [u8] {
        self.packet
            .get(..self.question_end())
            .unwrap_or(self.packet)
    }

    /// Gives EDNS, if the query has it.
    #[inline]
    pub(super) fn edns(&self) -> Option<&Edns> {
        self.edns.as_ref()
    }

    /// Tells whether the query carries TSIG.
    pub(super) fn is_signed(&self) -> bool {
        self.signed
    }
}

/// What could be read of a malformed query, for its FORMERR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remains<'p> {
    /// The header, and the question where there is exactly one and it is whole.
    pub(super) head: &'p [u8],
    /// OPT was there and within bounds: so the reply has one (RFC 6891 section 7).
    pub(super) edns: bool,
}

impl<'p> Remains<'p> {
    /// Reads what is whole of a packet of 12 octets or more. The cost is linear in its length, whatever the counts say.
    #[cold]
    pub(super) fn read(packet: &'p [u8]) -> Self {
        let count = wire::u16_at(packet, 4).unwrap_or(0);
        let whole = Question::read(packet).filter(|_| count == 1);
        let end = whole.map_or(HEADER, |question| question.end.into());
        let head = packet.get(..end).unwrap_or(packet);
        let questions = (0..count).try_fold(HEADER, |at, _| {
            wire::name_end(packet, at)
                .map(|end| end + 4)
                .filter(|end| *end <= packet.len())
        });
        // Counts may lie: records are read until one does not fit. OPT counts where its fixed part is there.
        let mut at = questions.unwrap_or(packet.len());
        let mut edns = false;
        loop {
            edns |= Record::is_opt_at(packet, at);
            match Record::read(packet, at) {
                Some(record) => at = record.end,
                None => return Self { head, edns },
            }
        }
    }
}
