//! How far a stream has come, as `Last-Event-ID` says it.
//!
//! A request draws its number before it is committed, so that one may be committed after others with greater numbers. All
//! events of a request are there at once. So a mark says of each of the last requests whether its events were sent, and what
//! was committed meanwhile among them is found by whoever goes on from there.

use nudge_db::Timestamp;
use nudge_records::events::SEQ_BLOCK;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{EventKey, FeedPosition};

/// Requests that a mark tells from each other.
pub(super) const REQUESTS: i64 = 64;

/// Where a stream goes on: which events were sent, and behind refused events of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The event that was sent last. Those of its request before it were sent too.
    seq: i64,
    /// The newest request of which something was sent; none in marks of older servers: that of `seq`.
    #[serde(default)]
    newest: Option<i64>,
    /// Whose events were sent, all of them: a bit for the newest request, and one for each of those before it.
    #[serde(default = "all_before")]
    done: u64,
    /// Refused events up to this instant were sent, and of this instant those with ids up to `refused`.
    pub(super) at: Timestamp,
    /// Marks of older servers say that all of the instant were sent.
    #[serde(default = "Uuid::max")]
    refused: Uuid,
}

/// Marks of older servers say that everything before was sent.
fn all_before() -> u64 {
    !1
}

/// The request that an event came with.
pub(super) fn request_of(seq: i64) -> i64 {
    seq.div_euclid(SEQ_BLOCK)
}

impl Mark {
    /// Nothing is new up to an event. `overtakes`: but requests that are committed later than those with greater numbers.
    pub(super) fn new(seq: i64, at: Timestamp, overtakes: bool) -> Self {
        Self {
            seq,
            newest: Some(request_of(seq)),
            done: if overtakes { 0 } else { u64::MAX },
            at,
            refused: Uuid::max(),
        }
    }

    fn newest(&self) -> i64 {
        self.newest.unwrap_or_else(|| request_of(self.seq))
    }

    /// Whether the event with the greatest number is older: the database has lost some, as after it was restored.
    pub(super) fn is_beyond(&self, newest: i64) -> bool {
        self.newest() > request_of(newest)
    }

    /// Events up to this number are not told from each other: they were sent.
    pub(super) fn floor(&self) -> i64 {
        (self.newest() - REQUESTS + 1) * SEQ_BLOCK - 1
    }

    /// Whether an event was sent.
    pub(super) fn has(&self, seq: i64) -> bool {
        let request = request_of(seq);
        let is_part = request == request_of(self.seq) && seq <= self.seq;
        let back = u32::try_from(self.newest() - request).ok();
        let bit = back.map(|back| self.done.checked_shr(back).unwrap_or(1) & 1);
        is_part || bit == Some(1)
    }

    /// The requests that it says of that all of their events were sent.
    pub(super) fn done(&self) -> impl Iterator<Item = i64> {
        let (newest, done) = (self.newest(), self.done);
        let backwards = (0..REQUESTS).filter(move |back| (done >> back) & 1 == 1);
        backwards.map(move |back| newest - back)
    }

    /// An event is sent.
    pub(super) fn note(&mut self, position: FeedPosition) {
        match position.event {
            EventKey::Accepted(seq) => {
                self.reach(request_of(seq));
                self.seq = seq;
            }
            // Accepted events say nothing of refused ones: one that was received before may be committed after them.
            EventKey::Rejected(id) => {
                (self.at, self.refused) = (self.at, self.refused).max((position.at, id));
            }
        }
    }

    /// Whether a refused event was sent that was received at an instant.
    pub(super) fn has_refused(&self, id: Uuid, at: Timestamp) -> bool {
        (at, id) <= (self.at, self.refused)
    }

    /// One event comes after another in order, so that the other's request is done unless it is the same.
    pub(super) fn pass(&mut self, other: EventKey, one: EventKey) {
        if let EventKey::Accepted(seq) = other
            && !matches!(one, EventKey::Accepted(next) if request_of(next) == request_of(seq))
        {
            self.note_all_of(request_of(seq));
        }
    }

    /// What is new has nothing of the last event's request: all of that was sent.
    pub(super) fn settle(&mut self, new: &[(EventKey, Timestamp)]) {
        let last = request_of(self.seq);
        let is_of_last = |(key, _): &(EventKey, Timestamp)| matches!(key, EventKey::Accepted(seq) if request_of(*seq) == last);
        if !new.iter().any(is_of_last) {
            self.note_all_of(last);
        }
    }

    /// Nothing is awaited any longer up to a number, nor of what was refused before an instant.
    pub(super) fn looked_through(&mut self, floor: i64, refused_from: Timestamp) {
        self.reach(request_of(floor));
        (self.at, self.refused) = (self.at, self.refused).max((refused_from, Uuid::nil()));
    }

    /// All events of a request were sent.
    pub(super) fn note_all_of(&mut self, request: i64) {
        self.reach(request);
        let back = u32::try_from(self.newest() - request).ok();
        let bit = back.and_then(|back| 1_u64.checked_shl(back));
        self.done |= bit.unwrap_or_default();
    }

    fn reach(&mut self, request: i64) {
        let newest = self.newest();
        if request > newest {
            let further = u32::try_from(request - newest).unwrap_or(u32::MAX);
            self.done = self.done.checked_shl(further).unwrap_or_default();
        }
        self.newest = Some(newest.max(request));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(1);

    fn sent(mark: &mut Mark, seq: i64) {
        let event = EventKey::Accepted(seq);
        mark.note(FeedPosition { at: AT, event });
    }

    fn seq(request: i64, place: i64) -> i64 {
        request * SEQ_BLOCK + place
    }

    #[test]
    fn a_request_that_comes_late_is_told_from_those_that_were_sent() {
        let mut mark = Mark::new(seq(100, 3), AT, false);
        sent(&mut mark, seq(102, 0));
        assert!(mark.has(seq(100, 9)) && !mark.has(seq(101, 0)));
        assert!(mark.has(seq(102, 0)) && !mark.has(seq(102, 1)));
        mark.note_all_of(102);
        sent(&mut mark, seq(101, 5));
        assert!(mark.is_beyond(seq(101, 511)) && !mark.is_beyond(seq(102, 0)));
        assert!(mark.has(seq(102, 1)) && mark.has(seq(101, 5)) && !mark.has(seq(101, 6)));
        mark.note_all_of(101);
        sent(&mut mark, seq(103, 0));
        assert!(mark.has(seq(101, 6)) && !mark.has(seq(104, 0)));
        assert_eq!(mark.floor(), seq(40, 0) - 1);
        assert!(mark.has(mark.floor()));
    }

    #[test]
    fn where_requests_overtake_each_other_only_those_are_sent_that_are_noted() {
        let mut mark = Mark::new(seq(100, 3), AT, true);
        assert!(!mark.has(seq(99, 0)));
        mark.note_all_of(99);
        assert!(mark.has(seq(99, 0)) && !mark.has(seq(98, 0)));
        mark.note_all_of(1_000);
        assert!(!mark.has(seq(999, 0)) && mark.has(seq(99, 0)));
    }

    #[test]
    fn the_rest_of_a_request_is_new_until_it_is_known_that_there_is_none() {
        let mut mark = Mark::new(seq(100, 0), AT, true);
        sent(&mut mark, seq(102, 3));
        let event = |seq| (EventKey::Accepted(seq), AT);
        mark.settle(&[event(seq(101, 0)), event(seq(102, 4))]);
        assert!(mark.has(seq(102, 3)) && !mark.has(seq(102, 4)));
        mark.settle(&[event(seq(101, 0))]);
        sent(&mut mark, seq(101, 0));
        assert!(mark.has(seq(102, 4)) && !mark.has(seq(101, 1)));
    }

    #[test]
    fn what_is_looked_through_in_silence_is_not_looked_at_again() {
        let mut mark = Mark::new(seq(100, 3), AT, true);
        sent(&mut mark, seq(101, 3));
        mark.looked_through(seq(500, 7), Timestamp(9));
        assert_eq!(mark.floor(), seq(437, 0) - 1);
        assert!(mark.has(seq(101, 3)) && !mark.has(seq(500, 7)) && !mark.has(seq(501, 0)));
        assert!(mark.has_refused(Uuid::max(), Timestamp(8)));
        assert!(!mark.has_refused(Uuid::max(), Timestamp(9)));
        mark.looked_through(seq(400, 0), Timestamp(8));
        assert_eq!((mark.floor(), mark.at), (seq(437, 0) - 1, Timestamp(9)));
    }

    #[test]
    fn marks_of_older_servers_are_understood() {
        let mark: Mark = serde_json::from_str(r#"{"seq": 51203, "at": 7}"#).unwrap();
        assert!(mark.has(seq(100, 3)) && !mark.has(seq(100, 4)) && mark.has(seq(99, 511)));
        assert!(mark.has_refused(Uuid::max(), Timestamp(7)));
        assert!(!mark.has_refused(Uuid::nil(), Timestamp(8)));
        assert!(mark.done().eq((37..100).rev()));
    }

    #[test]
    fn refused_events_of_one_instant_are_told_from_each_other() {
        let mut mark = Mark::new(0, AT, false);
        let (between, at) = (Timestamp(2), Timestamp(3));
        sent(&mut mark, seq(1, 0));
        let event = EventKey::Accepted(seq(2, 0));
        mark.note(FeedPosition { at, event });
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        assert!(mark.has_refused(other, AT) && !mark.has_refused(one, between));
        let event = EventKey::Rejected(one);
        mark.note(FeedPosition { at, event });
        assert!(mark.has_refused(one, at) && !mark.has_refused(other, at));
    }
}
