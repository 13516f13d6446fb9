//! The routes of this package, by feature.

use utoipa_axum::router::OpenApiRouter;

use crate::services::Shared;
use crate::{attempts, instructions, surveys};

/// What SDKs get to show, and answers.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(instructions::http::routes())
        .merge(attempts::http::routes())
}

/// Surveys and what became of them.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(surveys::http::routes())
        .merge(attempts::management::routes())
        .merge(instructions::of_person::routes())
}
