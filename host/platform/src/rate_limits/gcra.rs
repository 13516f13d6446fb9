//! A token bucket as one number: the generic cell rate algorithm. The number is the instant at which the
//! bucket is full again; a bucket that is full needs no memory.

use nudge_db::Timestamp;

/// A rate and how far above it a caller may go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    /// Microseconds in which one token comes back.
    interval: i64,
    /// Tokens of a full bucket.
    burst: i64,
}

/// A token was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// When the bucket is full again.
    pub(super) full_at: Timestamp,
    /// Tokens that are left.
    pub(super) remaining: i64,
}

/// No token was there; the microseconds until there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Empty {
    /// Microseconds until the next token.
    pub(super) wait: i64,
}

impl Rate {
    /// A rate in tokens a second and a burst, each at least a little.
    pub(super) fn new(per_second: f64, burst: u32) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a day")]
        let interval = (1_000_000.0 / per_second.max(0.001)).clamp(1.0, 86_400_000_000.0) as i64;
        Self {
            interval,
            burst: i64::from(burst.max(1)),
        }
    }

    /// Tokens of a full bucket.
    pub(super) fn burst(self) -> i64 {
        self.burst
    }

    /// Seconds in which an empty bucket fills, rounded up.
    pub(super) fn window_seconds(self) -> i64 {
        ceil_seconds(self.span())
    }

    fn span(self) -> i64 {
        self.interval.saturating_mul(self.burst)
    }

    /// Takes tokens from a bucket that would be full at an instant: all of them, or none. More than a full bucket has are
    /// as many as it has, so that nobody waits in vain.
    pub(super) fn take(
        self,
        tokens: i64,
        full_at: Timestamp,
        now: Timestamp,
    ) -> Result<Taken, Empty> {
        // No bucket takes longer to fill than an empty one: the clock has been set back since, and nobody has to
        // wait for it to get there again.
        let full_at = if full_at.0.saturating_sub(now.0) > self.span() {
            now
        } else {
            full_at
        };
        let taken = self.interval.saturating_mul(tokens.clamp(1, self.burst));
        let next = full_at.0.max(now.0).saturating_add(taken);
        let missing = next.saturating_sub(now.0);
        if missing > self.span() {
            return Err(Empty {
                wait: missing - self.span(),
            });
        }
        Ok(Taken {
            full_at: Timestamp(next),
            remaining: (self.span() - missing) / self.interval,
        })
    }
}

/// Microseconds in seconds, rounded up.
pub(super) fn ceil_seconds(micros: i64) -> i64 {
    micros.saturating_add(999_999) / 1_000_000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_passes_then_one_at_a_time() {
        let rate = Rate::new(2.0, 3);
        let now = Timestamp::from_seconds(1_000);
        let mut full_at = Timestamp(0);
        for remaining in [2, 1, 0] {
            let taken = rate.take(1, full_at, now).unwrap();
            assert_eq!(taken.remaining, remaining);
            full_at = taken.full_at;
        }
        assert_eq!(rate.take(1, full_at, now), Err(Empty { wait: 500_000 }));
        assert!(rate.take(1, full_at, Timestamp(now.0 + 499_999)).is_err());
        assert!(rate.take(1, full_at, Timestamp(now.0 + 500_000)).is_ok());
        assert_eq!(rate.window_seconds(), 2);
    }

    #[test]
    fn many_are_taken_together_or_not_at_all() {
        let rate = Rate::new(1.0, 10);
        let now = Timestamp::from_seconds(1_000);
        let taken = rate.take(7, Timestamp(0), now).unwrap();
        assert_eq!(taken.remaining, 3);
        assert_eq!(
            rate.take(4, taken.full_at, now),
            Err(Empty { wait: 1_000_000 })
        );
        assert_eq!(rate.take(3, taken.full_at, now).unwrap().remaining, 0);
        // More than ever fit pass a full bucket, and empty it.
        assert_eq!(rate.take(11, Timestamp(0), now).unwrap().remaining, 0);
        assert!(rate.take(11, taken.full_at, now).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_shuts_nobody_out() {
        let rate = Rate::new(2.0, 3);
        let now = Timestamp::from_seconds(10_000);
        let earlier = Timestamp::from_seconds(10_000 - 3_600);
        let taken = rate.take(1, Timestamp(0), now).unwrap();
        let taken = rate.take(1, taken.full_at, earlier).unwrap();
        assert_eq!(taken.remaining, 2);
        let last = Timestamp(earlier.0 + rate.span());
        assert!(
            rate.take(1, last, earlier).is_err(),
            "an empty bucket stays empty"
        );
    }

    proptest! {
        /// Whatever the arrivals, no more pass than the burst and what came back meanwhile.
        #[test]
        fn no_more_pass_than_the_rate_allows(
            gaps in proptest::collection::vec(0_i64..2_000_000, 1..200),
            per_second in 1_u32..50,
            burst in 1_u32..20,
        ) {
            let rate = Rate::new(f64::from(per_second), burst);
            let start = Timestamp::from_seconds(1_000);
            let (mut now, mut full_at, mut passed) = (start, Timestamp(0), 0_i64);
            for gap in gaps {
                now = Timestamp(now.0 + gap);
                if let Ok(taken) = rate.take(1, full_at, now) {
                    prop_assert!((0..i64::from(burst)).contains(&taken.remaining));
                    full_at = taken.full_at;
                    passed += 1;
                }
            }
            let allowed = i64::from(burst) + (now.0 - start.0) / rate.interval;
            prop_assert!(passed <= allowed, "{passed} of {allowed}");
        }
    }
}
