//! The routes of this package.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{backtest, decisions, explain, plugin_state};

/// What people and tools look at decisions with.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(decisions::http::list_decisions))
        .routes(routes!(decisions::http::rerun_decision))
        .routes(routes!(explain::http::explain))
        .routes(routes!(
            plugin_state::get_plugin_state,
            plugin_state::erase_plugin_state
        ))
        .routes(routes!(backtest::http::backtest_plugin_version))
        .routes(routes!(backtest::http::backtest_server_plugin_version))
}
