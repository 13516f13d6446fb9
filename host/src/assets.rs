//! Embedded files for browsers, and what answers of them have in common: what the reader takes, and what it has already.

use std::io::Read as _;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use nudge_http::ApiError;

use crate::openapi::{OPENER_POLICY, PAGE_POLICY, SAME_ORIGIN};

/// An address that names what it leads to.
pub(crate) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");
/// What is decompressed at a time.
const BUFFER_BYTES: usize = 16 * 1024;
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// An embedded file.
pub(crate) struct Asset {
    /// Its path in the folder.
    pub(crate) path: &'static str,
    /// As it is; empty where it is embedded compressed alone, for the few who take that only.
    pub(crate) plain: &'static [u8],
    /// Compressed; empty where that is no shorter.
    pub(crate) brotli: &'static [u8],
}

impl Asset {
    pub(crate) fn media_type(&self) -> &'static str {
        let extension = self.path.rsplit_once('.').map_or("", |(_, end)| end);
        match extension {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "js" | "mjs" => "text/javascript; charset=utf-8",
            "json" | "map" => "application/json",
            "md" | "txt" => "text/plain; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "woff2" => "font/woff2",
            _ => "application/octet-stream",
        }
    }

    /// The file as it is.
    pub(crate) fn unpacked(&self) -> std::io::Result<Bytes> {
        if !self.plain.is_empty() {
            return Ok(Bytes::from_static(self.plain));
        }
        let mut plain = Vec::new();
        brotli::Decompressor::new(self.brotli, BUFFER_BYTES).read_to_end(&mut plain)?;
        Ok(plain.into())
    }

    /// Sends the file, compressed to who takes that.
    pub(crate) fn answer(&self, asked: &HeaderMap, mut headers: HeaderMap) -> Response {
        let media_type = HeaderValue::from_static(self.media_type());
        headers.insert(header::CONTENT_TYPE, media_type);
        headers.insert(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
        headers.insert(OPENER_POLICY, SAME_ORIGIN);
        headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if !self.brotli.is_empty() && takes(asked, "br") {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
            return (headers, Bytes::from_static(self.brotli)).into_response();
        }
        match self.unpacked() {
            Ok(bytes) => (headers, bytes).into_response(),
            Err(error) => ApiError::internal(error).into_response(),
        }
    }

    /// Sends the file of an address that stays while the file changes. Nothing is sent to who has it already.
    pub(crate) fn fresh(&self, asked: &HeaderMap, tag: &HeaderValue) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, tag.clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if is_known(asked, tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        self.answer(asked, headers)
    }
}

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
