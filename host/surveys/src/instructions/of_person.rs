//! The route of what a person was shown, for people.

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_db::{Timestamp, Tx};
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, Page};
use nudge_http::{ApiError, Data, Params};
use nudge_platform::{clock, hidden};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::services::Shared;

/// Instructions of a person.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list_instructions))
}

/// Whose instructions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct InstructionsQuery {
    /// The person.
    subject_id: Uuid,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// A survey or message that an SDK was told to show, and how far it came.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PersonInstructionView)]
#[serde(rename_all = "camelCase")]
pub struct InstructionView {
    instruction_id: Uuid,
    /// `survey`, `feedback` or `in_app`.
    kind: String,
    campaign_id: Uuid,
    campaign_version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant_id: Option<Uuid>,
    /// The name of the event that triggered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger_name: Option<String>,
    /// How far it came: `issued`, `received`, `displayed`, `dismissed`, `clicked`, `discarded` or `completed`; `suppressed` where it
    /// was held back. One that nobody saw in time stays `issued` or `received`.
    status: String,
    status_at: String,
    created_at: String,
    available_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    displayed_at: Option<String>,
    /// Why the person was not shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed_by: Option<String>,
}

#[derive(Debug, nudge_db::FromRow)]
struct Row {
    id: Uuid,
    kind: String,
    campaign_id: Uuid,
    campaign_version: i64,
    variant_id: Option<Uuid>,
    trigger_name: Option<String>,
    status: String,
    status_at: Timestamp,
    created_at: Timestamp,
    available_at: Timestamp,
    expires_at: Timestamp,
    displayed_at: Option<Timestamp>,
    suppressed_by: Option<String>,
}

impl From<Row> for InstructionView {
    fn from(row: Row) -> Self {
        Self {
            instruction_id: row.id,
            kind: row.kind,
            campaign_id: row.campaign_id,
            campaign_version: row.campaign_version,
            variant_id: row.variant_id,
            trigger_name: row.trigger_name,
            status: row.status,
            status_at: clock::to_text(row.status_at),
            created_at: clock::to_text(row.created_at),
            available_at: clock::to_text(row.available_at),
            expires_at: clock::to_text(row.expires_at),
            displayed_at: row.displayed_at.map(clock::to_text),
            suppressed_by: row.suppressed_by,
        }
    }
}

/// Lists what a person was shown or was to be shown (surveys, feedback buttons, in-app messages), newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/instructions", tag = "surveys",
    params(("appId" = Uuid, Path), InstructionsQuery),
    responses((status = 200, body = Data<Page<InstructionView>>)))]
pub async fn list_instructions(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<InstructionsQuery>,
) -> Result<Data<Page<InstructionView>>, ApiError> {
    let limit = page::limit(query.limit)?;
    let (app_id, subject_id) = (scope.app.id, query.subject_id);
    let list = format!("instructions of {app_id} {subject_id}");
    let cursors = Cursors::new(&services.secrets, list, services.clock.now());
    let before: Option<InstructionPosition> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let rows = page(&mut tx, (app_id, subject_id), before, i64::from(limit) + 1).await?;
    drop(tx);
    let data = cursors.page(rows, limit, |row| (row.created_at, row.id));
    Ok(Data {
        data: data.map(InstructionView::from),
    })
}

/// A position in the list: when an instruction was made, and which. Those that were held back share positions, and those of
/// somebody who became one with the person have later ones.
type InstructionPosition = (Timestamp, Uuid);

/// A person's instructions before a position, the newest first.
async fn page(
    tx: &mut Tx,
    (app_id, subject_id): (Uuid, Uuid),
    before: Option<InstructionPosition>,
    limit: i64,
) -> nudge_db::Result<Vec<Row>> {
    let (created_at, id) = before.unwrap_or((Timestamp(i64::MAX), Uuid::max()));
    tx.sql(
        "SELECT id, kind, campaign_id, campaign_version, variant_id, trigger_name, status, status_at, created_at, available_at,
                expires_at, displayed_at, suppressed_by
         FROM instructions WHERE app_id = $1 AND subject_id = $2 AND (created_at, id) < ($3, $4) AND subject_id NOT IN ",
    )
    .push(hidden::SUBJECTS)
    .push(" ORDER BY created_at DESC, id DESC LIMIT $5")
    .bind(app_id)
    .bind(subject_id)
    .bind(created_at)
    .bind(id)
    .bind(limit)
    .fetch_all()
    .await
}
