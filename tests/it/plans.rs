//! How people are found: by indexes, whatever number of them there is (contract 5).

use std::sync::Arc;

use nudge::retention::events;
use nudge_db::{Dialect, Timestamp, Tx};
use nudge_people::feed::{self, EventKey, FeedPosition};
use nudge_people::users::{self, Search, UserPosition, timeline};
use nudge_records::events::{Event, Origin, insert, removed, store};
use serde_json::json;
use tests::postgres::citus;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    people_and_timelines_are_found_by_indexes,
    the_feed_is_found_by_indexes,
    what_is_past_its_retention_is_found_by_indexes,
    the_events_of_a_request_are_found_by_their_numbers,
);

/// So many that no planner would rather read all. Three of four are another app's.
const PEOPLE: u64 = 10_000;
const EVENTS: usize = 12_000;

/// Tables that grow with people and events.
const LARGE: [&str; 15] = [
    "subjects",
    "aliases",
    "events",
    "property_texts",
    "subject_properties",
    "instructions",
    "deliveries",
    "survey_attempts",
    "survey_answers",
    "survey_counts",
    "plugin_states",
    "timers",
    "occasions",
    "run_firings",
    "rejected_events",
];

/// Whether the coordinator of several machines puts the names of events together: it sorts what each of them answers.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
fn is_distributed(app: &TestApp) -> bool {
    let is_distributed = app.services().db.dialect() == Dialect::Postgres && citus().is_some();
    if is_distributed {
        eprintln!("SKIPPED: names of events are put together from several machines");
    }
    is_distributed
}

async fn people_and_timelines_are_found_by_indexes(app: &mut TestApp) {
    let alias = fill(app).await;
    let app_id = app.access.app_id;
    let id = app.id();
    let db = app.services().db.clone();
    let mut tx = db.read().await.unwrap();
    tx.explain();

    for after in [None, Some(id)] {
        users::everybody(&mut tx, app_id, after, 50).await.unwrap();
        check(&mut tx, "the list");
    }
    let text = "person-12";
    let search = Search::new(text);
    for from in [None, Some(UserPosition::Name(text.to_owned(), 7))] {
        users::store::by_name(&mut tx, app_id, &search, named(from), 51)
            .await
            .unwrap();
        check(&mut tx, "the search by name");
    }
    let ids = Search::new(&id.to_string()[..9]);
    users::store::by_id(&mut tx, app_id, &ids, Some(id), 51)
        .await
        .unwrap();
    check(&mut tx, "the search by id");
    // What the count has looked through is not looked through again for the first page.
    let scanned = users::Scan {
        ids: Vec::new(),
        rest: None,
    };
    users::search(&mut tx, app_id, &search, None, 50, Some(scanned))
        .await
        .unwrap();
    let plans = tx.plans();
    let through_values = |line: &&String| line.contains("property_texts");
    assert!(
        plans.len() > 1 && plans.iter().find(through_values).is_none(),
        "{plans:?}"
    );
    users::store::by_value(&mut tx, app_id, &search, Some(id), 51)
        .await
        .unwrap();
    check_scans(&tx.plans(), "the search by value");
    for search in [None, Some(&search)] {
        // Counting finds no row, as nothing does here.
        users::total(&mut tx, app_id, search).await.unwrap_err();
        check(&mut tx, "the total");
    }
    let at = Some(app.clock.now());
    for name in [None, Some("opened".to_owned())] {
        for (from, to) in [(None, None), (at, at)] {
            let name = name.clone();
            let filter = timeline::Filter { name, from, to };
            timeline::page(&mut tx, app_id, &[alias], &filter, None, 51)
                .await
                .unwrap();
            check(&mut tx, "the timeline");
            let last: timeline::TimelinePosition =
                serde_json::from_value(json!({"timestamp": 1, "event_id": id, "alias": alias}))
                    .unwrap();
            timeline::page(&mut tx, app_id, &[alias], &filter, Some(last), 51)
                .await
                .unwrap();
            check(&mut tx, "the rest of the timeline");
        }
    }
}

async fn the_feed_is_found_by_indexes(app: &mut TestApp) {
    if is_distributed(app) {
        return;
    }
    fill(app).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(
        "INSERT INTO rejected_events (id, app_id, alias_number, received_at, source, errors)
         SELECT event_id, app_id, alias_number, received_at, source, '[]' FROM events",
    )
    .execute()
    .await
    .unwrap();
    tx.sql("ANALYZE").execute().await.unwrap();
    tx.commit().await.unwrap();
    let db = app.services().db.clone();
    let mut tx = db.read().await.unwrap();
    tx.explain();

    feed::store::names(&mut tx, app_id, Some(now), 10)
        .await
        .unwrap();
    check(&mut tx, "the names");
    let keys = [EventKey::Accepted(7), EventKey::Rejected(app.id())];
    let positions = keys.map(|event| Some(FeedPosition { at: now, event }));
    let positions_up_to = positions[0];
    for after in [None].into_iter().chain(positions) {
        for from in [None, Some(now)] {
            let filter = feed::Filter::default();
            feed::store::named(&mut tx, app_id, "opened", &filter, (after, from), 51)
                .await
                .unwrap();
            check(&mut tx, "the events of a name");
            feed::store::events_behind(&mut tx, app_id, &filter, after, 5_000)
                .await
                .unwrap();
            check(&mut tx, "how far a page by receipt looks");
            for up_to in [None, positions_up_to] {
                feed::store::by_receipt(&mut tx, app_id, &filter, (after, up_to), 51)
                    .await
                    .unwrap();
                let plan = tx.plans();
                let is_by_receipt = |line: &String| line.contains("events_by_receipt");
                assert!(plan.iter().any(is_by_receipt), "{plan:#?}");
                check_plan(&plan, tx.dialect(), "the events by receipt");
            }
            feed::store::rejected(&mut tx, app_id, &filter, (after, from), 51)
                .await
                .unwrap();
            check(&mut tx, "refused events");
        }
    }
}

/// Nothing is old: then a look a name is all that is done. Where something is, the rows that go are all that is read.
async fn what_is_past_its_retention_is_found_by_indexes(app: &mut TestApp) {
    if is_distributed(app) {
        return;
    }
    fill(app).await;
    let app_id = app.access.app_id;
    let db = app.services().db.clone();
    let mut tx = db.write().await.unwrap();
    tx.sql(
        "INSERT INTO timers (id, app_id, campaign_id, subject_id, key, due_at, payload, event_seq)
         SELECT id, app_id, app_id, id, 'key', 9000000000000000, $1, version FROM subjects",
    )
    .bind(vec![7_u8])
    .execute()
    .await
    .unwrap();
    for text in [
        "INSERT INTO occasions (id, app_id, campaign_id, subject_id, alias_number, key, due_at, event_seq)
         SELECT id, app_id, app_id, id, 1, 'key', 9000000000000000, version FROM subjects",
        "INSERT INTO deliveries (id, app_id, campaign_id, campaign_version, variant_id, subject_id, test, recipients, status,
                                 attempts, lane, created_at)
         SELECT id, app_id, app_id, 1, id, id, FALSE, 1, 'sent', 1, 1, 1 FROM subjects",
        "INSERT INTO dead_letters (id, app_id, alias_number, event_id, event_name, stage, reason, violations, event, timestamp,
                                   received_at, attempts, state)
         SELECT subject_id, app_id, number, subject_id, 'a', 'trigger', 'trap', '[]', '{}', 1, 1, 0, 'open' FROM aliases",
        "ANALYZE",
    ] {
        tx.sql(text).execute().await.unwrap();
    }
    let (mut after, mut looks) = (None, 0);
    while let Some(row) = events::next_name(&mut tx, app_id, after.as_deref())
        .await
        .unwrap()
    {
        assert!(row.received_at <= app.clock.now());
        (after, looks) = (Some(row.name), looks + 1);
    }
    let names: i64 = tx
        .sql("SELECT count(DISTINCT name) FROM events")
        .fetch_scalar()
        .await
        .unwrap();
    assert_eq!(looks, names);

    tx.explain();
    for after in [None, Some("opened")] {
        events::next_name(&mut tx, app_id, after).await.unwrap();
        check(&mut tx, "the next name");
    }
    let now = app.clock.now();
    events::oldest(&mut tx, (app_id, "opened"), (now, 7), now)
        .await
        .unwrap();
    check(&mut tx, "the oldest events of a name");
    let row = |seq| events::OldRow {
        seq,
        alias_number: 7,
        event_id: Uuid::from_u128(seq.unsigned_abs().into()),
        timestamp: now,
        received_at: now,
    };
    let old: Vec<events::OldRow> = (0..500).map(row).collect();
    events::with_requests(&mut tx, &old).await.unwrap();
    events::with_work(&mut tx, &old).await.unwrap();
    events::delete(&mut tx, app_id, &old).await.unwrap();
    let ids = || old.iter().map(|event| event.event_id);
    let noted: Vec<_> = ids().map(|id| ((7, id), now)).collect();
    removed::note(&mut tx, app_id, &noted, now).await.unwrap();
    let asked: Vec<_> = ids().map(|id| (7, app_id, id)).collect();
    removed::known(&mut tx, &asked).await.unwrap();
    removed::forget(&mut tx, app_id, now).await.unwrap();
    check_scans(&tx.plans(), "events that go");
    tx.rollback().await.unwrap();
}

/// However many events the alias has.
async fn the_events_of_a_request_are_found_by_their_numbers(app: &mut TestApp) {
    let alias = fill(app).await;
    let db = app.services().db.clone();
    let mut tx = db.read().await.unwrap();
    let last: Vec<(i64,)> = app.rows("SELECT max(seq) / 512 FROM events").await;
    tx.explain();
    let requests: Vec<store::RequestKey> = (1..=last[0].0).map(|id| (alias, id)).collect();
    store::seqs_of(&mut tx, &requests).await.unwrap();
    let numbers = tx.plans();
    check_rows(&numbers, "the numbers of events of requests");
    store::events_of(&mut tx, &requests).await.unwrap();
    store::received_at(&mut tx, requests[0]).await.unwrap();
    let plans = [numbers, tx.plans()].concat();
    check_scans(&plans, "the events of requests");
    for line in &plans {
        let by_alias = ["event_of_alias", "events_by_"];
        let is_by_alias = by_alias.iter().any(|index| line.contains(index));
        assert!(!is_by_alias, "{plans:#?}");
    }
}

/// All rows stand in one statement. Several machines have plans of their own.
#[track_caller]
pub(crate) fn check_rows(plan: &[String], what: &str) {
    let tables = ["CONSTANT ROW", "Function Scan on unnest"];
    let is_table = |line: &&String| tables.iter().any(|table| line.contains(table));
    let count = plan.iter().filter(is_table).count();
    assert!(citus().is_some() || count == 1, "{what}: {plan:#?}");
}

fn named(from: Option<UserPosition>) -> Option<(String, i64)> {
    match from {
        Some(UserPosition::Name(folded, number)) => Some((folded, number)),
        _ => None,
    }
}

/// Neither reads a large table from end to end nor sorts more than events of one instant, or than a limit has left.
#[track_caller]
pub(crate) fn check(tx: &mut Tx, what: &str) {
    check_plan(&tx.plans(), tx.dialect(), what);
}

#[track_caller]
pub(crate) fn check_plan(plan: &[String], dialect: Dialect, what: &str) {
    check_scans(plan, what);
    for (number, line) in plan.iter().enumerate() {
        let sorts = match dialect {
            Dialect::Sqlite => line.contains("TEMP B-TREE") && !line.contains("LAST TERM"),
            Dialect::Postgres => {
                let mut below = plan.iter().skip(number + 1);
                let sorted = below.find(|line| line.contains("->  "));
                line.contains("Sort  (")
                    && !line.contains("Incremental Sort")
                    && !sorted.is_some_and(|line| line.contains("->  Limit  ("))
            }
        };
        assert!(!sorts, "{what}: {plan:#?}");
    }
}

#[track_caller]
pub(crate) fn check_scans(plan: &[String], what: &str) {
    assert!(!plan.is_empty(), "{what}");
    for line in plan {
        for table in LARGE {
            let postgres = line.contains(&format!("Seq Scan on {table}"));
            let sqlite =
                line.starts_with("SCAN") && !line.contains("USING") && line.contains(table);
            assert!(!postgres && !sqlite, "{what}: {plan:#?}");
        }
        // SQLite names tables by their alias in the statement.
        let aliased = [
            "SCAN a", "SCAN b", "SCAN d", "SCAN f", "SCAN i", "SCAN n", "SCAN o", "SCAN s",
            "SCAN t",
        ];
        assert!(!aliased.contains(&line.as_str()), "{what}: {plan:#?}");
    }
}

/// Makes people, texts of properties and the events of one person; answers that person's alias.
pub(crate) async fn fill(app: &TestApp) -> i64 {
    app.people(PEOPLE).await;
    let now = app.clock.now();
    let app_id = app.access.app_id;
    let other = app.id();
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "UPDATE subjects SET app_id = $1 WHERE id IN (SELECT subject_id FROM aliases WHERE number % 4 <> 0)",
        "UPDATE aliases SET app_id = $1 WHERE number % 4 <> 0",
    ] {
        tx.sql(text).bind(other).execute().await.unwrap();
    }
    tx.sql(
        "INSERT INTO property_texts (app_id, subject_id, key, folded)
         SELECT app_id, subject_id, 'company', folded FROM aliases",
    )
    .execute()
    .await
    .unwrap();
    let aliases: Vec<(i64,)> = tx
        .sql("SELECT number FROM aliases WHERE app_id = $1 ORDER BY number LIMIT 20")
        .bind(app_id)
        .fetch_all()
        .await
        .unwrap();
    let origin = Origin::default();
    for batch in 0..EVENTS / 300 {
        let events: Vec<Arc<Event>> = (0..300)
            .map(|number| event(app.id(), now, batch * 300 + number))
            .collect();
        let request = insert::NewRequest {
            app_id,
            alias: aliases[batch % aliases.len()].0,
            node: None,
            received_at: now,
            origin: &origin,
            events: &events,
        };
        insert::insert(&mut tx, &[request], true).await.unwrap();
    }
    // What is inserted past the pipeline is not its work.
    tx.sql("DELETE FROM pending").execute().await.unwrap();
    tx.sql("ANALYZE").execute().await.unwrap();
    tx.commit().await.unwrap();
    aliases[0].0
}

fn event(id: Uuid, now: Timestamp, number: usize) -> Arc<Event> {
    let name = if number.is_multiple_of(3) {
        "opened"
    } else {
        "searched"
    };
    Arc::new(Event {
        id,
        name: name.into(),
        timestamp: Timestamp(now.0 - i64::try_from(number).unwrap()),
        client_timestamp: None,
        properties: "{}".into(),
    })
}
