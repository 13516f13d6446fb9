//! The routes of this package.

use axum::Router;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::http::{get_session, sign_in, sign_out};
use crate::console::login::{begin_login, finish_login};
use crate::plugins::{http as plugins, operator, testing};
use crate::services::Shared;
use crate::{audit, http as apps, identity_keys, keys, settings};

/// What people and tools manage apps, their keys and their plugins with.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(apps::list_apps, apps::create_app))
        .routes(routes!(apps::get_app, apps::update_app, apps::delete_app))
        .routes(routes!(settings::get_settings, settings::update_settings))
        .routes(routes!(keys::http::list_keys, keys::http::create_key))
        .routes(routes!(keys::http::revoke_key))
        .routes(routes!(
            identity_keys::http::list_identity_keys,
            identity_keys::http::create_identity_key
        ))
        .routes(routes!(identity_keys::http::delete_identity_key))
        .routes(routes!(audit::list_audit_log))
        .merge(app_plugins())
        .merge(server_plugins())
}

/// Plugins of an app.
fn app_plugins() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(plugins::list_plugins, plugins::upload_plugin))
        .routes(routes!(plugins::get_plugin, plugins::delete_plugin))
        .routes(routes!(
            plugins::get_plugin_version,
            plugins::delete_plugin_version
        ))
        .routes(routes!(testing::test_plugin_version))
        .routes(routes!(plugins::activate_plugin))
        .routes(routes!(plugins::promote_plugin))
        .routes(routes!(plugins::roll_back_plugin))
        .routes(routes!(plugins::get_plugin_metrics))
        .routes(routes!(plugins::list_plugin_logs))
        .routes(routes!(plugins::list_plugin_slots))
        .routes(routes!(
            plugins::set_plugin_slot,
            plugins::clear_plugin_slot
        ))
}

/// Plugins of the server, for its operators.
fn server_plugins() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(
            operator::list_server_plugins,
            operator::upload_server_plugin
        ))
        .routes(routes!(
            operator::get_server_plugin,
            operator::delete_server_plugin
        ))
        .routes(routes!(
            operator::get_server_plugin_version,
            operator::delete_server_plugin_version
        ))
        .routes(routes!(testing::test_server_plugin_version))
        .routes(routes!(operator::activate_server_plugin))
        .routes(routes!(operator::promote_server_plugin))
        .routes(routes!(operator::roll_back_server_plugin))
        .routes(routes!(operator::get_server_plugin_metrics))
        .routes(routes!(operator::list_server_plugin_logs))
        .routes(routes!(operator::list_server_plugin_slots))
        .routes(routes!(
            operator::set_server_plugin_slot,
            operator::clear_server_plugin_slot
        ))
        .routes(routes!(audit::list_server_audit_log))
}

/// Signing in to the console.
pub fn console() -> Router<Shared> {
    Router::new()
        .route(
            "/console/session",
            get(get_session).post(sign_in).delete(sign_out),
        )
        .route("/console/login", get(begin_login))
        .route("/console/callback", get(finish_login))
}
