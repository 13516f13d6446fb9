//! Which version decides: activation, candidates, roll-back, slots, names, the server's plugins (contract 12).

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{
    SERVER, activate, activate_at, by, decided, decides, deploy, deploy_misbehaving, name,
    set_slot, trigger, upload, version, versioned,
};

on_both_backends!(
    an_activation_decides_from_the_next_event_on,
    a_roll_back_brings_the_version_before_at_once,
    a_campaign_names_the_plugin_that_decides,
    a_campaign_that_cannot_be_decided_is_refused,
    campaigns_of_one_batch_have_their_own_plugins,
    a_plugin_that_fails_spoils_no_other,
    a_definition_names_the_plugin_that_validates,
    an_activation_that_breaks_a_campaign_is_refused,
    a_slot_that_breaks_a_campaign_is_refused,
    a_survey_can_be_stopped_whatever_its_plugin_says,
    a_campaign_whose_plugin_is_gone_takes_every_status_but_active,
    a_canary_decides_about_its_share_of_subjects,
    a_shadow_decides_nothing,
    a_candidate_is_promoted_or_given_up,
    a_roll_back_and_a_promotion_take_no_word_that_they_do_not_know,
    activations_that_cannot_be_are_refused,
    a_restart_keeps_what_is_active,
);

async fn roll_back(app: &TestApp, plugin: u32) -> tests::Answer {
    let path = app.path(&format!("/plugins/{}/rollback", name(plugin)));
    app.post(&path, &app.admin(), &json!({})).await
}

async fn an_activation_decides_from_the_next_event_on(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let built_in = decides(app, &ada, "purchase").await.unwrap();
    assert_eq!(built_in.0, "default-trigger");

    upload(app, versioned(1, 1)).await.data(201);
    let parts = json!({"version": version(1), "slot": true});
    let data = activate(app, 1, parts).await.ok();
    assert_eq!(data["name"], json!(name(1)));
    assert_eq!(data["activeVersion"], json!(version(1)));
    assert_eq!(data["rollout"]["strategy"], "instant");
    let since = data["rollout"]["since"].as_str().unwrap();
    assert!(app.time(-60).as_str() < since && since <= app.time(0).as_str());
    assert_eq!(decides(app, &ada, "purchase").await, by(1, 1));

    for number in 2..5 {
        deploy(app, 1, number).await;
        assert_eq!(decides(app, &ada, "purchase").await, by(1, number));
    }
    app.delete(&app.path("/plugin-slots/trigger"), &app.admin())
        .await
        .data(204);
    assert_eq!(decides(app, &ada, "purchase").await, Some(built_in));
}

async fn a_roll_back_brings_the_version_before_at_once(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;
    roll_back(app, 1).await.refused(409, "plugin_no_previous");
    deploy(app, 1, 2).await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));

    let data = roll_back(app, 1).await.ok();
    assert_eq!(data["activeVersion"], json!(version(1)));
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    roll_back(app, 1).await.refused(409, "plugin_no_previous");
    let path = app.path("/plugins/nobody/rollback");
    app.post(&path, &app.admin(), &json!({}))
        .await
        .refused(404, "not_found");
}

async fn a_campaign_names_the_plugin_that_decides(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let body = trigger(1, json!({"events": ["a"]}));
    let survey = app.survey(&body).await;
    let path = app.path(&format!("/surveys/{survey}"));
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["trigger"], body);
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    assert_eq!(decides(app, &ada, "b").await, None);

    let named = json!({"kind": "plugin", "plugin": "default-trigger",
        "config": {"trigger": {"kind": "event", "eventName": "b"}}});
    app.survey(&named).await;
    let built_in = decides(app, &ada, "b").await.unwrap();
    assert_eq!(built_in.0, "default-trigger");
}

async fn a_campaign_that_cannot_be_decided_is_refused(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    upload(app, versioned(2, 1)).await.data(201);
    let named = |plugin: &str| json!({"kind": "plugin", "plugin": plugin, "config": {}});
    for (parts, pointer, code) in [
        (
            json!({"trigger": named("nobody")}),
            "/trigger/plugin",
            "unknown_plugin",
        ),
        (
            json!({"trigger": named(&name(2))}),
            "/trigger/plugin",
            "unknown_plugin",
        ),
        (
            json!({"trigger": named("default-validation")}),
            "/trigger/plugin",
            "wrong_kind",
        ),
        (
            json!({"trigger": {"kind": "plugin"}}),
            "/trigger/plugin",
            "required",
        ),
        (
            json!({"trigger": {"kind": "plugin", "plugin": name(1), "delaySeconds": 1}}),
            "/trigger/delaySeconds",
            "unknown_key",
        ),
        (
            json!({"trigger": trigger(1, json!({})), "audience": {"include": {}}}),
            "/audience",
            "not_allowed",
        ),
        (
            json!({"trigger": trigger(1, json!({"since": 2_000_000}))}),
            "/trigger/config/since",
            "too_old",
        ),
    ] {
        let mut body = tests::session::survey_body();
        let parts = parts.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(parts);
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        let problem = answer.refused(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert_eq!(problem["errors"][0]["code"], code, "{problem}");
    }
}

async fn campaigns_of_one_batch_have_their_own_plugins(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 2, 7).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    app.survey(&trigger(2, json!({"events": ["a", "b"]}))).await;
    app.survey(&json!({"kind": "event", "eventName": "b"}))
        .await;
    let ada = app.session("ada").await;

    let events = [
        app.event(&ada, "b", &json!({})),
        app.event(&ada, "a", &json!({})),
        app.event(&ada, "c", &json!({})),
    ];
    app.ingest(&ada, &events).await.ok();

    let mut fired = decided(app).await;
    let order: Vec<String> = app
        .offered(&ada)
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|instruction| instruction["trigger"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order, ["b", "b", "a", "a"], "in the order of the events");
    fired.sort();
    let plugins: Vec<&str> = fired.iter().map(|(plugin, _)| plugin.as_str()).collect();
    let (one, two) = (name(1), name(2));
    assert_eq!(
        plugins,
        ["default-trigger", one.as_str(), two.as_str(), two.as_str()]
    );
}

async fn a_plugin_that_fails_spoils_no_other(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy_misbehaving(app).await;
    let broken = json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "trap"}});
    app.survey(&broken).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;

    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    let letters: Vec<(String, String, String)> = app
        .rows("SELECT reason, plugin_name, plugin_version FROM dead_letters")
        .await;
    let expected = ["trap", "misbehaving", "1.0.0"].map(str::to_owned);
    assert_eq!(letters, [<(String, String, String)>::from(expected)]);
}

async fn a_definition_names_the_plugin_that_validates(app: &mut TestApp) {
    upload(app, test_guests::STRICT.to_vec()).await.data(201);
    let validator = |config: Value| json!({"plugin": "strict", "config": config});
    let define = async |parts: Value| {
        app.post(&app.path("/event-definitions"), &app.editor(), &parts)
            .await
    };
    let body = json!({"name": "paid", "validator": validator(json!({"forbidden": "card"}))});
    let answer = define(body.clone()).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/validator/plugin"]);
    let root = app.path("");
    activate_at(
        app,
        &root,
        &app.admin(),
        "strict",
        json!({"version": "0.1.0"}),
    )
    .await
    .ok();
    let answer = define(json!({"name": "paid", "validator": validator(json!({}))})).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/validator/config/forbidden"]);

    let made = define(body.clone()).await.data(201);
    assert_eq!(made["validator"], body["validator"]);
    app.define(
        "seen",
        &json!({"properties": [{"name": "page", "type": "string", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "paid", &json!({"card": "4111"})),
        app.event(&ada, "seen", &json!({})),
        app.event(&ada, "paid", &json!({"total": 1})),
        app.event(&ada, "seen", &json!({"page": "p"})),
    ];
    let data = app.ingest(&ada, &events).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(2), &json!(2))
    );
    let letters: Vec<(String, String, String)> = app
        .rows("SELECT event_name, reason, plugin_name FROM dead_letters ORDER BY event_name")
        .await;
    let expected = [
        ("paid", "forbidden_property", "strict"),
        ("seen", "missing_required_property", "default-validation"),
    ]
    .map(|(event, reason, plugin)| (event.to_owned(), reason.to_owned(), plugin.to_owned()));
    assert_eq!(letters, expected);

    let path = app.path(&format!(
        "/event-definitions/{}",
        made["id"].as_str().unwrap()
    ));
    app.patch(&path, &app.editor(), &json!({"validator": null}))
        .await
        .ok();
    let event = app.event(&ada, "paid", &json!({"card": "4111"}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["accepted"], 1);
}

async fn an_activation_that_breaks_a_campaign_is_refused(app: &mut TestApp) {
    deploy(app, 1, 2).await;
    let survey = app
        .survey(&trigger(1, json!({"events": ["a"], "since": 1_000_002})))
        .await;
    upload(app, versioned(1, 1)).await.data(201);
    for parts in [
        json!({"version": version(1)}),
        json!({"version": version(1), "strategy": "shadow"}),
        json!({"version": version(1), "strategy": "canary", "percent": 1}),
    ] {
        let answer = activate(app, 1, parts).await;
        let problem = answer.refused(422, "plugin_rejected");
        let pointer = format!("/surveys/{survey}/trigger/config/since");
        assert_eq!(answer.pointers(), [pointer], "{problem}");
    }
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));

    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    activate(app, 1, json!({"version": version(1)})).await.ok();
}

async fn a_slot_that_breaks_a_campaign_is_refused(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
    // Nothing that the built-in plugin would accept.
    let survey = app.survey(&json!({"eventName": "a", "mine": true})).await;
    let slot = app.path("/plugin-slots/trigger");
    for answer in [
        app.delete(&slot, &app.admin()).await,
        set_slot(app, "default-trigger").await,
    ] {
        answer.refused(422, "plugin_rejected");
        let pointers = answer.pointers();
        let below = format!("/surveys/{survey}/trigger");
        assert!(
            pointers.iter().all(|pointer| pointer.starts_with(&below)),
            "{pointers:?}"
        );
    }
    for (plugin, code) in [
        ("nobody", "unknown_plugin"),
        ("default-validation", "wrong_kind"),
    ] {
        let problem = set_slot(app, plugin)
            .await
            .refused(422, "validation_failed");
        assert_eq!(problem["errors"][0]["code"], code);
    }
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    let slots = app
        .get(&app.path("/plugin-slots"), &app.viewer())
        .await
        .ok();
    let expected =
        json!({"kind": "trigger", "plugin": name(1), "version": version(1), "scope": "app"});
    assert_eq!(slots[0], expected);
    assert_eq!(slots[2]["plugin"], "default-validation");
    let unknown = app.path("/plugin-slots/nothing");
    app.delete(&unknown, &app.admin())
        .await
        .refused(404, "not_found");
}

async fn a_survey_can_be_stopped_whatever_its_plugin_says(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    let survey = app
        .survey(&trigger(1, json!({"events": ["a"], "since": 1_000_002})))
        .await;
    roll_back(app, 1).await.ok();
    let ada = app.session("ada").await;
    assert_eq!(
        decides(app, &ada, "a").await,
        None,
        "the older version refuses it"
    );

    let path = app.path(&format!("/surveys/{survey}"));
    let body = json!({"status": "paused"});
    app.patch(&path, &app.editor(), &body).await.ok();
    let body = json!({"status": "active"});
    let answer = app.patch(&path, &app.editor(), &body).await;
    answer.refused(422, "validation_failed");
}

/// Contract 7: every status may be set from every status.
async fn a_campaign_whose_plugin_is_gone_takes_every_status_but_active(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    upload(app, test_guests::GREETER.to_vec()).await.data(201);
    let root = app.path("");
    let parts = json!({"version": "0.1.0"});
    activate_at(app, &root, &app.admin(), "greeter", parts)
        .await
        .ok();
    let spec = json!({"version": 1, "plugin": "greeter", "sources": [{"id": "s", "kind": "user_property"}],
        "bindings": [{"id": "name", "sourceId": "s", "key": "k", "type": "string"}]});
    let variant = json!({"title": "Hi", "body": "there", "weight": 1, "personalization": spec});
    let named = json!({"trigger": trigger(1, json!({"events": ["a"]}))});
    let survey = app.survey_with(&named).await;
    let push = app.campaign(&named).await;
    let greeting = app.campaign(&json!({"variants": [variant]})).await;
    let message = json!({"type": "in_app", "variants": [{"layout": "modal", "title": "Hi", "body": "there"}],
        "trigger": named["trigger"]});
    let message = app.campaign(&message).await;
    let mut paths = vec![app.path(&format!("/surveys/{survey}"))];
    let campaigns = [push, greeting, message];
    paths.extend(campaigns.map(|id| app.path(&format!("/campaigns/{id}"))));
    let set = async |path: &str, status: &str| {
        app.patch(path, &app.editor(), &json!({"status": status}))
            .await
    };
    for path in &paths {
        set(path, "archived").await.ok();
    }
    for plugin in [name(1), "greeter".to_owned()] {
        let path = app.path(&format!("/plugins/{plugin}"));
        app.delete(&path, &app.admin()).await.data(204);
    }
    for path in &paths {
        for status in ["draft", "paused", "draft", "completed", "draft"] {
            assert_eq!(set(path, status).await.ok()["status"], status, "{path}");
        }
        set(path, "active").await.refused(422, "validation_failed");
    }
}

async fn a_canary_decides_about_its_share_of_subjects(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    upload(app, versioned(1, 2)).await.data(201);
    let parts = json!({"version": version(2), "strategy": "canary", "percent": 40});
    let data = activate(app, 1, parts).await.ok();
    assert_eq!(data["activeVersion"], json!(version(1)));
    let rollout = &data["rollout"];
    assert_eq!(
        (&rollout["strategy"], &rollout["percent"]),
        (&json!("canary"), &json!(40))
    );
    assert_eq!(rollout["candidateVersion"], json!(version(2)));

    let mut sessions = Vec::new();
    for number in 0..30 {
        sessions.push(app.session(&format!("subject {number}")).await);
    }
    let mut in_canary = 0;
    for session in &sessions {
        let id = Uuid::parse_str(&session.subject_id).unwrap();
        let candidate = nudge_plugin_runtime::rollout::in_canary(&name(1), id, 40);
        let number = if candidate { 2 } else { 1 };
        assert_eq!(decides_for(app, session).await, by(1, number));
        in_canary += u32::from(candidate);
    }
    assert!((1..30).contains(&in_canary), "{in_canary}");
}

/// Sends an event `a` and answers who decided about it.
async fn decides_for(app: &TestApp, session: &tests::Session) -> Option<(String, String)> {
    assert_eq!(app.fires(session, "a", &json!({})).await, 1);
    let id = Uuid::parse_str(&session.subject_id).unwrap();
    let rows: Vec<(Uuid, String, String)> = app
        .rows("SELECT subject_id, plugin_name, plugin_version FROM instructions")
        .await;
    let mut own = rows.into_iter().filter(|(subject, _, _)| *subject == id);
    own.next().map(|(_, plugin, version)| (plugin, version))
}

async fn a_shadow_decides_nothing(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    upload(app, versioned(1, 2)).await.data(201);
    let data = activate(app, 1, json!({"version": version(2), "strategy": "shadow"}))
        .await
        .ok();
    assert_eq!(data["rollout"]["strategy"], "shadow");
    assert!(data["rollout"].get("percent").is_none());
    for number in 0..5 {
        let session = app.session(&format!("subject {number}")).await;
        assert_eq!(decides_for(app, &session).await, by(1, 1));
    }
}

async fn a_candidate_is_promoted_or_given_up(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;
    let promote = app.path(&format!("/plugins/{}/promote", name(1)));
    let answer = app.post(&promote, &app.admin(), &json!({})).await;
    answer.refused(409, "plugin_no_candidate");
    upload(app, versioned(1, 2)).await.data(201);
    let shadow = json!({"version": version(2), "strategy": "shadow"});

    activate(app, 1, shadow.clone()).await.ok();
    let data = roll_back(app, 1).await.ok();
    assert_eq!(data["activeVersion"], json!(version(1)));
    assert_eq!(data["rollout"]["strategy"], "instant");
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    let entries = app.audited("plugin.rolled_back").await;
    let detail = |part: &str| entries[0]["detail"][part].clone();
    assert_eq!(
        [detail("from"), detail("candidate")],
        [json!(version(1)), json!(version(2))]
    );

    activate(app, 1, shadow).await.ok();
    let data = app.post(&promote, &app.admin(), &json!({})).await.ok();
    assert_eq!(data["activeVersion"], json!(version(2)));
    assert_eq!(data["rollout"]["previousVersion"], json!(version(1)));
    assert!(data["rollout"].get("candidateVersion").is_none());
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));
}

async fn a_roll_back_and_a_promotion_take_no_word_that_they_do_not_know(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    let own = app.path("/plugins");
    let servers = format!("{SERVER}/plugins");
    for (plugins, credential) in [(&own, app.admin()), (&servers, app.operator())] {
        for verb in ["rollback", "promote"] {
            let path = format!("{plugins}/{}/{verb}", name(1));
            let answer = app
                .post(&path, &credential, &json!({"version": "9.9.9"}))
                .await;
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), ["/version"], "{path}");
            app.post_raw(&path, &credential, "not json")
                .await
                .refused(400, "malformed_json");
        }
    }
    let path = app.path(&format!("/plugins/{}", name(1)));
    let shown = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(shown["activeVersion"], json!(version(2)));
    // No body is as good as an empty object.
    let back = app
        .post_raw(&format!("{path}/rollback"), &app.admin(), "")
        .await
        .ok();
    assert_eq!(back["activeVersion"], json!(version(1)));
}

async fn activations_that_cannot_be_are_refused(app: &mut TestApp) {
    upload(app, versioned(1, 1)).await.data(201);
    upload(app, versioned(1, 2)).await.data(201);
    let one = version(1);
    for unknown in ["9.9.9", "9.9.9\0"] {
        activate(app, 1, json!({"version": unknown}))
            .await
            .refused(404, "not_found");
    }
    activate(app, 9, json!({"version": one}))
        .await
        .refused(404, "not_found");
    for (parts, pointer) in [
        (json!({"version": one, "strategy": "shadow"}), "/strategy"),
        (json!({"version": one, "percent": 5}), "/percent"),
        (
            json!({"version": one, "strategy": "shadow", "percent": 5}),
            "/percent",
        ),
        (json!({"version": one, "strategy": "canary"}), "/percent"),
        (
            json!({"version": one, "strategy": "canary", "percent": 0}),
            "/percent",
        ),
        (
            json!({"version": one, "strategy": "canary", "percent": 101}),
            "/percent",
        ),
        (
            json!({"version": one, "strategy": "canary", "percent": 1000}),
            "/percent",
        ),
        (
            json!({"version": one, "strategy": "canary", "percent": -1}),
            "/percent",
        ),
        (
            json!({"version": one, "strategy": "canary", "percent": 1.5}),
            "/percent",
        ),
        (
            json!({"version": one, "strategy": "canary", "percent": "5"}),
            "/percent",
        ),
        (json!({"version": one, "strategy": "slowly"}), "/strategy"),
        (json!({"version": one, "colour": 1}), "/colour"),
    ] {
        let answer = activate(app, 1, parts.clone()).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{parts}");
    }
    activate(app, 1, json!({"version": one})).await.ok();
    for percent in [1, 100] {
        let parts = json!({"version": version(2), "strategy": "canary", "percent": percent});
        activate(app, 1, parts).await.ok();
    }
    let answer = activate(app, 1, json!({"version": one, "strategy": "shadow"})).await;
    answer.refused(422, "validation_failed");
}

async fn a_restart_keeps_what_is_active(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;
    app.restart().await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));
    roll_back(app, 1).await.ok();

    // Without anything compiled, it is compiled again.
    let empty = tempfile::tempdir().unwrap();
    empty.path().clone_into(&mut app.config.plugins.cache_dir);
    app.restart().await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    app.stop().await;
    app.resume().await;
}
