//! The web SDK's bundles, which pages load from the server (contract 23).
//!
//! They are made of `web-sdk` by its `build.mjs` and embedded, so that building a server takes no Node. A bundle names
//! those that it loads by their digest: under that address they never change.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use nudge_platform::secrets::hexadecimal;
use sha2::{Digest as _, Sha256};

use crate::assets;
use crate::services::Shared;

/// Hexadecimal digits of a digest in an address; `build.mjs` has the same.
const DIGEST_DIGITS: usize = 16;
/// An address without one, or with another: a new server's SDK reaches pages within five minutes.
const SHORT: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// Where the service worker may work, wherever its script is.
const WORKER_SCOPE: HeaderValue = HeaderValue::from_static("/nudge/");
/// A service worker obeys the policy that its script comes with. Ours sends to the server that it comes from.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; connect-src 'self'; frame-ancestors 'none'");

/// The bundles, as the build script has read and compressed them.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/web_sdk.rs"));
}

/// A bundle, ready to be sent.
struct Bundle {
    name: &'static str,
    plain: Bytes,
    gzip: Bytes,
    digest: String,
    tag: HeaderValue,
}

/// All of them. Made once; a reader costs a reference.
static MADE: LazyLock<Vec<Arc<Bundle>>> = LazyLock::new(|| {
    let bundles = embedded::BUNDLES.iter();
    bundles
        .map(|(name, text, gzip)| Arc::new(Bundle::new(name, text, gzip)))
        .collect()
});

impl Bundle {
    fn new(name: &'static str, text: &'static str, gzip: &'static [u8]) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let mut digest = hexadecimal(&hash);
        digest.truncate(DIGEST_DIGITS);
        Self {
            name,
            plain: Bytes::from_static(text.as_bytes()),
            gzip: Bytes::from_static(gzip),
            tag: HeaderValue::try_from(format!("\"{digest}\"")).unwrap_or(SHORT),
            digest,
        }
    }

    fn answer(&self, query: Option<&str>, asked: &HeaderMap) -> Response {
        let named = query
            .unwrap_or_default()
            .split('&')
            .any(|pair| pair.strip_prefix("v=") == Some(&self.digest));
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, self.tag.clone());
        let cache = if named { assets::IMMUTABLE } else { SHORT };
        headers.insert(header::CACHE_CONTROL, cache);
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        // Modules are fetched with CORS, from whichever page. There is nothing in them that not everybody may read.
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("*"),
        );
        headers.insert(
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("cross-origin"),
        );
        if assets::is_known(asked, &self.tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/javascript; charset=utf-8"),
        );
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        if self.name == "worker.js" {
            headers.insert(
                HeaderName::from_static("service-worker-allowed"),
                WORKER_SCOPE,
            );
        }
        if assets::takes(asked, "gzip") {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return (headers, self.gzip.clone()).into_response();
        }
        (headers, self.plain.clone()).into_response()
    }
}

/// The routes of the bundles.
pub fn routes() -> Router<Shared> {
    MADE.iter().fold(Router::new(), |router, bundle| {
        let served = Arc::clone(bundle);
        let handler = move |RawQuery(query): RawQuery, asked: HeaderMap| {
            std::future::ready(served.answer(query.as_deref(), &asked))
        };
        router.route(&format!("/sdk/v1/{}", bundle.name), get(handler))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(name: &str) -> Arc<Bundle> {
        let found = MADE.iter().find(|bundle| bundle.name == name);
        Arc::clone(found.unwrap())
    }

    /// Contract 23: what a page has to load.
    #[test]
    fn bundles_are_small() {
        for (name, most_kib) in [
            ("nudge.js", 10),
            ("nudge.mjs", 10),
            ("surveys.mjs", 16),
            ("worker.js", 2),
        ] {
            let bytes = bundle(name).gzip.len();
            assert!(bytes > 0 && bytes <= most_kib * 1024, "{name}: {bytes}");
        }
    }

    #[test]
    fn bundles_name_the_ones_that_they_load() {
        for core in ["nudge.js", "nudge.mjs"] {
            let text = String::from_utf8(bundle(core).plain.to_vec()).unwrap();
            for part in ["surveys.mjs", "worker.js"] {
                let named = format!("{part}?v={}", bundle(part).digest);
                assert!(text.contains(&named), "{core} does not load {named}");
            }
        }
    }
}
