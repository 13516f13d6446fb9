//! What is known of languages.

/// The separators and orders of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locale {
    group: &'static str,
    decimal: &'static str,
    date: DateOrder,
    twelve_hours: bool,
    /// Groups of two before the last three digits.
    lakhs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateOrder {
    MonthFirst,
    DaySlashes,
    DayDots,
    DayHyphens,
    YearFirst,
}

const AMERICAN: Locale = Locale {
    group: ",",
    decimal: ".",
    date: DateOrder::MonthFirst,
    twelve_hours: true,
    lakhs: false,
};

impl Default for Locale {
    fn default() -> Self {
        AMERICAN
    }
}

impl Locale {
    /// The locale of a tag such as `de`, `pt-BR` or `en_GB`. American where the language is not known.
    pub(crate) fn named(tag: &str) -> Self {
        let mut parts = tag.split(['-', '_']);
        let language = parts.next().unwrap_or_default().to_ascii_lowercase();
        let region = parts
            .find(|part| part.len() == 2)
            .unwrap_or_default()
            .to_ascii_uppercase();
        let of = |group, decimal, date| Self {
            group,
            decimal,
            date,
            twelve_hours: false,
            lakhs: false,
        };
        match (language.as_str(), region.as_str()) {
            ("en", "IN") | ("hi", _) => Self {
                twelve_hours: true,
                lakhs: true,
                ..of(",", ".", DateOrder::DaySlashes)
            },
            ("en", "GB" | "IE" | "AU" | "NZ" | "ZA") | ("es", "MX" | "US") => {
                of(",", ".", DateOrder::DaySlashes)
            }
            ("de", "CH" | "LI") => of("’", ".", DateOrder::DayDots),
            ("de" | "da" | "tr", _) => of(".", ",", DateOrder::DayDots),
            ("es" | "it" | "pt" | "id" | "vi" | "el", _) => of(".", ",", DateOrder::DaySlashes),
            ("nl", _) => of(".", ",", DateOrder::DayHyphens),
            ("fr", _) => of("\u{202f}", ",", DateOrder::DaySlashes),
            ("pl" | "cs" | "sk" | "fi" | "nb" | "no" | "ru" | "uk" | "bg", _) => {
                of("\u{a0}", ",", DateOrder::DayDots)
            }
            ("sv", _) => of("\u{a0}", ",", DateOrder::YearFirst),
            ("ja" | "zh" | "ko", _) => of(",", ".", DateOrder::YearFirst),
            _ => AMERICAN,
        }
    }

    pub(crate) fn group(self) -> &'static str {
        self.group
    }

    pub(crate) fn decimal(self) -> &'static str {
        self.decimal
    }

    pub(crate) fn date_order(self) -> DateOrder {
        self.date
    }

    pub(crate) fn twelve_hours(self) -> bool {
        self.twelve_hours
    }

    pub(crate) fn lakhs(self) -> bool {
        self.lakhs
    }

    /// Whether units stand behind numbers with a space between: where the decimal separator is a comma.
    pub(crate) fn spaced(self) -> bool {
        self.decimal == ","
    }
}
