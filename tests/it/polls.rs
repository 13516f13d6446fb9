//! Long polls in numbers, and what they are shown (contract 4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::client;
use tests::session::{instruction_ids, text};
use tests::{Credential, Session, TestApp, on_both_backends};

on_both_backends!(
    two_thousand_polls_are_woken_by_their_own_instruction_alone,
    what_ends_a_token_ends_its_polls,
    what_ends_a_key_ends_its_polls,
    a_poll_ends_when_its_token_expires,
    pages_are_in_the_order_of_priority,
    what_is_not_available_yet_is_not_passed_by,
    a_firing_has_one_id_however_it_is_gotten,
    what_is_on_offer_again_wakes_polls,
    a_cursor_from_before_a_restore_finds_what_comes_after_it,
);

const POLLS: u64 = 2_000;
/// So many of them get something by an event, the rest by a run.
const SENT: u64 = 100;

fn purchase() -> Value {
    json!({"kind": "event", "eventName": "purchase"})
}

/// What a client of a long poll has seen.
#[derive(Debug, Default)]
struct Seen {
    begun: AtomicU64,
    empty: AtomicU64,
}

/// Polls until there is something, and answers whose it is and what.
async fn polls(
    http: reqwest::Client,
    base: String,
    key: String,
    session: Session,
    seen: Arc<Seen>,
) -> (String, Vec<String>) {
    loop {
        seen.begun.fetch_add(1, Ordering::Relaxed);
        let request = http
            .get(format!("{base}/v1/sdk/instructions?wait=25"))
            .bearer_auth(&key)
            .header("x-service-subject-token", &session.token);
        let items = client::send(request).await.ok()["items"].take();
        if items != json!([]) {
            return (session.subject_id, instruction_ids(&items));
        }
        seen.empty.fetch_add(1, Ordering::Relaxed);
    }
}

async fn two_thousand_polls_are_woken_by_their_own_instruction_alone(app: &mut TestApp) {
    app.people(POLLS).await;
    app.survey(&purchase()).await;
    let mut sessions = Vec::new();
    for number in 0..POLLS {
        sessions.push(app.session(&format!("person-{number}")).await);
    }
    let (http, seen) = (client::build(), Arc::new(Seen::default()));
    let mut clients = tokio::task::JoinSet::new();
    for session in &sessions {
        let (base, key) = (&app.access.base_url, &app.access.write_key);
        clients.spawn(polls(
            http.clone(),
            base.clone(),
            key.clone(),
            session.clone(),
            Arc::clone(&seen),
        ));
    }
    let open = || u64::try_from(app.services().polls.count()).unwrap();
    app.until("all polls are open", async || open() == POLLS)
        .await;

    let (sent, rest) = sessions.split_at(usize::try_from(SENT).unwrap());
    for session in sent {
        let event = app.event(session, "purchase", &json!({}));
        app.ingest(session, &[event]).await.ok();
    }
    let mut answered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while answered.len() < sent.len() {
        answered.extend(clients.join_next().await.unwrap());
    }
    let whose: BTreeSet<&String> = answered.keys().collect();
    let expected: BTreeSet<&String> = sent.iter().map(|session| &session.subject_id).collect();
    assert_eq!(whose, expected);

    app.survey_with(&json!({"mode": "scheduled", "trigger": null}))
        .await;
    while let Some(answer) = clients.join_next().await {
        answered.extend(answer);
    }
    assert_eq!(answered.len(), sent.len() + rest.len());
    let stored: Vec<(uuid::Uuid, uuid::Uuid)> =
        app.rows("SELECT id, subject_id FROM instructions").await;
    let owners: BTreeMap<String, String> = stored
        .into_iter()
        .map(|(id, subject)| (id.to_string(), subject.to_string()))
        .collect();
    for (subject, ids) in &answered {
        assert_eq!(ids.len(), 1);
        assert_eq!(owners.get(&ids[0]), Some(subject));
    }
    // One look when it is opened, one when its time is over, one for each wake.
    let looks = app.services().polls.looks();
    let (begun, empty) = (&seen.begun, &seen.empty);
    let wakes = looks - begun.load(Ordering::Relaxed) - empty.load(Ordering::Relaxed);
    assert!(wakes <= POLLS, "{wakes} wakes of {POLLS} polls");
    assert_eq!(open(), 0);
}

async fn what_ends_a_token_ends_its_polls(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    for ends in ["session", "merge", "identity", "deletion", "consent"] {
        let ada = app.session(&format!("ada-{ends}")).await;
        let bob = app.session("bob").await;
        let count = || app.services().polls.count();
        let waits = app.poll(&bob, "?wait=25");
        let ended = async {
            let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
                app.until("both wait", async || count() == 2).await;
                match ends {
                    "session" => drop(app.end(&ada, &json!({})).await.data(204)),
                    // Of somebody whom nobody has been yet.
                    "identity" => {
                        let name = format!("ada-{ends}");
                        drop(backend.identify(app, &name, "e-2").await);
                    }
                    "merge" => drop(backend.identify(app, &ada.anonymous_id, "e-1").await),
                    "deletion" => {
                        let body = json!({"anonymousId": ada.anonymous_id});
                        app.post(&app.path("/gdpr/delete"), &app.admin(), &body)
                            .await
                            .data(202);
                    }
                    _ => {
                        let body = json!({"anonymousId": ada.anonymous_id, "messaging": false});
                        app.post("/v1/sdk/consent", &ada.credential(), &body)
                            .await
                            .ok();
                    }
                }
            });
            polled
        };
        // The other poll goes on.
        tokio::select! {
            polled = ended => match ends {
                "consent" => assert_eq!(polled.ok()["items"], json!([])),
                _ => drop(polled.refused(401, "subject_token_expired")),
            },
            other = waits => assert!(other.status == 0, "the poll of somebody else ended first"),
        }
        app.until("none waits", async || count() == 0).await;
    }
}

async fn what_ends_a_key_ends_its_polls(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let count = || app.services().polls.count();
    for ends in ["revocation", "expiry"] {
        let expires_at = (ends == "expiry").then(|| app.time(3));
        let wanted = json!({"kind": "write", "name": ends, "expiresAt": expires_at});
        let key = app.make_key(&wanted).await;
        let who = Credential::bearer(key["key"].as_str().unwrap())
            .and("x-service-subject-token", &ada.token);
        let begun = Instant::now();
        let waits = app.get("/v1/sdk/instructions?wait=25", &who);
        let (polled, ()) = tokio::join!(waits, async {
            app.until("it waits", async || count() == 1).await;
            if ends == "revocation" {
                let path = app.path(&format!("/keys/{}", key["id"].as_str().unwrap()));
                app.delete(&path, &app.admin()).await.data(204);
            }
        });
        polled.refused(401, "invalid_credentials");
        assert!(begun.elapsed() < Duration::from_secs(20), "{ends}");
    }
}

async fn a_poll_ends_when_its_token_expires(app: &mut TestApp) {
    let ada = app.session("ada").await;
    // Tokens are good for a day.
    app.advance(24 * 3_600 - 3);
    let begun = Instant::now();
    app.poll(&ada, "?wait=25")
        .await
        .refused(401, "subject_token_expired");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// The priorities of a page's items.
fn priorities(page: &Value) -> Vec<i64> {
    let items = page["items"].as_array().unwrap();
    let priorities = items.iter().filter_map(|item| item["priority"].as_i64());
    priorities.collect()
}

async fn pages_are_in_the_order_of_priority(app: &mut TestApp) {
    for priority in [3, 1, 4, 1, 5, 9, 2, 6] {
        app.survey_with(&json!({"priority": priority})).await;
    }
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 8);

    let first = app.poll(&ada, "?limit=3").await.ok();
    assert_eq!(priorities(&first), [9, 6, 5]);
    // What comes meanwhile comes after what was there.
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 8);
    let mut cursor = text(&first, "nextCursor");
    let mut pages = Vec::new();
    let mut ids = instruction_ids(&first["items"]);
    loop {
        let page = app
            .poll(&ada, &format!("?limit=3&cursor={cursor}"))
            .await
            .ok();
        if page["items"] == json!([]) {
            break;
        }
        cursor = text(&page, "nextCursor");
        pages.push(priorities(&page));
        ids.extend(instruction_ids(&page["items"]));
    }
    assert_eq!(
        pages,
        [
            vec![4, 3, 2],
            vec![1, 1],
            vec![9, 6, 5],
            vec![4, 3, 2],
            vec![1, 1]
        ]
    );
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (16, 16));
    // What was not acknowledged is offered again to who has no cursor.
    let again = app.poll(&ada, "?limit=20").await.ok();
    assert_eq!(instruction_ids(&again["items"]).len(), 16);
}

async fn what_is_not_available_yet_is_not_passed_by(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    for _ in 0..3 {
        app.fires(&ada, "purchase", &json!({})).await;
    }
    let in_an_hour = app.clock.now().plus(std::time::Duration::from_hours(1));
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE instructions SET available_at = $1 WHERE position = 2")
        .bind(in_an_hour)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let page = app.poll(&ada, "").await.ok();
    assert_eq!(instruction_ids(&page["items"]).len(), 2);
    app.advance(3_601);
    let cursor = text(&page, "nextCursor");
    let ada = app.session("ada").await;
    let later = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    let available: Vec<String> = later["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(item, "availableAt"))
        .collect();
    assert!(available.contains(&nudge_platform::clock::to_text(in_an_hour)));
    let cursor = text(&later, "nextCursor");
    let rest = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    assert_eq!(rest["items"], json!([]));
}

/// Each firing's ids, by campaign and event.
type Ids = BTreeMap<(String, String), BTreeSet<String>>;

fn note(ids: &mut Ids, items: &Value) {
    for item in items.as_array().unwrap() {
        let firing = (text(item, "campaignId"), text(&item["trigger"], "eventId"));
        ids.entry(firing)
            .or_default()
            .insert(text(item, "instructionId"));
    }
}

async fn a_firing_has_one_id_however_it_is_gotten(app: &mut TestApp) {
    const EVENTS: usize = 60;
    for priority in [1, 2] {
        app.survey_with(&json!({"priority": priority})).await;
    }
    let ada = app.session("ada").await;
    let app = &*app;
    let (mut at_once, mut polled, mut cursor) = (Ids::new(), Ids::new(), String::new());
    let mut shown: Vec<String> = Vec::new();
    let sends = async {
        let mut ids = Ids::new();
        for _ in 0..EVENTS / 2 {
            let events = [(); 2].map(|()| app.event(&ada, "purchase", &json!({})));
            let data = app.ingest_and_ask(&ada, &events).await;
            note(&mut ids, &data["instructions"]);
        }
        ids
    };
    let polls = async {
        while polled.len() < EVENTS * 2 {
            let query = match cursor.as_str() {
                "" => "?wait=5&limit=3".to_owned(),
                cursor => format!("?wait=5&limit=3&cursor={cursor}"),
            };
            let page = app.poll(&ada, &query).await.ok();
            cursor = text(&page, "nextCursor");
            note(&mut polled, &page["items"]);
            shown.extend(instruction_ids(&page["items"]));
        }
    };
    let (sent, ()) = tokio::join!(sends, polls);
    at_once.extend(sent);

    assert_eq!(at_once.len(), EVENTS * 2);
    assert_eq!(at_once, polled);
    assert!(at_once.values().all(|ids| ids.len() == 1));
    // Somebody who goes on by the cursor is shown nothing twice.
    let distinct: BTreeSet<&String> = shown.iter().collect();
    assert_eq!(distinct.len(), shown.len());
}

async fn what_is_on_offer_again_wakes_polls(app: &mut TestApp) {
    let survey = app.survey(&purchase()).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let ada = app.session("ada").await;
    app.fires(&ada, "purchase", &json!({})).await;
    let set = async |status: &str| {
        app.patch(&path, &app.editor(), &json!({"status": status}))
            .await
            .ok();
    };
    set("paused").await;
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
        app.until("it waits", async || app.services().polls.count() == 1)
            .await;
        set("active").await;
    });
    assert_eq!(instruction_ids(&polled.ok()["items"]).len(), 1);
}

async fn a_cursor_from_before_a_restore_finds_what_comes_after_it(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let buy = async |app: &TestApp| {
        let event = app.event(&ada, "purchase", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
        app.settle().await;
    };
    for _ in 0..3 {
        buy(app).await;
    }
    let part = app.poll(&ada, "?limit=1").await.ok();
    let whole = app.poll(&ada, "").await.ok();
    assert_eq!(instruction_ids(&whole["items"]).len(), 3);
    // The state of a backup.
    let mut tx = app.services().db.write().await.unwrap();
    for sql in [
        "DELETE FROM instructions",
        "UPDATE subjects SET instruction_count = 0",
    ] {
        tx.sql(sql).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    app.restart().await;
    buy(app).await;
    for before in [part, whole] {
        let query = format!("?cursor={}", text(&before, "nextCursor"));
        let after = app.poll(&ada, &query).await.ok();
        assert_eq!(instruction_ids(&after["items"]).len(), 1);
        let query = format!("?cursor={}", text(&after, "nextCursor"));
        let after = app.poll(&ada, &query).await.ok();
        assert_eq!(after["items"], json!([]));
    }
}
