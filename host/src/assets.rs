//! What answers of embedded files have in common: what the reader takes, and what it has already.

use axum::http::{HeaderMap, HeaderValue, header};

/// An address that names what it leads to.
pub(crate) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// Whether one of the tags that the reader has is this one. Proxies that compress make them weak.
pub(crate) fn is_known(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = asked.get(header::IF_NONE_MATCH);
    let known = known.and_then(|known| known.to_str().ok());
    known.unwrap_or_default().split(',').any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes()
    })
}

/// Whether `Accept-Encoding` has a coding and does not refuse it.
pub(crate) fn takes(asked: &HeaderMap, coding: &str) -> bool {
    let values = asked.get_all(header::ACCEPT_ENCODING).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|taken| {
            let mut parts = taken.split(';').map(str::trim);
            let is_it = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case(coding));
            is_it && !parts.any(|weight| weight.trim_end_matches(['0', '.']) == "q=")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn encodings_are_asked_for() {
        for yes in ["gzip", "br, GZIP;q=0.5", "deflate, gzip; q=1"] {
            assert!(takes(&asked(header::ACCEPT_ENCODING, yes), "gzip"), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "x-gzip-like"] {
            assert!(!takes(&asked(header::ACCEPT_ENCODING, no), "gzip"), "{no}");
        }
    }

    #[test]
    fn tags_are_known_strong_or_weak() {
        let tag = HeaderValue::from_static("\"a\"");
        for yes in ["\"a\"", "\"b\", W/\"a\"", "*"] {
            assert!(is_known(&asked(header::IF_NONE_MATCH, yes), &tag), "{yes}");
        }
        for no in ["", "a", "\"b\""] {
            assert!(!is_known(&asked(header::IF_NONE_MATCH, no), &tag), "{no}");
        }
    }
}
