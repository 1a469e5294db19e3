//! Closed sets of labels: what the answering path counts by.

use crate::model::RecordType;

macro_rules! labels {
    ($(#[$doc:meta])* $set:ident { $($(#[$each:meta])* $name:ident = $label:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $set { $($(#[$each])* $name,)* }

        impl $set {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Gives the label's value.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }
        }
    };
}

labels! {
    /// What a reply said. NODATA and REFERRAL are NOERROR on the wire.
    ReplyCode {
        /// NOERROR with an answer.
        NoError = "NOERROR",
        /// NOERROR without one.
        NoData = "NODATA",
        /// A referral.
        Referral = "REFERRAL",
        /// NXDOMAIN
        NxDomain = "NXDOMAIN",
        /// YXDOMAIN
        YxDomain = "YXDOMAIN",
        /// SERVFAIL
        ServFail = "SERVFAIL",
        /// FORMERR
        FormErr = "FORMERR",
        /// NOTIMP
        NotImp = "NOTIMP",
        /// REFUSED
        Refused = "REFUSED",
        /// NOTAUTH
        NotAuth = "NOTAUTH",
        /// BADVERS
        BadVers = "BADVERS",
    }
}

impl ReplyCode {
    /// The codes that the zone of a name may lead to; the others are said before a zone is looked for.
    pub const OF_ZONES: usize = 6;
}

labels! {
    /// The type asked for.
    QueryType {
        /// A
        A = "A",
        /// AAAA
        Aaaa = "AAAA",
        /// HTTPS
        Https = "HTTPS",
        /// SVCB
        Svcb = "SVCB",
        /// SRV
        Srv = "SRV",
        /// CNAME
        Cname = "CNAME",
        /// NS
        Ns = "NS",
        /// SOA
        Soa = "SOA",
        /// MX
        Mx = "MX",
        /// TXT
        Txt = "TXT",
        /// PTR
        Ptr = "PTR",
        /// CAA
        Caa = "CAA",
        /// DS
        Ds = "DS",
        /// DNSKEY
        Dnskey = "DNSKEY",
        /// ANY
        Any = "ANY",
        /// All others.
        Other = "other",
    }
}

impl QueryType {
    /// Sorts a type in.
    #[must_use]
    #[inline]
    pub fn of(rtype: RecordType) -> Self {
        match rtype.0 {
            1 => Self::A,
            28 => Self::Aaaa,
            2 => Self::Ns,
            5 => Self::Cname,
            6 => Self::Soa,
            12 => Self::Ptr,
            15 => Self::Mx,
            16 => Self::Txt,
            33 => Self::Srv,
            43 => Self::Ds,
            48 => Self::Dnskey,
            64 => Self::Svcb,
            65 => Self::Https,
            255 => Self::Any,
            257 => Self::Caa,
            _ => Self::Other,
        }
    }
}

labels! {
    /// What put the clusters in the order that a decision went by.
    Order {
        /// No choice of clusters.
        Fixed = "fixed",
        /// An entry of `maps`.
        Map = "map",
        /// Distance.
        Distance = "distance",
        /// An operator's override put the client inside a cluster.
        Inside = "inside",
        /// The place is unknown: weights over all clusters.
        UnknownPlace = "unknown_place",
        /// Drawn by weight.
        Weight = "weight",
        /// In turn.
        Turn = "turn",
        /// Every usable endpoint.
        Everything = "everything",
    }
}

labels! {
    /// What a decision gave: an endpoint of some level, or something instead.
    Given {
        /// Endpoints that are Up and undrained.
        Up = "up",
        /// Endpoints whatever their health, because of `panic`.
        Panic = "panic",
        /// Endpoints that are drained.
        Drained = "drained",
        /// Endpoints taken as Up: nothing is.
        AsIfUp = "as_if_up",
        /// Endpoints forced down.
        ForcedDown = "forced_down",
        /// `fallback`.
        Fallback = "fallback",
        /// `fenceAnswer`: the fence leaves the client nothing.
        FenceAnswer = "fence_answer",
        /// NODATA: the fence leaves the client nothing.
        FenceDenied = "fence_denied",
        /// NODATA: the other family has addresses.
        OtherFamily = "other_family",
        /// NODATA: the service has nothing for this client.
        Nothing = "nothing",
    }
}

labels! {
    /// What the client's place was taken from.
    PlaceOf {
        /// The policy does not ask.
        Nobody = "none",
        /// The sender's address.
        Sender = "sender",
        /// The option Client Subnet.
        Ecs = "ecs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_with_a_label_is_sorted_in() {
        for &set in QueryType::ALL {
            if set != QueryType::Other {
                let rtype: RecordType = set.as_str().parse().unwrap();
                assert_eq!(QueryType::of(rtype), set, "{rtype:?}");
            }
        }
        assert_eq!(QueryType::of(RecordType(65280)), QueryType::Other);
    }
}
