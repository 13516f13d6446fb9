//! How texts are folded, so that searches ignore case.

/// A text as searches compare it: in lower case, with one form of the Greek sigma at the ends of words and within them,
/// without NUL, which PostgreSQL does not store.
pub fn fold(text: &str) -> String {
    text.chars()
        .filter(|letter| *letter != '\0')
        .flat_map(char::to_lowercase)
        .map(|letter| if letter == 'ς' { 'σ' } else { letter })
        .collect()
}
