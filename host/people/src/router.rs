//! The routes of this package, by feature.

use nudge_pipeline::services::Shared as PipelineState;
use utoipa_axum::router::OpenApiRouter;

use crate::services::Shared;
use crate::{feed, privacy, segments, sessions, users};

/// Sessions and consent. A new person is to be looked at by the pipeline.
pub fn sdk() -> OpenApiRouter<PipelineState> {
    sessions::routes()
}

/// People, their events, their export and deletion.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(users::http::routes())
        .merge(feed::http::routes())
        .merge(privacy::http::routes())
        .merge(privacy::exports::http::routes())
}

/// Segments, whose conditions the pipeline decides.
pub fn segments() -> OpenApiRouter<PipelineState> {
    segments::http::routes()
}
