//! Routes of property updates (specification 4.1, contract 5).

use std::collections::BTreeMap;

use axum::extract::State;
use nudge_apps::auth::{PropertyWriter, SdkSubject};
use nudge_http::{ApiError, Code, Data, Json, Mark};
use nudge_records::events::Source;
use nudge_records::properties::MOST;
use nudge_records::subjects::current::check_anonymous_id;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, Invalid, Update, UpdateOutcome, Whom};
use crate::services::Shared;

/// A person's own properties, from SDKs.
pub fn sdk_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(update_own_properties))
}

/// Properties that customers' servers set.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(update_user_properties))
}

/// An update that an SDK sends for its subject.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SdkUpdate {
    /// One of the subject's anonymous ids.
    anonymous_id: String,
    /// Sent again, the same update changes nothing more.
    mutation_id: Uuid,
    /// At most 64 properties: texts, finite numbers, booleans and nulls.
    #[schema(value_type = Option<Object>)]
    set: Option<BTreeMap<String, Box<RawValue>>>,
    /// At most 64 keys to remove.
    unset: Option<Vec<String>>,
}

/// An update that a backend sends.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendUpdate {
    subject: Reference,
    update: UpdateBody,
}

/// Whose properties to update: exactly one of these.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the API's names")]
pub struct Reference {
    external_id: Option<String>,
    anonymous_id: Option<String>,
    subject_id: Option<Uuid>,
}

/// What to update.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateBody {
    /// Sent again, the same update changes nothing more.
    mutation_id: Uuid,
    /// At most 64 properties: texts, finite numbers, booleans and nulls.
    #[schema(value_type = Option<Object>)]
    set: Option<BTreeMap<String, Box<RawValue>>>,
    /// At most 64 keys to remove.
    unset: Option<Vec<String>>,
}

/// What became of an update.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeView {
    /// False for a retry, and if the privacy policy leaves nothing.
    applied: bool,
    /// Submitted keys that the privacy policy takes out.
    filtered_keys: Vec<String>,
}

/// Updates the properties of an SDK's own subject.
#[utoipa::path(post, path = "/v1/sdk/user-properties", tag = "sdk", request_body = SdkUpdate,
    responses((status = 200, body = Data<OutcomeView>)))]
pub async fn update_own_properties(
    subject: SdkSubject,
    State(services): State<Shared>,
    mark: Mark,
    Json(request): Json<SdkUpdate>,
) -> Result<Data<OutcomeView>, ApiError> {
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    let update = Update::check("", request.mutation_id, request.set, request.unset)?;
    let whom = Whom::Token(subject.token, request.anonymous_id);
    let whom = (&whom, Source::Sdk);
    let outcome = super::take(&services, &subject.app, whom, &update, mark, None).await?;
    Ok(outcome.into())
}

/// Updates the properties of any person of the app, from the customer's backend.
#[utoipa::path(patch, path = "/v1/apps/{appId}/users/properties", tag = "users",
    params(("appId" = Uuid, Path)), request_body = BackendUpdate,
    responses((status = 200, body = Data<OutcomeView>)))]
pub async fn update_user_properties(
    PropertyWriter { app, actor }: PropertyWriter,
    State(services): State<Shared>,
    mark: Mark,
    Json(request): Json<BackendUpdate>,
) -> Result<Data<OutcomeView>, ApiError> {
    let whom = request.subject.whom()?;
    let UpdateBody {
        mutation_id,
        set,
        unset,
    } = request.update;
    let update = Update::check("/update", mutation_id, set, unset)?;
    let whom = (&whom, Source::Server);
    let outcome = super::take(&services, &app, whom, &update, mark, Some(&actor)).await?;
    Ok(outcome.into())
}

impl Reference {
    fn whom(self) -> Result<Whom, ApiError> {
        let whom = match (self.external_id, self.anonymous_id, self.subject_id) {
            (Some(id), None, None) => Whom::External(id),
            (None, Some(id), None) => Whom::Anonymous(id),
            (None, None, Some(id)) => Whom::Subject(id),
            _ => {
                let detail = "send exactly one of externalId, anonymousId and subjectId";
                return Err(ApiError::field("/subject", "exactly_one", detail));
            }
        };
        match &whom {
            // No id of ours has one, and PostgreSQL takes none.
            Whom::External(id) | Whom::Anonymous(id) if id.contains('\0') => {
                Err(Error::SubjectNotFound.into())
            }
            _ => Ok(whom),
        }
    }
}

impl From<UpdateOutcome> for Data<OutcomeView> {
    fn from(outcome: UpdateOutcome) -> Self {
        let data = OutcomeView {
            applied: outcome.applied,
            filtered_keys: outcome.filtered_keys,
        };
        Self { data }
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Empty => Self::new(Code::EmptyUpdate),
            Invalid::InBoth(errors) => Self::fields(Code::KeyInSetAndUnset, errors),
            Invalid::OverLimit(error) => Self::fields(Code::LimitExceeded, vec![error]),
            Invalid::Unusable(error) => Self::fields(Code::ValidationFailed, vec![error]),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::TokenRevoked => Self::new(Code::SubjectTokenExpired),
            Error::SubjectMismatch => Self::new(Code::SubjectMismatch),
            Error::SubjectNotFound => Self::new(Code::SubjectNotFound),
            Error::ConsentRequired => Self::new(Code::ConsentRequired),
            Error::MutationConflict => Self::new(Code::MutationConflict),
            Error::TooMany => {
                let detail = format!("a person has at most {MOST} properties; remove some first");
                Self::because(Code::LimitExceeded, detail)
            }
            Error::Erasing => Self::unavailable(error),
            Error::Storage(error) | Error::InDoubt(error) => error.into(),
        }
    }
}
