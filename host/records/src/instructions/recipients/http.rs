//! A page of a campaign's recipients, as the API shows it.

use std::collections::HashMap;

use axum::response::{IntoResponse as _, Response};
use nudge_campaigns::campaign::Kind;
use nudge_db::Tx;
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, MOST, Page};
use nudge_http::{ApiError, Data, csv};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{Recipient, RecipientState};
use crate::services::Services;

/// Which recipients to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct RecipientsQuery {
    /// Only those in this state. A page can be short, or empty, and go on: a request looks through 20,000.
    #[param(inline)]
    state: Option<RecipientState>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Somebody who was to get a campaign.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipientView {
    subject_id: Uuid,
    anonymous_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed_by: Option<String>,
    at: String,
}

const COLUMNS: &[&str] = &[
    "subjectId",
    "anonymousId",
    "externalId",
    "state",
    "suppressedBy",
    "at",
];

/// Lists who was to get a campaign of an app, which is there, and what became of it: a page, or all of them as CSV.
pub async fn answer(
    services: &Services,
    kind: Kind,
    key: (Uuid, Uuid),
    query: RecipientsQuery,
    as_csv: bool,
) -> Result<Response, ApiError> {
    let limit = page::limit(query.limit)?;
    let (now, filter) = (services.clock.now(), query.state);
    if as_csv {
        let (db, clock) = (services.db.clone(), services.clock.clone());
        let read = move |after: Option<Uuid>| {
            let (db, now) = (db.clone(), clock.now());
            async move {
                let mut tx = db.read().await?;
                let most = MOST as usize;
                let page = super::page(&mut tx, kind, key, filter, after, most, now).await?;
                let views = views(&mut tx, key.0, page.recipients).await?;
                Ok((views, page.next))
            }
        };
        return csv::answer(COLUMNS, read).await;
    }
    let state = filter.map_or("", RecipientState::name);
    let list = format!("recipients {} {} {state}", key.0, key.1);
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<Uuid> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let most = limit as usize;
    let page = super::page(&mut tx, kind, key, filter, after, most, now).await?;
    let data = Page {
        items: views(&mut tx, key.0, page.recipients).await?,
        next_cursor: page.next.map(|id: Uuid| cursors.seal(&id)),
    };
    Ok(Data { data }.into_response())
}

/// Recipients with what they are called.
async fn views(
    tx: &mut Tx,
    app_id: Uuid,
    recipients: Vec<Recipient>,
) -> nudge_db::Result<Vec<RecipientView>> {
    let subjects: Vec<Uuid> = recipients.iter().map(|entry| entry.subject_id).collect();
    let names = super::names(tx, app_id, &subjects).await?;
    let names: HashMap<Uuid, _> = names
        .into_iter()
        .map(|names| (names.subject_id, names))
        .collect();
    let views = recipients.into_iter().map(|entry| {
        let names = names.get(&entry.subject_id);
        RecipientView {
            subject_id: entry.subject_id,
            anonymous_id: names.and_then(|names| names.anonymous_id.clone()),
            external_id: names.and_then(|names| names.external_id.clone()),
            state: entry.state.name(),
            suppressed_by: entry.suppressed_by,
            at: clock::to_text(entry.at),
        }
    });
    Ok(views.collect())
}
