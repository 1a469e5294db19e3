//! Record data through the scanners of the `domain` crate: the only file that knows it.
//!
//! The crate's own reader of whole files is not used: it stops at the first fault, and panics where it loses its place. Its
//! record types scan from anything that is a [`Scanner`], so they scan from our fields.

use domain::base::charstr::CharStr;
use domain::base::iana::Rtype;
use domain::base::name::{Name, ParsedName};
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::base::scan::{ConvertSymbols, EntrySymbol, Scanner, ScannerError, Symbol};
use domain::dep::octseq::Parser;
use domain::dep::octseq::str::Str;
use domain::rdata::dnssec::RtypeBitmap;
use domain::rdata::{Tlsa, ZoneRecordData};
use domain::utils::{base16, base64};

use super::cursor::Cursor;
use super::fault::Fault;
use super::field;
use super::lexer::Token;
use crate::model::RecordType;

/// The types that domain scans and that we leave to it. SOA (times with units) and SVCB, HTTPS (keys with `z` or `9`,
/// escapes in lists) are our own.
pub(super) const TYPES: [RecordType; 28] = [
    RecordType::A,
    RecordType::AAAA,
    RecordType::CAA,
    RecordType::CDNSKEY,
    RecordType::CDS,
    RecordType::CNAME,
    RecordType::DNAME,
    RecordType::DNSKEY,
    RecordType::DS,
    RecordType::HINFO,
    RecordType::IPSECKEY,
    RecordType::MB,
    RecordType::MD,
    RecordType::MF,
    RecordType::MG,
    RecordType::MINFO,
    RecordType::MR,
    RecordType::MX,
    RecordType::NAPTR,
    RecordType::NS,
    RecordType::OPENPGPKEY,
    RecordType::PTR,
    RecordType::RP,
    RecordType::SRV,
    RecordType::SSHFP,
    RecordType::TLSA,
    RecordType::TXT,
    RecordType::ZONEMD,
];

/// Tells whether [`rdata`] can read a type's text form.
pub(super) fn knows(rtype: RecordType) -> bool {
    TYPES.contains(&rtype)
}

/// Reads one record's data, up to where the type ends; gives its wire form, names uncompressed and in lower case.
pub(super) fn rdata(rtype: RecordType, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut fields = match rtype {
        // A key may be left out where the algorithm is 0 (RFC 4025 section 2.3).
        RecordType::IPSECKEY => Fields::with_optional_end(cursor),
        _ => Fields::new(cursor),
    };
    let data = ZoneRecordData::scan(Rtype::from_int(rtype.0), &mut fields);
    let data = data.map_err(|fault| about_field(fault, cursor))?;
    let mut wire = Vec::new();
    let Ok(()) = data.compose_rdata(&mut wire);
    Ok(wire)
}

/// Says which field a fault of domain is about, where it does not say so itself.
fn about_field(fault: Fault, cursor: &Cursor<'_>) -> Fault {
    match cursor.last() {
        Some(token) if fault != Fault::end_of_entry() && !fault.names_field() => {
            Fault::new(format!("{}: {fault}", token.shown()))
        }
        _ => fault,
    }
}

/// Tells whether octets are what a type's data looks like on the wire, names uncompressed. Types unknown to domain always
/// are.
pub(super) fn is_rdata(rtype: RecordType, wire: &[u8]) -> bool {
    let mut parser = Parser::from_ref(wire);
    let parsed = ZoneRecordData::<&[u8], ParsedName<&[u8]>>::parse_rdata(
        Rtype::from_int(rtype.0),
        &mut parser,
    );
    let Ok(Some(data)) = parsed else {
        return false;
    };
    let mut again = Vec::with_capacity(wire.len());
    let Ok(()) = data.compose_rdata(&mut again);
    parser.remaining() == 0 && again == wire
}

/// Reads the data of SMIMEA, which is that of TLSA (RFC 8162 section 2).
pub(super) fn smimea(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = Vec::new();
    let data = Tlsa::scan(&mut Fields::new(cursor))?;
    let Ok(()) = data.compose_rdata(&mut wire);
    Ok(wire)
}

/// Reads all fields left as mnemonics of types; gives their bit map (RFC 4034 section 4.1.2).
pub(super) fn type_bitmap(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let types = RtypeBitmap::<Vec<u8>>::scan(&mut Fields::new(cursor))?;
    Ok(types.as_slice().to_vec())
}

/// Reads all fields left as base 64.
pub(super) fn base64_rest(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut fields = Fields::new(cursor);
    fields.convert_entry(base64::SymbolConverter::new())
}

/// Reads the next field as base 64.
pub(super) fn base64_token(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut fields = Fields::new(cursor);
    fields.convert_token(base64::SymbolConverter::new())
}

/// Reads octets as base 64 text.
pub(super) fn base64_octets(text: &[u8]) -> Option<Vec<u8>> {
    base64::decode(std::str::from_utf8(text).ok()?).ok()
}

/// Reads the next field as hexadecimal digits.
pub(super) fn hex_token(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut fields = Fields::new(cursor);
    fields.convert_token(base16::SymbolConverter::new())
}

/// Reads all fields left as hexadecimal digits; there may be none.
pub(super) fn hex_rest(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut fields = Fields::with_optional_end(cursor);
    fields.convert_entry(base16::SymbolConverter::new())
}

/// What domain's types scan from: our fields.
#[derive(Debug)]
struct Fields<'c, 't> {
    cursor: &'c mut Cursor<'t>,
    /// Data that goes on to the end of the entry may be empty.
    may_end: bool,
}

impl<'c, 't> Fields<'c, 't> {
    /// Scans data all of whose fields must be there.
    fn new(cursor: &'c mut Cursor<'t>) -> Self {
        Self {
            cursor,
            may_end: false,
        }
    }

    /// Scans data whose last part may be left out.
    fn with_optional_end(cursor: &'c mut Cursor<'t>) -> Self {
        Self {
            cursor,
            may_end: true,
        }
    }
}

impl ScannerError for Fault {
    fn custom(reason: &'static str) -> Self {
        Self::new(reason)
    }

    fn end_of_entry() -> Self {
        Self::new("a field is missing at the end")
    }

    fn short_buf() -> Self {
        Self::new("the data is too long")
    }

    fn trailing_tokens() -> Self {
        Self::new("one field too many")
    }
}

/// Gives the symbols of a field. Octets outside ASCII come as characters that no digit and no alphabet has.
fn symbols<'t>(token: &Token<'t>) -> impl Iterator<Item = Result<Symbol, Fault>> + use<'t> {
    let raw = token.raw;
    let mut at = 0;
    std::iter::from_fn(move || {
        let octet = *raw.get(at)?;
        if octet >= 0x80 {
            at += 1;
            return Some(Ok(Symbol::Char(char::from(octet))));
        }
        match Symbol::from_slice_index(raw, at) {
            Ok(Some((symbol, end))) => {
                at = end;
                Some(Ok(symbol))
            }
            Ok(None) => None,
            Err(error) => {
                at = raw.len();
                Some(Err(Fault::new(error.to_string())))
            }
        }
    })
}

/// Runs one field through a converter.
fn convert<S, C>(token: &Token<'_>, converter: &mut C, out: &mut Vec<u8>) -> Result<(), Fault>
where
    S: From<Symbol>,
    C: ConvertSymbols<S, Fault>,
{
    for symbol in symbols(token) {
        let octets = converter.process_symbol(symbol?.into())?;
        out.extend_from_slice(octets.unwrap_or_default());
    }
    Ok(())
}

impl Scanner for Fields<'_, '_> {
    type Octets = Vec<u8>;
    type OctetsBuilder = Vec<u8>;
    type Name = Name<Vec<u8>>;
    type Error = Fault;

    fn has_space(&self) -> bool {
        self.cursor.peek().is_some_and(|token| !token.glued)
    }

    fn continues(&mut self) -> bool {
        self.cursor.peek().is_some()
    }

    fn scan_symbols<F>(&mut self, mut op: F) -> Result<(), Fault>
    where
        F: FnMut(Symbol) -> Result<(), Fault>,
    {
        symbols(self.cursor.next()?).try_for_each(|symbol| op(symbol?))
    }

    fn scan_entry_symbols<F>(&mut self, mut op: F) -> Result<(), Fault>
    where
        F: FnMut(EntrySymbol) -> Result<(), Fault>,
    {
        while self.continues() {
            self.scan_symbols(|symbol| op(symbol.into()))?;
            op(EntrySymbol::EndOfToken)?;
        }
        Ok(())
    }

    fn convert_token<C: ConvertSymbols<Symbol, Fault>>(
        &mut self,
        mut converter: C,
    ) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        convert(self.cursor.next()?, &mut converter, &mut out)?;
        out.extend_from_slice(converter.process_tail()?.unwrap_or_default());
        Ok(out)
    }

    fn convert_entry<C: ConvertSymbols<EntrySymbol, Fault>>(
        &mut self,
        mut converter: C,
    ) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        if !self.continues() && !self.may_end {
            return Err(Fault::end_of_entry());
        }
        while self.continues() {
            convert(self.cursor.next()?, &mut converter, &mut out)?;
        }
        out.extend_from_slice(converter.process_tail()?.unwrap_or_default());
        Ok(out)
    }

    fn scan_octets(&mut self) -> Result<Vec<u8>, Fault> {
        self.cursor.octets()
    }

    fn scan_ascii_str<F, T>(&mut self, op: F) -> Result<T, Fault>
    where
        F: FnOnce(&str) -> Result<T, Fault>,
    {
        let token = self.cursor.next()?;
        let octets = field::octets(token.raw)?;
        let text = std::str::from_utf8(&octets)
            .ok()
            .filter(|text| text.is_ascii());
        let text = text.ok_or_else(|| Fault::new(format!("{} is not ASCII", token.shown())))?;
        op(text)
    }

    fn scan_name(&mut self) -> Result<Name<Vec<u8>>, Fault> {
        let name = self.cursor.name()?;
        Name::from_octets(name.as_wire().to_vec()).map_err(|error| Fault::new(error.to_string()))
    }

    fn scan_charstr(&mut self) -> Result<CharStr<Vec<u8>>, Fault> {
        CharStr::from_octets(self.scan_octets()?).map_err(|_| long_string())
    }

    fn scan_string(&mut self) -> Result<Str<Vec<u8>>, Fault> {
        Str::from_utf8(self.scan_octets()?).map_err(|_| Fault::new("a string that is not UTF-8"))
    }

    fn scan_charstr_entry(&mut self) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        while self.continues() {
            let octets = self.scan_octets()?;
            out.push(u8::try_from(octets.len()).map_err(|_| long_string())?);
            out.extend_from_slice(&octets);
        }
        Ok(out)
    }

    fn scan_opt_unknown_marker(&mut self) -> Result<bool, Fault> {
        // `\#` was looked for before.
        Ok(false)
    }

    fn octets_builder(&mut self) -> Result<Vec<u8>, Fault> {
        Ok(Vec::new())
    }
}

fn long_string() -> Fault {
    Fault::new("a string of more than 255 octets; split it into several")
}
