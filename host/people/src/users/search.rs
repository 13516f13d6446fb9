//! Search texts and what they are compared with.

use nudge_records::search::fold;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A place in a list of people: the last one that was shown, or where a scan stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserPosition {
    /// Among names: the name in lower case and the alias's number.
    Name(String, i64),
    /// Among subjects.
    Id(Uuid),
    /// Among those with a value that has the text in it; those after this subject are left.
    Value(Uuid),
}

/// A search text, made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The text in lower case, and the first text after all those that begin with it.
    pub names: (String, String),
    /// The first and the last id that begin with the text, if one can.
    pub ids: Option<(Uuid, Uuid)>,
    /// A pattern of SQL's `LIKE` with `\` as its escape.
    pub pattern: String,
}

impl Search {
    /// Makes a text ready.
    pub fn new(text: &str) -> Self {
        let folded = fold(text);
        let mut pattern = String::with_capacity(folded.len() + 2);
        pattern.push('%');
        for letter in folded.chars() {
            if matches!(letter, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern.push('%');
        let end = successor(&folded);
        Self {
            ids: ids(&folded),
            names: (folded, end),
            pattern,
        }
    }
}

/// The first text, by code points, after all that begin with a text.
fn successor(prefix: &str) -> String {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        if last < char::MAX {
            let next = match last {
                '\u{d7ff}' => '\u{e000}',
                _ => char::from_u32(u32::from(last) + 1).unwrap_or(char::MAX),
            };
            letters.push(next);
            return letters.into_iter().collect();
        }
    }
    // Nothing comes after; no name is as long as this.
    char::MAX.to_string().repeat(512)
}

/// The first and last UUID whose text begins with a text in lower case.
fn ids(prefix: &str) -> Option<(Uuid, Uuid)> {
    if prefix.is_empty() || prefix.len() > 36 {
        return None;
    }
    let mut digits = String::with_capacity(32);
    for (place, letter) in prefix.char_indices() {
        match (place, letter) {
            (8 | 13 | 18 | 23, '-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, '0'..='9' | 'a'..='f') => digits.push(letter),
            _ => return None,
        }
    }
    let filled = |with: char| {
        let rest = std::iter::repeat_n(with, 32 - digits.len());
        let text: String = digits.chars().chain(rest).collect();
        u128::from_str_radix(&text, 16).ok().map(Uuid::from_u128)
    };
    Some((filled('0')?, filled('f')?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wildcards_of_sql_are_letters_here() {
        assert_eq!(Search::new(r"50%_\A").pattern, r"%50\%\_\\a%");
    }

    #[test]
    fn what_can_begin_an_id_is_a_range_of_ids() {
        let range = |text: &str| ids(text).map(|(low, high)| (low.to_string(), high.to_string()));
        let (low, high) = range("01234567-8").unwrap();
        assert_eq!(low, "01234567-8000-0000-0000-000000000000");
        assert_eq!(high, "01234567-8fff-ffff-ffff-ffffffffffff");
        assert_eq!(range("01234567-"), range("01234567"));
        let whole = "01234567-89ab-7def-8123-456789abcdef";
        assert_eq!(range(whole), Some((whole.to_owned(), whole.to_owned())));
        for none in [
            "",
            "g",
            "012345678",
            "0123-",
            "-",
            "01234567-89ab-7def-8123-456789abcdef0",
        ] {
            assert_eq!(range(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_in_the_range_exactly_if_it_begins_so(prefix in ".{1,4}", rest in ".{0,4}", other in ".{0,6}") {
            let search = Search::new(&prefix);
            let (low, high) = search.names;
            let within = |text: &str| low.as_str() <= text && text < high.as_str();
            let longer = format!("{low}{rest}");
            prop_assert!(within(&longer));
            prop_assert_eq!(within(&other), other.starts_with(&low));
        }

        #[test]
        fn an_id_is_in_the_range_of_each_of_its_beginnings(number: u128, length in 1_usize..=36) {
            let id = Uuid::from_u128(number);
            let text = id.to_string();
            let (low, high) = ids(&text[..length]).unwrap();
            prop_assert!(low <= id && id <= high);
        }

        #[test]
        fn folding_twice_changes_nothing_more(text: String) {
            let once = fold(&text);
            // Letters such as the Turkish dotted İ fold to several, which stay as they are.
            prop_assert_eq!(fold(&once), once);
        }
    }
}
