//! Numbers in groups of digits.

use std::ops::RangeInclusive;

use super::Locale;

/// A number with so many decimals, of which zeros at the end are left out down to the least.
pub(super) fn grouped(number: f64, decimals: RangeInclusive<usize>, locale: Locale) -> String {
    shifted(number, 0, decimals, locale)
}

/// How many hundredths a number is.
pub(super) fn hundredths(number: f64, locale: Locale) -> String {
    shifted(number, 2, 0..=0, locale)
}

/// A number whose point is moved to the right by so many places.
fn shifted(number: f64, places: usize, decimals: RangeInclusive<usize>, locale: Locale) -> String {
    let (least, most) = decimals.into_inner();
    let (whole, fraction) = rounded(number.abs(), places, most);
    let kept = fraction.trim_end_matches('0').len().max(least);
    let fraction = fraction.get(..kept).unwrap_or(&fraction);

    let mut digits = whole.bytes().chain(fraction.bytes());
    let sign = if number < 0.0 && digits.any(|digit| digit != b'0') {
        "-"
    } else {
        ""
    };
    let point = if fraction.is_empty() {
        ""
    } else {
        locale.decimal()
    };
    format!("{sign}{}{point}{fraction}", in_groups(&whole, locale))
}

/// The digits before and after the point once it is moved. Halves are rounded away from zero, as people do, who see the shortest
/// text of a number: 1.005 is a half of two decimals, though the floating-point number is a little less.
fn rounded(number: f64, places: usize, decimals: usize) -> (String, String) {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // The nought takes a carry.
    let mut digits = format!("0{whole}{fraction}");
    let point = 1 + whole.len() + places;
    let kept = point + decimals;
    let missing = kept.saturating_sub(digits.len());
    digits.push_str(&"0".repeat(missing));
    let rest = digits.split_off(kept);
    if rest.as_bytes().first() >= Some(&b'5') {
        digits = next(&digits);
    }
    let fraction = digits.split_off(point);
    let significant = digits.trim_start_matches('0');
    let whole = if significant.is_empty() {
        "0"
    } else {
        significant
    };
    (whole.to_owned(), fraction)
}

/// The digits of the next whole number.
fn next(digits: &str) -> String {
    let stem = digits.trim_end_matches('9');
    let nines = digits.len() - stem.len();
    let mut rest = stem.chars();
    let last = rest.next_back().and_then(|digit| digit.to_digit(10));
    let last = last.unwrap_or_default() + 1;
    format!("{}{last}{}", rest.as_str(), "0".repeat(nines))
}

fn in_groups(digits: &str, locale: Locale) -> String {
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        let begins = if locale.lakhs() && left > 3 {
            (left - 3).is_multiple_of(2)
        } else {
            left.is_multiple_of(3)
        };
        if begins && place > 0 {
            text.push_str(locale.group());
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero_as_they_are_written() {
        let locale = Locale::named("en");
        for (number, expected) in [
            (1.005, "1.01"),
            (0.285, "0.29"),
            (1.0049, "1.00"),
            (-1.005, "-1.01"),
            (-0.004, "0.00"),
            (-0.005, "-0.01"),
            (0.994, "0.99"),
            (0.995, "1.00"),
            (9.995, "10.00"),
            (-999.995, "-1,000.00"),
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (5e-324, "0.00"),
            (123_456.789, "123,456.79"),
            (1e21, "1,000,000,000,000,000,000,000.00"),
            (-1.5e21, "-1,500,000,000,000,000,000,000.00"),
        ] {
            assert_eq!(grouped(number, 2..=2, locale), expected, "{number}");
        }
        for (number, expected) in [
            (0.0005, "0.001"),
            (2.0015, "2.002"),
            (1.9995, "2"),
            (7.25, "7.25"),
        ] {
            assert_eq!(grouped(number, 0..=3, locale), expected, "{number}");
        }
        for (number, expected) in [
            (0.5, "1"),
            (1.5, "2"),
            (2.5, "3"),
            (-0.5, "-1"),
            (9.5, "10"),
        ] {
            assert_eq!(grouped(number, 0..=0, locale), expected, "{number}");
        }
        let largest = grouped(f64::MAX, 0..=0, locale);
        assert!(
            largest.starts_with("179,769,313,486,231,570,000,"),
            "{largest}"
        );
    }

    #[test]
    fn percents_are_rounded_as_they_are_written() {
        let locale = Locale::named("en");
        for (number, expected) in [
            (0.285, "29"),
            (0.575, "58"),
            (-0.285, "-29"),
            (0.995, "100"),
            (9.995, "1,000"),
            (0.0049, "0"),
            (-0.0049, "0"),
            (0.005, "1"),
            (0.0, "0"),
            (5e-324, "0"),
            (12.0, "1,200"),
            (1.2, "120"),
            (1e21, "100,000,000,000,000,000,000,000"),
        ] {
            assert_eq!(hundredths(number, locale), expected, "{number}");
        }
    }
}
