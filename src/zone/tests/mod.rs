//! The whole room: compiling, and lookup against a slow resolver that knows nothing but a list of records.

mod compiling;
mod looking_up;
mod slow;
