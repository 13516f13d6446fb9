//! The routes of this package, by feature.

use utoipa_axum::router::OpenApiRouter;

use crate::services::Shared;
use crate::{
    beacons, campaigns, credentials, deliveries, personalization, tokens, transactional, webhooks,
};

/// What SDKs register devices with, and say what became of messages.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(tokens::http::routes())
        .merge(beacons::http::routes())
}

/// Campaigns, what became of them, and endpoints that are told of it.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(campaigns::http::routes())
        .merge(campaigns::analytics::routes())
        .merge(transactional::http::routes())
        .merge(transactional::test_send::routes())
        .merge(personalization::http::routes())
        .merge(deliveries::http::routes())
        .merge(credentials::http::routes())
        .merge(webhooks::http::routes())
        .merge(webhooks::actions::routes())
}
