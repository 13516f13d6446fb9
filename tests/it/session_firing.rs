//! What sessions fire, against a plain model of their rules, over generated events (specification 6.1, contract 8).

use std::collections::BTreeSet;

use nudge_db::Timestamp;
use nudge_platform::clock;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tests::session::event_id;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::backtest::{ask, result};
use crate::guests::{deploy, name, trigger, upload, version, versioned};

on_both_backends!(
    generated_sessions_fire_as_the_model_says,
    an_event_that_begins_a_session_fires_once_wherever_it_is_tried,
);

const PEOPLE: usize = 10;
const WINDOW_MS: i64 = 30 * 60_000;

/// Names, and milliseconds after the event before, less than nothing for one that comes late.
fn history() -> impl Strategy<Value = Vec<(&'static str, i64)>> {
    let name = prop::sample::select(vec![
        "session_started",
        "session_ended",
        "bought",
        "bought",
        "looked",
    ]);
    let step = prop::sample::select(vec![
        0,
        1,
        10 * 60_000,
        WINDOW_MS - 1,
        WINDOW_MS,
        WINDOW_MS + 1,
        2 * WINDOW_MS,
        -60_000,
        -WINDOW_MS,
        -3 * WINDOW_MS,
    ]);
    prop::collection::vec((name, step), 20..60)
}

/// The rules in their plainest form, for one person.
#[derive(Default)]
struct Model {
    active_at: Option<i64>,
    session: u32,
    /// The last session in which something was bought.
    bought_in: Option<u32>,
}

impl Model {
    /// Whether an event begins a session, and whether it is the first of its session that buys.
    fn take(&mut self, name: &str, at: i64) -> [bool; 2] {
        if name == "session_ended" {
            return [false, false];
        }
        let begins = self
            .active_at
            .is_none_or(|active_at| at - active_at > WINDOW_MS);
        self.session += u32::from(begins);
        self.active_at = self.active_at.max(Some(at));
        let buys = name == "bought" && self.bought_in != Some(self.session);
        if buys {
            self.bought_in = Some(self.session);
        }
        [begins, buys]
    }
}

/// Which campaign fired for which event.
type Firings = BTreeSet<(Uuid, String)>;

async fn generated_sessions_fire_as_the_model_says(app: &mut TestApp) {
    let begun = app.survey(&json!({"kind": "session_start"})).await;
    let occurrence = json!({"mode": "once_per_session"});
    let bought = app
        .survey(&json!({"kind": "event", "eventName": "bought", "occurrence": occurrence}))
        .await;
    let mut runner = TestRunner::deterministic();
    let mut expected = Firings::new();
    let first = app.services().clock.now().0 / 1_000 - 7 * 86_400_000;
    for person in 0..PEOPLE {
        let session = app.session(&format!("person-{person}")).await;
        let history = history().new_tree(&mut runner).unwrap().current();
        let (mut model, mut at) = (Model::default(), first);
        let mut events: Vec<Value> = Vec::new();
        for (name, step) in history {
            at += step;
            let mut event = app.event(&session, name, &json!({}));
            event["timestamp"] = json!(clock::to_text(Timestamp(at * 1_000)));
            let fires = model.take(name, at);
            for (campaign, fires) in [begun, bought].into_iter().zip(fires) {
                if fires {
                    expected.insert((campaign, event_id(&event)));
                }
            }
            events.push(event);
        }
        let size = (1_usize..8).new_tree(&mut runner).unwrap().current();
        for request in events.chunks(size) {
            let data = app.ingest(&session, request).await.ok();
            assert_eq!(data["accepted"], request.len());
        }
    }
    app.settle().await;
    let fired: Vec<(Uuid, Uuid)> = app
        .rows("SELECT campaign_id, trigger_event_id FROM instructions")
        .await;
    let count = fired.len();
    let fired: Firings = fired
        .into_iter()
        .map(|(campaign, event)| (campaign, event.to_string()))
        .collect();
    assert_eq!(fired, expected);
    assert_eq!(count, expected.len(), "each fires once");
    assert!(count > PEOPLE * 5, "sessions were generated: {count}");
}

/// A plugin that reads both hears of it as the beginning of the session, and as the event that it is besides.
async fn an_event_that_begins_a_session_fires_once_wherever_it_is_tried(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    upload(app, versioned(1, 2)).await.data(201);
    let config = json!({"events": ["$session_began", "opened"]});
    app.survey(&trigger(1, config.clone())).await;
    let ada = app.session("ada").await;
    for _ in 0..2 {
        assert_eq!(app.fires(&ada, "opened", &json!({})).await, 1);
    }

    let path = format!("/plugins/{}/versions/{}/test", name(1), version(1));
    let events = ["opened", "opened"].map(|name| json!({"name": name}));
    let cases = json!({"cases": [{"input": {"config": config, "events": events}}]});
    let data = app.post(&app.path(&path), &app.admin(), &cases).await.ok();
    let fired = data["cases"][0]["output"]["fired"].as_array().unwrap();
    let fired = fired.iter().map(|fired| fired["event"].as_u64().unwrap());
    assert_eq!(fired.collect::<Vec<u64>>(), [0, 1], "{data}");

    app.settle().await;
    let body = json!({"since": app.time(-3600)});
    let job = ask(app, &name(1), &version(2), &body).await.data(202);
    let result = result(app, &job).await;
    let counts = ["events", "same", "onlyActive", "onlyCandidate", "failed"];
    let counts = counts.map(|key| result[key].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 0, 0, 0], "{result}");
}
