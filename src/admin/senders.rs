//! Whether most senders look translated: a load balancer or a NAT in front puts its own address in the place of theirs.
//!
//! Where it does, a query without Client Subnet is answered for the place of that box. Nothing in a query says so; what gives it away
//! is that a few addresses send nearly everything. Private addresses alone are no sign: a company's own DNS has nothing else, from many
//! addresses. A task hands in what the workers sampled; the judgment is pure, with `now` given.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;

use crate::model::Moment;
use crate::telemetry::{Count, Counters, SampledSender, SenderKind};

/// How far back senders count.
pub(super) const WINDOW: Duration = Duration::from_secs(300);
/// Senders of one step, at most; of more, so many are taken evenly. A step is 5 s, so that no burst of a second decides.
const A_STEP: usize = 256;
/// Fewer sampled queries say nothing: a few people at work look like one address.
const ENOUGH: usize = 200;
/// The share from which on it is *most*, percent.
const MOST: usize = 80;
/// So many private addresses are few: what translates has one address a box, a node or a zone of availability.
const FEW: usize = 8;

/// Why senders look translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translated {
    /// One address sends most queries.
    OneAddress,
    /// A few private addresses do, and nobody knows where these are.
    FewPrivate,
}

/// The senders of the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendersView {
    /// Queries that were sampled, those from the machine itself left out.
    pub sampled: usize,
    /// Different addresses among their senders.
    pub addresses: usize,
    /// Queries from private addresses.
    pub private: usize,
    /// Queries with a believed Client Subnet.
    pub with_subnet: usize,
    /// Queries from the address that sends most.
    pub busiest: usize,
    /// The network of that address: 24 bits of IPv4, 48 of IPv6.
    pub busiest_network: Option<IpNet>,
    /// It is private.
    pub busiest_is_private: bool,
    /// Answers that depended on a place.
    pub placed_answers: u64,
    /// Why they look translated; `None`: they do not, or too few were sampled, or no answer depends on it.
    pub translated: Option<Translated>,
}

impl SendersView {
    /// Gives the share of a number of them, 0 to 1.
    #[must_use]
    pub fn share(&self, number: usize) -> f64 {
        if self.sampled == 0 {
            return 0.0;
        }
        // Far below 2^52.
        number as f64 / self.sampled as f64
    }
}

/// Keeps the senders of the last minutes.
#[derive(Debug, Default)]
pub struct Senders {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    window: Window,
    /// How many senders each worker had sampled at the last step.
    seen: Vec<u64>,
    /// Answers that depended on a place, ever.
    placed: u64,
    view: Arc<SendersView>,
}

impl Senders {
    /// Gives what is known of them.
    #[must_use]
    pub fn view(&self) -> Arc<SendersView> {
        // What it guards is whole between two steps.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&kept.view)
    }

    /// Takes a step: what the workers sampled since the last one.
    pub(super) fn sample(&self, counters: &[Arc<Counters>], now: Moment) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.seen.resize(counters.len(), 0);
        let mut fresh = Vec::new();
        for (worker, seen) in counters.iter().zip(&mut kept.seen) {
            let (senders, count) = worker.senders().since(*seen);
            *seen = count;
            fresh.extend(senders);
        }
        let placed = |worker: &Arc<Counters>| {
            worker.get(Count::PlaceFromSender) + worker.get(Count::PlaceFromEcs)
        };
        let placed: u64 = counters.iter().map(placed).sum();
        let more = placed.saturating_sub(kept.placed);
        kept.placed = placed;
        kept.window.take(&fresh, more, now);
        kept.view = Arc::new(kept.window.judge());
    }
}

/// The steps of the last minutes.
#[derive(Debug, Default)]
struct Window {
    steps: VecDeque<Step>,
}

#[derive(Debug)]
struct Step {
    at: Moment,
    senders: Box<[SampledSender]>,
    placed: u64,
}

impl Window {
    /// Takes a step, and lets go of those that are too old.
    fn take(&mut self, senders: &[SampledSender], placed: u64, now: Moment) {
        let taken = senders.len().min(A_STEP);
        // Evenly over all workers, which stand one after the other.
        let positions = (0..taken).map(|at| at * senders.len() / taken);
        let senders = positions.filter_map(|at| senders.get(at).copied());
        self.steps.push_back(Step {
            at: now,
            senders: senders.collect(),
            placed,
        });
        self.steps.retain(|step| now.since(step.at) < WINDOW);
    }

    /// Judges what is there.
    fn judge(&self) -> SendersView {
        let mut by_address: HashMap<u64, (SampledSender, usize)> = HashMap::new();
        let mut view = SendersView::default();
        for sender in self.steps.iter().flat_map(|step| &step.senders) {
            let entry = by_address.entry(sender.address());
            let (newest, count) = entry.or_insert((*sender, 0));
            // What is known of a place may change.
            *newest = *sender;
            *count += 1;
            view.sampled += 1;
            view.private += usize::from(sender.kind() != SenderKind::Public);
            view.with_subnet += usize::from(sender.with_subnet());
        }
        view.addresses = by_address.len();
        view.placed_answers = self.steps.iter().map(|step| step.placed).sum();
        let mut all: Vec<(SampledSender, usize)> = by_address.into_values().collect();
        // By count, and among equals always the same way.
        all.sort_unstable_by_key(|(sender, count)| (std::cmp::Reverse(*count), sender.address()));
        let Some((busiest, count)) = all.first() else {
            return view;
        };
        view.busiest = *count;
        view.busiest_network = Some(busiest.network());
        view.busiest_is_private = busiest.kind() != SenderKind::Public;
        let unplaced = all
            .iter()
            .filter(|(sender, _)| sender.kind() == SenderKind::Private);
        let few: usize = unplaced.take(FEW).map(|(_, count)| count).sum();
        let is_most = |count: usize| count * 100 >= view.sampled * MOST;
        view.translated = if view.sampled < ENOUGH || view.placed_answers == 0 {
            None
        } else if is_most(view.busiest) && busiest.kind() != SenderKind::Placed {
            Some(Translated::OneAddress)
        } else {
            is_most(few).then_some(Translated::FewPrivate)
        };
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment(Duration::from_secs(second))
    }

    fn sender(address: &str, kind: SenderKind) -> SampledSender {
        SampledSender::new(address.parse().unwrap(), kind, false)
    }

    /// So many queries from each of so many addresses of a network.
    fn from(network: &str, kind: SenderKind, addresses: usize, each: usize) -> Vec<SampledSender> {
        let all = (0..addresses).map(|host| sender(&format!("{network}.{}", host + 1), kind));
        all.flat_map(|one| vec![one; each]).collect()
    }

    fn judged(parts: &[Vec<SampledSender>], placed: u64) -> SendersView {
        let mut window = Window::default();
        let all: Vec<SampledSender> = parts.concat();
        for (step, senders) in all.chunks(A_STEP).enumerate() {
            window.take(senders, placed, at(step as u64));
        }
        window.judge()
    }

    #[test]
    fn a_few_addresses_that_send_nearly_everything_are_told_and_nothing_else() {
        use SenderKind::{Placed, Private, Public};
        let (one, few) = (Some(Translated::OneAddress), Some(Translated::FewPrivate));
        let cases = [
            // A load balancer with one address, private or not.
            (vec![from("10.0.0", Private, 1, 200)], one),
            (vec![from("192.0.2", Public, 1, 200)], one),
            // One query less is too few to say anything.
            (vec![from("10.0.0", Private, 1, 199)], None),
            // Four of five are most, and one less of a thousand is not.
            (
                vec![
                    from("192.0.2", Public, 1, 800),
                    from("198.51.100", Public, 200, 1),
                ],
                one,
            ),
            (
                vec![
                    from("192.0.2", Public, 1, 799),
                    from("198.51.100", Public, 201, 1),
                ],
                None,
            ),
            // A load balancer with an address in each zone, the nodes of a small cluster.
            (vec![from("10.0.0", Private, 3, 100)], few),
            (vec![from("10.0.0", Private, 8, 100)], few),
            // A company's own DNS: private, and many.
            (vec![from("10.0.0", Private, 200, 5)], None),
            (vec![from("10.0.0", Private, 20, 20)], None),
            // Its two resolvers, of which it is known where they are.
            (vec![from("10.0.0", Placed, 2, 300)], None),
            (vec![from("10.0.0", Placed, 1, 300)], None),
            // Resolvers of the world: some big, none of them most.
            (
                vec![
                    from("192.0.2", Public, 3, 200),
                    from("198.51.100", Public, 200, 1),
                ],
                None,
            ),
            // Half of it translated is not most.
            (
                vec![
                    from("10.0.0", Private, 2, 100),
                    from("198.51.100", Public, 200, 1),
                ],
                None,
            ),
        ];
        for (number, (parts, translated)) in cases.iter().enumerate() {
            let view = judged(parts, 1);
            assert_eq!(view.translated, *translated, "{number}: {view:?}");
            // Where no answer asks for a place, nobody is placed wrongly.
            assert_eq!(judged(parts, 0).translated, None, "{number}");
        }
        assert_eq!(judged(&[], 7).translated, None);
    }

    #[test]
    fn the_numbers_are_those_of_the_window() {
        let ours = from("10.0.0", SenderKind::Private, 1, 150);
        let mut others = from("192.0.2", SenderKind::Public, 10, 5);
        let subnet = SampledSender::new("192.0.2.1".parse().unwrap(), SenderKind::Public, true);
        others.push(subnet);
        let mut window = Window::default();
        window.take(&ours, 3, at(0));
        window.take(&others, 4, at(5));
        let view = window.judge();
        assert_eq!((view.sampled, view.addresses, view.private), (201, 11, 150));
        assert_eq!((view.with_subnet, view.placed_answers), (1, 7));
        assert_eq!(view.busiest, 150);
        assert_eq!(view.busiest_network.unwrap().to_string(), "10.0.0.0/24");
        assert!(view.busiest_is_private && view.translated.is_none());
        assert!((view.share(view.busiest) - 0.746).abs() < 0.001);
        assert!(SendersView::default().share(0).abs() < f64::EPSILON);
        // What is older than five minutes is gone.
        window.take(&[], 0, at(302));
        assert_eq!(window.judge().sampled, 51);
        window.take(&[], 0, at(305));
        assert_eq!(window.judge(), SendersView::default());
    }

    #[test]
    fn a_burst_of_a_moment_does_not_outweigh_the_minutes() {
        let mut window = Window::default();
        for step in 0..59 {
            let calm = from("198.51.100", SenderKind::Public, 200, 1);
            window.take(&calm, 1, at(5 * step));
        }
        window.take(&from("192.0.2", SenderKind::Public, 1, 8192), 1, at(295));
        let view = window.judge();
        assert_eq!((view.sampled, view.translated), (59 * 200 + A_STEP, None));
    }

    #[test]
    fn a_step_takes_what_came_since_the_last_of_every_worker() {
        let senders = Senders::default();
        let workers: Vec<Arc<Counters>> = (0..2).map(|_| Arc::default()).collect();
        for worker in &workers {
            worker
                .senders()
                .put(sender("192.0.2.1", SenderKind::Public));
        }
        senders.sample(&workers, at(0));
        assert_eq!(senders.view().sampled, 2);
        workers[1]
            .senders()
            .put(sender("192.0.2.2", SenderKind::Public));
        senders.sample(&workers, at(5));
        senders.sample(&workers, at(10));
        assert_eq!((senders.view().sampled, senders.view().addresses), (3, 2));
    }
}
