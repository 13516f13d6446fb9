//! The API's description, and what else describes the server.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Description, Ref, ResponseBuilder, SecurityRequirement};
use utoipa::{OpenApi, ToSchema};

use crate::http::error::Problem;
use crate::http::{ApiError, Code, Data};
use crate::services::Shared;

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

/// Adds what all operations share: credentials and the form of refusals.
pub fn finish(mut document: Description) -> Description {
    let bearer = |format: &str| {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.bearer_format = Some(format.to_owned());
        SecurityScheme::Http(http)
    };
    let header = |name: &str| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)));
    if let Some(components) = &mut document.components {
        components.add_security_scheme("accessToken", bearer("JWT"));
        components.add_security_scheme("appKey", bearer("wk_, sk_ or at_ key"));
        components.add_security_scheme("subjectToken", header("X-Service-Subject-Token"));
    }
    for (path, item) in &mut document.paths.paths {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
            &mut item.put,
        ];
        for operation in operations.into_iter().flatten() {
            let none: [&str; 0] = [];
            let requirement = if path.starts_with("/v1/apps") || path.starts_with("/v1/operator") {
                Some(SecurityRequirement::new("accessToken", none))
            } else if path == "/v1/sdk/session" {
                Some(SecurityRequirement::new("appKey", none))
            } else if path.starts_with("/v1/sdk") {
                Some(SecurityRequirement::new("appKey", none).add("subjectToken", none))
            } else {
                None
            };
            let Some(requirement) = requirement else {
                continue;
            };
            operation.security = Some(vec![requirement]);
            let refusal = ResponseBuilder::new()
                .description("A refusal (RFC 9457); `code` says why, see /v1/errors.")
                .content(
                    "application/problem+json",
                    Content::new(Some(Ref::from_schema_name("Problem"))),
                )
                .build();
            operation
                .responses
                .responses
                .insert("default".to_owned(), refusal.into());
        }
    }
    document
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
pub async fn security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
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
    response
}
