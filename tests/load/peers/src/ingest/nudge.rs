//! Nudge's program, with what `load ingest` gives it: a definition of the event that all are checked against, an active
//! survey that waits for another one, and people with sessions.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::client::Connection;
use super::clients::{self, Load, Outcome};
use super::database::{Databases, Pool};
use super::process::Process;
use super::request::{NAME, Person, anonymous_id};

/// Base64 of 32 bytes: all servers share the compiled plugins, which are signed with this key.
const MASTER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const PATIENCE: Duration = Duration::from_mins(2);

/// The server as its clients see it.
struct Server {
    process: Process,
    access: Value,
    address: SocketAddr,
    pool: Pool,
}

/// Starts a server on a fresh database, and sends it a load.
pub(super) async fn measure(
    databases: &Databases,
    load: Load,
    arguments: &super::Arguments,
) -> anyhow::Result<Outcome> {
    let database = databases.fresh("nudge").await?;
    let folder = database.folder.path();
    let json = folder.join("access.json");
    let mut command = Command::new(&arguments.nudge);
    command
        .args([
            "dev",
            "--app",
            "Load",
            "--listen",
            "127.0.0.1:0",
            "--database-url",
            &database.url,
        ])
        .arg("--data-dir")
        .arg(folder)
        .arg("--json")
        .arg(&json)
        .env("NUDGE_SECRETS__MASTER_KEY", MASTER_KEY)
        .env(
            "NUDGE_PLUGINS__CACHE_DIR",
            databases.folder().join("plugins"),
        )
        .current_dir(folder)
        .stdout(Stdio::null());
    let mut process = Process::spawn(&mut command)?;
    let started = Instant::now();
    let access: Value = loop {
        process.lives()?;
        if let Some(access) = std::fs::read(&json)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
        {
            break access;
        }
        ensure!(started.elapsed() < PATIENCE, "Nudge does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let base = text(&access, "/baseUrl")?;
    let server = Server {
        address: base.trim_start_matches("http://").parse()?,
        pool: Pool::open(&database.url, 1).await?,
        process,
        access,
    };
    server.furnish().await?;
    let people = server.people(arguments.people).await?;
    let outcome = clients::run(&server, &people, load).await?;
    server.pool.close().await;
    server.process.stop()?;
    Ok(outcome)
}

impl Server {
    async fn furnish(&self) -> anyhow::Result<()> {
        let types = [
            ("sku", "string"),
            ("price", "number"),
            ("currency", "string"),
            ("count", "number"),
            ("member", "boolean"),
            ("category", "string"),
            ("color", "string"),
            ("rank", "number"),
            ("source", "string"),
            ("page", "number"),
        ];
        let property = |(name, kind)| json!({"name": name, "type": kind, "required": true});
        let properties: Vec<Value> = types.into_iter().map(property).collect();
        let definition = json!({"name": NAME, "properties": properties});
        self.manage("event-definitions", &definition).await?;
        let question = json!({"id": "q1", "type": "nps", "title": "How likely are you to come back?", "required": true});
        let survey = json!({
            "name": "After an order",
            "status": "active",
            "mode": "triggered",
            "trigger": {
                "kind": "event",
                "eventName": "order_completed",
                "occurrence": {"mode": "every"},
                "filters": {"all": [{"property": "price", "type": "number", "operator": "gte", "value": 10}]},
            },
            "flow": {"questions": [question], "branches": [], "progressStyle": "bar", "backNavigation": false},
        });
        self.manage("surveys", &survey).await
    }

    async fn manage(&self, resource: &str, body: &Value) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/{resource}", text(&self.access, "/appId")?);
        let authorization = format!("Bearer {}", text(&self.access, "/editorToken")?);
        let mut connection = Connection::open(self.address).await?;
        let headers = [("Authorization", authorization.as_str())];
        connection.call("POST", &path, &headers, body).await?;
        Ok(())
    }

    /// Starts a session for each of so many people.
    async fn people(&self, count: usize) -> anyhow::Result<Vec<Person>> {
        let authorization = format!("Bearer {}", text(&self.access, "/writeKey")?);
        let headers = [("Authorization", authorization.as_str())];
        let mut connection = Connection::open(self.address).await?;
        let mut people = Vec::with_capacity(count);
        for number in 0..count {
            let anonymous_id = anonymous_id(number);
            let body = json!({"anonymousId": anonymous_id, "platform": "ios"});
            let answer = connection
                .call("POST", "/v1/sdk/session", &headers, &body)
                .await?;
            let token = text(&answer, "/data/subjectToken")?.to_owned();
            people.push(Person {
                anonymous_id,
                token,
            });
        }
        Ok(people)
    }
}

impl clients::Server for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn write_key(&self) -> &str {
        text(&self.access, "/writeKey").unwrap_or_default()
    }

    fn cpu(&self) -> anyhow::Result<Duration> {
        self.process.cpu()
    }

    async fn drained(&self) -> anyhow::Result<()> {
        let pending = "SELECT count(*) FROM (SELECT 1 AS one FROM pending LIMIT 1) AS first";
        while self.pool.number(pending).await? > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn stored(&self) -> anyhow::Result<usize> {
        let stored = "SELECT count(*) FROM events WHERE name = 'product_viewed'";
        Ok(self.pool.number(stored).await?.try_into()?)
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.with_context(|| format!("no {pointer}"))
}
