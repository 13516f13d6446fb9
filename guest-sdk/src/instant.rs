//! Points in time.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use std::time::Duration;
/// use nudge_guest::Instant;
///
/// let start = Instant::parse("2026-01-31T09:30:00+01:00").unwrap();
/// assert_eq!((start + Duration::from_mins(30)).to_string(), "2026-01-31T09:00:00.000Z");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// A date and a time of day, for formatting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999.
    pub millisecond: u32,
}

impl Instant {
    /// An instant from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// Reads an ISO 8601 date (`2026-01-31`) or date-time (`2026-01-31T09:30:00.000Z`).
    ///
    /// Seconds and their fraction may be left out. Without an offset it is UTC. A leap second, the 60th of a day's last
    /// minute in UTC (RFC 3339, section 5.7), is the second after it. None: not such a text, or a day that does not exist.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor(text.as_bytes());
        let year = i64::from(cursor.digits(4)?);
        cursor.byte(b'-')?;
        let month = cursor.digits(2)?;
        cursor.byte(b'-')?;
        let day = cursor.digits(2)?;
        if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
            return None;
        }
        let mut micros = days_from_calendar(year, month, day) * SECONDS_PER_DAY * MICROS_PER_SECOND;
        if !cursor.0.is_empty() {
            cursor.byte(b'T').or_else(|| cursor.byte(b't'))?;
            let (of_day, leaps) = cursor.time_of_day()?;
            micros += of_day - cursor.offset_micros()?;
            if leaps && Self(micros).seconds().rem_euclid(SECONDS_PER_DAY) != 0 {
                return None;
            }
        }
        cursor.0.is_empty().then_some(Self(micros))
    }

    /// The date and time of day in UTC.
    pub fn calendar(self) -> Calendar {
        let days = self.seconds().div_euclid(SECONDS_PER_DAY);
        let of_day = u32::try_from(self.seconds().rem_euclid(SECONDS_PER_DAY)).unwrap_or_default();
        let (year, month, day) = calendar_from_days(days);
        let millisecond =
            u32::try_from(self.0.rem_euclid(MICROS_PER_SECOND) / 1000).unwrap_or_default();
        Calendar {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            millisecond,
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calendar {
            year,
            month,
            day,
            hour,
            minute,
            second,
            millisecond,
        } = self.calendar();
        write!(
            out,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

/// What is left of a text that is being read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn byte(&mut self, wanted: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == wanted).then(|| self.0 = rest)
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + u32::from(digit - b'0'))
        })
    }

    /// Microseconds since midnight, and whether it says to be a leap second.
    fn time_of_day(&mut self) -> Option<(i64, bool)> {
        let hour = self.digits(2)?;
        self.byte(b':')?;
        let minute = self.digits(2)?;
        let mut second = 0;
        let mut micros = 0;
        if self.byte(b':').is_some() {
            second = self.digits(2)?;
            if self.byte(b'.').is_some() {
                micros = self.fraction_micros()?;
            }
        }
        let seconds = i64::from(hour * 3600 + minute * 60 + second);
        let valid = hour < 24 && minute < 60 && second <= 60;
        valid.then_some((seconds * MICROS_PER_SECOND + micros, second == 60))
    }

    fn fraction_micros(&mut self) -> Option<i64> {
        let count = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        let padded = digits
            .iter()
            .copied()
            .chain(std::iter::repeat(b'0'))
            .take(6);
        (count > 0).then(|| padded.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// The offset from UTC, which must be all that is left.
    fn offset_micros(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.byte(b'Z').or_else(|| self.byte(b'z')).is_some() {
            return Some(0);
        }
        let sign = if self.byte(b'+').is_some() {
            1
        } else {
            self.byte(b'-').map(|()| -1)?
        };
        let hours = self.digits(2)?;
        let minutes = if self.0.is_empty() {
            0
        } else {
            // `+01:00` and `+0100` are both in use.
            let _colon = self.byte(b':');
            self.digits(2)?
        };
        (hours < 24 && minutes < 60)
            .then(|| sign * i64::from(hours * 3600 + minutes * 60) * MICROS_PER_SECOND)
    }
}

fn leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01. Years are counted from March, so that the leap day is their last.
fn days_from_calendar(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn calendar_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = u32::try_from(day_of_year - (153 * month_from_march + 2) / 5 + 1).unwrap_or(1);
    let month = u32::try_from(if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    })
    .unwrap_or(1);
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> Option<String> {
        Instant::parse(text).map(|instant| instant.to_string())
    }

    #[test]
    fn dates_and_date_times_are_read() {
        for (text, expected) in [
            ("2026-01-31", "2026-01-31T00:00:00.000Z"),
            ("2024-02-29T23:59:59.999Z", "2024-02-29T23:59:59.999Z"),
            ("2026-01-31T09:30", "2026-01-31T09:30:00.000Z"),
            ("2026-01-31T09:30:00.5+01:00", "2026-01-31T08:30:00.500Z"),
            ("2026-01-31T09:30:00-0230", "2026-01-31T12:00:00.000Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"),
            ("0001-01-01", "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(round_trip(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_the_second_after_it() {
        for (text, expected) in [
            ("2027-12-31T23:59:60Z", Some("2028-01-01T00:00:00.000Z")),
            ("2016-12-31T23:59:60.5Z", Some("2017-01-01T00:00:00.500Z")),
            ("2016-12-31T23:59:60", Some("2017-01-01T00:00:00.000Z")),
            (
                "2017-01-01T05:29:60+05:30",
                Some("2017-01-01T00:00:00.000Z"),
            ),
            (
                "1990-12-31T15:59:60-08:00",
                Some("1991-01-01T00:00:00.000Z"),
            ),
            ("2016-12-31T23:59:61Z", None),
            ("2016-12-31T23:58:60Z", None),
            ("2016-12-31T22:59:60Z", None),
            ("2016-12-31T23:59:60+01:00", None),
        ] {
            assert_eq!(round_trip(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_not() {
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-01-31 09:30",
            "2026-01-31T24:00",
            "2026-01-31T09:30:00.Z",
            "2026-01-31Z0",
            "2026-1-31",
            "2026-01-31T09:30:00+1",
        ] {
            assert_eq!(round_trip(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_round_trips() {
        for days in -150_000..150_000 {
            let (year, month, day) = calendar_from_days(days);
            assert_eq!(days_from_calendar(year, month, day), days);
        }
    }
}
