//! Running cases against a version, without anything taking effect (contract 12).

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use nudge_http::{ApiError, Data, Json};
use nudge_plugin_runtime::cases::{self, BadCase, Case, CaseReport, Difference};
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::store;
use nudge_wasm::{Lowered, Plugin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::changes::Error;
use super::requests::PluginPath;
use crate::auth::{Admin, Operator};
use crate::services::{Services, Shared};

/// Tests of a version, of an app and of the server.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(test_plugin_version))
        .routes(routes!(test_server_plugin_version))
}

/// Cases of a request.
const MOST_CASES: usize = 50;
/// After so much time no further case is begun.
const TIME: Duration = Duration::from_secs(30);

/// Cases to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// 1 to 50 cases.
    cases: Vec<Case>,
}

/// What became of each case, in the same order.
#[derive(Debug, Serialize, ToSchema)]
pub struct TestView {
    cases: Vec<CaseView>,
}

/// What became of a case.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseView {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// What the plugin decided. Absent: a call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// `trap`, `deadline`, `memory`, `output_too_large` or `refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    /// Why the call failed, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Absent: the case expects nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
    /// Where the output is not as expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Difference>,
    /// Where a second run of the same case gave something else: the plugin is not deterministic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsteady: Vec<Difference>,
    /// What all decisions of the case took.
    micros: u64,
    /// The most memory that any of them had.
    memory_bytes: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<LogView>,
}

/// A line that the plugin logged.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogView {
    level: &'static str,
    message: String,
}

impl CaseView {
    fn new(name: String, report: CaseReport) -> Self {
        let level = |level| match level {
            nudge_wasm::Level::Debug => "debug",
            nudge_wasm::Level::Info => "info",
            nudge_wasm::Level::Warn => "warn",
            nudge_wasm::Level::Error => "error",
        };
        let failed = report.failure.is_some();
        let detail = report.output.get("detail").and_then(Value::as_str);
        Self {
            name,
            failure: report.failure,
            detail: detail.filter(|_| failed).map(str::to_owned),
            passed: report.passed,
            differences: report.differences,
            unsteady: report.unsteady,
            micros: u64::try_from(report.cost.total.as_micros()).unwrap_or(u64::MAX),
            memory_bytes: report.cost.memory_bytes,
            logs: report
                .logs
                .into_iter()
                .map(|line| LogView {
                    level: level(line.level),
                    message: line.message,
                })
                .collect(),
            output: (!failed).then_some(report.output),
        }
    }

    /// A case for which no time was left.
    fn late(name: String, expected: bool) -> Self {
        let detail = format!(
            "not begun: the cases before it took {} seconds; send fewer",
            TIME.as_secs()
        );
        Self {
            name,
            failure: Some(nudge_wasm::Failure::Deadline.code()),
            detail: Some(detail),
            passed: expected.then_some(false),
            ..Self::default()
        }
    }
}

/// Runs cases against a version of a plugin, under the limits of every call. Nothing takes effect.
#[utoipa::path(post, path = "/v1/apps/{appId}/plugins/{name}/versions/{version}/test", tag = "plugins",
    params(("appId" = Uuid, Path), ("name" = String, Path), ("version" = String, Path)),
    request_body = TestRequest, responses((status = 200, body = Data<TestView>)))]
pub async fn test_plugin_version(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<TestRequest>,
) -> Result<Data<TestView>, ApiError> {
    let lowered = scope.app.settings.plugins.lowered();
    run(&services, (scope.app.id, &lowered), &path, request).await
}

/// Runs cases against a version of a plugin, under the limits of every call. Nothing takes effect.
#[utoipa::path(post, path = "/v1/operator/plugins/{name}/versions/{version}/test", tag = "operator",
    params(("name" = String, Path), ("version" = String, Path)),
    request_body = TestRequest, responses((status = 200, body = Data<TestView>)))]
pub async fn test_server_plugin_version(
    _: Operator,
    State(services): State<Shared>,
    path: PluginPath,
    Json(request): Json<TestRequest>,
) -> Result<Data<TestView>, ApiError> {
    run(&services, (SERVER, &Lowered::default()), &path, request).await
}

async fn run(
    services: &Services,
    (app_id, lowered): (Uuid, &Lowered),
    path: &PluginPath,
    request: TestRequest,
) -> Result<Data<TestView>, ApiError> {
    if !(1..=MOST_CASES).contains(&request.cases.len()) {
        let detail = format!("send 1 to {MOST_CASES} cases");
        return Err(ApiError::field("/cases", "out_of_range", detail));
    }
    let plugin = version(services, app_id, &path.name, &path.version).await?;
    let plugin = Arc::new(plugin.within(lowered));
    let started = Instant::now();
    let mut views = Vec::with_capacity(request.cases.len());
    for (index, case) in request.cases.into_iter().enumerate() {
        let name = case.name.clone();
        if started.elapsed() >= TIME {
            views.push(CaseView::late(name, case.expect.is_some()));
            continue;
        }
        let plugin = Arc::clone(&plugin);
        let ran = services
            .plugins
            .aside(app_id, move || cases::run(&plugin, &case));
        let report = ran.await.map_err(ApiError::internal)?;
        let report = report.map_err(|bad| bad_case(index, bad))?;
        views.push(CaseView::new(name, report));
    }
    Ok(Data {
        data: TestView { cases: views },
    })
}

fn bad_case(index: usize, bad: BadCase) -> ApiError {
    ApiError::field(
        format!("/cases/{index}{}", bad.pointer),
        "invalid",
        bad.message,
    )
}

/// A version that an app sees, loaded: its own, the server's, or a built-in one.
pub async fn version(
    services: &Services,
    app_id: Uuid,
    name: &str,
    version: &str,
) -> Result<Arc<Plugin>, Error> {
    let mut built_in = services.plugins.built_in();
    let of_name = built_in.find(|active| active.plugin.description().name == name);
    if let Some(active) = of_name {
        let same = active.plugin.description().version == version;
        return same
            .then(|| Arc::clone(&active.plugin))
            .ok_or_else(|| Error::no_version(name, version));
    }
    let mut tx = services.db.read().await?;
    let catalogue = store::catalogue(&mut tx, app_id).await?;
    let entry = catalogue.find(name).ok_or_else(|| Error::no_plugin(name))?;
    let found = store::find_version(&mut tx, entry.app_id, name, version).await?;
    drop(tx);
    let found = found.ok_or_else(|| Error::no_version(name, version))?;
    let loaded = services
        .plugins
        .loaders
        .load(&services.db, &found.release.digest);
    Ok(loaded.await?)
}
