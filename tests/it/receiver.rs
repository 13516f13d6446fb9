//! A receiver of webhooks that answers as a test wants it to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::TestApp;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Which events requests tell of, in their order.
pub(crate) fn events(requests: &[Received]) -> Vec<&str> {
    let events = requests.iter().map(|one| one.header("x-service-event"));
    events.collect()
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16),
    With(u16, &'static str, String),
    /// Not before [`Receiver::release`], and with 200 then.
    Hang,
}

#[derive(Default)]
struct Behaviour {
    received: Mutex<Vec<Received>>,
    /// How requests to a path are answered: the last one for ever.
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    released: CancellationToken,
}

/// It listens until it is dropped.
pub(crate) struct Receiver {
    base: String,
    behaviour: Arc<Behaviour>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Arc::new(Behaviour::default());
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&behaviour));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            base,
            behaviour,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// How requests to a path are answered: one after the other, the last one for ever. 200 unless this is called.
    pub(crate) fn reply(&self, path: &str, replies: &[Reply]) {
        let mut all = self.behaviour.replies.lock().unwrap();
        all.insert(path.to_owned(), replies.iter().cloned().collect());
    }

    /// Lets go of requests that hang.
    pub(crate) fn release(&self) {
        self.behaviour.released.cancel();
    }

    /// The requests to a path so far.
    pub(crate) fn received(&self, path: &str) -> Vec<Received> {
        let all = self.behaviour.received.lock().unwrap();
        let to = all.iter().filter(|got| got.path == path);
        to.cloned().collect()
    }

    /// The requests to a path, once there are so many.
    pub(crate) async fn wait(&self, app: &TestApp, path: &str, count: usize) -> Vec<Received> {
        app.until(&format!("{path} gets {count} requests"), async || {
            self.received(path).len() >= count
        })
        .await;
        self.received(path)
    }

    /// Subscribes a path of this receiver to events; answers what the route does.
    pub(crate) async fn subscribe(&self, app: &TestApp, path: &str, events: &[EventType]) -> Value {
        let events: Vec<&str> = events.iter().map(|event| event.name()).collect();
        let body = json!({"url": self.url(path), "eventTypes": events});
        app.post(&app.path("/push/webhooks"), &app.admin(), &body)
            .await
            .data(201)
    }
}

async fn answer(
    State(behaviour): State<Arc<Behaviour>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let reply = {
        // Under one lock: the replies are given in the order in which the requests are counted.
        let mut all = behaviour.replies.lock().unwrap();
        behaviour.received.lock().unwrap().push(Received {
            path: path.clone(),
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        });
        let replies = all.get_mut(&path);
        replies.and_then(|replies| match replies.len() {
            0 | 1 => replies.front().cloned(),
            _ => replies.pop_front(),
        })
    };
    let status = |status| axum::http::StatusCode::from_u16(status).unwrap();
    match reply {
        None => status(200).into_response(),
        Some(Reply::Status(code)) => status(code).into_response(),
        Some(Reply::With(code, header, value)) => (status(code), [(header, value)]).into_response(),
        Some(Reply::Hang) => {
            behaviour.released.cancelled().await;
            status(200).into_response()
        }
    }
}
