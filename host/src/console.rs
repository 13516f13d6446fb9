//! The console at `/console/`: its files, and the routes of signing in (contract 22); and the pages of the API at
//! `/docs`, which are of the same making.
//!
//! The files are those of `console/app`, embedded. All but the two pages are at addresses that name the version of all
//! of them: an old page never meets new scripts, and nothing is asked for twice.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Redirect, Response};
use axum::routing::{MethodRouter, get};
use nudge_apps::console::http::OwnHost;
use nudge_http::{ApiError, Code};

use crate::assets::{self, Asset};
use crate::services::Shared;

/// What the build script makes of `console/app`.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/console.rs"));
}

/// The pages' tag: the version of all files.
const TAG: HeaderValue = HeaderValue::from_static(embedded::TAG);
/// What a server in production says of itself to who asks for no page.
const HOME: &str = "This is Nudge. The API is described at /docs, the console is at /console/.\n";

/// The routes of the console.
pub fn routes() -> Router<Shared> {
    let slash = || std::future::ready(Redirect::temporary("/console/"));
    let no_slash = || std::future::ready(Redirect::temporary("/docs"));
    Router::new()
        .route("/console", get(slash))
        .route("/console/", page(&embedded::PAGE))
        .route("/docs", docs())
        .route("/docs/", get(no_slash))
        .route("/console/{version}/{*path}", get(file))
}

/// What is at the server's own address: the way to the console in embedded mode, otherwise a line that says what this is.
pub fn home(embedded: bool) -> Router<Shared> {
    let home = if embedded {
        get(|| std::future::ready(Redirect::temporary("/console/")))
    } else {
        get(|| std::future::ready(HOME))
    };
    Router::new().route("/", home)
}

fn page(asset: &'static Asset) -> MethodRouter<Shared> {
    get(move |_: OwnHost, asked: HeaderMap| std::future::ready(asset.fresh(&asked, &TAG)))
}

/// As the document that it shows, under any name of the server, with the files that it needs.
fn docs() -> MethodRouter<Shared> {
    get(|asked: HeaderMap| std::future::ready(embedded::DOCS.fresh(&asked, &TAG)))
}

async fn file(
    Path((version, path)): Path<(String, String)>,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let found = embedded::FILES.iter().find(|asset| asset.path == path);
    let asset = found
        .filter(|_| version == embedded::VERSION)
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, assets::IMMUTABLE);
    Ok(asset.answer(&asked, headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [&Asset; 2] = [&embedded::PAGE, &embedded::DOCS];

    #[test]
    fn pages_name_the_version_and_have_nothing_inline() {
        for page in PAGES {
            let html = str::from_utf8(page.plain).unwrap();
            assert!(html.contains(&format!("/console/{}/", embedded::VERSION)));
            assert!(!html.contains("{{HASH}}"));
            assert!(!html.contains("<style") && !html.contains("style="));
            for script in html.split("<script").skip(1) {
                let (attributes, rest) = script.split_once('>').unwrap();
                assert!(attributes.contains("src=\"/console/"), "{attributes}");
                assert!(rest.starts_with("</script>"), "a script is inline");
            }
        }
    }

    #[test]
    fn every_file_has_a_media_type_and_all_are_small() {
        let all = || embedded::FILES.iter().chain(PAGES);
        for asset in all() {
            assert_ne!(
                asset.media_type(),
                "application/octet-stream",
                "{}",
                asset.path
            );
            assert!(asset.brotli.len() < asset.plain.len(), "{}", asset.path);
        }
        let sent = |asset: &Asset| match asset.brotli.len() {
            0 => asset.plain.len(),
            length => length,
        };
        assert!(all().map(sent).sum::<usize>() <= 150 * 1024);
    }
}
