//! When a message is sent again, and when it is given up (specification 6.3, contract 10). Pure.

use std::time::Duration;

/// Times that a message is sent at the most (specification 8).
pub const MOST_ATTEMPTS: i64 = 5;
/// The longest pause that is the server's own idea.
const LONGEST: f64 = 3_600.0;
/// The pause of what could not be tried for want of room on this side, in seconds.
const PUT_OFF: f64 = 10.0;

/// What an exchange means for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrived.
    Arrived,
    /// It may arrive another time.
    Again,
    /// It never will.
    Refused,
}

/// What a status means; none is a time-out or a failure of the network. A redirect is not followed, and so is a
/// refusal.
pub fn verdict(status: Option<u16>) -> Verdict {
    match status {
        Some(200..=299) => Verdict::Arrived,
        None | Some(408 | 429 | 500..) => Verdict::Again,
        Some(_) => Verdict::Refused,
    }
}

/// The pause after the attempt of a number, from 1 on: the base times the square of the number, at most an hour,
/// times 0.8 to 1.2 as `random` (0 to 1) has it; and at least what the receiver asked for.
pub fn pause(base_seconds: f64, attempt: i64, random: f64, asked: Option<Duration>) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "numbers of attempts are small")]
    let attempt = attempt as f64;
    let seconds = (base_seconds.max(0.0) * attempt * attempt).min(LONGEST);
    let spread = 0.8 + 0.4 * random.clamp(0.0, 1.0);
    let own = Duration::try_from_secs_f64(seconds * spread).unwrap_or(Duration::from_hours(1));
    own.max(asked.unwrap_or_default())
}

/// The pause before what could not be tried is, a fifth more or less as `random` (0 to 1) has it.
pub fn put_off(random: f64) -> Duration {
    pause(PUT_OFF, 1, random, None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_may_arrive_later_is_sent_again() {
        for (status, expected) in [
            (Some(200), Verdict::Arrived),
            (Some(204), Verdict::Arrived),
            (Some(299), Verdict::Arrived),
            (Some(199), Verdict::Refused),
            (Some(300), Verdict::Refused),
            (Some(301), Verdict::Refused),
            (Some(308), Verdict::Refused),
            (Some(400), Verdict::Refused),
            (Some(401), Verdict::Refused),
            (Some(404), Verdict::Refused),
            (Some(407), Verdict::Refused),
            (Some(408), Verdict::Again),
            (Some(409), Verdict::Refused),
            (Some(410), Verdict::Refused),
            (Some(428), Verdict::Refused),
            (Some(429), Verdict::Again),
            (Some(430), Verdict::Refused),
            (Some(499), Verdict::Refused),
            (Some(500), Verdict::Again),
            (Some(503), Verdict::Again),
            (Some(599), Verdict::Again),
            (None, Verdict::Again),
        ] {
            assert_eq!(verdict(status), expected, "{status:?}");
        }
    }

    #[test]
    fn pauses_grow_with_the_square_up_to_an_hour() {
        let seconds = |attempt, random| pause(30.0, attempt, random, None).as_secs_f64();
        for (attempt, least, most) in [
            (1, 24.0, 36.0),
            (2, 96.0, 144.0),
            (3, 216.0, 324.0),
            (4, 384.0, 576.0),
        ] {
            assert!((seconds(attempt, 0.0) - least).abs() < 0.001);
            assert!((seconds(attempt, 1.0) - most).abs() < 0.001);
        }
        assert!((pause(3_600.0, 4, 1.0, None).as_secs_f64() - 4_320.0).abs() < 0.001);
        assert!(pause(0.0, 3, 1.0, None).is_zero());
    }

    proptest! {
        #[test]
        fn a_pause_is_at_least_what_was_asked_for(
            base in 0.0_f64..10_000.0, attempt in 1_i64..=5, random in 0.0_f64..=1.0, asked in 0_u64..=86_400,
        ) {
            let asked = Duration::from_secs(asked);
            let paused = pause(base, attempt, random, Some(asked));
            prop_assert!(paused >= asked);
            prop_assert!(paused <= asked.max(Duration::from_secs_f64(LONGEST * 1.2)));
            prop_assert!(paused >= pause(base, attempt, random, None));
        }
    }
}
