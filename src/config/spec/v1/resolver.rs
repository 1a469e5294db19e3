//! Who is asked for load balancers that are host names.

use super::shape;
use crate::config::spec::shape::{Form, Shape, optional};

pub(crate) static RESOLVER: Shape = shape(
    "`resolver`",
    &[optional(
        "nameservers",
        Form::List(&Form::Any(&[Form::Address, Form::Socket])),
        "resolvers to ask, in order, with port unless it is 53; default: the system's",
    )],
);
