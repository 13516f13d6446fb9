//! Messages without an event of anybody's that the personalization plugin fails on: what is seen of them, and that
//! what the server owes is not lost (contract 9, 11, 12).

use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::providers::{Providers, Reply};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

use crate::bulk_replays::ended;
use crate::guests::{break_personalization, save_property};
use crate::person::execute;
use crate::receiver::Receiver;

on_both_backends!(
    a_broadcast_that_a_plugin_fails_on_is_sent_once_it_is_mended,
    a_request_that_a_plugin_fails_on_leaves_a_letter_and_is_sent_once_it_is_mended,
    letters_of_a_plugin_that_is_gone_fail_still_and_hold_up_no_job,
    a_message_whose_plugin_is_gone_leaves_a_letter_and_is_made_once_it_is_back,
    letters_of_campaigns_that_do_not_run_wait,
    what_a_replay_queued_waits_and_ends_with_its_campaign,
    a_replay_goes_past_no_cap,
    an_endpoint_is_told_of_a_message_that_fails_again,
);

const PLUGIN: &str = "misbehaving-personalization";

fn variants() -> Value {
    let source = json!({"kind": "user_property", "label": "far_item"});
    let spec = personalization(&source, &[("name", "name", "string")]);
    json!([{"title": "Hello {{p.name}}", "personalization": spec}])
}

async fn people(app: &mut TestApp) -> Providers {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    for (number, name) in ["ada", "bob"].into_iter().enumerate() {
        let session = app.session(name).await;
        let token = providers.fcm.token(u32::try_from(number).unwrap());
        app.push_token(&session, name, &token).await;
        save_property(app, &session, "name", json!(name)).await;
    }
    providers
}

async fn letters(app: &TestApp) -> Vec<Value> {
    let path = app.path("/dead-letters?stage=personalization");
    let list = app.get(&path, &app.viewer()).await.ok();
    list["items"].as_array().unwrap().clone()
}

/// Replays a letter; answers what came of it.
async fn replay(app: &TestApp, letter: &Value) -> String {
    let path = app.path(&format!("/dead-letters/{}/replay", text(letter, "id")));
    let answer = app.post(&path, &app.editor(), &json!({})).await.ok();
    text(&answer, "status")
}

async fn set(app: &TestApp, campaign: &str, status: &str) {
    let path = app.path(&format!("/campaigns/{campaign}"));
    let change = json!({"status": status});
    app.patch(&path, &app.editor(), &change).await.ok();
}

/// Makes a campaign of a mode; every purchase fires one that is triggered.
async fn campaign(app: &TestApp, mode: &str, cap: Value) -> String {
    let mut parts = json!({"mode": mode, "variants": variants(), "frequencyCap": cap});
    if mode == "transactional" {
        parts["trigger"] = Value::Null;
    }
    app.campaign(&parts).await
}

/// Asks for a message of a campaign, or does what fires one. Waits until so many are in a status.
async fn messages(app: &TestApp, ada: &Session, campaign: &str, until: (&str, usize)) {
    if app.campaign_of(campaign).await["mode"] == "transactional" {
        let body = json!({"campaignId": campaign, "anonymousId": ada.anonymous_id});
        app.transactional(&body).await.data(202);
    } else {
        let event = app.event(ada, "purchase", &json!({}));
        app.ingest(ada, &[event]).await.ok();
    }
    come(app, campaign, until).await;
}

/// Waits until so many messages of a campaign are in a status; answers them.
async fn come(app: &TestApp, campaign: &str, (status, count): (&str, usize)) -> Vec<Value> {
    let query = format!("?campaignId={campaign}&status={status}");
    app.until(&format!("{count} are {status}"), async || {
        app.deliveries(&query).await.len() == count
    })
    .await;
    app.deliveries(&query).await
}

async fn a_broadcast_that_a_plugin_fails_on_is_sent_once_it_is_mended(app: &mut TestApp) {
    let providers = people(app).await;
    let slot = break_personalization(app).await;
    let parts = json!({"mode": "broadcast", "trigger": null, "variants": variants()});
    let campaign = app.campaign(&parts).await;
    app.until("both fail", async || {
        app.deliveries("?status=failed").await.len() == 2
    })
    .await;
    let failed = app.deliveries("?status=failed").await;
    assert!(failed.iter().all(|it| it["reason"] == "plugin_error"));
    let letters = letters(app).await;
    let whose = |list: &[Value]| {
        let mut whose: Vec<String> = list.iter().map(|it| text(it, "subjectId")).collect();
        whose.sort();
        whose
    };
    assert_eq!(whose(&letters), whose(&failed));
    for letter in &letters {
        assert_eq!(
            (&letter["eventName"], &letter["plugin"]["name"]),
            (&json!("$scheduled"), &json!(PLUGIN))
        );
    }
    assert_eq!(replay(app, &letters[0]).await, "still_failing");
    assert_eq!(providers.fcm.received().len(), 0);

    app.delete(&slot, &app.admin()).await.data(204);
    for letter in &letters {
        assert_eq!(replay(app, letter).await, "replayed");
    }
    app.until("both are delivered", async || {
        app.deliveries("?status=delivered").await.len() == 2
    })
    .await;
    let mut titles: Vec<String> = app
        .deliveries("?status=delivered")
        .await
        .iter()
        .map(|it| text(&it["content"], "title"))
        .collect();
    titles.sort();
    assert_eq!(titles, ["Hello ada", "Hello bob"]);
    assert_eq!(providers.fcm.received().len(), 2);
    assert_eq!(self::letters(app).await.len(), 0);
    assert_eq!(app.campaign_of(&campaign).await["stats"]["delivered"], 2);
}

async fn a_request_that_a_plugin_fails_on_leaves_a_letter_and_is_sent_once_it_is_mended(
    app: &mut TestApp,
) {
    let providers = people(app).await;
    let slot = break_personalization(app).await;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[EventType::Failed]).await;
    let parts = json!({"mode": "transactional", "trigger": null, "variants": variants()});
    let campaign = app.campaign(&parts).await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "one"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(failed["reason"], "plugin_error");
    let told = receiver.wait(app, "/", 1).await.remove(0).json();
    assert_eq!(
        (&told["data"]["deliveryId"], &told["data"]["reason"]),
        (&json!(id), &json!("plugin_error"))
    );
    assert_eq!(app.campaign_of(&campaign).await["stats"]["failed"], 1);
    // There is no event: the letter is about the request.
    let letters = letters(app).await;
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!(
        (
            &letter["eventName"],
            &letter["stage"],
            &letter["plugin"]["name"]
        ),
        (
            &json!("$transactional"),
            &json!("personalization"),
            &json!(PLUGIN)
        )
    );
    assert_eq!(
        (&letter["campaignId"], &letter["eventId"]),
        (&json!(campaign), &json!(id))
    );
    assert_eq!(letter["subjectId"], failed["subjectId"]);
    let replay = app.path(&format!("/dead-letters/{}/replay", text(letter, "id")));
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "still_failing");
    app.delete(&slot, &app.admin()).await.data(204);
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "replayed");
    let sent = app.delivery_in(&id, "delivered").await;
    assert_eq!(sent["content"]["title"], "Hello ada");
    assert_eq!(providers.fcm.received().len(), 1);
    assert_eq!(self::letters(app).await.len(), 0);
    let body = json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "two"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    let sent = app.delivery_in(&id, "delivered").await;
    assert_eq!(sent["content"]["title"], "Hello ada");
}

async fn letters_of_a_plugin_that_is_gone_fail_still_and_hold_up_no_job(app: &mut TestApp) {
    let _providers = people(app).await;
    let slot = break_personalization(app).await;
    app.delete(&slot, &app.admin()).await.data(204);
    let mut variants = variants();
    variants[0]["personalization"]["plugin"] = json!(PLUGIN);
    let parts = json!({"mode": "transactional", "trigger": null, "variants": variants});
    let campaign = app.campaign(&parts).await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.delivery_in(&id, "failed").await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let archived = json!({"status": "archived"});
    app.patch(&path, &app.editor(), &archived).await.ok();
    let plugin = app.path(&format!("/plugins/{PLUGIN}"));
    app.delete(&plugin, &app.admin()).await.data(204);

    let letter = letters(app).await.remove(0);
    let replay = app.path(&format!("/dead-letters/{}/replay", text(&letter, "id")));
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "still_failing");
    let all = app.path("/dead-letters/replay");
    let queued = app.post(&all, &app.editor(), &json!({"filter": {}})).await;
    let job = ended(app, &text(&queued.data(202), "jobId")).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 0, "stillFailing": 1, "skipped": 0})
    );
    assert_eq!(letters(app).await[0]["reason"], "plugin_unavailable");
}

/// A message of a campaign that waits until the campaign goes on; answers its id.
async fn parked(app: &TestApp, ada: &Session, providers: &Providers, campaign: &str) -> String {
    // She has no device yet, so that the message is skipped at first.
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.push_token(ada, "phone", &providers.fcm.token(1)).await;
    set(app, campaign, "paused").await;
    execute(
        app,
        "UPDATE deliveries SET status = 'queued', reason = NULL, ended_at = NULL, due_at = 1 WHERE status = $1",
        &["skipped"],
    )
    .await;
    app.until("the message is not parked", async || {
        let parked: Vec<(String,)> = app
            .rows("SELECT status FROM deliveries WHERE due_at IS NULL AND node IS NULL")
            .await;
        parked == [("queued".to_owned(),)]
    })
    .await;
    id
}

/// A message that waits for its campaign says what the campaign said when it was asked for, by the plugin of then.
async fn a_message_whose_plugin_is_gone_leaves_a_letter_and_is_made_once_it_is_back(
    app: &mut TestApp,
) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let ada = app.session("ada").await;
    let slot = break_personalization(app).await;
    app.delete(&slot, &app.admin()).await.data(204);
    let source = json!({"kind": "user_property"});
    let mut spec = personalization(&source, &[("name", "name", "string")]);
    spec["plugin"] = json!(PLUGIN);
    let variants = json!([{"title": "Hello {{p.name}}", "personalization": spec}]);
    let parts = json!({"mode": "transactional", "trigger": null, "variants": variants});
    let campaign = app.campaign(&parts).await;
    let id = parked(app, &ada, &providers, &campaign).await;

    // The campaign does without the plugin.
    let path = app.path(&format!("/campaigns/{campaign}"));
    let change = json!({"variants": [{"title": "Hello"}]});
    app.patch(&path, &app.editor(), &change).await.ok();
    let plugin = app.path(&format!("/plugins/{PLUGIN}"));
    app.delete(&plugin, &app.admin()).await.data(204);
    set(app, &campaign, "active").await;
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(failed["reason"], "plugin_error");
    let letter = letters(app).await.remove(0);
    assert_eq!(
        (
            &letter["reason"],
            &letter["eventName"],
            &letter["eventId"],
            &letter["plugin"]
        ),
        (
            &json!("plugin_unavailable"),
            &json!("$transactional"),
            &json!(id),
            &Value::Null
        )
    );
    assert_eq!(replay(app, &letter).await, "still_failing");

    break_personalization(app).await;
    app.delete(&slot, &app.admin()).await.data(204);
    assert_eq!(replay(app, &letter).await, "replayed");
    assert_eq!(letters(app).await.len(), 0);
    // The plugin finds no value.
    app.delivery_in(&id, "skipped").await;
}

async fn letters_of_campaigns_that_do_not_run_wait(app: &mut TestApp) {
    let providers = people(app).await;
    let ada = app.session("ada").await;
    let slot = break_personalization(app).await;
    let mut campaigns = Vec::new();
    for mode in ["triggered", "transactional"] {
        for status in ["paused", "archived", "draft"] {
            let campaign = campaign(app, mode, json!({"ignoreGlobalCap": true})).await;
            messages(app, &ada, &campaign, ("failed", 1)).await;
            set(app, &campaign, status).await;
            campaigns.push(campaign);
        }
    }
    app.delete(&slot, &app.admin()).await.data(204);
    let kept = letters(app).await;
    assert_eq!(kept.len(), campaigns.len());
    for letter in &kept {
        assert_eq!(replay(app, letter).await, "still_failing");
    }
    let all = app.path("/dead-letters/replay");
    let queued = app.post(&all, &app.editor(), &json!({"filter": {}})).await;
    let job = ended(app, &text(&queued.data(202), "jobId")).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 0, "stillFailing": 6, "skipped": 0})
    );
    for letter in letters(app).await {
        assert_eq!(
            (&letter["reason"], &letter["attempts"]),
            (&json!("campaign_not_active"), &json!(2))
        );
    }
    assert_eq!(app.deliveries("?status=failed").await.len(), 6);
    assert_eq!(providers.fcm.received().len(), 0);

    for campaign in &campaigns {
        set(app, campaign, "active").await;
    }
    for letter in &kept {
        assert_eq!(replay(app, letter).await, "replayed");
    }
    for campaign in &campaigns {
        come(app, campaign, ("delivered", 1)).await;
    }
    assert_eq!(letters(app).await.len(), 0);
}

/// Between a replay and the hand-over, too: here are quiet hours.
async fn what_a_replay_queued_waits_and_ends_with_its_campaign(app: &mut TestApp) {
    let providers = people(app).await;
    let ada = app.session("ada").await;
    let slot = break_personalization(app).await;
    let mut campaigns = Vec::new();
    for _ in 0..2 {
        let campaign = campaign(app, "triggered", Value::Null).await;
        messages(app, &ada, &campaign, ("failed", 1)).await;
        // The next purchase is none of its.
        set(app, &campaign, "paused").await;
        campaigns.push(campaign);
    }
    for campaign in &campaigns {
        set(app, campaign, "active").await;
    }
    app.delete(&slot, &app.admin()).await.data(204);
    let quiet = json!({"quietHours": app.an_hour_of_quiet("defer")});
    app.patch(&app.path("/settings"), &app.admin(), &quiet)
        .await
        .ok();
    for letter in letters(app).await {
        assert_eq!(replay(app, &letter).await, "replayed");
    }
    let [paused, archived] = [&campaigns[0], &campaigns[1]];
    set(app, paused, "paused").await;
    set(app, archived, "archived").await;
    app.advance(3_661);
    let cancelled = come(app, archived, ("cancelled", 1)).await;
    assert_eq!(cancelled[0]["reason"], "campaign_not_active");
    app.until("the other is not parked", async || {
        let parked: Vec<(String,)> = app
            .rows("SELECT content FROM deliveries WHERE due_at IS NULL AND node IS NULL AND status = 'queued'")
            .await;
        parked.len() == 1
    })
    .await;
    assert_eq!(providers.fcm.received().len(), 0);
    set(app, paused, "active").await;
    come(app, paused, ("delivered", 1)).await;
    assert_eq!(providers.fcm.received().len(), 1);
}

async fn a_replay_goes_past_no_cap(app: &mut TestApp) {
    let providers = people(app).await;
    let ada = app.session("ada").await;
    let slot = break_personalization(app).await;
    let once = || json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let triggered = campaign(app, "triggered", once()).await;
    let asked = campaign(app, "transactional", once()).await;
    messages(app, &ada, &triggered, ("failed", 1)).await;
    messages(app, &ada, &triggered, ("failed", 2)).await;
    messages(app, &ada, &asked, ("failed", 1)).await;
    app.delete(&slot, &app.admin()).await.data(204);
    messages(app, &ada, &asked, ("delivered", 1)).await;
    // Of the two of the triggered campaign the second meets the first.
    for letter in letters(app).await {
        assert_eq!(replay(app, &letter).await, "replayed");
    }
    for campaign in [&triggered, &asked] {
        let skipped = come(app, campaign, ("skipped", 1)).await;
        assert_eq!(skipped[0]["reason"], "frequency_cap");
        come(app, campaign, ("delivered", 1)).await;
        assert_eq!(app.campaign_of(campaign).await["stats"]["skipped"], 1);
    }
    assert_eq!(app.deliveries("").await.len(), 4);
    assert_eq!(providers.fcm.received().len(), 2);
    assert_eq!(letters(app).await.len(), 0);
}

async fn an_endpoint_is_told_of_a_message_that_fails_again(app: &mut TestApp) {
    let providers = people(app).await;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[EventType::Failed]).await;
    let slot = break_personalization(app).await;
    let campaign = campaign(app, "transactional", json!({"ignoreGlobalCap": true})).await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    let first = receiver.wait(app, "/", 1).await;
    app.delete(&slot, &app.admin()).await.data(204);
    let refusal = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}});
    providers.fcm.reply_next(Reply::json(400, &refusal));

    assert_eq!(replay(app, &letters(app).await[0]).await, "replayed");
    let told = receiver.wait(app, "/", 2).await;
    assert_eq!(first[0].json()["data"]["deliveryId"], json!(id));
    assert_eq!(told[1].json()["data"]["deliveryId"], json!(id));
    assert_eq!(told[0].json()["data"]["reason"], "plugin_error");
    assert_ne!(told[1].json()["data"]["reason"], "plugin_error");
    assert_ne!(told[0].json()["id"], told[1].json()["id"]);
}
