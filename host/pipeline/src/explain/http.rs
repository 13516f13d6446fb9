//! The route that explains (contract 13).

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_http::{ApiError, Code, Data, Params};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{Error, Explained};
use crate::explain::decision::Error as PluginError;
use crate::services::Shared;

/// What to explain.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the contract's parameters"
)]
pub struct ExplainQuery {
    /// The campaign, whatever its status.
    campaign_id: Uuid,
    /// The subject.
    subject_id: Uuid,
    /// The event.
    event_id: Uuid,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::Plugin(PluginError::Failed(detail)) => {
                Self::because(Code::Unavailable, format!("the plugin failed: {detail}"))
            }
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
        subject_id,
        event_id,
    } = query;
    let data = super::explain(&services, &scope.app, campaign_id, subject_id, event_id).await?;
    Ok(Data { data })
}
