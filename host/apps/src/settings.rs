//! Routes of settings (contract 13).

use axum::extract::State;
use nudge_campaigns::apps as store;
use nudge_campaigns::apps::AppRow;
use nudge_campaigns::settings::Settings;
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Code, Data, Json, body};
use nudge_platform::audit::{self, Entry};
use nudge_platform::config;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::{escaped, merge};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::auth::Admin;
use crate::services::Shared;

/// An app's settings.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_settings, update_settings))
}

/// An app's settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettingsView {
    /// Grows with each change.
    version: i64,
    #[serde(flatten)]
    settings: Settings,
}

/// Reads an app's settings.
#[utoipa::path(get, path = "/v1/apps/{appId}/settings", tag = "apps", params(("appId" = Uuid, Path)),
    responses((status = 200, body = Data<SettingsView>)))]
pub async fn get_settings(
    Admin(scope): Admin,
    State(services): State<Shared>,
) -> Result<Data<SettingsView>, ApiError> {
    let mut tx = services.db.read().await?;
    let (row, settings) = find(&mut tx, scope.app.id).await?;
    Ok(Data {
        data: SettingsView {
            version: row.settings_revision,
            settings,
        },
    })
}

/// Changes an app's settings (JSON merge patch); they hold from the answer on.
#[utoipa::path(patch, path = "/v1/apps/{appId}/settings", tag = "apps", params(("appId" = Uuid, Path)),
    request_body = Value, responses((status = 200, body = Data<SettingsView>)))]
pub async fn update_settings(
    Admin(scope): Admin,
    State(services): State<Shared>,
    if_match: IfMatch,
    Json(patch): Json<serde_json::Map<String, Value>>,
) -> Result<Data<SettingsView>, ApiError> {
    let id = scope.app.id;
    let now = services.clock.now();
    let patch = Value::Object(patch);
    let mut tx = services.db.write().await?;
    let (row, current) = find(&mut tx, id).await?;
    if_match.check(row.settings_revision)?;
    let settings = patched(&current, &patch, &services.config.plugins)?;
    let revision = row.settings_revision;
    if !store::replace_settings(&mut tx, id, &settings, revision, now).await? {
        return Err(ApiError::overtaken());
    }
    let entry = Entry {
        app_id: id,
        actor: &scope.actor,
        action: "settings.updated",
        resource: "settings".to_owned(),
        detail: json!({"patch": patch}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.apps.refresh(id).await?;
    Ok(Data {
        data: SettingsView {
            version: revision + 1,
            settings,
        },
    })
}

/// The settings that a patch makes of others. A key that no setting has is refused, even where the patch
/// removes it.
fn patched(
    current: &Settings,
    patch: &Value,
    server: &config::Plugins,
) -> Result<Settings, ApiError> {
    let every = serde_json::to_value(Settings::with_everything()).map_err(ApiError::internal)?;
    let mut errors = Vec::new();
    unknown_keys(patch, &every, "", &mut errors);
    if errors.is_empty() {
        let mut document = serde_json::to_value(current).map_err(ApiError::internal)?;
        merge::apply(&mut document, patch.clone());
        let settings: Settings = body::parse_value(document)?;
        errors = settings.check();
        errors.extend(settings.check_origins(current));
        errors.extend(settings.check_limits(current, server));
        if errors.is_empty() {
            return Ok(settings);
        }
    }
    Err(ApiError::fields(Code::ValidationFailed, errors))
}

/// Finds the keys of a patch that a document with every setting has not.
fn unknown_keys(patch: &Value, known: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (Some(patch), Some(known)) = (patch.as_object(), known.as_object()) else {
        return;
    };
    for (key, value) in patch {
        let pointer = format!("{at}/{}", escaped(key));
        match known.get(key) {
            Some(known) => unknown_keys(value, known, &pointer, errors),
            None => errors.push(FieldError::new(
                pointer,
                "unknown_key",
                "there is no such setting",
            )),
        }
    }
}

async fn find(tx: &mut nudge_db::Tx, id: Uuid) -> Result<(AppRow, Settings), ApiError> {
    let row = store::find(tx, id)
        .await?
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    let settings = serde_json::from_str(&row.settings).map_err(ApiError::internal)?;
    Ok((row, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_default(current: &Settings, patch: &Value) -> Result<Settings, ApiError> {
        patched(current, patch, &config::Config::defaults().unwrap().plugins)
    }

    fn refused(patch: &Value) -> Vec<String> {
        by_default(&Settings::default(), patch)
            .unwrap_err()
            .errors()
            .iter()
            .map(|error| format!("{} {}", error.pointer, error.code))
            .collect()
    }

    #[test]
    fn a_key_that_no_setting_has_is_named_wherever_it_is() {
        let patch = json!({
            "frequency": {"surveys": {"max": 5, "windowDays": 1}}, "typo": null,
            "ingest": {"pastWindow": 1}, "quietHours": {"a/b": 1},
        });
        let expected = ["/ingest/pastWindow", "/quietHours/a~1b", "/typo"];
        assert_eq!(
            refused(&patch),
            expected.map(|pointer| format!("{pointer} unknown_key"))
        );
    }

    #[test]
    fn what_a_patch_does_not_name_stays_and_null_brings_the_default_back() {
        let patch = json!({
            "ingest": {"pastWindowSeconds": 60}, "lifecycleEvents": false,
            "quietHours": {"from": "22:00", "to": "07:00", "onQuiet": "drop"},
        });
        let changed = by_default(&Settings::default(), &patch).unwrap();
        assert_eq!(changed.ingest.past_window_seconds, 60);
        assert_eq!(changed.ingest.future_window_seconds, 24 * 3600);
        assert!(!changed.lifecycle_events && changed.quiet_hours.is_some());

        let back = json!({"ingest": {"pastWindowSeconds": null}, "lifecycleEvents": null, "quietHours": null});
        assert_eq!(by_default(&changed, &back).unwrap(), Settings::default());
    }

    #[test]
    fn origins_that_were_taken_before_are_in_no_other_changes_way() {
        let before = Settings {
            allowed_origins: vec!["https://shop.example:443".to_owned()],
            ..Settings::default()
        };
        let other = by_default(&before, &json!({"lifecycleEvents": false})).unwrap();
        assert_eq!(other.allowed_origins, before.allowed_origins);
        let more = json!({"allowedOrigins": ["https://shop.example:443", "https://a.example"]});
        let refused = by_default(&before, &more).unwrap_err();
        assert_eq!(refused.errors()[0].pointer, "/allowedOrigins/0");
    }

    #[test]
    fn wrong_types_have_their_place() {
        assert_eq!(
            refused(&json!({"lifecycleEvents": "yes"})),
            ["/lifecycleEvents invalid"]
        );
        assert_eq!(
            refused(&json!({"allowedOrigins": [7]})),
            ["/allowedOrigins/0 invalid"]
        );
        let half = json!({"frequency": {"surveys": {"max": 5}}});
        assert_eq!(refused(&half), ["/frequency/surveys/windowDays required"]);
    }
}
