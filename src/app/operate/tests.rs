//! Tests of the operator's hand.
