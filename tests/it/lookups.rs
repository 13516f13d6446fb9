//! Names of hosts: who has them looked up, and what becomes of everybody else where that takes long.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex};

use futures_util::future::join_all;
use nudge_campaigns::push::options::Options;
use nudge_campaigns::webhooks::EventType::{Opened, Sent};
use nudge_platform::outbound::Lookup;
use nudge_push::providers::{Address, PushOutcome, Target};
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::exports::{export, reaches};
use crate::push_providers::{device, message, rejected, retry, send};
use crate::receiver::Receiver;

on_both_backends!(
    registrations_look_nothing_up,
    an_endpoint_does_not_say_which_internal_names_there_are,
    look_ups_that_hang_hold_threads_of_their_own,
    a_webhook_that_found_no_room_for_its_look_up_has_made_no_attempt,
);

/// A resolver. Names that begin with `hang` have no answer while it is held, `none` no address, `internal` a private
/// one, all others this machine's.
#[derive(Debug, Default)]
struct Names {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: bool,
    asked: usize,
    inside: usize,
    most_inside: usize,
}

impl Names {
    fn hold(&self, held: bool) {
        self.state.lock().unwrap().held = held;
        self.released.notify_all();
    }

    fn asked(&self) -> usize {
        self.state.lock().unwrap().asked
    }

    fn inside(&self) -> usize {
        self.state.lock().unwrap().inside
    }

    fn most_inside(&self) -> usize {
        self.state.lock().unwrap().most_inside
    }
}

impl Lookup for Names {
    fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut state = self.state.lock().unwrap();
        state.asked += 1;
        state.inside += 1;
        state.most_inside = state.most_inside.max(state.inside);
        let hangs = name.starts_with("hang");
        let waits = |state: &mut State| hangs && state.held;
        state = self.released.wait_while(state, waits).unwrap();
        state.inside -= 1;
        drop(state);
        match name {
            _ if name.starts_with("none") => Err(io::Error::other("no such name")),
            _ if name.starts_with("internal") => Ok(vec!["10.9.8.7".parse().unwrap()]),
            _ => Ok(vec!["127.0.0.1".parse().unwrap()]),
        }
    }
}

/// A server that asks this resolver.
async fn with_names(app: &mut TestApp, threads: usize) -> Arc<Names> {
    let names = Arc::new(Names::default());
    names.hold(true);
    app.lookup = Some(Arc::<Names>::clone(&names));
    app.config.server.lookup_threads = threads;
    app.restart().await;
    names
}

fn browser(device_id: &str, endpoint: &str) -> Value {
    json!({
        "anonymousId": "ada", "deviceId": device_id, "provider": "webpush",
        "subscription": {"endpoint": endpoint, "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        }},
    })
}

async fn register(app: &TestApp, session: &Session, body: &Value) -> tests::Answer {
    app.post("/v1/sdk/push-tokens", &session.credential(), body)
        .await
}

async fn registrations_look_nothing_up(app: &mut TestApp) {
    // As servers have it.
    app.config.webhooks = nudge_platform::config::Config::defaults().unwrap().webhooks;
    let names = with_names(app, 16).await;
    let ada = app.session("ada").await;

    // One answer, whatever is behind a name.
    for host in ["good", "none", "internal", "hang"] {
        let body = browser("d", &format!("https://{host}.example/push"));
        let answer = register(app, &ada, &body).await;
        let expected = json!({"deviceId": "d", "status": "active"});
        assert_eq!(answer.ok(), expected, "{host}");
    }
    let numbers: Vec<usize> = (0..100).collect();
    for numbers in numbers.chunks(50) {
        let all = numbers.iter().map(async |number| {
            let endpoint = format!("https://hang{number}.example/push");
            let body = browser(&format!("d{number}"), &endpoint);
            register(app, &ada, &body).await.ok()
        });
        join_all(all).await;
    }
    assert_eq!(names.asked(), 0);

    // Whoever may not register learns nothing of what was sent.
    app.end(&ada, &json!({})).await.data(204);
    for endpoint in ["https://internal.example/", "https://127.0.0.1/", "no URL"] {
        let answer = register(app, &ada, &browser("d", endpoint)).await;
        answer.refused(401, "subject_token_expired");
    }
    assert_eq!(names.asked(), 0);
}

async fn an_endpoint_does_not_say_which_internal_names_there_are(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.config.webhooks.allow_private_networks = false;
    with_names(app, 8).await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let mut token = providers.webpush.browser(1).token();
    token["subscription"]["endpoint"] = json!("https://none.example/push");
    let (_, target) = device(app, "ada", &token).await;
    let message = message(app, Options::default());
    let mut outcomes = Vec::new();
    for host in ["none.example", "internal.example", "10.9.8.7"] {
        let mut target = target.clone();
        if let Address::Subscription(subscription) = &mut target.address {
            subscription.endpoint = format!("https://{host}/push");
        }
        outcomes.push(send(app, &target, &message).await);
    }
    // An address tells nothing that its sender does not know.
    assert_eq!(
        outcomes,
        [
            retry(None, "unreachable"),
            retry(None, "unreachable"),
            rejected("endpoint_not_allowed"),
        ]
    );
}

async fn look_ups_that_hang_hold_threads_of_their_own(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let names = with_names(app, 8).await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let receiver = Receiver::start().await;
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    let url = format!("http://receiver.example:{port}/hook");
    let body = json!({"url": url, "eventTypes": ["sent"]});
    app.post(&app.path("/push/webhooks"), &app.admin(), &body)
        .await
        .data(201);
    let (_, target) = device(app, "ada", &providers.webpush.browser(1).token()).await;
    let targets: Vec<Target> = (0..1_100)
        .map(|number| {
            let mut target = target.clone();
            if let Address::Subscription(subscription) = &mut target.address {
                subscription.endpoint = format!("http://hang{number}.example:{port}/");
            }
            target
        })
        .collect();
    let message = message(app, Options::default());

    let messages = join_all(targets.iter().map(|target| send(app, target, &message)));
    let meanwhile = async {
        app.until("look-ups hang", async || names.inside() == 2)
            .await;
        app.transit(Uuid::from_u128(1), app.id(), &[Sent]).await;
        receiver.wait(app, "/hook", 1).await;
        let id = export(app, &json!({"anonymousId": "ada"})).await;
        reaches(app, &id, "completed").await;
        assert_eq!(names.inside(), 2, "they hang still");
    };
    let (outcomes, ()) = tokio::join!(messages, meanwhile);

    let (mut hung, mut busy) = (0, 0);
    let mut unexpected: Vec<String> = Vec::new();
    for outcome in outcomes {
        match &outcome {
            PushOutcome::Retry { reason, .. } if reason == "lookup_busy" => busy += 1,
            PushOutcome::Retry { reason, .. } if reason == "unreachable" => hung += 1,
            other => unexpected.push(format!("{other:?}")),
        }
    }
    assert_eq!(unexpected, Vec::<String>::new());
    // An app has a quarter of eight threads.
    assert!(hung <= 2, "{hung}");
    assert_eq!(hung + busy, 1_100);
    assert_eq!(names.inside(), 2);
    assert!(names.most_inside() <= 8, "{}", names.most_inside());
    names.hold(false);
}

/// A webhook's messages, as they are stored: attempts, state, when they are due, when they were made.
async fn stored(app: &TestApp) -> Vec<(i64, String, Option<i64>, i64)> {
    app.rows(
        "SELECT attempts, state, due_at, created_at FROM webhook_messages
         WHERE event_type = 'opened' AND node IS NULL",
    )
    .await
}

async fn a_webhook_that_found_no_room_for_its_look_up_has_made_no_attempt(app: &mut TestApp) {
    let names = with_names(app, 4).await;
    names.hold(false);
    let receiver = Receiver::start().await;
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    let mut ids = Vec::new();
    for (name, event) in [("hang", "sent"), ("good", "opened")] {
        let url = format!("http://{name}.example:{port}/{name}");
        let body = json!({"url": url, "eventTypes": [event]});
        let webhook = app
            .post(&app.path("/push/webhooks"), &app.admin(), &body)
            .await
            .data(201);
        ids.push(webhook["id"].as_str().unwrap().to_owned());
    }
    names.hold(true);
    // The one thread that the app has for names that are new.
    app.transit(Uuid::from_u128(1), app.id(), &[Sent]).await;
    app.until("a look-up hangs", async || names.inside() == 1)
        .await;

    app.transit(Uuid::from_u128(1), app.id(), &[Opened]).await;
    let mut due = 0;
    for _ in 0..2 {
        let mut found = Vec::new();
        app.until("the message is put off", async || {
            found = stored(app).await;
            matches!(found.as_slice(), [(_, _, Some(at), made)] if *at > made + 5_000_000 && *at > due)
        })
        .await;
        let (attempts, state, at, _) = &found[0];
        assert_eq!((*attempts, state.as_str()), (0, "pending"));
        due = at.unwrap();
        app.advance(15);
    }
    let path = app.path(&format!("/push/webhooks/{}", ids[1]));
    let webhook = app.get(&path, &app.admin()).await.ok();
    assert_eq!(webhook["health"]["consecutiveFailures"], 0);
    assert_eq!(webhook["health"]["state"], "healthy");
    let attempts = app.get(&format!("{path}/attempts"), &app.admin()).await;
    assert_eq!(attempts.ok()["items"], json!([]));
    // The name that hung is told as one without an address.
    let path = app.path(&format!("/push/webhooks/{}", ids[0]));
    app.until("it counts as failed", async || {
        let webhook = app.get(&path, &app.admin()).await.ok();
        webhook["health"]["state"] == "degraded"
    })
    .await;

    names.hold(false);
    app.until("it arrives", async || {
        app.advance(15);
        !receiver.received("/good").is_empty()
    })
    .await;
    let arrived = receiver.wait(app, "/good", 1).await;
    assert_eq!(arrived[0].header("x-service-attempt"), "1");
}
