//! Whose look-up is next: everybody in turn, within limits. Pure.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Limits of the look-ups of one purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Those that are made at a time.
    pub threads: usize,
    /// Those of an owner of them. Whoever has one leaves a quarter of all to those who have none.
    pub each: usize,
    /// Those that wait.
    pub waiting: usize,
    /// Those of an owner of them.
    pub waiting_each: usize,
}

/// What waits, by owner.
#[derive(Debug)]
pub(super) struct Turns<O, J> {
    limits: Limits,
    owners: HashMap<O, Owner<J>>,
    /// Owners with something that waits; whose turn it is stands first.
    order: VecDeque<O>,
    running: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Owner<J> {
    waiting: VecDeque<J>,
    running: usize,
}

impl<O: Copy + Eq + Hash, J> Turns<O, J> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            owners: HashMap::new(),
            order: VecDeque::new(),
            running: 0,
            waiting: 0,
        }
    }

    /// Adds what waits for its turn; answers whether there was room.
    pub(super) fn add(&mut self, owner: O, job: J) -> bool {
        let of_owner = self.owners.get(&owner);
        let waiting = of_owner.map_or(0, |owner| owner.waiting.len());
        if self.waiting >= self.limits.waiting || waiting >= self.limits.waiting_each {
            return false;
        }
        if waiting == 0 {
            self.order.push_back(owner);
        }
        let of_owner = self.owners.entry(owner).or_insert_with(|| Owner {
            waiting: VecDeque::new(),
            running: 0,
        });
        of_owner.waiting.push_back(job);
        self.waiting += 1;
        true
    }

    /// Whether an owner may have one more that runs.
    pub(super) fn may_begin(&self, owner: &O) -> bool {
        let Limits { threads, each, .. } = self.limits;
        let running = self.owners.get(owner).map_or(0, |owner| owner.running);
        let left_over = threads - threads / 4;
        self.running < threads && (running == 0 || running < each && self.running < left_over)
    }

    /// What runs now, and whose it is; [`Turns::end`] tells that it has ended.
    pub(super) fn begin(&mut self) -> Option<(O, J)> {
        let place = self.order.iter().position(|owner| self.may_begin(owner))?;
        let owner = self.order.remove(place)?;
        let of_owner = self.owners.get_mut(&owner)?;
        let job = of_owner.waiting.pop_front()?;
        of_owner.running += 1;
        if !of_owner.waiting.is_empty() {
            self.order.push_back(owner);
        }
        self.running += 1;
        self.waiting -= 1;
        Some((owner, job))
    }

    /// One of an owner has ended.
    pub(super) fn end(&mut self, owner: O) {
        self.running = self.running.saturating_sub(1);
        if let Some(of_owner) = self.owners.get_mut(&owner) {
            of_owner.running = of_owner.running.saturating_sub(1);
            if of_owner.running == 0 && of_owner.waiting.is_empty() {
                self.owners.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        threads: 8,
        each: 2,
        waiting: 20,
        waiting_each: 10,
    };

    #[test]
    fn nobody_has_more_than_a_share_and_some_is_left() {
        let mut turns = Turns::new(LIMITS);
        for number in 0..12 {
            assert_eq!(turns.add(0, number), number < 10);
        }
        assert_eq!(turns.begin(), Some((0, 0)));
        assert_eq!(turns.begin(), Some((0, 1)));
        assert_eq!(turns.begin(), None);
        for owner in 1..=4 {
            assert!(turns.add(owner, 0) && turns.add(owner, 1));
        }
        let begun: Vec<u32> = std::iter::from_fn(|| turns.begin())
            .map(|(owner, _)| owner)
            .collect();
        // Six of eight for those who have one already, the rest for those who have none.
        assert_eq!(begun, [1, 2, 3, 4]);
        assert!(turns.may_begin(&9) && !turns.may_begin(&1));
        turns.end(0);
        assert_eq!(turns.begin(), Some((0, 2)));
        for owner in [0, 0, 1, 2, 3, 4] {
            turns.end(owner);
        }
        let rest: Vec<(u32, u32)> = std::iter::from_fn(|| {
            let next = turns.begin();
            if let Some((owner, _)) = next {
                turns.end(owner);
            }
            next
        })
        .collect();
        assert_eq!(rest.len(), 7 + 4);
        assert_eq!(rest[..3], [(1, 1), (2, 1), (3, 1)]);
        assert!(turns.owners.is_empty() && turns.order.is_empty());
        assert_eq!((turns.running, turns.waiting), (0, 0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut turns = Turns::new(LIMITS);
        let added = (0..30).filter(|owner| turns.add(*owner, ())).count();
        assert_eq!(added, LIMITS.waiting);
        turns.begin().unwrap();
        assert!(turns.add(40, ()) && !turns.add(41, ()));
    }
}
