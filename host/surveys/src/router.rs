//! The routes of this package.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{attempts, instructions, surveys};

/// What SDKs get to show, and answers.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(instructions::http::poll_instructions))
        .routes(routes!(instructions::http::acknowledge_instructions))
        .routes(routes!(attempts::http::start_attempt))
        .routes(routes!(attempts::http::answer_attempt))
        .routes(routes!(attempts::http::complete_attempt))
        .routes(routes!(attempts::http::dismiss_attempt))
}

/// Surveys and what became of them.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            surveys::http::list_surveys,
            surveys::http::create_survey
        ))
        .routes(routes!(
            surveys::http::get_survey,
            surveys::http::update_survey,
            surveys::http::delete_survey
        ))
        .routes(routes!(attempts::management::get_survey_analytics))
        .routes(routes!(attempts::management::list_survey_responses))
        .routes(routes!(attempts::management::list_survey_recipients))
        .routes(routes!(attempts::management::list_survey_attempts))
        .routes(routes!(attempts::management::get_survey_attempt))
        .routes(routes!(attempts::management::list_attempts))
        .routes(routes!(instructions::of_person::list_instructions))
}
