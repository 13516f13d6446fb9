//! The routes of this package.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{beacon, collection, definitions, http, properties};

/// What SDKs and customers' servers send events and properties to.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(properties::http::update_own_properties))
        .routes(routes!(http::ingest_events))
        .routes(routes!(beacon::ingest_beacon))
        .routes(routes!(collection::http::collect_messages))
        .routes(routes!(collection::http::collect_batch))
}

/// What events must look like, and properties that customers' servers set.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(properties::http::update_user_properties))
        .routes(routes!(
            definitions::http::list_event_definitions,
            definitions::http::create_event_definition
        ))
        .routes(routes!(
            definitions::http::get_event_definition,
            definitions::http::update_event_definition,
            definitions::http::delete_event_definition
        ))
        .routes(routes!(definitions::dry_run::dry_run_event_definition))
        .routes(routes!(definitions::infer::infer_event_definition))
}
