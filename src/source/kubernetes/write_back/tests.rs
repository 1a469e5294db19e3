//! The rate, the ledger against an oracle, and elections between clocks that do not agree.
