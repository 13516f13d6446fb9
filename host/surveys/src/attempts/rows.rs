//! What is listed of a survey, as CSV.

use axum::response::Response;
use futures_util::FutureExt as _;
use nudge_http::page::MOST;
use nudge_http::{ApiError, csv};
use uuid::Uuid;

use super::analytics::Range;
use super::management::AnswerView;
use super::responses::{self, ResponseRow};
use crate::services::Services;

/// All answers of a survey within a range; `key` is the app and the survey.
pub(super) async fn of_responses(
    services: &Services,
    key: (Uuid, Uuid),
    range: Range,
) -> Result<Response, ApiError> {
    let list =
        csv::reader(move |tx, after, most| responses::after(tx, key, range, after, most).boxed());
    let columns = &[
        "attemptId",
        "campaignId",
        "questionId",
        "answerValue",
        "answeredAt",
    ];
    let view = move |row| AnswerView::new(key.1, row);
    csv::answer_rows(
        columns,
        &services.db,
        MOST,
        list,
        ResponseRow::position,
        view,
    )
    .await
}
