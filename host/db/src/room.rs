//! Whether a database has room for what is written to it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A server that takes no requests, as its database has no room, may get none by which it would find out that there is room
/// again. If nothing has failed for so long, nobody knows: it takes requests. If the first one fails, it takes none again at once.
const UNKNOWN_AFTER: Duration = Duration::from_mins(2);

/// Whether the last commits failed for want of room. A sign of life tells nothing of that: it changes a row in its place.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<Lack>>);

#[derive(Clone, Copy, Debug)]
struct Lack {
    /// The first failure since the last success.
    since: Instant,
    last: Instant,
}

impl Room {
    /// A commit had room, or had none.
    pub(crate) fn note(&self, had_room: bool, now: Instant) {
        let mut lack = self.0.lock();
        *lack = if had_room {
            None
        } else {
            let since = lack.map_or(now, |lack| lack.since);
            Some(Lack { since, last: now })
        };
    }

    /// For how long there has been none, as far as is known.
    pub(crate) fn lacking(&self, now: Instant) -> Duration {
        let lack = *self.0.lock();
        lack.filter(|lack| now.saturating_duration_since(lack.last) < UNKNOWN_AFTER)
            .map_or(Duration::ZERO, |lack| {
                now.saturating_duration_since(lack.since)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_room_ends_with_a_commit_or_is_forgotten() {
        let (room, start) = (Room::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(room.lacking(at(0)), Duration::ZERO);
        room.note(false, at(0));
        room.note(false, at(10));
        assert_eq!(room.lacking(at(20)), Duration::from_secs(20));
        room.note(true, at(21));
        assert_eq!(room.lacking(at(22)), Duration::ZERO);

        room.note(false, at(30));
        assert_eq!(room.lacking(at(149)), Duration::from_secs(119));
        assert_eq!(room.lacking(at(150)), Duration::ZERO, "nobody knows");
        room.note(false, at(151));
        assert_eq!(room.lacking(at(151)), Duration::from_secs(121));
    }
}
