//! The events of all of an app's people, those that were refused among them (contract 21).

use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use nudge_people::feed::{self, MOST_LOOKED_THROUGH, MOST_NAMES};
use nudge_records::events::{Event, Origin, insert};
use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::person::tables_with;

on_both_backends!(
    events_of_all_people_are_listed_newest_first_by_receipt,
    refused_events_are_there_for_an_hour,
    what_the_privacy_policy_denies_is_not_kept_of_refused_events,
    nothing_is_kept_of_refused_events_without_consent,
    the_feed_keeps_its_order_while_events_arrive,
    however_many_names_an_app_has_its_pages_are_whole,
    a_page_looks_through_so_many_events_and_goes_on,
    filters_of_the_feed_that_cannot_be_read_are_refused
);

async fn feed(app: &TestApp, query: &[(&str, &str)]) -> Answer {
    let query = reqwest::Url::parse_with_params("http://localhost", query).unwrap();
    let path = app.path(&format!("/events?{}", query.query().unwrap_or_default()));
    app.get(&path, &app.viewer()).await
}

async fn listed(app: &TestApp, query: &[(&str, &str)]) -> Vec<Value> {
    let data = feed(app, query).await.ok();
    data["items"].as_array().unwrap().clone()
}

/// All pages.
async fn paged(app: &TestApp, query: &[(&str, &str)], limit: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = query.to_vec();
        query.push(("limit", limit));
        if let Some(cursor) = &cursor {
            query.push(("cursor", cursor.as_str()));
        }
        let data = feed(app, &query).await.ok();
        pages.push(data["items"].as_array().unwrap().clone());
        cursor = data["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return pages;
        }
    }
}

fn of<'v>(items: &'v [Value], member: &str) -> Vec<&'v str> {
    let texts = items.iter().map(|item| item[member].as_str());
    texts.map(|text| text.unwrap_or("-")).collect()
}

async fn events_of_all_people_are_listed_newest_first_by_receipt(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    // Receipt counts, not when they happened.
    let mut early = app.event(&ada, "opened", &json!({"n": 1}));
    early["timestamp"] = json!(app.time(-3_600));
    let mut batch = bob.batch(&[app.event(&bob, "searched", &json!({"n": 2}))]);
    batch["context"]["platform"] = json!("ios");
    app.ingest(&ada, &[app.event(&ada, "bought", &json!({"n": 0}))])
        .await
        .ok();
    let before = app.time(1);
    app.advance(2);
    app.ingest(&ada, &[early]).await.ok();
    app.post_batch(&bob, &batch).await.ok();
    let server = json!({"userId": "eve", "events": [{"name": "paid", "timestamp": app.time(0), "properties": {"n": 3}}]});
    app.post("/v1/sdk/ingest", &app.backend(), &server)
        .await
        .ok();
    // What the server notes by itself is nobody's event.
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let update = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &update)
        .await
        .ok();

    let all = listed(app, &[]).await;
    assert_eq!(of(&all, "name"), ["paid", "searched", "opened", "bought"]);
    assert_eq!(of(&all, "anonymousId"), ["-", "bob", "ada", "ada"]);
    assert_eq!(of(&all, "verdict"), ["accepted"; 4]);
    assert_eq!(of(&all, "source"), ["server", "sdk", "sdk", "sdk"]);
    assert_eq!(
        (&all[0]["externalId"], &all[1]["platform"]),
        (&json!("eve"), &json!("ios"))
    );
    assert_eq!(
        of(&all[1..], "subjectId"),
        [&*bob.subject_id, &ada.subject_id, &ada.subject_id]
    );
    assert_eq!(all[2]["properties"], json!({"n": 1}));
    assert!(all[0].get("errors").is_none());

    let names = |items: Vec<Value>| of(&items, "name").join(" ");
    assert_eq!(names(listed(app, &[("name", "opened")]).await), "opened");
    assert_eq!(
        names(listed(app, &[("name", "$property_changed")]).await),
        ""
    );
    assert_eq!(
        names(listed(app, &[("excludeName", "searched")]).await),
        "paid opened bought"
    );
    assert_eq!(
        names(listed(app, &[("from", &before)]).await),
        "paid searched opened"
    );
    assert_eq!(names(listed(app, &[("to", &before)]).await), "bought");
    assert_eq!(names(listed(app, &[("verdict", "rejected")]).await), "");
    for query in [&[][..], &[("excludeName", "bought")], &[("from", &before)]] {
        let all = listed(app, query).await;
        for limit in ["1", "2", "3"] {
            let pages = paged(app, query, limit).await;
            assert_eq!(pages.concat(), all, "{query:?} {limit}");
        }
    }
}

async fn refused_events_are_there_for_an_hour(app: &mut TestApp) {
    app.define(
        "bought",
        &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let good = app.event(&ada, "opened", &json!({}));
    let broken = app.event(&ada, "bought", &json!({"price": "much"}));
    let mut old = app.event(&ada, "opened", &json!({"n": 1}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let mut unnamed = app.event(&ada, "x", &json!({"n": 2}));
    unnamed["name"] = json!(7);
    let bad_id = json!({"eventId": "no", "name": "y", "timestamp": "soon", "anonymousId": "ada", "properties": []});
    let events = [
        good.clone(),
        broken.clone(),
        old,
        unnamed,
        bad_id,
        good.clone(),
    ];
    let sent = app.ingest(&ada, &events).await.ok();
    assert_eq!(sent["rejected"], 5);

    let all = listed(app, &[]).await;
    assert_eq!(
        of(&all, "verdict"),
        [
            "accepted", "rejected", "rejected", "rejected", "rejected", "rejected"
        ]
    );
    let refused = listed(app, &[("verdict", "rejected")]).await;
    assert_eq!(refused, all[1..]);
    let codes: Vec<&str> = refused
        .iter()
        .map(|item| item["errors"][0]["code"].as_str().unwrap())
        .collect();
    let mut expected = [
        "schema_violation",
        "timestamp_out_of_window",
        "invalid_name",
        "invalid_event_id",
        "duplicate_event_id_in_batch",
    ];
    // The last of the request is the newest.
    expected.reverse();
    assert_eq!(codes, expected);
    assert_eq!(
        of(&refused, "name"),
        ["opened", "y", "-", "opened", "bought"]
    );
    assert_eq!(of(&refused, "subjectId"), [&*ada.subject_id; 5]);
    assert_eq!(refused[4]["properties"], json!({"price": "much"}));
    assert_eq!(refused[4]["eventId"], broken["eventId"]);
    assert_eq!(
        refused[4]["errors"][0]["deadLetterId"],
        sent["errors"][0]["deadLetterId"]
    );
    assert_eq!(refused[1]["timestamp"], Value::Null);
    assert_eq!(refused[1]["eventId"], Value::Null);
    assert_eq!(listed(app, &[("name", "bought")]).await, refused[4..]);
    assert_eq!(listed(app, &[("excludeName", "opened")]).await.len(), 3);
    assert_eq!(listed(app, &[("verdict", "accepted")]).await.len(), 1);

    // Of one that is too large its name is kept, and nothing of what is large.
    let large = app.event(&ada, "large", &json!({"text": "x".repeat(70_000)}));
    app.ingest(&ada, &[large]).await.ok();
    let shown = listed(app, &[("name", "large")]).await;
    assert_eq!(shown[0]["errors"][0]["code"], "event_too_large");
    assert!(shown[0]["timestamp"].is_string() && shown[0]["properties"] == json!({}));

    // Sent again as it must not be, what is there already is accepted, and was not refused.
    let mut again = good;
    again["timestamp"] = json!("2020-01-01T00:00:00Z");
    assert_eq!(app.ingest(&ada, &[again]).await.ok()["accepted"], 1);
    assert_eq!(listed(app, &[("verdict", "rejected")]).await.len(), 6);

    app.advance(3_601);
    let cursor_free = listed(app, &[]).await;
    assert_eq!(of(&cursor_free, "verdict"), ["accepted"]);
    // They go from the database, too.
    loop {
        let dump = app.dump().await;
        let rows = dump.iter().find(|(table, _)| table == "rejected_events");
        if rows.is_none_or(|(_, rows)| rows.is_empty()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn what_the_privacy_policy_denies_is_not_kept_of_refused_events(app: &mut TestApp) {
    let settings = json!({"privacy": {"denyKeys": ["email"]}});
    app.patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    app.define(
        "bought",
        &json!({"properties": [{"name": "email", "type": "number"}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let mut old = app.event(
        &ada,
        "opened",
        &json!({"email": "needle-a", "plan": "pro", "of": {"email": "needle-b"}}),
    );
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let broken = app.event(&ada, "bought", &json!({"email": "needle-c"}));
    let sent = app.ingest(&ada, &[old, broken]).await.ok();
    assert_eq!(sent["rejected"], 2);

    let refused = feed(app, &[("verdict", "rejected")]).await;
    let items = &refused.ok()["items"];
    assert_eq!(items[1]["properties"], json!({"plan": "pro", "of": {}}));
    assert_eq!(items[0]["properties"], json!({}));
    assert!(!refused.text.contains("needle"), "{}", refused.text);
    assert_eq!(tables_with(app, "needle-a").await, [""; 0]);
}

async fn nothing_is_kept_of_refused_events_without_consent(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let consent = json!({"anonymousId": "ada", "analytics": false});
    app.post("/v1/sdk/consent", &ada.credential(), &consent)
        .await
        .ok();
    let mut old = app.event(&ada, "opened", &json!({"note": "needle"}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let events = [old, app.event(&ada, "opened", &json!({"note": "needle"}))];
    assert_eq!(app.ingest(&ada, &events).await.ok()["rejected"], 2);

    assert_eq!(listed(app, &[]).await.len(), 0);
    assert_eq!(tables_with(app, "needle").await, [""; 0]);
}

async fn the_feed_keeps_its_order_while_events_arrive(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for number in 0..6 {
        let event = app.event(&ada, &format!("event-{number}"), &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    }
    let first = feed(app, &[("limit", "3")]).await.ok();
    let event = app.event(&ada, "event-6", &json!({}));
    app.ingest(&ada, &[event]).await.ok();

    let cursor = text(&first, "nextCursor");
    let second = listed(app, &[("limit", "3"), ("cursor", &cursor)]).await;
    assert_eq!(of(&second, "name"), ["event-2", "event-1", "event-0"]);
    // A cursor is its list's.
    feed(app, &[("name", "event-1"), ("cursor", &cursor)])
        .await
        .refused(400, "invalid_cursor");
}

/// Inserts events of an alias as ingest does, a request for all of one instant.
async fn insert(app: &TestApp, alias: i64, names: &[String], received_at: Timestamp) {
    let mut tx = app.services().db.write().await.unwrap();
    for names in names.chunks(400) {
        let event = |name: &String| {
            Arc::new(Event {
                id: app.id(),
                name: name.as_str().into(),
                timestamp: received_at,
                client_timestamp: None,
                properties: "{}".into(),
            })
        };
        let events: Vec<Arc<Event>> = names.iter().map(event).collect();
        let request = insert::NewRequest {
            app_id: app.access.app_id,
            alias,
            node: None,
            received_at,
            origin: &Origin::default(),
            events: &events,
        };
        insert::insert(&mut tx, &[request], true).await.unwrap();
    }
    // What is inserted past the pipeline is not its work.
    tx.sql("DELETE FROM pending").execute().await.unwrap();
    tx.commit().await.unwrap();
}

async fn alias_of(app: &TestApp, who: &str) -> i64 {
    app.session(who).await;
    let aliases: Vec<(i64, String)> = app.rows("SELECT number, value FROM aliases").await;
    let found = aliases.iter().find(|(_, value)| value == who);
    found.unwrap().0
}

/// The names of an app that a page would merge.
async fn names(tx: &mut Tx, app: &TestApp) -> usize {
    let most = MOST_NAMES + 1;
    let names = feed::store::names(tx, app.access.app_id, None, most).await;
    names.unwrap().len()
}

/// Which events of all a query asks for.
type Wanted<'w> = Box<dyn Fn(&Value) -> bool + Send + Sync + 'w>;

/// More names than a page merges: events of somebody, of somebody who is being deleted, and refused ones; answers the instants
/// of their receipt.
async fn many_names(app: &TestApp) -> Vec<String> {
    let alias = alias_of(app, "ada").await;
    let hidden = alias_of(app, "eve").await;
    let mut instants = Vec::new();
    for round in 0..4 {
        let of_round = |number| format!("name-{}", (number * 7 + round * 50) % 400);
        let mut all: Vec<String> = (0..150).map(of_round).collect();
        all.extend([
            "often".to_owned(),
            "often".to_owned(),
            "$property_changed".to_owned(),
        ]);
        insert(app, alias, &all, app.clock.now()).await;
        // A clock that was set back: later numbers are not later receipts.
        let early = Timestamp(app.clock.now().0 - 5_000_000);
        insert(app, alias, &all[..40], early).await;
        insert(app, hidden, &all[..20], app.clock.now()).await;
        instants.push(app.time(0));
        app.advance(2);
    }
    let ada = app.session("ada").await;
    let refused: Vec<Value> = (0..10)
        .map(|number| {
            let mut event = app.event(&ada, &format!("refused-{number}"), &json!({}));
            event["timestamp"] = json!("2020-01-01T00:00:00Z");
            event
        })
        .collect();
    app.ingest(&ada, &refused).await.ok();
    let mut tx = app.services().db.write().await.unwrap();
    // Refused ones of the same instants as others.
    tx.sql(
        "UPDATE rejected_events SET received_at =
            (SELECT min(e.received_at) + (length(rejected_events.name) - 9) FROM events e)",
    )
    .execute()
    .await
    .unwrap();
    tx.sql("UPDATE subjects SET suppressed = TRUE WHERE id IN (SELECT subject_id FROM aliases WHERE number = $1)")
        .bind(hidden)
        .execute()
        .await
        .unwrap();
    assert_eq!(names(&mut tx, app).await, MOST_NAMES + 1);
    tx.commit().await.unwrap();
    instants
}

async fn however_many_names_an_app_has_its_pages_are_whole(app: &mut TestApp) {
    let instants = many_names(app).await;
    let shown: Vec<(String,)> = app
        .rows(
            "SELECT name FROM events WHERE name <> '$property_changed'
             AND alias_number = (SELECT number FROM aliases WHERE value = 'ada') ORDER BY received_at DESC, seq DESC",
        )
        .await;
    let all = listed_with(app, &[]).await;
    let taken: Vec<&Value> = all
        .iter()
        .filter(|item| item["verdict"] == "accepted")
        .collect();
    assert_eq!(taken.len(), shown.len());
    for (item, (name,)) in taken.iter().zip(&shown) {
        assert_eq!(item["name"], json!(name));
    }
    assert_eq!(all.len(), shown.len() + 10);
    let received: Vec<&str> = of(&all, "receivedAt");
    assert!(received.is_sorted_by(|one, next| one >= next));

    let (from, to) = (&*instants[1], &*instants[3]);
    let cases: [(Vec<(&str, &str)>, Wanted<'_>); 6] = [
        (vec![], Box::new(|_| true)),
        (
            vec![("excludeName", "often")],
            Box::new(|item| item["name"] != "often"),
        ),
        (
            vec![("name", "often")],
            Box::new(|item| item["name"] == "often"),
        ),
        (
            vec![("verdict", "accepted")],
            Box::new(|item| item["verdict"] == "accepted"),
        ),
        (
            vec![("verdict", "rejected")],
            Box::new(|item| item["verdict"] == "rejected"),
        ),
        (
            vec![("from", from), ("to", to)],
            Box::new(|item| (from..to).contains(&item["receivedAt"].as_str().unwrap())),
        ),
    ];
    for (query, wanted) in cases {
        let expected: Vec<Value> = all.iter().filter(|item| wanted(item)).cloned().collect();
        assert!(!expected.is_empty(), "{query:?}");
        for limit in ["7", "40", "500"] {
            let pages = paged(app, &query, limit).await;
            assert_eq!(pages.concat(), expected, "{query:?} {limit}");
            let most: usize = limit.parse().unwrap();
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == most));
        }
    }
}

/// All of a list, in the largest pages.
async fn listed_with(app: &TestApp, query: &[(&str, &str)]) -> Vec<Value> {
    paged(app, query, "500").await.concat()
}

async fn a_page_looks_through_so_many_events_and_goes_on(app: &mut TestApp) {
    let alias = alias_of(app, "ada").await;
    let many: Vec<String> = (0..=MOST_NAMES)
        .map(|number| format!("name-{number}"))
        .collect();
    let loud = vec!["loud".to_owned(); MOST_LOOKED_THROUGH * 2 + 100];
    insert(app, alias, &many, app.clock.now()).await;
    app.advance(1);
    insert(app, alias, &loud, app.clock.now()).await;

    let pages = paged(app, &[("excludeName", "loud")], "200").await;
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [0, 0, 200, 57]);
    let found = pages.concat();
    let names = of(&found, "name");
    assert!(names.into_iter().eq(many.iter().rev().map(String::as_str)));
    // What was refused meanwhile has its place among them.
    let ada = app.session("ada").await;
    let mut old = app.event(&ada, "old", &json!({}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    app.ingest(&ada, &[old]).await.ok();
    let pages = paged(app, &[("excludeName", "loud")], "200").await;
    assert_eq!(of(&pages[0], "name"), ["old"]);
    assert_eq!(pages.concat()[1..], found);
}

async fn filters_of_the_feed_that_cannot_be_read_are_refused(app: &mut TestApp) {
    for (name, value) in [
        ("verdict", "maybe"),
        ("limit", "501"),
        ("limit", "0"),
        ("from", "once"),
        ("to", ""),
    ] {
        let refused = feed(app, &[(name, value)]).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [format!("/{name}")]);
    }
}
