//! The routes of this package, by feature.

use utoipa_axum::router::OpenApiRouter;

use crate::services::Shared;
use crate::{backtest, decisions, explain, plugin_state};

/// What people and tools look at decisions with.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(decisions::http::routes())
        .merge(explain::http::routes())
        .merge(plugin_state::routes())
        .merge(backtest::http::routes())
}
