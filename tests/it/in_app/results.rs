//! What became of in-app messages, and of push campaigns in the same form.

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{TestApp, on_both_backends};

use super::{acknowledge, buys, message};

on_both_backends!(
    results_are_in_all_by_variant_by_button_and_by_day,
    recipients_are_whoever_was_to_get_it,
    results_of_push_campaigns_have_the_same_form,
    a_push_message_is_opened_since_it_was_opened,
    nothing_is_shown_before_it_is_there,
);

pub(super) async fn results(app: &TestApp, campaign: &str, query: &str) -> Value {
    let path = app.path(&format!("/campaigns/{campaign}/analytics{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

pub(super) async fn recipients(app: &TestApp, campaign: &str, query: &str) -> Value {
    let path = app.path(&format!("/campaigns/{campaign}/recipients{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

/// The states of a page of recipients, newest first.
fn states(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|it| text(it, "state")).collect()
}

async fn results_are_in_all_by_variant_by_button_and_by_day(app: &mut TestApp) {
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let campaign = message(app, json!({"frequencyCap": cap})).await;
    let nothing = results(app, &campaign, "").await;
    assert_eq!(
        nothing["totals"],
        json!({"recipients": 0, "displayed": 0, "clicked": 0, "dismissed": 0, "completed": 0, "suppressed": 0})
    );
    assert_eq!(
        (&nothing["perVariant"], &nothing["series"]),
        (&json!([]), &json!([]))
    );
    for (name, acks) in [
        (
            "ada",
            vec![("displayed", ""), ("clicked", "go"), ("dismissed", "")],
        ),
        // What was pressed may be said later.
        ("bob", vec![("clicked", ""), ("clicked", "go")]),
        ("carl", vec![("clicked", "no")]),
        ("dora", vec![("displayed", ""), ("dismissed", "")]),
        ("emil", vec![("received", "")]),
    ] {
        let session = app.session(name).await;
        let id = instruction_ids(&buys(app, &session, json!({})).await).remove(0);
        for (status, action) in acks {
            let action = (!action.is_empty()).then_some(action);
            let ack = json!({"instructionId": id, "status": status, "actionId": action});
            acknowledge(app, &session, ack).await;
        }
        if name == "ada" {
            assert_eq!(buys(app, &session, json!({})).await, json!([]));
        }
    }
    app.settle().await;
    let all = json!({"recipients": 5, "displayed": 4, "clicked": 3, "dismissed": 1, "completed": 0, "suppressed": 1});
    let report = results(app, &campaign, "").await;
    assert_eq!(report["totals"], all);
    assert_eq!(report["perVariant"].as_array().unwrap().len(), 1);
    assert_eq!(report["perVariant"][0]["clicked"], 3);
    assert_eq!(
        report["perAction"],
        json!([{"actionId": "go", "clicked": 2}, {"actionId": "no", "clicked": 1}])
    );
    assert_eq!(report["series"].as_array().unwrap().len(), 1);
    assert!(text(&report["series"][0], "at").ends_with("T00:00:00.000Z"));
    // The next day is a day of its own, and a range leaves days out.
    let today = text(&report["series"][0], "at")[..10].to_owned();
    app.advance(86_400);
    let fred = app.session("fred").await;
    buys(app, &fred, json!({})).await;
    let report = results(app, &campaign, "").await;
    assert_eq!(report["series"].as_array().unwrap().len(), 2);
    assert_eq!(report["totals"]["recipients"], 6);
    let report = results(app, &campaign, &format!("?to={today}")).await;
    assert_eq!(report["totals"], all);
    let path = app.path(&format!("/campaigns/{campaign}/analytics?from=soon"));
    app.get(&path, &app.viewer())
        .await
        .refused(422, "validation_failed");
}

async fn recipients_are_whoever_was_to_get_it(app: &mut TestApp) {
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let campaign = message(app, json!({"frequencyCap": cap})).await;
    for (name, status) in [
        ("ada", None),
        ("bob", Some("displayed")),
        ("carl", Some("clicked")),
        ("dora", Some("dismissed")),
        ("emil", Some("completed")),
    ] {
        let session = app.session(name).await;
        let id = instruction_ids(&buys(app, &session, json!({})).await).remove(0);
        if let Some(status) = status {
            app.acknowledge(&session, &id, status).await;
        }
        app.advance(1);
    }
    let emil = app.session("emil").await;
    buys(app, &emil, json!({})).await;
    app.settle().await;
    let page = recipients(app, &campaign, "").await;
    let mut found = states(&page);
    found.sort();
    assert_eq!(
        found,
        [
            "clicked",
            "completed",
            "dismissed",
            "displayed",
            "issued",
            "suppressed"
        ]
    );
    let held = recipients(app, &campaign, "?state=suppressed").await;
    assert_eq!(held["items"][0]["suppressedBy"], "frequency_cap");
    assert_eq!(held["items"][0]["anonymousId"], "emil");
    let first = recipients(app, &campaign, "?limit=4").await;
    let cursor = text(&first, "nextCursor");
    let second = recipients(app, &campaign, &format!("?limit=4&cursor={cursor}")).await;
    assert_eq!((states(&first).len(), states(&second).len()), (4, 2));
    app.advance(8 * 86_400);
    assert_eq!(
        states(&recipients(app, &campaign, "?state=expired").await).len(),
        1
    );
}

async fn results_of_push_campaigns_have_the_same_form(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.campaign(&json!({})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.push_token(&ada, "phone", &providers.fcm.token(0)).await;
    for session in [&ada, &bob] {
        let event = app.event(session, "purchase", &json!({}));
        app.ingest(session, &[event]).await.ok();
    }
    let sent = app.delivered_to(&ada, "delivered", 1).await.remove(0);
    app.delivered_to(&bob, "skipped", 1).await;
    app.receipt(&ada, &text(&sent, "deliveryId"), "clicked")
        .await;
    let report = results(app, &campaign, "").await;
    for (name, count) in [
        ("recipients", 2),
        ("sent", 1),
        ("delivered", 1),
        ("clicked", 1),
        ("failed", 0),
        ("suppressed", 1),
    ] {
        assert_eq!(report["totals"][name], count, "{name}");
    }
    assert_eq!(report["perVariant"][0]["recipients"], 2);
    assert_eq!(report["perVariant"][0]["suppressed"], 1);
    assert_eq!(report["series"].as_array().unwrap().len(), 1);
    let mut found = states(&recipients(app, &campaign, "").await);
    found.sort();
    assert_eq!(found, ["clicked", "suppressed"]);
    let held = recipients(app, &campaign, "?state=suppressed").await;
    assert_eq!(held["items"][0]["suppressedBy"], "no_active_device");
}

async fn a_push_message_is_opened_since_it_was_opened(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.campaign(&json!({})).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.fcm.token(0)).await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let sent = app.delivered_to(&ada, "delivered", 1).await.remove(0);
    app.advance(3_600);
    let ada = app.session("ada").await;
    for kind in ["opened", "displayed"] {
        app.receipt(&ada, &text(&sent, "deliveryId"), kind).await;
        let delivery = app.delivery(&text(&sent, "deliveryId")).await;
        let transitions = delivery["transitions"].as_array().unwrap().iter();
        let mut opened = transitions.filter(|one| one["status"] == "opened");
        let page = recipients(app, &campaign, "").await;
        assert_eq!(states(&page), ["displayed"]);
        assert_eq!(page["items"][0]["at"], opened.next().unwrap()["at"]);
        app.advance(60);
    }
}

async fn nothing_is_shown_before_it_is_there(app: &mut TestApp) {
    let campaign = message(app, json!({})).await;
    let ada = app.session("ada").await;
    let shown = buys(app, &ada, json!({})).await.take();
    let id = text(&shown[0], "instructionId");
    let made = recipients(app, &campaign, "").await["items"][0]["at"].take();
    app.advance(60);
    let ack = json!({"instructionId": id, "status": "displayed", "at": "2020-01-01T00:00:00Z"});
    acknowledge(app, &ada, ack).await;
    let page = recipients(app, &campaign, "").await;
    assert_eq!(states(&page), ["displayed"]);
    assert_eq!(page["items"][0]["at"], made);
}
