//! What a definition would make of events (contract 11). Nothing is changed or counted.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use nudge_apps::auth::Editor;
use nudge_campaigns::definitions::{Definition, Enforced, Error, store};
use nudge_db::Timestamp;
use nudge_http::{ApiError, Data, Json, ResourceId};
use nudge_platform::clock;
use nudge_records::dead_letters::store::Filter;
use nudge_records::dead_letters::violation::Violation;
use nudge_records::dead_letters::{self, Stage};
use nudge_records::events::{self, Event, MOST_EVENTS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::recent;
use crate::services::{Services, Shared};
use crate::validation::{self, Verdict};

/// Dry runs of a definition.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(dry_run_event_definition))
}

/// Stored events that are tried.
const MOST_STORED: usize = 1_000;
/// Dead letters that are tried.
const MOST_LETTERS: i64 = 500;
/// Failing events that an answer shows.
const MOST_SAMPLES: usize = 20;

/// What to try: one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DryRunRequest {
    /// The properties of one event.
    properties: Option<Map<String, Value>>,
    /// Stored events and dead letters of the name that arrived within so many hours, 1 to 720.
    since_hours: Option<u32>,
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// The request.
    Request,
    /// The events that are stored.
    Event,
    /// The dead letters.
    DeadLetter,
}

/// An event that would fail.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleView {
    source: Source,
    /// Its id, where it is one that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<Uuid>,
    /// When it happened, where it is one that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    violations: Vec<Violation>,
}

/// What the definition would make of events.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunView {
    /// Events that match.
    passed: u64,
    /// Events that break it.
    failed: u64,
    /// Events that the validation plugin failed on.
    unchecked: u64,
    /// Some that break it.
    samples: Vec<SampleView>,
    /// Events of the server that were looked at to find those of the name, from the newest on.
    looked_at: i64,
    /// Whether all events of the name in the time asked for were tried.
    complete: bool,
}

/// An event that is tried.
struct Tried {
    source: Source,
    event: Event,
}

/// Tries a definition on an event, or on what arrived lately.
#[utoipa::path(post, path = "/v1/apps/{appId}/event-definitions/{id}/dry-run", tag = "event definitions",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), request_body = DryRunRequest,
    responses((status = 200, body = Data<DryRunView>)))]
pub async fn dry_run_event_definition(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Json(request): Json<DryRunRequest>,
) -> Result<Data<DryRunView>, ApiError> {
    let app = &scope.app;
    let mut tx = services.db.read().await?;
    let definition = store::find(&mut tx, app.id, id).await?;
    let definition = definition.ok_or(Error::NotFound)?;
    drop(tx);
    let now = services.clock.now();
    let mut view = DryRunView::default();
    let tried = match (request.properties, request.since_hours) {
        (Some(properties), None) => {
            view.complete = true;
            vec![given(&definition, properties, now)?]
        }
        (None, Some(hours)) => {
            arrived(&services, &definition, since(hours, now)?, &mut view).await?
        }
        _ => {
            let detail = "either properties, of one event, or sinceHours, for what arrived lately";
            return Err(ApiError::field("", "exactly_one", detail));
        }
    };
    let enforced =
        nudge_campaigns::definitions::enforce(&services.plugins, &app.deciders, &definition, None)
            .await?;
    run(&services, app.id, Arc::new(enforced), tried, now, &mut view).await?;
    Ok(Data { data: view })
}

/// The instant so many hours ago.
pub(super) fn since(hours: u32, now: Timestamp) -> Result<Timestamp, ApiError> {
    let most = recent::MOST_HOURS;
    if !(1..=most).contains(&hours) {
        let detail = format!("sinceHours must be 1 to {most}");
        return Err(ApiError::field("/sinceHours", "out_of_range", detail));
    }
    Ok(now.minus(Duration::from_hours(u64::from(hours))))
}

fn given(
    definition: &Definition,
    properties: Map<String, Value>,
    now: Timestamp,
) -> Result<Tried, ApiError> {
    let properties = Value::Object(properties).to_string();
    events::check_properties(&properties)
        .map_err(|detail| ApiError::field("/properties", "invalid", detail))?;
    Ok(Tried {
        source: Source::Request,
        event: Event {
            id: nudge_platform::id::new(now),
            name: definition.name.as_str().into(),
            timestamp: now,
            client_timestamp: None,
            properties: properties.into(),
        },
    })
}

async fn arrived(
    services: &Services,
    definition: &Definition,
    since: Timestamp,
    view: &mut DryRunView,
) -> Result<Vec<Tried>, ApiError> {
    let app_id = definition.app_id;
    let recent = recent::find(&services.db, app_id, &definition.name, since, MOST_STORED).await?;
    let filter = Filter {
        event_name: Some(definition.name.clone()),
        stage: Some(Stage::Validation),
        from: Some(since),
        ..Filter::default()
    };
    let mut tx = services.db.read().await?;
    let letters =
        dead_letters::store::list(&mut tx, app_id, &filter, None, MOST_LETTERS + 1).await?;
    drop(tx);
    let most_letters = usize::try_from(MOST_LETTERS).unwrap_or(usize::MAX);
    view.looked_at = recent.looked_at;
    view.complete = recent.complete && letters.len() <= most_letters;
    let stored = recent.events.into_iter().map(|stored| Tried {
        source: Source::Event,
        event: (*stored.event).clone(),
    });
    let mut tried: Vec<Tried> = stored.collect();
    for found in letters.iter().take(most_letters) {
        let event = nudge_records::dead_letters::replay::readable(&found.letter, None);
        tried.extend(event.map(|event| Tried {
            source: Source::DeadLetter,
            event,
        }));
    }
    Ok(tried)
}

/// Asks the plugin, as many at a time as ingest does.
async fn run(
    services: &Services,
    app_id: Uuid,
    enforced: Arc<Enforced>,
    tried: Vec<Tried>,
    now: Timestamp,
    view: &mut DryRunView,
) -> Result<(), ApiError> {
    for chunk in tried.chunks(MOST_EVENTS) {
        // Which subject's it is decides between versions in a canary only: here, all are nobody's.
        let events: Vec<(Uuid, Event)> = chunk
            .iter()
            .map(|tried| (Uuid::nil(), tried.event.clone()))
            .collect();
        let enforced = Arc::clone(&enforced);
        let asked = services.plugins.aside(app_id, move || {
            validation::dry_run(app_id, &enforced, events, now)
        });
        for (tried, verdict) in chunk.iter().zip(asked.await.map_err(ApiError::internal)?) {
            view.enter(tried, verdict);
        }
    }
    Ok(())
}

impl DryRunView {
    fn enter(&mut self, tried: &Tried, verdict: Verdict) {
        match verdict {
            Verdict::Pass | Verdict::Observed => self.passed += 1,
            Verdict::Unchecked => self.unchecked += 1,
            Verdict::Broken(violations) => {
                self.failed += 1;
                if self.samples.len() < MOST_SAMPLES {
                    let arrived = !matches!(tried.source, Source::Request);
                    let event = &tried.event;
                    self.samples.push(SampleView {
                        source: tried.source,
                        event_id: arrived.then_some(event.id),
                        timestamp: arrived.then(|| clock::to_text(event.timestamp)),
                        violations,
                    });
                }
            }
        }
    }
}
