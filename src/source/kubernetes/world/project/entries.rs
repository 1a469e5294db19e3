//! Where the traffic of an object enters.

use std::net::IpAddr;

use jiff::Timestamp;

use super::attached::{Attached, Entrance};
use super::drain::{Drained, drained};
use super::notes::Notes;
use super::said::Words;
use crate::inventory::Shard;
use crate::model::{HeadlessEndpoint, LowerName, not_reachable};
use crate::source::kubernetes::annotations::Target;
use crate::source::kubernetes::{Common, GatewayRecord, Ingresses, Record};

/// Where the traffic of an object enters, and what stands in its way there.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Addresses, without doubles, in their order.
    pub(super) addresses: Vec<IpAddr>,
    /// Host names, without doubles, in their order.
    pub(super) targets: Vec<LowerName>,
    /// Why nothing enters there: no Gateway accepts it, or the Gateway is not ready.
    pub(super) unready: Option<Box<str>>,
    /// Why the addresses are not sure, or none.
    pub(super) missing: Option<&'static str>,
    /// No new traffic is wanted.
    pub(super) is_drained: bool,
    /// When that turns by itself.
    pub(super) edge: Option<Timestamp>,
}

impl Entries {
    /// Begins with none, and with whether they are drained.
    fn begin(common: &Common, now: Timestamp) -> Self {
        let Drained { is_drained, edge } = drained(common, now);
        Self {
            is_drained,
            edge,
            ..Self::default()
        }
    }

    /// Finds where the traffic of an object enters. An object that had addresses and names none any more keeps them, unless
    /// it is being deleted.
    pub(super) fn of(
        (record, common, words): (&Record, &Common, &Words<'_>),
        attached: &[Attached<'_>],
        (given, now): (Option<&Shard>, Timestamp),
        notes: &mut Notes,
    ) -> Self {
        let mut entries = Self::begin(common, now);
        let own = words.own.said.targets.as_deref();
        match record {
            Record::Service(service) => {
                let field = "status.loadBalancer.ingress";
                entries.take(own, (&service.entries, field), notes);
            }
            Record::Ingress(ingress) => {
                let field = "status.loadBalancer.ingress";
                entries.take(own, (&ingress.entries, field), notes);
            }
            Record::Gateway(gateway) => {
                entries.unready.clone_from(&gateway.unready);
                entries.take_gateway(gateway, "status.addresses", notes);
            }
            Record::Route(route) => {
                let entrance = Entrance::of(route, attached, now);
                entries.is_drained |= entrance.is_drained;
                entries.edge = [entries.edge, entrance.edge].into_iter().flatten().min();
                entries.unready = entrance.unready;
                if own.is_some() {
                    entries.take(own, (&Ingresses::default(), ""), notes);
                } else {
                    for parent in entrance.gateways {
                        if let Some(gateway) = parent.gateway {
                            let field = format!("status.addresses of {}", parent.words());
                            entries.take_gateway(gateway, &field, notes);
                        }
                    }
                }
            }
            Record::Slice(_) | Record::Node(_) => {}
        }
        if entries.addresses.is_empty() && entries.targets.is_empty() {
            entries.missing = Some("its status names no address");
            let had = given.filter(|_| !common.is_deleting);
            let had = had.filter(|had| !had.addresses.is_empty() || !had.targets.is_empty());
            if let Some(had) = had {
                entries.addresses = had.addresses.to_vec();
                entries.targets = had.targets.to_vec();
                entries.missing = Some("its status names no address any more");
            }
        }
        entries
    }

    /// Takes the endpoints of a Service without an address of its own. Those that are gone are another's soon: none is kept.
    pub(super) fn of_endpoints(
        common: &Common,
        endpoints: &[HeadlessEndpoint],
        now: Timestamp,
    ) -> Self {
        let mut entries = Self::begin(common, now);
        for endpoint in endpoints {
            entries.take_address(endpoint.address);
        }
        entries
    }

    /// Takes the addresses of a Gateway.
    fn take_gateway(&mut self, gateway: &GatewayRecord, field: &str, notes: &mut Notes) {
        let own = gateway.common.said.said.targets.as_deref();
        self.take(own, (&gateway.entries, field), notes);
    }

    /// Takes addresses: those of the annotation, else those of the status.
    fn take(
        &mut self,
        own: Option<&[Target]>,
        (status, field): (&Ingresses, &str),
        notes: &mut Notes,
    ) {
        let Some(own) = own else {
            for address in &status.addresses {
                match not_reachable(address.to_canonical()) {
                    Some(why) => notes.field(field, format_args!("{address} {why}")),
                    None => self.take_address(*address),
                }
            }
            for name in &status.hostnames {
                self.take_name(name);
            }
            return;
        };
        for target in own {
            match target {
                Target::Address(address) => match not_reachable(address.to_canonical()) {
                    Some(why) => notes.key("target", format_args!("{address} {why}")),
                    None => self.take_address(*address),
                },
                Target::Hostname(name) => self.take_name(name),
            }
        }
    }

    fn take_address(&mut self, address: IpAddr) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    fn take_name(&mut self, name: &LowerName) {
        if !self.targets.contains(name) {
            self.targets.push(name.clone());
        }
    }
}
