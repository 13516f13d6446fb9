//! Where rows of distributed tables are. Citus cuts them by a hash of the alias's number, each piece of the hash's range is a
//! shard, and each shard is on a worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::Row as _;

use crate::Result;
use crate::pool::Pool;

/// Whether Citus is there, and a table of ours is distributed.
const IS_DISTRIBUTED: &str =
    "SELECT to_regclass('pg_dist_shard') IS NOT NULL AND to_regclass('pending') IS NOT NULL";
const SHARDS: &str = "SELECT s.shardminvalue::integer, p.groupid
    FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
    WHERE s.logicalrelid = 'pending'::regclass AND s.shardminvalue IS NOT NULL ORDER BY 1";

/// The shards of the tables that are cut by the alias's number. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards(Arc<[Shard]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    /// The least hash that belongs to it.
    first: i32,
    worker: i32,
}

impl Shards {
    /// Reads where the shards are; none: no table is distributed.
    pub(crate) async fn read(pool: &Pool) -> Result<Option<Self>> {
        let mut lease = pool.acquire().await?;
        if !lease.row(IS_DISTRIBUTED).await?.try_get(0)? {
            return Ok(None);
        }
        let shards = lease.rows(SHARDS).await?.into_iter().map(|row| {
            let (first, worker) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Shard { first, worker })
        });
        let shards: Arc<[Shard]> = shards.collect::<Result<_>>()?;
        Ok((!shards.is_empty()).then_some(Self(shards)))
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many workers they are on.
    pub fn workers(&self) -> usize {
        let workers: BTreeSet<i32> = self.0.iter().map(|shard| shard.worker).collect();
        workers.len()
    }

    /// Which one has the rows of an alias: a number below [`count`](Self::count).
    pub fn of(&self, alias: i64) -> usize {
        let hash = hash(alias);
        let after = self.0.partition_point(|shard| shard.first <= hash);
        after.saturating_sub(1)
    }

    /// The worker that a shard is on; none: there is no such shard.
    pub fn worker(&self, shard: usize) -> Option<i32> {
        Some(self.0.get(shard)?.worker)
    }

    /// The worker with the rows of an alias.
    pub fn worker_of(&self, alias: i64) -> Option<i32> {
        self.worker(self.of(alias))
    }

    /// Puts things together whose aliases' rows are on one worker. `alias` says the alias of a thing.
    pub fn by_worker<T, C: Default + Extend<T>>(
        &self,
        things: impl IntoIterator<Item = T>,
        alias: impl Fn(&T) -> i64,
    ) -> Vec<C> {
        let mut of_workers: BTreeMap<Option<i32>, C> = BTreeMap::new();
        for thing in things {
            let worker = self.worker_of(alias(&thing));
            of_workers.entry(worker).or_default().extend([thing]);
        }
        of_workers.into_values().collect()
    }

    /// A number that another shard of the same worker has than that of an alias; none: the worker has no other.
    pub fn neighbour(&self, alias: i64) -> Option<i64> {
        let own = self.of(alias);
        let worker = self.worker(own)?;
        self.0
            .iter()
            .enumerate()
            .find(|(shard, other)| *shard != own && other.worker == worker)?;
        // Hashes are spread evenly: a number in one of so many is of the neighbour.
        let most = i64::try_from(self.0.len()).unwrap_or(i64::MAX);
        (0..most.saturating_mul(64)).find(|number| {
            let shard = self.of(*number);
            shard != own && self.worker(shard) == Some(worker)
        })
    }
}

/// PostgreSQL's `hashint8`, by which Citus distributes rows: Bob Jenkins' hash of 32 bits. A number hashes as the same number of
/// fewer bits does.
fn hash(number: i64) -> i32 {
    let bytes = number.to_le_bytes();
    let [low, high] = [0, 4].map(|at| {
        let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
        u32::from_le_bytes(part.unwrap_or_default())
    });
    let key = low ^ if number >= 0 { high } else { !high };
    let seed = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (seed.wrapping_add(key), seed, seed);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    i32::from_le_bytes(c.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four_on_two() -> Shards {
        let quarter = i32::MAX / 2 + 1;
        let shard = |first, worker| Shard { first, worker };
        let (first, second) = (shard(i32::MIN, 1), shard(-quarter, 2));
        Shards(Arc::new([first, second, shard(0, 1), shard(quarter, 2)]))
    }

    #[test]
    fn numbers_hash_as_postgresql_has_it() {
        let of = [0, 1, 42, 4_294_967_296, -1, i64::MAX, i64::MIN].map(hash);
        // SELECT hashint8(…)
        let theirs = [
            -272_711_505,
            -1_905_060_026,
            1_509_752_520,
            -1_905_060_026,
            385_747_274,
            -1_524_351_049,
            -96_758_253,
        ];
        assert_eq!(of, theirs);
    }

    #[test]
    fn each_number_is_of_one_shard_and_has_a_neighbour_beside_it() {
        let shards = four_on_two();
        let mut seen = [0; 4];
        for alias in 0..4_000 {
            let own = shards.of(alias);
            seen[own] += 1;
            let neighbour = shards.neighbour(alias).unwrap();
            assert_ne!(shards.of(neighbour), own);
            assert_eq!(shards.worker_of(neighbour), shards.worker(own));
        }
        assert!(
            seen.iter().all(|count| (800..1_200).contains(count)),
            "{seen:?}"
        );
        assert_eq!((shards.count(), shards.workers()), (4, 2));
    }

    #[test]
    fn what_is_on_one_worker_comes_together() {
        let shards = four_on_two();
        let parts: Vec<Vec<i64>> = shards.by_worker(0..1_000, |alias| *alias);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 1_000);
        for part in parts {
            let workers: BTreeSet<_> = part.iter().map(|alias| shards.worker_of(*alias)).collect();
            assert_eq!(workers.len(), 1);
        }
    }

    #[test]
    fn a_worker_with_one_shard_has_no_neighbour() {
        let alone = Shard {
            first: i32::MIN,
            worker: 1,
        };
        assert_eq!(Shards(Arc::new([alone])).neighbour(7), None);
    }
}
