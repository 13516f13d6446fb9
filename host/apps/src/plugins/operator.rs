//! Routes of the server's own plugins and slots, for operators (contract 12).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_http::body::OptionalJson;
use nudge_http::page::{Page, PageQuery};
use nudge_http::{ApiError, Component, Data, Json, Params};
use nudge_plugin_runtime::catalogue::SERVER;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::changes::{self, Change, Owner};
use super::http::{change, upload};
use super::lists;
use super::logs::views::{LogLineView, LogQuery};
use super::requests::{ActivateRequest, EmptyRequest, KindPath, PluginPath, SlotRequest};
use super::statistics::views::{MetricsQuery, MetricsView, metrics};
use super::views::{ActivationView, PluginDetailView, PluginView, SlotView, VersionView};
use crate::auth::Operator;
use crate::services::Shared;

/// Plugins of the server, for its operators.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_server_plugins, upload_server_plugin))
        .routes(routes!(get_server_plugin, delete_server_plugin))
        .routes(routes!(
            get_server_plugin_version,
            delete_server_plugin_version
        ))
        .routes(routes!(activate_server_plugin))
        .routes(routes!(promote_server_plugin))
        .routes(routes!(roll_back_server_plugin))
        .routes(routes!(get_server_plugin_metrics))
        .routes(routes!(list_server_plugin_logs))
        .routes(routes!(list_server_plugin_slots))
        .routes(routes!(set_server_plugin_slot, clear_server_plugin_slot))
}

fn owner(operator: Operator) -> Owner {
    Owner {
        app_id: SERVER,
        actor: operator.actor,
    }
}

/// Lists the server's plugins and the built-in ones.
#[utoipa::path(get, path = "/v1/operator/plugins", tag = "operator",
    params(PageQuery), responses((status = 200, body = Data<Page<PluginView>>)))]
pub async fn list_server_plugins(
    _: Operator,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<PluginView>>, ApiError> {
    let data = lists::plugins(&services, SERVER, &query).await?;
    Ok(Data { data })
}

/// Uploads a version of a plugin: the body is the component, which says what it is itself.
#[utoipa::path(post, path = "/v1/operator/plugins", tag = "operator",
    request_body(content = Vec<u8>, content_type = "application/wasm"),
    responses((status = 201, body = Data<VersionView>), (status = 200, body = Data<VersionView>)))]
pub async fn upload_server_plugin(
    operator: Operator,
    State(services): State<Shared>,
    component: Component,
) -> Result<(StatusCode, Data<VersionView>), ApiError> {
    upload(&services, &owner(operator), SERVER, component).await
}

/// Shows a plugin with its versions.
#[utoipa::path(get, path = "/v1/operator/plugins/{name}", tag = "operator",
    params(("name" = String, Path)),
    responses((status = 200, body = Data<PluginDetailView>)))]
pub async fn get_server_plugin(
    _: Operator,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<Data<PluginDetailView>, ApiError> {
    let data = lists::plugin(&services, SERVER, &path.name).await?;
    Ok(Data { data })
}

/// Removes a plugin that nothing needs, with all its versions.
#[utoipa::path(delete, path = "/v1/operator/plugins/{name}", tag = "operator",
    params(("name" = String, Path)), responses((status = 204)))]
pub async fn delete_server_plugin(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<StatusCode, ApiError> {
    changes::delete(&services, &owner(operator), &path.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows a version of a plugin.
#[utoipa::path(get, path = "/v1/operator/plugins/{name}/versions/{version}", tag = "operator",
    params(("name" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = Data<VersionView>)))]
pub async fn get_server_plugin_version(
    _: Operator,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<Data<VersionView>, ApiError> {
    let data = lists::version(&services, SERVER, &path.name, &path.version).await?;
    Ok(Data { data })
}

/// Removes a version that is not in force.
#[utoipa::path(delete, path = "/v1/operator/plugins/{name}/versions/{version}", tag = "operator",
    params(("name" = String, Path), ("version" = String, Path)),
    responses((status = 204)))]
pub async fn delete_server_plugin_version(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<StatusCode, ApiError> {
    changes::delete_version(&services, &owner(operator), &path.name, &path.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings a version into force, at once or as a candidate. The next batch of events is decided by it; what is
/// being decided is decided by the version before.
#[utoipa::path(post, path = "/v1/operator/plugins/{name}/activate", tag = "operator",
    params(("name" = String, Path)), request_body = ActivateRequest,
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn activate_server_plugin(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<ActivateRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(operator), &path, &request.change()?).await
}

/// Makes the candidate the active version.
#[utoipa::path(post, path = "/v1/operator/plugins/{name}/promote", tag = "operator",
    params(("name" = String, Path)),
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn promote_server_plugin(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    _: OptionalJson<EmptyRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(operator), &path, &Change::Promote).await
}

/// Gives the candidate up, or without one brings back the version before.
#[utoipa::path(post, path = "/v1/operator/plugins/{name}/rollback", tag = "operator",
    params(("name" = String, Path)),
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn roll_back_server_plugin(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    _: OptionalJson<EmptyRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(operator), &path, &Change::RollBack).await
}

/// Shows how the versions of a plugin fare in all apps.
#[utoipa::path(get, path = "/v1/operator/plugins/{name}/metrics", tag = "operator",
    params(("name" = String, Path), MetricsQuery), responses((status = 200, body = Data<MetricsView>)))]
pub async fn get_server_plugin_metrics(
    _: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    Params(query): Params<MetricsQuery>,
) -> Result<Data<MetricsView>, ApiError> {
    let data = metrics(&services, SERVER, &path.name, query).await?;
    Ok(Data { data })
}

/// Lists what a plugin logged in all apps, newest first.
#[utoipa::path(get, path = "/v1/operator/plugins/{name}/logs", tag = "operator",
    params(("name" = String, Path), LogQuery), responses((status = 200, body = Data<Page<LogLineView>>)))]
pub async fn list_server_plugin_logs(
    _: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    Params(query): Params<LogQuery>,
) -> Result<Data<Page<LogLineView>>, ApiError> {
    let data = crate::plugins::logs::views::list(&services, SERVER, &path.name, query).await?;
    Ok(Data { data })
}

/// Shows which plugin is in which slot of the apps that have none of their own in it.
#[utoipa::path(get, path = "/v1/operator/plugin-slots", tag = "operator",
    responses((status = 200, body = Data<Vec<SlotView>>)))]
pub async fn list_server_plugin_slots(
    _: Operator,
    State(services): State<Shared>,
) -> Result<Data<Vec<SlotView>>, ApiError> {
    let data = lists::slots(&services, SERVER).await?;
    Ok(Data { data })
}

/// Puts a plugin into a slot of every app that has none of its own in it.
#[utoipa::path(put, path = "/v1/operator/plugin-slots/{kind}", tag = "operator",
    params(("kind" = String, Path)), request_body = SlotRequest,
    responses((status = 200, body = Data<SlotView>)))]
pub async fn set_server_plugin_slot(
    operator: Operator,
    State(services): State<Shared>,
    KindPath(kind): KindPath,
    Json(request): Json<SlotRequest>,
) -> Result<Data<SlotView>, ApiError> {
    crate::plugins::changes::slot::set(&services, &owner(operator), kind, &request.plugin).await?;
    let data = lists::slot(&services, SERVER, kind).await?;
    Ok(Data { data })
}

/// Empties a slot: the built-in plugin decides in every app that has none of its own in it.
#[utoipa::path(delete, path = "/v1/operator/plugin-slots/{kind}", tag = "operator",
    params(("kind" = String, Path)), responses((status = 204)))]
pub async fn clear_server_plugin_slot(
    operator: Operator,
    State(services): State<Shared>,
    KindPath(kind): KindPath,
) -> Result<StatusCode, ApiError> {
    crate::plugins::changes::slot::clear(&services, &owner(operator), kind).await?;
    Ok(StatusCode::NO_CONTENT)
}
