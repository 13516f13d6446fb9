//! In-app messages and the people behind them: consent, copies, deletions, merges (contracts 2, 6 and 20).

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};

use super::results::{recipients, results};
use super::{acknowledge, buys, message, of_user};
use crate::deletion::{delete, deleted};
use crate::exports;
use crate::guests::save_property;
use crate::identity::Backend;
use crate::segments::{plan, segment};

on_both_backends!(
    without_consent_to_messages_none_is_shown,
    a_copy_has_what_was_shown_and_pressed,
    a_deletion_removes_what_was_shown_and_pressed,
    a_merge_unites_messages_and_memberships,
    what_somebody_was_shown_or_not_is_listed_whole_and_newest_first,
);

async fn consents(app: &TestApp, session: &Session, messaging: bool) {
    let body = json!({"anonymousId": session.anonymous_id, "messaging": messaging});
    app.post("/v1/sdk/consent", &session.credential(), &body)
        .await
        .ok();
}

/// Has a message shown to somebody, who presses a button of it; answers the instruction.
async fn presses(app: &TestApp, session: &Session) -> String {
    let id = instruction_ids(&buys(app, session, json!({})).await).remove(0);
    let ack = json!({"instructionId": id, "status": "clicked", "actionId": "go"});
    assert_eq!(acknowledge(app, session, ack).await["accepted"], 1);
    id
}

async fn without_consent_to_messages_none_is_shown(app: &mut TestApp) {
    let campaign = message(app, json!({})).await;
    let ada = app.session("ada").await;
    assert_eq!(
        buys(app, &ada, json!({})).await.as_array().unwrap().len(),
        1
    );
    consents(app, &ada, false).await;
    // Neither what waits for the person, nor what would come.
    assert_eq!(app.offered(&ada).await, json!([]));
    assert_eq!(buys(app, &ada, json!({})).await, json!([]));
    app.settle().await;
    assert_eq!(app.offered(&ada).await, json!([]));
    let totals = results(app, &campaign, "").await["totals"].take();
    assert_eq!(totals["recipients"], 1, "{totals}");
    consents(app, &ada, true).await;
    assert_eq!(
        buys(app, &ada, json!({})).await.as_array().unwrap().len(),
        1
    );
}

async fn a_copy_has_what_was_shown_and_pressed(app: &mut TestApp) {
    let variants = json!([{
        "layout": "modal", "title": "Hello {{p.name}}", "buttons": [
            {"id": "go", "label": "Go", "openAction": {"action": "none"}}],
        "personalization": of_user(&[("name", "name", "string")]),
    }]);
    let campaign = message(app, json!({"variants": variants})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for session in [&ada, &bob] {
        save_property(app, session, "name", json!(session.anonymous_id)).await;
        presses(app, session).await;
    }
    app.settle().await;

    let export = exports::export(app, &json!({"anonymousId": "ada"})).await;
    let archive = exports::download(app, &exports::reaches(app, &export, "completed").await).await;
    let profile = exports::file(&archive, "profile.json");
    assert!(!profile.contains("bob"));
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let shown = profile["instructions"].as_array().unwrap();
    assert_eq!(shown.len(), 1, "{profile}");
    assert_eq!(shown[0]["campaignId"], json!(campaign));
    let shown = shown[0].to_string();
    assert!(shown.contains("Hello ada"), "{shown}");
    assert!(
        shown.contains("\"go\"") && shown.contains("clicked"),
        "{shown}"
    );
}

async fn a_deletion_removes_what_was_shown_and_pressed(app: &mut TestApp) {
    let campaign = message(app, json!({})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let id = presses(app, &ada).await;
    presses(app, &bob).await;
    app.settle().await;
    let job = delete(app, &json!({"anonymousId": "ada"})).await;
    deleted(app, &job).await;
    let left = recipients(app, &campaign, "").await;
    let left = left["items"].as_array().unwrap();
    assert_eq!((left.len(), &*text(&left[0], "anonymousId")), (1, "bob"));
    let needles = [id.replace('-', ""), ada.subject_id.replace('-', "")];
    for (table, rows) in app.dump().await {
        for row in rows {
            let row = row.replace('-', "");
            let is_there = needles.iter().any(|needle| row.contains(needle));
            assert!(!is_there, "{table}: {row}");
        }
    }
}

async fn a_merge_unites_messages_and_memberships(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let cap = json!({"perSubject": {"max": 2, "windowDays": "lifetime"}});
    let campaign = message(app, json!({"frequencyCap": cap})).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        save_property(app, session, "plan", json!("pro")).await;
        presses(app, session).await;
    }
    app.settle().await;
    let path = app.path(&format!("/segments/{}", text(&pros, "id")));
    app.advance(3_601);
    app.until("both are in", async || {
        app.get(&path, &app.viewer()).await.ok()["size"] == 2
    })
    .await;
    let before = results(app, &campaign, "").await;
    assert_eq!(before["totals"]["clicked"], 2);

    let both = backend.identify(app, "web", "e-1").await;
    app.settle().await;
    // What was counted stays, and is one person's.
    let after = results(app, &campaign, "").await;
    assert_eq!(
        (&after["totals"], &after["perAction"]),
        (&before["totals"], &before["perAction"])
    );
    let people = recipients(app, &campaign, "").await;
    let people = people["items"].as_array().unwrap();
    assert_eq!(people.len(), 2);
    for person in people {
        assert_eq!(text(person, "subjectId"), both.subject_id, "{person}");
        assert_eq!(text(person, "state"), "clicked");
    }
    // The cap counts both.
    assert_eq!(buys(app, &both, json!({})).await, json!([]));
    // One member is left, once a sweep has counted.
    let members: Vec<(uuid::Uuid,)> = app.rows("SELECT subject_id FROM segment_members").await;
    assert_eq!(members, [(both.subject_id.parse().unwrap(),)]);
    app.advance(3_601);
    app.until("one is in", async || {
        app.get(&path, &app.viewer()).await.ok()["size"] == 1
    })
    .await;
}

/// The pages of what a person was shown or was to be shown: campaigns with how far each came.
async fn shown(app: &TestApp, subject_id: &str) -> Vec<(String, String)> {
    let path = app.path("/instructions");
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("{path}?subjectId={subject_id}&limit=2{cursor}");
        let page = app.get(&path, &app.viewer()).await.ok();
        let items = page["items"].as_array().unwrap();
        found.extend(
            items
                .iter()
                .map(|item| (text(item, "campaignId"), text(item, "status"))),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn what_somebody_was_shown_or_not_is_listed_whole_and_newest_first(app: &mut TestApp) {
    let mut expected = Vec::new();
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    // What is held back has no place of its own among what is issued.
    consents(app, &phone, false).await;
    for (who, status) in [
        (&phone, "suppressed"),
        (&phone, "suppressed"),
        (&phone, "suppressed"),
        (&web, "issued"),
        (&phone, "suppressed"),
        (&phone, "suppressed"),
    ] {
        let campaign = message(app, json!({})).await;
        buys(app, who, json!({})).await;
        app.settle().await;
        let away = json!({"status": "archived"});
        let path = app.path(&format!("/campaigns/{campaign}"));
        app.patch(&path, &app.editor(), &away).await.ok();
        expected.insert(0, (campaign, status.to_owned()));
        app.advance(1);
    }
    // What the other was shown comes where it was shown.
    let both = backend.identify(app, "web", "e-1").await;
    app.settle().await;
    assert_eq!(shown(app, &both.subject_id).await, expected);
}
