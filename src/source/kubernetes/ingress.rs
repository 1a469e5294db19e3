//! An Ingress (networking.k8s.io/v1).

use super::fields::{Faults, Field};
use super::names::namespace;
use super::object::Object;
use super::parts::{Backends, Hosts, MAX_HOSTS, common, entries};
use super::records::IngressRecord;
use crate::inventory::Refused;

/// Reads an Ingress.
///
/// Its hosts are those of its rules. Only where no rule names one are those of its TLS parts taken: beside a rule they say what
/// a certificate has, and that is often a wildcard that nobody meant to claim.
///
/// # Errors
/// When nothing can be read of it.
pub(super) fn read(object: &Object<'_>) -> Result<IngressRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let own = namespace(object);
    let mut hosts = Hosts::default();
    let mut names_hosts = false;
    let mut backends = Backends::default();
    let mut add = |backend: &Field<'_>| {
        let resource = backend.at(&["resource"]);
        if resource.is_filled() {
            resource.refuse("only Services are counted as backends");
        }
        let service = backend.at(&["service"]);
        if service.is_filled() {
            backends.add(&service, &own, true);
        }
    };
    add(&root.at(&["spec", "defaultBackend"]));
    for rule in root.at(&["spec", "rules"]).items(MAX_HOSTS) {
        let host = rule.at(&["host"]).filled();
        names_hosts |= host.is_filled();
        hosts.add(&host);
        for path in rule.at(&["http", "paths"]).items(MAX_HOSTS) {
            add(&path.at(&["backend"]));
        }
    }
    let tls = root.at(&["spec", "tls"]);
    let mut has_tls = false;
    for part in tls.items(MAX_HOSTS) {
        has_tls = true;
        if !names_hosts {
            for host in part.at(&["hosts"]).items(MAX_HOSTS) {
                hosts.add(&host);
            }
        }
    }
    let entries = entries(&root.at(&["status", "loadBalancer", "ingress"]));
    Ok(IngressRecord {
        hosts: hosts.into_list(),
        has_tls,
        backends: backends.into_list(),
        entries,
        common: common(object, faults),
    })
}
