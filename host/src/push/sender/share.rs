//! How many batches an app may have in hand, so that one whose provider is slow is no other app's trouble. Pure.

use crate::push::deliveries::Lane;

/// Batches of a process at a time.
pub(super) const BATCHES: usize = 64;
/// Batches of one app among them.
const OF_APP: usize = 8;
/// Places that only apps which have no batch in hand may take.
const FOR_NEWCOMERS: usize = BATCHES / 4;

/// Whether an app that has so many batches in hand may have another one, in a place of which so many are left when it
/// is taken.
pub(super) fn has_room(lane: Lane, running: usize, left: usize) -> bool {
    // A batch of what somebody waits for always finds room beside the app's others.
    let most = match lane {
        Lane::Urgent => OF_APP,
        Lane::Rest => OF_APP - 1,
    };
    running == 0 || (running < most && left >= FOR_NEWCOMERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_has_its_part_and_leaves_room_for_what_is_urgent() {
        assert!(has_room(Lane::Rest, OF_APP - 2, BATCHES - 1));
        assert!(!has_room(Lane::Rest, OF_APP - 1, BATCHES - 1));
        assert!(has_room(Lane::Urgent, OF_APP - 1, BATCHES - 1));
        assert!(!has_room(Lane::Urgent, OF_APP, BATCHES - 1));
    }

    #[test]
    fn the_last_places_are_for_apps_that_have_none() {
        for lane in [Lane::Urgent, Lane::Rest] {
            assert!(has_room(lane, 1, FOR_NEWCOMERS));
            assert!(!has_room(lane, 1, FOR_NEWCOMERS - 1));
            assert!(has_room(lane, 0, 0));
        }
    }

    #[test]
    fn many_slow_apps_take_no_newcomers_place() {
        let (mut left, mut running) = (BATCHES, vec![0_usize; 10 + FOR_NEWCOMERS]);
        // Ten apps with more work than there are places, in turns.
        for _ in 0..OF_APP {
            for running in running.iter_mut().take(10) {
                if left > 0 && has_room(Lane::Rest, *running, left - 1) {
                    *running += 1;
                    left -= 1;
                }
            }
        }
        assert_eq!(left, FOR_NEWCOMERS);
        for running in running.iter_mut().skip(10).take(FOR_NEWCOMERS) {
            assert!(left > 0 && has_room(Lane::Rest, *running, left - 1));
            *running += 1;
            left -= 1;
        }
    }
}
