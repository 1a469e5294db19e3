//! What is usable at one cluster: the look that every step of the choice takes.

use super::decision::Level;
use super::policy::{Ask, Family, States};
use crate::model::PoolRef;

/// What one cluster has for one client at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// A usable endpoint of the family asked for.
    pub(super) wanted: bool,
    /// A usable endpoint of the other family.
    pub(super) other: bool,
    /// A host name, by its position.
    pub(super) hostname: Option<u8>,
    /// A monitor of one of its endpoints is in doubt.
    pub(super) in_doubt: bool,
}

impl Look {
    /// Tells whether anything is usable.
    pub(super) fn any(self) -> bool {
        self.wanted || self.other || self.hostname.is_some()
    }

    /// Tells whether it can answer the question itself.
    pub(super) fn answers(self) -> bool {
        self.wanted || self.hostname.is_some()
    }
}

/// Tells whether a pool is for this sender: by packet source, never by ECS.
#[inline]
pub(super) fn is_for(pool: &PoolRef<'_>, ask: &Ask<'_>) -> bool {
    pool.clients().is_none_or(|set| {
        let prefixes = ask.service.client_sets.get(set);
        prefixes.is_some_and(|prefixes| {
            prefixes
                .iter()
                .any(|prefix| prefix.contains(&ask.client.sender))
        })
    })
}

/// Looks at the cluster at one position.
#[inline]
pub(super) fn look<S: States>(ask: &Ask<'_>, rank: u8, level: Level, states: &S) -> Look {
    let mut look = Look::default();
    let (mut v4, mut v6) = (false, false);
    for pool in ask
        .service
        .pools
        .of(usize::from(rank))
        .filter(|pool| is_for(pool, ask))
    {
        if let Some(hostname) = pool.hostname() {
            look.hostname = look.hostname.or_else(|| u8::try_from(hostname).ok());
        }
        for endpoint in pool.v4() {
            let state = states.state(endpoint.state);
            v4 |= level.admits(state);
            look.in_doubt |= state.is_in_doubt();
        }
        for endpoint in pool.v6() {
            let state = states.state(endpoint.state);
            v6 |= level.admits(state);
            look.in_doubt |= state.is_in_doubt();
        }
    }
    (look.wanted, look.other) = match ask.family {
        Family::V4 => (v4, v6),
        Family::V6 => (v6, v4),
    };
    look
}

/// Tells whether any pool of the service, for whomever, has an endpoint of the family asked for, or a host name.
pub(super) fn has_family(ask: &Ask<'_>) -> bool {
    ask.service.pools.iter().any(|pool| {
        pool.hostname().is_some()
            || match ask.family {
                Family::V4 => pool.v4_count() > 0,
                Family::V6 => pool.v6_count() > 0,
            }
    })
}
