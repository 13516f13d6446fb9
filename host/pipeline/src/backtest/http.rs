//! Routes that start backtests (contract 12).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::App;
use nudge_apps::auth::{Admin, Operator};
use nudge_apps::plugins::requests::PluginPath;
use nudge_apps::plugins::testing::version;
use nudge_campaigns::campaign::{self, ActiveCampaign};
use nudge_db::Timestamp;
use nudge_http::query::{end, since};
use nudge_http::{ApiError, Code, Data, Json};
use nudge_platform::audit;
use nudge_platform::field_error::FieldError;
use nudge_platform::jobs::{self, NewJob};
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::configuration::NO_REASON;
use nudge_wasm::{Kind, Plugin};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::backtest::{self, DEFAULT_LIMIT, Input, KIND, MOST_EVENTS};
use crate::services::{Services, Shared};

/// Backtests of a version, of an app's plugin and of the server's.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(backtest_plugin_version))
        .routes(routes!(backtest_server_plugin_version))
}

/// Backtests of an app that may be under way.
const MOST_AT_ONCE: usize = 4;

/// What to run through a version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BacktestRequest {
    /// Events that arrived at or after: an ISO 8601 instant, or a day (UTC).
    since: String,
    /// Events that arrived before: an ISO 8601 instant; or a day, which is included; now unless given.
    until: Option<String>,
    /// The only campaign to look at, whichever plugin decides about it; every campaign that this plugin decides
    /// about unless given.
    campaign_id: Option<Uuid>,
    /// How many events to run at the most, 1 to 1,000,000; 100,000 unless given.
    limit: Option<u64>,
}

/// The same for an app that the operator names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerBacktestRequest {
    /// The app whose events are run; the job is one of that app.
    app_id: Uuid,
    /// Events that arrived at or after: an ISO 8601 instant, or a day (UTC).
    since: String,
    /// Events that arrived before: an ISO 8601 instant; or a day, which is included; now unless given.
    until: Option<String>,
    /// The only campaign to look at.
    campaign_id: Option<Uuid>,
    /// How many events to run at the most.
    limit: Option<u64>,
}

/// The job that does it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BacktestView {
    job_id: Uuid,
}

/// Runs recorded events through a version and the active one, and compares what they decide.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins/{name}/versions/{version}/backtest", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), ("version" = String, Path)),
    request_body = BacktestRequest, responses((status = 202, body = Data<BacktestView>)))]
pub async fn backtest_plugin_version(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<BacktestRequest>,
) -> Result<(StatusCode, Data<BacktestView>), ApiError> {
    let plugin = version(&services, scope.app.id, &path.name, &path.version).await?;
    start(&services, &scope.app, &scope.actor, &plugin, request).await
}

/// Runs an app's recorded events through a version and the active one, and compares what they decide.
#[utoipa::path(post, path = "/v1/operator/plugins/{name}/versions/{version}/backtest", tag = "operator",
    params(("name" = String, Path), ("version" = String, Path)),
    request_body = ServerBacktestRequest, responses((status = 202, body = Data<BacktestView>)))]
pub async fn backtest_server_plugin_version(
    operator: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<ServerBacktestRequest>,
) -> Result<(StatusCode, Data<BacktestView>), ApiError> {
    let plugin = version(&services, SERVER, &path.name, &path.version).await?;
    let app = services.apps.get(request.app_id).await?;
    let app = app.ok_or_else(|| ApiError::field("/appId", "not_found", "no such app"))?;
    let request = BacktestRequest {
        since: request.since,
        until: request.until,
        campaign_id: request.campaign_id,
        limit: request.limit,
    };
    start(&services, &app, &operator.actor, &plugin, request).await
}

async fn start(
    services: &Services,
    app: &App,
    actor: &str,
    plugin: &Plugin,
    request: BacktestRequest,
) -> Result<(StatusCode, Data<BacktestView>), ApiError> {
    let now = services.clock.now();
    let input = input(&request, plugin, now)?;
    check(services, app, plugin, &input).await?;
    let mut tx = services.db.write().await?;
    let job = NewJob {
        app_id: app.id,
        kind: KIND,
        input: serde_json::to_value(&input).map_err(ApiError::internal)?,
        requested_by: actor,
    };
    let queued = jobs::queue_limited(&mut tx, &job, MOST_AT_ONCE, now).await?;
    let job_id = queued.ok_or_else(|| {
        let detail = format!("{MOST_AT_ONCE} backtests are under way; wait until one has ended");
        ApiError::because(Code::LimitExceeded, detail)
    })?;
    let description = plugin.description();
    let entry = audit::Entry {
        app_id: app.id,
        actor,
        action: "plugin_version.backtested",
        resource: format!("plugin/{}/{}", description.name, description.version),
        detail: json!({"jobId": job_id}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.jobs.wake();
    let data = BacktestView { job_id };
    Ok((StatusCode::ACCEPTED, Data { data }))
}

fn input(request: &BacktestRequest, plugin: &Plugin, now: Timestamp) -> Result<Input, ApiError> {
    if plugin.kind() == Kind::Personalization {
        let detail = "there are no recorded deliveries that personalization plugins could be compared on; run cases \
                      against the version instead";
        return Err(ApiError::field("", "not_supported", detail));
    }
    if plugin.kind() == Kind::Validation && request.campaign_id.is_some() {
        let detail = "validation plugins decide about definitions, not campaigns; leave it out";
        return Err(ApiError::field("/campaignId", "not_allowed", detail));
    }
    let since = since("since", &request.since)?;
    let until = end("until", request.until.as_deref())?.unwrap_or(now);
    if since >= until {
        let detail = "the window ends before it begins";
        return Err(ApiError::field("/since", "out_of_range", detail));
    }
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MOST_EVENTS).contains(&limit) {
        let detail = format!("1 to {MOST_EVENTS} events");
        return Err(ApiError::field("/limit", "out_of_range", detail));
    }
    Ok(Input {
        plugin: plugin.description().name.clone(),
        digest: plugin.digest().to_owned(),
        since,
        until,
        campaign_id: request.campaign_id,
        limit,
    })
}

/// The route of a campaign, below the app's.
fn place(running: &ActiveCampaign) -> String {
    let resource = match running.action.kind() {
        campaign::Kind::Survey => "surveys",
        campaign::Kind::Push | campaign::Kind::InApp => "campaigns",
    };
    format!("/{resource}/{}", running.id)
}

/// Whether there is something to compare, and the version accepts all of it.
async fn check(
    services: &Services,
    app: &App,
    plugin: &Plugin,
    input: &Input,
) -> Result<(), ApiError> {
    let decided = backtest::decided(app, plugin.kind(), &input.plugin, input.campaign_id);
    if decided.is_empty() {
        let (pointer, detail) = match (plugin.kind(), input.campaign_id) {
            (Kind::Validation, _) => ("", "the plugin decides about no definition that is active"),
            (_, Some(_)) => ("/campaignId", "no active campaign of the app has this id"),
            (_, None) => (
                "/campaignId",
                "the plugin decides about nothing that is active; name a campaign to compare it on",
            ),
        };
        return Err(ApiError::field(pointer, "nothing_to_compare", detail));
    }
    for (id, name, accepted) in decided {
        let running = id.and_then(|id| app.campaigns.get(app.campaign(id)?));
        let place = match running {
            Some(running) => place(running),
            None => format!("/event-definitions/{}", name.unwrap_or_default()),
        };
        let checked = services
            .plugins
            .check_config(plugin, accepted.config.to_string());
        let detail = match checked.await {
            Ok(Ok(_)) => continue,
            Ok(Err(problems)) => {
                let first = problems.into_iter().next();
                first.map_or_else(|| NO_REASON.to_owned(), |problem| problem.message)
            }
            Err(cause) => match cause.of_plugin() {
                Some(failed) => failed.to_string(),
                None => return Err(ApiError::unavailable(cause)),
            },
        };
        let error = FieldError::new(place, "configuration_refused", detail);
        return Err(ApiError::fields(Code::PluginRejected, vec![error]));
    }
    Ok(())
}
