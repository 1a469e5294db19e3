//! What operators say, laid over what monitors say.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::inventory::{Inventory, Isolation, Meant};
use crate::model::{
    ClusterId, ClusterIndex, EndpointIndex, EndpointState, Forced, Intent, OperatorRecord,
    OperatorRecords, Phase, RecordId, ServiceKey, WallTime,
};
use crate::snapshot::UsableTable;
use crate::steering::States;

/// One record that is not over, with its cluster found.
#[derive(Clone, Debug)]
struct Rule {
    cluster: Option<ClusterIndex>,
    address: Option<IpAddr>,
    intent: Intent,
    active: bool,
    /// Which force wins: the closer one, then the newer.
    rank: (u8, WallTime, RecordId),
}

impl Rule {
    /// Tells whether it speaks of an entry; of a service's it is asked only where that is meant.
    fn is_for(&self, cluster: ClusterIndex, address: IpAddr) -> bool {
        self.cluster.is_none_or(|own| own == cluster)
            && self.address.is_none_or(|own| own == address)
    }
}

/// The rules in force and announced, by what they speak of.
#[derive(Clone, Debug, Default)]
pub(super) struct Operators {
    by_cluster: HashMap<ClusterIndex, Vec<Rule>>,
    by_service: HashMap<ServiceKey, Vec<Rule>>,
    by_address: HashMap<(ClusterIndex, IpAddr), Vec<Rule>>,
}

impl Operators {
    /// Reads the records that are not over, of both lists. A record about a cluster that is not there speaks of nothing, until it is.
    pub(super) fn of(records: [&OperatorRecords; 2], inventory: &Inventory, now: WallTime) -> Self {
        let clusters: HashMap<&ClusterId, ClusterIndex> = inventory
            .clusters()
            .map(|(index, cluster)| (&cluster.id, index))
            .collect();
        let mut all = Self::default();
        let standing = records.into_iter().flat_map(|list| list.standing(now));
        for record in standing {
            let cluster = match record.target.cluster() {
                None => None,
                Some(id) => match clusters.get(id) {
                    None => continue,
                    index => index.copied(),
                },
            };
            all.add(record, cluster, now);
        }
        all
    }

    /// Adds one record.
    fn add(&mut self, record: &OperatorRecord, cluster: Option<ClusterIndex>, now: WallTime) {
        let target = &record.target;
        let (address, service) = (target.address(), target.service().cloned());
        let closeness = u8::from(address.is_some()) * 2 + u8::from(service.is_some());
        let rule = Rule {
            cluster,
            address,
            intent: record.intent,
            active: record.phase(now) == Phase::Active,
            rank: (closeness, record.created.time, record.id.clone()),
        };
        match (service, address, cluster) {
            (Some(service), _, _) => self.by_service.entry(service).or_default().push(rule),
            (None, Some(address), Some(cluster)) => {
                let place = (cluster, address);
                self.by_address.entry(place).or_default().push(rule);
            }
            (None, _, Some(cluster)) => self.by_cluster.entry(cluster).or_default().push(rule),
            // A target has a service or a cluster.
            (None, _, None) => {}
        }
    }

    /// Tells whether nobody says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.by_cluster.is_empty() && self.by_service.is_empty() && self.by_address.is_empty()
    }

    /// Gives what must be told apart for these rules.
    pub(super) fn isolation(&self) -> Isolation {
        Isolation {
            services: self.by_service.keys().cloned().collect(),
            addresses: self.by_address.keys().copied().collect(),
        }
    }

    /// Gives what operators say of an entry: a state with their bits only. `spoken` has the keys that mean its service, with how
    /// much of it.
    pub(super) fn word(
        &self,
        cluster: ClusterIndex,
        address: IpAddr,
        spoken: &[(ServiceKey, Meant)],
    ) -> EndpointState {
        let meant = spoken
            .iter()
            .filter(|(_, meant)| meant.has(cluster, address));
        let of_service = meant.filter_map(|(key, _)| self.by_service.get(key));
        let lists = [
            self.by_cluster.get(&cluster),
            self.by_address.get(&(cluster, address)),
        ];
        let rules = lists.into_iter().flatten().chain(of_service).flatten();
        let rules = rules.filter(|rule| rule.is_for(cluster, address));
        let (mut drained, mut announced) = (false, false);
        let mut force: Option<&Rule> = None;
        for rule in rules {
            match rule.intent {
                Intent::Drain if rule.active => drained = true,
                Intent::Drain => announced = true,
                Intent::Challenge => {}
                Intent::ForceUp | Intent::ForceDown if !rule.active => {}
                Intent::ForceUp | Intent::ForceDown => {
                    if force.is_none_or(|held| held.rank < rule.rank) {
                        force = Some(rule);
                    }
                }
            }
        }
        let forced = match force.map(|rule| rule.intent) {
            Some(Intent::ForceUp) => Forced::Up,
            Some(Intent::ForceDown) => Forced::Down,
            _ => Forced::No,
        };
        EndpointState::UP
            .with_drained(drained)
            .with_announced(announced)
            .with_forced(forced)
    }

    /// Lays the rules over verdicts: over those that `pending` changes, and, where `all`, over every entry. Of two in `pending`
    /// for one entry the later counts.
    pub(super) fn lay_over(
        &self,
        pending: Vec<(EndpointIndex, EndpointState)>,
        (inventory, held): (&Inventory, &UsableTable),
        all: bool,
    ) -> Vec<(EndpointIndex, EndpointState)> {
        if self.is_empty() && !all {
            return pending;
        }
        let over = |index: EndpointIndex, state: EndpointState| {
            let word = inventory.endpoint(index).map(|(cluster, address, _)| {
                self.word(cluster, address, inventory.spoken_of(index))
            });
            state.with_operator_of(word.unwrap_or(EndpointState::UP))
        };
        let mut states: HashMap<EndpointIndex, EndpointState> = pending.into_iter().collect();
        if all {
            let end = u32::try_from(inventory.endpoint_count()).unwrap_or(u32::MAX);
            for index in (0..end).map(EndpointIndex) {
                let base = held.state(index);
                if !states.contains_key(&index) && over(index, base) != base {
                    states.insert(index, base);
                }
            }
        }
        states
            .into_iter()
            .map(|(index, state)| (index, over(index, state)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::inventory::Change;
    use crate::model::{Cluster, OperatorTarget, Said};

    fn record(
        id: &str,
        target: OperatorTarget,
        intent: Intent,
        times: (u64, u64),
    ) -> OperatorRecord {
        OperatorRecord {
            id: id.parse().unwrap(),
            target,
            intent,
            created: Said {
                time: WallTime(times.0),
                actor: "ann".into(),
                reason: "why".into(),
            },
            starts: WallTime(times.1),
            expires: None,
            ended: None,
        }
    }

    fn inventory() -> Inventory {
        let mut inventory = Inventory::default();
        let cluster = |index, name: &str| {
            let cluster = Cluster::named(name.parse().unwrap());
            (ClusterIndex(index), Arc::new(cluster))
        };
        inventory.apply(Change::Clusters(vec![cluster(0, "a"), cluster(1, "b")]));
        inventory
    }

    #[test]
    fn the_closest_and_newest_force_wins_and_drains_add_up() {
        let a: ClusterId = "a".parse().unwrap();
        let web = ServiceKey::new("shop", "web").unwrap();
        let one: IpAddr = [192, 0, 2, 1].into();
        let other: IpAddr = [192, 0, 2, 2].into();
        let endpoint = |service: Option<ServiceKey>| OperatorTarget::Endpoint {
            cluster: "a".parse().unwrap(),
            address: one,
            service,
        };
        let mut records = OperatorRecords::default();
        let all = [
            record(
                "1",
                OperatorTarget::Cluster(a.clone()),
                Intent::ForceDown,
                (50, 50),
            ),
            record("2", endpoint(None), Intent::ForceUp, (10, 10)),
            record("3", endpoint(None), Intent::ForceDown, (9, 9)),
            record(
                "4",
                OperatorTarget::Service {
                    service: web.clone(),
                    cluster: Some(a),
                },
                Intent::Drain,
                (10, 10),
            ),
            record(
                "5",
                OperatorTarget::Cluster("b".parse().unwrap()),
                Intent::Drain,
                (1, 9000),
            ),
            record(
                "6",
                OperatorTarget::Cluster("gone".parse().unwrap()),
                Intent::Drain,
                (1, 1),
            ),
        ];
        for record in all {
            records.merge(record, WallTime(100));
        }
        let none = OperatorRecords::default();
        let operators = Operators::of([&records, &none], &inventory(), WallTime(100));
        let word = |cluster, address, owner: Option<&ServiceKey>| {
            let spoken = owner.map(|owner| (owner.clone(), Meant::Whole));
            operators.word(ClusterIndex(cluster), address, spoken.as_slice())
        };
        let up = EndpointState::UP;
        assert_eq!(word(0, one, None), up.with_forced(Forced::Up));
        assert_eq!(word(0, other, None), up.with_forced(Forced::Down));
        assert_eq!(
            word(0, other, Some(&web)),
            up.with_forced(Forced::Down).with_drained(true)
        );
        assert_eq!(word(1, other, Some(&web)), up.with_announced(true));
        let isolation = operators.isolation();
        assert_eq!(isolation.services.len(), 1);
        assert_eq!(isolation.addresses.len(), 1);
        let later = Operators::of([&none, &records], &inventory(), WallTime(9000));
        assert_eq!(
            later.word(ClusterIndex(1), other, &[]),
            up.with_drained(true)
        );
    }

    #[test]
    fn a_part_of_a_service_is_no_more_than_that() {
        let web = ServiceKey::new("shop", "web").unwrap();
        let mut records = OperatorRecords::default();
        let target = OperatorTarget::Service {
            service: web.clone(),
            cluster: None,
        };
        records.merge(record("1", target, Intent::Drain, (1, 1)), WallTime(1));
        let none = OperatorRecords::default();
        let operators = Operators::of([&records, &none], &inventory(), WallTime(1));
        let (own, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let cluster = ClusterIndex(0);
        let part = [(web, Meant::Part([(cluster, own)].into()))];
        let drained = |cluster, address| operators.word(cluster, address, &part).is_drained();
        assert!(drained(cluster, own));
        assert!(!drained(cluster, other) && !drained(ClusterIndex(1), own));
    }
}
