//! Collection from existing SDKs over HTTP (contract 24). Their keys are in `collection_keys`, real clients in `collection_clients`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};

use crate::person::execute;

on_both_backends!(
    each_kind_of_message_is_taken_in_full_and_in_short,
    a_batch_is_called_import_too,
    what_a_batch_says_is_taken_in_order,
    a_time_that_was_put_right_is_not_shifted_again,
    a_server_says_whose_an_anonymous_id_is,
    what_is_sent_again_changes_nothing,
    equal_messages_that_say_no_time_are_several,
    of_one_id_the_first_message_alone_counts,
    one_message_spoils_no_other,
    a_client_that_never_gives_up_hears_of_success,
    definitions_consent_and_deletions_hold_for_messages,
    a_request_without_messages_is_refused,
    a_batch_has_more_messages_than_a_request_of_ingest_events,
    refusals_have_a_message,
    messages_that_cannot_be_committed_are_503_whatever_the_reason,
);

pub(crate) fn basic(key: &str) -> Credential {
    let encoded = STANDARD.encode(format!("{key}:"));
    Credential::none().and("authorization", &format!("Basic {encoded}"))
}

pub(crate) async fn say(app: &TestApp, kind: &str, message: &Value) -> Answer {
    let path = format!("/v1/compat/v1/{kind}");
    app.post(&path, &basic(&app.access.server_key), message)
        .await
}

pub(crate) async fn publicly(app: &TestApp, kind: &str, message: &Value) -> Answer {
    let path = format!("/v1/compat/v1/{kind}");
    app.post(&path, &basic(&app.access.write_key), message)
        .await
}

#[track_caller]
pub(crate) fn taken(answer: &Answer) {
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"success": true}))
    );
}

/// The errors of a refusal: pointers and codes.
#[track_caller]
pub(crate) fn errors(answer: &Answer) -> Vec<(String, String)> {
    let problem = answer.refused(400, "messages_rejected");
    let errors = problem["errors"].as_array().unwrap().iter();
    errors
        .map(|error| (text(error, "pointer"), text(error, "code")))
        .collect()
}

/// All events, the oldest first.
pub(crate) async fn events(app: &TestApp) -> Vec<Value> {
    let path = app.path("/events?limit=500&verdict=accepted");
    let data = app.get(&path, &app.viewer()).await.ok();
    let mut items = data["items"].as_array().unwrap().clone();
    items.reverse();
    items
}

pub(crate) fn names(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| text(event, "name")).collect()
}

/// A person's profile and properties.
pub(crate) async fn person(app: &TestApp, name: &str) -> (Value, Value) {
    let data = app
        .get(&app.path(&format!("/users/{name}")), &app.viewer())
        .await
        .ok();
    let properties = data["properties"].as_array().unwrap().iter();
    let properties = properties.map(|one| (text(one, "key"), one["value"].clone()));
    (data["profile"].clone(), Value::Object(properties.collect()))
}

async fn each_kind_of_message_is_taken_in_full_and_in_short(app: &mut TestApp) {
    for (full, short) in [
        ("track", "t"),
        ("identify", "i"),
        ("page", "p"),
        ("screen", "s"),
        ("alias", "a"),
        ("group", "g"),
    ] {
        for kind in [full, short] {
            let message = json!({
                "userId": "ada", "messageId": format!("{kind}-1"), "timestamp": app.time(0),
                "event": "Order Completed", "name": "Home", "previousId": "before", "groupId": "acme",
                "properties": {"n": 1}, "traits": {"plan": kind}, "integrations": {"All": true},
                "context": {"app": {"version": "7"}, "os": {"name": "iOS"}, "locale": "de-AT", "library": {"name": "x"}},
            });
            taken(&say(app, kind, &message).await);
        }
    }
    let batch = json!({"batch": [{"type": "track", "event": "x", "userId": "ada"}]});
    taken(&say(app, "batch", &batch).await);
    taken(&say(app, "b", &batch).await);
    say(app, "x", &batch).await.refused(404, "not_found");

    let all = events(app).await;
    let expected = [
        "order_completed",
        "order_completed",
        "page_viewed",
        "page_viewed",
        "screen_viewed",
        "screen_viewed",
        "alias",
        "alias",
        "group",
        "group",
        "x",
        "x",
    ];
    assert_eq!(names(&all), expected);
    assert_eq!(
        all[0]["properties"],
        json!({"n": 1, "$original_name": "Order Completed"})
    );
    assert_eq!(all[2]["properties"], json!({"n": 1, "name": "Home"}));
    assert_eq!(
        all[6]["properties"],
        json!({"n": 1, "previousId": "before"})
    );
    assert_eq!(
        all[8]["properties"],
        json!({"plan": "group", "groupId": "acme"})
    );
    for member in ["platform", "appVersion", "externalId", "source"] {
        let expected = [
            ("platform", "ios"),
            ("appVersion", "7"),
            ("externalId", "ada"),
            ("source", "server"),
        ];
        let (_, expected) = expected
            .into_iter()
            .find(|(name, _)| *name == member)
            .unwrap();
        assert_eq!(all[0][member], expected);
    }
    let (profile, properties) = person(app, "ada").await;
    assert_eq!(profile["identified"], true);
    assert_eq!(properties, json!({"plan": "i"}));
}

/// By Segment's clients for .NET, Java, Android and Ruby; that for Java ends the path with a slash.
async fn a_batch_is_called_import_too(app: &mut TestApp) {
    let batch = json!({"batch": [{"type": "track", "event": "x", "userId": "ada"}]});
    for kind in ["import", "import/", "batch/", "b/"] {
        taken(&say(app, kind, &batch).await);
    }
    let message = json!({"event": "y", "userId": "ada"});
    taken(&say(app, "track/", &message).await);
    assert_eq!(names(&events(app).await), ["x", "x", "x", "x", "y"]);
    say(app, "sing/", &message).await.refused(404, "not_found");
    // It is no message of a batch.
    let inner = json!({"batch": [{"type": "import", "userId": "ada"}]});
    let refused = say(app, "import", &inner).await;
    assert_eq!(
        errors(&refused),
        [("/batch/0/type".to_owned(), "invalid".to_owned())]
    );
}

async fn what_a_batch_says_is_taken_in_order(app: &mut TestApp) {
    // What somebody is decides what their events do.
    let audience = json!({"include": {"all": [{"kind": "user_property",
        "filter": {"property": "plan", "type": "string", "operator": "equals", "value": "pro"}}]}});
    let trigger = json!({"kind": "event", "eventName": "asked"});
    let survey = app
        .survey_with(&json!({"trigger": trigger, "audience": audience}))
        .await;
    let track = |user: &str| json!({"type": "track", "event": "asked", "userId": user});
    let plan = |user: &str, plan: &str| json!({"type": "identify", "userId": user, "traits": {"plan": plan}});
    let batch = json!({"batch": [
        track("late"), plan("early", "pro"), track("early"), plan("late", "pro"), plan("never", "pro"), plan("never", "free"), track("never"),
    ], "sentAt": app.time(0), "context": {"locale": "fr"}});
    taken(&say(app, "batch", &batch).await);
    app.settle().await;

    let path = app.path(&format!("/surveys/{survey}/recipients"));
    let data = app.get(&path, &app.viewer()).await.ok();
    let recipients = data["items"].as_array().unwrap().iter();
    let recipients: Vec<String> = recipients.map(|one| text(one, "externalId")).collect();
    assert!(recipients.contains(&"early".to_owned()), "{recipients:?}");
    assert!(!recipients.contains(&"never".to_owned()), "{recipients:?}");
    assert_eq!(person(app, "never").await.1, json!({"plan": "free"}));
    assert_eq!(person(app, "early").await.0["locale"], "fr");
}

/// The client's clock is an hour slow, and whoever sends its message on has made up for that.
async fn a_time_that_was_put_right_is_not_shifted_again(app: &mut TestApp) {
    let (at, sent_at) = (app.time(-3_610), app.time(-3_600));
    let earliest = app.time(-10);
    for (event, time) in [
        ("none", None),
        ("put right", Some(app.time(-10))),
        ("as it was", Some(at.clone())),
    ] {
        let message = json!({
            "event": event, "userId": "ada", "timestamp": time, "originalTimestamp": at, "sentAt": sent_at,
        });
        taken(&say(app, "track", &message).await);
    }
    let all = events(app).await;
    assert_eq!(all.len(), 3);
    for event in all {
        // Texts of this form sort as the times do.
        let happened = text(&event, "timestamp");
        assert!(
            (earliest.clone()..=app.time(-10)).contains(&happened),
            "{happened}"
        );
    }
}

async fn a_server_says_whose_an_anonymous_id_is(app: &mut TestApp) {
    let batch = json!({"batch": [
        {"type": "track", "event": "before", "anonymousId": "device"},
        {"type": "identify", "anonymousId": "device", "userId": "ada", "traits": {"plan": "pro"}},
        {"type": "track", "event": "after", "userId": "ada"},
    ]});
    taken(&say(app, "batch", &batch).await);

    let all = events(app).await;
    assert_eq!(names(&all), ["before", "after"]);
    assert_eq!(all[0]["subjectId"], all[1]["subjectId"]);
    let (profile, properties) = person(app, "device").await;
    assert_eq!(
        (&profile["externalId"], &profile["anonymousIds"]),
        (&json!("ada"), &json!(["device"]))
    );
    assert_eq!(properties, json!({"plan": "pro"}));

    // Whose it is, it stays.
    let other = json!({"anonymousId": "device", "userId": "bob", "traits": {"plan": "free"}});
    taken(&say(app, "identify", &other).await);
    assert_eq!(person(app, "device").await.0["externalId"], "ada");
    assert_eq!(person(app, "bob").await.1, json!({"plan": "free"}));
}

async fn what_is_sent_again_changes_nothing(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let at = app.time(-5);
    let batch = json!({"sentAt": app.time(0), "batch": [
        {"type": "track", "event": "a", "userId": "ada", "timestamp": at, "properties": {"x": 1, "y": 2}},
        {"type": "track", "event": "b", "userId": "ada", "messageId": "not-a-uuid"},
        {"type": "track", "event": "c", "userId": "ada", "messageId": app.id()},
        {"type": "identify", "userId": "ada", "timestamp": app.time(-4), "traits": {"plan": "free"}},
        {"type": "identify", "userId": "ada", "messageId": "m-2", "traits": {"plan": "pro"}},
        // Twice in one request is once.
        {"type": "track", "event": "a", "userId": "ada", "timestamp": at, "properties": {"y": 2, "x": 1}},
    ]});
    taken(&say(app, "batch", &batch).await);
    app.advance(1);
    // Later, by its own clock too.
    let mut again = batch.clone();
    again["sentAt"] = json!(app.time(0));
    taken(&say(app, "batch", &again).await);

    assert_eq!(names(&events(app).await), ["a", "b", "c"]);
    assert_eq!(person(app, "ada").await.1, json!({"plan": "pro"}));
    app.settle().await;
    let changes: Vec<(i64,)> = app
        .rows("SELECT count(*) FROM events WHERE name = '$property_changed'")
        .await;
    assert_eq!(changes, [(2,)]);
    let other = json!({"userId": "ada", "messageId": "m-2", "traits": {"plan": "max"}});
    let refused = say(app, "identify", &other).await;
    assert_eq!(
        errors(&refused),
        [(String::new(), "mutation_conflict".to_owned())]
    );
}

/// What follows from the time of arrival is the same for all of a request, and another each time that it is sent.
async fn equal_messages_that_say_no_time_are_several(app: &mut TestApp) {
    let untimed = json!({"type": "track", "event": "x", "userId": "ada", "properties": {"n": 1}});
    let batch = json!({"batch": [untimed, untimed, untimed]});
    taken(&say(app, "batch", &batch).await);
    assert_eq!(names(&events(app).await), ["x", "x", "x"]);
    let mut timed = untimed.clone();
    timed["timestamp"] = json!(app.time(-5));
    for _ in 0..2 {
        taken(&say(app, "batch", &json!({"batch": [timed, timed]})).await);
    }
    assert_eq!(events(app).await.len(), 4);
    // What is too long to be a time is none, and is not kept for each message.
    let batch = json!({"sentAt": "2026".repeat(1_000), "batch": [untimed]});
    taken(&say(app, "batch", &batch).await);
    assert_eq!(events(app).await.len(), 5);
}

async fn of_one_id_the_first_message_alone_counts(app: &mut TestApp) {
    let message = json!({"type": "track", "event": "x", "userId": "ada", "messageId": "m-1"});
    let mut old = message.clone();
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let refused = say(app, "batch", &json!({"batch": [old, message]})).await;
    let expected = [
        ("/batch/0", "timestamp_out_of_window"),
        ("/batch/1", "duplicate_event_id_in_batch"),
    ];
    let expected = expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned()));
    assert_eq!(errors(&refused), expected);
    assert_eq!(app.stored("x").await, 0);
    taken(&say(app, "batch", &json!({"batch": [message, message]})).await);
    assert_eq!(app.stored("x").await, 1);
}

async fn one_message_spoils_no_other(app: &mut TestApp) {
    let batch = json!({"batch": [
        {"type": "track", "event": "first", "userId": "ada"},
        {"type": "identify", "userId": "ada", "traits": {"bio": "x".repeat(900_000), "plan": "pro"}},
        {"type": "track", "event": "large", "userId": "ada", "properties": {"text": "x".repeat(70_000)}},
        {"type": "track", "userId": "ada"},
        {"type": "track", "event": "old", "userId": "ada", "timestamp": "2020-01-01T00:00:00Z"},
        {"type": "track", "event": "odd", "userId": "ada", "properties": [1]},
        {"type": "sing", "userId": "ada"},
        {"type": "track", "event": "nobody's"},
        7,
        {"type": "identify", "userId": "bob", "traits": {"plan": "free"}},
        {"type": "identify", "userId": "ada", "traits": {"bio": "x".repeat(9_000), "plan": "pro"}},
        {"type": "track", "event": "last", "userId": "ada"},
    ]});
    let refused = say(app, "batch", &batch).await;
    let expected = [
        ("/batch/1", "event_too_large"),
        ("/batch/2", "event_too_large"),
        ("/batch/3", "invalid_name"),
        ("/batch/4", "timestamp_out_of_window"),
        ("/batch/5", "invalid_properties"),
        ("/batch/6/type", "invalid"),
        ("/batch/7/userId", "required"),
        ("/batch/8", "invalid"),
        ("/batch/10/traits/bio", "limit_exceeded"),
    ];
    assert_eq!(
        errors(&refused),
        expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned()))
    );
    assert_eq!(names(&events(app).await), ["first", "last"]);
    assert_eq!(person(app, "bob").await.1, json!({"plan": "free"}));
    assert_eq!(person(app, "ada").await.1, json!({}));
    // What was refused is in the feed.
    let path = app.path("/events?verdict=rejected");
    let data = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(data["items"].as_array().unwrap().len(), 4);
}

/// `RudderStack`'s first clients for Android and iOS send what is answered 400 again every second, and nothing else.
async fn a_client_that_never_gives_up_hears_of_success(app: &mut TestApp) {
    let batch = |library: &str| {
        let context = json!({"library": {"name": library, "version": "1.20.0"}});
        json!({"sentAt": app.time(0), "batch": [
            {"type": "track", "event": "old", "userId": "ada", "timestamp": "2020-01-01T00:00:00Z", "context": context},
            {"type": "track", "event": "new", "userId": "ada", "messageId": format!("{library}-1"), "context": context},
        ]})
    };
    let libraries = ["com.rudderstack.android.sdk.core", "rudder-ios-library"];
    for library in libraries {
        taken(&say(app, "batch", &batch(library)).await);
    }
    assert_eq!(names(&events(app).await), ["new", "new"]);
    let path = app.path("/events?verdict=rejected");
    let data = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(data["items"].as_array().unwrap().len(), 2);

    // Others are told, and a bad key is one for all.
    let refused = say(app, "batch", &batch("analytics-node")).await;
    assert_eq!(errors(&refused)[0].1, "timestamp_out_of_window");
    let path = "/v1/compat/v1/batch";
    app.post(path, &basic("wk_nobody"), &batch("rudder-ios-library"))
        .await
        .refused(401, "invalid_credentials");
}

async fn definitions_consent_and_deletions_hold_for_messages(app: &mut TestApp) {
    let price = json!({"properties": [{"name": "price", "type": "number", "required": true}]});
    app.define("bought", &price).await;
    let refused = say(
        app,
        "track",
        &json!({"event": "Bought", "userId": "ada", "properties": {}}),
    )
    .await;
    assert_eq!(
        errors(&refused),
        [(String::new(), "schema_violation".to_owned())]
    );
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"].as_array().unwrap().len(), 1);
    taken(
        &say(
            app,
            "track",
            &json!({"event": "Bought", "userId": "ada", "properties": {"price": 1}}),
        )
        .await,
    );

    let eve = app.session("eve").await;
    let consent = json!({"anonymousId": "eve", "analytics": false});
    app.post("/v1/sdk/consent", &eve.credential(), &consent)
        .await
        .ok();
    for kind in ["track", "identify"] {
        let message = json!({"event": "x", "anonymousId": "eve", "traits": {"plan": "pro"}});
        let refused = publicly(app, kind, &message).await;
        assert_eq!(
            errors(&refused),
            [(String::new(), "consent_missing".to_owned())]
        );
    }

    let delete = json!({"externalId": "ada"});
    app.post(&app.path("/gdpr/delete"), &app.admin(), &delete)
        .await
        .data(202);
    for kind in ["track", "identify"] {
        let message = json!({"event": "x", "userId": "ada", "timestamp": app.time(-60), "traits": {"plan": "pro"}});
        let refused = say(app, kind, &message).await;
        assert_eq!(
            errors(&refused),
            [(String::new(), "suppressed_subject".to_owned())]
        );
    }
}

async fn a_request_without_messages_is_refused(app: &mut TestApp) {
    let many = vec![json!({"type": "track", "event": "x", "userId": "ada"}); 8_193];
    for (batch, pointer) in [
        (json!({}), "/batch"),
        (json!({"batch": []}), "/batch"),
        (json!({"batch": many}), "/batch"),
        (json!({"batch": 7}), "/batch"),
        (json!([]), ""),
    ] {
        let refused = say(app, "batch", &batch).await;
        assert_eq!(errors(&refused)[0].0, pointer, "{batch}");
    }
    let refused = say(app, "track", &json!([])).await;
    assert_eq!(errors(&refused), [(String::new(), "invalid".to_owned())]);
    let credential = basic(&app.access.server_key);
    app.post_raw("/v1/compat/v1/track", &credential, "{")
        .await
        .refused(400, "malformed_json");
    // A body has the room that it has everywhere, whatever a client says twice.
    let bio = "x".repeat(600_000);
    let twice = json!({"type": "identify", "userId": "ada", "traits": {"bio": bio}, "context": {"traits": {"bio": bio}}});
    say(app, "batch", &json!({"batch": [twice]}))
        .await
        .refused(413, "payload_too_large");
}

/// Clients fill a batch by its bytes.
async fn a_batch_has_more_messages_than_a_request_of_ingest_events(app: &mut TestApp) {
    let message = |number: usize| json!({"type": "track", "event": "x", "userId": "ada", "messageId": format!("m-{number}")});
    let messages: Vec<Value> = (0..1_200).map(message).collect();
    let batch = json!({ "batch": messages });
    for _ in 0..2 {
        taken(&say(app, "batch", &batch).await);
        assert_eq!(app.stored("x").await, 1_200);
    }
}

/// Clients in Python take a body without one for no answer, and try again for minutes.
async fn refusals_have_a_message(app: &mut TestApp) {
    let path = "/v1/compat/v1/track";
    let message = json!({"event": "x", "userId": "ada"});
    let large =
        json!({"event": "x", "userId": "ada", "properties": {"text": "x".repeat(1_100_000)}});
    let scopeless = app.key(Kind::Server, &[]).await;
    for (status, answer) in [
        (400, say(app, "track", &json!({"event": "x"})).await),
        (400, say(app, "batch", &json!({})).await),
        (401, app.post(path, &basic("wk_nobody"), &message).await),
        (403, app.post(path, &basic(&scopeless), &message).await),
        (404, say(app, "sing", &message).await),
        (413, say(app, "track", &large).await),
    ] {
        let problem = answer.problem();
        assert_eq!(answer.status, status, "{problem}");
        assert_eq!(problem["message"], problem["detail"]);
    }
    // The other routes' clients have theirs in `detail`.
    let refused = app.post("/v1/sdk/ingest", &app.backend(), &json!({})).await;
    assert_eq!(refused.problem().get("message"), None);
}

/// A table that is gone is no outage of the database, and yet a reason to send messages again.
async fn messages_that_cannot_be_committed_are_503_whatever_the_reason(app: &mut TestApp) {
    let message = json!({"event": "opened", "userId": "ada", "messageId": "m-1"});
    execute(app, "ALTER TABLE pending RENAME TO away", &[]).await;
    let refused = say(app, "track", &message).await;
    refused.refused(503, "unavailable");
    assert!(!refused.header("retry-after").is_empty());
    execute(app, "ALTER TABLE away RENAME TO pending", &[]).await;
    app.until("the event is taken", async || {
        say(app, "track", &message).await.status == 200
    })
    .await;
    app.settle().await;
    assert_eq!(app.stored("opened").await, 1);
}
