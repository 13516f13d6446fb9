//! The route of previews (specification 4.4).

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_campaigns::push::{self, Variant};
use nudge_http::{ApiError, Code, Data, Json};
use nudge_records::subjects::{self, AliasKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::preview::{self, Ask, PreviewView};
use crate::services::Shared;
use crate::transactional::check_data;

/// What messages appear on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// A push message.
    Push,
}

/// What to resolve, for whom.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewRequest {
    #[expect(dead_code, reason = "there is one surface; others are refused")]
    surface: Surface,
    /// A variant.
    content: Variant,
    anonymous_id: Option<String>,
    external_id: Option<String>,
    subject_id: Option<Uuid>,
    /// The event that would have caused the message.
    trigger_event_id: Option<Uuid>,
    /// The data that a request for a send would have.
    data: Option<Map<String, Value>>,
}

/// Resolves a variant for somebody. Nothing is sent, and no limit is used up.
#[utoipa::path(post, path = "/v1/apps/{appId}/personalization/preview", tag = "push",
    params(("appId" = Uuid, Path)), request_body = PreviewRequest,
    responses((status = 200, body = Data<PreviewView>)))]
pub async fn preview_personalization(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Json(request): Json<PreviewRequest>,
) -> Result<Data<PreviewView>, ApiError> {
    let app = &scope.app;
    let given = [
        request.anonymous_id.is_some(),
        request.external_id.is_some(),
        request.subject_id.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        let detail = "name the person by exactly one of anonymousId, externalId and subjectId";
        return Err(ApiError::field("", "exactly_one_subject", detail));
    }
    let mut errors = request.content.check("/content");
    let checked = push::check_personalization(
        &services.plugins,
        &app.deciders,
        request.content.personalization.as_ref(),
        "/content",
        &mut errors,
    );
    checked.await?;
    errors.extend(check_data(request.data.as_ref().unwrap_or(&Map::new())));
    if !errors.is_empty() {
        return Err(ApiError::fields(Code::ValidationFailed, errors));
    }
    let names = [&request.anonymous_id, &request.external_id];
    if names.into_iter().flatten().any(|name| name.contains('\0')) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    let mut tx = services.db.read().await?;
    let standing = match (
        &request.anonymous_id,
        &request.external_id,
        request.subject_id,
    ) {
        (Some(id), _, _) => {
            subjects::store::find(&mut tx, app.id, AliasKind::Anonymous, id).await?
        }
        (_, Some(id), _) => {
            match subjects::store::find_owner(&mut tx, app.id, AliasKind::External, id).await? {
                Some(owner) => subjects::store::of_subject(&mut tx, app.id, owner).await?,
                None => None,
            }
        }
        (_, _, Some(id)) => subjects::store::of_subject(&mut tx, app.id, id).await?,
        (None, None, None) => None,
    };
    drop(tx);
    let standing = standing
        .filter(|standing| !standing.suppressed)
        .ok_or_else(|| ApiError::new(Code::SubjectNotFound))?;
    let ask = Ask {
        subject_id: standing.subject_id,
        trigger_event_id: request.trigger_event_id,
        data: request.data,
    };
    let data = preview::preview(&services, app, &request.content, ask).await?;
    Ok(Data { data })
}
