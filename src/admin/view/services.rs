//! Services.

use std::net::IpAddr;
use std::sync::Arc;

use memchr::memmem::Finder;

use super::objects::Provenance;
use super::places::{Shares, shares};
use super::spoken::spoken_of;
use super::{ServiceQuery, View, ViewError, catalog, words};
use crate::admin::dto::{
    BudgetDto, CountsDto, EndpointDto, EventDto, HealthState, Page, RefusalDto, ServiceDto,
    ServiceOrigin, ServiceRowDto, ShareDto, TtlDto,
};
use crate::answer::synthesized_service;
use crate::inventory::{Origin, Service};
use crate::model::{LowerName, MonitorSpec, NameRef, RecordType, ServiceIndex, Ttl};
use crate::snapshot::{ServiceSlot, Snapshot};
use crate::steering::States;
use crate::zone::{Lookup, NameTree, lookup};

/// Names of a service that a row shows.
const ROW_NAMES: usize = 10;
/// Events that a service's page shows.
const HISTORY: usize = 50;
/// Time that a publish takes at most, in the budget: what the loop waits for, and the time of the build.
const PUBLISH_MS: u64 = 10;

impl View {
    /// Lists services by key: those that match.
    ///
    /// # Errors
    /// When the cursor is none, or no key.
    pub async fn services(&self, query: &ServiceQuery) -> Result<Page<ServiceRowDto>, ViewError> {
        let look = self.look().await.ok_or(ViewError::Gone)?;
        let snapshot = self.snapshot();
        let world = Arc::clone(&self.controller().status().world);
        let search = query.search.as_deref().map(str::to_ascii_lowercase);
        let search = search.as_deref().map(Search::of);
        let cluster = super::find_cluster(&world, query.cluster.as_deref())?;
        let matches = |listed: &catalog::Listed, state: HealthState| {
            query.state.is_none_or(|wanted| wanted == state)
                && query
                    .namespace
                    .as_deref()
                    .is_none_or(|wanted| listed.key.namespace() == wanted)
                && search.as_ref().is_none_or(|search| search.is_in(listed))
                && cluster.is_none_or(|wanted| {
                    let slot = snapshot.service(listed.index);
                    slot.is_some_and(|slot| slot.pools.clusters().any(|one| one == wanted))
                })
        };
        let all = look.catalog.services.iter().zip(&look.standing.services);
        let found = all.filter(|(listed, state)| matches(listed, **state));
        let paging = query.paging();
        let after = paging
            .cursor
            .as_deref()
            .map(words::read_shown_key)
            .transpose()?;
        let (mut total, mut page, mut more) = (0, Vec::new(), false);
        for (listed, _) in found {
            total += 1;
            if after.as_ref().is_some_and(|after| listed.key <= *after) {
                continue;
            }
            if page.len() < paging.limit() {
                page.push(listed.clone());
            } else {
                more = true;
            }
        }
        let next = page
            .last()
            .filter(|_| more)
            .map(|last| last.key.to_string());
        let indices: Vec<_> = page.iter().map(|listed| listed.index).collect();
        let steers = self.controller().read(move |inventory| {
            let steer = |index: &_| inventory.service(*index).map(steer_word);
            indices.iter().map(steer).collect::<Vec<_>>()
        });
        let steers = steers.await.ok_or(ViewError::Gone)?;
        let items = page
            .iter()
            .zip(steers)
            .map(|(listed, steer)| row(listed, steer.unwrap_or_default(), &snapshot));
        Ok(Page {
            items: items.collect(),
            total,
            next,
        })
    }

    /// Shows a service by a name in the DNS.
    ///
    /// # Errors
    /// When it is no name, or no service answers it.
    pub async fn name(&self, hostname: &str) -> Result<ServiceDto, ViewError> {
        let name: LowerName = hostname.trim_end_matches('.').parse().map_err(|error| {
            ViewError::Invalid(format!("`{}`: {error}", words::shorten(hostname)))
        })?;
        let missing = || ViewError::NotFound(format!("service at {}", words::shorten(hostname)));
        let index = service_at(&self.snapshot(), &name).ok_or_else(missing)?;
        let key = self.controller().read(move |inventory| {
            inventory
                .service(index)
                .map(|service| service.key.to_string())
        });
        let key = key.await.ok_or(ViewError::Gone)?.ok_or_else(missing)?;
        self.service(&key).await
    }

    /// Shows a service by its key.
    ///
    /// # Errors
    /// When it is no key, or there is no such service.
    pub async fn service(&self, key: &str) -> Result<ServiceDto, ViewError> {
        let wanted = words::read_shown_key(key)?;
        let (asked, keys) = (wanted.clone(), self.spoken_keys());
        let read = self.controller().read(move |inventory| {
            let index = inventory.find(&asked)?;
            let service = inventory.service(index)?;
            let provenance = Provenance::of(inventory, service);
            let spoken = spoken_of(keys, service, inventory);
            Some((index, service.clone(), (provenance, spoken)))
        });
        let found = read.await.ok_or(ViewError::Gone)?;
        let missing = || ViewError::NotFound(format!("service {wanted}"));
        let (index, service, (provenance, spoken)) = found.ok_or_else(missing)?;
        let snapshot = self.snapshot();
        let slot = snapshot.service(index).ok_or_else(missing)?;
        let refused = snapshot
            .refused()
            .filter(|refused| refused.service == index);
        let refused = refused.map(|refused| RefusalDto {
            source: service.key.to_string(),
            place: refused.name.to_string(),
            reason: refused.reason.to_string(),
        });
        let refused = refused.chain(provenance.refused.iter().cloned()).collect();
        let monitored = service.monitor.is_some();
        let counts = catalog::endpoints(slot, None, (&snapshot, monitored));
        let countries = self.history();
        let Shares { places, by_rank } = shares(&snapshot, slot, &countries.countries);
        let endpoints = self.endpoints((&service, &provenance, &spoken), slot, &snapshot);
        let history = self.history_of(&service, &endpoints);
        Ok(ServiceDto {
            key: service.key.to_string(),
            namespace: service.key.namespace().to_owned(),
            name: service.key.name().to_owned(),
            origin: provenance.origin,
            hostnames: service.names.iter().map(|name| name.to_string()).collect(),
            owners: provenance.owners,
            objects: provenance.objects,
            object_count: provenance.object_count,
            conflicts: provenance.conflicts,
            refused,
            state: catalog::sum_up(&counts),
            steer: steer_word(&service),
            policy: super::policies::in_words(&service.policy),
            monitor: service.monitor.as_deref().map(words::monitor),
            clusters: clusters(slot, &snapshot, (monitored, &by_rank)),
            places,
            endpoints,
            counts,
            ttl: ttl(&service, slot, &snapshot),
            budget: service
                .monitor
                .as_deref()
                .map(|spec| budget(spec, configured_ttl(&service, &snapshot))),
            drains: self.drains_of(&service, &spoken),
            forces: self.forces_of(&service, &spoken),
            history,
        })
    }

    /// Lists the latest events about a service: those that name it, and flips of its targets.
    fn history_of(&self, service: &Service, endpoints: &[EndpointDto]) -> Vec<EventDto> {
        let port = service.monitor.as_ref().map(|spec| spec.check.port());
        let is_own = |target: &str| {
            endpoints.iter().any(|endpoint| {
                let address = endpoint.address.parse::<IpAddr>().ok();
                let own = address.zip(port).map(std::net::SocketAddr::from);
                own.is_some_and(|own| own.to_string() == target)
            })
        };
        let all = self.controller().journal().all();
        let events = all.iter().rev().filter(|event| {
            event.services.iter().any(|key| key == service.key.as_str())
                || event.target.as_deref().is_some_and(is_own)
        });
        events
            .take(HISTORY)
            .map(|event| words::event(event))
            .collect()
    }
}

/// A text that is looked for in keys and names, in lower case.
struct Search<'t> {
    text: &'t str,
    whole: Finder<'t>,
    /// What is between its dots; empty where a name may be written in another way than its octets.
    pieces: Vec<Finder<'t>>,
}

impl<'t> Search<'t> {
    fn of(text: &'t str) -> Self {
        let pieces = text.split('.').map(Finder::new);
        Self {
            text,
            whole: Finder::new(text),
            pieces: if text.contains('\\') {
                Vec::new()
            } else {
                pieces.collect()
            },
        }
    }

    /// Tells whether it is part of a service's key or of one of its names.
    fn is_in(&self, listed: &catalog::Listed) -> bool {
        let key = listed.key.as_str().as_bytes();
        self.whole.find(key).is_some() || listed.names.iter().any(|name| self.is_in_name(name))
    }

    /// Tells whether it is part of a name. Only a name that has all of its pieces is written out.
    fn is_in_name(&self, name: NameRef<'_>) -> bool {
        let octets = name.as_wire();
        let mut pieces = self.pieces.iter();
        pieces.all(|piece| piece.find(octets).is_some()) && name.to_string().contains(self.text)
    }
}

/// Finds the service that answers a name.
pub(super) fn service_at(snapshot: &Snapshot, name: &LowerName) -> Option<ServiceIndex> {
    let (names, name) = (snapshot.names(), name.as_ref());
    let exact = names.find(name);
    let own = exact.and_then(|exact| exact.service);
    own.or_else(
        || match lookup(names, snapshot.zones(), name, RecordType::A, exact) {
            Lookup::Steered { service, .. } => Some(service),
            _ => None,
        },
    )
    .or_else(|| synthesized_service(snapshot, name, RecordType::A))
    .or_else(|| synthesized_service(snapshot, name, RecordType::SRV))
}

/// Names how a service is steered.
fn steer_word(service: &Service) -> String {
    service.policy.steer.as_str().to_owned()
}

/// Makes one row.
fn row(listed: &catalog::Listed, steer: String, snapshot: &Snapshot) -> ServiceRowDto {
    let slot = snapshot.service(listed.index);
    let counts = slot.map(|slot| catalog::endpoints(slot, None, (snapshot, listed.monitored)));
    let counts: CountsDto = counts.unwrap_or_default();
    let clusters = slot.map(|slot| clusters(slot, snapshot, (listed.monitored, &[])));
    ServiceRowDto {
        key: listed.key.to_string(),
        namespace: listed.key.namespace().to_owned(),
        name: listed.key.name().to_owned(),
        origin: match listed.origin {
            Origin::Configuration => ServiceOrigin::Configuration,
            Origin::Kubernetes | Origin::Observed => ServiceOrigin::Kubernetes,
        },
        hostnames: listed
            .names
            .iter()
            .take(ROW_NAMES)
            .map(|name| name.to_string())
            .collect(),
        state: catalog::sum_up(&counts),
        steer,
        clusters: clusters.unwrap_or_default(),
        endpoints: counts,
    }
}

/// Lists the clusters of a service; `shares` by rank, or empty.
fn clusters(
    slot: &ServiceSlot,
    snapshot: &Snapshot,
    (monitored, shares): (bool, &[f64]),
) -> Vec<ShareDto> {
    let ranks = 0..slot.pools.cluster_count();
    let name = |rank| {
        let cluster = snapshot.cluster(slot.pools.cluster(rank)?)?;
        Some(cluster.id.to_string())
    };
    ranks
        .filter_map(|rank| {
            let counts = catalog::endpoints(slot, Some(rank), (snapshot, monitored));
            Some(ShareDto {
                cluster: name(rank)?,
                state: catalog::sum_up(&counts),
                share: shares.get(rank).copied(),
            })
        })
        .collect()
}

/// Gives the TTL configured for a service: its own, or the highest of the zones of its names.
fn configured_ttl(service: &Service, snapshot: &Snapshot) -> u32 {
    let zones = snapshot.zones();
    let of_zone = |name: NameRef<'_>| Some(zones.get(zones.find(name)?)?.ttl().seconds());
    match service.ttl {
        Some(ttl) => ttl.seconds(),
        None => service.names.iter().filter_map(of_zone).max().unwrap_or(0),
    }
}

/// Shows the TTL, and why it is short now.
fn ttl(service: &Service, slot: &ServiceSlot, snapshot: &Snapshot) -> TtlDto {
    let configured = configured_ttl(service, snapshot);
    let states = || {
        let all = slot.pools.iter().flat_map(|pool| pool.states());
        all.map(|index| snapshot.usable().state(index))
    };
    let reason = if states().any(|state| state.is_announced()) {
        Some("a drain is announced: answers with what it is about are kept for 5 s at most")
    } else if states().any(|state| state.is_in_doubt()) {
        Some("a monitor is in doubt: answers with what it judges are kept for 5 s at most")
    } else {
        None
    };
    let now = reason.map_or(configured, |_| configured.min(Ttl::BRIEF.seconds()));
    TtlDto {
        configured,
        now,
        reason: reason.map(ToOwned::to_owned),
    }
}

/// Adds up how long a failure can last for a client.
fn budget(spec: &MonitorSpec, ttl: u32) -> BudgetDto {
    // The first failure is found an interval after the last success at the latest, and takes the timeout; the checks that confirm
    // it follow at once.
    let detect = spec.interval + spec.timeout * u32::from(spec.fall);
    let detect_ms = words::millis(detect);
    let ttl_ms = u64::from(ttl) * 1000;
    BudgetDto {
        detect_ms,
        agree_ms: 0,
        publish_ms: PUBLISH_MS,
        ttl_ms,
        total_ms: detect_ms + PUBLISH_MS + ttl_ms,
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::model::{Check, Origin};

    #[test]
    fn the_budget_adds_up() {
        let spec = MonitorSpec::new(Check::connect(80), Origin::Operator);
        let budget = budget(&spec, 30);
        assert_eq!(budget.detect_ms, 4000);
        assert_eq!(budget.total_ms, 34_010);
    }

    #[test]
    fn every_part_of_a_name_is_found_in_it_and_nothing_else() {
        for name in ["www.shop.example", "a.b", "\\032x.example", "x\\255.a"] {
            let name: LowerName = name.parse().unwrap();
            let text = name.to_string();
            let is_found = |part: &str| Search::of(part).is_in_name(name.as_ref());
            for from in 0..text.len() {
                for to in from..=text.len() {
                    let part = &text[from..to];
                    // Digits of an escape stand for an octet.
                    let is_escape = text.contains('\\') && !part.contains('\\');
                    let is_digits = part.bytes().any(|octet| octet.is_ascii_digit());
                    assert!(is_found(part) || is_escape && is_digits, "{part} in {text}");
                }
            }
            for part in ["nowhere", "wwww.shop", "b.a", "\u{3}"] {
                assert!(!is_found(part), "{part} in {text}");
            }
        }
    }
}
