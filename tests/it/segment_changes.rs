//! Who enters a segment and who leaves it, and the campaigns that this fires (contract 19).

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

use crate::identity::Backend;
use crate::segments::{member, plan, segment, set};

on_both_backends!(
    a_property_lets_somebody_enter_and_leave,
    changes_that_follow_each_other_are_told_each,
    changes_of_many_people_at_once_are_told_each,
    changes_of_different_kinds_are_told_each,
    changes_under_two_names_are_told_each,
    changes_are_told_while_the_app_is_saved,
    who_is_made_by_identify_is_looked_at,
    somebody_new_is_in_by_default_and_leaves_by_an_event,
    an_event_lets_somebody_enter_once,
    who_is_in_already_fires_nothing,
    who_has_entered_since_nobody_waited_fires_nothing,
    time_alone_lets_somebody_leave,
    a_change_of_the_conditions_fires_nobody,
    a_first_look_tells_of_those_it_has_passed,
    a_merge_enters_nobody_twice,
    a_first_event_makes_somebody_who_may_be_in,
    a_delay_is_cancelled_and_the_audience_is_asked,
    a_campaign_that_does_not_run_misses_changes,
    sweeps_beside_events_tell_each_change_once,
    a_restart_tells_what_was_to_be_told,
    an_explanation_says_that_no_event_fires_it,
);

/// A survey that a change of a segment fires.
async fn on(app: &TestApp, segment: &Value, change: &str) -> String {
    let trigger = json!({"kind": "segment", "segmentId": segment["id"], "on": change});
    app.survey(&trigger).await.to_string()
}

/// How many instructions of a survey a person was ever issued.
async fn issued(app: &TestApp, survey: &str, name: &str) -> usize {
    let path = app.path(&format!("/surveys/{survey}/recipients"));
    let data = app.get(&path, &app.viewer()).await.ok();
    let items = data["items"].as_array().unwrap();
    items
        .iter()
        .filter(|item| item["anonymousId"] == name || item["externalId"] == name)
        .count()
}

async fn fired(app: &TestApp, survey: &str, name: &str, count: usize) {
    app.settle().await;
    app.until(&format!("{count} for {name}"), async || {
        issued(app, survey, name).await >= count
    })
    .await;
    assert_eq!(issued(app, survey, name).await, count);
}

/// Long enough for what must not come: everything noted was looked at, and every occasion is done.
async fn quiet(app: &TestApp) {
    app.settle().await;
    app.until("occasions are done", async || {
        app.count("occasions").await == 0
    })
    .await;
    app.settle().await;
}

async fn a_property_lets_somebody_enter_and_leave(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let (enters, leaves) = (on(app, &pros, "enter").await, on(app, &pros, "exit").await);
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    fired(app, &enters, "ada", 1).await;
    set(app, &ada, json!({"plan": "pro", "age": 7})).await;
    quiet(app).await;
    assert_eq!(
        (
            issued(app, &enters, "ada").await,
            issued(app, &leaves, "ada").await
        ),
        (1, 0)
    );
    set(app, &ada, json!({"plan": "free"})).await;
    fired(app, &leaves, "ada", 1).await;
    set(app, &ada, json!({"plan": "pro"})).await;
    fired(app, &enters, "ada", 2).await;
    assert_eq!(issued(app, &leaves, "ada").await, 1);
}

async fn changes_that_follow_each_other_are_told_each(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let (enters, leaves) = (on(app, &pros, "enter").await, on(app, &pros, "exit").await);
    let once = segment(app, "once", once()).await;
    let (visited, again) = (on(app, &once, "enter").await, on(app, &once, "exit").await);
    quiet(app).await;
    for number in 0..10 {
        let name = format!("ada-{number}");
        let ada = app.session(&name).await;
        set(app, &ada, json!({"plan": "pro"})).await;
        set(app, &ada, json!({"plan": "free"})).await;
        for _ in 0..2 {
            visit(app, &ada).await;
        }
        for survey in [&enters, &leaves, &visited, &again] {
            fired(app, survey, &name, 1).await;
        }
    }
}

async fn changes_of_many_people_at_once_are_told_each(app: &mut TestApp) {
    const PEOPLE: usize = 120;
    let once = segment(app, "once", once()).await;
    on(app, &once, "enter").await;
    on(app, &once, "exit").await;
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        people.push(app.session(&format!("ada-{number}")).await);
    }
    quiet(app).await;
    for _ in 0..2 {
        join_all(people.iter().map(|ada| visit(app, ada))).await;
    }
    quiet(app).await;
    app.until("everybody has entered and left", async || {
        app.count("instructions").await >= 2 * PEOPLE
    })
    .await;
    assert_eq!(app.count("instructions").await, 2 * PEOPLE);
}

/// An event lets somebody enter, and their properties let them leave at once; then their properties let them enter, and who they
/// turn out to be lets them leave.
async fn changes_of_different_kinds_are_told_each(app: &mut TestApp) {
    const PEOPLE: usize = 20;
    let (visited, free) = (visitors(1)["include"].clone(), plan("free"));
    let both = json!({"include": {"all": [visited, free["include"]]}});
    let both = segment(app, "both", both).await;
    let pros = segment(app, "pros", plan("pro")).await;
    for (segment, change) in [(&both, "enter"), (&both, "exit"), (&pros, "enter")] {
        on(app, segment, change).await;
    }
    for number in 0..PEOPLE {
        let ada = app.session(&format!("ada-{number}")).await;
        set(app, &ada, json!({"plan": "free"})).await;
        visit(app, &ada).await;
        set(app, &ada, json!({"plan": "pro"})).await;
    }
    told(app, 3 * PEOPLE).await;

    let left = on(app, &pros, "exit").await;
    let backend = Backend::new(app).await;
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        let known = backend
            .identify(app, &format!("known-{number}"), &format!("e-{number}"))
            .await;
        set(app, &known, json!({"plan": "free"})).await;
        people.push(app.session(&format!("new-{number}")).await);
    }
    quiet(app).await;
    for (number, session) in people.iter().enumerate() {
        set(app, session, json!({"plan": "pro"})).await;
        backend
            .identify(app, &format!("new-{number}"), &format!("e-{number}"))
            .await;
    }
    told(app, 5 * PEOPLE).await;
    assert_eq!(issued(app, &left, "e-0").await, 1);
}

/// Waits until so many instructions were issued in all, and nothing more is to come.
async fn told(app: &TestApp, count: usize) {
    app.until(&format!("{count} changes are told"), async || {
        app.count("instructions").await >= count
    })
    .await;
    quiet(app).await;
    assert_eq!(app.count("instructions").await, count);
}

/// A request of a server's names the user, one of the SDK the device.
async fn changes_under_two_names_are_told_each(app: &mut TestApp) {
    const PEOPLE: usize = 20;
    let once = segment(app, "once", once()).await;
    for change in ["enter", "exit"] {
        on(app, &once, change).await;
    }
    let backend = Backend::new(app).await;
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        let (name, user) = (format!("ada-{number}"), format!("e-{number}"));
        let session = backend.identify(app, &name, &user).await;
        let event = json!({"name": "visit", "timestamp": app.time(0), "properties": {}});
        people.push((session, json!({"userId": user, "events": [event]})));
    }
    quiet(app).await;
    let key = app.backend();
    let both = people.iter().map(async |(session, body)| {
        visit(app, session).await;
        app.post("/v1/sdk/ingest", &key, body).await.ok();
    });
    join_all(both).await;
    told(app, 2 * PEOPLE).await;
}

async fn changes_are_told_while_the_app_is_saved(app: &mut TestApp) {
    const PEOPLE: usize = 40;
    let once = segment(app, "once", once()).await;
    for change in ["enter", "exit"] {
        on(app, &once, change).await;
    }
    quiet(app).await;
    let visits = async {
        for number in 0..PEOPLE {
            let ada = app.session(&format!("ada-{number}")).await;
            for _ in 0..2 {
                visit(app, &ada).await;
            }
        }
    };
    let saves = async {
        loop {
            app.survey(&json!({"kind": "event", "eventName": "unheard_of"}))
                .await;
        }
    };
    tokio::select! {
        () = visits => {}
        () = saves => {}
    }
    told(app, 2 * PEOPLE).await;
}

async fn who_is_made_by_identify_is_looked_at(app: &mut TestApp) {
    let idle = json!({"exclude": visitors(1)["include"].clone()});
    let idle = segment(app, "idle", idle).await;
    let enters = on(app, &idle, "enter").await;
    quiet(app).await;
    for (user, traits) in [("e-1", json!({})), ("e-2", json!({"plan": "pro"}))] {
        let body = json!({"userId": user, "traits": traits});
        let path = "/v1/compat/v1/identify";
        let answer = app.post(path, &app.backend(), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        fired(app, &enters, user, 1).await;
    }
}

async fn somebody_new_is_in_by_default_and_leaves_by_an_event(app: &mut TestApp) {
    let idle = json!({"exclude": visitors(1)["include"].clone()});
    let idle = segment(app, "idle", idle).await;
    let (enters, leaves) = (on(app, &idle, "enter").await, on(app, &idle, "exit").await);
    quiet(app).await;
    let backend = Backend::new(app).await;
    for (name, session) in [
        ("ada", app.session("ada").await),
        ("e-1", backend.identify(app, "bob", "e-1").await),
    ] {
        fired(app, &enters, name, 1).await;
        visit(app, &session).await;
        fired(app, &leaves, name, 1).await;
        assert_eq!(issued(app, &enters, name).await, 1);
    }
}

/// People with so many events `visit` within a week.
fn visitors(n: u32) -> Value {
    json!({"include": {"kind": "event", "eventName": "visit", "withinDays": 7, "count": {"operator": "gte", "n": n}}})
}

/// People with one event `visit` within a week.
fn once() -> Value {
    let mut once = visitors(1);
    once["include"]["count"]["operator"] = json!("eq");
    once
}

async fn visit(app: &TestApp, session: &Session) {
    app.ingest(session, &[app.event(session, "visit", &json!({}))])
        .await
        .ok();
}

async fn an_event_lets_somebody_enter_once(app: &mut TestApp) {
    let regulars = segment(app, "regulars", visitors(3)).await;
    let enters = on(app, &regulars, "enter").await;
    let ada = app.session("ada").await;
    for _ in 0..2 {
        visit(app, &ada).await;
    }
    quiet(app).await;
    assert_eq!(issued(app, &enters, "ada").await, 0);
    for _ in 0..4 {
        visit(app, &ada).await;
    }
    fired(app, &enters, "ada", 1).await;
    quiet(app).await;
    assert_eq!(issued(app, &enters, "ada").await, 1);
}

async fn who_is_in_already_fires_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    let pros = segment(app, "pros", plan("pro")).await;
    let (enters, leaves) = (on(app, &pros, "enter").await, on(app, &pros, "exit").await);
    set(app, &ada, json!({"age": 7})).await;
    visit(app, &ada).await;
    app.advance(3_600);
    quiet(app).await;
    assert_eq!(issued(app, &enters, "ada").await, 0);
    set(app, &ada, json!({"plan": "free"})).await;
    fired(app, &leaves, "ada", 1).await;
}

async fn who_has_entered_since_nobody_waited_fires_nothing(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    let enters = on(app, &pros, "enter").await;
    set(app, &ada, json!({"plan": "pro", "age": 7})).await;
    set(app, &bob, json!({"plan": "pro"})).await;
    fired(app, &enters, "bob", 1).await;
    app.advance(3_600);
    quiet(app).await;
    assert_eq!(issued(app, &enters, "ada").await, 0);
    // The same of a campaign that rested.
    let path = app.path(&format!("/surveys/{enters}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    let cy = app.session("cy").await;
    set(app, &cy, json!({"plan": "pro"})).await;
    app.patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    set(app, &cy, json!({"age": 7})).await;
    quiet(app).await;
    assert_eq!(issued(app, &enters, "cy").await, 0);
}

async fn time_alone_lets_somebody_leave(app: &mut TestApp) {
    let regulars = segment(app, "regulars", visitors(1)).await;
    let leaves = on(app, &regulars, "exit").await;
    let ada = app.session("ada").await;
    visit(app, &ada).await;
    quiet(app).await;
    assert_eq!(issued(app, &leaves, "ada").await, 0);
    app.advance(8 * 86_400);
    fired(app, &leaves, "ada", 1).await;
}

async fn a_change_of_the_conditions_fires_nobody(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    set(app, &bob, json!({"plan": "free"})).await;
    let inner = segment(app, "inner", plan("pro")).await;
    let outer = segment(app, "outer", member(&inner, true)).await;
    let enters = on(app, &outer, "enter").await;
    let leaves = on(app, &outer, "exit").await;
    let path = app.path(&format!("/segments/{}", inner["id"].as_str().unwrap()));
    app.patch(&path, &app.editor(), &json!({"audience": plan("free")}))
        .await
        .ok();
    app.advance(2 * 3_600);
    let outer_path = app.path(&format!(
        "/segments/{}/members",
        outer["id"].as_str().unwrap()
    ));
    app.until("who is in is known", async || {
        let members = app.get(&outer_path, &app.viewer()).await.ok();
        members["items"][0]["anonymousId"] == "bob"
    })
    .await;
    quiet(app).await;
    for survey in [&enters, &leaves] {
        assert_eq!(
            (
                issued(app, survey, "ada").await,
                issued(app, survey, "bob").await
            ),
            (0, 0)
        );
    }
    set(app, &ada, json!({"plan": "free"})).await;
    fired(app, &enters, "ada", 1).await;
}

async fn a_first_look_tells_of_those_it_has_passed(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let pros = segment(app, "pros", plan("pro")).await;
    let enters = on(app, &pros, "enter").await;
    quiet(app).await;
    // As it was when the look had come to the first of the two.
    let mut tx = app.services().db.write().await.unwrap();
    let updated = tx.sql(
        "UPDATE segments SET based_version = based_version - 1, looked_to = (SELECT id FROM subjects ORDER BY id LIMIT 1)
         WHERE looked_version = audience_version AND looked_to IS NULL
           AND newest_subject = (SELECT id FROM subjects ORDER BY id DESC LIMIT 1)",
    );
    assert_eq!(updated.execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
    for session in [&bob, &ada] {
        set(app, session, json!({"plan": "pro"})).await;
    }
    fired(app, &enters, "ada", 1).await;
    quiet(app).await;
    assert_eq!(issued(app, &enters, "bob").await, 0);
}

async fn a_merge_enters_nobody_twice(app: &mut TestApp) {
    let regulars = segment(app, "regulars", visitors(3)).await;
    let enters = on(app, &regulars, "enter").await;
    let backend = Backend::new(app).await;
    // Two phones with two visits each make one regular.
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        visit(app, session).await;
        visit(app, session).await;
    }
    quiet(app).await;
    assert_eq!(issued(app, &enters, "e-1").await, 0);
    backend.identify(app, "web", "e-1").await;
    fired(app, &enters, "e-1", 1).await;
    // Somebody who is in already becomes part of the person who is in.
    let tablet = app.session("tablet").await;
    for _ in 0..3 {
        visit(app, &tablet).await;
    }
    fired(app, &enters, "tablet", 1).await;
    backend.identify(app, "tablet", "e-1").await;
    quiet(app).await;
    let all = app.count("instructions").await;
    assert_eq!(all, 2, "one for each who entered");
}

async fn a_first_event_makes_somebody_who_may_be_in(app: &mut TestApp) {
    let idle = json!({"exclude": visitors(1)["include"].clone()});
    let idle = segment(app, "idle", idle).await;
    let enters = on(app, &idle, "enter").await;
    let ada = app.session("ada").await;
    app.ingest(&ada, &[app.event(&ada, "opened", &json!({}))])
        .await
        .ok();
    fired(app, &enters, "ada", 1).await;
}

async fn a_delay_is_cancelled_and_the_audience_is_asked(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let trigger = json!({"kind": "segment", "segmentId": pros["id"], "on": "enter", "delaySeconds": 600,
        "cancelOn": [{"eventName": "paid"}]});
    let survey = app
        .survey_with(&json!({"trigger": trigger, "audience": member(&pros, true)}))
        .await
        .to_string();
    let (ada, bob, cy) = (
        app.session("ada").await,
        app.session("bob").await,
        app.session("cy").await,
    );
    for session in [&ada, &bob, &cy] {
        set(app, session, json!({"plan": "pro"})).await;
    }
    app.settle().await;
    app.until("three wait", async || app.count("timers").await == 3)
        .await;
    app.ingest(&bob, &[app.event(&bob, "paid", &json!({}))])
        .await
        .ok();
    set(app, &cy, json!({"plan": "free"})).await;
    app.advance(601);
    fired(app, &survey, "ada", 1).await;
    quiet(app).await;
    assert_eq!(
        (
            issued(app, &survey, "bob").await,
            issued(app, &survey, "cy").await
        ),
        (0, 0)
    );
}

async fn a_campaign_that_does_not_run_misses_changes(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let enters = on(app, &pros, "enter").await;
    let path = app.path(&format!("/surveys/{enters}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    app.advance(3_600);
    let segment = app.path(&format!("/segments/{}", pros["id"].as_str().unwrap()));
    app.until("the sweep found her", async || {
        app.get(&segment, &app.viewer()).await.ok()["size"] == 1
    })
    .await;
    app.patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    set(app, &ada, json!({"age": 7})).await;
    quiet(app).await;
    assert_eq!(issued(app, &enters, "ada").await, 0);
}

async fn sweeps_beside_events_tell_each_change_once(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let (enters, leaves) = (on(app, &pros, "enter").await, on(app, &pros, "exit").await);
    let mut sessions = Vec::new();
    for number in 0..12 {
        sessions.push(app.session(&format!("p{number}")).await);
    }
    for turn in 0..3 {
        for plan in ["pro", "free"] {
            app.advance(3_600);
            for session in &sessions {
                set(app, session, json!({"plan": plan})).await;
            }
            let survey = if plan == "pro" { &enters } else { &leaves };
            for number in 0..sessions.len() {
                fired(app, survey, &format!("p{number}"), turn + 1).await;
            }
        }
    }
    quiet(app).await;
    assert_eq!(app.count("instructions").await, sessions.len() * 6);
}

async fn a_restart_tells_what_was_to_be_told(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let enters = on(app, &pros, "enter").await;
    for number in 0..20 {
        let session = app.session(&format!("p{number}")).await;
        set(app, &session, json!({"plan": "pro"})).await;
    }
    app.restart().await;
    for number in 0..20 {
        fired(app, &enters, &format!("p{number}"), 1).await;
    }
    app.advance(3_600);
    quiet(app).await;
    assert_eq!(app.count("instructions").await, 20);
}

async fn an_explanation_says_that_no_event_fires_it(app: &mut TestApp) {
    let regulars = segment(app, "regulars", visitors(1)).await;
    let enters = on(app, &regulars, "enter").await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "visit", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    fired(app, &enters, "ada", 1).await;
    let event_id = event["eventId"].as_str().unwrap();
    let query = format!("campaignId={enters}&anonymousId=ada&eventId={event_id}");
    let path = app.path(&format!("/explain?{query}"));
    let explained = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(explained["outcome"], "not_fired");
    let steps = explained["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["check"] == "trigger");
    let detail = step.unwrap()["detail"].as_str().unwrap();
    let waits = format!(
        "it waits for people who enter the segment {}",
        regulars["id"].as_str().unwrap()
    );
    assert!(detail.ends_with(&waits), "{detail}");
}
