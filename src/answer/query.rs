//! The parser.

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

/// A query, borrowed from its packet.
#[derive(Clone, Copy, Debug)]
pub struct Query<'p> {
    packet: &'p [u8],
}

impl<'p> Query<'p> {
    /// Parses one message. Never panics, whatever the octets.
    ///
    /// # Errors
    /// Says what to do with what is no query.
    pub fn parse(packet: &'p [u8]) -> Result<Self, QueryError> {
        let _ = packet;
        todo!()
    }
}
