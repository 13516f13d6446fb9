//! The route that explains (contract 13).

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_http::{ApiError, Code, Data, Params};
use nudge_records::subjects::named::{IdKind, NameQuery};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, Explained};
use crate::explain::decision::Error as PluginError;
use crate::services::Shared;

/// Why an event fired or did not.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(explain))
}

/// What to explain.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the contract's parameters"
)]
pub struct ExplainQuery {
    /// The campaign, whatever its status.
    campaign_id: Uuid,
    /// The subject. Exactly one of `subjectId`, `anonymousId` and `externalId` is given.
    subject_id: Option<Uuid>,
    /// The subject, by an anonymous id.
    anonymous_id: Option<String>,
    /// The subject, by the external id.
    external_id: Option<String>,
    /// The event.
    event_id: Uuid,
}

impl ExplainQuery {
    /// The subject that is named.
    async fn subject(&self, services: &Shared, app_id: Uuid) -> Result<Uuid, ApiError> {
        let (name, kind) = match (self.subject_id, &self.anonymous_id, &self.external_id) {
            (Some(subject_id), None, None) => return Ok(subject_id),
            (None, Some(name), None) => (name, IdKind::AnonymousId),
            (None, None, Some(name)) => (name, IdKind::ExternalId),
            _ => {
                let detail =
                    "exactly one of `subjectId`, `anonymousId` and `externalId` is required";
                return Err(ApiError::field("/subjectId", "invalid_query", detail));
            }
        };
        let mut tx = services.db.read().await?;
        let named = NameQuery::of(Some(kind)).find(&mut tx, app_id, name).await;
        let missing = |error: ApiError| match error.code() {
            Code::NotFound => error.with_detail("the app has nobody with this id"),
            _ => error,
        };
        Ok(named.map_err(missing)?.subject_id)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::Plugin(PluginError::Failed(detail)) => {
                Self::because(Code::Unavailable, format!("the plugin failed: {detail}"))
            }
            Error::Plugin(PluginError::Unavailable(cause)) => Self::unavailable(cause),
            Error::Plugin(PluginError::Storage(cause)) | Error::Storage(cause) => cause.into(),
            Error::Plugin(cause) => Self::internal(cause),
            Error::Campaign(cause) => cause.into(),
        }
    }
}

/// Says why a campaign fired or did not, for an event of a subject.
#[utoipa::path(get, path = "/v1/apps/{appId}/explain", tag = "decisions",
    params(("appId" = Uuid, Path), ExplainQuery), responses((status = 200, body = Data<Explained>)))]
pub async fn explain(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<ExplainQuery>,
) -> Result<Data<Explained>, ApiError> {
    let ExplainQuery {
        campaign_id,
        event_id,
        ..
    } = query;
    let subject_id = query.subject(&services, scope.app.id).await?;
    let data = super::explain(&services, &scope.app, campaign_id, subject_id, event_id).await?;
    Ok(Data { data })
}
