//! Lines of plugins as the API shows them.

use std::collections::BTreeSet;

use nudge_db::Timestamp;
use nudge_http::ApiError;
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, Page};
use nudge_http::query::begin;
use nudge_platform::clock;
use nudge_plugin_runtime::logs::store::{self, Filter, Row};
use nudge_wasm::Level;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::plugins::lists;
use crate::services::Services;

/// Which lines to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
pub struct LogQuery {
    /// Of this version.
    version: Option<String>,
    /// Of this level and those above it: `debug`, `info`, `warn` or `error`.
    level: Option<String>,
    /// At or after: an ISO 8601 instant, or a day (UTC).
    since: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// A line that a plugin logged.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLineView {
    /// Ids ascend in the order in which lines were written.
    id: Uuid,
    at: String,
    version: String,
    /// `debug`, `info`, `warn` or `error`.
    level: &'static str,
    message: String,
    /// `decision`, `shadow`, `check`: of a configuration that somebody saved, or that was in force as the version was
    /// activated; or `dropped`: the server's own line about others that were not kept.
    kind: String,
    /// The campaigns that the call decided in which it was logged, at most 20.
    campaign_ids: Vec<Uuid>,
    /// The events that the call was about, at most 20.
    event_ids: Vec<Uuid>,
    /// The people whom the call was about, at most 20.
    subject_ids: Vec<Uuid>,
    /// For operators: in which app.
    #[serde(skip_serializing_if = "Option::is_none")]
    app_id: Option<Uuid>,
}

const LEVELS: [Level; 4] = [Level::Debug, Level::Info, Level::Warn, Level::Error];

fn level(name: &str) -> Result<i64, ApiError> {
    let found = LEVELS.into_iter().find(|level| level.as_str() == name);
    found.map(nudge_plugin_runtime::logs::rank).ok_or_else(|| {
        let detail = "level is debug, info, warn or error";
        ApiError::field("/level", "invalid", detail)
    })
}

/// The ids of a list in JSON.
fn ids(list: Option<&str>) -> Vec<Uuid> {
    // It was written as one.
    list.and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default()
}

fn view(row: Row, subject_ids: Vec<Uuid>, with_app: bool) -> LogLineView {
    let level = LEVELS
        .into_iter()
        .find(|level| nudge_plugin_runtime::logs::rank(*level) == row.level);
    LogLineView {
        id: row.id,
        at: clock::to_text(row.at),
        version: row.version,
        level: level.unwrap_or(Level::Error).as_str(),
        message: row.message,
        kind: row.kind,
        campaign_ids: ids(row.campaign_ids.as_deref()),
        event_ids: ids(row.event_ids.as_deref()),
        subject_ids,
        app_id: with_app.then_some(row.app_id),
    }
}

/// What a plugin logged in an app, newest first; for [`SERVER`](nudge_plugin_runtime::catalogue::SERVER), in all apps.
pub(crate) async fn list(
    services: &Services,
    app_id: Uuid,
    name: &str,
    query: LogQuery,
) -> Result<Page<LogLineView>, ApiError> {
    let limit = page::limit(query.limit)?;
    let now = services.clock.now();
    let level = query.level.as_deref().map(level).transpose()?;
    let since: Option<Timestamp> = begin("since", query.since.as_deref())?;
    let list = format!(
        "plugin log {app_id} {name} {:?} {level:?} {since:?}",
        query.version
    );
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<Uuid> = cursors.open(query.cursor.as_deref())?;
    services.plugins.recorder.flush(&services.db).await?;
    let mut tx = services.db.read().await?;
    let owner_id = lists::owner_of(services, &mut tx, app_id, name).await?;
    let filter = Filter {
        version: query.version,
        level,
        since,
        after,
    };
    let rows = store::list(&mut tx, app_id, owner_id, name, filter, limit + 1).await?;
    let calls: BTreeSet<Uuid> = rows.iter().map(|row| row.call_id).collect();
    let calls: Vec<Uuid> = calls.into_iter().collect();
    let subjects = store::subjects(&mut tx, &calls).await?;
    drop(tx);
    let with_app = app_id == nudge_plugin_runtime::catalogue::SERVER;
    let page = cursors.page(rows, limit, |row| row.id);
    Ok(page.map(|row| {
        let of_call = subjects.get(&row.call_id).cloned().unwrap_or_default();
        view(row, of_call, with_app)
    }))
}
