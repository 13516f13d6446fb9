//! Dead letters as CSV.

use std::sync::Arc;

use axum::response::Response;
use nudge_http::{ApiError, csv};
use nudge_records::dead_letters::store::{self, Filter, Place};
use uuid::Uuid;

use super::http::LetterView;
use crate::services::Shared;

/// Letters that are read at once: each may have 64 KiB.
const PAGE: i64 = 64;

const COLUMNS: &[&str] = &[
    "id",
    "eventId",
    "eventName",
    "anonymousId",
    "subjectId",
    "receivedAt",
    "timestamp",
    "stage",
    "reason",
    "violations",
    "plugin",
    "campaignId",
    "event",
    "attempts",
    "state",
];

/// All letters of a filter.
pub(super) async fn answer(
    services: Shared,
    app_id: Uuid,
    filter: Filter,
) -> Result<Response, ApiError> {
    let filter = Arc::new(filter);
    let read = move |before: Option<Place>| {
        let (services, filter) = (services.clone(), Arc::clone(&filter));
        async move {
            let mut tx = services.db.read().await?;
            let found = store::list(&mut tx, app_id, &filter, before, PAGE).await?;
            let is_full = i64::try_from(found.len()) == Ok(PAGE);
            let last = found.last().filter(|_| is_full);
            let next = last.map(|last| (last.letter.timestamp, last.letter.id));
            let views: Vec<LetterView> = found.into_iter().map(LetterView::from).collect();
            Ok((views, next))
        }
    };
    csv::answer(COLUMNS, read).await
}
