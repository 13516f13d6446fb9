//! Updates of properties, on both routes (specification 4.1, contract 5).

use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{Credential, Session, TestApp, on_both_backends};

on_both_backends!(
    an_update_sets_and_removes,
    an_update_that_is_sent_again_changes_nothing,
    a_mutation_id_stands_for_one_update_of_one_person,
    what_is_no_update_is_refused,
    limits_are_inclusive,
    an_sdk_updates_its_own_subject_only,
    a_backend_names_exactly_one_person,
    an_api_token_works_in_its_workspace,
    consent_is_required,
    the_privacy_policy_takes_keys_out,
    concurrent_updates_lose_nothing,
    concurrent_retries_are_applied_once,
    updates_survive_a_restart,
    updates_are_remembered_for_a_month,
    a_person_has_at_most_a_thousand_properties,
);

const SDK: &str = "/v1/sdk/user-properties";

async fn sdk(app: &TestApp, session: &Session, update: Value) -> Answer {
    let mut body = json!({"anonymousId": session.anonymous_id, "mutationId": app.id()});
    body.as_object_mut()
        .unwrap()
        .extend(update.as_object().unwrap().clone());
    app.post(SDK, &session.credential(), &body).await
}

async fn api(app: &TestApp, subject: Value, update: Value) -> Answer {
    let mut full = json!({"mutationId": app.id()});
    full.as_object_mut()
        .unwrap()
        .extend(update.as_object().unwrap().clone());
    let token = Credential::bearer(&app.access.api_token);
    let body = json!({"subject": subject, "update": full});
    app.patch(&app.path("/users/properties"), &token, &body)
        .await
}

/// A person's properties as a flat map.
async fn saved(app: &TestApp, id: &str) -> Value {
    let user = app
        .get(&app.path(&format!("/users/{id}")), &app.viewer())
        .await
        .ok();
    let properties = user["properties"].as_array().unwrap();
    properties
        .iter()
        .map(|property| (text(property, "key"), property["value"].clone()))
        .collect()
}

async fn an_update_sets_and_removes(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let set = json!({"text": "ö\"\u{0}", "number": 1.5, "big": 9_007_199_254_740_993_i64, "yes": true, "none": null});
    let data = sdk(app, &ada, json!({"set": set})).await.ok();
    assert_eq!(data, json!({"applied": true, "filteredKeys": []}));
    assert_eq!(saved(app, "ada").await, set);

    let update = json!({"set": {"text": "x", "new": 0}, "unset": ["yes", "number", "unknown"]});
    let data = api(app, json!({"anonymousId": "ada"}), update).await.ok();
    assert_eq!(data, json!({"applied": true, "filteredKeys": []}));
    let expected = json!({"text": "x", "new": 0, "big": 9_007_199_254_740_993_i64, "none": null});
    assert_eq!(saved(app, "ada").await, expected);
    let user = app.get(&app.path("/users/ada"), &app.viewer()).await.ok();
    for property in user["properties"].as_array().unwrap() {
        let by_api = ["text", "new"].contains(&property["key"].as_str().unwrap());
        assert_eq!(property["source"], if by_api { "api" } else { "sdk" });
    }
    // Removing what is not there is an update like any other.
    let data = sdk(app, &ada, json!({"unset": ["unknown"]})).await.ok();
    assert_eq!(data["applied"], true);
}

async fn an_update_that_is_sent_again_changes_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let id = app.id();
    let first = json!({"mutationId": id, "set": {"a": 1, "b": "x"}, "unset": ["c", "d"]});
    assert_eq!(sdk(app, &ada, first.clone()).await.ok()["applied"], true);
    sdk(app, &ada, json!({"set": {"a": 2}})).await.ok();

    // By value: neither order nor the way in which a number is written matters.
    let again = json!({"set": {"b": "x", "a": 1.0}, "unset": ["d", "c", "d"], "mutationId": id});
    for update in [first.clone(), again] {
        let data = sdk(app, &ada, update).await.ok();
        assert_eq!(data, json!({"applied": false, "filteredKeys": []}));
    }
    let data = api(app, json!({"anonymousId": "ada"}), first).await.ok();
    assert_eq!(data["applied"], false);
    assert_eq!(saved(app, "ada").await, json!({"a": 2, "b": "x"}));
}

async fn a_mutation_id_stands_for_one_update_of_one_person(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    let id = app.id();
    let update = json!({"mutationId": id, "set": {"a": 1}});
    sdk(app, &ada, update.clone()).await.ok();

    for changed in [
        json!({"set": {"a": 2}}),
        json!({"set": {"b": 1}}),
        json!({"set": {"a": "1"}}),
        json!({"set": {"a": 1, "b": 1}}),
        json!({"set": {"a": 1}, "unset": ["b"]}),
        json!({"set": {}, "unset": ["a"]}),
    ] {
        let mut changed = changed;
        changed["mutationId"] = json!(id);
        sdk(app, &ada, changed.clone())
            .await
            .refused(409, "mutation_conflict");
        api(app, json!({"anonymousId": "ada"}), changed)
            .await
            .refused(409, "mutation_conflict");
    }
    sdk(app, &bob, update.clone())
        .await
        .refused(409, "mutation_conflict");
    let reference = json!({"subjectId": ada.subject_id});
    api(app, reference, update)
        .await
        .refused(409, "mutation_conflict");
    assert_eq!(saved(app, "ada").await, json!({"a": 1}));
    assert_eq!(saved(app, "bob").await, json!({}));
}

async fn what_is_no_update_is_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for (update, status, code) in [
        (json!({}), 422, "empty_update"),
        (json!({"set": {}, "unset": []}), 422, "empty_update"),
        (json!({"set": null, "unset": null}), 422, "empty_update"),
        (
            json!({"set": {"a": 1, "b": 2}, "unset": ["c", "b"]}),
            422,
            "key_in_set_and_unset",
        ),
        (json!({"set": {"a": []}}), 422, "validation_failed"),
        (json!({"set": {"a": {"b": 1}}}), 422, "validation_failed"),
        (json!({"set": {"": 1}}), 422, "validation_failed"),
        (json!({"set": {"a\u{0}": 1}}), 422, "validation_failed"),
        (json!({"set": [], "unset": ["a"]}), 422, "validation_failed"),
        (json!({"unset": "a"}), 422, "validation_failed"),
        (json!({"unset": [1]}), 422, "validation_failed"),
        (
            json!({"set": {"a": 1}, "mutationId": "x"}),
            422,
            "validation_failed",
        ),
        (
            json!({"set": {"a": 1}, "mutationId": null}),
            422,
            "validation_failed",
        ),
    ] {
        sdk(app, &ada, update.clone()).await.refused(status, code);
        api(app, json!({"anonymousId": "ada"}), update.clone())
            .await
            .refused(status, code);
    }
    let both = json!({"set": {"a": 1, "b": 2}, "unset": ["c", "b"]});
    assert_eq!(sdk(app, &ada, both.clone()).await.pointers(), ["/unset/1"]);
    let answer = api(app, json!({"anonymousId": "ada"}), both).await;
    assert_eq!(answer.pointers(), ["/update/unset/1"]);
    let raw = format!(
        r#"{{"anonymousId": "ada", "mutationId": "{}", "set": {{"a": 1e400}}}}"#,
        app.id()
    );
    let answer = app.post_raw(SDK, &ada.credential(), raw).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/set/a"]);
    app.post_raw(SDK, &ada.credential(), "{")
        .await
        .refused(400, "malformed_json");

    // An SDK may be newer than the server; a backend's typo is told.
    sdk(app, &ada, json!({"set": {"a": 1}, "later": true}))
        .await
        .ok();
    let answer = api(
        app,
        json!({"anonymousId": "ada"}),
        json!({"set": {"a": 1}, "later": true}),
    )
    .await;
    assert_eq!(
        answer.refused(422, "validation_failed")["errors"][0]["code"],
        "unknown_key"
    );
    assert_eq!(saved(app, "ada").await, json!({"a": 1}));
}

async fn limits_are_inclusive(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let keys =
        |count: usize| -> Vec<String> { (0..count).map(|number| format!("k{number}")).collect() };
    let set =
        |count: usize| -> Value { keys(count).into_iter().map(|key| (key, json!(1))).collect() };
    let long = |length: usize| "ü".repeat(length);

    for update in [
        json!({"set": set(64)}),
        json!({"unset": keys(64)}),
        json!({"set": {long(120): 1}}),
        json!({"unset": [long(120)]}),
        json!({"set": {"a": long(8_192)}}),
    ] {
        assert_eq!(sdk(app, &ada, update).await.ok()["applied"], true);
    }
    for update in [
        json!({"set": set(65)}),
        json!({"unset": keys(65)}),
        json!({"set": {long(121): 1}}),
        json!({"unset": [long(121)]}),
        json!({"set": {"a": long(8_193)}}),
    ] {
        sdk(app, &ada, update.clone())
            .await
            .refused(422, "limit_exceeded");
        api(app, json!({"anonymousId": "ada"}), update)
            .await
            .refused(422, "limit_exceeded");
    }
}

async fn an_sdk_updates_its_own_subject_only(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.session("bob").await;
    for other in ["bob", "nobody"] {
        let body = json!({"anonymousId": other, "mutationId": app.id(), "set": {"a": 1}});
        app.post(SDK, &ada.credential(), &body)
            .await
            .refused(403, "subject_mismatch");
    }
    app.post(SDK, &app.sdk(), &json!({}))
        .await
        .refused(401, "subject_token_required");
    app.end(&ada, &json!({})).await.data(204);
    sdk(app, &ada, json!({"set": {"a": 1}}))
        .await
        .refused(401, "subject_token_expired");
    assert_eq!(saved(app, "bob").await, json!({}));
}

async fn a_backend_names_exactly_one_person(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let events = json!([{"name": "opened", "timestamp": app.time(0)}]);
    let body = json!({"userId": "e-1", "events": events});
    app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    let update = || json!({"set": {"a": 1}});

    for subject in [
        json!({"anonymousId": "ada"}),
        json!({"externalId": "e-1"}),
        json!({"subjectId": ada.subject_id}),
    ] {
        assert_eq!(api(app, subject, update()).await.ok()["applied"], true);
    }
    assert_eq!(saved(app, "e-1").await, json!({"a": 1}));
    for subject in [
        json!({}),
        json!({"anonymousId": "ada", "externalId": "e-1"}),
        json!({"subjectId": "x"}),
        json!({"userId": "e-1"}),
        json!({"anonymousId": 7}),
        json!("ada"),
    ] {
        api(app, subject, update())
            .await
            .refused(422, "validation_failed");
    }
    for subject in [
        json!({"anonymousId": "e-1"}),
        json!({"externalId": "ada"}),
        json!({"subjectId": app.id()}),
        json!({"anonymousId": "a\u{0}"}),
    ] {
        api(app, subject, update())
            .await
            .refused(404, "subject_not_found");
    }
}

async fn an_api_token_works_in_its_workspace(app: &mut TestApp) {
    let update = json!({"subject": {"anonymousId": "theirs"}, "update": {"mutationId": app.id(), "set": {"a": 1}}});
    let mut paths = Vec::new();
    for workspace in [app.access.workspace_id, app.id()] {
        let (other, key) = app.another_app(workspace, Kind::Write, &[]).await;
        let body = json!({"anonymousId": "theirs"});
        app.post("/v1/sdk/session", &Credential::bearer(&key), &body)
            .await
            .ok();
        paths.push(format!("/v1/apps/{other}/users/properties"));
    }
    let token = Credential::bearer(&app.access.api_token);
    assert_eq!(
        app.patch(&paths[0], &token, &update).await.ok()["applied"],
        true
    );
    app.patch(&paths[1], &token, &update)
        .await
        .refused(404, "not_found");
    app.patch("/v1/apps/x/users/properties", &token, &update)
        .await
        .refused(404, "not_found");

    let path = app.path("/users/properties");
    for wrong in [
        app.admin(),
        app.sdk(),
        app.backend(),
        Credential::bearer(&app.key(Kind::Api, &[]).await),
    ] {
        app.patch(&path, &wrong, &update)
            .await
            .refused(403, "insufficient_scope");
    }
}

async fn consent_is_required(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let give = async |analytics: bool| {
        let body = json!({"anonymousId": "ada", "analytics": analytics});
        app.post("/v1/sdk/consent", &ada.credential(), &body)
            .await
            .ok();
    };
    give(false).await;
    sdk(app, &ada, json!({"set": {"a": 1}}))
        .await
        .refused(403, "consent_required");
    api(app, json!({"anonymousId": "ada"}), json!({"set": {"a": 1}}))
        .await
        .refused(403, "consent_required");
    give(true).await;
    sdk(app, &ada, json!({"set": {"a": 1}})).await.ok();
    app.set(|settings| settings.consent.required = true).await;
    let bob = app.session("bob").await;
    sdk(app, &bob, json!({"set": {"a": 1}}))
        .await
        .refused(403, "consent_required");
    assert_eq!(saved(app, "bob").await, json!({}));
}

async fn the_privacy_policy_takes_keys_out(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let subject = || json!({"anonymousId": "ada"});
    sdk(app, &ada, json!({"set": {"ssn": "before"}})).await.ok();
    app.set(|settings| {
        settings.privacy.deny_keys = vec!["ssn".to_owned()];
        settings.privacy.allow_keys = Some(vec!["plan".to_owned(), "ssn".to_owned()]);
    })
    .await;

    let update = json!({"set": {"ssn": "1", "plan": "pro", "SSN": 1}, "unset": ["other"]});
    let data = sdk(app, &ada, update.clone()).await.ok();
    assert_eq!(data, json!({"applied": true, "filteredKeys": ["ssn"]}));
    assert_eq!(
        saved(app, "ada").await,
        json!({"ssn": "before", "plan": "pro", "SSN": 1})
    );
    let data = api(app, subject(), update).await.ok();
    assert_eq!(
        data,
        json!({"applied": true, "filteredKeys": ["SSN", "other", "ssn"]})
    );

    let id = app.id();
    let nothing = json!({"mutationId": id, "set": {"ssn": "2"}, "unset": ["x"]});
    for _ in 0..2 {
        let data = api(app, subject(), nothing.clone()).await.ok();
        assert_eq!(
            data,
            json!({"applied": false, "filteredKeys": ["ssn", "x"]})
        );
    }
    let data = sdk(app, &ada, json!({"unset": ["ssn"]})).await.ok();
    assert_eq!(data, json!({"applied": false, "filteredKeys": ["ssn"]}));
    // What was filtered is remembered all the same.
    let other = json!({"mutationId": id, "set": {"ssn": "3"}});
    api(app, subject(), other)
        .await
        .refused(409, "mutation_conflict");
}

async fn concurrent_updates_lose_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&json!({"kind": "property_changed", "key": "shared"}))
        .await;
    let updates = (0..50).map(|number| {
        let (app, ada) = (&*app, &ada);
        async move {
            // Events of the same person go through the pipeline meanwhile.
            let event = app.event(ada, "opened", &json!({}));
            let (sent, updated) = tokio::join!(
                app.ingest(ada, std::slice::from_ref(&event)),
                sdk(
                    app,
                    ada,
                    json!({"set": {format!("k{number}"): number, "shared": number}})
                ),
            );
            sent.ok();
            assert_eq!(updated.ok()["applied"], true);
        }
    });
    futures_util::future::join_all(updates).await;
    app.settle().await;

    let saved = saved(app, "ada").await;
    for number in 0..50 {
        assert_eq!(saved[format!("k{number}")], number);
    }
    assert!((0..50).any(|number| saved["shared"] == number));
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(50,)]);
    let fired: Vec<(i64,)> = app.rows("SELECT count(*) FROM instructions").await;
    assert_eq!(fired, [(50,)]);
}

async fn concurrent_retries_are_applied_once(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let update = json!({"mutationId": app.id(), "set": {"a": 1}});
    let retries = (0..20).map(|_| sdk(app, &ada, update.clone()));
    let answers = futures_util::future::join_all(retries).await;
    let applied = answers
        .iter()
        .filter(|answer| answer.ok()["applied"] == true)
        .count();
    assert_eq!(applied, 1);
}

async fn updates_survive_a_restart(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let update = json!({"mutationId": app.id(), "set": {"a": 1}});
    sdk(app, &ada, update.clone()).await.ok();
    app.restart().await;
    assert_eq!(saved(app, "ada").await, json!({"a": 1}));
    assert_eq!(sdk(app, &ada, update).await.ok()["applied"], false);
}

async fn updates_are_remembered_for_a_month(app: &mut TestApp) {
    let ada = app.session("ada").await;
    sdk(app, &ada, json!({"set": {"a": 1}})).await.ok();
    let remembered = async || {
        let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM property_mutations").await;
        rows[0].0
    };
    app.advance(30 * 24 * 3600 - 3600);
    let ada = app.session("ada").await;
    sdk(app, &ada, json!({"set": {"a": 2}})).await.ok();
    assert_eq!(remembered().await, 2);
    app.advance(2 * 3600);
    app.until("the older one is not forgotten", async || {
        remembered().await == 1
    })
    .await;
}

async fn a_person_has_at_most_a_thousand_properties(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let update = |from: usize, to: usize| -> Value {
        let set: Value = (from..to)
            .map(|number| (format!("k{number}"), json!(number)))
            .collect();
        json!({"set": set})
    };
    for from in (0..960).step_by(60) {
        sdk(app, &ada, update(from, from + 60)).await.ok();
    }
    sdk(app, &ada, update(960, 1_000)).await.ok();
    let one_more = json!({"set": {"more": 1}});
    sdk(app, &ada, one_more.clone())
        .await
        .refused(422, "limit_exceeded");
    sdk(app, &ada, update(0, 10)).await.ok();
    sdk(app, &ada, json!({"set": {"more": 1}, "unset": ["k0"]}))
        .await
        .ok();
    assert_eq!(saved(app, "ada").await.as_object().unwrap().len(), 100);
    let stored: Vec<(i64,)> = app.rows("SELECT count(*) FROM subject_properties").await;
    assert_eq!(stored, [(1_000,)]);
}
