//! Flips in words, for who reads the log at night: what flipped, whose it is, why, and which names have nothing Up.

use std::collections::HashSet;
use std::net::SocketAddr;

use tracing::{info, warn};

use super::journal::{Event, Journal, Kind, Weightiness};
use crate::health::Flip;
use crate::inventory::{Inventory, Service};
use crate::model::{EndpointIndex, ServiceIndex, Target, Verdict, counted};
use crate::snapshot::UsableTable;
use crate::steering::States;
use crate::telemetry::wall_time;

/// Flips of one publish that are logged one by one; beyond, a number must do.
const LOGGED: usize = 20;
/// Flips and services of one publish that become events; and services that one event names.
const RECORDED: usize = 100;
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
    pub(super) fn tell(
        &mut self,
        (flips, journal): (&[Flip], &Journal),
        inventory: &Inventory,
        states: &UsableTable,
    ) {
        if flips.is_empty() {
            return;
        }
        let moved: HashSet<EndpointIndex> = flips
            .iter()
            .flat_map(|flip| &flip.endpoints)
            .copied()
            .collect();
        let searched = inventory.services().count() <= SEARCHED;
        let services: Vec<(ServiceIndex, &Service)> = if !searched {
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
        for flip in flips.iter().take(RECORDED) {
            let known = Some(&services[..]).filter(|_| searched);
            journal.record(event(flip, inventory, known), wall_time());
        }
        if flips.len() > LOGGED {
            let more = flips.len() - LOGGED;
            info!(more, "More verdicts flipped at the same time");
        }
        self.names(&services, (states, journal), inventory);
    }

    /// Logs services that lost their last endpoint that is Up, and those that have one again.
    fn names(
        &mut self,
        services: &[(ServiceIndex, &Service)],
        (states, journal): (&UsableTable, &Journal),
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
            if !changed || logged > RECORDED {
                continue;
            }
            let names = few(service.names.iter().map(|name| name.to_string()));
            let service = &service.key;
            let (weight, text) = if is_up {
                (
                    Weightiness::Info,
                    format!("{service} has an endpoint that is up again"),
                )
            } else {
                let text = format!("{service} has nothing up: its last resorts are answered");
                (Weightiness::Critical, text)
            };
            let mut event = Event::new(Kind::Service, weight, text);
            event.services.push(service.to_string());
            event.service_count = Some(1);
            journal.record(event, wall_time());
            if logged > LOGGED {
                continue;
            }
            if is_up {
                info!(%service, %names, "Service has an endpoint that is up again");
            } else {
                warn!(%service, %names, "Service has nothing up; its last resorts are answered");
            }
        }
    }
}

/// Lists the endpoints of a flip that its target still judges. The prober hears later than the inventory that an endpoint went:
/// by now its index may be another's, whom the verdict is nothing to.
pub(super) fn still_judged(flip: &Flip, inventory: &Inventory) -> Vec<EndpointIndex> {
    let Target { address, spec } = &flip.target;
    let is_judged = |endpoint: &EndpointIndex| {
        let entry = inventory.endpoint(*endpoint);
        entry.is_some_and(|(_, own, by)| {
            by == Some(spec) && *address == SocketAddr::new(own, spec.check.port())
        })
    };
    flip.endpoints.iter().copied().filter(is_judged).collect()
}

/// Lists the endpoints of a service by index.
fn endpoints(service: &Service) -> impl Iterator<Item = EndpointIndex> + '_ {
    service.pools.iter().flat_map(|pool| pool.states())
}

/// Puts one flip into an event. `services` are those that any flip of this time touches; `None`: they were not searched.
fn event(
    flip: &Flip,
    inventory: &Inventory,
    services: Option<&[(ServiceIndex, &Service)]>,
) -> Event {
    let (target, verdict) = (flip.target.address, flip.verdict);
    let weight = match verdict {
        Verdict::Down => Weightiness::Warning,
        Verdict::Up | Verdict::Unknown => Weightiness::Info,
    };
    let why = match flip.reason.filter(|_| verdict == Verdict::Down) {
        Some(error) => format!(": {error}"),
        None => String::new(),
    };
    let text = format!(
        "{target} is {verdict}, was {} ({}){why}",
        flip.before,
        check(&flip.target)
    );
    let mut event = Event::new(Kind::Flip, weight, text);
    event.target = Some(target.to_string());
    event.before = Some(flip.before);
    event.clusters = clusters_of(flip, inventory);
    event.clusters.truncate(RECORDED);
    if let Some(services) = services {
        let is_of = |service: &Service| endpoints(service).any(|at| flip.endpoints.contains(&at));
        let mut of_flip = services.iter().filter(|(_, service)| is_of(service));
        let keys = of_flip.by_ref().take(RECORDED);
        event.services = keys.map(|(_, service)| service.key.to_string()).collect();
        let all = event.services.len() + of_flip.count();
        event.service_count = u64::try_from(all).ok();
    }
    event
}

/// Names the clusters of a flip's endpoints.
fn clusters_of(flip: &Flip, inventory: &Inventory) -> Vec<String> {
    let mut clusters: Vec<String> = flip
        .endpoints
        .iter()
        .filter_map(|&at| inventory.cluster(inventory.endpoint(at)?.0))
        .map(|cluster| cluster.id.to_string())
        .collect();
    clusters.sort_unstable();
    clusters.dedup();
    clusters
}

/// Logs one flip.
fn log(flip: &Flip, inventory: &Inventory, services: &[(ServiceIndex, &Service)]) {
    let clusters = clusters_of(flip, inventory);
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
