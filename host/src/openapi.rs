//! The API's description, and what else describes the server.

mod finish;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Html;
use serde::Serialize;
use serde_json::Value;
use utoipa::{OpenApi, ToSchema};

use crate::http::error::Problem;
use crate::http::{ApiError, Code, Data};
use crate::services::Shared;

pub use finish::finish;

/// What the document says besides its routes.
#[derive(Debug, OpenApi)]
#[openapi(
    info(title = "Nudge", description = "Engagement server whose decisions are WebAssembly plugins."),
    components(schemas(Problem)),
    tags(
        (name = "apps", description = "Apps, their keys and settings."),
        (name = "sdk", description = "For SDKs and customers' servers."),
        (name = "surveys", description = "Survey campaigns."),
        (name = "event definitions", description = "What events must look like."),
        (name = "dead letters", description = "Events that failed, and their replay."),
        (name = "plugins", description = "The plugins that decide in an app."),
        (name = "operator", description = "The server's own plugins, which every app has."),
        (name = "audit", description = "Who changed what."),
        (name = "privacy", description = "Copies of what is stored of a person, and its deletion."),
        (name = "meta", description = "About the API.")
    )
)]
pub struct Document;

/// An error code and what it means.
#[derive(Debug, Serialize, ToSchema)]
pub struct CodeView {
    code: &'static str,
    status: u16,
    meaning: &'static str,
}

/// Lists every error code with its status and meaning.
#[utoipa::path(get, path = "/v1/errors", tag = "meta", responses((status = 200, body = Data<Vec<CodeView>>)))]
pub async fn list_errors() -> Data<Vec<CodeView>> {
    let view = |code: &Code| CodeView {
        code: code.name(),
        status: code.status().as_u16(),
        meaning: code.meaning(),
    };
    Data {
        data: Code::ALL.iter().map(view).collect(),
    }
}

/// The embedded issuer's discovery document.
pub async fn discovery(State(services): State<Shared>) -> Result<Json<Value>, ApiError> {
    embedded(&services)?;
    Ok(Json(services.issuer.discovery(&services.public_url)))
}

/// The keys of the embedded issuer, which sign receipts of deletions whoever issues access tokens.
pub async fn key_set(State(services): State<Shared>) -> Json<Value> {
    Json(services.issuer.key_set())
}

/// With other issuers configured there is no embedded one.
fn embedded(services: &Shared) -> Result<(), ApiError> {
    if services.access_tokens.are_embedded() {
        Ok(())
    } else {
        Err(ApiError::new(Code::NotFound))
    }
}

/// The API's pages: made from `/openapi.json` in the browser, without anything from elsewhere.
pub async fn docs() -> Html<&'static str> {
    Html(include_str!("docs.html"))
}

/// Headers that keep browsers from guessing and framing.
pub fn add_security_headers(headers: &mut HeaderMap) {
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        HeaderName::from_static("referrer-policy"),
        HeaderValue::from_static("no-referrer"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use regex_lite::Regex;

    /// The description has one place for a name, and the last schema that takes it wins.
    #[test]
    fn no_two_schemas_have_one_name() {
        let named =
            Regex::new(r"derive\([^)]*\bToSchema\b[^)]*\)\]\s*((?:#\[[^\n]*\n\s*)*)[^\n]*?\b(?:struct|enum) (\w+)")
                .unwrap();
        let renamed = Regex::new(r"schema\(as = (\w+)").unwrap();
        let mut places = BTreeMap::new();
        for (file, text) in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            for found in named.captures_iter(&text) {
                let renamed = renamed.captures(&found[1]).map(|found| found[1].to_owned());
                let name = renamed.unwrap_or_else(|| found[2].to_owned());
                if let Some(other) = places.insert(name.clone(), file.clone()) {
                    panic!("{name} is in {other} and in {file}: rename one by #[schema(as = …)]");
                }
            }
        }
        assert!(places.contains_key("Problem"), "{places:?}");
    }

    fn sources(folder: &Path) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files.extend(sources(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.display().to_string(), text));
            }
        }
        files
    }
}
