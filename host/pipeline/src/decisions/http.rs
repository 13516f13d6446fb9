//! Routes of decisions (contract 12).

use axum::extract::State;
use nudge_apps::auth::{Editor, Viewer};
use nudge_db::Timestamp;
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, Page};
use nudge_http::{ApiError, Code, Data, Params, ResourceId};
use nudge_platform::{clock, id};
use nudge_plugin_runtime::cases::Difference;
use nudge_records::decisions::record::Record;
use nudge_records::decisions::store;
use nudge_records::subjects;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::rerun::{self, Error, Rerun};
use crate::services::{Services, Shared};

/// Decisions.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_decisions))
        .routes(routes!(rerun_decision))
}

/// Decisions that one request looks at. A page of a filtered list may end before it is full.
const SCANNED: usize = 2_000;
/// Decisions that are read at a time.
const READ_AT_ONCE: usize = 100;
/// The bytes of decisions that are read at once, as far as is known before: one may have some megabytes.
const READ_BYTES: usize = 4 * 1024 * 1024;
/// Decisions that are read first.
const FIRST: usize = 8;
/// The bytes of decisions that one request looks through.
const SCANNED_BYTES: usize = 64 * 1024 * 1024;

/// Which decisions to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Decisions about this campaign.
    campaign_id: Option<Uuid>,
    /// Decisions about this event, or a timer that it set.
    event_id: Option<Uuid>,
    /// Decisions about this subject.
    subject_id: Option<Uuid>,
    /// How many items at the most, 1 to 200; 50 unless given. A page may have fewer although more follow.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on.
    cursor: Option<String>,
}

/// A call of a trigger plugin that took effect.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionView {
    decision_id: Uuid,
    at: String,
    plugin: PluginView,
    /// The campaigns that were decided about.
    campaigns: Vec<CampaignView>,
    /// How many events and timers were decided about.
    items: usize,
    /// How many of them fired, each counted once for each campaign.
    fired: usize,
}

/// The version that decided.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DecidingPluginView)]
pub(super) struct PluginView {
    name: String,
    version: String,
    digest: String,
}

/// A campaign as it was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DecidingCampaignView)]
pub(super) struct CampaignView {
    campaign_id: Uuid,
    version: i64,
}

/// What came of making a decision again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RerunView {
    /// Whether it is the same decision.
    same: bool,
    /// What was decided then: `fired`, `states`, `timers`.
    recorded: Value,
    /// What is decided now, or `failure` and `detail`.
    rerun: Value,
    /// Where they differ, with what was decided then as what is expected.
    differences: Vec<Difference>,
    /// Questions that the plugin asked now and not then: more than none, and it is not deterministic.
    new_questions: u32,
}

impl From<Rerun> for RerunView {
    fn from(rerun: Rerun) -> Self {
        Self {
            same: rerun.same,
            recorded: rerun.recorded,
            rerun: rerun.again,
            differences: rerun.differences,
            new_questions: rerun.new_questions,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::Gone(detail) => Self::because(Code::DecisionNotReproducible, detail),
            Error::Storage(cause) => cause.into(),
            Error::Unloadable(cause) => Self::internal(cause),
            Error::Unreadable(cause) => Self::internal(cause),
            Error::Lost(cause) => Self::internal(cause),
        }
    }
}

impl ListQuery {
    fn selects(&self, record: &Record) -> bool {
        let campaign = |wanted: Uuid| record.campaigns.iter().any(|found| found.id == wanted);
        let event = |wanted: Uuid| record.items.iter().any(|item| item.event_id == wanted);
        self.campaign_id.is_none_or(campaign) && self.event_id.is_none_or(event)
    }
}

/// Lists what trigger plugins decided, the latest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/decisions", tag = "decisions",
    params(("appId" = Uuid, Path), ListQuery), responses((status = 200, body = Data<Page<DecisionView>>)))]
pub async fn list_decisions(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<ListQuery>,
) -> Result<Data<Page<DecisionView>>, ApiError> {
    let data = list(&services, scope.app.id, &query).await?;
    Ok(Data { data })
}

async fn list(
    services: &Services,
    app_id: Uuid,
    query: &ListQuery,
) -> Result<Page<DecisionView>, ApiError> {
    let limit = page::limit(query.limit)? as usize;
    let now = services.clock.now();
    let list = format!(
        "decisions {app_id} {:?} {:?} {:?}",
        query.campaign_id, query.event_id, query.subject_id
    );
    let cursors = Cursors::new(&services.secrets, list, now);
    let position: Option<Uuid> = cursors.open(query.cursor.as_deref())?;
    let mut before = position.unwrap_or(Uuid::max());
    let mut items = Vec::new();
    let (mut scanned, mut scanned_bytes) = (0, 0);
    let mut ended = false;
    let mut tx = services.db.read().await?;
    let subject_id = match query.subject_id {
        Some(id) => Some(subjects::store::canonical(&mut tx, app_id, id).await?),
        None => None,
    };
    'pages: while scanned < SCANNED && scanned_bytes < SCANNED_BYTES {
        let wanted = match scanned_bytes.checked_div(scanned) {
            None => FIRST,
            Some(each) => (READ_BYTES / each.max(1)).clamp(1, READ_AT_ONCE),
        };
        let most = i64::try_from(wanted).unwrap_or(1);
        let rows = store::list(&mut tx, app_id, subject_id, before, most).await?;
        let last_page = rows.len() < wanted;
        for row in rows {
            if items.len() == limit {
                break 'pages;
            }
            scanned += 1;
            scanned_bytes += row.record.len();
            before = row.id;
            match Record::decode(&row.record) {
                Ok(record) if query.selects(&record) => items.push(view(row.id, record)),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(decision.id = %row.id, error = %error, "a decision can't be read");
                }
            }
        }
        if last_page {
            ended = true;
            break;
        }
    }
    Ok(Page {
        items,
        next_cursor: (!ended).then(|| cursors.seal(&before)),
    })
}

fn view(id: Uuid, record: Record) -> DecisionView {
    DecisionView {
        decision_id: id,
        at: clock::to_text(id::made_at(id).unwrap_or(Timestamp(record.now))),
        plugin: PluginView {
            name: record.plugin.name,
            version: record.plugin.version,
            digest: record.plugin.digest,
        },
        campaigns: record
            .campaigns
            .iter()
            .map(|campaign| CampaignView {
                campaign_id: campaign.id,
                version: campaign.version,
            })
            .collect(),
        items: record.items.len(),
        fired: record.decided.fired.len(),
    }
}

/// Makes a decision again: the version that decided gets the same events, configurations and answers. Nothing
/// takes effect.
#[utoipa::path(post, path = "/v1/apps/{appId}/decisions/{id}/rerun", tag = "decisions",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 200, body = Data<RerunView>)))]
pub async fn rerun_decision(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<RerunView>, ApiError> {
    let rerun = rerun::rerun(&services, scope.app.id, id).await?;
    Ok(Data { data: rerun.into() })
}
