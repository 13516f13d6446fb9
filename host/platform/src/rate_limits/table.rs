//! The buckets that are not full, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use nudge_db::Timestamp;
use parking_lot::Mutex;

use super::Policy;
use super::gcra::{Empty, Rate, Taken};

/// Parts with a lock each: requests of different callers hardly ever meet at one.
const SHARDS: usize = 64;
/// Buckets of one part at the most; with all parts about 260,000, some 16 MB.
const MOST: usize = 4096;
/// How many buckets are compared when one must go that is not full.
const SAMPLE: usize = 8;

/// Whose bucket it is: an id or a hash.
pub(super) type Owner = [u8; 16];

/// All buckets.
#[derive(Debug)]
pub(super) struct Table {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Shard {
    /// When each bucket is full again.
    buckets: HashMap<(Policy, Owner), Timestamp>,
    /// Full buckets are swept out when there are so many.
    sweep_at: usize,
}

impl Default for Table {
    fn default() -> Self {
        let shard = || {
            Mutex::new(Shard {
                buckets: HashMap::new(),
                sweep_at: MOST / 16,
            })
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Table {
    /// Takes tokens from a caller's bucket.
    pub(super) fn take(
        &self,
        policy: Policy,
        owner: Owner,
        tokens: i64,
        rate: Rate,
        now: Timestamp,
    ) -> Result<Taken, Empty> {
        self.with_shard(policy, owner, |shard| {
            let full_at = shard
                .buckets
                .get(&(policy, owner))
                .copied()
                .unwrap_or_default();
            let taken = rate.take(tokens, full_at, now)?;
            shard.make_room(now);
            shard.buckets.insert((policy, owner), taken.full_at);
            Ok(taken)
        })
    }

    fn with_shard<T>(&self, policy: Policy, owner: Owner, act: impl FnOnce(&mut Shard) -> T) -> T {
        let hash = self.hasher.hash_one((policy, owner));
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        match self.shards.get(index) {
            Some(shard) => act(&mut shard.lock()),
            // There are as many shards as the index is taken modulo of.
            None => act(&mut Shard {
                buckets: HashMap::new(),
                sweep_at: MOST,
            }),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let lengths = self.shards.iter().map(|shard| shard.lock().buckets.len());
        lengths.sum()
    }
}

impl Shard {
    /// Forgets full buckets now and then: after so many insertions as there are buckets, so that each pays
    /// for a constant part of it. Where too many are not full, the one that is nearest to full of a few goes.
    fn make_room(&mut self, now: Timestamp) {
        if self.buckets.len() < self.sweep_at {
            return;
        }
        if self.sweep_at < MOST || self.buckets.len() >= MOST {
            self.buckets.retain(|_, full_at| *full_at > now);
            self.sweep_at = (self.buckets.len() * 2).clamp(MOST / 16, MOST);
        }
        if self.buckets.len() >= MOST {
            let nearest = self
                .buckets
                .iter()
                .take(SAMPLE)
                .min_by_key(|(_, full_at)| **full_at)
                .map(|(key, _)| *key);
            if let Some(nearest) = nearest {
                self.buckets.remove(&nearest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u32) -> Owner {
        let mut owner = [0; 16];
        owner[..4].copy_from_slice(&number.to_be_bytes());
        owner
    }

    #[test]
    fn memory_is_bounded_and_full_buckets_are_forgotten() {
        let table = Table::default();
        let rate = Rate::new(0.001, 5);
        let now = Timestamp::from_seconds(1_000);
        for number in 0..400_000 {
            table
                .take(Policy::Address, owner(number), 1, rate, now)
                .unwrap();
        }
        assert!(table.len() <= SHARDS * MOST, "{}", table.len());

        let later = Timestamp::from_seconds(1_000_000);
        for number in 0..400_000 {
            let quick = Rate::new(1_000_000.0, 5);
            let at = Timestamp(later.0 + i64::from(number) * 10);
            table
                .take(Policy::Key, owner(number), 1, quick, at)
                .unwrap();
        }
        assert!(table.len() <= SHARDS * MOST / 16, "{}", table.len());
    }

    #[test]
    fn policies_and_owners_do_not_share() {
        let table = Table::default();
        let rate = Rate::new(1.0, 1);
        let now = Timestamp::from_seconds(1_000);
        assert!(table.take(Policy::Key, owner(1), 1, rate, now).is_ok());
        assert!(table.take(Policy::Key, owner(1), 1, rate, now).is_err());
        assert!(table.take(Policy::Key, owner(2), 1, rate, now).is_ok());
        assert!(table.take(Policy::Subject, owner(1), 1, rate, now).is_ok());
    }
}
