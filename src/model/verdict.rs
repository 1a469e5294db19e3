//! What is thought of an endpoint: the monitors' verdict and the operator's word.

use std::fmt;

/// What a monitor says. Unknown is not Down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Rise checks in a row succeeded.
    Up,
    /// Fall checks in a row failed.
    Down,
    /// Not judged yet, or by nobody.
    #[default]
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Unknown => "unknown",
        })
    }
}

/// What an operator pinned; monitors cannot set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Forced {
    /// The monitors decide.
    #[default]
    No,
    /// Taken as Up whatever monitors say.
    Up,
    /// Taken as Down; used after everything else.
    Down,
}

/// What an endpoint's own cluster says of it, whatever probes and operators say. The default is that all is well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// Too few ready endpoints stand behind it, or its object is not accepted: as if Down.
    pub is_unready: bool,
    /// Its own object drains it, or is being deleted: as if drained.
    pub is_withdrawn: bool,
    /// Nobody says any more that it is where its host name leads: as if Down, unless its monitor passes, which checks a certificate
    /// of that name.
    pub is_unproven: bool,
}

/// All that steering reads of one endpoint, in one octet: the entry of the table of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EndpointState(u8);

impl EndpointState {
    /// Up and undrained: the state of an endpoint that nobody monitors.
    pub const UP: Self = Self(0);
    const DOWN: u8 = 1;
    const DRAINED: u8 = 2;
    const FORCED_UP: u8 = 4;
    const FORCED_DOWN: u8 = 8;
    const DOUBT: u8 = 16;
    const ANNOUNCED: u8 = 32;
    const UNREADY: u8 = 64;
    const REFUSED: u8 = 128;
    /// What operators say.
    const OPERATOR: u8 = Self::DRAINED | Self::FORCED_UP | Self::FORCED_DOWN | Self::ANNOUNCED;

    /// Sets the verdict; Up and Unknown are the same to steering.
    #[must_use]
    pub fn with_verdict(self, verdict: Verdict) -> Self {
        self.with(Self::DOWN, verdict == Verdict::Down)
    }

    /// Sets the operator's word.
    #[must_use]
    pub fn with_forced(self, forced: Forced) -> Self {
        self.with(Self::FORCED_UP, forced == Forced::Up)
            .with(Self::FORCED_DOWN, forced == Forced::Down)
    }

    /// Marks as drained or not.
    #[must_use]
    pub fn with_drained(self, drained: bool) -> Self {
        self.with(Self::DRAINED, drained)
    }

    /// Marks its monitor as in doubt: checks failed or succeeded against the verdict, not enough of them to flip it.
    #[must_use]
    pub fn with_doubt(self, doubt: bool) -> Self {
        self.with(Self::DOUBT, doubt)
    }

    /// Marks its target as one that may not be probed: nobody judges it. The same to steering as Unknown; who shows states must
    /// not call it up.
    #[must_use]
    pub fn with_refused(self, refused: bool) -> Self {
        self.with(Self::REFUSED, refused)
    }

    /// Marks as about to be drained.
    #[must_use]
    pub fn with_announced(self, announced: bool) -> Self {
        self.with(Self::ANNOUNCED, announced)
    }

    /// Takes over what operators say from another state, and keeps what monitors say.
    #[must_use]
    pub fn with_operator_of(self, other: Self) -> Self {
        Self(self.0 & !Self::OPERATOR | other.0 & Self::OPERATOR)
    }

    /// Lays what its own cluster says of it over what operators say: either of them drains.
    #[must_use]
    pub fn with_condition(self, condition: Condition) -> Self {
        let state = self.with(Self::UNREADY, condition.is_unready);
        if condition.is_withdrawn {
            state.with_drained(true)
        } else {
            state
        }
    }

    fn with(self, bit: u8, set: bool) -> Self {
        Self(if set { self.0 | bit } else { self.0 & !bit })
    }

    /// Tells whether it is healthy: forced up, or neither Down nor unready nor forced down.
    #[must_use]
    #[inline]
    pub fn is_up(self) -> bool {
        self.0 & Self::FORCED_UP != 0
            || self.0 & (Self::DOWN | Self::UNREADY | Self::FORCED_DOWN) == 0
    }

    /// Tells whether it may get new answers in the ordinary case: healthy and not drained.
    #[must_use]
    #[inline]
    pub fn is_usable(self) -> bool {
        self.is_up() && !self.is_drained()
    }

    /// Tells whether it is drained, by an operator or by its own object.
    #[must_use]
    #[inline]
    pub fn is_drained(self) -> bool {
        self.0 & Self::DRAINED != 0
    }

    /// Tells whether its own cluster says that it cannot take traffic.
    #[must_use]
    pub fn is_unready(self) -> bool {
        self.0 & Self::UNREADY != 0
    }

    /// Tells whether an operator forced it down.
    #[must_use]
    #[inline]
    pub fn is_forced_down(self) -> bool {
        self.0 & Self::FORCED_DOWN != 0
    }

    /// Tells whether a drain of it is announced.
    #[must_use]
    pub fn is_announced(self) -> bool {
        self.0 & Self::ANNOUNCED != 0
    }

    /// Gives what an operator forced it to.
    #[must_use]
    pub fn forced(self) -> Forced {
        match self.0 & (Self::FORCED_UP | Self::FORCED_DOWN) {
            0 => Forced::No,
            Self::FORCED_UP => Forced::Up,
            _ => Forced::Down,
        }
    }

    /// Tells whether its monitor says Down.
    #[must_use]
    pub fn is_down(self) -> bool {
        self.0 & Self::DOWN != 0
    }

    /// Tells whether its target may not be probed.
    #[must_use]
    pub fn is_refused(self) -> bool {
        self.0 & Self::REFUSED != 0
    }

    /// Tells whether answers with it must be short-lived: its monitor is in doubt, or a drain is announced (DESIGN section 4.6).
    #[must_use]
    #[inline]
    pub fn is_brief(self) -> bool {
        self.0 & (Self::DOUBT | Self::ANNOUNCED) != 0
    }

    /// Tells whether its monitor is in doubt.
    #[must_use]
    #[inline]
    pub fn is_in_doubt(self) -> bool {
        self.0 & Self::DOUBT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_has_the_last_word() {
        let down = EndpointState::UP.with_verdict(Verdict::Down);
        assert!(!down.is_up());
        assert!(down.with_forced(Forced::Up).is_usable());
        assert!(!EndpointState::UP.with_forced(Forced::Down).is_up());
        assert!(EndpointState::UP.with_verdict(Verdict::Unknown).is_usable());
        let drained = EndpointState::UP.with_drained(true);
        assert!(drained.is_up() && !drained.is_usable());
        let said = drained.with_forced(Forced::Down).with_announced(true);
        let taken = down.with_doubt(true).with_operator_of(said);
        assert!(
            taken.is_down() && taken.is_in_doubt() && taken.is_drained() && taken.is_announced()
        );
        assert_eq!(taken.forced(), Forced::Down);
        assert_eq!(
            taken.with_operator_of(EndpointState::UP),
            down.with_doubt(true)
        );
        assert!(EndpointState::UP.with_announced(true).is_brief() && !drained.is_brief());
        assert!(drained.with_drained(false).is_usable());
        let condition = |is_unready, is_withdrawn| Condition {
            is_unready,
            is_withdrawn,
            is_unproven: false,
        };
        let unready = EndpointState::UP.with_condition(condition(true, false));
        assert!(!unready.is_up() && !unready.is_drained() && !unready.is_down());
        assert!(unready.with_forced(Forced::Up).is_usable());
        let withdrawn = EndpointState::UP.with_condition(condition(false, true));
        assert!(withdrawn.is_up() && withdrawn.is_drained() && !withdrawn.is_usable());
        // What operators say does not touch readiness.
        let over = unready.with_operator_of(EndpointState::UP);
        assert!(over.is_unready() && !over.with_condition(Condition::default()).is_unready());
        let refused = down
            .with_verdict(Verdict::Unknown)
            .with_refused(true)
            .with_operator_of(said);
        assert!(refused.is_refused() && refused.is_drained() && !refused.is_down());
        let refused = refused.with_operator_of(EndpointState::UP);
        assert!(refused.is_usable() && !refused.is_brief());
        assert_eq!(refused.with_refused(false), EndpointState::UP);
    }
}
