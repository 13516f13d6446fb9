//! Numbers in groups of digits.

use std::ops::RangeInclusive;

use super::Locale;

/// A number with so many decimals, of which zeros at the end are left out down to the least.
pub(super) fn grouped(number: f64, decimals: RangeInclusive<usize>, locale: Locale) -> String {
    let (least, most) = decimals.into_inner();
    let rounded = rounded(number.abs(), most);
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let kept = fraction.trim_end_matches('0').len().max(least);
    let fraction = fraction.get(..kept).unwrap_or(fraction);

    let zero = !rounded.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let sign = if number < 0.0 && !zero { "-" } else { "" };
    let point = if fraction.is_empty() {
        ""
    } else {
        locale.decimal()
    };
    format!("{sign}{}{point}{fraction}", in_groups(whole, locale))
}

/// How many hundredths a number is. A number of which a hundredfold is beyond the range of numbers is whole: it gets two noughts.
pub(super) fn hundredths(number: f64, locale: Locale) -> String {
    let hundredfold = number * 100.0;
    if hundredfold.is_finite() {
        return grouped(hundredfold, 0..=0, locale);
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let digits = format!("{:.0}00", number.abs());
    format!("{sign}{}", in_groups(&digits, locale))
}

/// Rounds halves away from zero, as people do; formatting alone rounds them to even.
fn rounded(number: f64, decimals: usize) -> String {
    let scale = 10f64.powi(i32::try_from(decimals).unwrap_or_default());
    let scaled = (number * scale).round() / scale;
    let exact = if scaled.is_finite() { scaled } else { number };
    format!("{exact:.decimals$}")
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
