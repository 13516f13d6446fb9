//! Dead letters as CSV.

use std::sync::Arc;

use axum::response::Response;
use futures_util::FutureExt as _;
use nudge_http::{ApiError, csv};
use nudge_records::dead_letters::store::{self, Filter, FoundLetter};
use uuid::Uuid;

use super::http::LetterView;
use crate::services::Services;

/// Letters that are read at once: each may have 64 KiB.
const PAGE: u32 = 64;

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
    "detail",
    "clientTimestamp",
    "timer",
];

/// All letters of a filter.
pub(super) async fn answer(
    services: &Services,
    app_id: Uuid,
    filter: Filter,
) -> Result<Response, ApiError> {
    let filter = Arc::new(filter);
    let list = csv::reader(move |tx, before, most| {
        let filter = Arc::clone(&filter);
        async move { store::list(tx, app_id, &filter, before, most).await }.boxed()
    });
    let position = |row: &FoundLetter| (row.letter.timestamp, row.letter.id);
    csv::answer_rows(
        COLUMNS,
        &services.db,
        PAGE,
        list,
        position,
        LetterView::from,
    )
    .await
}
