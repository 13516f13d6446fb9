//! Times in steps that grow with them: four to the octave, so that a quantile is at most a fifth off.

/// Steps within which a time doubles.
const PER_OCTAVE: f64 = 4.0;
/// The last step: everything from about 67 seconds on.
const LAST: u8 = 104;

/// The step of a time in microseconds.
pub(super) fn bucket(micros: u64) -> u8 {
    #[expect(clippy::cast_precision_loss, reason = "steps are coarse")]
    let steps = (micros.max(1) as f64).log2() * PER_OCTAVE;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 0, and the cast saturates"
    )]
    let step = steps.ceil() as u8;
    step.min(LAST)
}

/// The longest time of a step, in microseconds.
fn longest(bucket: u8) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^26"
    )]
    let micros = (f64::from(bucket) / PER_OCTAVE).exp2() as u64;
    micros
}

/// The time that a share of the calls did not pass, in microseconds, rounded up to its step. `steps` ascend, each
/// with its calls; `max` is the longest time of all.
pub fn quantile(steps: &[(u8, u64)], share: f64, max: u64) -> u64 {
    let all: u64 = steps.iter().map(|(_, calls)| calls).sum();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among calls"
    )]
    let rank = (all as f64 * share).ceil() as u64;
    let mut seen = 0;
    for (bucket, calls) in steps {
        seen += calls;
        if seen >= rank.max(1) {
            return longest(*bucket).min(max);
        }
    }
    max
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_calls() {
        let times: Vec<u64> = (1..=1000).map(|number| number * 10).collect();
        let mut steps: Vec<(u8, u64)> = times.iter().map(|time| (bucket(*time), 1)).collect();
        steps.sort_unstable();
        for (share, exact) in [(0.5, 5_000), (0.95, 9_500), (0.99, 9_900)] {
            let found = quantile(&steps, share, 10_000);
            assert!(
                (exact..=exact * 12 / 10).contains(&found),
                "{share}: {found}"
            );
        }
        assert_eq!(quantile(&steps, 1.0, 10_000), 10_000);
        assert_eq!(quantile(&[], 0.5, 0), 0);
        assert_eq!(quantile(&[(bucket(7), 1)], 0.5, 7), 7);
    }

    proptest! {
        #[test]
        fn a_step_holds_its_times(micros in 1_u64..60_000_000) {
            let step = bucket(micros);
            prop_assert!(longest(step) + 1 >= micros, "{} {}", longest(step), micros);
            prop_assert!(step == 0 || longest(step - 1) <= micros);
            prop_assert!(bucket(micros) <= bucket(micros + 1));
        }
    }

    #[test]
    fn every_time_has_a_step() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(1), 0);
        assert_eq!(bucket(u64::MAX), LAST);
    }
}
