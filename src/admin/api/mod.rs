//! The API under `/api/v1`: what is shown, what may be changed, and its OpenAPI document.

pub mod dto;
