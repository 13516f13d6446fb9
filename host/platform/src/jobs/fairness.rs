//! Which kinds of jobs a process may begin: a pure function of those that it has in hand.
//!
//! A few run side by side, at most half of them of one kind. Beyond that each kind may have one, so that jobs that
//! take long, say backtests, keep no other kind waiting. Apps take turns.

use std::collections::BTreeMap;

use uuid::Uuid;

/// Jobs that a process runs side by side, not counting the first of each kind.
const AT_ONCE: usize = 4;
/// Jobs of one kind among them.
const OF_A_KIND: usize = AT_ONCE / 2;

/// A job that this process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobInHand {
    pub(super) kind: String,
    pub(super) app_id: Uuid,
}

/// The kinds of which none may begin now.
pub(super) fn full<'a>(in_hand: impl Iterator<Item = &'a JobInHand>) -> Vec<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for job in in_hand {
        *kinds.entry(&job.kind).or_default() += 1;
    }
    let most = if kinds.values().sum::<usize>() < AT_ONCE {
        OF_A_KIND
    } else {
        1
    };
    let full = kinds.into_iter().filter(|(_, jobs)| *jobs >= most);
    full.map(|(kind, _)| kind.to_owned()).collect()
}

/// The apps that have a job in hand: others come first.
pub(super) fn served<'a>(in_hand: impl Iterator<Item = &'a JobInHand>) -> Vec<Uuid> {
    let mut apps: Vec<Uuid> = in_hand.map(|job| job.app_id).collect();
    apps.sort_unstable();
    apps.dedup();
    apps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(kind: u8, app: u8) -> JobInHand {
        JobInHand {
            kind: format!("kind-{kind}"),
            app_id: Uuid::from_u128(app.into()),
        }
    }

    #[test]
    fn one_kind_has_half() {
        let jobs = [job(1, 1), job(1, 1)];
        assert!(full(jobs[..1].iter()).is_empty());
        assert_eq!(full(jobs.iter()), ["kind-1"]);
        assert_eq!(served(jobs.iter()), [Uuid::from_u128(1)]);
    }

    proptest! {
        /// Whatever came before, every kind of which none runs may begin, and the number of jobs is bounded.
        #[test]
        fn no_kind_keeps_another_waiting(wanted in proptest::collection::vec(0_u8..10, 0..100)) {
            let mut jobs: Vec<JobInHand> = Vec::new();
            for kind in wanted {
                let next = job(kind, 1);
                let runs = jobs.iter().any(|job| job.kind == next.kind);
                let may = !full(jobs.iter()).contains(&next.kind);
                prop_assert!(may || runs);
                if may {
                    jobs.push(next);
                }
            }
            prop_assert!(jobs.len() < AT_ONCE + 10);
        }
    }
}
