//! In-app messages are made when they fire, shown as they were made, capped and explained.

use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::session::{event_id, instruction_ids, text};
use tests::{TestApp, on_both_backends};

use super::{acknowledge, buys, message, of_event, of_user};
use crate::guests::{break_personalization, save_property};
use crate::identity::Backend;

on_both_backends!(
    a_message_is_shown_as_the_contract_has_it,
    a_message_is_made_when_it_fires_and_kept,
    the_event_that_fires_fills_in_and_is_the_latest,
    a_message_is_in_the_persons_language,
    a_missing_value_suppresses_and_says_why,
    a_person_always_gets_the_same_variant,
    what_was_pressed_is_noted_once,
    a_message_expires_as_it_says,
    caps_pauses_and_quiet_hours_hold,
    the_apps_pause_is_between_surveys_and_messages_too,
    a_message_that_a_plugin_fails_on_is_made_once_it_is_mended,
    a_run_shows_it_to_everybody_once,
    messages_go_with_the_people,
);

async fn suppressions(app: &TestApp) -> Vec<(String, String)> {
    app.rows("SELECT kind, suppressed_by FROM instructions WHERE status = 'suppressed' ORDER BY suppressed_by")
        .await
}

async fn a_message_is_shown_as_the_contract_has_it(app: &mut TestApp) {
    let theme =
        json!({"mode": "dark", "primary": "#000000", "onPrimary": "#ffffff", "mascot": "owl"});
    let campaign = message(app, json!({"priority": 7, "theme": theme, "variants": [{
        "layout": "card", "title": "Hello", "body": "There", "imageUrl": "https://shop.example/a.png", "dismissible": false,
        "buttons": [
            {"id": "go", "label": "Go", "openAction": {"action": "url", "url": "https://shop.example/"}},
            {"id": "no", "label": "No", "style": "primary", "openAction": {"action": "none"}},
        ],
    }]})).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));

    let data = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;

    let instruction = &data["instructions"][0];
    assert_eq!(instruction["kind"], "in_app");
    assert_eq!(instruction["campaignId"], json!(campaign));
    assert_eq!(instruction["priority"], 7);
    assert_eq!(instruction["trigger"]["eventId"], event["eventId"]);
    let variant = app.campaign_of(&campaign).await["variants"][0]["id"].take();
    assert_eq!(
        instruction["payload"],
        json!({"message": {
            "variantId": variant, "layout": "card", "title": "Hello", "body": "There",
            "imageUrl": "https://shop.example/a.png", "dismissible": false, "theme": theme,
            "buttons": [
                {"id": "go", "label": "Go", "style": "primary",
                    "openAction": {"action": "url", "url": "https://shop.example/"}},
                {"id": "no", "label": "No", "style": "primary", "openAction": {"action": "none"}},
            ],
        }})
    );
    assert_eq!(&app.offered(&ada).await[0], instruction);
    // Without parts of its own it says that there are none.
    message(
        app,
        json!({"trigger": {"kind": "event", "eventName": "visit"}}),
    )
    .await;
    let event = app.event(&ada, "visit", &json!({}));
    let data = app.ingest_and_ask(&ada, &[event]).await;
    let shown = &data["instructions"][0]["payload"]["message"];
    assert_eq!(
        (
            &shown["imageUrl"],
            &shown["buttons"],
            &shown["dismissible"],
            &shown["theme"]
        ),
        (&Value::Null, &json!([]), &json!(true), &Value::Null)
    );
}

async fn a_message_is_made_when_it_fires_and_kept(app: &mut TestApp) {
    let variants = json!([{"layout": "modal", "title": "Hello {{p.name}}", "personalization": of_user(&[("name", "name", "string")]),
        "buttons": [{"id": "go", "label": "Go, {{p.name}}",
            "openAction": {"action": "json", "actionJson": {"who": "{{p.name}}"}}}]}]);
    let campaign = message(app, json!({"variants": variants})).await;
    let ada = app.session("ada").await;
    save_property(app, &ada, "name", json!("Ada")).await;
    let at_once = buys(app, &ada, json!({})).await;
    let shown = &at_once[0]["payload"]["message"];
    assert_eq!(shown["title"], "Hello Ada");
    assert_eq!(shown["buttons"][0]["label"], "Go, Ada");
    assert_eq!(
        shown["buttons"][0]["openAction"]["actionJson"],
        json!({"who": "Ada"})
    );

    save_property(app, &ada, "name", json!("Grace")).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let change = json!({"variants": [{"layout": "banner", "title": "Other"}]});
    app.patch(&path, &app.editor(), &change).await.ok();
    app.restart().await;

    assert_eq!(app.offered(&ada).await, at_once);
    // And only once, though it is asked for again.
    assert_eq!(
        buys(app, &ada, json!({})).await[0]["payload"]["message"]["title"],
        "Other"
    );
    let offered = app.offered(&ada).await;
    assert_eq!(offered.as_array().unwrap().len(), 2);
}

async fn the_event_that_fires_fills_in_and_is_the_latest(app: &mut TestApp) {
    let latest = json!({"kind": "latest_event", "label": "Latest", "eventName": "purchase", "lookbackDays": 7});
    let spec = |source: Value| match source["kind"].as_str() {
        Some("latest_event") => personalization(&latest, &[("sum", "sum", "number")]),
        _ => of_event(&[("sum", "sum", "number")]),
    };
    for kind in ["trigger_event", "latest_event"] {
        let spec = spec(json!({"kind": kind}));
        let variants = json!([{"layout": "card", "title": format!("{kind} {{{{p.sum}}}}"), "personalization": spec}]);
        message(app, json!({"variants": variants})).await;
    }
    let ada = app.session("ada").await;
    for sum in [7, 9] {
        let shown = buys(app, &ada, json!({"sum": sum})).await;
        let shown = shown.as_array().unwrap().iter();
        let mut titles: Vec<String> = shown
            .map(|it| text(&it["payload"]["message"], "title"))
            .collect();
        titles.sort();
        assert_eq!(
            titles,
            [
                format!("latest_event {sum}"),
                format!("trigger_event {sum}")
            ]
        );
    }
}

async fn a_message_is_in_the_persons_language(app: &mut TestApp) {
    let localization = json!({"defaultLocale": "en", "translations": {
        "de": {"title": "Hallo {{p.item}}", "buttons/go/label": "Los"}}});
    let variants = json!([{"layout": "modal", "title": "Hello {{p.item}}", "body": "There", "localization": localization,
        "personalization": of_event(&[("item", "item", "string")]),
        "buttons": [{"id": "go", "label": "Go", "openAction": {"action": "open_app"}}]}]);
    message(app, json!({"variants": variants})).await;
    for (name, locale, title, label, spoken) in [
        ("ada", "de-AT", "Hallo tea", "Los", "de"),
        ("bob", "fr", "Hello tea", "Go", "en"),
    ] {
        let session = app.session(name).await;
        let event = app.event(&session, "purchase", &json!({"item": "tea"}));
        let mut body = session.batch(std::slice::from_ref(&event));
        body["context"]["locale"] = json!(locale);
        body["delivery"] = json!({"eventIds": [event["eventId"]]});
        let data = app.post_batch(&session, &body).await.ok();
        let shown = &data["instructions"][0]["payload"]["message"];
        assert_eq!(
            (
                &shown["title"],
                &shown["body"],
                &shown["buttons"][0]["label"],
                &shown["locale"]
            ),
            (
                &json!(title),
                &json!("There"),
                &json!(label),
                &json!(spoken)
            )
        );
    }
}

async fn a_missing_value_suppresses_and_says_why(app: &mut TestApp) {
    let variants = json!([{"layout": "modal", "title": "Hello {{p.name}}", "personalization": of_user(&[("name", "name", "string")])}]);
    let trigger = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "once"}});
    let campaign = message(app, json!({"variants": variants, "trigger": trigger})).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    let data = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;
    assert_eq!(data["instructions"], json!([]));
    app.settle().await;
    assert_eq!(
        suppressions(app).await,
        [("in_app".to_owned(), "missing_data".to_owned())]
    );
    let (subject, id) = (&ada.subject_id, event_id(&event));
    let query = format!("/explain?campaignId={campaign}&subjectId={subject}&eventId={id}");
    let explained = app.get(&app.path(&query), &app.viewer()).await.ok();
    assert_eq!(explained["outcome"], "suppressed");
    let steps = explained["steps"].as_array().unwrap();
    let step = steps
        .iter()
        .find(|step| step["check"] == "personalization")
        .unwrap();
    assert_eq!(step["passed"], false);
    assert!(text(step, "detail").contains("name (missing)"), "{step}");
    // It has not fired: once there is a value it does.
    save_property(app, &ada, "name", json!("Ada")).await;
    let shown = buys(app, &ada, json!({})).await;
    assert_eq!(shown[0]["payload"]["message"]["title"], "Hello Ada");
    assert_eq!(buys(app, &ada, json!({})).await, json!([]));
}

async fn a_person_always_gets_the_same_variant(app: &mut TestApp) {
    let variants = json!([
        {"layout": "modal", "title": "a", "weight": 1},
        {"layout": "modal", "title": "b", "weight": 1},
        {"layout": "modal", "title": "c", "weight": 0},
    ]);
    message(app, json!({"variants": variants})).await;
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..20 {
        let session = app.session(&format!("p{number}")).await;
        let mut titles = Vec::new();
        for _ in 0..3 {
            let shown = buys(app, &session, json!({})).await;
            titles.push(text(&shown[0]["payload"]["message"], "title"));
        }
        titles.dedup();
        assert_eq!(titles.len(), 1);
        *seen.entry(titles.remove(0)).or_insert(0) += 1;
    }
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["a", "b"]);
}

async fn what_was_pressed_is_noted_once(app: &mut TestApp) {
    message(app, json!({})).await;
    let ada = app.session("ada").await;
    let id = instruction_ids(&buys(app, &ada, json!({})).await).remove(0);
    let ack = |status: &str, action: &str| json!({"instructionId": id, "status": status, "actionId": action});
    for (status, action) in [
        ("displayed", "x"),
        ("clicked", "go"),
        ("clicked", "no"),
        ("dismissed", "x"),
        ("displayed", "x"),
    ] {
        let answer = acknowledge(app, &ada, ack(status, action)).await;
        assert_eq!(answer, json!({"accepted": 1, "unknown": []}));
    }
    let rows: Vec<(String, String)> = app
        .rows("SELECT status, action_id FROM instructions WHERE clicked_at >= displayed_at")
        .await;
    assert_eq!(rows, [("clicked".to_owned(), "go".to_owned())]);
    assert_eq!(app.offered(&ada).await, json!([]));
    let long = json!({"anonymousId": "ada", "acks": [ack("clicked", &"x".repeat(65))]});
    let path = "/v1/sdk/instructions/ack";
    let refused = app.post(path, &ada.credential(), &long).await;
    refused.refused(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/acks/0/actionId"]);
}

async fn a_message_expires_as_it_says(app: &mut TestApp) {
    message(app, json!({"expiresAfterSeconds": 60})).await;
    let ada = app.session("ada").await;
    assert_eq!(
        buys(app, &ada, json!({})).await.as_array().unwrap().len(),
        1
    );
    app.advance(30);
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
    app.advance(31);
    assert_eq!(app.offered(&ada).await, json!([]));
}

async fn caps_pauses_and_quiet_hours_hold(app: &mut TestApp) {
    let settings = app.path("/settings");
    let set = async |parts: Value| app.patch(&settings, &app.admin(), &parts).await.ok();
    let set_to = set(json!({"frequency": {"in_app": {"max": 2, "windowDays": 1}, "surveys": {"max": 1, "windowDays": 1}}})).await;
    assert_eq!(
        set_to["frequency"]["in_app"],
        json!({"max": 2, "windowDays": 1})
    );
    message(app, json!({})).await;
    let ada = app.session("ada").await;
    for expected in [1, 1, 0] {
        assert_eq!(
            buys(app, &ada, json!({})).await.as_array().unwrap().len(),
            expected
        );
    }
    app.settle().await;
    assert_eq!(
        suppressions(app).await,
        [("in_app".to_owned(), "global_cap".to_owned())]
    );
    // The clock of surveys counts by itself.
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
    // What was not displayed is given back.
    app.advance(601);
    assert_eq!(
        buys(app, &ada, json!({})).await.as_array().unwrap().len(),
        1
    );

    set(json!({"frequency": {"in_app": null, "surveys": null},
        "quietHours": {"from": "00:00", "to": "23:59", "onQuiet": "drop"}}))
    .await;
    let bob = app.session("bob").await;
    app.advance(1);
    assert_eq!(buys(app, &bob, json!({})).await, json!([]));
}

async fn the_apps_pause_is_between_surveys_and_messages_too(app: &mut TestApp) {
    let settings = app.path("/settings");
    let pause = json!({"frequency": {"minSecondsBetweenPresentations": 60}});
    app.patch(&settings, &app.admin(), &pause).await.ok();
    message(app, json!({})).await;
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
    // The message waits for its turn.
    assert_eq!(buys(app, &ada, json!({})).await, json!([]));
    app.settle().await;
    app.advance(61);
    app.until("the message comes", async || {
        let offered = app.offered(&ada).await;
        offered.as_array().unwrap().len() == 2
    })
    .await;
    // And then the survey.
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 0);
    // Nobody waits for what somebody else was shown.
    let bob = app.session("bob").await;
    assert_eq!(app.fires(&bob, "visit", &json!({})).await, 1);
}

async fn a_message_that_a_plugin_fails_on_is_made_once_it_is_mended(app: &mut TestApp) {
    let slot = break_personalization(app).await;
    let source = json!({"kind": "user_property", "label": "far_item"});
    let spec = personalization(&source, &[("name", "name", "string")]);
    let variants =
        json!([{"layout": "modal", "title": "Hello {{p.name}}", "personalization": spec}]);
    message(app, json!({"variants": variants})).await;
    let ada = app.session("ada").await;
    save_property(app, &ada, "name", json!("Ada")).await;
    assert_eq!(buys(app, &ada, json!({})).await, json!([]));
    app.settle().await;
    let letters = app
        .get(
            &app.path("/dead-letters?stage=personalization"),
            &app.viewer(),
        )
        .await
        .ok();
    let letter = text(&letters["items"][0], "id");
    assert_eq!(letters["items"].as_array().unwrap().len(), 1);
    let replay = app.path(&format!("/dead-letters/{letter}/replay"));
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "still_failing");
    assert_eq!(app.offered(&ada).await, json!([]));

    app.delete(&slot, &app.admin()).await.data(204);
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "replayed");
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["payload"]["message"]["title"], "Hello Ada");
    assert_eq!(offered.as_array().unwrap().len(), 1);
    let again = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(again["status"], "replayed");
    assert_eq!(app.offered(&ada).await, offered);
}

async fn a_run_shows_it_to_everybody_once(app: &mut TestApp) {
    for name in ["ada", "bob", "carl"] {
        let session = app.session(name).await;
        save_property(app, &session, "name", json!(name)).await;
    }
    let variants = json!([{"layout": "banner", "title": "Hello {{p.name}}", "personalization": of_user(&[("name", "name", "string")])}]);
    message(
        app,
        json!({"mode": "scheduled", "trigger": null, "variants": variants}),
    )
    .await;
    app.until("everybody has it", async || {
        crate::runs::issued(app).await == (3, 3)
    })
    .await;
    crate::runs::over(app, 1).await;
    for name in ["ada", "bob", "carl"] {
        let session = app.session(name).await;
        let offered = app.offered(&session).await;
        assert_eq!(offered.as_array().unwrap().len(), 1);
        assert_eq!(
            offered[0]["payload"]["message"]["title"],
            format!("Hello {name}")
        );
        assert!(offered[0].get("trigger").is_none());
    }
    app.restart().await;
    app.settle().await;
    assert_eq!(crate::runs::issued(app).await, (3, 3));
}

async fn messages_go_with_the_people(app: &mut TestApp) {
    message(app, json!({})).await;
    let backend = Backend::new(app).await;
    let phone = app.session("phone").await;
    buys(app, &phone, json!({})).await;
    backend.identify(app, "web", "e-1").await;
    let ada = backend.identify(app, "phone", "e-1").await;
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["payload"]["message"]["title"], "Thanks");
    let id = instruction_ids(&offered).remove(0);
    let answer = acknowledge(
        app,
        &ada,
        json!({"instructionId": id, "status": "clicked", "actionId": "go"}),
    )
    .await;
    assert_eq!(answer["accepted"], 1);
}
