//! In-app messages are tried out before anybody gets them: previews and tests.

use serde_json::{Value, json};
use tests::session::{event_id, instruction_ids, text};
use tests::{TestApp, on_both_backends};

use super::results::{recipients, results};
use super::{acknowledge, buys, message, of_event, of_user};
use crate::guests::save_property;

on_both_backends!(
    a_preview_says_what_a_message_would_say_and_where_it_comes_from,
    what_breaks_the_contract_of_a_preview_is_named_by_its_place,
    a_test_is_shown_by_the_next_poll_and_counts_nowhere,
    a_test_is_of_the_variant_that_is_asked_for,
    a_test_that_can_not_be_shown_says_why,
    views_are_counted_once,
);

async fn preview(app: &TestApp, parts: Value) -> Value {
    let mut body = json!({"surface": "in_app", "anonymousId": "ada"});
    let members = body.as_object_mut().unwrap();
    members.extend(parts.as_object().unwrap().clone());
    let path = app.path("/personalization/preview");
    app.post(&path, &app.viewer(), &body).await.ok()
}

async fn test_send(app: &TestApp, campaign: &str, body: Value) -> tests::client::Answer {
    let path = app.path(&format!("/campaigns/{campaign}/test-send"));
    app.post(&path, &app.editor(), &body).await
}

async fn a_preview_says_what_a_message_would_say_and_where_it_comes_from(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({"item": "tea"}));
    let mut body = ada.batch(std::slice::from_ref(&event));
    body["context"]["locale"] = json!("de-AT");
    app.post_batch(&ada, &body).await.ok();
    app.settle().await;
    let localization =
        json!({"defaultLocale": "en", "translations": {"de": {"title": "Danke für {{p.item}}"}}});
    let content = json!({"layout": "modal", "title": "Thanks for {{p.item}}", "localization": localization,
        "buttons": [{"id": "go", "label": "Go", "openAction": {"action": "json", "actionJson": {"what": "{{p.item}}"}}}],
        "personalization": of_event(&[("item", "item", "string")])});

    let found = preview(
        app,
        json!({"content": content, "triggerEventId": event["eventId"]}),
    )
    .await;

    assert_eq!(found["status"], "ready");
    let shown = &found["content"];
    assert_eq!(shown["title"], "Danke für tea");
    assert_eq!(
        shown["buttons"][0]["openAction"]["actionJson"]["what"],
        "tea"
    );
    assert_eq!(
        (&shown["layout"], &shown["theme"]),
        (&json!("modal"), &Value::Null)
    );
    let binding = &found["bindings"][0];
    assert_eq!(
        (
            &binding["id"],
            &binding["value"],
            &binding["source"]["kind"],
            &binding["source"]["eventId"]
        ),
        (
            &json!("item"),
            &json!("tea"),
            &json!("trigger_event"),
            &json!(event_id(&event))
        )
    );
    assert_eq!(found["issues"], json!([]));

    let without = preview(app, json!({"content": content})).await;
    assert_eq!(
        (&without["status"], &without["content"]),
        (&json!("skipped"), &Value::Null)
    );
    assert_eq!(without["issues"][0]["bindingId"], "item");
    let link = json!({"layout": "card", "title": "t", "buttons": [{"id": "go", "label": "Go",
        "openAction": {"action": "deep_link", "url": "{{p.url}}"}}], "personalization": of_user(&[("url", "url", "string")])});
    save_property(app, &ada, "url", json!("javascript:alert(1)")).await;
    let refused = preview(app, json!({"content": link})).await;
    assert_eq!(refused["status"], "error");
    assert_eq!(refused["issues"][0]["code"], "url_not_allowed");
    assert_eq!(app.count("instructions").await, 0);
}

async fn what_breaks_the_contract_of_a_preview_is_named_by_its_place(app: &mut TestApp) {
    app.session("ada").await;
    let path = app.path("/personalization/preview");
    for (surface, content, pointer) in [
        (
            "in_app",
            json!({"layout": "toast", "title": "t"}),
            "/content/layout",
        ),
        (
            "in_app",
            json!({"layout": "modal", "title": "t", "openAction": {"action": "none"}}),
            "/content/openAction",
        ),
        (
            "in_app",
            json!({"layout": "modal", "title": "{{p.name}}"}),
            "/content/title",
        ),
        (
            "push",
            json!({"title": "t", "layout": "modal"}),
            "/content/layout",
        ),
        ("sms", json!({"title": "t"}), "/surface"),
    ] {
        let body = json!({"surface": surface, "anonymousId": "ada", "content": content});
        let answer = app.post(&path, &app.viewer(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
}

async fn a_test_is_shown_by_the_next_poll_and_counts_nowhere(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 3_600)
        .await;
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let variants = json!([{"layout": "modal", "title": "Hello {{p.name}}", "personalization": of_user(&[("name", "name", "string")])}]);
    let campaign = message(
        app,
        json!({"status": "draft", "frequencyCap": cap, "variants": variants, "priority": 3}),
    )
    .await;
    let ada = app.session("ada").await;
    save_property(app, &ada, "name", json!("Ada")).await;

    let tested = test_send(app, &campaign, json!({"anonymousId": "ada"}))
        .await
        .data(202);

    assert_eq!(
        (&tested["status"], &tested["content"]["title"]),
        (&json!("queued"), &json!("Hello Ada"))
    );
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["instructionId"], tested["instructionId"]);
    assert_eq!(
        (&offered[0]["kind"], &offered[0]["priority"]),
        (&json!("in_app"), &json!(3))
    );
    assert_eq!(offered[0]["payload"]["message"], tested["content"]);
    assert!(offered[0].get("trigger").is_none());
    let actions: Vec<(String,)> = app
        .rows("SELECT action FROM audit_log WHERE action = 'campaign.test_sent'")
        .await;
    assert_eq!(actions.len(), 1);
    let id = text(&tested, "instructionId");
    for ack in [
        json!({"instructionId": id, "status": "displayed"}),
        json!({"instructionId": id, "status": "clicked", "actionId": "go"}),
    ] {
        assert_eq!(acknowledge(app, &ada, ack).await["accepted"], 1);
    }
    assert_eq!(app.offered(&ada).await, json!([]));

    let report = results(app, &campaign, "").await;
    assert_eq!(
        (
            &report["totals"]["recipients"],
            &report["totals"]["clicked"]
        ),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&report["perAction"], &report["series"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(recipients(app, &campaign, "").await["items"], json!([]));
    let stats = app.get(&app.path("/stats"), &app.viewer()).await.ok();
    assert_eq!(
        (
            &stats["totals"]["inAppViews"],
            &stats["totals"]["instructions"]
        ),
        (&json!(0), &json!(0))
    );
    // Neither the cap nor the pause is used up.
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    assert_eq!(instruction_ids(&buys(app, &ada, json!({})).await).len(), 1);
    assert_eq!(buys(app, &ada, json!({})).await, json!([]));
}

async fn a_test_is_of_the_variant_that_is_asked_for(app: &mut TestApp) {
    let variants = json!([{"layout": "modal", "title": "a", "weight": 0}, {"layout": "card", "title": "b", "weight": 0}]);
    let campaign = message(
        app,
        json!({"status": "draft", "variants": variants, "expiresAfterSeconds": 60}),
    )
    .await;
    let made = app.campaign_of(&campaign).await;
    let ada = app.session("ada").await;
    let first = test_send(app, &campaign, json!({"anonymousId": "ada"}))
        .await
        .data(202);
    assert_eq!(first["content"]["title"], "a");
    let asked = json!({"anonymousId": "ada", "variantId": made["variants"][1]["id"]});
    let second = test_send(app, &campaign, asked).await.data(202);
    assert_eq!(second["content"]["title"], "b");
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 2);
    app.restart().await;
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 2);
    app.advance(61);
    let ada = app.session("ada").await;
    assert_eq!(app.offered(&ada).await, json!([]));
}

async fn a_test_that_can_not_be_shown_says_why(app: &mut TestApp) {
    let variants = json!([{"layout": "modal", "title": "Hello {{p.name}}", "personalization": of_user(&[("name", "name", "string")])}]);
    let campaign = message(app, json!({"variants": variants})).await;
    let ada = app.session("ada").await;
    let to_ada = json!({"anonymousId": "ada"});
    let skipped = test_send(app, &campaign, to_ada.clone()).await.data(202);
    assert_eq!(
        (&skipped["status"], &skipped["reason"], &skipped["content"]),
        (&json!("skipped"), &json!("missing_data"), &Value::Null)
    );
    assert!(skipped.get("instructionId").is_none());
    save_property(app, &ada, "name", json!("Ada")).await;
    let consent = json!({"anonymousId": "ada", "messaging": false});
    app.post("/v1/sdk/consent", &ada.credential(), &consent)
        .await
        .ok();
    let skipped = test_send(app, &campaign, to_ada).await.data(202);
    assert_eq!(
        (&skipped["reason"], &skipped["content"]["title"]),
        (&json!("consent_missing"), &json!("Hello Ada"))
    );
    assert_eq!(app.count("instructions").await, 0);
    for (body, status, code) in [
        (
            json!({"anonymousId": "ada", "data": {}}),
            422,
            "data_not_allowed",
        ),
        (json!({"anonymousId": "nobody"}), 404, "subject_not_found"),
        (
            json!({"anonymousId": "ada", "variantId": app.id()}),
            422,
            "validation_failed",
        ),
    ] {
        test_send(app, &campaign, body).await.refused(status, code);
    }
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    test_send(app, &survey.to_string(), json!({"anonymousId": "ada"}))
        .await
        .refused(404, "not_found");
}

async fn views_are_counted_once(app: &mut TestApp) {
    message(app, json!({})).await;
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    let views = async |app: &TestApp| {
        let stats = app.get(&app.path("/stats"), &app.viewer()).await.ok();
        stats["totals"]["inAppViews"].clone()
    };
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let id = instruction_ids(&buys(app, &ada, json!({})).await).remove(0);
    for (status, expected) in [
        ("received", 0),
        ("displayed", 1),
        ("displayed", 1),
        ("clicked", 1),
        ("completed", 1),
    ] {
        app.acknowledge(&ada, &id, status).await;
        assert_eq!(views(app).await, json!(expected), "{status}");
    }
    let id = instruction_ids(&buys(app, &bob, json!({})).await).remove(0);
    app.acknowledge(&bob, &id, "dismissed").await;
    assert_eq!(views(app).await, json!(2));
    // A survey that is seen is no message.
    let event = app.event(&bob, "visit", &json!({}));
    let data = app.ingest_and_ask(&bob, &[event]).await;
    let id = instruction_ids(&data["instructions"]).remove(0);
    app.acknowledge(&bob, &id, "displayed").await;
    assert_eq!(views(app).await, json!(2));
    app.restart().await;
    assert_eq!(views(app).await, json!(2));
}
