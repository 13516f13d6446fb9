//! The API's description, and what else describes the server.

mod cases;
pub mod examples;
mod finish;
pub mod operations;
mod pages;
mod patches;
mod questions;
mod shapes;
mod webhooks;

use std::sync::OnceLock;

use axum::http::StatusCode;
use nudge_http::error::Problem;
use nudge_http::{ApiError, Code, Data};
use nudge_ingest::submission::EVENT_CODES;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

pub use finish::finish;
pub(crate) use pages::{OPENER_POLICY, PAGE_POLICY, SAME_ORIGIN};
pub use pages::{Page, add_security_headers, routes};

/// What the document says besides its routes.
#[derive(Debug, OpenApi)]
#[openapi(
    info(title = "Nudge", description = "Engagement server whose decisions are WebAssembly plugins."),
    components(schemas(Problem)),
    tags(
        (name = "apps", description = "Apps, their keys and settings."),
        (name = "sdk", description = "For SDKs and customers' servers."),
        (name = "surveys", description = "Survey campaigns."),
        (name = "push", description = "Push and in-app campaigns, their deliveries and results, credentials, sends that backends ask for."),
        (name = "segments", description = "Conditions with a name: who is in, who enters, who leaves."),
        (name = "users", description = "People, their properties and timelines."),
        (name = "events", description = "Events as they come, of all people of an app."),
        (name = "event definitions", description = "What events must look like."),
        (name = "decisions", description = "What plugins decided, why, and the same decision made again."),
        (name = "dead letters", description = "Events that failed, and their replay."),
        (name = "plugins", description = "The plugins that decide in an app."),
        (name = "operator", description = "The server's own plugins, which every app has."),
        (name = "jobs", description = "Work that goes on after its request was answered."),
        (name = "audit", description = "Who changed what."),
        (name = "privacy", description = "Copies of what is stored of a person, and its deletion."),
        (name = "webhooks", description = "What endpoints of customers are sent."),
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

/// Lists every error code with its status and meaning. Codes of events that are rejected in the answer of an ingest that
/// succeeds have its status.
#[utoipa::path(get, path = "/v1/errors", tag = "meta", responses((status = 200, body = Data<Vec<CodeView>>)))]
pub async fn list_errors() -> Result<Page, ApiError> {
    static PAGE: OnceLock<Page> = OnceLock::new();
    if let Some(page) = PAGE.get() {
        return Ok(page.clone());
    }
    let view = |code: &Code| CodeView {
        code: code.name(),
        status: code.status().as_u16(),
        meaning: code.meaning(),
    };
    let of_event = |(code, meaning)| CodeView {
        code,
        status: StatusCode::OK.as_u16(),
        meaning,
    };
    let of_events = EVENT_CODES.into_iter().map(of_event);
    let codes: Vec<CodeView> = Code::ALL.iter().map(view).chain(of_events).collect();
    let page = Page::json(&Data { data: codes }).map_err(ApiError::internal)?;
    Ok(PAGE.get_or_init(|| page).clone())
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
        // The packages are folders beside this one's `src`.
        for (file, text) in sources(Path::new(env!("CARGO_MANIFEST_DIR"))) {
            for found in named.captures_iter(&text) {
                let renamed = renamed.captures(&found[1]).map(|found| found[1].to_owned());
                let name = renamed.unwrap_or_else(|| found[2].to_owned());
                if let Some(other) = places.insert(name.clone(), file.clone()) {
                    panic!("{name} is in {other} and in {file}: rename one by #[schema(as = …)]");
                }
            }
        }
        assert!(places.contains_key("Problem"), "{places:?}");
        let shapes: serde_json::Value =
            serde_json::from_str(include_str!("openapi/shapes.json")).unwrap();
        for name in shapes["schemas"].as_object().unwrap().keys() {
            let other = places.get(name);
            assert_eq!(other, None, "{name} is in shapes.json too");
        }
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
