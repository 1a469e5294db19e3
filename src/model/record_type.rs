//! RR types by number, with their mnemonics (IANA registry of RR TYPEs).

use std::fmt;
use std::str::FromStr;

/// An RR type or QTYPE. Any number is valid (RFC 3597).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u16);

macro_rules! types {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl RecordType {
            $(#[doc = concat!("The type `", $text, "`.")] pub const $name: Self = Self($number);)*

            /// Gives the mnemonic where we know one.
            fn mnemonic(self) -> Option<&'static str> {
                match self.0 { $($number => Some($text),)* _ => None }
            }

            /// Finds a type by its upper-case mnemonic.
            fn by_mnemonic(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

types! {
    A = 1, "A"; NS = 2, "NS"; MD = 3, "MD"; MF = 4, "MF"; CNAME = 5, "CNAME"; SOA = 6, "SOA"; MB = 7, "MB"; MG = 8, "MG";
    MR = 9, "MR"; NULL = 10, "NULL"; WKS = 11, "WKS"; PTR = 12, "PTR"; HINFO = 13, "HINFO"; MINFO = 14, "MINFO";
    MX = 15, "MX"; TXT = 16, "TXT"; RP = 17, "RP"; AFSDB = 18, "AFSDB"; LOC = 29, "LOC"; AAAA = 28, "AAAA";
    SRV = 33, "SRV"; NAPTR = 35, "NAPTR"; KX = 36, "KX"; CERT = 37, "CERT"; DNAME = 39, "DNAME"; OPT = 41, "OPT";
    APL = 42, "APL"; DS = 43, "DS"; SSHFP = 44, "SSHFP"; IPSECKEY = 45, "IPSECKEY"; RRSIG = 46, "RRSIG";
    NSEC = 47, "NSEC"; DNSKEY = 48, "DNSKEY"; DHCID = 49, "DHCID"; NSEC3 = 50, "NSEC3"; NSEC3PARAM = 51, "NSEC3PARAM";
    TLSA = 52, "TLSA"; SMIMEA = 53, "SMIMEA"; HIP = 55, "HIP"; CDS = 59, "CDS"; CDNSKEY = 60, "CDNSKEY";
    OPENPGPKEY = 61, "OPENPGPKEY"; CSYNC = 62, "CSYNC"; ZONEMD = 63, "ZONEMD"; SVCB = 64, "SVCB"; HTTPS = 65, "HTTPS";
    NXNAME = 128, "NXNAME"; EUI48 = 108, "EUI48"; EUI64 = 109, "EUI64"; TKEY = 249, "TKEY"; TSIG = 250, "TSIG";
    IXFR = 251, "IXFR"; AXFR = 252, "AXFR"; MAILB = 253, "MAILB"; MAILA = 254, "MAILA"; ANY = 255, "ANY";
    URI = 256, "URI"; CAA = 257, "CAA";
}

impl RecordType {
    /// Tells whether this number can only stand in a question or as meta data, never in a zone (RFC 6895 section 3.1).
    #[must_use]
    pub fn is_meta(self) -> bool {
        self == Self::OPT || (128..=255).contains(&self.0)
    }
}

impl fmt::Display for RecordType {
    /// Shows the mnemonic, else `TYPE` and the number (RFC 3597 section 5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(text) => f.write_str(text),
            None => write!(f, "TYPE{}", self.0),
        }
    }
}

impl fmt::Debug for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        Self::by_mnemonic(&upper)
            .or_else(|| upper.strip_prefix("TYPE")?.parse().ok().map(Self))
            .ok_or_else(|| {
                format!("`{text}` is no RR type; write a mnemonic such as A, or TYPE and a number")
            })
    }
}
