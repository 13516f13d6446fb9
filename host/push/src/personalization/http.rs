//! The route of previews (specification 4.4).

use axum::extract::State;
use nudge_apps::App;
use nudge_apps::auth::Viewer;
use nudge_campaigns::variants::{self, Variant};
use nudge_campaigns::{in_app, push};
use nudge_db::Tx;
use nudge_http::body::parse_part;
use nudge_http::{ApiError, Code, Data, Json};
use nudge_platform::field_error::FieldError;
use nudge_records::subjects::{self, AliasKind, AliasView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::preview::{self, Ask, PreviewView};
use crate::services::{Services, Shared};
use crate::transactional::check_data;

/// Previews of personalization.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(preview_personalization))
}

/// What messages appear on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// A push message.
    Push,
    /// An in-app message.
    InApp,
}

/// A variant of a campaign of either type. It describes what is read by the surface.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PreviewContent {
    /// Of a push campaign.
    Push(push::Variant),
    /// Of an in-app message.
    InApp(in_app::Variant),
}

/// What to resolve, for whom.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewRequest {
    surface: Surface,
    /// A variant, as campaigns of the surface have it.
    #[schema(value_type = PreviewContent)]
    content: Value,
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
    Json(mut request): Json<PreviewRequest>,
) -> Result<Data<PreviewView>, ApiError> {
    let app = &scope.app;
    let content = request.content.take();
    let content = match request.surface {
        Surface::Push => PreviewContent::Push(parse_part(content, "/content")?),
        Surface::InApp => PreviewContent::InApp(parse_part(content, "/content")?),
    };
    let given = [
        request.anonymous_id.is_some(),
        request.external_id.is_some(),
        request.subject_id.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        let detail = "name the person by exactly one of anonymousId, externalId and subjectId";
        return Err(ApiError::field("", "exactly_one_subject", detail));
    }
    let mut errors = match &content {
        PreviewContent::Push(variant) => check(&services, app, variant).await?,
        PreviewContent::InApp(variant) => check(&services, app, variant).await?,
    };
    errors.extend(check_data(request.data.as_ref().unwrap_or(&Map::new())));
    if !errors.is_empty() {
        return Err(ApiError::fields(Code::ValidationFailed, errors));
    }
    let mut tx = services.db.read().await?;
    let standing = person(&mut tx, app.id, &request).await?;
    let locale = match &content {
        PreviewContent::Push(_) => None,
        PreviewContent::InApp(_) => {
            subjects::store::locale(&mut tx, app.id, standing.subject_id).await?
        }
    };
    drop(tx);
    let ask = Ask {
        subject_id: standing.subject_id,
        trigger_event_id: request.trigger_event_id,
        data: request.data,
    };
    let data = match &content {
        PreviewContent::Push(variant) => {
            preview::preview(&services, app, variant, ask, preview::of_push).await?
        }
        PreviewContent::InApp(variant) => {
            let fill =
                |prepared: &_, values: &_| preview::of_in_app(prepared, values, locale.as_deref());
            preview::preview(&services, app, variant, ask, fill).await?
        }
    };
    Ok(Data { data })
}

/// The person whom a request names.
async fn person(
    tx: &mut Tx,
    app_id: Uuid,
    request: &PreviewRequest,
) -> Result<AliasView, ApiError> {
    let names = [&request.anonymous_id, &request.external_id];
    if names.into_iter().flatten().any(|name| name.contains('\0')) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    let standing = match (
        &request.anonymous_id,
        &request.external_id,
        request.subject_id,
    ) {
        (Some(id), _, _) => subjects::store::find(tx, app_id, AliasKind::Anonymous, id).await?,
        (_, Some(id), _) => {
            match subjects::store::find_owner(tx, app_id, AliasKind::External, id).await? {
                Some(owner) => subjects::store::of_subject(tx, app_id, owner).await?,
                None => None,
            }
        }
        (_, _, Some(id)) => subjects::store::of_subject(tx, app_id, id).await?,
        (None, None, None) => None,
    };
    standing
        .filter(|standing| !standing.suppressed)
        .ok_or_else(|| ApiError::new(Code::SubjectNotFound))
}

/// What is wrong with a variant, also to its plugin.
async fn check<V: Variant>(
    services: &Services,
    app: &App,
    variant: &V,
) -> Result<Vec<FieldError>, ApiError> {
    let mut errors = variants::check_one(variant, "/content");
    let (plugins, deciders) = (&services.plugins, &app.deciders);
    variants::check_personalization(plugins, deciders, variant, "/content", &mut errors).await?;
    Ok(errors)
}
