//! Who may claim what: the operator's rules for names that come from Kubernetes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{ClusterId, FederationName, LowerName, NameRef, PolicySpec, Ttl};

/// How a zone makes names of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// `{service}.{namespace}` below the apex.
    ServiceNamespace,
    /// `{service}.{namespace}.{federation}.svc` below the apex: the whole federation of KubeFed. Its levels are no names of their
    /// own.
    KubeFed,
    /// `{service}.{namespace}.svc` below the apex, of services that ask for it: a cluster set (KEP-1645).
    ClusterSet,
}

impl NameForm {
    /// Says it as the configuration does.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ServiceNamespace => "{service}.{namespace}",
            Self::KubeFed => "kubefed",
            Self::ClusterSet => "clusterset",
        }
    }
}

/// Where private addresses (RFC 1918, RFC 6598, RFC 4193) that come from Kubernetes may be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrivateAddresses {
    /// Nowhere.
    None,
    /// To the senders that a shard's `clients` lists.
    #[default]
    Clients,
    /// To everyone.
    All,
}

/// One entry of `grants`: these namespaces of these clusters may claim these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The clusters; `None`: all.
    pub clusters: Option<BTreeSet<ClusterId>>,
    /// The namespaces; `None`: all.
    pub namespaces: Option<BTreeSet<Box<str>>>,
    /// The names. One that begins with `*.` grants all names below the rest, at any depth, the wildcard itself included.
    pub hostnames: Vec<LowerName>,
}

/// One zone's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRules {
    /// The apex.
    pub apex: LowerName,
    /// Names made of services.
    pub forms: Vec<NameForm>,
    /// The federation of [`NameForm::KubeFed`], a label; `None`: only objects that name theirs have such a name.
    pub federation: Option<FederationName>,
    /// Who may claim what; empty: each namespace what lies below `{namespace}.<apex>`, in all clusters.
    pub grants: Vec<Grant>,
    /// Where private addresses may be answered.
    pub private: PrivateAddresses,
    /// The TTL of its steered names.
    pub ttl: Ttl,
}

/// All rules. The default has no zone: every claim lies outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FederationRules {
    /// The zones, in the order of the configuration.
    pub zones: Vec<ZoneRules>,
    /// What policies begin with: `defaults` of the configuration.
    pub base: Arc<PolicySpec>,
    /// The least TTL that a host name of a load balancer may bring; `None`: its own.
    pub min_ttl: Option<Ttl>,
    /// Ready endpoints scale each cluster's share, where objects do not say: `weightsFrom` of the defaults.
    pub weighs_endpoints: bool,
}

impl FederationRules {
    /// Finds the zone that a name belongs to: the longest.
    #[must_use]
    pub fn zone_of(&self, name: NameRef<'_>) -> Option<&ZoneRules> {
        let holds = |zone: &&ZoneRules| name.is_at_or_below(zone.apex.as_ref());
        let zones = self.zones.iter().filter(holds);
        zones.max_by_key(|zone| zone.apex.as_wire().len())
    }

    /// Tells what sets the services of a name's zone apart from those of the first zone: other addresses may be answered there.
    /// `None`: nothing.
    pub(super) fn apart(&self, name: NameRef<'_>) -> Option<&'static str> {
        let own = self.zone_of(name)?.private;
        let first = self.zones.first()?.private;
        (own != first).then_some(match own {
            PrivateAddresses::None => "private-none",
            PrivateAddresses::Clients => "private-clients",
            PrivateAddresses::All => "private-all",
        })
    }
}
