//! Verdicts from before a restart, each until its target is watched again.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::last_good::Memory;
use super::target_key::target_key;
use crate::model::{Target, Verdict};

/// Verdicts by the hash of their target's name, seeded per process: a sixth of what the names take.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    verdicts: HashMap<u64, Verdict>,
    hasher: RandomState,
}

impl Recalled {
    /// Takes what is remembered.
    pub(super) fn of(memory: &Memory) -> Self {
        let hasher = RandomState::new();
        let verdicts = memory.verdicts.iter();
        Self {
            verdicts: verdicts
                .map(|(key, verdict)| (hasher.hash_one(key.as_str()), *verdict))
                .collect(),
            hasher,
        }
    }

    /// Gives the verdict of a target; Unknown where nothing is remembered.
    pub(super) fn get(&self, target: &Target) -> Verdict {
        if self.verdicts.is_empty() {
            return Verdict::Unknown;
        }
        let verdict = self.verdicts.get(&self.key(target));
        verdict.copied().unwrap_or_default()
    }

    /// Takes the verdicts of targets out: from now on probes know better.
    pub(super) fn take<'t>(
        &mut self,
        targets: impl Iterator<Item = &'t Target>,
    ) -> Vec<(Target, Verdict)> {
        if self.verdicts.is_empty() {
            return Vec::new();
        }
        let taken = targets.filter_map(|target| {
            let verdict = self.verdicts.remove(&self.key(target))?;
            Some((target.clone(), verdict))
        });
        let taken = taken.collect();
        if self.verdicts.len() * 4 <= self.verdicts.capacity() {
            self.verdicts.shrink_to_fit();
        }
        taken
    }

    fn key(&self, target: &Target) -> u64 {
        self.hasher.hash_one(target_key(target).as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Check, MonitorSpec, Origin};

    #[test]
    fn each_is_given_until_it_is_taken() {
        let target = |port: u16| Target {
            address: ([192, 0, 2, 1], port).into(),
            spec: Arc::new(MonitorSpec::new(Check::connect(port), Origin::Operator)),
        };
        let all = [target(1), target(2), target(3)];
        let named = |(target, verdict)| (target_key(target), verdict);
        let memory = Memory {
            verdicts: [(&all[0], Verdict::Down), (&all[1], Verdict::Up)]
                .map(named)
                .into(),
            ..Memory::default()
        };
        let mut recalled = Recalled::of(&memory);
        let get = |recalled: &Recalled| all.each_ref().map(|target| recalled.get(target));
        let unknown = Verdict::Unknown;
        assert_eq!(get(&recalled), [Verdict::Down, Verdict::Up, unknown]);
        let twice = [&all[0], &all[2], &all[0]];
        let taken = recalled.take(twice.into_iter());
        assert_eq!(taken, [(all[0].clone(), Verdict::Down)]);
        assert_eq!(get(&recalled), [unknown, Verdict::Up, unknown]);
        assert_eq!(recalled.take(all.iter()).len(), 1);
        assert_eq!(get(&recalled), [unknown; 3]);
        assert_eq!(recalled.verdicts.capacity(), 0);
    }
}
