//! Routes of an app's plugins and slots (contract 12).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_http::body::OptionalJson;
use nudge_http::page::{Page, PageQuery};
use nudge_http::{ApiError, Code, Component, Data, Json, Params};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::active::Origin;
use nudge_plugin_runtime::upload_errors;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::changes::{self, Change, Error, Owner};
use super::lists;
use super::logs::views::{LogLineView, LogQuery};
use super::requests::{ActivateRequest, EmptyRequest, KindPath, PluginPath, SlotRequest};
use super::statistics::views::{MetricsQuery, MetricsView, metrics};
use super::views::{ActivationView, PluginDetailView, PluginView, SlotView, VersionView};
use crate::auth::{Admin, Scope, Viewer};
use crate::services::{Services, Shared};

/// Plugins of an app.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_plugins, upload_plugin))
        .routes(routes!(get_plugin, delete_plugin))
        .routes(routes!(get_plugin_version, delete_plugin_version))
        .routes(routes!(activate_plugin))
        .routes(routes!(promote_plugin))
        .routes(routes!(roll_back_plugin))
        .routes(routes!(get_plugin_metrics))
        .routes(routes!(list_plugin_logs))
        .routes(routes!(list_plugin_slots))
        .routes(routes!(set_plugin_slot, clear_plugin_slot))
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(detail) => Self::because(Code::NotFound, detail),
            Error::ReadOnly(Origin::BuiltIn) => {
                let detail = "the plugin is built into the server; upload one of your own and put it into the slot";
                Self::because(Code::InsufficientRole, detail)
            }
            Error::ReadOnly(Origin::App | Origin::Server) => {
                let detail =
                    "the plugin is the server's; operators change it under /v1/operator/plugins";
                Self::because(Code::InsufficientRole, detail)
            }
            Error::VersionExists => Self::new(Code::PluginVersionExists),
            Error::InUse(detail) => Self::because(Code::PluginInUse, detail),
            Error::Rejected(errors) => rejected(errors),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::NoCandidate => Self::new(Code::PluginNoCandidate),
            Error::NoPrevious => Self::new(Code::PluginNoPrevious),
            Error::TooMany(detail) => Self::because(Code::LimitExceeded, detail),
            Error::Busy(cause) => Self::unavailable(cause),
            Error::Check(cause) => Self::unavailable(cause),
            Error::Unloadable(cause) => Self::internal(cause),
            Error::Lost(cause) => Self::internal(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Says what is wrong first, for whoever reads no further than that.
fn rejected(errors: Vec<FieldError>) -> ApiError {
    let first = errors.first().map(|first| first.detail.clone());
    let error = ApiError::fields(Code::PluginRejected, errors);
    match first {
        Some(first) => error.with_detail(first),
        None => error,
    }
}

pub(super) fn owner(scope: &Scope) -> Owner {
    Owner {
        app_id: scope.app.id,
        actor: scope.actor.clone(),
    }
}

/// Takes an upload in its turn, of which each workspace has its own.
pub(super) async fn upload(
    services: &Services,
    owner: &Owner,
    workspace_id: Uuid,
    component: Component,
) -> Result<(StatusCode, Data<VersionView>), ApiError> {
    let turn = services.plugins.loaders.upload_turn(workspace_id).await;
    if turn.is_none() {
        return Err(ApiError::unavailable(anyhow::anyhow!("too many uploads")));
    }
    let most_bytes = services.plugins.loaders.component_bytes();
    let component = component.read(most_bytes).await.map_err(|error| {
        if error.code() != Code::PayloadTooLarge {
            return error;
        }
        let detail = format!(
            "the component has more than the {most_bytes} bytes that it may have; build it for size, and strip debug \
             information"
        );
        rejected(upload_errors::refused("too_large", detail))
    })?;
    let uploaded = changes::upload(services, owner, workspace_id, component).await?;
    let status = if uploaded.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let data = VersionView::stored(&uploaded.name, uploaded.kind, uploaded.version);
    Ok((status, Data { data }))
}

/// Lists the plugins that an app can use: its own, the server's, the built-in ones.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugins", tag = "plugins",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<PluginView>>)))]
pub async fn list_plugins(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<PluginView>>, ApiError> {
    let data = lists::plugins(&services, scope.app.id, &query).await?;
    Ok(Data { data })
}

/// Uploads a version of a plugin: the body is the component, which says what it is itself.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins", tag = "plugins", params(("appId" = Uuid, Path)),
    request_body(content = Vec<u8>, content_type = "application/wasm"),
    responses((status = 201, body = Data<VersionView>), (status = 200, body = Data<VersionView>)))]
pub async fn upload_plugin(
    Admin(scope): Admin,
    State(services): State<Shared>,
    component: Component,
) -> Result<(StatusCode, Data<VersionView>), ApiError> {
    upload(&services, &owner(&scope), scope.app.workspace_id, component).await
}

/// Shows a plugin with its versions.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugins/{name}", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path)),
    responses((status = 200, body = Data<PluginDetailView>)))]
pub async fn get_plugin(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<Data<PluginDetailView>, ApiError> {
    let data = lists::plugin(&services, scope.app.id, &path.name).await?;
    Ok(Data { data })
}

/// Removes a plugin that nothing needs, with all its versions.
#[utoipa::path(delete, path = "/v1/apps/{appId}/plugins/{name}", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path)), responses((status = 204)))]
pub async fn delete_plugin(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<StatusCode, ApiError> {
    changes::delete(&services, &owner(&scope), &path.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows a version of a plugin.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugins/{name}/versions/{version}", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = Data<VersionView>)))]
pub async fn get_plugin_version(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<Data<VersionView>, ApiError> {
    let data = lists::version(&services, scope.app.id, &path.name, &path.version).await?;
    Ok(Data { data })
}

/// Removes a version that is not in force.
#[utoipa::path(delete, path = "/v1/apps/{appId}/plugins/{name}/versions/{version}", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 204)))]
pub async fn delete_plugin_version(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
) -> Result<StatusCode, ApiError> {
    changes::delete_version(&services, &owner(&scope), &path.name, &path.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings a version into force, at once or as a candidate. The next batch of events is decided by it; what is
/// being decided is decided by the version before.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins/{name}/activate", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path)), request_body = ActivateRequest,
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn activate_plugin(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<ActivateRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(&scope), &path, &request.change()?).await
}

/// Makes the candidate the active version.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins/{name}/promote", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path)),
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn promote_plugin(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
    _: OptionalJson<EmptyRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(&scope), &path, &Change::Promote).await
}

/// Gives the candidate up, or without one brings back the version before.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins/{name}/rollback", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path)),
    responses((status = 200, body = Data<ActivationView>)))]
pub async fn roll_back_plugin(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
    _: OptionalJson<EmptyRequest>,
) -> Result<Data<ActivationView>, ApiError> {
    change(&services, &owner(&scope), &path, &Change::RollBack).await
}

pub(super) async fn change(
    services: &Services,
    owner: &Owner,
    path: &PluginPath,
    change: &Change,
) -> Result<Data<ActivationView>, ApiError> {
    let entry = changes::change(services, owner, &path.name, change).await?;
    Ok(Data {
        data: ActivationView::of(&entry),
    })
}

/// Shows how the versions of a plugin fare in the app.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugins/{name}/metrics", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), MetricsQuery),
    responses((status = 200, body = Data<MetricsView>)))]
pub async fn get_plugin_metrics(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    path: PluginPath,
    Params(query): Params<MetricsQuery>,
) -> Result<Data<MetricsView>, ApiError> {
    let data = metrics(&services, scope.app.id, &path.name, query).await?;
    Ok(Data { data })
}

/// Lists what a plugin logged in the app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugins/{name}/logs", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), LogQuery),
    responses((status = 200, body = Data<Page<LogLineView>>)))]
pub async fn list_plugin_logs(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    path: PluginPath,
    Params(query): Params<LogQuery>,
) -> Result<Data<Page<LogLineView>>, ApiError> {
    let data =
        crate::plugins::logs::views::list(&services, scope.app.id, &path.name, query).await?;
    Ok(Data { data })
}

/// Shows which plugin is in which slot.
#[utoipa::path(get, path = "/v1/apps/{appId}/plugin-slots", tag = "plugins",
    params(("appId" = Uuid, Path)), responses((status = 200, body = Data<Vec<SlotView>>)))]
pub async fn list_plugin_slots(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
) -> Result<Data<Vec<SlotView>>, ApiError> {
    let data = lists::slots(&services, scope.app.id).await?;
    Ok(Data { data })
}

/// Puts a plugin into a slot: it decides where none is named.
#[utoipa::path(put, path = "/v1/apps/{appId}/plugin-slots/{kind}", tag = "plugins",
    params(("appId" = Uuid, Path), ("kind" = String, Path)), request_body = SlotRequest,
    responses((status = 200, body = Data<SlotView>)))]
pub async fn set_plugin_slot(
    Admin(scope): Admin,
    State(services): State<Shared>,
    KindPath(kind): KindPath,
    Json(request): Json<SlotRequest>,
) -> Result<Data<SlotView>, ApiError> {
    crate::plugins::changes::slot::set(&services, &owner(&scope), kind, &request.plugin).await?;
    let data = lists::slot(&services, scope.app.id, kind).await?;
    Ok(Data { data })
}

/// Empties a slot: the server's plugin decides, or the built-in one.
#[utoipa::path(delete, path = "/v1/apps/{appId}/plugin-slots/{kind}", tag = "plugins",
    params(("appId" = Uuid, Path), ("kind" = String, Path)), responses((status = 204)))]
pub async fn clear_plugin_slot(
    Admin(scope): Admin,
    State(services): State<Shared>,
    KindPath(kind): KindPath,
) -> Result<StatusCode, ApiError> {
    crate::plugins::changes::slot::clear(&services, &owner(&scope), kind).await?;
    Ok(StatusCode::NO_CONTENT)
}
