//! One state machine.
