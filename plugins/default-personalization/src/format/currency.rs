//! Amounts of money.

use super::{Locale, number};

/// An amount with its currency's symbol, or its code where it has no symbol of its own.
pub(super) fn amount(amount: f64, code: &str, locale: Locale) -> String {
    let decimals = decimals(code);
    let text = number::grouped(amount, decimals..=decimals, locale);
    let symbol = symbol(code);
    if locale.spaced() {
        return format!("{text}\u{a0}{}", symbol.unwrap_or(code));
    }
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |digits| ("-", digits));
    match symbol {
        Some(symbol) => format!("{sign}{symbol}{digits}"),
        None => format!("{sign}{code}\u{a0}{digits}"),
    }
}

/// Digits after the point (ISO 4217).
fn decimals(code: &str) -> usize {
    match code {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX"
        | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

fn symbol(code: &str) -> Option<&'static str> {
    Some(match code {
        "BRL" => "R$",
        "CAD" => "CA$",
        "AUD" => "A$",
        "CNY" => "CN¥",
        "EUR" => "€",
        "GBP" => "£",
        "ILS" => "₪",
        "INR" => "₹",
        "JPY" => "¥",
        "KRW" => "₩",
        "MXN" => "MX$",
        "NZD" => "NZ$",
        "PLN" => "zł",
        "TRY" => "₺",
        "UAH" => "₴",
        "USD" => "$",
        "VND" => "₫",
        _ => return None,
    })
}
