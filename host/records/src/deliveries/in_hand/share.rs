//! How many deliveries an app may have in hand, so that one whose provider is slow is no other app's trouble. Pure.

use crate::deliveries::Urgency;

/// Deliveries of a process that are in hand at a time.
const ALL: usize = 8_192;
/// Those of one app among them.
const OF_APP: usize = 1_088;
/// Of an app's, those that only what somebody waits for may take.
const FOR_URGENT: usize = 128;
/// Of all, those that only apps which have none in hand may take.
const FOR_NEWCOMERS: usize = ALL / 4;
/// Deliveries that are claimed together, at the most.
const MOST: usize = 256;
/// Room for fewer than that is not worth a transaction.
const LEAST: usize = 32;
/// Deliveries that are rendered and noted as handed over together, at the most: while some are with providers, others are
/// being rendered or noted.
pub const HANDED_TOGETHER: usize = 64;

/// How many deliveries of an urgency of an app may be with providers at a time: of so many at the most it is unknown, if
/// the process is killed, whether they arrived.
pub(super) fn with_providers(urgency: Urgency) -> usize {
    match urgency {
        Urgency::Urgent => 2 * HANDED_TOGETHER,
        Urgency::Rest => 4 * HANDED_TOGETHER,
    }
}

/// How many deliveries of an urgency of an app may be claimed that has so many in hand, of so many of all apps.
pub(super) fn room(urgency: Urgency, of_app: usize, of_all: usize) -> usize {
    let most = match urgency {
        Urgency::Urgent => OF_APP,
        Urgency::Rest => OF_APP - FOR_URGENT,
    };
    let kept = if of_app == 0 { 0 } else { FOR_NEWCOMERS };
    let left = ALL.saturating_sub(of_all).saturating_sub(kept);
    let room = most.saturating_sub(of_app).min(left).min(MOST);
    if room < LEAST { 0 } else { room }
}

/// Whether there is no room for anybody.
pub(super) fn is_full(of_all: usize) -> bool {
    of_all + LEAST > ALL
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_app_has_its_part_and_leaves_room_for_what_is_urgent() {
        let rest = OF_APP - FOR_URGENT;
        assert_eq!(room(Urgency::Rest, 0, 0), MOST);
        assert_eq!(room(Urgency::Rest, rest - LEAST, rest), LEAST);
        assert_eq!(room(Urgency::Rest, rest - LEAST + 1, rest), 0);
        assert_eq!(room(Urgency::Urgent, rest, rest), FOR_URGENT);
        assert_eq!(room(Urgency::Urgent, OF_APP - LEAST + 1, OF_APP), 0);
    }

    #[test]
    fn the_last_places_are_for_apps_that_have_none() {
        let shared = ALL - FOR_NEWCOMERS;
        for urgency in [Urgency::Urgent, Urgency::Rest] {
            assert_eq!(room(urgency, 1, shared - LEAST), LEAST);
            assert_eq!(room(urgency, 1, shared - LEAST + 1), 0);
            assert_eq!(room(urgency, 0, shared), MOST);
            assert_eq!(room(urgency, 0, ALL - LEAST), LEAST);
            assert_eq!(room(urgency, 0, ALL - LEAST + 1), 0);
        }
        assert!(!is_full(ALL - LEAST) && is_full(ALL - LEAST + 1));
    }

    proptest! {
        #[test]
        fn whoever_comes_finds_room_beside_slow_apps(turns in prop::collection::vec(0_usize..12, 0..200)) {
            // Apps with more to send than there is room for, none of which is ever answered.
            let mut apps = [0_usize; 12];
            for app in turns {
                apps[app] += room(Urgency::Rest, apps[app], apps.iter().sum());
                prop_assert!(apps[app] <= OF_APP - FOR_URGENT);
            }
            prop_assert_eq!(room(Urgency::Rest, 0, apps.iter().sum()), MOST);
        }
    }
}
