//! Identifiers: UUIDv7 (RFC 9562), which sort by the time when they were made.

use std::sync::atomic::{AtomicU64, Ordering};

use nudge_db::Timestamp;
use uuid::{Builder, Uuid};

/// Millisecond and counter of the newest identifier, so that those of one process always ascend.
static NEWEST: AtomicU64 = AtomicU64::new(0);

/// A new identifier.
pub fn new(now: Timestamp) -> Uuid {
    let floor = u64::try_from(now.millis()).unwrap_or(0) << 12;
    let mut newest = NEWEST.load(Ordering::Relaxed);
    let next = loop {
        let next = floor.max(newest + 1);
        match NEWEST.compare_exchange_weak(newest, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break next,
            Err(seen) => newest = seen,
        }
    };
    let mut random = crate::secrets::random::<10>();
    let [_, _, _, _, _, _, high, low] = (next & 0xfff).to_be_bytes();
    random[0] = high;
    random[1] = low;
    Builder::from_unix_timestamp_millis(next >> 12, &random).into_uuid()
}

/// A new identifier that says when it was made to the millisecond, whatever others were made before. Those of
/// one millisecond are in no order.
pub fn made_now(now: Timestamp) -> Uuid {
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &crate::secrets::random()).into_uuid()
}

/// The least identifier that can be made at an instant: those that are smaller were made before.
pub fn first_of(at: Timestamp) -> Uuid {
    let millis = u64::try_from(at.millis()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}

/// When an identifier was made, in whole milliseconds. None: not here.
pub fn made_at(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Some(Timestamp(micros + i64::from(nanoseconds / 1_000)))
}

/// An identifier that depends on its arguments alone: what is made again has the same one.
pub fn derived(at: Timestamp, hash: &[u8; 32]) -> Uuid {
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    Builder::from_unix_timestamp_millis(u64::try_from(at.millis()).unwrap_or(0), &random)
        .into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_say_when_they_were_made() {
        let now = Timestamp(1_800_000_000_123_000);
        let later = Timestamp(now.0 + 60_000_000);
        let id = made_now(now);
        assert_eq!(made_at(id), Some(now));
        assert!(first_of(now) <= id && id < first_of(later));
        assert_eq!(made_at(Uuid::nil()), None);
    }

    #[test]
    fn identifiers_ascend_within_a_millisecond() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let made: Vec<Uuid> = (0..10_000).map(|_| new(now)).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }
}
