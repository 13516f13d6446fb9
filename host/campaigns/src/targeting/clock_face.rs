//! Times of day, and when they come in a time zone.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use nudge_db::Timestamp;

/// Days that are looked at for the end of hours: the rest of today, tomorrow, and one for zones that skip a day.
const DAYS_AHEAD: usize = 3;
/// Changes of a zone's offset that are looked at. None has more in a few days.
const TRANSITIONS_AHEAD: usize = 4;
/// Minutes of a day.
const DAY: i16 = 24 * 60;

/// A minute of the day, 0 to 1440.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute(i16);

impl Minute {
    /// The begin of a day.
    pub(super) const MIDNIGHT: Self = Self(0);

    /// Reads `HH:MM`, 00:00 to 23:59.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<i16>().ok()).flatten()
        };
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute) = (number(hour)?, number(minute)?);
        (hour < 24 && minute < 60).then_some(Self(hour * 60 + minute))
    }

    /// Reads `HH:MM`, 00:00 to 24:00.
    pub(super) fn parse_end(text: &str) -> Option<Self> {
        if text == "24:00" {
            return Some(Self(DAY));
        }
        Self::parse(text)
    }

    fn of(time: DateTime) -> Self {
        Self(i16::from(time.hour()) * 60 + i16::from(time.minute()))
    }

    fn on(self, date: Date) -> Option<DateTime> {
        let (date, minutes) = if self.0 == DAY {
            (date.tomorrow().ok()?, 0)
        } else {
            (date, self.0)
        };
        let hour = i8::try_from(minutes / 60).ok()?;
        let minute = i8::try_from(minutes % 60).ok()?;
        Some(date.at(hour, minute, 0, 0))
    }
}

/// Hours of the day, from a minute up to another; the next day's where that is not after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hours {
    /// Their begin, which belongs to them.
    pub(super) from: Minute,
    /// Their end, which does not.
    pub(super) to: Minute,
}

/// On which local day hours began that an instant lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Began {
    /// On the instant's own.
    Today,
    /// On the day before: they go over midnight.
    Yesterday,
}

impl Hours {
    /// Whether a local time lies in the hours, and when they began.
    pub(super) fn contain(self, time: DateTime) -> Option<Began> {
        let minute = Minute::of(time);
        if self.from < self.to {
            return (self.from <= minute && minute < self.to).then_some(Began::Today);
        }
        if minute >= self.from {
            return Some(Began::Today);
        }
        (minute < self.to).then_some(Began::Yesterday)
    }

    /// The first instant after `now` that does not lie in the hours: their end, or a change of the zone's offset
    /// that leads out of them. None: there is none.
    pub(super) fn end_after(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let is_outside = |time| self.contain(time).is_none();
        first_after(now, zone, DAYS_AHEAD, &[self.to], is_outside)
    }
}

/// The first instant after `now` at which a local time fits, of those that can be the begin of one: some times of the next `days`
/// days, and changes of the zone's offset. None: there is none.
pub(super) fn first_after(
    now: Timestamp,
    zone: &TimeZone,
    days: usize,
    times: &[Minute],
    fits: impl Fn(DateTime) -> bool,
) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_microsecond(now.0).ok()?;
    let mut candidates = Vec::new();
    let mut date = zone.to_datetime(instant).date();
    for _ in 0..days {
        for time in times.iter().filter_map(|minute| minute.on(date)) {
            let time = zone.to_ambiguous_timestamp(time);
            candidates.extend(time.earlier().ok());
            candidates.extend(time.later().ok());
        }
        let Ok(next) = date.tomorrow() else { break };
        date = next;
    }
    let transitions = zone.following(instant).take(TRANSITIONS_AHEAD);
    candidates.extend(transitions.map(|transition| transition.timestamp()));
    let fitting = candidates
        .into_iter()
        .filter(|candidate| *candidate > instant && fits(zone.to_datetime(*candidate)));
    let first = fitting.min()?;
    Some(Timestamp(first.as_microsecond()))
}

/// The zone of an IANA name. Names are those of the database that this program was built with.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// Whether there is a zone of a name.
pub fn is_zone(name: &str) -> bool {
    zone(name).is_some()
}

/// The local time of an instant.
pub(super) fn local(instant: Timestamp, zone: &TimeZone) -> Option<DateTime> {
    let instant = jiff::Timestamp::from_microsecond(instant.0).ok()?;
    Some(zone.to_datetime(instant))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ZONES: [&str; 9] = [
        "UTC",
        "America/New_York",
        "Europe/Vienna",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Pacific/Apia",
        "Africa/Casablanca",
        // Their clocks skip midnight and the hour before it.
        "America/Santiago",
        "America/Nuuk",
    ];

    fn at(text: &str) -> Timestamp {
        nudge_platform::clock::from_text(text).unwrap()
    }

    fn hours(from: &str, to: &str) -> Hours {
        Hours {
            from: Minute::parse(from).unwrap(),
            to: Minute::parse_end(to).unwrap(),
        }
    }

    #[test]
    fn times_of_day_are_read_at_their_limits_and_one_past_them() {
        assert_eq!(Minute::parse("00:00"), Some(Minute(0)));
        assert_eq!(Minute::parse("23:59"), Some(Minute(DAY - 1)));
        for wrong in ["24:00", "23:60", "7:00", "07:0", "+7:00", "07:00:00", ""] {
            assert_eq!(Minute::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Minute::parse_end("24:00"), Some(Minute(DAY)));
        assert_eq!(Minute::parse_end("24:01"), None);
    }

    #[test]
    fn an_end_that_the_clocks_skip_comes_when_they_jump() {
        let vienna = zone("Europe/Vienna").unwrap();
        // On 2026-03-29 02:00 becomes 03:00.
        let end = hours("22:00", "02:30").end_after(at("2026-03-28T23:00:00Z"), &vienna);
        assert_eq!(end, Some(at("2026-03-29T01:00:00Z")));
    }

    #[test]
    fn an_end_that_comes_twice_ends_at_the_next_of_both() {
        let vienna = zone("Europe/Vienna").unwrap();
        // On 2026-10-25 03:00 becomes 02:00: 02:30 is at 00:30 and at 01:30 UTC.
        let quiet = hours("22:00", "02:30");
        let end = |now: &str| quiet.end_after(at(now), &vienna);
        assert_eq!(
            end("2026-10-24T23:00:00Z"),
            Some(at("2026-10-25T00:30:00Z"))
        );
        assert_eq!(
            end("2026-10-25T01:10:00Z"),
            Some(at("2026-10-25T01:30:00Z"))
        );
    }

    #[test]
    fn a_leap_day_is_a_day() {
        let utc = TimeZone::UTC;
        let end = hours("22:00", "06:00").end_after(at("2028-02-28T23:00:00Z"), &utc);
        assert_eq!(end, Some(at("2028-02-29T06:00:00Z")));
        let end = hours("22:00", "06:00").end_after(at("2028-02-29T23:00:00Z"), &utc);
        assert_eq!(end, Some(at("2028-03-01T06:00:00Z")));
    }

    proptest! {
        /// Against the plainest way to find it: minute by minute.
        #[test]
        fn hours_end_at_the_first_minute_outside(
            zone_index in 0..ZONES.len(),
            // Around changes of offset as well as anywhere in forty years.
            start in prop_oneof![
                0_i64..40 * 366 * 24 * 60,
                Just(24_903_000_i64),
                (29_660_000_i64..29_670_000),
                (22_088_000_i64..22_093_000),
            ],
            from in 0_i16..DAY,
            to in 0_i16..DAY,
        ) {
            prop_assume!(from != to);
            let zone = zone(ZONES[zone_index]).unwrap();
            let hours = Hours { from: Minute(from), to: Minute(to) };
            let now = Timestamp::from_seconds(start * 60);
            prop_assume!(hours.contain(local(now, &zone).unwrap()).is_some());
            let mut minute = start + 1;
            let first = loop {
                let instant = Timestamp::from_seconds(minute * 60);
                if hours.contain(local(instant, &zone).unwrap()).is_none() {
                    break instant;
                }
                minute += 1;
            };
            prop_assert_eq!(hours.end_after(now, &zone), Some(first));
        }
    }
}
