//! One step of steering.
