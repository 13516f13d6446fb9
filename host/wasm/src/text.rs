//! Texts of plugins, made fit for people and their terminals.

/// A text without control characters, cut at a number of characters.
pub(crate) fn shown(text: &str, characters: usize) -> String {
    let mut shown: String = text.chars().take(characters).map(visible).collect();
    if text.chars().nth(characters).is_some() {
        shown.push('…');
    }
    shown
}

/// A control character's stand-in. Terminals obey control characters, and log files break at them.
pub(crate) fn visible(character: char) -> char {
    if character.is_control() && character != '\t' {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

/// The first names of a list, and how many more there are.
pub(crate) fn listed(names: &[String], most: usize, characters: usize) -> String {
    let mut list: Vec<String> = names
        .iter()
        .take(most)
        .map(|name| shown(name, characters))
        .collect();
    if names.len() > most {
        list.push(format!("and {} more", names.len() - most));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(shown("äöü", 3), "äöü");
        assert_eq!(shown("äöü", 2), "äö…");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            shown("a\u{1b}[1m\r\n\tb\0", 20),
            "a\u{fffd}[1m\u{fffd}\u{fffd}\tb\u{fffd}"
        );
    }

    #[test]
    fn lists_say_what_they_leave_out() {
        let names = ["one", "three", "two"].map(str::to_owned);
        assert_eq!(listed(&names, 3, 3), "one, thr…, two");
        assert_eq!(listed(&names, 1, 9), "one, and 2 more");
    }
}
