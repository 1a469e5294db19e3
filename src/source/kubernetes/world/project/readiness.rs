//! Whether enough ready endpoints stand behind an object.

use std::collections::BTreeSet;

use super::View;
use crate::inventory::{Backing, ObjectRef};
use crate::source::kubernetes::annotations::MinReady;
use crate::source::kubernetes::world::behind::{Count, Sight};
use crate::source::kubernetes::world::index::backends;
use crate::source::kubernetes::world::objects::key_of;
use crate::source::kubernetes::{Key, Record};

/// Tells whether enough endpoints stand behind an object, and how many stand there.
///
/// Of several Services one is enough (the policy `Any` of k8gb). What sends no traffic to Services is ready. As long as
/// EndpointSlices are not read, what was counted last stands; where the server has none, nothing is said.
pub(super) fn behind(
    view: &View<'_>,
    (object, record): (&ObjectRef, &Record),
    wanted: MinReady,
) -> (Result<(), Box<str>>, Option<Backing>) {
    let services: BTreeSet<Key> = match record {
        Record::Service(_) => BTreeSet::from([key_of(object)]),
        _ => {
            let used = backends(record).iter().filter(|backend| backend.is_used);
            used.map(|backend| backend.service.clone()).collect()
        }
    };
    if services.is_empty() {
        let is_bare = backends(record).is_empty();
        let why = "no traffic goes to any Service behind it: all weights are 0";
        return (if is_bare { Ok(()) } else { Err(why.into()) }, None);
    }
    let mut sum = Count::default();
    let mut why: Option<Box<str>> = None;
    let mut is_enough = false;
    for service in &services {
        let count = match view.behind.of(service) {
            Sight::Known(count) => count,
            Sight::Silent => return (Ok(()), None),
            Sight::Awaited => return as_before(view, wanted),
        };
        sum.add(count);
        let counts_all = view
            .objects
            .service(service)
            .is_some_and(|service| service.publishes_not_ready);
        match lack(count, counts_all, wanted) {
            None => is_enough = true,
            Some(words) => why = Some(words),
        }
    }
    if services.len() > 1 {
        let many = services.len();
        why = Some(
            format!("too few endpoints are ready in each of the {many} Services behind it").into(),
        );
    }
    let judged = match why {
        Some(why) if !is_enough => Err(why),
        _ => Ok(()),
    };
    (judged, Some(sum.backing()))
}

/// Tells what is lacking in a Service; `None`: nothing.
fn lack(count: Count, counts_all: bool, wanted: MinReady) -> Option<Box<str>> {
    let ready = if counts_all {
        count.ready.max(count.serving)
    } else {
        count.ready
    };
    let all = count.staying().max(ready);
    let least = match wanted {
        MinReady::Count(least) => least.into(),
        MinReady::Percent(percent) => (all * u64::from(percent)).div_ceil(100).max(1),
    };
    let verb = if ready == 1 { "is" } else { "are" };
    (ready < least).then(|| {
        format!("{ready} of {all} endpoints {verb} ready, {least} at least must be").into()
    })
}

/// Judges by what was counted last, as long as nothing is counted anew.
fn as_before(view: &View<'_>, wanted: MinReady) -> (Result<(), Box<str>>, Option<Backing>) {
    let backing = view.given.and_then(|given| given.backing);
    let had_none = backing.is_some_and(|backing| backing.ready == 0);
    if had_none && wanted != MinReady::Count(0) {
        let why = "no endpoint was ready when they were read last";
        return (Err(why.into()), backing);
    }
    (Ok(()), backing)
}
