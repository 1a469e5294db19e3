//! Other nodes.

use super::shape;
use crate::config::spec::shape::{Form, Shape, optional, required};

pub(crate) static PEER: Shape = shape(
    "an entry of `peers`",
    &[
        required(
            "url",
            Form::Text,
            "its admin listener, such as https://ns2.example.com:8053",
        ),
        optional(
            "tokenFile",
            Form::Text,
            "file with the token of role `peer` that it knows this node by",
        ),
        optional(
            "ca",
            Form::Text,
            "PEM file with the certificates to trust for it in place of the system's",
        ),
    ],
);
