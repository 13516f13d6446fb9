//! How much processor time a thread has had.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// For so long a reading is used again: asking the kernel takes as long as a tenth of a small call.
const FRESH: Duration = Duration::from_millis(1);

thread_local! {
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The processor time that this thread has used so far.
pub(crate) fn used() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// The same, or up to a millisecond less. `now` is the time.
pub(crate) fn used_about(now: Instant) -> Duration {
    LAST.with(|last| match last.get() {
        Some((at, used)) if now.saturating_duration_since(at) < FRESH => used,
        _ => {
            let used = used();
            last.set(Some((now, used)));
            used
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = used();
        // Ends only if the clock runs.
        while used() == before {}
        assert!(used() > before);
    }

    #[test]
    fn a_reading_is_used_for_a_millisecond() {
        let now = Instant::now();
        let first = used_about(now);
        // Ends only if the clock runs.
        while used() == first {}
        assert_eq!(used_about(now + FRESH / 2), first);
        let second = used_about(now + FRESH);
        assert!(second > first);
        assert_eq!(used_about(now + FRESH + FRESH / 2), second);
    }
}
