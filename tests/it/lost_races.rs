//! Transactions that the database ends because they wait for each other: no client hears of them.

use std::time::Duration;

use nudge_db::Tx;
use serde_json::json;
use tests::campaigns::personalization;
use tests::session::{survey_body, text};
use tests::{Backend, TestApp, site};

use crate::attempts::{answer, end, forked, link_survey, start};
use crate::guests::{activate, deploy, name, set_slot, trigger, upload, version, versioned};

async fn somebody_waits_for_a_lock(app: &TestApp) {
    app.until_locked(1, "%").await;
}

/// A request finds a person by a name; before it holds the row, the person becomes part of another, as by a session with an
/// identity token. The deletion and the export are that one's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_merged_meanwhile_is_deleted_nevertheless() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let into = app.session("survivor").await;
    for (name, route) in [("first", "export"), ("second", "delete")] {
        let merged = app.session(name).await;
        let mut merge = app.services().db.write().await.unwrap();
        for statement in [
            "UPDATE aliases SET subject_id = $3 WHERE app_id = $1 AND subject_id = $2",
            "DELETE FROM subjects WHERE app_id = $1 AND id = $2 AND id <> $3",
        ] {
            let changed = merge
                .sql(statement)
                .bind(app.access.app_id)
                .bind(merged.subject_id.parse::<uuid::Uuid>().unwrap())
                .bind(into.subject_id.parse::<uuid::Uuid>().unwrap())
                .execute()
                .await
                .unwrap();
            assert_eq!(changed, 1);
        }
        let path = app.path(&format!("/gdpr/{route}"));
        let (body, admin) = (json!({"anonymousId": name}), app.admin());
        let request = app.post(&path, &admin, &body);
        let end = async {
            somebody_waits_for_a_lock(&app).await;
            merge.commit().await.unwrap();
        };
        let (answer, ()) = tokio::join!(request, end);
        let answer = answer.data(202);
        if route == "delete" {
            crate::deletion::deleted(&app, &text(&answer, "jobId")).await;
        }
    }
    let left: Vec<(i64,)> = app.rows("SELECT count(*) FROM subjects").await;
    assert_eq!(left[0].0, 0);
    app.finish().await;
}

/// A look at the run of a campaign that is over removes what is left of it. The campaign is active again before it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_goes_on_again_loses_nothing_to_an_old_look() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let ada = app.session("ada").await;
    let id = crate::runs::scheduled(&app, crate::runs::daily("UTC")).await;
    let app_id = app.access.app_id;
    // No look is put off for longer than three minutes.
    let later = app.services().clock.now().plus(Duration::from_mins(2));
    let mut left = app.services().db.write().await.unwrap();
    for (statement, at) in [
        ("UPDATE campaigns SET status = 'completed' WHERE app_id = $1 AND id = $2 AND $3 > 0", later),
        ("UPDATE campaign_runs SET next_at = NULL, look_at = $3 WHERE app_id = $1 AND campaign_id = $2", later),
        (
            "INSERT INTO occasions (id, app_id, campaign_id, subject_id, alias_number, key, due_at, event_seq)
             SELECT a.subject_id, $1, $2, a.subject_id, a.number, 'run 2', $3, -1 FROM aliases a",
            later.plus(Duration::from_hours(24)),
        ),
    ] {
        let changed = left.sql(statement).bind(app_id).bind(id).bind(at).execute().await;
        assert_eq!(changed.unwrap(), 1, "{statement}");
    }
    left.commit().await.unwrap();

    let mut save = app.services().db.write().await.unwrap();
    for statement in [
        "UPDATE campaigns SET status = 'active' WHERE app_id = $1 AND id = $2",
        "UPDATE campaign_runs SET look_at = look_at + 1 WHERE app_id = $1 AND campaign_id = $2",
    ] {
        let changed = save.sql(statement).bind(app_id).bind(id).execute().await;
        assert_eq!(changed.unwrap(), 1, "{statement}");
    }
    app.advance(3_601);
    somebody_waits_for_a_lock(&app).await;
    save.commit().await.unwrap();
    app.until("nobody looks again", async || {
        let looks: Vec<(i64,)> = app
            .rows("SELECT look_at FROM campaign_runs WHERE look_at IS NOT NULL")
            .await;
        looks.iter().all(|(at,)| *at > later.0 + 1)
    })
    .await;
    let kept: Vec<(uuid::Uuid,)> = app.rows("SELECT subject_id FROM occasions").await;
    assert_eq!(kept.len(), 1, "of {}", ada.subject_id);
    app.finish().await;
}

/// A change locks its survey and then the app. Somebody else has the app and asks for the survey: PostgreSQL ends
/// the change, since it was the first to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_loses_against_another_one_is_made_again() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let path = app.path("/surveys");
    let made = app
        .post(&path, &app.editor(), &survey_body())
        .await
        .data(201);
    let id = tests::session::text(&made, "id");
    let survey = format!("{path}/{id}");
    let deadlocks = || async {
        let found: Vec<(i64,)> = app
            .rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .await;
        found[0].0
    };
    let before = deadlocks().await;

    let mut other = app.services().db.write().await.unwrap();
    // It has all the patience in the world, so that the change is the one to give way.
    other
        .sql("SET LOCAL deadlock_timeout = '10min'")
        .execute()
        .await
        .unwrap();
    let locked: Vec<(uuid::Uuid,)> = other
        .sql("SELECT id FROM campaigns WHERE app_id = $1 FOR UPDATE")
        .bind(app.access.app_id)
        .fetch_all()
        .await
        .unwrap();
    assert_eq!(locked.len(), 1);
    let body = json!({"name": "Renamed"});
    let editor = app.editor();
    let change = app.patch(&survey, &editor, &body);
    let conflict = async {
        somebody_waits_for_a_lock(&app).await;
        let locked: Vec<(uuid::Uuid,)> = other
            .sql("SELECT id FROM apps WHERE id = $1 FOR UPDATE")
            .bind(app.access.app_id)
            .fetch_all()
            .await
            .unwrap();
        assert_eq!(locked.len(), 1);
        other.rollback().await.unwrap();
    };
    let (changed, ()) = tokio::join!(change, conflict);

    assert_eq!(changed.ok()["name"], "Renamed");
    app.until("there was no deadlock", async || deadlocks().await > before)
        .await;
    let entries = app.audited("survey.updated").await;
    assert_eq!(entries.len(), 1);
    app.finish().await;
}

/// A survey is to get fewer responses, or gets a number of them at all; before that is counted and committed, an attempt is completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survey_ends_by_the_number_that_it_has_when_an_attempt_is_complete() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let (ada, editor) = (app.session("ada").await, app.editor());
    for most in [Some(10), None] {
        let survey = link_survey(&app, forked(false)).await;
        let path = app.path(&format!("/surveys/{survey}"));
        if let Some(most) = most {
            let change = json!({"schedule": {"maxResponses": most}});
            app.patch(&path, &editor, &change).await.ok();
        }
        let attempt = start(&app, &ada, survey).await;
        answer(&app, &ada, &attempt, json!([["q1", 9]])).await.ok();

        let mut counts = app.services().db.write().await.unwrap();
        counts
            .sql("LOCK TABLE survey_counts IN ACCESS EXCLUSIVE MODE")
            .execute()
            .await
            .unwrap();
        let fewer = json!({"schedule": {"maxResponses": 1}});
        let change = app.patch(&path, &editor, &fewer);
        let completion = async {
            somebody_waits_for_a_lock(&app).await;
            end(&app, &ada, &attempt, "complete").await
        };
        let release = async {
            app.until_locked(2, "%").await;
            counts.rollback().await.unwrap();
        };
        let (changed, completed, ()) = tokio::join!(change, completion, release);
        changed.ok();
        assert_eq!(completed.ok()["state"], "completed");
        let survey = app.get(&path, &app.viewer()).await.ok();
        assert_eq!(survey["status"], "completed", "{most:?}");
    }
    app.finish().await;
}

/// A plugin of an app, locked by somebody else who is about to change it.
async fn plugin_in_hand(app: &TestApp, plugin: &str) -> Tx {
    let mut other = app.services().db.write().await.unwrap();
    let locked: Vec<(String,)> = other
        .sql("SELECT name FROM plugins WHERE app_id = $1 AND name = $2 FOR UPDATE")
        .bind(app.access.app_id)
        .bind(plugin.to_owned())
        .fetch_all()
        .await
        .unwrap();
    assert_eq!(locked.len(), 1);
    other
}

/// Changes the one row that a statement about plugin 1 is about.
async fn change_one(app: &TestApp, tx: &mut Tx, statement: &'static str) {
    let changed = tx
        .sql(statement)
        .bind(app.access.app_id)
        .bind(name(1))
        .execute()
        .await
        .unwrap();
    assert_eq!(changed, 1, "{statement}");
}

/// Removes plugin 1, which has one version, as soon as somebody waits for it.
async fn remove_plugin(app: &TestApp, mut other: Tx) {
    somebody_waits_for_a_lock(app).await;
    for statement in [
        "DELETE FROM plugin_versions WHERE app_id = $1 AND name = $2",
        "DELETE FROM plugins WHERE app_id = $1 AND name = $2",
    ] {
        change_one(app, &mut other, statement).await;
    }
    other.commit().await.unwrap();
}

/// Whoever waits for a plugin that is being removed finds it gone: there is nothing left to remove, and an upload makes it anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_is_removed_meanwhile_is_gone() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let path = app.path(&format!("/plugins/{}", name(1)));
    let admin = app.admin();
    upload(&app, versioned(1, 1)).await.data(201);
    let other = plugin_in_hand(&app, &name(1)).await;
    let (removed, ()) = tokio::join!(app.delete(&path, &admin), remove_plugin(&app, other));
    removed.refused(404, "not_found");
    assert_eq!(app.audited("plugin.deleted").await.len(), 0);

    upload(&app, versioned(1, 1)).await.data(201);
    let other = plugin_in_hand(&app, &name(1)).await;
    let again = upload(&app, versioned(1, 2));
    let (uploaded, ()) = tokio::join!(again, remove_plugin(&app, other));
    uploaded.data(201);
    let plugin = app.get(&path, &admin).await.ok();
    let versions = plugin["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "{plugin}");
    assert_eq!(versions[0]["version"], version(2));
    app.finish().await;
}

/// A version that the survey's trigger is refused by comes into force while the plugin is put into the slot; and the other way
/// round, the plugin comes into the slot while such a version is activated. Whoever is second is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_version_comes_into_a_slot_unchecked() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    deploy(&app, 1, 1).await;
    upload(&app, versioned(1, 2)).await.data(201);
    upload(&app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    // The version behaves as the other plugin does, which takes none of the built-in one's configurations.
    let mut tx = app.services().db.write().await.unwrap();
    let statement = "UPDATE plugin_versions SET digest = (SELECT digest FROM plugin_versions WHERE name = 'misbehaving')
        WHERE app_id = $1 AND name = $2 AND version = '1.0.1000002'";
    change_one(&app, &mut tx, statement).await;
    tx.commit().await.unwrap();

    let mut other = plugin_in_hand(&app, &name(1)).await;
    let activated = async {
        somebody_waits_for_a_lock(&app).await;
        let statement = "UPDATE plugins SET active_version = '1.0.1000002', revision = revision + 1
            WHERE app_id = $1 AND name = $2";
        change_one(&app, &mut other, statement).await;
        other.commit().await.unwrap();
    };
    let plugin = name(1);
    let (set, ()) = tokio::join!(set_slot(&app, &plugin), activated);
    set.refused(422, "plugin_rejected");

    let parts = |number| json!({"version": version(number)});
    activate(&app, 1, parts(1)).await.ok();
    let mut other = plugin_in_hand(&app, &name(1)).await;
    let filled = async {
        somebody_waits_for_a_lock(&app).await;
        let statement = "INSERT INTO plugin_slots (app_id, kind, plugin, updated_at) VALUES ($1, 'trigger', $2, 0)";
        change_one(&app, &mut other, statement).await;
        other.commit().await.unwrap();
    };
    let (activated, ()) = tokio::join!(activate(&app, 1, parts(2)), filled);
    activated.refused(422, "plugin_rejected");
    app.finish().await;
}

/// A campaign is saved that the active plugin accepts, while a version that refuses it is activated, or a plugin that refuses it is
/// put into the slot. Whoever is second is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_comes_into_force_that_refuses_what_was_saved_meanwhile() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    deploy(&app, 1, 2).await;
    upload(&app, versioned(1, 1)).await.data(201);
    let other = plugin_in_hand(&app, &name(1)).await;
    let saved = async {
        somebody_waits_for_a_lock(&app).await;
        let newer = json!({"events": ["a"], "since": 1_000_002});
        app.survey(&trigger(1, newer)).await;
        other.rollback().await.unwrap();
    };
    let (activated, ()) = tokio::join!(activate(&app, 1, json!({"version": version(1)})), saved);
    let problem = activated.refused(422, "plugin_rejected");
    assert!(problem["detail"].as_str().unwrap().contains("older"));

    let component = test_guests::MISBEHAVING.to_vec();
    upload(&app, component).await.data(201);
    let active = json!({"version": "1.0.0"});
    let path = app.path("/plugins/misbehaving/activate");
    app.post(&path, &app.admin(), &active).await.ok();
    let other = plugin_in_hand(&app, "misbehaving").await;
    let saved = async {
        somebody_waits_for_a_lock(&app).await;
        app.survey(&json!({"kind": "event", "eventName": "b"}))
            .await;
        other.rollback().await.unwrap();
    };
    let (set, ()) = tokio::join!(set_slot(&app, "misbehaving"), saved);
    set.refused(422, "plugin_rejected");
    app.finish().await;
}

/// A campaign is paused after the sender has looked at it, while a message of it is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_paused_while_it_is_made_is_not_sent() {
    let mut app = TestApp::start(site!(), Backend::Postgres).await;
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    let source = json!({"kind": "latest_event", "eventName": "viewed", "lookbackDays": 30});
    let mut personalization = personalization(&source, &[("item", "item", "string")]);
    personalization["bindings"][0]["fallback"] = json!("it");
    let variant = json!({"title": "{{p.item}}", "body": "b", "personalization": personalization});
    let parts = json!({"mode": "transactional", "trigger": null, "variants": [variant]});
    let campaign = app.campaign(&parts).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let set = async |status: &str| {
        let body = json!({"status": status});
        app.patch(&path, &app.editor(), &body).await.ok();
    };

    // Of what another process has changed this one has not heard yet.
    for (sent, by_another) in [(0, false), (1, true)] {
        let mut held = app.services().db.write().await.unwrap();
        held.sql("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            .execute()
            .await
            .unwrap();
        let body = json!({"campaignId": campaign, "anonymousId": "ada"});
        let id = text(&app.transactional(&body).await.data(202), "deliveryId");
        app.until_locked(1, "%FROM v CROSS JOIN events e%").await;
        if by_another {
            let pause = r#"UPDATE campaigns SET status = 'paused', body = replace(body, '"status":"active"', '"status":"paused"')"#;
            crate::person::execute(&app, pause, &[]).await;
        } else {
            set("paused").await;
        }
        held.commit().await.unwrap();
        app.until("it does not wait for its campaign", async || {
            let waiting: Vec<(String,)> = app
                .rows("SELECT status FROM deliveries WHERE status = 'queued' AND due_at IS NULL AND node IS NULL")
                .await;
            waiting.len() == 1
        })
        .await;
        assert_eq!(providers.apns.received().len(), sent);
        set("active").await;
        app.delivery_in(&id, "delivered").await;
        assert_eq!(providers.apns.received().len(), sent + 1);
    }
    app.finish().await;
}
