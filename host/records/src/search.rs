//! Search.

/// A text as searches compare it: in lower case, without NUL, which PostgreSQL does not store.
pub fn fold(text: &str) -> String {
    text.chars()
        .filter(|letter| *letter != '\0')
        .flat_map(char::to_lowercase)
        .collect()
}
