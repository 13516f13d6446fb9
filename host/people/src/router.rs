//! The routes of this package.

use nudge_pipeline::services::Shared as PipelineState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::segments::http as segments;
use crate::services::Shared;
use crate::{feed, privacy, sessions, users};

/// Sessions and consent.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(sessions::start_session, sessions::end_session))
        .routes(routes!(sessions::update_consent))
}

/// People, their events, their export and deletion.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(users::http::list_users))
        .routes(routes!(users::http::get_user))
        .routes(routes!(users::http::list_user_events))
        .routes(routes!(users::http::get_user_called_properties))
        .routes(routes!(feed::http::list_events))
        .routes(routes!(feed::http::stream_events))
        .routes(routes!(privacy::http::delete_person))
        .routes(routes!(privacy::http::get_deletion))
        .routes(routes!(privacy::http::list_deletions))
        .routes(routes!(privacy::exports::http::export_person))
        .routes(routes!(privacy::exports::http::get_export))
        .routes(routes!(privacy::exports::http::download_export))
}

/// Segments, whose conditions the pipeline decides.
pub fn segments() -> OpenApiRouter<PipelineState> {
    OpenApiRouter::new()
        .routes(routes!(segments::list_segments, segments::create_segment))
        .routes(routes!(segments::preview_segment))
        .routes(routes!(
            segments::get_segment,
            segments::update_segment,
            segments::delete_segment
        ))
        .routes(routes!(segments::list_segment_members))
        .routes(routes!(segments::list_segment_history))
}
