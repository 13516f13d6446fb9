//! The API as an SDK and a console call it.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use nudge_platform::clock::Clock;
use nudge_platform::outbound::retry_after;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::dev::Access;

/// How often a request is sent again that the server was too busy for.
const MOST_RETRIES: u32 = 8;
/// How long it waits before that, where the server does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// How long it waits at the most.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Instructions of a page.
const POLL_PAGE: usize = 20;

/// Calls one server as one app.
pub(super) struct Client {
    http: reqwest::Client,
    access: Access,
}

/// A session of one person.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    pub subject_token: String,
}

/// What became of a batch.
#[derive(Debug, Deserialize)]
pub(super) struct Ingested {
    pub accepted: usize,
    pub rejected: usize,
    pub errors: Vec<Rejection>,
    #[serde(default)]
    pub instructions: Vec<Instruction>,
}

/// An event that was refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rejection {
    pub index: usize,
    pub code: String,
    pub dead_letter_id: Option<Uuid>,
}

/// An order to show a survey.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instruction {
    #[serde(rename = "instructionId")]
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub campaign_version: i64,
    pub trigger: Option<Trigger>,
    #[serde(default)]
    pub payload: Value,
}

/// The event that fired an instruction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Trigger {
    pub event_id: Uuid,
    pub name: String,
}

/// An event that broke its definition, or that a plugin failed on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetter {
    pub id: Uuid,
    pub event_name: String,
    pub reason: String,
    pub violations: Vec<Violation>,
}

/// What is wrong with a dead letter.
#[derive(Debug, Deserialize)]
pub(super) struct Violation {
    pub code: String,
    pub property: String,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

impl Client {
    pub(super) fn new(access: Access) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_mins(1))
            .no_proxy()
            // It speaks plain HTTP to its own server, on machines without certificates too.
            .tls_certs_only([])
            .build()
            .context("can't make an HTTP client")?;
        Ok(Self { http, access })
    }

    pub(super) fn app_id(&self) -> Uuid {
        self.access.app_id
    }

    /// Posts each entry of an array to a collection of the app; answers what was created.
    pub(super) async fn create(
        &self,
        collection: &str,
        entries: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let entries: Vec<Value> = serde_json::from_str(entries).context(collection.to_owned())?;
        let path = format!("/v1/apps/{}/{collection}", self.access.app_id);
        let mut created = Vec::with_capacity(entries.len());
        for entry in &entries {
            let request = self
                .request(Method::POST, &path, &self.access.editor_token)
                .json(entry);
            created.push(answer(request, collection).await?);
        }
        Ok(created)
    }

    pub(super) async fn start_session(
        &self,
        anonymous_id: &str,
        platform: Option<&Value>,
    ) -> anyhow::Result<Session> {
        let body = json!({"anonymousId": anonymous_id, "platform": platform});
        let request = self.request(Method::POST, "/v1/sdk/session", &self.access.write_key);
        answer(request.json(&body), "session").await
    }

    pub(super) async fn ingest(
        &self,
        session: &Session,
        body: &(impl Serialize + Sync),
    ) -> anyhow::Result<Ingested> {
        let request = self.request(Method::POST, "/v1/sdk/ingest", &self.access.write_key);
        answer(of(session, request).json(body), "ingest").await
    }

    /// Says what became of an instruction.
    pub(super) async fn acknowledge(
        &self,
        session: &Session,
        anonymous_id: &str,
        instruction_id: Uuid,
        status: &str,
        action_id: Option<&str>,
    ) -> anyhow::Result<()> {
        let ack = json!({"instructionId": instruction_id, "status": status, "actionId": action_id});
        let body = json!({"anonymousId": anonymous_id, "acks": [ack]});
        let path = "/v1/sdk/instructions/ack";
        let request = self.request(Method::POST, path, &self.access.write_key);
        let _: Value = answer(of(session, request).json(&body), "acknowledgement").await?;
        Ok(())
    }

    /// What became of a campaign.
    pub(super) async fn analytics(&self, campaign_id: &str) -> anyhow::Result<Value> {
        let path = format!(
            "/v1/apps/{}/campaigns/{campaign_id}/analytics",
            self.access.app_id
        );
        let request = self.request(Method::GET, &path, &self.access.viewer_token);
        answer(request, "analytics").await
    }

    /// The names of a person's events, the newest first.
    pub(super) async fn timeline(&self, anonymous_id: &str) -> anyhow::Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let app_id = self.access.app_id;
        let path = format!("/v1/apps/{app_id}/users/{anonymous_id}/events");
        let request = self.request(Method::GET, &path, &self.access.viewer_token);
        let page: Page<Named> = answer(request, "timeline").await?;
        Ok(page.items.into_iter().map(|event| event.name).collect())
    }

    /// Every instruction on offer.
    pub(super) async fn poll(&self, session: &Session) -> anyhow::Result<Vec<Instruction>> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/v1/sdk/instructions?limit={POLL_PAGE}{after}");
            let request = self.request(Method::GET, &path, &self.access.write_key);
            let page: Page<Instruction> = answer(of(session, request), "instructions").await?;
            let full = page.items.len() == POLL_PAGE;
            found.extend(page.items);
            match page.next_cursor {
                Some(cursor) if full => after = format!("&cursor={cursor}"),
                _ => return Ok(found),
            }
        }
    }

    /// Every dead letter of the app.
    pub(super) async fn dead_letters(&self) -> anyhow::Result<Vec<DeadLetter>> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!(
                "/v1/apps/{}/dead-letters?limit=200{after}",
                self.access.app_id
            );
            let request = self.request(Method::GET, &path, &self.access.viewer_token);
            let page: Page<DeadLetter> = answer(request, "dead letters").await?;
            found.extend(page.items);
            match page.next_cursor {
                Some(cursor) => after = format!("&cursor={cursor}"),
                None => return Ok(found),
            }
        }
    }

    /// The server's metrics, in Prometheus' text format.
    pub(super) async fn metrics(&self) -> anyhow::Result<String> {
        let request = self.request(Method::GET, "/metrics", &self.access.operator_token);
        let response = request.send().await.and_then(Response::error_for_status);
        response.context("metrics")?.text().await.context("metrics")
    }

    fn request(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.access.base_url);
        self.http.request(method, url).bearer_auth(token)
    }
}

fn of(session: &Session, request: RequestBuilder) -> RequestBuilder {
    request.header("X-Service-Subject-Token", &session.subject_token)
}

/// Sends a request, again while the server is too busy; an answer that is no success is an error in one line.
async fn answer<T: DeserializeOwned>(request: RequestBuilder, what: &str) -> anyhow::Result<T> {
    let mut retries = 0;
    loop {
        let attempt = request
            .try_clone()
            .ok_or_else(|| anyhow!("{what}: a body that can't be sent twice"))?;
        let response = attempt.send().await.with_context(|| what.to_owned())?;
        let status = response.status();
        if status.is_success() {
            let answer: Data<T> = response.json().await.with_context(|| what.to_owned())?;
            return Ok(answer.data);
        }
        let busy = matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        if busy && retries < MOST_RETRIES {
            retries += 1;
            tokio::time::sleep(pause(&response)).await;
            continue;
        }
        let problem: Value = response.json().await.unwrap_or_default();
        bail!(
            "{what}: the server answered {}: {}",
            status.as_u16(),
            reason(&problem)
        );
    }
}

/// What `Retry-After` asks for.
fn pause(response: &Response) -> Duration {
    let asked = retry_after(response.headers(), Clock::default().now());
    asked.unwrap_or(PAUSE).min(LONGEST_PAUSE)
}

/// The gist of a problem document.
fn reason(problem: &Value) -> String {
    let text = |pointer: &str| problem.pointer(pointer).and_then(Value::as_str);
    let parts = ["/code", "/detail", "/errors/0/pointer", "/errors/0/detail"].map(text);
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "no reason given".to_owned()
    } else {
        parts.join(", ")
    }
}
