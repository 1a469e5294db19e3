//! How writing fares, for people.

/// How Events are written in a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBackStatus {
    /// It is wanted.
    pub wanted: bool,
    /// This node is the one who writes.
    pub leads: bool,
    /// Events that were written or counted up since the start.
    pub written: u64,
    /// Requests that the server did not allow (401, 403).
    pub forbidden: u64,
    /// Requests without an answer.
    pub unreachable: u64,
    /// Requests that were answered otherwise than was hoped.
    pub refused: u64,
    /// What stands and was not said yet by this node.
    pub waiting: usize,
    /// What stands and is not remembered, because there is too much of it.
    pub left_out: usize,
    /// Why the last request failed, in one line of at most 256 octets and without any secret; `None`: it did not.
    pub error: Option<Box<str>>,
}
