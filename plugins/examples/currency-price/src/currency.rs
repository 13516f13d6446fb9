//! How amounts of a currency are written.

/// A currency.
#[derive(Debug)]
pub(crate) struct Currency {
    /// Its ISO 4217 code.
    pub(crate) code: &'static str,
    symbol: &'static str,
    /// Whether the symbol comes first.
    leading: bool,
    decimals: usize,
    thousands: char,
    point: char,
    /// The ISO 3166 codes of the countries that use it.
    countries: &'static [&'static str],
}

const fn currency(
    code: &'static str,
    (symbol, leading): (&'static str, bool),
    decimals: usize,
    (thousands, point): (char, char),
    countries: &'static [&'static str],
) -> Currency {
    Currency {
        code,
        symbol,
        leading,
        decimals,
        thousands,
        point,
        countries,
    }
}

const CURRENCIES: [Currency; 5] = [
    currency(
        "EUR",
        ("€", false),
        2,
        ('.', ','),
        &["AT", "DE", "ES", "FI", "FR", "IE", "IT", "NL", "PT"],
    ),
    currency("USD", ("$", true), 2, (',', '.'), &["US"]),
    currency("GBP", ("£", true), 2, (',', '.'), &["GB"]),
    currency("CHF", ("CHF\u{a0}", true), 2, ('’', '.'), &["CH", "LI"]),
    currency("JPY", ("¥", true), 0, (',', '.'), &["JP"]),
];

impl Currency {
    pub(crate) fn of_code(code: &str) -> Option<&'static Self> {
        CURRENCIES.iter().find(|currency| currency.code == code)
    }

    pub(crate) fn of_country(country: &str) -> Option<&'static Self> {
        CURRENCIES
            .iter()
            .find(|currency| currency.countries.contains(&country))
    }

    pub(crate) fn codes() -> String {
        CURRENCIES.map(|currency| currency.code).join(", ")
    }

    /// Writes an amount, rounded to what the currency has.
    pub(crate) fn write(&self, amount: f64) -> String {
        let digits = format!("{:.*}", self.decimals, amount.abs());
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let mut number = String::new();
        for (index, digit) in whole.char_indices() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                number.push(self.thousands);
            }
            number.push(digit);
        }
        if !fraction.is_empty() {
            number.push(self.point);
            number.push_str(fraction);
        }
        let negative = amount < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
        let sign = if negative { "-" } else { "" };
        if self.leading {
            format!("{sign}{}{number}", self.symbol)
        } else {
            format!("{sign}{number}\u{a0}{}", self.symbol)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_currency_is_written_its_own_way() {
        let write = |code, amount| Currency::of_code(code).unwrap().write(amount);
        assert_eq!(write("EUR", 1_234_567.891), "1.234.567,89\u{a0}€");
        assert_eq!(write("USD", -999.999), "-$1,000.00");
        assert_eq!(write("JPY", 1634.5), "¥1,634");
        assert_eq!(write("CHF", 0.05), "CHF\u{a0}0.05");
        assert_eq!(write("GBP", -0.001), "£0.00");
        assert_eq!(Currency::of_country("LI").unwrap().code, "CHF");
    }
}
