//! Time zones.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use nudge_guest::Instant;

/// Where a date is read.
#[derive(Clone, Debug)]
pub(crate) struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl Zone {
    /// `UTC`, `Z`, an offset such as `+02:00`, or a name of the IANA database; none: nothing of these.
    pub(crate) fn named(text: &str) -> Option<Self> {
        if matches!(text, "UTC" | "Z") {
            return Some(Self::default());
        }
        if text.starts_with(['+', '-']) {
            let offset = Offset::from_seconds(offset_seconds(text)?).ok()?;
            return Some(Self(TimeZone::fixed(offset)));
        }
        TimeZoneDatabase::bundled().get(text).ok().map(Self)
    }

    /// An instant whose calendar in UTC is that of the zone.
    pub(crate) fn local(&self, instant: Instant) -> Instant {
        // What lies past the years that a calendar has is left as it is.
        let seconds = Timestamp::from_microsecond(instant.micros())
            .map_or(0, |timestamp| self.0.to_offset(timestamp).seconds());
        let shift = Duration::from_secs(seconds.unsigned_abs().into());
        if seconds < 0 {
            instant - shift
        } else {
            instant + shift
        }
    }
}

fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (two_digits(hours, 15)? * 3_600 + two_digits(minutes, 60)? * 60))
}

fn two_digits(text: &str, below: i32) -> Option<i32> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: i32 = text.parse().ok()?;
    (digits && number < below).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_summers() {
        for (zone, instant, expected) in [
            (
                "Europe/Berlin",
                "2026-01-31T23:30:00Z",
                "2026-02-01T00:30:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-07-01T12:00:00Z",
                "2026-07-01T14:00:00Z",
            ),
            (
                "America/New_York",
                "2026-07-01T12:00:00Z",
                "2026-07-01T08:00:00Z",
            ),
            (
                "Asia/Kathmandu",
                "2026-07-01T12:00:00Z",
                "2026-07-01T17:45:00Z",
            ),
            ("-03:30", "2026-07-01T12:00:00Z", "2026-07-01T08:30:00Z"),
            ("UTC", "2026-07-01T12:00:00Z", "2026-07-01T12:00:00Z"),
        ] {
            let local = Zone::named(zone)
                .unwrap()
                .local(Instant::parse(instant).unwrap());
            assert_eq!(Instant::parse(expected), Some(local), "{zone} {instant}");
        }
    }

    #[test]
    fn what_is_no_zone_has_none() {
        for text in [
            "",
            "+2:00",
            "+25:00",
            "+02:60",
            "02:00",
            "Mars/Olympus",
            "Europe",
            "../etc/passwd",
        ] {
            assert!(Zone::named(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_instant_past_all_calendars_stays() {
        let far = Instant::from_micros(i64::MAX);
        assert_eq!(Zone::named("Europe/Berlin").unwrap().local(far), far);
    }
}
