//! Names of events, as Nudge writes them.

/// A name in snake case: `Order Completed` and `OrderCompleted` are `order_completed`. One without letters and digits
/// stays as it is.
pub(super) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut written = String::with_capacity(name.len() + 4);
    for (place, letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            if !written.is_empty() && !written.ends_with('_') {
                written.push('_');
            }
            continue;
        }
        let before = place.checked_sub(1).and_then(|place| letters.get(place));
        let begins_word = is_capital(*letter)
            && before.is_some_and(|before| {
                let ends_word = before.is_lowercase() || before.is_numeric();
                let next_is_small = letters
                    .get(place + 1)
                    .is_some_and(|next| next.is_lowercase());
                ends_word || is_capital(*before) && next_is_small
            });
        if begins_word && !written.ends_with('_') {
            written.push('_');
        }
        // Of some capitals, marks would be left that are no letters.
        written.extend(
            letter
                .to_lowercase()
                .filter(|small| small.is_alphanumeric()),
        );
    }
    let written = written.trim_end_matches('_');
    if written.is_empty() {
        return name.to_owned();
    }
    written.to_owned()
}

/// Whether a letter has a small one. Not every capital has.
fn is_capital(letter: char) -> bool {
    !letter.to_lowercase().eq([letter])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_snake_case() {
        for (name, expected) in [
            ("Order Completed", "order_completed"),
            ("OrderCompleted", "order_completed"),
            ("order_completed", "order_completed"),
            ("  order--completed!  ", "order_completed"),
            ("HTTPServer Error 500Times", "http_server_error_500_times"),
            ("Größe geändert", "größe_geändert"),
            ("$exposed", "exposed"),
            ("a", "a"),
            ("!!!", "!!!"),
            ("", ""),
        ] {
            assert_eq!(snake_case(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_in_snake_case_stays_as_it_is(name in "\\PC{0,40}") {
            let once = snake_case(&name);
            prop_assert_eq!(snake_case(&once), once);
        }
    }
}
