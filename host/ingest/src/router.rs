//! The routes of this package, by feature.

use utoipa_axum::router::OpenApiRouter;

use crate::services::Shared;
use crate::{beacon, collection, definitions, http, properties};

/// What SDKs and customers' servers send events and properties to.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(properties::http::sdk_routes())
        .merge(http::routes())
        .merge(beacon::routes())
        .merge(collection::http::routes())
}

/// What events must look like, and properties that customers' servers set.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(properties::http::routes())
        .merge(definitions::http::routes())
        .merge(definitions::dry_run::routes())
        .merge(definitions::infer::routes())
}
