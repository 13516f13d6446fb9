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
    /// Whether a text is a language tag: a language, perhaps a script, a region and variants (BCP 47; `_` is taken for `-`),
    /// and what else Unicode says of a locale from `u`, `t` or `x` on.
    pub(crate) fn is_tag(text: &str) -> bool {
        let letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let named = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mut parts = text.split(['-', '_']).peekable();
        let language = parts.next().unwrap_or_default();
        if !matches!(language.len(), 2 | 3) || !letters(language) {
            return false;
        }
        parts.next_if(|part| part.len() == 4 && letters(part));
        parts.next_if(|part| match part.len() {
            2 => letters(part),
            3 => digits(part),
            _ => false,
        });
        let is_variant = |part: &str| match part.len() {
            4 => part.starts_with(|first: char| first.is_ascii_digit()) && named(part),
            5..=8 => named(part),
            _ => false,
        };
        while parts.next_if(|part| is_variant(part)).is_some() {}
        match parts.next() {
            None => true,
            Some("u" | "U" | "t" | "T" | "x" | "X") => {
                parts.peek().is_some()
                    && parts.all(|part| matches!(part.len(), 1..=8) && named(part))
            }
            Some(_) => false,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_told_from_other_texts() {
        for tag in [
            "de",
            "pt-BR",
            "en_GB",
            "zh-Hant-TW",
            "es-419",
            "sl-rozaj",
            "de-CH-1996",
            "de-u-co-phonebk",
            "haw",
            "xx",
        ] {
            assert!(Locale::is_tag(tag), "{tag}");
        }
        for text in [
            "",
            "d",
            "english",
            "12",
            "de-",
            "de--DE",
            "de DE",
            "not-a-locale",
            "de-DE-AT",
            "de-u",
            "d\u{e9}",
            "en/US",
            "en-US.UTF-8",
        ] {
            assert!(!Locale::is_tag(text), "{text}");
        }
    }
}
