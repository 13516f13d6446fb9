//! What is listed of a survey, as CSV.

use std::sync::Arc;

use axum::response::Response;
use nudge_http::page::MOST;
use nudge_http::{ApiError, csv};
use uuid::Uuid;

use super::analytics::Range;
use super::management::AnswerView;
use super::responses;
use crate::services::Shared;

/// All answers of a survey within a range; `key` is the app and the survey.
pub(super) async fn of_responses(
    services: Shared,
    key: (Uuid, Uuid),
    range: Range,
) -> Result<Response, ApiError> {
    let read = move |after: Option<responses::Place>| {
        let services = Arc::clone(&services);
        async move {
            let mut tx = services.db.read().await?;
            let rows = responses::after(&mut tx, key, range, after, i64::from(MOST)).await?;
            let is_full = rows.len() == MOST as usize;
            let next = rows
                .last()
                .filter(|_| is_full)
                .map(responses::ResponseRow::place);
            let views = rows.into_iter().map(|row| AnswerView::new(key.1, row));
            let views: Vec<AnswerView> = views.collect();
            Ok((views, next))
        }
    };
    let columns = &[
        "attemptId",
        "campaignId",
        "questionId",
        "answerValue",
        "answeredAt",
    ];
    csv::answer(columns, read).await
}
