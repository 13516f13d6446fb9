//! The language that a request asks for (RFC 9110, 12.5.4): it decides what somebody is shown whose own is not known yet.

use axum::http::{HeaderMap, header};
use nudge_campaigns::surveys::localization::is_locale;

/// The longest header that is read, in bytes.
const MOST_BYTES: usize = 1_000;

/// The language that a request prefers to all others; none: it names none.
pub(super) fn preferred(headers: &HeaderMap) -> Option<&str> {
    let ranges = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
    if ranges.len() > MOST_BYTES {
        return None;
    }
    let mut best: Option<(&str, f32)> = None;
    for range in ranges.split(',') {
        let (tag, weight) = range
            .split_once(';')
            .map_or((range, 1.0), |(tag, parameter)| (tag, weight_of(parameter)));
        let tag = tag.trim();
        // Of two with one weight the first is preferred.
        let is_better = weight > best.map_or(0.0, |(_, most)| most);
        if is_better && is_locale(tag) {
            best = Some((tag, weight));
        }
    }
    best.map(|(tag, _)| tag)
}

/// The weight that a parameter gives; what gives none that is one has none.
fn weight_of(parameter: &str) -> f32 {
    let parameter = parameter.trim();
    let weight = parameter
        .strip_prefix("q=")
        .or(parameter.strip_prefix("Q="));
    let weight: Option<f32> = weight.and_then(|weight| weight.parse().ok());
    let weight = weight.filter(|weight| (0.0_f32..=1.0).contains(weight));
    weight.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_the_greatest_weight_is_preferred() {
        let long = format!("de{}", ", en".repeat(MOST_BYTES));
        for (ranges, preferred_one) in [
            ("de-AT", Some("de-AT")),
            ("de, en", Some("de")),
            ("fr;q=0.5, de-AT, en;q=0.9", Some("de-AT")),
            ("fr ; q=0.5,de;Q=0.700 , en; q=0.6", Some("de")),
            ("*, de;q=0.1", Some("de")),
            ("de;q=0", None),
            ("de;q=7, en;q=nan, fr;q=-1, it;level=1", None),
            ("*", None),
            ("", None),
            (", ;;, d e, <script>", None),
            ("x-very-much-longer-than-any-locale-that-there-is", None),
            (long.as_str(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, ranges.parse().unwrap());
            assert_eq!(preferred(&headers), preferred_one, "{ranges}");
        }
        assert_eq!(preferred(&HeaderMap::new()), None);
    }
}
