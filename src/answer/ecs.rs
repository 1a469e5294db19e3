//! A part of answering.
