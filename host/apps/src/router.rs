//! The routes of this package, by feature.

use axum::Router;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

use crate::console::http::{get_session, sign_in, sign_out};
use crate::console::login::{begin_login, finish_login};
use crate::plugins::{http as plugins, operator, testing};
use crate::services::Shared;
use crate::{audit, http as apps, identity_keys, keys, settings};

/// What people and tools manage apps, their keys and their plugins with.
pub fn management() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(apps::routes())
        .merge(settings::routes())
        .merge(keys::http::routes())
        .merge(identity_keys::http::routes())
        .merge(audit::routes())
        .merge(plugins::routes())
        .merge(operator::routes())
        .merge(testing::routes())
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
