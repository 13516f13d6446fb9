//! How the places for requests are shared among endpoints. Pure.
//!
//! What must not happen is that receivers which hang, or are slow, take what others need: an endpoint that fails
//! gets one place, all that fail together half of them, and whoever has one already no further one unless more than
//! a quarter is free.

use std::collections::HashMap;

use uuid::Uuid;

/// How many requests may be under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Altogether.
    pub all: usize,
    /// To one endpoint.
    pub each: usize,
}

/// An endpoint that could use places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub id: Uuid,
    /// Whether it only fails.
    pub failing: bool,
}

/// Requests that are under way to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestsInHand {
    pub requests: usize,
    /// Whether it only failed when they began.
    pub failing: bool,
}

/// How many further requests each endpoint gets, beginning with the one after `last`. Those that get none are
/// left out.
pub(super) fn share(
    asking: &[Asking],
    in_hand: &HashMap<Uuid, RequestsInHand>,
    limits: Limits,
    last: Option<Uuid>,
) -> Vec<(Uuid, usize)> {
    let taken: usize = in_hand.values().map(|hand| hand.requests).sum();
    let mut free = limits.all.saturating_sub(taken);
    let taken_failing = in_hand.values().filter(|hand| hand.failing);
    let taken_failing: usize = taken_failing.map(|hand| hand.requests).sum();
    let mut free_failing = (limits.all / 2).max(1).saturating_sub(taken_failing);
    let start = asking.partition_point(|one| Some(one.id) <= last);
    let (before, after) = asking.split_at_checked(start).unwrap_or((asking, &[]));
    let turn: Vec<&Asking> = after.iter().chain(before).collect();
    let has = |one: &Asking| in_hand.get(&one.id).map_or(0, |hand| hand.requests);
    let mut given: HashMap<Uuid, usize> = HashMap::new();
    for number in 1..=limits.each {
        for one in &turn {
            let gets = has(one) < number;
            let further = number > 1 && free <= limits.all / 4;
            if !gets || free == 0 || further || one.failing && (number > 1 || free_failing == 0) {
                continue;
            }
            free -= 1;
            if one.failing {
                free_failing -= 1;
            }
            *given.entry(one.id).or_default() += 1;
        }
    }
    turn.iter()
        .filter_map(|one| Some((one.id, given.get(&one.id).copied()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asking(count: u128, failing: impl Fn(u128) -> bool) -> Vec<Asking> {
        let one = |number| Asking {
            id: Uuid::from_u128(number),
            failing: failing(number),
        };
        (1..=count).map(one).collect()
    }

    const LIMITS: Limits = Limits { all: 16, each: 4 };

    #[test]
    fn one_endpoint_gets_its_own_share_and_no_more() {
        let given = share(&asking(1, |_| false), &HashMap::new(), LIMITS, None);
        assert_eq!(given, [(Uuid::from_u128(1), 4)]);
        let failing = share(&asking(1, |_| true), &HashMap::new(), LIMITS, None);
        assert_eq!(failing, [(Uuid::from_u128(1), 1)]);
    }

    #[test]
    fn many_endpoints_take_turns() {
        let endpoints = asking(40, |_| false);
        let mut last = None;
        let mut met = Vec::new();
        for _ in 0..5 {
            let given = share(&endpoints, &HashMap::new(), LIMITS, last);
            assert_eq!(given.iter().map(|(_, places)| places).sum::<usize>(), 16);
            met.extend(given.iter().map(|(id, _)| id.as_u128()));
            last = given.last().map(|(id, _)| *id);
        }
        let expected: Vec<u128> = (1..=40).chain(1..=40).collect();
        assert_eq!(met, expected);
    }

    #[test]
    fn failing_endpoints_leave_half_to_others() {
        let endpoints = asking(100, |number| number != 100);
        let mut in_hand = HashMap::new();
        let given = share(&endpoints, &in_hand, LIMITS, None);
        for (id, places) in &given {
            let failing = id.as_u128() != 100;
            let requests = *places;
            in_hand.insert(*id, RequestsInHand { requests, failing });
        }
        let failing = in_hand.values().filter(|hand| hand.failing).count();
        assert_eq!((failing, in_hand[&Uuid::from_u128(100)].requests), (8, 4));
        assert!(share(&endpoints, &in_hand, LIMITS, None).is_empty());
    }

    #[test]
    fn slow_endpoints_leave_a_quarter_to_those_that_have_none() {
        let slow = asking(4, |_| false);
        let given = share(&slow, &HashMap::new(), LIMITS, None);
        assert_eq!(given.iter().map(|(_, places)| places).sum::<usize>(), 12);
    }

    proptest! {
        #[test]
        fn no_limit_is_passed(
            count in 0_u128..60, all in 1_usize..40, each in 1_usize..6, last in 0_u128..60, failing: u64,
            held in proptest::collection::vec(0_usize..4, 60),
        ) {
            let endpoints = asking(count, |number| failing >> (number % 64) & 1 == 1);
            let mut in_hand: HashMap<Uuid, RequestsInHand> = HashMap::new();
            let mut total = 0;
            for (one, held) in endpoints.iter().zip(&held) {
                let requests = (*held).min(all - total).min(each);
                total += requests;
                in_hand.insert(one.id, RequestsInHand { requests, failing: one.failing });
            }
            let limits = Limits { all, each };
            for (id, places) in share(&endpoints, &in_hand, limits, Some(Uuid::from_u128(last))) {
                total += places;
                prop_assert!(places > 0 && in_hand[&id].requests + places <= each);
            }
            prop_assert!(total <= all);
        }
    }
}
