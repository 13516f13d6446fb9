//! The operators' routes.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use nudge_platform::telemetry;

use super::{measures, readiness};
use crate::services::Shared;

/// `/livez`, `/readyz` and `/metrics`.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
}

/// The process answers.
async fn livez() -> &'static str {
    "ok\n"
}

/// The server can take requests.
async fn readyz(State(services): State<Shared>) -> (StatusCode, String) {
    match readiness::look(&services).await {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(complaint) => (StatusCode::SERVICE_UNAVAILABLE, format!("{complaint}\n")),
    }
}

/// Metrics in Prometheus' text format.
async fn render_metrics(State(services): State<Shared>) -> impl IntoResponse {
    measures::take(&services).await;
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        telemetry::exposition(),
    )
}
