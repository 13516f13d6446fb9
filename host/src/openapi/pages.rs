//! Pages that everybody may read. Each is made once: a reader costs a reference to it, not a copy.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use nudge_http::{ApiError, Code};
use serde::Serialize;

use crate::router;
use crate::services::Shared;

/// What a page for browsers may do (contract 22): run the server's own scripts and styles, none of which is inline,
/// ask the server itself, and be in nobody's frame.
pub(crate) const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'",
);
/// What anything else may do in a browser that takes it for a page: nothing.
const DATA_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Windows of other sites have no hold of a page's.
pub(crate) const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
/// For the server's own pages alone.
pub(crate) const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// What is answered again and again. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Page {
    content_type: HeaderValue,
    policy: HeaderValue,
    bytes: Bytes,
}

impl Page {
    /// A JSON document.
    pub fn json(document: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self {
            content_type: HeaderValue::from_static("application/json"),
            policy: DATA_POLICY,
            bytes: serde_json::to_vec(document)?.into(),
        })
    }

    /// A text for browsers.
    pub(crate) fn text(content_type: &'static str, text: &'static str) -> Self {
        Self {
            content_type: HeaderValue::from_static(content_type),
            policy: PAGE_POLICY,
            bytes: Bytes::from_static(text.as_bytes()),
        }
    }

    pub(crate) fn route(self) -> MethodRouter<Shared> {
        get(move || std::future::ready(self.clone()))
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let head = [
            (header::CONTENT_TYPE, self.content_type),
            (header::CONTENT_SECURITY_POLICY, self.policy),
            (OPENER_POLICY, SAME_ORIGIN),
        ];
        (head, self.bytes).into_response()
    }
}

/// The API's description, and what is to be known of the embedded issuer.
pub fn routes(services: &Shared) -> serde_json::Result<Router<Shared>> {
    let description = Arc::new(OnceLock::new());
    let describe = move |State(services): State<Shared>| {
        std::future::ready(described(&services, &description))
    };
    let discovery = Page::json(&services.issuer.discovery(&services.public_url))?;
    // With other issuers configured there is no embedded one.
    let discover = move |State(services): State<Shared>| {
        let embedded = services.access_tokens.are_embedded();
        let page = embedded.then(|| discovery.clone());
        std::future::ready(page.ok_or_else(|| ApiError::new(Code::NotFound)))
    };
    // The keys sign receipts of deletions, whoever issues access tokens.
    let key_set = Page::json(&services.issuer.key_set())?;
    Ok(Router::new()
        .route("/openapi.json", get(describe))
        .route("/.well-known/openid-configuration", get(discover))
        .route("/.well-known/jwks.json", key_set.route()))
}

/// The API's description. Its first reader has it made, as most servers are never asked for it.
fn described(services: &Shared, made: &OnceLock<Page>) -> Result<Page, ApiError> {
    if let Some(page) = made.get() {
        return Ok(page.clone());
    }
    let (_, document) = router::api(services);
    let document = super::finish(document).map_err(ApiError::internal)?;
    let page = Page::json(&document).map_err(ApiError::internal)?;
    Ok(made.get_or_init(|| page).clone())
}

/// Headers that keep browsers from guessing, framing, running and keeping. An answer that nothing has changed gets none:
/// what it says takes the place of what the browser has stored with the file (RFC 9111, section 4.3.4).
pub fn add_security_headers(response: &mut Response) {
    if response.status() == StatusCode::NOT_MODIFIED {
        return;
    }
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        HeaderName::from_static("referrer-policy"),
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(DATA_POLICY);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_readers_share_a_page() {
        let page = Page::json(&vec!["text"; 100]).unwrap();
        assert_eq!(page.bytes.as_ptr(), page.clone().bytes.as_ptr());
    }
}
