//! Routes for operators: is it alive, is it ready, how does it fare (contract 17).

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use nudge_http::ApiError;
use nudge_platform::telemetry;

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

/// The server can take requests: it is not stopping and its database answers.
async fn readyz(State(services): State<Shared>) -> Result<(StatusCode, &'static str), ApiError> {
    if services.stop.is_cancelled() {
        return Ok((StatusCode::SERVICE_UNAVAILABLE, "stopping\n"));
    }
    let ready = async {
        let mut tx = services.db.read().await?;
        nudge_campaigns::apps::first(&mut tx).await
    };
    match ready.await {
        Ok(_) => Ok((StatusCode::OK, "ok\n")),
        Err(error) => {
            tracing::warn!(error = ?error, "not ready");
            Ok((
                StatusCode::SERVICE_UNAVAILABLE,
                "the database does not answer\n",
            ))
        }
    }
}

/// Metrics in Prometheus' text format.
async fn render_metrics() -> impl IntoResponse {
    let handle = telemetry::metrics();
    handle.run_upkeep();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        handle.render(),
    )
}
