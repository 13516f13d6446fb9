//! In-app messages: made when they fire and kept as they were made, acknowledged, capped, explained (contract 20).

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::campaigns::personalization;
use tests::session::{event_id, instruction_ids, text};
use tests::{Child, Session, TestApp, on_both_backends, site};

use crate::concurrency::join;
use crate::guests::{activate_at, save_property, upload};
use crate::identity::Backend;
use crate::kills::{Remote, events};
use crate::two_servers::node;

on_both_backends!(
    a_message_is_shown_as_the_contract_has_it,
    campaigns_of_both_types_are_listed_and_managed_by_the_same_routes,
    what_breaks_the_contract_is_named_by_its_place,
    a_message_is_made_when_it_fires_and_kept,
    the_event_that_fires_fills_in_and_is_the_latest,
    a_message_is_in_the_persons_language,
    a_missing_value_suppresses_and_says_why,
    a_person_always_gets_the_same_variant,
    what_was_pressed_is_noted_once,
    a_message_expires_as_it_says,
    caps_pauses_and_quiet_hours_hold,
    a_message_that_a_plugin_fails_on_is_made_once_it_is_mended,
    a_run_shows_it_to_everybody_once,
    messages_go_with_the_people,
    what_is_deleted_is_offered_to_nobody,
    results_are_in_all_by_variant_by_button_and_by_day,
    recipients_are_whoever_was_to_get_it,
    results_of_push_campaigns_have_the_same_form,
);

/// An active message of one variant, which every `purchase` fires.
fn message_with(parts: &Value) -> Value {
    let mut body = json!({
        "name": "Free shipping", "type": "in_app", "status": "active",
        "trigger": {"kind": "event", "eventName": "purchase"},
        "variants": [{"layout": "modal", "title": "Thanks", "body": "It is on its way"}],
    });
    let members = body.as_object_mut().unwrap();
    members.extend(parts.as_object().unwrap().clone());
    body
}

async fn message(app: &TestApp, parts: Value) -> String {
    let made = app.create_campaign(&message_with(&parts)).await;
    text(&made.data(201), "id")
}

async fn buys(app: &TestApp, session: &Session, properties: Value) -> Value {
    let event = app.event(session, "purchase", &properties);
    app.ingest_and_ask(session, &[event]).await["instructions"].take()
}

async fn acknowledge(app: &TestApp, session: &Session, ack: Value) -> Value {
    let body = json!({"anonymousId": session.anonymous_id, "acks": [ack]});
    let path = "/v1/sdk/instructions/ack";
    app.post(path, &session.credential(), &body).await.ok()
}

async fn suppressions(app: &TestApp) -> Vec<(String, String)> {
    app.rows("SELECT kind, suppressed_by FROM instructions WHERE status = 'suppressed' ORDER BY suppressed_by")
        .await
}

fn of_user(bindings: &[(&str, &str, &str)]) -> Value {
    personalization(&json!({"kind": "user_property", "label": "User"}), bindings)
}

fn of_event(bindings: &[(&str, &str, &str)]) -> Value {
    personalization(
        &json!({"kind": "trigger_event", "label": "Event"}),
        bindings,
    )
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

async fn campaigns_of_both_types_are_listed_and_managed_by_the_same_routes(app: &mut TestApp) {
    let push = app.campaign(&json!({})).await;
    let shown = message(app, json!({"expiresAfterSeconds": 60})).await;
    let list = async |query: &str| {
        let path = app.path(&format!("/campaigns{query}"));
        let listed = app.get(&path, &app.viewer()).await.ok();
        let items = listed.as_array().unwrap().clone();
        items
            .iter()
            .map(|it| (text(it, "id"), text(it, "type")))
            .collect::<Vec<_>>()
    };
    let (of_push, of_app) = (
        (push, "push".to_owned()),
        (shown.clone(), "in_app".to_owned()),
    );
    assert_eq!(list("").await, [of_app.clone(), of_push.clone()]);
    assert_eq!(list("?type=push").await, [of_push]);
    assert_eq!(list("?type=in_app").await, [of_app]);

    let path = app.path(&format!("/campaigns/{shown}"));
    let before = app.campaign_of(&shown).await;
    assert_eq!(
        (&before["type"], &before["expiresAfterSeconds"]),
        (&json!("in_app"), &json!(60))
    );
    let change = json!({"status": "paused", "variants": [{"layout": "banner", "title": "New"}]});
    let changed = app.patch(&path, &app.editor(), &change).await.ok();
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["variants"][0]["id"], before["variants"][0]["id"]);
    let refused = app
        .patch(&path, &app.editor(), &json!({"type": "push"}))
        .await;
    refused.refused(422, "validation_failed");
    // What is of one kind is not of another.
    app.get(&app.path(&format!("/surveys/{shown}")), &app.viewer())
        .await
        .refused(404, "not_found");
    let actions: Vec<(String,)> = app
        .rows("SELECT action FROM audit_log WHERE action LIKE 'campaign.%' ORDER BY id")
        .await;
    assert_eq!(
        actions.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["campaign.created", "campaign.created", "campaign.updated"]
    );
}

async fn what_breaks_the_contract_is_named_by_its_place(app: &mut TestApp) {
    let variant = |parts: Value| {
        let mut variant = json!({"layout": "modal", "title": "t"});
        variant
            .as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        json!({"variants": [variant]})
    };
    let button = |parts: Value| {
        let mut button = json!({"id": "b", "label": "B", "openAction": {"action": "none"}});
        button
            .as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        variant(json!({"buttons": [button]}))
    };
    let many: Vec<Value> = ["a", "b", "c"]
        .map(|id| json!({"id": id, "label": id, "openAction": {"action": "none"}}))
        .to_vec();
    for (parts, pointer) in [
        (json!({"type": "sms"}), "/type"),
        (json!({"mode": "broadcast"}), "/mode"),
        (json!({"options": {}}), "/options"),
        (json!({"expiresAfterSeconds": 0}), "/expiresAfterSeconds"),
        (variant(json!({"layout": "toast"})), "/variants/0/layout"),
        (
            variant(json!({"imageUrl": "http://shop.example/a.png"})),
            "/variants/0/imageUrl",
        ),
        (variant(json!({"title": "{{p.name}}"})), "/variants/0/title"),
        (variant(json!({"body": "{{name}}"})), "/variants/0/body"),
        (variant(json!({"buttons": many})), "/variants/0/buttons"),
        (button(json!({"label": " "})), "/variants/0/buttons/0/label"),
        (
            button(json!({"style": "loud"})),
            "/variants/0/buttons/0/style",
        ),
        (
            button(json!({"openAction": {"action": "url", "url": "javascript:alert(1)"}})),
            "/variants/0/buttons/0/openAction/url",
        ),
        (
            variant(
                json!({"localization": {"defaultLocale": "en", "translations": {"de": {"footer": "x"}}}}),
            ),
            "/variants/0/localization/translations/de/footer",
        ),
        (
            variant(
                json!({"localization": {"defaultLocale": "en", "translations": {"de": {"title": "{{p.x}}"}}}}),
            ),
            "/variants/0/localization/translations/de/title",
        ),
        (json!({"theme": {"radius": 99}}), "/theme/radius"),
    ] {
        let answer = app.create_campaign(&message_with(&parts)).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{parts}");
    }
    let low = json!({"theme": {"text": "#777777", "background": "#ffffff"}});
    let refused = app.create_campaign(&message_with(&low)).await;
    refused.refused(422, "low_contrast");
    assert_eq!(refused.pointers(), ["/theme/text"]);
    for (parts, pointer) in [
        (json!({"variants": []}), "/variants"),
        (json!({"trigger": null}), "/trigger"),
        (
            json!({"variants": [{"layout": "card"}]}),
            "/variants/0/title",
        ),
    ] {
        let answer = app.create_campaign(&message_with(&parts)).await;
        answer.refused(422, "not_activatable");
        assert_eq!(answer.pointers(), [pointer], "{parts}");
    }
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
    for (name, locale, title, label) in [
        ("ada", "de-AT", "Hallo tea", "Los"),
        ("bob", "fr", "Hello tea", "Go"),
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
                &shown["buttons"][0]["label"]
            ),
            (&json!(title), &json!("There"), &json!(label))
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
    app.advance(59);
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
    app.advance(2);
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

async fn a_message_that_a_plugin_fails_on_is_made_once_it_is_mended(app: &mut TestApp) {
    const PLUGIN: &str = "misbehaving-personalization";
    upload(app, test_guests::MISBEHAVING_PERSONALIZATION.to_vec())
        .await
        .data(201);
    let (root, parts) = (app.path(""), json!({"version": "1.0.0"}));
    activate_at(app, &root, &app.admin(), PLUGIN, parts)
        .await
        .ok();
    let slot = app.path("/plugin-slots/personalization");
    app.put(&slot, &app.admin(), &json!({"plugin": PLUGIN}))
        .await
        .ok();
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
    app.post(&replay, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
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

async fn what_is_deleted_is_offered_to_nobody(app: &mut TestApp) {
    let campaign = message(app, json!({})).await;
    let ada = app.session("ada").await;
    buys(app, &ada, json!({})).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.delete(&path, &app.editor()).await.data(204);
    assert_eq!(app.offered(&ada).await, json!([]));
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.until("nothing is left of it", async || {
        crate::runs::issued(app).await == (0, 0)
    })
    .await;
}

async fn results(app: &TestApp, campaign: &str, query: &str) -> Value {
    let path = app.path(&format!("/campaigns/{campaign}/analytics{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

async fn recipients(app: &TestApp, campaign: &str, query: &str) -> Value {
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
        ("bob", vec![("clicked", "go")]),
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
    ] {
        assert_eq!(report["totals"][name], count, "{name}");
    }
    assert_eq!(report["perVariant"][0]["recipients"], 2);
    assert_eq!(report["series"].as_array().unwrap().len(), 1);
    let mut found = states(&recipients(app, &campaign, "").await);
    found.sort();
    assert_eq!(found, ["clicked", "suppressed"]);
    let held = recipients(app, &campaign, "?state=suppressed").await;
    assert_eq!(held["items"][0]["suppressedBy"], "no_active_device");
}

/// What `kill -9` right after the answer leaves is made by the next start: each message once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_survive_a_kill_and_are_made_once() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut running = Child::start(site!(), folder.path());
    let remote = Remote::open(&running).await;
    let campaigns = format!("/v1/apps/{}/campaigns", text(&remote.access, "appId"));
    let spec = of_event(&[("sum", "sum", "number")]);
    let variants = json!([{"layout": "card", "title": "{{p.sum}}", "personalization": spec}]);
    let body = message_with(&json!({"variants": variants}));
    remote
        .post(&campaigns, "editorToken", &body)
        .await
        .data(201);
    let mut sent = Vec::new();
    for round in 0..3 {
        let remote = Remote::open(&running).await;
        let mut events = events(20);
        for event in &mut events {
            event["properties"] = json!({"sum": round});
        }
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let data = remote.post("/v1/sdk/ingest", "writeKey", &body).await.ok();
        assert_eq!(data["accepted"], 20, "round {round}");
        running.kill();
        sent.extend(events.iter().map(|event| text(event, "eventId")));
        running = Child::start(site!(), folder.path());
    }
    let remote = Remote::open(&running).await;
    assert_eq!(remote.fired(sent.len()).await, sent, "each once, in order");
    assert_eq!(running.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_make_messages_and_buttons_once() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let two = node(&url, folder.path(), "two").await;
    let cap = json!({"perSubject": {"max": 5, "windowDays": "lifetime"}});
    message(&one, json!({"frequencyCap": cap})).await;
    let ada = one.session("ada").await;
    let settings = json!({"presentation": "feedback_button"});
    one.survey_with(&json!({"mode": "on_demand", "trigger": null, "settings": settings}))
        .await;
    two.until("the other knows the button", async || {
        two.offered(&ada).await.as_array().unwrap().len() == 1
    })
    .await;
    let both = |number: usize| if number.is_multiple_of(2) { &one } else { &two };
    join((0..8).map(|number| both(number).offered(&ada))).await;
    join((0..12).map(|number| buys(both(number), &ada, json!({})))).await;
    one.settle().await;
    two.settle().await;
    let rows: Vec<(String, i64)> = one
        .rows("SELECT kind, count(*) FROM instructions WHERE status <> 'suppressed' GROUP BY kind ORDER BY kind")
        .await;
    assert_eq!(rows, [("feedback".to_owned(), 1), ("in_app".to_owned(), 5)]);
    let offered = one.offered(&ada).await;
    assert_eq!(offered, two.offered(&ada).await);
    assert_eq!(offered.as_array().unwrap().len(), 6);
    two.finish().await;
    one.finish().await;
}
