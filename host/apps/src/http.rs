//! Routes of apps (contract 13).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use nudge_campaigns::apps as store;
use nudge_campaigns::apps::AppRow;
use nudge_http::cursor::Cursors;
use nudge_http::issuer::Role;
use nudge_http::page::{Page, PageQuery};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Code, Data, Json, Params, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{MOST, deletion};
use crate::auth::{Admin, Administrator, Member, Viewer};
use crate::keys::{MOST_NAME, is_name};
use crate::services::Shared;

/// Apps.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_apps, create_app))
        .routes(routes!(get_app, update_app, delete_app))
}

/// An app.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppView {
    id: Uuid,
    workspace_id: Uuid,
    name: String,
    /// Grows with each change of the app itself.
    version: i64,
    created_at: String,
    /// When the app, or something that its decisions rest on, changed last.
    updated_at: String,
}

/// An app and what the caller may do in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedApp {
    #[serde(flatten)]
    app: AppView,
    #[schema(value_type = String)]
    role: Role,
}

/// An app to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAppRequest {
    name: String,
    /// Needed where the token has roles in several workspaces.
    workspace_id: Option<Uuid>,
}

/// A change of an app.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateAppRequest {
    #[serde(default, deserialize_with = "not_null")]
    name: Option<String>,
}

/// A member that may be missing, and not null: an app always has a name.
fn not_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

impl From<AppRow> for AppView {
    fn from(row: AppRow) -> Self {
        Self {
            id: row.id,
            workspace_id: row.workspace_id,
            name: row.name,
            version: row.revision,
            created_at: clock::to_text(row.created_at),
            updated_at: clock::to_text(row.updated_at),
        }
    }
}

/// Lists the apps of all workspaces in which the caller has a role, newest first.
#[utoipa::path(get, path = "/v1/apps", tag = "apps", params(PageQuery),
    responses((status = 200, body = Data<Page<ListedApp>>)))]
pub async fn list_apps(
    Member(claims): Member,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<ListedApp>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let workspaces: Vec<Uuid> = claims.roles.keys().copied().collect();
    let list = format!("apps {workspaces:?}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, workspaces, before, i64::from(limit) + 1).await?;
    let listed = found.into_iter().filter_map(|row| {
        let role = *claims.roles.get(&row.workspace_id)?;
        Some(ListedApp {
            app: row.into(),
            role,
        })
    });
    let position = |listed: &ListedApp| listed.app.id;
    let data = cursors.page(listed.collect(), limit, position);
    Ok(Data { data })
}

/// Makes an app with the default settings and no keys.
#[utoipa::path(post, path = "/v1/apps", tag = "apps", request_body = CreateAppRequest,
    responses((status = 201, body = Data<AppView>)))]
pub async fn create_app(
    Administrator(claims): Administrator,
    State(services): State<Shared>,
    Json(request): Json<CreateAppRequest>,
) -> Result<(StatusCode, Data<AppView>), ApiError> {
    let workspace_id = workspace(&claims.roles, request.workspace_id)?;
    check_name(&request.name)?;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    if store::count(&mut tx, workspace_id).await? >= MOST {
        let detail = format!("a workspace has at most {MOST} apps");
        return Err(ApiError::because(Code::LimitExceeded, detail));
    }
    let id = super::create(&mut tx, workspace_id, &request.name, now).await?;
    let entry = Entry {
        app_id: id,
        actor: &claims.sub,
        action: "app.created",
        resource: format!("app/{id}"),
        detail: json!({"name": request.name}),
    };
    audit::record(&mut tx, &entry, now).await?;
    let row = find(&mut tx, id).await?;
    tx.commit().await?;
    services.apps.refresh(id).await?;
    Ok(created(row.into()))
}

/// The workspace of a new app: the named one, or the only one.
fn workspace(roles: &BTreeMap<Uuid, Role>, named: Option<Uuid>) -> Result<Uuid, ApiError> {
    let id = match (named, roles.len()) {
        (Some(id), _) => id,
        (None, 1) => roles.keys().next().copied().unwrap_or_default(),
        (None, _) => {
            let detail = "the token has roles in several workspaces: name one";
            return Err(ApiError::field("/workspaceId", "required", detail));
        }
    };
    match roles.get(&id) {
        None => Err(ApiError::new(Code::NotFound)),
        Some(Role::Admin) => Ok(id),
        Some(_) => {
            let detail = "this takes the role admin in the workspace of the new app";
            Err(ApiError::because(Code::InsufficientRole, detail))
        }
    }
}

/// Reads an app.
#[utoipa::path(get, path = "/v1/apps/{appId}", tag = "apps", params(("appId" = Uuid, Path)),
    responses((status = 200, body = Data<AppView>)))]
pub async fn get_app(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
) -> Result<Data<AppView>, ApiError> {
    let mut tx = services.db.read().await?;
    let row = find(&mut tx, scope.app.id).await?;
    Ok(Data { data: row.into() })
}

/// Changes an app (JSON merge patch).
#[utoipa::path(patch, path = "/v1/apps/{appId}", tag = "apps", params(("appId" = Uuid, Path)),
    request_body = UpdateAppRequest, responses((status = 200, body = Data<AppView>)))]
pub async fn update_app(
    Admin(scope): Admin,
    State(services): State<Shared>,
    if_match: IfMatch,
    Json(request): Json<UpdateAppRequest>,
) -> Result<Data<AppView>, ApiError> {
    let id = scope.app.id;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let row = find(&mut tx, id).await?;
    if_match.check(row.revision)?;
    let Some(name) = request.name else {
        return Ok(Data { data: row.into() });
    };
    check_name(&name)?;
    if !store::rename(&mut tx, id, &name, row.revision, now).await? {
        return Err(ApiError::overtaken());
    }
    let entry = Entry {
        app_id: id,
        actor: &scope.actor,
        action: "app.updated",
        resource: format!("app/{id}"),
        detail: json!({"name": name}),
    };
    audit::record(&mut tx, &entry, now).await?;
    let row = find(&mut tx, id).await?;
    tx.commit().await?;
    services.apps.refresh(id).await?;
    Ok(Data { data: row.into() })
}

/// Deletes an app. Its keys, tokens and polls stop at once; on other servers of the database within `pipeline.pollMs` (250 ms).
/// What it stored is removed by a job.
#[utoipa::path(delete, path = "/v1/apps/{appId}", tag = "apps", params(("appId" = Uuid, Path)),
    responses((status = 204)))]
pub async fn delete_app(
    Admin(scope): Admin,
    State(services): State<Shared>,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let id = scope.app.id;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let revision = find(&mut tx, id).await?.revision;
    if_match.check(revision)?;
    if !store::delete(&mut tx, id, revision).await? {
        return Err(ApiError::overtaken());
    }
    let entry = Entry {
        // The app's own log goes with the app.
        app_id: Uuid::nil(),
        actor: &scope.actor,
        action: "app.deleted",
        resource: format!("app/{id}"),
        detail: json!({"workspaceId": scope.app.workspace_id}),
    };
    audit::record(&mut tx, &entry, now).await?;
    deletion::queue(&mut tx, id, &scope.actor, now).await?;
    tx.commit().await?;
    services.apps.refresh(id).await?;
    services.polls.wake_all();
    services.jobs.wake();
    Ok(StatusCode::NO_CONTENT)
}

async fn find(tx: &mut nudge_db::Tx, id: Uuid) -> Result<AppRow, ApiError> {
    store::find(tx, id)
        .await?
        .ok_or_else(|| ApiError::new(Code::NotFound))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    if is_name(name) {
        return Ok(());
    }
    let detail = format!("name has 1 to {MOST_NAME} characters and no control characters");
    Err(ApiError::field("/name", "invalid", detail))
}
