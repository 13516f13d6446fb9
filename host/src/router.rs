//! Every route.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use futures_util::FutureExt as _;
use nudge_apps as apps;
use nudge_apps::{cors, identity_keys, keys, plugins};
use nudge_http::request::{self, Around};
use nudge_http::{ApiError, Code, admission};
use nudge_ingest::properties;
use nudge_people::segments::http as segments;
use nudge_people::{privacy, users};
use nudge_pipeline::{backtest, explain, plugin_state};
use nudge_push as push;
use nudge_push::webhooks;
use nudge_surveys::attempts;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{book, console, openapi, operations, shop, web_sdk};

/// The API with its documentation.
pub fn api(services: &Shared) -> (Router<Shared>, OpenApi) {
    let (sdk, sdk_document) = OpenApiRouter::new()
        .routes(routes!(
            nudge_people::sessions::start_session,
            nudge_people::sessions::end_session
        ))
        .routes(routes!(nudge_people::sessions::update_consent))
        .routes(routes!(properties::http::update_own_properties))
        .routes(routes!(nudge_ingest::http::ingest_events))
        .routes(routes!(nudge_ingest::beacon::ingest_beacon))
        .routes(routes!(nudge_ingest::collection::http::collect_messages))
        .routes(routes!(nudge_ingest::collection::http::collect_batch))
        .routes(routes!(
            nudge_surveys::instructions::http::poll_instructions
        ))
        .routes(routes!(
            nudge_surveys::instructions::http::acknowledge_instructions
        ))
        .routes(routes!(push::tokens::http::register_push_token))
        .routes(routes!(push::tokens::http::remove_push_token))
        .routes(routes!(push::beacons::http::send_receipts))
        .routes(routes!(attempts::http::start_attempt))
        .routes(routes!(attempts::http::answer_attempt))
        .routes(routes!(attempts::http::complete_attempt))
        .routes(routes!(attempts::http::dismiss_attempt))
        .split_for_parts();
    // A fallback that is set later would be outside of the layer, which answers browsers' OPTIONS.
    let sdk = sdk
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(services.clone(), around_sdk));
    let (management, mut document) = OpenApiRouter::with_openapi(openapi::Document::openapi())
        .merge(management())
        .routes(routes!(openapi::list_errors))
        .split_for_parts();
    document.merge(sdk_document);
    let management = management.layer(from_fn_with_state(services.clone(), around_management));
    (management.merge(sdk), document)
}

// What is around routes is one layer for each, as each adds two boxes to every request.

async fn around_sdk(State(services): State<Shared>, request: Request, next: Next) -> Response {
    // Outside, so that pages may read that they are to come back.
    let answer = |request| admission::around(&services.admission, request, next);
    cors::around(&services, request, answer).await
}

async fn around_management(
    State(services): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    admission::around(&services.admission, request, next).await
}

/// What people and tools manage apps with.
fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(apps::http::list_apps, apps::http::create_app))
        .routes(routes!(
            apps::http::get_app,
            apps::http::update_app,
            apps::http::delete_app
        ))
        .routes(routes!(
            nudge_apps::settings::get_settings,
            nudge_apps::settings::update_settings
        ))
        .routes(routes!(keys::http::list_keys, keys::http::create_key))
        .routes(routes!(keys::http::revoke_key))
        .routes(routes!(
            identity_keys::http::list_identity_keys,
            identity_keys::http::create_identity_key
        ))
        .routes(routes!(identity_keys::http::delete_identity_key))
        .merge(push_routes())
        .routes(routes!(nudge_apps::audit::list_audit_log))
        .routes(routes!(
            nudge_surveys::surveys::http::list_surveys,
            nudge_surveys::surveys::http::create_survey
        ))
        .routes(routes!(
            nudge_surveys::surveys::http::get_survey,
            nudge_surveys::surveys::http::update_survey,
            nudge_surveys::surveys::http::delete_survey
        ))
        .routes(routes!(crate::jobs::http::get_job))
        .routes(routes!(nudge_pipeline::decisions::http::list_decisions))
        .routes(routes!(nudge_pipeline::decisions::http::rerun_decision))
        .routes(routes!(explain::http::explain))
        .routes(routes!(users::http::list_users))
        .routes(routes!(users::http::get_user))
        .routes(routes!(users::http::list_user_events))
        .routes(routes!(
            properties::http::update_user_properties,
            users::http::get_user_called_properties
        ))
        .routes(routes!(privacy::http::delete_person))
        .routes(routes!(privacy::http::get_deletion))
        .routes(routes!(privacy::http::list_deletions))
        .routes(routes!(privacy::exports::http::export_person))
        .routes(routes!(privacy::exports::http::get_export))
        .routes(routes!(privacy::exports::http::download_export))
        .merge(webhook_routes())
        .merge(event_routes())
        .merge(survey_results())
        .merge(segment_routes())
        .merge(plugin_routes())
}

/// Push campaigns and what became of them.
fn push_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            push::campaigns::http::list_campaigns,
            push::campaigns::http::create_campaign
        ))
        .routes(routes!(
            push::campaigns::http::get_campaign,
            push::campaigns::http::update_campaign,
            push::campaigns::http::delete_campaign
        ))
        .routes(routes!(push::campaigns::analytics::get_campaign_analytics))
        .routes(routes!(push::campaigns::http::list_campaign_recipients))
        .routes(routes!(push::transactional::test_send::test_send))
        .routes(routes!(push::transactional::http::send_transactional))
        .routes(routes!(
            push::personalization::http::preview_personalization
        ))
        .routes(routes!(push::deliveries::http::list_deliveries))
        .routes(routes!(push::deliveries::http::get_delivery))
        .routes(routes!(
            push::credentials::http::list_push_credentials,
            push::credentials::http::create_push_credential
        ))
        .routes(routes!(push::credentials::http::delete_push_credential))
}

/// Endpoints that are told of push deliveries.
fn webhook_routes() -> OpenApiRouter<Shared> {
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
}

/// What events must look like, what became of those that do not, and how many there were.
fn event_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(nudge_people::feed::http::list_events))
        .routes(routes!(nudge_people::feed::http::stream_events))
        .routes(routes!(
            nudge_ingest::definitions::http::list_event_definitions,
            nudge_ingest::definitions::http::create_event_definition
        ))
        .routes(routes!(
            nudge_ingest::definitions::http::get_event_definition,
            nudge_ingest::definitions::http::update_event_definition,
            nudge_ingest::definitions::http::delete_event_definition
        ))
        .routes(routes!(
            nudge_ingest::definitions::dry_run::dry_run_event_definition
        ))
        .routes(routes!(
            nudge_ingest::definitions::infer::infer_event_definition
        ))
        .routes(routes!(crate::dead_letters::http::list_dead_letters))
        .routes(routes!(
            crate::dead_letters::http::get_dead_letter,
            crate::dead_letters::http::acknowledge_dead_letter
        ))
        .routes(routes!(crate::dead_letters::http::replay_dead_letter))
        .routes(routes!(crate::dead_letters::http::summarize_dead_letters))
        .routes(routes!(crate::dead_letters::http::replay_dead_letters))
        .routes(routes!(crate::dead_letters::http::acknowledge_dead_letters))
        .routes(routes!(crate::stats::http::get_stats))
}

/// Segments.
fn segment_routes() -> OpenApiRouter<Shared> {
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

/// What became of surveys.
fn survey_results() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(attempts::management::get_survey_analytics))
        .routes(routes!(attempts::management::list_survey_responses))
        .routes(routes!(attempts::management::list_survey_recipients))
        .routes(routes!(attempts::management::list_survey_attempts))
        .routes(routes!(attempts::management::get_survey_attempt))
}

/// Plugins of apps and of the server.
fn plugin_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            plugins::http::list_plugins,
            plugins::http::upload_plugin
        ))
        .routes(routes!(
            plugins::http::get_plugin,
            plugins::http::delete_plugin
        ))
        .routes(routes!(
            plugins::http::get_plugin_version,
            plugins::http::delete_plugin_version
        ))
        .routes(routes!(
            plugin_state::get_plugin_state,
            plugin_state::erase_plugin_state
        ))
        .routes(routes!(plugins::testing::test_plugin_version))
        .routes(routes!(backtest::http::backtest_plugin_version))
        .routes(routes!(plugins::http::activate_plugin))
        .routes(routes!(plugins::http::promote_plugin))
        .routes(routes!(plugins::http::roll_back_plugin))
        .routes(routes!(plugins::http::get_plugin_metrics))
        .routes(routes!(plugins::http::list_plugin_logs))
        .routes(routes!(plugins::http::list_plugin_slots))
        .routes(routes!(
            plugins::http::set_plugin_slot,
            plugins::http::clear_plugin_slot
        ))
        .routes(routes!(
            plugins::operator::list_server_plugins,
            plugins::operator::upload_server_plugin
        ))
        .routes(routes!(
            plugins::operator::get_server_plugin,
            plugins::operator::delete_server_plugin
        ))
        .routes(routes!(
            plugins::operator::get_server_plugin_version,
            plugins::operator::delete_server_plugin_version
        ))
        .routes(routes!(plugins::testing::test_server_plugin_version))
        .routes(routes!(backtest::http::backtest_server_plugin_version))
        .routes(routes!(plugins::operator::activate_server_plugin))
        .routes(routes!(plugins::operator::promote_server_plugin))
        .routes(routes!(plugins::operator::roll_back_server_plugin))
        .routes(routes!(plugins::operator::get_server_plugin_metrics))
        .routes(routes!(plugins::operator::list_server_plugin_logs))
        .routes(routes!(plugins::operator::list_server_plugin_slots))
        .routes(routes!(
            plugins::operator::set_server_plugin_slot,
            plugins::operator::clear_server_plugin_slot
        ))
        .routes(routes!(nudge_apps::audit::list_server_audit_log))
}

/// The whole main listener. `with_operations` adds the operators' routes (embedded mode).
pub fn router(services: Shared, with_operations: bool) -> serde_json::Result<Router> {
    let (api, document) = api(&services);
    // Everybody may read them, so that they take places as all other requests do.
    let mut pages =
        openapi::routes(&services, &openapi::finish(document)?)?.merge(web_sdk::routes());
    pages = pages
        .merge(book::routes())
        .merge(console::routes())
        .merge(console::home(with_operations));
    if with_operations {
        pages = pages.merge(shop::routes());
    }
    let pages = pages.layer(from_fn_with_state(services.clone(), around_management));
    let mut router = api.merge(pages);
    if with_operations {
        router = router.merge(operations::http::routes());
    }
    let around = Around {
        traces: services.traces.clone(),
        trusted_proxies: services.config.server.trusted_proxies,
        ..Around::untraced(&services.clock)
    };
    let around =
        from_fn(move |request, next| request::layer(around.clone(), request, next).map(guard));
    Ok(router
        .fallback(|| async { ApiError::new(Code::NotFound) })
        .method_not_allowed_fallback(method_not_allowed)
        .layer(around)
        .with_state(services))
}

fn guard(mut response: Response) -> Response {
    openapi::add_security_headers(&mut response);
    response
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(Code::MethodNotAllowed)
}

/// What connections get for which there is no room: the operators' routes where they are, and refusals.
pub fn full_router(services: Shared, with_operations: bool) -> Router {
    let router = if with_operations {
        operations::http::routes()
    } else {
        Router::new()
    };
    let around = Around::untraced(&services.clock);
    let around =
        from_fn(move |request, next| request::layer(around.clone(), request, next).map(close));
    router
        .fallback(|| async { ApiError::new(Code::Unavailable) })
        .layer(around)
        .with_state(services)
}

/// Has the connection closed after a response; HTTP/2 has no such header.
fn close(response: Response) -> Response {
    let mut response = guard(response);
    if response.version() < Version::HTTP_2 {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The operators' listener.
pub fn operations_router(services: Shared) -> Router {
    let around = Around::untraced(&services.clock);
    let around =
        from_fn(move |request, next| request::layer(around.clone(), request, next).map(guard));
    operations::http::routes()
        .fallback(|| async { ApiError::new(Code::NotFound) })
        .method_not_allowed_fallback(method_not_allowed)
        .layer(around)
        .with_state(services)
}
