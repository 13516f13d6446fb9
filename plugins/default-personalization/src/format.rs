//! How values stand in texts.

mod currency;
mod locale;
mod number;
mod zone;

use nudge_guest::{Calendar, Instant};

use locale::DateOrder;
pub(crate) use locale::Locale;
pub(crate) use zone::Zone;

/// How a number or a date is written. What a binding leaves open is the recipient's own.
#[derive(Clone, Debug)]
pub(crate) struct Format<L = Locale, Z = Zone> {
    pub(crate) style: Style,
    pub(crate) locale: L,
    pub(crate) zone: Z,
}

/// A format as a binding gives it.
pub(crate) type Given = Format<Option<Locale>, Option<Zone>>;

/// Language and time zone of a recipient: American and UTC, unless they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Local {
    pub(crate) locale: Locale,
    pub(crate) zone: Zone,
}

impl Given {
    /// Whether it leaves something open for a recipient.
    pub(crate) fn is_open(&self) -> bool {
        self.locale.is_none() || self.zone.is_none()
    }

    /// The format for a recipient.
    pub(crate) fn of(&self, local: &Local) -> Format {
        Format {
            style: self.style.clone(),
            locale: self.locale.unwrap_or(local.locale),
            zone: self.zone.clone().unwrap_or_else(|| local.zone.clone()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Decimal,
    Integer,
    Percent,
    /// With a currency code.
    Currency(String),
    Date,
    DateTime,
}

impl Format {
    /// A number in this format.
    pub(crate) fn number(&self, number: f64) -> String {
        let locale = self.locale;
        match &self.style {
            Style::Integer => number::grouped(number, 0..=0, locale),
            Style::Percent => {
                let space = if locale.spaced() { "\u{a0}" } else { "" };
                format!("{}{space}%", number::hundredths(number, locale))
            }
            Style::Currency(code) => currency::amount(number, code, locale),
            Style::Decimal | Style::Date | Style::DateTime => {
                number::grouped(number, 0..=3, locale)
            }
        }
    }

    /// A date in this format.
    pub(crate) fn date(&self, instant: Instant) -> String {
        let calendar = self.zone.local(instant).calendar();
        let date = date(calendar, self.locale.date_order());
        if self.style == Style::DateTime {
            format!("{date}, {}", self.time(calendar))
        } else {
            date
        }
    }

    /// A day in this format, by no clock.
    pub(crate) fn day(&self, midnight: Instant) -> String {
        let calendar = Zone::default().local(midnight).calendar();
        date(calendar, self.locale.date_order())
    }

    fn time(&self, calendar: Calendar) -> String {
        let Calendar { hour, minute, .. } = calendar;
        if !self.locale.twelve_hours() {
            return format!("{hour:02}:{minute:02}");
        }
        let half = if hour < 12 { "AM" } else { "PM" };
        format!("{}:{minute:02} {half}", (hour + 11) % 12 + 1)
    }
}

fn date(calendar: Calendar, order: DateOrder) -> String {
    let Calendar {
        year, month, day, ..
    } = calendar;
    match order {
        DateOrder::MonthFirst => format!("{month}/{day}/{year}"),
        DateOrder::DaySlashes => format!("{day:02}/{month:02}/{year}"),
        DateOrder::DayDots => format!("{day:02}.{month:02}.{year}"),
        DateOrder::DayHyphens => format!("{day:02}-{month:02}-{year}"),
        DateOrder::YearFirst => format!("{year}-{month:02}-{day:02}"),
    }
}

/// A number without any format: as JSON has it.
pub(crate) fn plain_number(number: f64) -> String {
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(style: Style, locale: &str) -> Format {
        Format {
            style,
            locale: Locale::named(locale),
            zone: Zone::default(),
        }
    }

    #[test]
    fn numbers_have_the_separators_of_their_language() {
        for (locale, expected) in [
            ("en-US", "1,234,567.891"),
            ("de", "1.234.567,891"),
            ("de-CH", "1’234’567.891"),
            ("fr-FR", "1\u{202f}234\u{202f}567,891"),
            ("pl", "1\u{a0}234\u{a0}567,891"),
            ("en-IN", "12,34,567.891"),
            ("xx", "1,234,567.891"),
        ] {
            assert_eq!(
                format(Style::Decimal, locale).number(1_234_567.891),
                expected,
                "{locale}"
            );
        }
    }

    #[test]
    fn styles_round_as_they_say() {
        assert_eq!(format(Style::Decimal, "en").number(1234.5), "1,234.5");
        assert_eq!(format(Style::Integer, "en").number(1234.5), "1,235");
        assert_eq!(format(Style::Integer, "en").number(-0.4), "0");
        assert_eq!(format(Style::Decimal, "en").number(-999.0), "-999");
        assert_eq!(format(Style::Percent, "en").number(0.256), "26%");
        assert_eq!(format(Style::Percent, "de").number(0.25), "25\u{a0}%");
    }

    #[test]
    fn percents_of_the_largest_numbers_have_all_their_digits() {
        let percent = format(Style::Percent, "de").number(-1.7e308);
        assert!(percent.starts_with("-17.000.000"), "{percent}");
        assert!(percent.ends_with("00\u{a0}%"), "{percent}");
        let digits = percent.chars().filter(char::is_ascii_digit);
        assert_eq!(digits.count(), 311);
    }

    #[test]
    fn currencies_have_their_own_decimals_and_places() {
        let amount = |code: &str, locale: &str| {
            format(Style::Currency(code.to_owned()), locale).number(-1234.5)
        };
        assert_eq!(amount("USD", "en-US"), "-$1,234.50");
        assert_eq!(amount("EUR", "de-DE"), "-1.234,50\u{a0}€");
        assert_eq!(amount("JPY", "ja"), "-¥1,235");
        assert_eq!(amount("KWD", "en"), "-KWD\u{a0}1,234.500");
    }

    #[test]
    fn dates_are_in_the_order_of_their_language() {
        let instant = Instant::parse("2026-01-31T21:05:00Z").unwrap();
        for (locale, expected) in [
            ("en-US", "1/31/2026, 9:05 PM"),
            ("en-GB", "31/01/2026, 21:05"),
            ("de", "31.01.2026, 21:05"),
            ("nl", "31-01-2026, 21:05"),
            ("sv", "2026-01-31, 21:05"),
        ] {
            assert_eq!(
                format(Style::DateTime, locale).date(instant),
                expected,
                "{locale}"
            );
        }
        let east = Format {
            zone: Zone::named("+03:00").unwrap(),
            ..format(Style::Date, "de")
        };
        assert_eq!(east.date(instant), "01.02.2026");
        let west = Format {
            zone: Zone::named("-05:00").unwrap(),
            ..format(Style::DateTime, "en-US")
        };
        let midnight = Instant::parse("2026-01-31").unwrap();
        assert_eq!(west.day(midnight), "1/31/2026");
    }
}
