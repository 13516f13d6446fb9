//! The routes of this package.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{
    beacons, campaigns, credentials, deliveries, personalization, tokens, transactional, webhooks,
};

/// What SDKs register devices with, and say what became of messages.
pub fn sdk() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(tokens::http::register_push_token))
        .routes(routes!(tokens::http::remove_push_token))
        .routes(routes!(beacons::http::send_receipts))
}

/// Campaigns, what became of them, and endpoints that are told of it.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            campaigns::http::list_campaigns,
            campaigns::http::create_campaign
        ))
        .routes(routes!(
            campaigns::http::get_campaign,
            campaigns::http::update_campaign,
            campaigns::http::delete_campaign
        ))
        .routes(routes!(campaigns::analytics::get_campaign_analytics))
        .routes(routes!(campaigns::http::list_campaign_recipients))
        .routes(routes!(transactional::test_send::test_send))
        .routes(routes!(transactional::http::send_transactional))
        .routes(routes!(personalization::http::preview_personalization))
        .routes(routes!(deliveries::http::list_deliveries))
        .routes(routes!(deliveries::http::get_delivery))
        .routes(routes!(
            credentials::http::list_push_credentials,
            credentials::http::create_push_credential
        ))
        .routes(routes!(credentials::http::delete_push_credential))
        .merge(webhooks())
}

/// Endpoints that are told of push deliveries.
fn webhooks() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            webhooks::http::list_webhooks,
            webhooks::http::create_webhook
        ))
        .routes(routes!(
            webhooks::http::get_webhook,
            webhooks::http::update_webhook,
            webhooks::http::delete_webhook
        ))
        .routes(routes!(webhooks::actions::rotate_webhook_secret))
        .routes(routes!(webhooks::actions::test_webhook))
        .routes(routes!(webhooks::actions::enable_webhook))
        .routes(routes!(webhooks::actions::list_webhook_attempts))
        .routes(routes!(webhooks::actions::recover_webhook))
        .routes(routes!(webhooks::actions::retry_webhook_message))
}
