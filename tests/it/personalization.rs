//! What tokens stand for: previews, and messages that events cause (specification 2.5 and 4.4, contract 9).

use serde_json::{Value, json};
use tests::campaigns::{campaign_with, personalization};
use tests::providers::Providers;
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

use crate::audience::put_nul_into_names;
use crate::campaign_plans::of_one_instant;
use crate::guests;

on_both_backends!(
    every_source_is_previewed_with_where_it_comes_from,
    an_unknown_event_is_named_whatever_reads_it,
    values_keep_their_types_and_are_formatted_in_texts,
    what_a_format_leaves_open_is_the_recipients,
    a_locale_that_is_none_is_refused_with_a_pointer,
    missing_values_skip_fail_or_fall_back,
    the_privacy_policy_withholds_values,
    bad_content_is_refused_with_pointers,
    a_message_has_the_values_of_its_event,
    a_name_that_no_event_has_holds_no_message_up,
    a_plugin_that_fails_loses_nothing,
    values_make_no_program_of_a_link,
    the_latest_event_is_looked_for_as_far_as_plugins_see,
    of_events_of_one_instant_the_last_is_rendered,
);

async fn preview(app: &TestApp, parts: Value) -> Value {
    let mut body = json!({"surface": "push", "anonymousId": "ada"});
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    let path = app.path("/personalization/preview");
    app.post(&path, &app.viewer(), &body).await.ok()
}

async fn set(app: &TestApp, session: &Session, properties: Value) {
    let body =
        json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": properties});
    app.post("/v1/sdk/user-properties", &session.credential(), &body)
        .await
        .ok();
}

async fn every_source_is_previewed_with_where_it_comes_from(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"first_name": "Ada"})).await;
    let old = app.event(&ada, "viewed", &json!({"name": "cup", "price": 5}));
    app.ingest(&ada, std::slice::from_ref(&old)).await.ok();
    app.advance(1);
    let bought = app.event(&ada, "bought", &json!({"cart": {"total": 7}}));
    let newer = app.event(&ada, "viewed", &json!({"name": "sofa", "price": 500}));
    app.ingest(&ada, &[bought.clone(), newer.clone()])
        .await
        .ok();
    app.settle().await;
    let source = |id: &str, kind: &str| json!({"id": id, "kind": kind, "label": id});
    let latest = |id: &str, filters: Value| json!({"id": id, "kind": "latest_event", "eventName": "viewed", "lookbackDays": 30, "filters": filters});
    let binding = |id: &str, source: &str, key: &str, kind: &str| json!({"id": id, "sourceId": source, "key": key, "type": kind});
    let cheap =
        json!({"all": [{"property": "price", "type": "number", "operator": "lt", "value": 10}]});
    let content = json!({"title": "{{p.name}} {{p.code}}", "body": "{{p.total}} {{p.seen}} {{p.cheap}}",
        "personalization": {"version": 1, "missingData": "skip",
            "sources": [source("u", "user_property"), source("d", "send_data"), source("t", "trigger_event"),
                {"id": "l", "kind": "latest_event", "eventName": "viewed", "lookbackDays": 1}, latest("c", cheap)],
            "bindings": [binding("name", "u", "first_name", "string"), binding("code", "d", "code", "string"),
                binding("total", "t", "cart.total", "number"), binding("seen", "l", "name", "string"),
                binding("cheap", "c", "name", "string")]}});
    let found = preview(
        app,
        json!({"content": content, "data": {"code": "X1"}, "triggerEventId": bought["eventId"]}),
    )
    .await;
    assert_eq!(found["status"], "ready", "{found}");
    assert_eq!(found["content"]["title"], "Ada X1");
    assert_eq!(found["content"]["body"], "7 sofa cup");
    assert_eq!(found["issues"], json!([]));
    let kinds: Vec<String> = (0..5)
        .map(|n| text(&found["bindings"][n]["source"], "kind"))
        .collect();
    assert_eq!(
        kinds,
        [
            "user_property",
            "send_data",
            "trigger_event",
            "latest_event",
            "latest_event"
        ]
    );
    let events: Vec<Value> = (2..5)
        .map(|n| found["bindings"][n]["source"]["eventId"].clone())
        .collect();
    assert_eq!(
        events,
        [
            bought["eventId"].clone(),
            newer["eventId"].clone(),
            old["eventId"].clone()
        ]
    );
    assert_eq!(found["bindings"][2]["type"], "number");
    assert_eq!(found["bindings"][2]["usedFallback"], false);

    let without = preview(
        app,
        json!({"content": content, "data": {"code": "X1"}, "triggerEventId": app.id()}),
    )
    .await;
    assert_eq!(
        (&without["status"], &without["content"]),
        (&json!("skipped"), &json!(null))
    );
    assert_eq!(
        (
            &without["issues"][0]["bindingId"],
            &without["issues"][0]["code"]
        ),
        (&json!("total"), &json!("event_not_found"))
    );
    assert_eq!(without["issues"].as_array().unwrap().len(), 1, "{without}");
    assert_eq!(app.deliveries("").await.len(), 0);
}

async fn an_unknown_event_is_named_whatever_reads_it(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let other = app.session("bob").await;
    let of_bob = app.event(&other, "bought", &json!({}));
    app.ingest(&other, std::slice::from_ref(&of_bob)).await.ok();
    set(app, &ada, json!({"first_name": "Ada"})).await;
    let spec =
        |kind: &str| personalization(&json!({"kind": kind}), &[("name", "first_name", "string")]);
    let mut with_fallback = spec("trigger_event");
    with_fallback["bindings"][0]["fallback"] = json!("you");
    for (content, title) in [
        (json!({"title": "Hello"}), "Hello"),
        (
            json!({"title": "{{p.name}}", "personalization": spec("user_property")}),
            "Ada",
        ),
        (
            json!({"title": "{{p.name}}", "personalization": with_fallback}),
            "you",
        ),
    ] {
        for event in [&json!(app.id()), &of_bob["eventId"]] {
            let found = preview(app, json!({"content": content, "triggerEventId": event})).await;
            assert_eq!(found["content"]["title"], title, "{found}");
            let codes: Vec<&Value> = found["issues"]
                .as_array()
                .unwrap()
                .iter()
                .map(|issue| &issue["code"])
                .collect();
            assert_eq!(codes, [&json!("event_not_found")], "{found}");
        }
        let found = preview(app, json!({"content": content})).await;
        let codes = found["issues"].as_array().unwrap().iter();
        assert!(
            codes.into_iter().all(|issue| issue["bindingId"] == "name"),
            "{found}"
        );
    }
}

async fn values_keep_their_types_and_are_formatted_in_texts(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(
        app,
        &ada,
        json!({"points": 1234.5, "vip": true, "note": "{{p.points}} \"quoted\"", "due": "2026-07-01T22:30:00Z"}),
    )
    .await;
    let mut spec = personalization(
        &json!({"kind": "user_property"}),
        &[
            ("points", "points", "number"),
            ("vip", "vip", "boolean"),
            ("note", "note", "string"),
            ("due", "due", "date"),
        ],
    );
    spec["bindings"][3]["format"] =
        json!({"style": "datetime", "locale": "de", "timezone": "Europe/Vienna"});
    spec["bindings"][0]["format"] = json!({"style": "currency", "currency": "EUR", "locale": "de"});
    let action = json!({"action": "json", "actionJson": {"points": "{{p.points}}", "vip": ["{{p.vip}}"], "text": "{{p.points}}!", "note": "{{p.note}}"}});
    let content = json!({"title": "{{p.points}} {{p.due}}", "body": "{{p.note}}", "openAction": action, "personalization": spec});
    let found = preview(app, json!({"content": content})).await;
    assert_eq!(
        found["content"]["title"],
        "1.234,50\u{a0}€ 02.07.2026, 00:30"
    );
    assert_eq!(found["content"]["body"], "{{p.points}} \"quoted\"");
    assert_eq!(
        found["content"]["openAction"]["actionJson"],
        json!({"points": 1234.5, "vip": [true], "text": "1.234,50\u{a0}€!", "note": "{{p.points}} \"quoted\""})
    );
}

async fn what_a_format_leaves_open_is_the_recipients(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(
        app,
        &ada,
        json!({"points": 1234.5, "due": "2026-07-01T22:30:00Z"}),
    )
    .await;
    let mut spec = personalization(
        &json!({"kind": "user_property"}),
        &[
            ("points", "points", "number"),
            ("due", "due", "date"),
            ("fixed", "due", "date"),
        ],
    );
    spec["bindings"][0]["format"] = json!({"style": "decimal"});
    spec["bindings"][1]["format"] = json!({"style": "datetime"});
    spec["bindings"][2]["format"] = json!({"style": "date", "locale": "sv", "timezone": "UTC"});
    let content = json!({"title": "{{p.points}} {{p.due}} {{p.fixed}}", "personalization": spec});
    let title =
        async || preview(app, json!({"content": content})).await["content"]["title"].clone();
    assert_eq!(
        title().await,
        "1,234.5 7/1/2026, 10:30 PM 2026-07-01",
        "nothing is known"
    );
    for (locale, timezone, expected) in [
        (
            "de-AT",
            "Europe/Vienna",
            "1.234,5 02.07.2026, 00:30 2026-07-01",
        ),
        (
            "en-GB",
            "America/New_York",
            "1,234.5 01/07/2026, 18:30 2026-07-01",
        ),
    ] {
        let mut batch = ada.batch(&[app.event(&ada, "opened", &json!({}))]);
        batch["context"]["locale"] = json!(locale);
        batch["context"]["timezone"] = json!(timezone);
        assert_eq!(app.post_batch(&ada, &batch).await.ok()["accepted"], 1);
        app.settle().await;
        assert_eq!(title().await, expected);
    }
}

async fn a_locale_that_is_none_is_refused_with_a_pointer(app: &mut TestApp) {
    let spec = |locale: &str| {
        let mut spec = personalization(&json!({"kind": "user_property"}), &[("n", "n", "number")]);
        spec["bindings"][0]["format"] = json!({"style": "decimal", "locale": locale});
        json!({"title": "{{p.n}}", "personalization": spec})
    };
    for locale in ["not-a-locale", "english", "de DE", "12", "en-US.UTF-8"] {
        let body = campaign_with(&json!({"variants": [spec(locale)]}));
        let answer = app
            .post(&app.path("/campaigns"), &app.editor(), &body)
            .await;
        answer.refused(422, "validation_failed");
        assert_eq!(
            answer.pointers(),
            ["/variants/0/personalization/bindings/0/format/locale"],
            "{locale}"
        );
    }
    for locale in ["de", "pt-BR", "zh-Hant-TW", "en_GB", "es-419"] {
        let body = campaign_with(&json!({"variants": [spec(locale)]}));
        app.post(&app.path("/campaigns"), &app.editor(), &body)
            .await
            .data(201);
    }
}

async fn missing_values_skip_fail_or_fall_back(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"empty": null, "text": "12"})).await;
    for (key, missing, fallback, status, code) in [
        ("nothing", "skip", json!(null), "skipped", "missing"),
        ("nothing", "fail", json!(null), "error", "missing"),
        ("empty", "skip", json!(null), "skipped", "missing"),
        ("empty", "fail", json!(7), "ready", "missing"),
        ("text", "skip", json!(7), "error", "type_mismatch"),
    ] {
        let mut spec = personalization(&json!({"kind": "user_property"}), &[("b", key, "number")]);
        spec["missingData"] = json!(missing);
        if !fallback.is_null() {
            spec["bindings"][0]["fallback"] = fallback.clone();
        }
        let found = preview(
            app,
            json!({"content": {"title": "{{p.b}}", "personalization": spec}}),
        )
        .await;
        assert_eq!(found["status"], status, "{key} {missing} {found}");
        assert_eq!(found["issues"][0]["code"], code, "{key} {missing} {found}");
        if status == "ready" {
            assert_eq!(
                (
                    &found["content"]["title"],
                    &found["bindings"][0]["usedFallback"]
                ),
                (&json!("7"), &json!(true))
            );
        }
    }
}

async fn the_privacy_policy_withholds_values(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"iban": "DE00"})).await;
    app.set(|settings| {
        settings.privacy.deny_keys = vec!["iban".to_owned()];
        settings.privacy.allow_keys = Some(vec!["code".to_owned()]);
    })
    .await;
    for (source, key) in [
        ("user_property", "iban"),
        ("send_data", "iban"),
        ("send_data", "other"),
    ] {
        let spec = personalization(&json!({"kind": source}), &[("b", key, "string")]);
        let parts = json!({"content": {"title": "{{p.b}}", "personalization": spec}, "data": {"iban": "DE00", "other": "x", "code": "y"}});
        let found = preview(app, parts).await;
        assert_eq!(
            (&found["status"], &found["issues"][0]["code"]),
            (&json!("skipped"), &json!("filtered_by_privacy")),
            "{source} {key}"
        );
        assert!(!found.to_string().contains("DE00"));
    }
    let spec = personalization(&json!({"kind": "send_data"}), &[("b", "code", "string")]);
    let found = preview(
        app,
        json!({"content": {"title": "{{p.b}}", "personalization": spec}, "data": {"code": "y"}}),
    )
    .await;
    assert_eq!(found["content"]["title"], "y");
}

async fn bad_content_is_refused_with_pointers(app: &mut TestApp) {
    app.session("ada").await;
    let path = app.path("/personalization/preview");
    let refused = async |body: Value| {
        let answer = app.post(&path, &app.viewer(), &body).await;
        answer.refused(422, "validation_failed");
        answer.pointers()
    };
    let content = json!({"title": "{{p.x}}"});
    assert_eq!(
        refused(json!({"surface": "push", "anonymousId": "ada", "content": content})).await,
        ["/content/title"]
    );
    let content = json!({"title": "t"});
    for (body, pointer) in [
        (
            json!({"surface": "email", "anonymousId": "ada", "content": content}),
            "/surface",
        ),
        (json!({"surface": "push", "content": content}), ""),
        (
            json!({"surface": "push", "anonymousId": "ada", "externalId": "a", "content": content}),
            "",
        ),
        (
            json!({"surface": "push", "anonymousId": "ada", "content": content, "data": {"a": []}}),
            "/data/a",
        ),
    ] {
        assert_eq!(refused(body).await, [pointer]);
    }
    let body = json!({"surface": "push", "anonymousId": "nobody", "content": content});
    app.post(&path, &app.viewer(), &body)
        .await
        .refused(404, "subject_not_found");
}

async fn shop(app: &mut TestApp) -> (Providers, Session) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    (providers, ada)
}

async fn a_message_has_the_values_of_its_event(app: &mut TestApp) {
    let (_providers, ada) = shop(app).await;
    let spec = personalization(
        &json!({"kind": "trigger_event"}),
        &[("total", "total", "number")],
    );
    app.campaign(&json!({"variants": [{"title": "{{p.total}}", "personalization": spec}]}))
        .await;
    let events: Vec<Value> = [
        json!({"total": 1}),
        json!({"total": 2}),
        json!({}),
        json!({"total": "3"}),
    ]
    .iter()
    .map(|properties| app.event(&ada, "purchase", properties))
    .collect();
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    let mut titles: Vec<String> = app
        .delivered_to(&ada, "delivered", 2)
        .await
        .iter()
        .map(|it| text(&it["content"], "title"))
        .collect();
    titles.sort();
    assert_eq!(titles, ["1", "2"]);
    assert_eq!(
        app.delivered_to(&ada, "skipped", 1).await[0]["reason"],
        "missing_data"
    );
    assert_eq!(
        app.delivered_to(&ada, "failed", 1).await[0]["reason"],
        "type_mismatch"
    );
}

async fn a_name_that_no_event_has_holds_no_message_up(app: &mut TestApp) {
    let (_providers, ada) = shop(app).await;
    let greeting = |name: &str| {
        let source = json!({"kind": "latest_event", "eventName": name, "lookbackDays": 7});
        let mut spec = personalization(&source, &[("n", "name", "string")]);
        spec["bindings"][0]["fallback"] = json!("you");
        json!({"variants": [{"title": "For {{p.n}}", "personalization": spec}]})
    };
    let bad = app.create_campaign(&campaign_with(&greeting("a\0b"))).await;
    bad.refused(422, "validation_failed");
    let place = "/variants/0/personalization/sources/0/eventName";
    assert_eq!(bad.pointers(), [place]);

    app.campaign(&greeting("azb")).await;
    put_nul_into_names(app).await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let sent = app.delivered_to(&ada, "delivered", 1).await;
    assert_eq!(text(&sent[0]["content"], "title"), "For you");
}

async fn a_plugin_that_fails_loses_nothing(app: &mut TestApp) {
    let (providers, ada) = shop(app).await;
    let source = json!({"kind": "trigger_event", "label": "far_item"});
    let spec = personalization(&source, &[("total", "total", "number")]);
    app.campaign(&json!({"variants": [{"title": "{{p.total}}", "personalization": spec}]}))
        .await;
    let slot = guests::break_personalization(app).await;

    let event = app.event(&ada, "purchase", &json!({"total": 9}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    let failed = app.delivered_to(&ada, "failed", 1).await.remove(0);
    assert_eq!(failed["reason"], "plugin_error");
    let letters = app.path("/dead-letters?stage=personalization");
    let listed = app.get(&letters, &app.viewer()).await.ok();
    let letter = &listed["items"][0];
    assert_eq!(
        (&letter["eventId"], &letter["plugin"]["name"]),
        (&event["eventId"], &json!("misbehaving-personalization"))
    );
    let replay = app.path(&format!("/dead-letters/{}/replay", text(letter, "id")));
    let again = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(again["status"], "still_failing");

    app.delete(&slot, &app.admin()).await.data(204);
    let again = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(again["status"], "replayed");
    let sent = app
        .delivery_in(&text(&failed, "deliveryId"), "delivered")
        .await;
    assert_eq!(sent["content"]["title"], "9");
    let again = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(again["status"], "replayed");
    assert_eq!(providers.apns.received().len(), 1);
}

async fn values_make_no_program_of_a_link(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    let action = |action: &str, url: &str| {
        json!([{"title": "Look", "weight": 1, "openAction": {"action": action, "url": url},
            "personalization": personalization(&json!({"kind": "send_data"}), &[("link", "link", "string")])}])
    };
    // What is written is refused when it is saved, with a token behind it too.
    for (kind, url) in [
        ("url", "javascript:alert(1)"),
        ("url", "data:text/html,{{p.link}}"),
        ("url", "file:///etc/passwd"),
        ("url", "shop://orders/{{p.link}}"),
        ("deep_link", "JavaScript:{{p.link}}"),
        ("deep_link", "vbscript:x"),
        ("deep_link", "orders/{{p.link}}"),
    ] {
        let variants = action(kind, url);
        let body = campaign_with(&json!({"variants": variants}));
        let answer = app.create_campaign(&body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/variants/0/openAction/url"], "{url}");
        let body = json!({"surface": "push", "anonymousId": "ada", "content": variants[0]});
        app.post(&app.path("/personalization/preview"), &app.viewer(), &body)
            .await
            .refused(422, "validation_failed");
    }
    // What a value makes of it is found when the message is made, and told by the preview.
    for (kind, url, value, good) in [
        ("url", "{{p.link}}", "https://shop.example/7", true),
        (
            "url",
            "https://shop.example/?q={{p.link}}",
            "two words",
            true,
        ),
        ("url", "{{p.link}}", "javascript:alert(1)", false),
        ("url", "{{p.link}}:alert(1)", "javascript", false),
        ("url", "{{p.link}}", "shop://orders/7", false),
        ("deep_link", "{{p.link}}", "shop://orders/7", true),
        ("deep_link", "{{p.link}}", "java\nscript:alert(1)", false),
        ("deep_link", "{{p.link}}", " data:text/html,x", false),
        ("deep_link", "{{p.link}}", "file:///etc/passwd", false),
    ] {
        let variants = action(kind, url);
        let parts = json!({"content": variants[0], "data": {"link": value}});
        let shown = preview(app, parts).await;
        let campaign = app
            .campaign(&json!({"mode": "transactional", "trigger": null, "variants": variants}))
            .await;
        let body = json!({"campaignId": campaign, "anonymousId": "ada", "data": {"link": value}});
        let id = text(&app.transactional(&body).await.data(202), "deliveryId");
        if good {
            assert_eq!(shown["status"], "ready", "{url} {value}");
            app.delivery_in(&id, "delivered").await;
        } else {
            assert_eq!(shown["status"], "error", "{url} {value}");
            assert_eq!(shown["content"], Value::Null);
            assert_eq!(shown["issues"][0]["code"], "url_not_allowed");
            let delivery = app.delivery_in(&id, "failed").await;
            assert_eq!(delivery["reason"], "url_not_allowed", "{url} {value}");
        }
    }
    assert_eq!(providers.apns.received().len(), 3);
    // So is the image's address, and an object stays an object.
    for image in [
        "https://",
        "https://shop.example/a b.png",
        "javascript:alert(1)",
    ] {
        let body = campaign_with(&json!({"options": {"imageUrl": image}}));
        let answer = app.create_campaign(&body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/options/imageUrl"], "{image}");
    }
}

async fn the_latest_event_is_looked_for_as_far_as_plugins_see(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let viewed =
        |name: &str, price: i64| app.event(&ada, "viewed", &json!({"name": name, "price": price}));
    app.ingest(&ada, &[viewed("cup", 5)]).await.ok();
    app.advance(1);
    let dear: Vec<Value> = (0..499).map(|_| viewed("sofa", 500)).collect();
    app.ingest(&ada, &dear).await.ok();
    app.settle().await;
    let source = json!({"kind": "latest_event", "eventName": "viewed", "lookbackDays": 30, "filters":
        {"all": [{"property": "price", "type": "number", "operator": "lt", "value": 10}]}});
    let spec = personalization(&source, &[("name", "name", "string")]);
    let content = json!({"title": "{{p.name}}", "personalization": spec});

    let found = preview(app, json!({"content": content})).await;

    assert_eq!(found["content"]["title"], "cup", "{found}");
}

async fn of_events_of_one_instant_the_last_is_rendered(app: &mut TestApp) {
    let ada = app.session("ada").await;
    of_one_instant(app, &ada, "viewed").await;
    let source = json!({"kind": "latest_event", "eventName": "viewed", "lookbackDays": 30});
    let spec = personalization(&source, &[("n", "number", "number")]);
    let content = json!({"title": "{{p.n}}", "personalization": spec});
    let found = preview(app, json!({"content": content})).await;
    assert_eq!(found["content"]["title"], "2", "{found}");
}
