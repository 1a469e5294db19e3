//! Master files (RFC 1035 section 5): our lexer for logical lines and our directives, over record scanning by the `domain`
//! crate, which only `scan.rs` knows.
//!
//! Text goes in and records come out, with the line of each; all faults are told, not just the first. Nothing is read from
//! disk: included files are handed in. Every input is bounded in size, depth and count.

mod cursor;
mod directives;
mod fault;
mod field;
mod generate;
mod include;
mod lexer;
mod loc;
mod own;
mod records;
mod scan;
mod svcb;
#[cfg(test)]
mod tests;

pub use include::{Include, includes};

pub(super) use fault::{Place, Report};

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cursor::Cursor;
use fault::Fault;
use lexer::{Head, Lexer, Token};

use super::compile::ZoneFile;
use super::rrset::Rdata;
use crate::model::{LowerName, NameRef, RecordType, Ttl};

/// SPF, obsolete, written like TXT (RFC 4408 section 3.1.1).
const SPF: RecordType = RecordType(99);

/// Records of one zone.
const MAX_RECORDS: usize = 1_000_000;
/// Octets of one zone's text, each included file counted as often as it is included, generated lines counted too.
const MAX_OCTETS: usize = 64 << 20;

/// One record as read.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Its owner, inside the zone.
    pub(super) owner: LowerName,
    /// Its type, never a meta type.
    pub(super) rtype: RecordType,
    /// Its TTL.
    pub(super) ttl: Ttl,
    /// Its data, names uncompressed and in lower case.
    pub(super) rdata: Rdata,
    /// Where it was written.
    pub(super) place: Place,
}

/// Reads a zone's file and all that it includes. What is wrong goes to `report`; the records are those without fault.
pub(super) fn read(apex: &LowerName, file: &ZoneFile, report: &mut Report) -> Vec<Record> {
    let mut reader = Reader {
        apex: apex.as_ref(),
        folder: file.path.parent().unwrap_or_else(|| Path::new("")),
        texts: file
            .includes
            .iter()
            .map(|(path, text)| (path.as_path(), &**text))
            .collect(),
        including: Vec::new(),
        included: 0,
        octets: 0,
        is_full: false,
        records: Vec::new(),
        report,
    };
    let scope = Scope {
        file: reader.report.add_file(file.path.display().to_string()),
        origin: apex.clone(),
        owner: None,
        default_ttl: None,
        last_ttl: None,
    };
    reader.text(&file.text, scope);
    reader.records
}

/// What the lines of one file hand on to the next line. A file that is included begins with a copy of it, and its own ends
/// with it (RFC 1035 section 5.1).
#[derive(Clone, Debug)]
struct Scope {
    /// The file, for places.
    file: u32,
    /// What relative names are relative to.
    origin: LowerName,
    /// The last owner stated.
    owner: Option<LowerName>,
    /// `$TTL` (RFC 2308 section 4).
    default_ttl: Option<Ttl>,
    /// The last TTL stated (RFC 1035 section 5.1), or that of a SOA without one.
    last_ttl: Option<Ttl>,
}

/// The reading of one zone.
#[derive(Debug)]
struct Reader<'s> {
    apex: NameRef<'s>,
    /// Where the zone's file lies, and all that it includes.
    folder: &'s Path,
    texts: HashMap<&'s Path, &'s [u8]>,
    /// The files being included, outermost first.
    including: Vec<PathBuf>,
    /// How many files were included so far.
    included: usize,
    octets: usize,
    /// A limit was passed: nothing more is read.
    is_full: bool,
    records: Vec<Record>,
    report: &'s mut Report,
}

impl Reader<'_> {
    /// Reads one text.
    fn text(&mut self, text: &[u8], mut scope: Scope) {
        if !self.take_octets(text.len(), Report::place(scope.file, 1)) {
            return;
        }
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        while let Some(line) = lexer.next_line(&mut tokens) {
            if self.is_full {
                return;
            }
            match line {
                Ok(head) => self.line(head, &tokens, &mut scope),
                Err((line, fault)) => self.report.add(Report::place(scope.file, line), fault),
            }
        }
    }

    /// Counts octets of text; tells whether they may be read.
    fn take_octets(&mut self, count: usize, place: Place) -> bool {
        self.octets = self.octets.saturating_add(count);
        if self.octets > MAX_OCTETS && !self.is_full {
            self.is_full = true;
            let reason = format!("the zone's text has more than {MAX_OCTETS} octets in all");
            self.report.add(place, reason);
        }
        !self.is_full
    }

    /// Reads one logical line: a directive or a record.
    fn line(&mut self, head: Head, tokens: &[Token<'_>], scope: &mut Scope) {
        let is_directive = tokens
            .first()
            .is_some_and(|token| !token.quoted && token.raw.first() == Some(&b'$'));
        if is_directive {
            if let Err(fault) = self.directive(head, tokens, scope) {
                self.report.add(Report::place(scope.file, head.line), fault);
            }
        } else {
            self.record(head, tokens, scope);
        }
    }

    /// Reads one record and keeps it, or notes what is wrong.
    fn record(&mut self, head: Head, tokens: &[Token<'_>], scope: &mut Scope) {
        let origin = scope.origin.clone();
        let mut cursor = Cursor::new(tokens, origin.as_ref());
        match self.entry(head, &mut cursor, scope) {
            Err(fault) => {
                let line = cursor.last().map_or(head.line, |token| token.line);
                self.report.add(Report::place(scope.file, line), fault);
            }
            Ok(record) if self.records.len() < MAX_RECORDS => self.records.push(record),
            Ok(record) => {
                self.is_full = true;
                let reason = format!("the zone has more than {MAX_RECORDS} records");
                self.report.add(record.place, reason);
            }
        }
    }

    /// Reads the fields of a record: owner, TTL and class in either order, type, data (RFC 1035 section 5.1).
    fn entry(
        &self,
        head: Head,
        cursor: &mut Cursor<'_>,
        scope: &mut Scope,
    ) -> Result<Record, Fault> {
        if !head.blank {
            scope.owner = Some(cursor.name()?);
        }
        let owner = scope.owner.clone().ok_or_else(|| {
            Fault::new("the line begins with a blank, but no owner was stated before it")
        })?;
        if !owner.as_ref().is_at_or_below(self.apex) {
            return Err(Fault::new(format!(
                "{owner} lies outside of the zone {}",
                self.apex
            )));
        }
        let stated = ttl_and_class(cursor)?;
        let rtype = field::rtype(cursor.next()?)?;
        let rdata = records::rdata(rtype, cursor)?;
        scope.last_ttl = stated.or(scope.last_ttl);
        let ttl = match stated.or(scope.default_ttl).or(scope.last_ttl) {
            Some(ttl) => ttl,
            None if rtype == RecordType::SOA => *scope.last_ttl.insert(minimum(&rdata)),
            None => {
                return Err(Fault::new(
                    "no TTL, here or before; write `$TTL 1h` at the head of the file",
                ));
            }
        };
        Ok(Record {
            owner,
            rtype,
            ttl,
            rdata,
            place: Report::place(scope.file, head.line),
        })
    }
}

/// Reads a TTL and a class, either of which may be missing; gives the TTL.
fn ttl_and_class(cursor: &mut Cursor<'_>) -> Result<Option<Ttl>, Fault> {
    let mut ttl = None;
    let mut has_class = false;
    while let Some(token) = cursor.peek() {
        if ttl.is_none() && field::looks_like_ttl(token) {
            ttl = Some(field::ttl(cursor.next()?)?);
        } else if let Some(class) = field::class(token).filter(|_| !has_class) {
            cursor.next()?;
            class?;
            has_class = true;
        } else {
            break;
        }
    }
    if cursor.peek().is_none() {
        return Err(Fault::new(
            "no RR type; a record is written `owner [TTL] [class] type data`",
        ));
    }
    Ok(ttl)
}

/// Gives the MINIMUM of a SOA: its last four octets, as its TTL (RFC 1035 section 3.3.13).
pub(super) fn minimum(soa: &[u8]) -> Ttl {
    let last = soa.last_chunk().copied().unwrap_or_default();
    Ttl::from_wire(u32::from_be_bytes(last))
}
