//! Steering as a whole.
