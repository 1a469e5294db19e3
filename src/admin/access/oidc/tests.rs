//! Tokens of a provider.
