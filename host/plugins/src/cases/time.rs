//! Instants of cases: RFC 3339, or `+30m` after the case's start.

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_platform::clock;

/// When a case starts that does not say: 2026-01-01T00:00:00Z.
pub(super) const START: Timestamp = Timestamp(1_767_225_600_000_000);

/// Reads `+1d2h30m` as an offset from `start`, or an instant. Units are `ms`, `s`, `m`, `h` and `d`.
pub(super) fn read(text: &str, start: Timestamp) -> Option<Timestamp> {
    match text.strip_prefix('+') {
        Some(offset) => Some(start.plus(duration(offset)?)),
        None => clock::from_text(text),
    }
}

/// Reads `1d2h30m`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = after;
    }
    // A hundred years: what comes later is a mistake.
    (!text.is_empty() && millis <= 100 * 366 * 86_400_000).then(|| Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_units() {
        let millis = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis("30m"), Some(1_800_000));
        assert_eq!(millis("1d2h30m1s5ms"), Some(95_401_005));
        for wrong in [
            "",
            "30",
            "m",
            "30 m",
            "-1m",
            "1w",
            "99999999999999999999d",
            "40000d",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn instants_are_absolute_or_from_the_start() {
        assert_eq!(clock::to_text(START), "2026-01-01T00:00:00.000Z");
        assert_eq!(read("+1s", START), Some(Timestamp(START.0 + 1_000_000)));
        assert_eq!(read("2026-01-01T01:00:00+01:00", START), Some(START));
        assert_eq!(read("tomorrow", START), None);
    }
}
