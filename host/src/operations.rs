//! Routes for operators: is it alive, is it ready, how does it fare (contract 17).

use std::time::Duration;

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

/// How long the database may take to answer whoever asks whether the server is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// The server can take requests: it is not stopping, its database answers, and it could write there lately that it lives.
async fn readyz(State(services): State<Shared>) -> Result<(StatusCode, &'static str), ApiError> {
    if services.stop.is_cancelled() {
        return Ok((StatusCode::SERVICE_UNAVAILABLE, "stopping\n"));
    }
    let ready = async {
        let mut tx = services.db.read().await?;
        nudge_campaigns::apps::first(&mut tx).await
    };
    let silent = Duration::from_secs(services.config.pipeline.node_timeout_seconds);
    let complaint = match tokio::time::timeout(PATIENCE, ready).await {
        Ok(Ok(_)) if services.pipeline().pipeline.silence() < silent => {
            return Ok((StatusCode::OK, "ok\n"));
        }
        Ok(Ok(_)) => {
            tracing::warn!("not ready: no sign of life could be written");
            "the database takes no writes\n"
        }
        Ok(Err(error)) => {
            tracing::warn!(error = ?error, "not ready");
            "the database does not answer\n"
        }
        Err(_) => {
            tracing::warn!("not ready: the database does not answer");
            "the database does not answer\n"
        }
    };
    Ok((StatusCode::SERVICE_UNAVAILABLE, complaint))
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
