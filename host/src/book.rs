//! The book at `/docs/book/`: the documents of `host/docs` as pages, made by the build script.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Redirect, Response};
use axum::routing::get;
use nudge_http::{ApiError, Code};

use crate::assets::Asset;
use crate::services::Shared;

/// What the build script makes of `docs` and `book`.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/book.rs"));
}

/// The tag of every file: the version of all.
const TAG: HeaderValue = HeaderValue::from_static(embedded::TAG);
const FIRST: &str = "index.html";

/// The routes of the book. Nothing of it is anybody's, so that it is read under any name of the server.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/docs/book",
            get(|| std::future::ready(Redirect::permanent("/docs/book/"))),
        )
        .route(
            "/docs/book/",
            get(async |asked: HeaderMap| page(FIRST, &asked)),
        )
        .route(
            "/docs/book/{*path}",
            get(async |Path(path): Path<String>, asked: HeaderMap| page(&path, &asked)),
        )
}

fn page(path: &str, asked: &HeaderMap) -> Result<Response, ApiError> {
    let mut files = embedded::FILES.iter();
    let file = files.find(|file| file.path == path);
    let file: &Asset = file.ok_or_else(|| ApiError::new(Code::NotFound))?;
    Ok(file.fresh(asked, &TAG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_media_type_and_all_are_small() {
        let mut sent = 0;
        for file in embedded::FILES {
            assert_ne!(
                file.media_type(),
                "application/octet-stream",
                "{}",
                file.path
            );
            sent += match file.brotli.len() {
                0 => file.plain.len(),
                length => length,
            };
        }
        assert!(sent <= 400 * 1024, "{sent} bytes are sent");
    }

    #[test]
    fn pages_have_nothing_inline() {
        let pages = embedded::FILES.iter();
        for page in pages.filter(|file| file.media_type().starts_with("text/html")) {
            let html = page.unpacked().unwrap();
            let html = str::from_utf8(&html).unwrap();
            assert!(
                !html.contains("<style") && !html.contains("style="),
                "{}",
                page.path
            );
            for mark in ["{{root}}", "{{title}}", "{{list}}", "{{content}}"] {
                assert!(!html.contains(mark), "{}: {mark}", page.path);
            }
            for script in html.split("<script").skip(1) {
                let (tag, rest) = script.split_once('>').unwrap();
                assert!(
                    tag.contains(" src=") && rest.starts_with("</script>"),
                    "{}",
                    page.path
                );
            }
        }
    }
}
