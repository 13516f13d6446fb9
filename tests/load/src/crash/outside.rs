//! What the servers talk to: a push service and a receiver of webhooks, which are there throughout, and what they
//! were told, compared with what the database says of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use nudge_db::{Db, Timestamp};
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use tests::providers::Providers;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::clients::{PEOPLE, anonymous_id};
use super::ledger::{Number, all};
use super::{PUSHED, manage};
use crate::child::{Process, borrowed};
use crate::client::Connection;
use crate::report::say;

/// The ids of messages that a receiver was sent, by delivery and type.
type Told = HashMap<(Uuid, String), HashSet<String>>;

/// A push service and a receiver of webhooks.
pub(super) struct Outside {
    providers: Providers,
    told: Arc<Mutex<Told>>,
    receiver: String,
    variables: Vec<(&'static str, String)>,
    _tasks: JoinSet<std::io::Result<()>>,
}

impl Outside {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let providers = Providers::start(&Clock::default()).await;
        let variables = providers.variables();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = format!("http://{}/", listener.local_addr()?);
        let told = Arc::<Mutex<Told>>::default();
        let router = Router::new()
            .route("/", post(receive))
            .with_state(Arc::clone(&told));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await });
        Ok(Self {
            providers,
            told,
            receiver,
            variables,
            _tasks: tasks,
        })
    }

    /// The environment of a server that talks to these.
    pub(super) fn variables(&self) -> Vec<(&str, &str)> {
        borrowed(&self.variables)
    }

    /// Makes a campaign, a device of each person, and a webhook that is told of each message.
    pub(super) async fn furnish(&self, process: &Process, clients: usize) -> anyhow::Result<()> {
        let credential = self.providers.fcm.credential();
        manage(process, "push/credentials", &credential).await?;
        let webhook = json!({"url": self.receiver, "eventTypes": ["sent", "delivered"]});
        manage(process, "push/webhooks", &webhook).await?;
        let campaign = json!({
            "name": PUSHED, "mode": "triggered", "status": "active",
            "trigger": {"kind": "event", "eventName": PUSHED, "occurrence": {"mode": "every"}},
            "variants": [{"title": "Still interested?", "body": "It waits for you", "weight": 1}],
        });
        manage(process, "campaigns", &campaign).await?;
        let mut connection = Connection::open(process.address()).await?;
        let key = format!("Bearer {}", process.access("writeKey")?);
        let key = ("Authorization", key.as_str());
        let mut device = 0;
        for client in 0..clients {
            for person in 0..PEOPLE {
                let name = anonymous_id(client, usize::try_from(person)?);
                let body = json!({"anonymousId": name});
                let session = connection
                    .call("POST", "/v1/sdk/session", &[key], &body)
                    .await?;
                let token = session.pointer("/data/subjectToken");
                let token = token.and_then(Value::as_str).context("a token")?;
                let headers = [key, ("X-Service-Subject-Token", token)];
                device += 1;
                let mut body = self.providers.fcm.token(device);
                let parts = body.as_object_mut().context("an object")?;
                parts.insert("anonymousId".to_owned(), json!(name));
                parts.insert("deviceId".to_owned(), json!(format!("{name}-phone")));
                connection
                    .call("POST", "/v1/sdk/push-tokens", &headers, &body)
                    .await?;
            }
        }
        Ok(())
    }

    /// Compares what arrived with what the database says of each delivery.
    pub(super) async fn compare(&self, db: &Db) -> anyhow::Result<()> {
        let deliveries: Vec<Delivery> = all(
            db,
            "SELECT id, status, reason, sent_at, delivered_at FROM deliveries",
        )
        .await?;
        let mut handed = self.handed()?;
        let (mut delivered, mut unknown, mut reached) = (0, 0, 0);
        let told = lock(&self.told).clone();
        for delivery in &deliveries {
            let times = handed.remove(&delivery.id).unwrap_or_default();
            let id = delivery.id;
            ensure!(times <= 1, "delivery {id} was handed over {times} times");
            match (delivery.status.as_str(), delivery.reason.as_deref()) {
                ("delivered", None) => {
                    ensure!(
                        times == 1,
                        "delivery {id} is delivered, and was never handed over"
                    );
                    delivered += 1;
                }
                // Its server ended after it had said that it sends, and before it had the answer.
                ("sent", Some("outcome_unknown")) => {
                    unknown += 1;
                    reached += times;
                }
                other => anyhow::bail!("delivery {id} is {other:?}"),
            }
            for (event, at) in [
                ("sent", delivery.sent_at),
                ("delivered", delivery.delivered_at),
            ] {
                let ids = told.get(&(id, event.to_owned())).map_or(0, HashSet::len);
                let expected = usize::from(at.is_some());
                ensure!(
                    ids == expected,
                    "the receiver has {ids} message ids for {event} of delivery {id}, not {expected}"
                );
            }
        }
        ensure!(handed.is_empty(), "{} messages of nobody", handed.len());
        let miscounted: Vec<Number> = all(
            db,
            "SELECT count(*) AS number FROM (
               SELECT CASE state WHEN 'sent' THEN (SELECT count(*) FROM deliveries WHERE sent_at IS NOT NULL)
                                 ELSE (SELECT count(*) FROM deliveries WHERE delivered_at IS NOT NULL) END AS found,
                      sum(count) AS counted
               FROM delivery_counts WHERE state IN ('sent', 'delivered') GROUP BY state) c
             WHERE c.found <> c.counted",
        )
        .await?;
        let miscounted = miscounted.first().context("a count")?.number;
        ensure!(miscounted == 0, "deliveries are counted wrongly");
        Ok(say(format_args!(
            "{delivered} messages handed over once; of {unknown} more the outcome is unknown, {reached} of which arrived once"
        ))?)
    }

    /// How often each delivery arrived at the push service.
    fn handed(&self) -> anyhow::Result<HashMap<Uuid, usize>> {
        let mut handed = HashMap::new();
        for message in self.providers.fcm.received() {
            // Unless a campaign says otherwise, a message takes the place of what has its delivery's id.
            let body = message.json();
            let id = body.pointer("/message/android/notification/tag");
            let id = id.and_then(Value::as_str).context("a message's tag")?;
            *handed.entry(Uuid::parse_str(id)?).or_default() += 1;
        }
        Ok(handed)
    }
}

#[derive(nudge_db::FromRow)]
struct Delivery {
    id: Uuid,
    status: String,
    reason: Option<String>,
    sent_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn receive(
    State(told): State<Arc<Mutex<Told>>>,
    headers: HeaderMap,
    axum::Json(body): axum::Json<Value>,
) -> StatusCode {
    let header = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    let delivery = body.pointer("/data/deliveryId").and_then(Value::as_str);
    let delivery = delivery.and_then(|id| Uuid::parse_str(id).ok());
    let (Some(delivery), Some(event), Some(id)) =
        (delivery, header("x-service-event"), header("webhook-id"))
    else {
        return StatusCode::BAD_REQUEST;
    };
    lock(&told).entry((delivery, event)).or_default().insert(id);
    StatusCode::OK
}
