//! Flips in words, for who reads the log at night: what flipped, whose it is, why, and which names have nothing Up.

use std::collections::HashSet;

use tracing::{info, warn};

use crate::health::Flip;
use crate::inventory::{Inventory, Service};
use crate::model::{EndpointIndex, ServiceIndex, Target, Verdict, counted};
use crate::snapshot::UsableTable;
use crate::steering::States;

/// Flips of one publish that are logged one by one; beyond, a number must do.
const LOGGED: usize = 20;
/// Services and clusters that one line names.
const NAMED: usize = 3;
/// Most services that are searched for a flip's: beyond, a search would hold up the next publish, and lines name clusters only.
const SEARCHED: usize = 20_000;

/// Logs flips, and remembers which services have nothing Up.
#[derive(Debug, Default)]
pub(super) struct FlipLog {
    /// Services whose endpoints are all not usable.
    dark: HashSet<ServiceIndex>,
}

impl FlipLog {
    /// Logs what probes changed, after the publish that shows it.
    pub(super) fn tell(&mut self, flips: &[Flip], inventory: &Inventory, states: &UsableTable) {
        if flips.is_empty() {
            return;
        }
        let moved: HashSet<EndpointIndex> = flips
            .iter()
            .flat_map(|flip| &flip.endpoints)
            .copied()
            .collect();
        let services: Vec<(ServiceIndex, &Service)> = if inventory.services().count() > SEARCHED {
            Vec::new()
        } else {
            let has_moved = |service: &Service| endpoints(service).any(|at| moved.contains(&at));
            inventory
                .services()
                .filter(|(_, service)| has_moved(service))
                .collect()
        };
        for flip in flips.iter().take(LOGGED) {
            log(flip, inventory, &services);
        }
        if flips.len() > LOGGED {
            let more = flips.len() - LOGGED;
            info!(more, "More verdicts flipped at the same time");
        }
        self.names(&services, states, inventory);
    }

    /// Logs services that lost their last endpoint that is Up, and those that have one again.
    fn names(
        &mut self,
        services: &[(ServiceIndex, &Service)],
        states: &UsableTable,
        inventory: &Inventory,
    ) {
        self.dark
            .retain(|index| inventory.service(*index).is_some());
        let mut logged = 0;
        for (index, service) in services {
            let is_up = endpoints(service).any(|at| states.state(at).is_usable());
            let changed = if is_up {
                self.dark.remove(index)
            } else {
                self.dark.insert(*index)
            };
            logged += usize::from(changed);
            if !changed || logged > LOGGED {
                continue;
            }
            let names = few(service.names.iter().map(|name| name.to_string()));
            let service = &service.key;
            if is_up {
                info!(%service, %names, "Service has an endpoint that is up again");
            } else {
                warn!(%service, %names, "Service has nothing up; its last resorts are answered");
            }
        }
    }
}

/// Lists the endpoints of a service by index.
fn endpoints(service: &Service) -> impl Iterator<Item = EndpointIndex> + '_ {
    let all = |pool: crate::model::PoolRef<'_>| {
        pool.v4()
            .chain(pool.v6())
            .map(|endpoint| endpoint.state)
            .collect::<Vec<_>>()
    };
    service.pools.iter().flat_map(all)
}

/// Logs one flip.
fn log(flip: &Flip, inventory: &Inventory, services: &[(ServiceIndex, &Service)]) {
    let mut clusters: Vec<String> = flip
        .endpoints
        .iter()
        .filter_map(|&at| inventory.cluster(inventory.endpoint(at)?.0))
        .map(|cluster| cluster.id.to_string())
        .collect();
    clusters.dedup();
    let of_flip = services
        .iter()
        .filter(|(_, service)| endpoints(service).any(|at| flip.endpoints.contains(&at)));
    let keys: Vec<String> = of_flip
        .map(|(_, service)| service.key.to_string())
        .collect();
    let (target, check) = (flip.target.address, check(&flip.target));
    let (before, verdict) = (flip.before, flip.verdict);
    let (clusters, count) = (few(clusters.into_iter()), counted(keys.len(), "service"));
    let services = few(keys.into_iter());
    match flip.reason.filter(|_| verdict == Verdict::Down) {
        Some(error) => {
            info!(%target, %check, %clusters, %services, %count, %before, %verdict, %error, "Verdict flipped");
        }
        None => {
            info!(%target, %check, %clusters, %services, %count, %before, %verdict, "Verdict flipped");
        }
    }
}

/// Names a check in a word or two.
fn check(target: &Target) -> String {
    match &target.spec.check {
        crate::model::Check::Tcp(_) => "tcp".to_owned(),
        crate::model::Check::Http(http) => {
            let scheme = if http.tls.is_some() { "https" } else { "http" };
            format!("{scheme} {}", http.path)
        }
    }
}

/// Joins the first few, and counts the rest.
fn few(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let shown = names.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_are_named() {
        let few_of = |count: usize| few((0..count).map(|number| number.to_string()));
        assert_eq!(few_of(0), "");
        assert_eq!(few_of(3), "0, 1, 2");
        assert_eq!(few_of(5), "0, 1, 2 and 2 more");
    }
}
