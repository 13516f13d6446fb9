//! What becomes of push messages: states, retries, restarts, what is kept (contract 9).

use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::campaigns::states;
use tests::providers::{Hold, Providers, Reply, apns};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

use crate::person::execute;
use crate::push_fairness::queue;
use crate::receiver::Receiver;

on_both_backends!(
    a_delivery_is_where_its_furthest_device_is,
    what_a_provider_can_not_take_now_is_sent_again_as_it_was,
    a_delivery_whose_outcome_is_unknown_is_not_sent_again,
    what_waits_for_its_place_is_not_sent_once_it_was_handed_over,
    what_waits_for_its_place_is_not_given_up_once_it_was_handed_over,
    what_was_handed_over_once_more_stays_as_it_is,
    what_is_queued_waits_while_its_campaign_is_paused,
    what_waited_for_its_campaign_keeps_quiet_hours,
    consent_is_asked_again_before_sending,
    a_message_that_is_too_large_fails,
    lists_are_filtered_and_paged,
    a_test_counts_nowhere,
    deliveries_go_after_their_days,
    what_a_cap_counts_outlives_its_days_without_content,
    what_no_clock_counts_any_longer_goes,
);

async fn order(app: &TestApp, campaign: &str) -> String {
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    text(&app.transactional(&body).await.data(202), "deliveryId")
}

async fn a_delivery_is_where_its_furthest_device_is(app: &mut TestApp) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    app.push_token(&ada, "tablet", &providers.apns.token(2))
        .await;
    providers
        .apns
        .refuse(&apns::device_token(1), 410, "Unregistered");
    let delivered = app
        .delivery_in(&order(app, &campaign).await, "delivered")
        .await;
    assert_eq!(states(&delivered), ["queued", "sent", "delivered"]);
    assert_eq!(
        (&delivered["attempts"], &delivered["test"]),
        (&json!(1), &json!(false))
    );

    providers
        .apns
        .refuse(&apns::device_token(2), 410, "Unregistered");
    let bounced = app
        .delivery_in(&order(app, &campaign).await, "bounced")
        .await;
    assert_eq!(states(&bounced), ["queued", "sent", "bounced"]);
    let skipped = app.delivery(&order(app, &campaign).await).await;
    assert_eq!(
        (&skipped["status"], &skipped["reason"]),
        (&json!("skipped"), &json!("no_active_device"))
    );
    let stats = app.campaign_of(&campaign).await["stats"].clone();
    let counted =
        ["queued", "sent", "delivered", "bounced", "skipped"].map(|it| stats[it].as_i64().unwrap());
    assert_eq!(counted, [3, 2, 1, 1, 1]);
}

async fn what_a_provider_can_not_take_now_is_sent_again_as_it_was(app: &mut TestApp) {
    let (providers, _, campaign) = app.with_phone_and_campaign().await;
    providers
        .apns
        .reply_next(Reply::json(503, &json!({"reason": "ServiceUnavailable"})));
    let id = order(app, &campaign).await;
    app.until("the message is not tried", async || {
        app.delivery(&id).await["attempts"] == 1
    })
    .await;
    app.until("the answer is not written", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL")
            .await;
        waiting.len() == 1
    })
    .await;
    assert_eq!(app.delivery(&id).await["status"], "sent");
    // What it says does not change, whatever becomes of the campaign.
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.patch(
        &path,
        &app.editor(),
        &json!({"variants": [{"title": "Other"}]}),
    )
    .await
    .ok();
    app.advance(10);
    let delivered = app.delivery_in(&id, "delivered").await;
    assert_eq!(delivered["attempts"], 2);
    let received = providers.apns.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(received[0].header("apns-id"), received[1].header("apns-id"));
}

/// A process that ended between the hand-over and its outcome, which nobody can tell.
async fn a_delivery_whose_outcome_is_unknown_is_not_sent_again(app: &mut TestApp) {
    let (providers, _, campaign) = app.with_phone_and_campaign().await;
    let id = order(app, &campaign).await;
    app.delivery_in(&id, "delivered").await;
    execute(
        app,
        "UPDATE deliveries SET status = 'sent', delivered_at = NULL, due_at = 1,
        devices = REPLACE(devices, 'accepted', 'sending') WHERE status <> $1",
        &["queued"],
    )
    .await;
    app.until("the delivery is not taken over", async || {
        app.count("deliveries WHERE due_at IS NOT NULL").await == 0
    })
    .await;
    let left = app.delivery(&id).await;
    assert_eq!(
        (&left["status"], &left["reason"]),
        (&json!("sent"), &json!("outcome_unknown"))
    );
    assert_eq!(providers.apns.received().len(), 1);
}

/// Messages of an app that are with a service at a time, and some that wait for their places: as many as take theirs together,
/// whichever of them do first.
const WITH_SERVICE: usize = 256;
const WAITING: usize = 64;

/// Waits until the sender has no message in hand, then until it has found out about those that it has claimed nevertheless, and nothing
/// is left to be done.
async fn nothing_is_left(app: &TestApp) {
    app.until("a delivery is in hand", async || {
        app.services().pipeline.deliveries().is_empty()
    })
    .await;
    app.until("a delivery is left", async || {
        app.advance(3);
        app.count("deliveries WHERE due_at IS NOT NULL").await == 0
    })
    .await;
}

/// As many messages are with the service as may be, and others wait for their places. A process that was taken for dead has claimed
/// those once more and handed them over, while it still has them in hand from before. Answers the campaign too.
async fn handed_over_from_other_hands(app: &mut TestApp) -> (Providers, Hold, String) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    let hold = Hold::default();
    let taken = Reply {
        status: 200,
        ..Reply::default()
    };
    for _ in 0..WITH_SERVICE + WAITING {
        providers.apns.reply_next(taken.clone().held(&hold));
    }
    queue(app, &campaign, &ada, WITH_SERVICE + WAITING).await;
    app.until("the others do not wait for their places", async || {
        let handed_over = app.count("deliveries WHERE attempts = 1").await;
        let waiting = app
            .count("deliveries WHERE attempts = 0 AND node IS NOT NULL")
            .await;
        (handed_over, waiting) == (WITH_SERVICE, WAITING)
    })
    .await;
    execute(
        app,
        "UPDATE deliveries SET status = 'sent', attempts = 1,
             content = (SELECT max(content) FROM deliveries WHERE attempts = 1),
             devices = (SELECT max(devices) FROM deliveries WHERE attempts = 1) WHERE attempts = 0",
        &[],
    )
    .await;
    (providers, hold, campaign)
}

async fn what_waits_for_its_place_is_not_sent_once_it_was_handed_over(app: &mut TestApp) {
    let (providers, hold, _) = handed_over_from_other_hands(app).await;
    hold.release();
    app.until("what is with the service is not taken", async || {
        app.count("deliveries WHERE status = 'delivered'").await >= WITH_SERVICE
    })
    .await;
    nothing_is_left(app).await;
    assert_eq!(providers.apns.received().len(), WITH_SERVICE);
    let unknown = "deliveries WHERE status = 'sent' AND reason = 'outcome_unknown'";
    assert_eq!(app.count(unknown).await, WAITING);
}

/// Without a hand-over they would be given up until their campaign runs again.
async fn what_waits_for_its_place_is_not_given_up_once_it_was_handed_over(app: &mut TestApp) {
    let (_providers, hold, campaign) = handed_over_from_other_hands(app).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    hold.release();
    app.until("a delivery is in hand", async || {
        app.services().pipeline.deliveries().is_empty()
    })
    .await;
    let looked_after = "deliveries WHERE status = 'sent' AND due_at IS NOT NULL";
    assert_eq!(app.count(looked_after).await, WAITING);
}

/// What became of the hand-over before is noted late, as by a process that did not hear that it was noted already.
async fn what_was_handed_over_once_more_stays_as_it_is(app: &mut TestApp) {
    let (providers, _, campaign) = app.with_phone_and_campaign().await;
    let hold = Hold::default();
    let busy = Reply::json(503, &json!({"reason": "ServiceUnavailable"}));
    providers.apns.reply_next(busy.held(&hold));
    let id = order(app, &campaign).await;
    app.until("it is not with the service", async || {
        providers.apns.received().len() == 1
    })
    .await;
    let again = "UPDATE deliveries SET attempts = 2 WHERE attempts = 1";
    execute(app, again, &[]).await;

    hold.release();
    nothing_is_left(app).await;
    assert_eq!(providers.apns.received().len(), 1);
    let left = app.delivery(&id).await;
    assert_eq!(
        (&left["status"], &left["reason"], &left["attempts"]),
        (&json!("sent"), &json!("outcome_unknown"), &json!(2))
    );
}

/// Has a delivery wait for its campaign, which is paused, as if it had been queued a moment before the pause.
async fn parked(app: &TestApp) {
    execute(app, "INSERT INTO deliveries (id, app_id, campaign_id, campaign_version, variant_id, subject_id, test, recipients, status, attempts, lane, due_at, created_at)
        SELECT c.id, c.app_id, c.id, c.version, c.id, t.subject_id, FALSE, 1, 'queued', 0, 1, 1, c.created_at
        FROM campaigns c JOIN push_tokens t ON t.app_id = c.app_id WHERE c.status = $1", &["paused"]).await;
    app.until("the delivery is not parked", async || {
        let parked: Vec<(String,)> = app
            .rows("SELECT status FROM deliveries WHERE due_at IS NULL AND node IS NULL")
            .await;
        parked == [("queued".to_owned(),)]
    })
    .await;
}

/// Whoever has a campaign go on at night wakes nobody.
async fn what_waited_for_its_campaign_keeps_quiet_hours(app: &mut TestApp) {
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let set = async |status: &str| {
        let change = json!({"status": status});
        app.patch(&path, &app.editor(), &change).await.ok();
    };
    let quiet = |on_quiet: &str| json!({"quietHours": app.an_hour_of_quiet(on_quiet)});
    let settings = app.path("/settings");
    app.patch(&settings, &app.admin(), &quiet("defer"))
        .await
        .ok();
    set("paused").await;
    parked(app).await;
    let now = app.clock.now().0;
    set("active").await;
    app.until("it is not put off", async || {
        let due: Vec<(i64,)> = app
            .rows("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND status = 'queued'")
            .await;
        due.iter().any(|(at,)| *at > now + 3_000_000_000)
    })
    .await;
    app.advance(3_661);
    // Its variant is none of the campaign's: it would be sent now.
    let ended = app.delivered_to(&ada, "cancelled", 1).await;
    assert_eq!(ended[0]["reason"], "variant_gone");

    execute(app, "DELETE FROM deliveries", &[]).await;
    app.patch(&settings, &app.admin(), &quiet("drop"))
        .await
        .ok();
    set("paused").await;
    parked(app).await;
    set("active").await;
    let ended = app.delivered_to(&ada, "skipped", 1).await;
    assert_eq!(ended[0]["reason"], "quiet_hours");
}

async fn what_is_queued_waits_while_its_campaign_is_paused(app: &mut TestApp) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    parked(app).await;
    app.patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    // Its variant is none of the campaign's: the sender has looked at it again.
    let ended = app.delivered_to(&ada, "cancelled", 1).await;
    assert_eq!(ended[0]["reason"], "variant_gone");
    assert_eq!(providers.apns.received().len(), 0);
}

async fn consent_is_asked_again_before_sending(app: &mut TestApp) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    providers
        .apns
        .reply_next(Reply::json(503, &json!({"reason": "ServiceUnavailable"})));
    let id = order(app, &campaign).await;
    app.until("the message is not tried", async || {
        let waiting: Vec<(i64,)> = app.rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1").await;
        waiting.len() == 1
    })
    .await;
    let body = json!({"anonymousId": "ada", "messaging": false});
    app.post("/v1/sdk/consent", &ada.credential(), &body)
        .await
        .ok();
    app.advance(10);
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(failed["reason"], "consent_missing");
    assert_eq!(providers.apns.received().len(), 1);
}

async fn a_message_that_is_too_large_fails(app: &mut TestApp) {
    app.config.webhooks.allow_http = true;
    app.config.webhooks.allow_private_networks = true;
    let (providers, _, _) = app.with_phone_and_campaign().await;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[EventType::Failed]).await;
    let campaign = app
        .campaign(&json!({"mode": "transactional", "trigger": null, "variants": [{"title": "t", "body": "b".repeat(5_000)}]}))
        .await;
    let failed = app
        .delivery_in(&order(app, &campaign).await, "failed")
        .await;
    assert_eq!(failed["reason"], "payload_too_large");
    assert_eq!(states(&failed), ["queued", "failed"]);
    assert_eq!(providers.apns.received().len(), 0);
    let told = receiver.wait(app, "/", 1).await.remove(0).json();
    assert_eq!(told["data"]["platform"], "ios");
}

async fn lists_are_filtered_and_paged(app: &mut TestApp) {
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, order(app, &campaign).await);
        app.advance(1);
    }
    app.delivered_to(&ada, "delivered", 5).await;
    let listed = |items: Vec<Value>| {
        items
            .iter()
            .map(|it| text(it, "deliveryId"))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(app.deliveries("").await), ids);
    assert_eq!(app.deliveries("?status=failed").await.len(), 0);
    assert_eq!(
        app.deliveries(&format!("?campaignId={}", app.id()))
            .await
            .len(),
        0
    );
    let second = text(&app.delivery(&ids[1]).await, "createdAt");
    assert_eq!(
        listed(app.deliveries(&format!("?from={second}")).await),
        ids[..2]
    );
    assert_eq!(
        listed(app.deliveries(&format!("?to={second}")).await),
        ids[2..]
    );

    let path = app.path("/push/deliveries?limit=2");
    let mut found = Vec::new();
    let mut page = app.get(&path, &app.viewer()).await.ok();
    loop {
        found.extend(listed(page["items"].as_array().unwrap().clone()));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        page = app
            .get(&format!("{path}&cursor={cursor}"), &app.viewer())
            .await
            .ok();
    }
    assert_eq!(found, ids);
    for query in ["?limit=0", "?limit=201", "?status=lost", "?from=yesterday"] {
        let path = app.path(&format!("/push/deliveries{query}"));
        app.get(&path, &app.viewer())
            .await
            .refused(422, "validation_failed");
    }
    let path = app.path(&format!("/push/deliveries/{}", app.id()));
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn a_test_counts_nowhere(app: &mut TestApp) {
    let (providers, _, _) = app.with_phone_and_campaign().await;
    let draft = json!({"name": "n", "status": "draft", "variants": [{"title": "a", "weight": 1}, {"title": "b", "weight": 0}]});
    let made = app.create_campaign(&draft).await.data(201);
    let path = app.path(&format!("/campaigns/{}/test-send", text(&made, "id")));
    let send = async |body: Value| app.post(&path, &app.editor(), &body).await;
    let tested = send(json!({"anonymousId": "ada", "variantId": made["variants"][1]["id"]}))
        .await
        .data(202);
    assert_eq!(
        (&tested["status"], &tested["devices"]),
        (&json!("queued"), &json!(1))
    );
    assert_eq!(tested["content"]["title"], "b");
    let delivered = app
        .delivery_in(&text(&tested, "deliveryId"), "delivered")
        .await;
    assert_eq!(delivered["test"], true);
    assert_eq!(
        providers.apns.received()[0].json()["aps"]["alert"]["title"],
        "b"
    );
    assert_eq!(
        app.campaign_of(&text(&made, "id")).await["stats"]["sent"],
        0
    );

    // One that can't be made has failed at once, of which webhooks hear.
    let receiver = Receiver::start().await;
    let hook = json!({"url": receiver.url("/hook"), "eventTypes": ["failed"]});
    app.post(&app.path("/push/webhooks"), &app.admin(), &hook)
        .await
        .data(201);
    let spec = json!({"version": 1, "missingData": "fail",
        "sources": [{"id": "u", "kind": "user_property", "label": "u"}],
        "bindings": [{"id": "plan", "sourceId": "u", "key": "plan", "type": "string"}]});
    let broken = json!({"name": "b", "status": "draft",
        "variants": [{"title": "{{p.plan}}", "weight": 1, "personalization": spec}]});
    let broken = app.create_campaign(&broken).await.data(201);
    let failing = app.path(&format!("/campaigns/{}/test-send", text(&broken, "id")));
    let to_ada = json!({"anonymousId": "ada"});
    let failed = app.post(&failing, &app.editor(), &to_ada).await.data(202);
    assert_eq!(failed["status"], "failed");
    let heard = receiver.wait(app, "/hook", 1).await;
    assert_eq!(heard[0].json()["data"]["test"], true);

    send(json!({"anonymousId": "ada", "data": {}}))
        .await
        .refused(422, "data_not_allowed");
    send(json!({"anonymousId": "nobody"}))
        .await
        .refused(404, "subject_not_found");
    send(json!({"anonymousId": "ada", "variantId": app.id()}))
        .await
        .refused(422, "validation_failed");
    let path = app.path(&format!("/campaigns/{}/test-send", app.id()));
    app.post(&path, &app.editor(), &json!({"anonymousId": "ada"}))
        .await
        .refused(404, "not_found");
}

async fn deliveries_go_after_their_days(app: &mut TestApp) {
    const DAY: u64 = 24 * 3600;
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    order(app, &campaign).await;
    app.delivered_to(&ada, "delivered", 1).await;
    let kept = async |app: &TestApp| {
        let rows: Vec<(String,)> = app.rows("SELECT status FROM deliveries").await;
        rows.len()
    };
    app.set(|settings| settings.retention.deliveries_days = Some(7))
        .await;
    app.advance(6 * DAY);
    let ben = app.session("ben").await;
    let event = app.event(&ben, "anything", &json!({}));
    app.ingest(&ben, &[event]).await.ok();
    assert_eq!(kept(app).await, 1);
    app.advance(DAY + 7200);
    app.until("the delivery outlives its days", async || {
        kept(app).await == 0
    })
    .await;
}

/// A person's device, and a campaign that `purchase` sends under a cap.
async fn capped(app: &mut TestApp, cap: Value) -> (Providers, Session) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    app.campaign(&json!({"frequencyCap": cap})).await;
    (providers, ada)
}

async fn buys(app: &TestApp, session: &Session) {
    let event = app.event(session, "purchase", &json!({}));
    app.ingest(session, &[event]).await.ok();
    app.settle().await;
}

/// Status, content, devices and key of every delivery.
async fn stored(app: &TestApp) -> Vec<(String, Option<String>, Option<String>, Option<String>)> {
    app.rows("SELECT status, content, devices, idempotency_key FROM deliveries ORDER BY created_at")
        .await
}

async fn what_a_cap_counts_outlives_its_days_without_content(app: &mut TestApp) {
    const DAY: u64 = 24 * 3600;
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let (_providers, ada) = capped(app, cap).await;
    buys(app, &ada).await;
    app.delivered_to(&ada, "delivered", 1).await;
    app.advance(91 * DAY);
    app.until("the delivery keeps what it said", async || {
        let rows = stored(app).await;
        rows == [("kept".to_owned(), None, None, None)] || rows.is_empty()
    })
    .await;
    assert_eq!(stored(app).await.len(), 1, "the cap counts it");
    let ada = app.session("ada").await;
    buys(app, &ada).await;
    assert_eq!(stored(app).await.len(), 1, "it is sent again");
    let reasons: Vec<(String,)> = app
        .rows("SELECT suppressed_by FROM instructions WHERE suppressed_by IS NOT NULL")
        .await;
    assert_eq!(reasons, [("frequency_cap".to_owned(),)]);

    execute(app, "DELETE FROM campaigns", &[]).await;
    app.advance(7200);
    app.until("it outlives its campaign", async || {
        stored(app).await.is_empty()
    })
    .await;
}

async fn what_no_clock_counts_any_longer_goes(app: &mut TestApp) {
    const DAY: u64 = 24 * 3600;
    let (_providers, ada) = capped(app, json!({"cooldownDays": {"self": 10}})).await;
    app.set(|settings| settings.retention.deliveries_days = Some(1))
        .await;
    buys(app, &ada).await;
    let sent = app.delivered_to(&ada, "delivered", 1).await;
    let delivery = app.path(&format!(
        "/push/deliveries/{}",
        text(&sent[0], "deliveryId")
    ));
    let campaign = text(&sent[0], "campaignId");
    let analytics = app.path(&format!("/campaigns/{campaign}/analytics"));
    app.get(&delivery, &app.viewer()).await.ok();
    let before = app.get(&analytics, &app.viewer()).await.ok();
    assert_eq!(before["totals"]["recipients"], 1);
    app.advance(2 * DAY);
    app.until("the delivery keeps its status", async || {
        stored(app).await.first().is_none_or(|row| row.0 == "kept")
    })
    .await;
    assert_eq!(stored(app).await.len(), 1, "the pause counts it");
    let gone = app.get(&delivery, &app.viewer()).await;
    gone.refused(404, "not_found");
    let report = app.get(&analytics, &app.viewer()).await.ok();
    assert_eq!(report["totals"]["recipients"], 0, "{report}");
    assert_eq!(report["series"], json!([]));
    app.advance(9 * DAY);
    app.until("the delivery outlives the pause", async || {
        stored(app).await.is_empty()
    })
    .await;
}
