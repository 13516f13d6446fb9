//! Routes of attempts, for SDKs (contract 7).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use nudge_apps::auth::SdkSubject;
use nudge_campaigns::surveys::Payload;
use nudge_campaigns::{store as campaigns, surveys};
use nudge_db::{Timestamp, Tx};
use nudge_http::body::OptionalJson;
use nudge_http::{ApiError, Code, Data, Json, ResourceId, created};
use nudge_platform::clock;
use nudge_platform::field_error::FieldError;
use nudge_records::subjects::current::{current, current_of};
use nudge_records::subjects::{self, AliasView};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{AttemptStep, Error, Given, Next, Start, language};
use crate::instructions::feedback;
use crate::services::Shared;

/// Answers, from SDKs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(start_attempt))
        .routes(routes!(answer_attempt))
        .routes(routes!(complete_attempt))
        .routes(routes!(dismiss_attempt))
}

/// Answers of one request.
const MOST_ANSWERS: usize = 200;
/// The bytes of one answer, as JSON. Whatever a question takes fits: words of 10,000 characters if each is written as
/// two escapes, and a hundred fields of 500 characters.
const MOST_ANSWER_BYTES: usize = 256 * 1024;

/// A survey to be started.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartRequest {
    /// One of the subject's anonymous ids.
    anonymous_id: String,
    /// The instruction that it follows. Surveys of the modes `on_demand` and `link_only` need none.
    instruction_id: Option<Uuid>,
    /// The SDK's own id of the attempt: sent again, it finds the same attempt.
    client_attempt_id: Option<Uuid>,
    /// The survey's version that the person sees, where no instruction other than a button's fixes one. Unless said,
    /// the one that the button shows; without a button, or where it never ran, the current one.
    survey_version: Option<i64>,
}

/// An attempt, and what is next.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    attempt_id: Uuid,
    survey_id: Uuid,
    survey_version: i64,
    /// `started`, `completed`, or `abandoned` until the next answer.
    state: &'static str,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// `{questionId}`, `{endScreenId}`, or null at the end of a survey without end screens.
    next: Value,
    /// What to show, where no instruction fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    survey: Option<Arc<RawValue>>,
}

/// Answers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswersRequest {
    /// One of the subject's anonymous ids.
    anonymous_id: String,
    /// 1 to 200 answers; all are taken, or none.
    answers: Vec<AnswerRequest>,
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerRequest {
    question_id: String,
    /// As the question's type takes it; null passes over a question that is not required. At most 256 KiB of JSON.
    #[schema(value_type = Value)]
    value: Option<Box<RawValue>>,
    /// When it was given; now unless said. Before the attempt's instruction was made is when that was made.
    answered_at: Option<String>,
}

/// What is next.
#[derive(Debug, Serialize, ToSchema)]
pub struct NextView {
    /// `{questionId}`, `{endScreenId}`, or null at the end of a survey without end screens.
    next: Value,
}

/// The end of an attempt.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndRequest {
    /// One of the subject's anonymous ids.
    anonymous_id: Option<String>,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::ConsentRequired => Self::new(Code::ConsentRequired),
            Error::NotActive => Self::new(Code::SurveyNotActive),
            Error::InstructionRequired => Self::new(Code::InstructionRequired),
            Error::Completed => Self::new(Code::AttemptCompleted),
            Error::Invalid(errors) => Self::fields(Code::InvalidAnswer, errors),
            Error::Storage(error) => error.into(),
        }
    }
}

impl From<Next> for Value {
    fn from(next: Next) -> Self {
        match next {
            Next::Question(id) => json!({"questionId": id}),
            Next::EndScreen(id) => json!({"endScreenId": id}),
            Next::Nothing => Self::Null,
        }
    }
}

impl AttemptView {
    fn new(outcome: AttemptStep, now: Timestamp) -> Self {
        let AttemptStep { attempt, next, .. } = outcome;
        Self {
            attempt_id: attempt.id,
            survey_id: attempt.survey_id,
            survey_version: attempt.survey_version,
            state: attempt.shown_state(now),
            started_at: clock::to_text(attempt.started_at),
            completed_at: attempt.completed_at.map(clock::to_text),
            next: next.into(),
            survey: None,
        }
    }
}

/// Starts an attempt. With an instruction, or the SDK's own id of the attempt, a repetition finds what the first
/// request started.
#[utoipa::path(post, path = "/v1/sdk/surveys/{surveyId}/attempts", tag = "sdk",
    params(("surveyId" = Uuid, Path)), request_body = StartRequest,
    responses((status = 201, body = Data<AttemptView>)))]
pub async fn start_attempt(
    subject: SdkSubject,
    State(services): State<Shared>,
    ResourceId(survey_id): ResourceId,
    headers: HeaderMap,
    Json(request): Json<StartRequest>,
) -> Result<(StatusCode, Data<AttemptView>), ApiError> {
    let standing = current_of(&services, &subject, &request.anonymous_id).await?;
    if standing.is_nobody() {
        return Err(Error::ConsentRequired.into());
    }
    let start = Start {
        survey_id,
        instruction_id: request.instruction_id,
        client_attempt_id: request.client_attempt_id,
        survey_version: request.survey_version,
    };
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let standing = subjects::current::lock(&mut tx, &subject.token).await?;
    let outcome = super::start(&mut tx, &subject.app, &standing, start, now).await?;
    let survey = match request.instruction_id.and(outcome.attempt.instruction_id) {
        None => Some(shown(&mut tx, &outcome, &standing, language::preferred(&headers)).await?),
        Some(_) => None,
    };
    tx.commit().await?;
    feedback::wake(&services, &subject.app, standing.subject_id);
    let view = AttemptView {
        survey,
        ..AttemptView::new(outcome, now)
    };
    Ok(created(view))
}

/// The survey of an attempt in the person's language, or in that which the request asks for where the person's is not known.
async fn shown(
    tx: &mut Tx,
    outcome: &AttemptStep,
    standing: &AliasView,
    asked: Option<&str>,
) -> Result<Arc<RawValue>, ApiError> {
    let attempt = &outcome.attempt;
    let (app_id, id, version) = (attempt.app_id, attempt.survey_id, attempt.survey_version);
    let content = campaigns::version::<surveys::Content>(tx, app_id, id, version).await?;
    let content = content.ok_or(Error::NotFound)?;
    let locale = subjects::store::locale(tx, app_id, standing.subject_id).await?;
    Ok(Payload::new(id, version, &content).survey(locale.as_deref().or(asked)))
}

/// Takes answers, and says what is next. The last word on a question counts, until the attempt is complete.
#[utoipa::path(post, path = "/v1/sdk/attempts/{attemptId}/answers", tag = "sdk",
    params(("attemptId" = Uuid, Path)), request_body = AnswersRequest,
    responses((status = 200, body = Data<NextView>)))]
pub async fn answer_attempt(
    subject: SdkSubject,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Json(request): Json<AnswersRequest>,
) -> Result<Data<NextView>, ApiError> {
    if request.answers.is_empty() || request.answers.len() > MOST_ANSWERS {
        let detail = format!("answers must have 1 to {MOST_ANSWERS} items");
        return Err(ApiError::field("/answers", "out_of_range", detail));
    }
    let standing = current_of(&services, &subject, &request.anonymous_id).await?;
    if standing.is_nobody() {
        return Err(Error::NotFound.into());
    }
    let now = services.clock.now();
    let answers = request.answers.into_iter().enumerate();
    let given = answers
        .map(|(index, answer)| given(index, answer, now))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tx = services.db.write().await?;
    let standing = subjects::current::lock(&mut tx, &subject.token).await?;
    let app = &subject.app;
    let outcome = super::take_answers(&mut tx, app, &standing, id, &given, now).await?;
    tx.commit().await?;
    feedback::wake(&services, app, standing.subject_id);
    Ok(Data {
        data: NextView {
            next: outcome.next.into(),
        },
    })
}

fn given(index: usize, answer: AnswerRequest, now: Timestamp) -> Result<Given, ApiError> {
    let at = match answer.answered_at {
        None => now,
        Some(text) => clock::from_text(&text).ok_or_else(|| {
            let pointer = format!("/answers/{index}/answeredAt");
            let error = FieldError::new(pointer, "invalid", "an ISO 8601 instant with an offset");
            ApiError::fields(Code::ValidationFailed, vec![error])
        })?,
    };
    let length = answer.value.as_ref().map_or(0, |value| value.get().len());
    if length > MOST_ANSWER_BYTES {
        let detail = format!("an answer has at most {MOST_ANSWER_BYTES} bytes as JSON");
        let error = FieldError::new(format!("/answers/{index}/value"), "too_large", detail);
        return Err(Error::Invalid(vec![error]).into());
    }
    Ok(Given {
        question_id: answer.question_id,
        value: answer.value,
        answered_at: at.min(now),
    })
}

/// Completes an attempt. Saying it again changes nothing.
#[utoipa::path(post, path = "/v1/sdk/attempts/{attemptId}/complete", tag = "sdk",
    params(("attemptId" = Uuid, Path)), request_body = Option<EndRequest>,
    responses((status = 200, body = Data<AttemptView>)))]
pub async fn complete_attempt(
    subject: SdkSubject,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    OptionalJson(request): OptionalJson<EndRequest>,
) -> Result<Data<AttemptView>, ApiError> {
    end(&services, &subject, request, (id, End::Complete)).await
}

/// Ends an attempt that the person closed. Saying it again changes nothing.
#[utoipa::path(post, path = "/v1/sdk/attempts/{attemptId}/dismiss", tag = "sdk",
    params(("attemptId" = Uuid, Path)), request_body = Option<EndRequest>,
    responses((status = 200, body = Data<AttemptView>)))]
pub async fn dismiss_attempt(
    subject: SdkSubject,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    OptionalJson(request): OptionalJson<EndRequest>,
) -> Result<Data<AttemptView>, ApiError> {
    end(&services, &subject, request, (id, End::Dismiss)).await
}

/// How an attempt ends.
enum End {
    Complete,
    Dismiss,
}

/// Ends an attempt of the subject's.
async fn end(
    services: &Shared,
    subject: &SdkSubject,
    request: EndRequest,
    (id, how): (Uuid, End),
) -> Result<Data<AttemptView>, ApiError> {
    let standing = match request.anonymous_id {
        Some(anonymous_id) => current_of(services, subject, &anonymous_id).await?,
        None => current(services, subject).await?,
    };
    if standing.is_nobody() {
        return Err(Error::NotFound.into());
    }
    let mut tx = services.db.write().await?;
    let standing = subjects::current::lock(&mut tx, &subject.token).await?;
    let (app, now) = (&subject.app, services.clock.now());
    let outcome = match how {
        End::Complete => super::complete(&mut tx, app, &standing, id, now).await?,
        End::Dismiss => super::dismiss(&mut tx, app, &standing, id, now).await?,
    };
    tx.commit().await?;
    feedback::wake(services, app, standing.subject_id);
    if outcome.survey_ended {
        services.apps.refresh(subject.app.id).await?;
    }
    Ok(Data {
        data: AttemptView::new(outcome, now),
    })
}
