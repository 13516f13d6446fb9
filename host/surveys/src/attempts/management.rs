//! Routes of results and attempts, for people (specification 4.3, contract 7).

use std::collections::HashMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use nudge_apps::auth::Viewer;
use nudge_campaigns::campaign::Kind;
use nudge_campaigns::surveys::Survey;
use nudge_campaigns::{store as campaigns, surveys};
use nudge_db::Timestamp;
use nudge_http::csv::WantsCsv;
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, Gathering, Page};
use nudge_http::query;
use nudge_http::{ApiError, Code, Data, NestedId, Params, ResourceId};
use nudge_platform::{clock, hidden};
use nudge_records::instructions::recipients::http::{RecipientView, RecipientsQuery, answer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::analytics::{self, Range, Report};
use super::responses::ResponseRow;
use super::store::{self, AnswerRow};
use super::{Attempt, responses, rows};
use crate::services::Shared;

/// What became of surveys.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(get_survey_analytics))
        .routes(routes!(list_survey_responses))
        .routes(routes!(list_survey_recipients))
        .routes(routes!(list_survey_attempts))
        .routes(routes!(get_survey_attempt))
        .routes(routes!(list_attempts))
}

/// The last page of answers that can be asked for: what comes before is counted each time.
const MOST_PAGE: u32 = 100_000;
/// Attempts that are read before anything is known of how long their answers are: those of one may be some megabytes.
const FIRST: usize = 4;

/// Which attempts results are of.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct RangeQuery {
    /// Attempts that began from here on: a day (UTC), or an ISO 8601 instant with an offset.
    from: Option<String>,
    /// Attempts that began before here: an instant; or a day, which is included.
    to: Option<String>,
}

/// Which answers to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct ResponsesQuery {
    /// Answers given from here on: an ISO 8601 instant with an offset, or a day (UTC).
    from: Option<String>,
    /// Answers given before here: an instant; or a day, which is included.
    to: Option<String>,
    /// Which page, from 1 on.
    #[param(minimum = 1)]
    page: Option<u32>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Which attempts to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct AttemptsQuery {
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Whose attempts to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct PersonAttemptsQuery {
    /// The person.
    subject_id: Uuid,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Of what attempts are listed.
#[derive(Clone, Copy, Debug)]
enum Of {
    Survey(Uuid),
    Subject(Uuid),
}

/// An answer (specification 2.4).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerView {
    attempt_id: Uuid,
    campaign_id: Uuid,
    question_id: String,
    #[schema(value_type = Value)]
    answer_value: Box<RawValue>,
    answered_at: String,
}

/// A page of answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResponsesView {
    items: Vec<AnswerView>,
    page: u32,
    limit: u32,
    /// How many answers there are; exact up to 10,000.
    total: i64,
    /// True where there are more than `total` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_is_estimate: Option<bool>,
}

/// An attempt with its answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptDetail {
    attempt_id: Uuid,
    survey_id: Uuid,
    survey_version: i64,
    subject_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction_id: Option<Uuid>,
    state: &'static str,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_question_id: Option<String>,
    answers: Vec<AnswerView>,
}

fn range(from: Option<&str>, to: Option<&str>) -> Result<Range, ApiError> {
    let (from, to) = query::range("", from, to)?;
    Ok(Range {
        from: from.unwrap_or(Range::ALL.from),
        to: to.unwrap_or(Range::ALL.to),
    })
}

async fn found(tx: &mut nudge_db::Tx, app_id: Uuid, id: Uuid) -> Result<Survey, ApiError> {
    let survey = campaigns::find::<surveys::Content>(tx, app_id, id).await?;
    survey.ok_or_else(|| ApiError::new(Code::NotFound))
}

/// Results of a survey: totals, how far people came, and what they answered.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}/analytics", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path), RangeQuery),
    responses((status = 200, body = Data<Report>)))]
pub async fn get_survey_analytics(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<RangeQuery>,
) -> Result<Data<Report>, ApiError> {
    let range = range(query.from.as_deref(), query.to.as_deref())?;
    // Somebody's answers leave the counts while they are erased: what is subtracted must be in the sum.
    let mut tx = services.db.repeatable_read().await?;
    let survey = found(&mut tx, scope.app.id, id).await?;
    let now = services.clock.now();
    let data = analytics::report(&mut tx, &survey, range, now).await?;
    Ok(Data { data })
}

/// Lists answers, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}/responses", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path), ResponsesQuery),
    responses((status = 200, content((Data<ResponsesView> = "application/json"), (String = "text/csv")))))]
pub async fn list_survey_responses(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<ResponsesQuery>,
) -> Result<Response, ApiError> {
    let range = range(query.from.as_deref(), query.to.as_deref())?;
    let limit = page::limit(query.limit)?;
    let page = query.page.unwrap_or(1);
    if !(1..=MOST_PAGE).contains(&page) {
        let detail = format!("page must be 1 to {MOST_PAGE}");
        return Err(ApiError::field("/page", "out_of_range", detail));
    }
    let mut tx = services.db.read().await?;
    let survey = found(&mut tx, scope.app.id, id).await?;
    let key = (scope.app.id, survey.id);
    if wants_csv {
        drop(tx);
        return rows::of_responses(&services, key, range).await;
    }
    let offset = i64::from(page - 1) * i64::from(limit);
    let found = responses::page(&mut tx, key, range, offset, i64::from(limit)).await?;
    let total = responses::count(&mut tx, key, range).await?;
    let items = found.into_iter().map(|row| AnswerView::new(id, row));
    let data = ResponsesView {
        items: items.collect(),
        page,
        limit,
        total: total.min(responses::MOST_COUNTED),
        total_is_estimate: (total > responses::MOST_COUNTED).then_some(true),
    };
    Ok(Data { data }.into_response())
}

impl AnswerView {
    pub(super) fn new(campaign_id: Uuid, row: ResponseRow) -> Self {
        Self {
            attempt_id: row.attempt_id,
            campaign_id,
            question_id: row.question_id,
            answer_value: RawValue::from_string(row.value).unwrap_or_default(),
            answered_at: clock::to_text(row.answered_at),
        }
    }
}

/// Lists who was to get a survey and what became of it, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}/recipients", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path), RecipientsQuery),
    responses((status = 200, content((Data<Page<RecipientView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_survey_recipients(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<RecipientsQuery>,
) -> Result<Response, ApiError> {
    let mut tx = services.db.read().await?;
    let key = (scope.app.id, found(&mut tx, scope.app.id, id).await?.id);
    drop(tx);
    answer(&services, Kind::Survey, key, query, wants_csv).await
}

/// Lists attempts with their answers, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}/attempts", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path), AttemptsQuery),
    responses((status = 200, body = Data<Page<AttemptDetail>>)))]
pub async fn list_survey_attempts(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<AttemptsQuery>,
) -> Result<Data<Page<AttemptDetail>>, ApiError> {
    let mut tx = services.db.read().await?;
    let survey = found(&mut tx, scope.app.id, id).await?;
    drop(tx);
    attempts_of(&services, scope.app.id, Of::Survey(survey.id), query).await
}

/// Lists a person's attempts at all surveys with their answers, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/attempts", tag = "surveys",
    params(("appId" = Uuid, Path), PersonAttemptsQuery),
    responses((status = 200, body = Data<Page<AttemptDetail>>)))]
pub async fn list_attempts(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<PersonAttemptsQuery>,
) -> Result<Data<Page<AttemptDetail>>, ApiError> {
    let of = Of::Subject(query.subject_id);
    let paging = AttemptsQuery {
        limit: query.limit,
        cursor: query.cursor,
    };
    attempts_of(&services, scope.app.id, of, paging).await
}

/// A page of attempts with their answers, of which one may be some megabytes.
async fn attempts_of(
    services: &Shared,
    app_id: Uuid,
    of: Of,
    query: AttemptsQuery,
) -> Result<Data<Page<AttemptDetail>>, ApiError> {
    let limit = page::limit(query.limit)?;
    let now = services.clock.now();
    let list = match of {
        Of::Survey(id) => format!("attempts {app_id} {id}"),
        Of::Subject(id) => format!("attempts of {app_id} {id}"),
    };
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<(Timestamp, Uuid)> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let all = (Range::ALL.from, Range::ALL.to);
    let mut page = Gathering::new(limit as usize).beginning_with(FIRST);
    while let Some(wanted) = page.wanted() {
        let shown = page
            .last()
            .map(|(last, _): &Answered| (last.started_at, last.id));
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let after = shown.or(after);
        let attempts = match of {
            Of::Survey(id) => {
                let shown = store::Whose::Shown;
                store::list(&mut tx, (app_id, id), all, after, wanted, shown).await?
            }
            Of::Subject(id) => store::list_of_subject(&mut tx, (app_id, id), after, wanted).await?,
        };
        let answered = with_answers(&mut tx, app_id, attempts).await?;
        page.add(answered, |(_, answers)| {
            answers.iter().map(|answer| answer.value.len()).sum()
        });
    }
    drop(tx);
    let (attempts, more) = page.end();
    let next_cursor = cursors.behind(&attempts, more, |(last, _)| (last.started_at, last.id));
    let items = attempts
        .into_iter()
        .map(|(attempt, answers)| AttemptDetail::new(attempt, answers, now));
    Ok(Data {
        data: Page {
            items: items.collect(),
            next_cursor,
        },
    })
}

/// An attempt with its answers.
type Answered = (Attempt, Vec<AnswerRow>);

async fn with_answers(
    tx: &mut nudge_db::Tx,
    app_id: Uuid,
    attempts: Vec<Attempt>,
) -> nudge_db::Result<Vec<Answered>> {
    let ids: Vec<Uuid> = attempts.iter().map(|attempt| attempt.id).collect();
    let mut answers: HashMap<Uuid, Vec<AnswerRow>> = HashMap::new();
    for row in store::answer_rows(tx, app_id, &ids).await? {
        answers.entry(row.attempt_id).or_default().push(row);
    }
    let answered = attempts.into_iter().map(|attempt| {
        let answers = answers.remove(&attempt.id).unwrap_or_default();
        (attempt, answers)
    });
    Ok(answered.collect())
}

/// Reads an attempt with its answers.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}/attempts/{attemptId}", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path), ("attemptId" = Uuid, Path)),
    responses((status = 200, body = Data<AttemptDetail>)))]
pub async fn get_survey_attempt(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    id: NestedId,
) -> Result<Data<AttemptDetail>, ApiError> {
    let mut tx = services.db.read().await?;
    let survey = found(&mut tx, scope.app.id, id.outer).await?;
    let attempt = store::find(&mut tx, scope.app.id, id.inner).await?;
    let attempt = attempt
        .filter(|attempt| attempt.survey_id == survey.id)
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    if hidden::is_hidden(&mut tx, scope.app.id, attempt.subject_id).await? {
        return Err(ApiError::new(Code::NotFound));
    }
    let answers = store::answer_rows(&mut tx, scope.app.id, &[attempt.id]).await?;
    let data = AttemptDetail::new(attempt, answers, services.clock.now());
    Ok(Data { data })
}

impl AttemptDetail {
    /// Answers of ways that were left are not shown.
    fn new(attempt: Attempt, answers: Vec<AnswerRow>, now: Timestamp) -> Self {
        let counted = answers.into_iter().filter(|answer| answer.counted);
        let answers = counted.map(|answer| AnswerView {
            attempt_id: attempt.id,
            campaign_id: attempt.survey_id,
            question_id: answer.question_id,
            answer_value: RawValue::from_string(answer.value).unwrap_or_default(),
            answered_at: clock::to_text(answer.answered_at),
        });
        Self {
            attempt_id: attempt.id,
            survey_id: attempt.survey_id,
            survey_version: attempt.survey_version,
            subject_id: attempt.subject_id,
            instruction_id: attempt.instruction_id,
            state: attempt.shown_state(now),
            started_at: clock::to_text(attempt.started_at),
            completed_at: attempt.completed_at.map(clock::to_text),
            answers: answers.collect(),
            last_question_id: attempt.last_question_id,
        }
    }
}
