//! Managing push campaigns (specification 2.5 and 4.4, contract 9).

use serde_json::{Value, json};
use tests::campaigns::{campaign_body, campaign_with, personalization};
use tests::session::text;
use tests::{TestApp, on_both_backends};

on_both_backends!(
    a_campaign_comes_back_as_it_was_made,
    campaigns_are_listed_newest_first,
    a_patch_merges_and_keeps_variants,
    an_expected_version_is_honoured,
    a_deleted_campaign_is_gone_and_what_it_queued_is_cancelled,
    what_breaks_the_contract_is_named_by_its_place,
    a_patch_removes_no_key_that_nothing_has,
    what_can_not_run_is_not_activated,
    an_app_has_at_most_1000_campaigns,
    people_are_divided_among_variants_by_weight,
    a_campaign_ends_by_itself,
);

async fn a_campaign_comes_back_as_it_was_made(app: &mut TestApp) {
    let body = campaign_with(&json!({
        "type": "push", "mode": "scheduled", "status": "draft", "description": "d", "priority": 3,
        "audience": {"samplePercent": 50}, "schedule": {"endAt": "2031-01-01T00:00:00.000Z"},
        "frequencyCap": {"perSubject": {"max": 1, "windowDays": 7}},
        "options": {"collapseKey": "k", "ttlSeconds": 60, "priority": "normal", "sound": "ding", "badge": 1,
            "imageUrl": "https://shop.example/a.png"},
        "variants": [{"title": "{{p.name}}", "body": "b", "weight": 2.5,
            "openAction": {"action": "json", "actionJson": {"order": "{{p.name}}"}},
            "personalization": personalization(&json!({"kind": "user_property", "label": "User"}), &[("name", "n", "string")])}],
    }));
    let made = app.create_campaign(&body).await.data(201);

    let id = text(&made, "id");
    assert_eq!(app.campaign_of(&id).await, made);
    for (key, value) in body.as_object().unwrap() {
        if key != "variants" {
            assert_eq!(made[key], *value, "{key}");
        }
    }
    assert_eq!(made["appId"], json!(app.access.app_id));
    assert_eq!(made["version"], 1);
    assert!(made["variants"][0]["id"].is_string());
    for key in ["title", "body", "weight", "openAction", "personalization"] {
        assert_eq!(made["variants"][0][key], body["variants"][0][key], "{key}");
    }
    assert_eq!(made["stats"]["sent"], 0);
    assert!(made["activatedAt"].is_null());
}

async fn campaigns_are_listed_newest_first(app: &mut TestApp) {
    let mut made = Vec::new();
    for _ in 0..3 {
        made.insert(0, app.campaign(&json!({})).await);
    }
    for query in ["", "?type=push"] {
        let path = app.path(&format!("/campaigns{query}"));
        let listed = app.get(&path, &app.viewer()).await.ok();
        let ids: Vec<String> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|it| text(it, "id"))
            .collect();
        assert_eq!(ids, made);
    }
    let path = app.path("/campaigns?type=email");
    app.get(&path, &app.viewer())
        .await
        .refused(422, "validation_failed");
}

async fn a_patch_merges_and_keeps_variants(app: &mut TestApp) {
    let made = app.create_campaign(&campaign_body()).await.data(201);
    let path = app.path(&format!("/campaigns/{}", text(&made, "id")));
    let changed = app
        .patch(&path, &app.editor(), &json!({"name": "New", "priority": 2}))
        .await
        .ok();
    assert_eq!(
        (&changed["name"], &changed["version"]),
        (&json!("New"), &json!(2))
    );
    assert_eq!(changed["variants"], made["variants"]);

    let variants = json!([{"title": "Other", "body": "text"}, {"title": "Second"}]);
    let changed = app
        .patch(&path, &app.editor(), &json!({"variants": variants}))
        .await
        .ok();
    assert_eq!(
        changed["variants"][0]["id"], made["variants"][0]["id"],
        "by its place"
    );
    assert_ne!(changed["variants"][1]["id"], made["variants"][0]["id"]);
    assert_eq!(changed["variants"][0]["title"], "Other");
    let removed = app
        .patch(
            &path,
            &app.editor(),
            &json!({"priority": null, "description": null}),
        )
        .await
        .ok();
    assert_eq!(removed["priority"], 0);
}

async fn an_expected_version_is_honoured(app: &mut TestApp) {
    let id = app.campaign(&json!({})).await;
    let path = app.path(&format!("/campaigns/{id}"));
    let expects = |version: &str| app.editor().and("if-match", version);
    app.patch(&path, &expects("\"2\""), &json!({"name": "a"}))
        .await
        .refused(412, "version_mismatch");
    app.patch(&path, &expects("\"1\""), &json!({"name": "a"}))
        .await
        .ok();
    app.patch(&path, &expects("\"1\""), &json!({"name": "b"}))
        .await
        .refused(412, "version_mismatch");
}

async fn a_deleted_campaign_is_gone_and_what_it_queued_is_cancelled(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    let id = app.campaign(&json!({"mode": "transactional"})).await;
    let path = app.path(&format!("/campaigns/{id}"));
    // Paused before the sender looks, so that the message waits.
    let queued = {
        let body = json!({"campaignId": id, "anonymousId": "ada"});
        let mut tx = app.services().db.write().await.unwrap();
        tx.sql("UPDATE campaigns SET status = 'paused'")
            .execute()
            .await
            .unwrap();
        tx.commit().await.unwrap();
        app.transactional(&body).await.data(202)
    };
    let delivery = text(&queued, "deliveryId");
    app.delete(&path, &app.editor()).await.data(204);

    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&path, &app.editor())
        .await
        .refused(404, "not_found");
    let ended = app.delivery(&delivery).await;
    // Either it was cancelled, or the sender was quicker than the deletion.
    assert!(
        ["cancelled", "sent", "failed"].contains(&ended["status"].as_str().unwrap()),
        "{ended}"
    );
    let ada = json!({"campaignId": id, "anonymousId": "ada"});
    app.transactional(&ada)
        .await
        .refused(404, "campaign_not_found");
}

async fn what_breaks_the_contract_is_named_by_its_place(app: &mut TestApp) {
    let variant = |parts: Value| json!({"variants": [parts]});
    let bound = |source: Value| {
        variant(
            json!({"title": "{{p.b}}", "personalization": personalization(&source, &[("b", "k", "number")])}),
        )
    };
    let many = |count: usize| json!({"variants": vec![json!({"title": "t"}); count]});
    for (parts, pointer, code) in [
        (json!({"name": ""}), "/name", "invalid"),
        (json!({"colour": 1}), "/colour", "unknown_key"),
        (
            variant(json!({"title": "t", "colour": 1})),
            "/variants/0/colour",
            "unknown_key",
        ),
        (json!({"mode": "later"}), "/mode", "invalid"),
        (
            variant(json!({"title": "{{p.b}}"})),
            "/variants/0/title",
            "unknown_binding",
        ),
        (
            variant(json!({"title": "{{ name }}"})),
            "/variants/0/title",
            "unknown_token",
        ),
        (
            variant(json!({"title": "t", "body": "{{"})),
            "/variants/0/body",
            "unknown_token",
        ),
        (
            bound(json!({"kind": "weather"})),
            "/variants/0/personalization/sources/0/kind",
            "unknown_kind",
        ),
        (
            bound(json!({"kind": "latest_event", "eventName": "e", "lookbackDays": 91})),
            "/variants/0/personalization/sources/0/lookbackDays",
            "out_of_range",
        ),
        (
            bound(
                json!({"kind": "latest_event", "eventName": "e", "lookbackDays": 1, "filters": {"all": [{"property": "a"}]}}),
            ),
            "/variants/0/personalization/sources/0/filters/all/0/type",
            "required",
        ),
        (
            variant(json!({"title": "t", "personalization": {"version": 2}})),
            "/variants/0/personalization/version",
            "unknown_version",
        ),
        (
            variant(
                json!({"title": "t", "personalization": {"version": 1, "plugin": "nobody",
            "sources": [], "bindings": []}}),
            ),
            "/variants/0/personalization/plugin",
            "unknown_plugin",
        ),
        (
            variant(json!({"title": "t", "weight": -1})),
            "/variants/0/weight",
            "out_of_range",
        ),
        (many(11), "/variants", "out_of_range"),
        (
            json!({"options": {"ttlSeconds": 2_419_201}}),
            "/options/ttlSeconds",
            "out_of_range",
        ),
        (
            json!({"options": {"colour": 1}}),
            "/options/colour",
            "unknown_key",
        ),
        (
            json!({"trigger": {"kind": "nonsense"}}),
            "/trigger/kind",
            "unknown_kind",
        ),
        (
            json!({"schedule": {"timezone": "Mars/Olympus"}}),
            "/schedule/timezone",
            "invalid",
        ),
    ] {
        let answer = app.create_campaign(&campaign_with(&parts)).await;
        let problem = answer.refused(422, "validation_failed");
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], pointer, "{parts}: {problem}");
        if code != "invalid" {
            assert_eq!(error["code"], code, "{parts}: {problem}");
        }
    }
    app.create_campaign(&campaign_with(&many(10)))
        .await
        .data(201);
}

async fn what_can_not_run_is_not_activated(app: &mut TestApp) {
    for (parts, pointer) in [
        (json!({"variants": []}), "/variants"),
        (
            json!({"variants": [{"title": " ", "body": ""}]}),
            "/variants/0/title",
        ),
        (
            json!({"variants": [{"title": "t", "weight": 0}]}),
            "/variants",
        ),
        (json!({"trigger": null}), "/trigger"),
    ] {
        let mut body = campaign_with(&parts);
        let refused = app.create_campaign(&body).await;
        refused.refused(422, "not_activatable");
        assert_eq!(refused.pointers(), [pointer]);

        body["status"] = json!("draft");
        let made = app.create_campaign(&body).await.data(201);
        let path = app.path(&format!("/campaigns/{}", text(&made, "id")));
        let refused = app
            .patch(&path, &app.editor(), &json!({"status": "active"}))
            .await;
        refused.refused(422, "not_activatable");
    }
    app.create_campaign(&campaign_with(
        &json!({"mode": "transactional", "trigger": null}),
    ))
    .await
    .data(201);
}

async fn an_app_has_at_most_1000_campaigns(app: &mut TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    let body = json!({"name": "n"}).to_string();
    for _ in 0..999 {
        tx.sql("INSERT INTO campaigns (id, app_id, kind, version, status, body, created_at, updated_at) VALUES ($1, $2, 'push', 1, 'draft', $3, 0, 0)")
            .bind(app.id()).bind(app.access.app_id).bind(body.clone())
            .execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    app.campaign(&json!({})).await;
    app.create_campaign(&campaign_body())
        .await
        .refused(422, "limit_exceeded");
}

async fn people_are_divided_among_variants_by_weight(app: &mut TestApp) {
    let variants = json!([{"title": "a", "weight": 1}, {"title": "b", "weight": 0}, {"title": "c", "weight": 1}]);
    let id = app.campaign(&json!({"variants": variants})).await;
    let campaign = app.campaign_of(&id).await;
    let mut found = std::collections::BTreeMap::new();
    for number in 0..40 {
        let someone = app.session(&format!("someone-{number}")).await;
        for _ in 0..2 {
            let event = app.event(&someone, "purchase", &json!({}));
            app.ingest(&someone, &[event]).await.ok();
        }
        app.settle().await;
        let path = format!("?subjectId={}", someone.subject_id);
        let variants: Vec<String> = app
            .deliveries(&path)
            .await
            .iter()
            .map(|it| text(it, "variantId"))
            .collect();
        assert_eq!(variants.len(), 2);
        assert_eq!(variants[0], variants[1], "a person keeps the variant");
        *found.entry(variants[0].clone()).or_insert(0) += 1;
    }
    let ids = |place: usize| text(&campaign["variants"][place], "id");
    assert_eq!(found.get(&ids(1)), None);
    // Of 40 both get some, but for one time in a million million.
    assert!(
        found.contains_key(&ids(0)) && found.contains_key(&ids(2)),
        "{found:?}"
    );
}

async fn a_campaign_ends_by_itself(app: &mut TestApp) {
    let id = app
        .campaign(&json!({"schedule": {"endAt": app.time(60)}}))
        .await;
    app.advance(61);
    app.until("the campaign goes on", async || {
        app.campaign_of(&id).await["status"] == "completed"
    })
    .await;
    assert_eq!(app.audited("campaign.completed").await.len(), 1);
}

async fn a_patch_removes_no_key_that_nothing_has(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let parts = json!({"trigger": trigger, "schedule": {"endAt": "2031-01-01T00:00:00.000Z"}});
    let campaign = format!("/campaigns/{}", app.campaign(&parts).await);
    let survey = format!("/surveys/{}", app.survey_with(&parts).await);
    let audience = json!({"include": {"kind": "platform", "in": ["ios"]}});
    let segment = crate::segments::segment(app, "s", audience).await;
    let segment = format!("/segments/{}", text(&segment, "id"));
    let refused = async |path: &str, patch: Value| {
        let answer = app.patch(&app.path(path), &app.editor(), &patch).await;
        let problem = answer.refused(422, "validation_failed");
        assert_eq!(problem["errors"][0]["code"], "unknown_key", "{problem}");
    };
    for path in [&campaign, &survey] {
        refused(path, json!({"schedule": {"endsAt": null}})).await;
        refused(path, json!({"trigger": {"eventname": null}})).await;
        refused(path, json!({"frequencyCap": {"typo": null}})).await;
        refused(path, json!({"audience": {"typo": null}})).await;
        let known = json!({
            "schedule": {"startAt": null, "endAt": null}, "frequencyCap": {"perSubject": null},
            "audience": {"samplePercent": null},
        });
        let answer = app.patch(&app.path(path), &app.editor(), &known).await;
        let changed = answer.ok();
        assert_eq!(changed["schedule"], json!({}), "{changed}");
        assert_eq!(changed["trigger"], trigger);
    }
    refused(&segment, json!({"audience": {"typo": null}})).await;
    refused(&segment, json!({"audience": {"include": {"typo": null}}})).await;
}
