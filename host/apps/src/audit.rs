//! The route of the audit log (contract 13).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use nudge_http::csv::{self, WantsCsv};
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, MOST, Page};
use nudge_http::query::range;
use nudge_http::{ApiError, Data, Params};
use nudge_platform::audit::store::{self, EntryRow, Filter};
use nudge_platform::clock;
use nudge_plugin_runtime::catalogue::SERVER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::auth::{Admin, Operator};
use crate::keys::uses;
use crate::services::{Services, Shared};

/// What was changed, in an app and in the server.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_audit_log))
        .routes(routes!(list_server_audit_log))
}

/// Something that was changed or refused.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    id: Uuid,
    at: String,
    /// The subject of an access token, `key/<id>`, or `server`.
    actor: String,
    /// What was done, as `resource.verb`.
    action: String,
    /// What it was done to: a kind and an id or name.
    resource: String,
    detail: Value,
}

/// Which entries to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct AuditQuery {
    /// Only this action.
    action: Option<String>,
    /// Only by this actor.
    actor: Option<String>,
    /// Only what was done to this resource, as entries name it: `survey/<id>`.
    resource: Option<String>,
    /// From here on: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

impl From<EntryRow> for EntryView {
    fn from(row: EntryRow) -> Self {
        Self {
            id: row.id,
            at: clock::to_text(row.at),
            actor: row.actor,
            action: row.action,
            resource: row.resource,
            detail: serde_json::from_str(&row.detail).unwrap_or_default(),
        }
    }
}

/// Lists what was changed in an app and which uses of keys were refused, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/audit-log", tag = "audit",
    params(("appId" = Uuid, Path), AuditQuery),
    responses((status = 200, content((Data<Page<EntryView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_audit_log(
    Admin(scope): Admin,
    State(services): State<Shared>,
    wants_csv: WantsCsv,
    Params(query): Params<AuditQuery>,
) -> Result<Response, ApiError> {
    uses::flush(&services).await?;
    entries(services, scope.app.id, wants_csv, query).await
}

/// Lists what operators and the server itself did with the server's plugins, newest first.
#[utoipa::path(get, path = "/v1/operator/audit-log", tag = "operator",
    params(AuditQuery),
    responses((status = 200, content((Data<Page<EntryView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_server_audit_log(
    _: Operator,
    State(services): State<Shared>,
    wants_csv: WantsCsv,
    Params(query): Params<AuditQuery>,
) -> Result<Response, ApiError> {
    entries(services, SERVER, wants_csv, query).await
}

/// A page of the log of an app, or of the server; or all of it as CSV.
async fn entries(
    services: Shared,
    app_id: Uuid,
    WantsCsv(wants_csv): WantsCsv,
    query: AuditQuery,
) -> Result<Response, ApiError> {
    let limit = page::limit(query.limit)?;
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let filter = Filter {
        from,
        to,
        action: query.action,
        actor: query.actor,
        resource: query.resource,
    };
    if wants_csv {
        return rows(&services, app_id, filter).await;
    }
    let now = services.clock.now();
    let list = format!("audit log {app_id} {filter:?}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, app_id, &filter, before, i64::from(limit) + 1).await?;
    let data = cursors
        .page(found, limit, |row| row.id)
        .map(EntryView::from);
    Ok(Data { data }.into_response())
}

/// All entries of a filter, as CSV.
async fn rows(services: &Services, app_id: Uuid, filter: Filter) -> Result<Response, ApiError> {
    let filter = Arc::new(filter);
    let list = csv::reader(move |tx, before, most| {
        let filter = Arc::clone(&filter);
        async move { store::list(tx, app_id, &filter, before, most).await }.boxed()
    });
    let columns = &["id", "at", "actor", "action", "resource", "detail"];
    let place = |row: &EntryRow| row.id;
    csv::answer_rows(columns, &services.db, MOST, list, place, EntryView::from).await
}
