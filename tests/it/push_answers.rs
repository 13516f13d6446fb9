//! Push services that answer badly, and then well: what becomes of a message (contract 9).

use serde_json::{Value, json};
use tests::campaigns::states;
use tests::providers::{Hold, Providers, Received, Reply, apns, fcm};
use tests::session::text;
use tests::{TestApp, on_both_backends};

on_both_backends!(
    what_was_handed_over_and_not_answered_is_not_sent_again,
    what_a_service_does_not_take_is_sent_again_and_what_it_took_is_not,
    what_is_never_taken_has_failed_after_six_attempts,
    a_service_is_left_alone_for_as_long_as_it_asks,
    a_device_waits_for_its_own_service_alone,
    what_is_for_now_or_never_is_tried_once,
    what_waits_for_a_service_follows_its_campaign,
    what_waits_for_a_service_keeps_quiet_hours,
);

/// How a service answers, and whether the message is sent again.
fn moods() -> Vec<(&'static str, Reply, bool)> {
    let answer = |status| Reply {
        status,
        ..Reply::default()
    };
    let huge = |status| Reply {
        body: "x".repeat(1_000_000),
        ..answer(status)
    };
    vec![
        ("500", answer(500), true),
        ("503", answer(503).with("retry-after", "30"), true),
        ("429", answer(429).with("retry-after", "45"), true),
        ("says no and floods", huge(503), true),
        ("says no and never ends", answer(500).slowly(), true),
        // It has the message, whatever else it says.
        ("says yes and floods", huge(200), false),
        ("says yes and never ends", answer(200).slowly(), false),
    ]
}

/// The messages that were for a device, by its number.
fn for_device(providers: &Providers, number: u32) -> Vec<Received> {
    let path = format!("/3/device/{}", apns::device_token(number));
    let token = json!(fcm::registration_token(number));
    let apns = providers.apns.received().into_iter();
    let fcm = providers.fcm.received().into_iter();
    apns.filter(|request| request.path == path)
        .chain(fcm.filter(|request| request.json()["message"]["token"] == token))
        .collect()
}

/// How often each message was tried that waits to be sent again.
async fn waiting(app: &TestApp) -> Vec<(i64,)> {
    app.rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL")
        .await
}

async fn transactional(app: &mut TestApp) -> (Providers, String) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.transactional_campaign().await;
    (providers, campaign)
}

async fn what_a_service_does_not_take_is_sent_again_and_what_it_took_is_not(app: &mut TestApp) {
    let (providers, campaign) = transactional(app).await;
    let mut ids = Vec::new();
    for (place, (mood, reply, again)) in moods().into_iter().enumerate() {
        let number = u32::try_from(2 * place).unwrap();
        for (number, is_apns) in [(number, true), (number + 1, false)] {
            let session = app.session(&format!("person-{number}")).await;
            let token = if is_apns {
                providers.apns.reply_next(reply.clone());
                providers.apns.token(number)
            } else {
                providers.fcm.reply_next(reply.clone());
                providers.fcm.token(number)
            };
            let device = format!("device-{number}");
            app.push_token(&session, &device, &token).await;
            let body = json!({"campaignId": campaign, "anonymousId": format!("person-{number}")});
            let id = text(&app.transactional(&body).await.data(202), "deliveryId");
            // The next answer is the next one's.
            app.until("it is handed over", async || {
                for_device(&providers, number).len() == 1
            })
            .await;
            ids.push((mood, number, again, id));
        }
    }
    let put_off = ids.iter().filter(|(_, _, again, _)| *again).count();
    app.until("a service has not answered", async || {
        app.count("deliveries WHERE node IS NOT NULL OR status = 'queued'")
            .await
            == 0
    })
    .await;
    app.advance(60);
    for (mood, number, again, id) in &ids {
        let delivered = app.delivery_in(id, "delivered").await;
        assert_eq!(
            states(&delivered),
            ["queued", "sent", "delivered"],
            "{mood}"
        );
        let received = for_device(&providers, *number);
        let times = 1 + usize::from(*again);
        assert_eq!(
            (delivered["attempts"].as_u64(), received.len()),
            (Some(times as u64), times),
            "{mood}"
        );
        let [first, .., last] = &received[..] else {
            continue;
        };
        assert_eq!(first.body, last.body, "{mood}");
        assert_eq!(first.header("apns-id"), last.header("apns-id"), "{mood}");
    }
    // What was taken is over, however long it is ago.
    app.advance(86_400);
    let order = json!({"campaignId": campaign, "anonymousId": "person-0"});
    let last = text(&app.transactional(&order).await.data(202), "deliveryId");
    app.delivery_in(&last, "delivered").await;
    assert_eq!(waiting(app).await, []);
    let all = providers.apns.received().len() + providers.fcm.received().len();
    assert_eq!(all, ids.len() + put_off + 1);
}

/// One service breaks off, one takes longer than anybody waits, and has the message nevertheless.
async fn what_was_handed_over_and_not_answered_is_not_sent_again(app: &mut TestApp) {
    let (providers, campaign) = transactional(app).await;
    let hold = Hold::default();
    let late = Reply {
        status: 200,
        ..Reply::default()
    };
    providers.apns.reply_next(Reply::reset());
    providers.fcm.reply_next(late.held(&hold));
    let mut ids = Vec::new();
    for (name, token) in [
        ("ada", providers.apns.token(1)),
        ("bob", providers.fcm.token(2)),
    ] {
        let session = app.session(name).await;
        app.push_token(&session, name, &token).await;
        let body = json!({"campaignId": campaign, "anonymousId": name});
        ids.push(text(
            &app.transactional(&body).await.data(202),
            "deliveryId",
        ));
    }
    for id in &ids {
        app.until("it is in doubt", async || {
            app.delivery(id).await["reason"] == "outcome_unknown"
        })
        .await;
    }
    hold.release();
    app.advance(86_400);
    // The sender has looked once more when what comes after is over.
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let next = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.delivery_in(&next, "delivered").await;
    assert_eq!(waiting(app).await, []);
    for id in &ids {
        let left = app.delivery(id).await;
        assert_eq!(
            (&left["status"], &left["attempts"]),
            (&json!("sent"), &json!(1))
        );
    }
    let received = [1, 2].map(|number| for_device(&providers, number).len());
    assert_eq!(received, [2, 1]);
}

async fn what_is_never_taken_has_failed_after_six_attempts(app: &mut TestApp) {
    let (providers, campaign) = transactional(app).await;
    let session = app.session("ada").await;
    app.push_token(&session, "phone", &providers.fcm.token(1))
        .await;
    for _ in 0..7 {
        let busy = json!({"error": {"status": "UNAVAILABLE"}});
        providers.fcm.reply_next(Reply::json(503, &busy));
    }
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    for attempt in 1..6 {
        app.until("the answer is written", async || {
            waiting(app).await == [(attempt,)]
        })
        .await;
        app.advance(3_600);
    }
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(
        (&failed["reason"], &failed["attempts"]),
        (&json!("unavailable"), &json!(6))
    );
    app.advance(86_400);
    let order: Value = json!({"campaignId": campaign, "anonymousId": "ada"});
    let next = text(&app.transactional(&order).await.data(202), "deliveryId");
    // The seventh answer is the next one's. It counts as an attempt before it is on its way.
    app.until("the next one is tried", async || {
        providers.fcm.received().len() > 6
    })
    .await;
    assert_eq!(app.delivery(&next).await["attempts"], 1);
    assert_eq!(providers.fcm.received().len(), 7);
}

/// A message of a campaign of its own that the service has not taken yet.
async fn put_off(app: &TestApp, providers: &Providers) -> (String, String) {
    let campaign = app.transactional_campaign().await;
    let busy = Reply {
        status: 503,
        ..Reply::default()
    };
    providers.fcm.reply_next(busy);
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.until("it is not put off", async || waiting(app).await == [(1,)])
        .await;
    (campaign, id)
}

async fn what_waits_for_a_service_follows_its_campaign(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let session = app.session("ada").await;
    app.push_token(&session, "phone", &providers.fcm.token(1))
        .await;
    let become_ = async |campaign: &str, status: &str| {
        let path = app.path(&format!("/campaigns/{campaign}"));
        let body = json!({"status": status});
        app.patch(&path, &app.editor(), &body).await.ok();
    };

    let (archived, id) = put_off(app, &providers).await;
    become_(&archived, "archived").await;
    app.advance(60);
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(failed["reason"], "campaign_not_active");

    let (deleted, id) = put_off(app, &providers).await;
    let path = app.path(&format!("/campaigns/{deleted}"));
    app.delete(&path, &app.editor()).await.data(204);
    app.advance(60);
    let failed = app.delivery_in(&id, "failed").await;
    assert_eq!(failed["reason"], "campaign_deleted");

    let (paused, id) = put_off(app, &providers).await;
    become_(&paused, "paused").await;
    let due = async || {
        let rows: Vec<(i64,)> = app
            .rows("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL")
            .await;
        rows
    };
    let before = due().await;
    app.advance(60);
    app.until("it is not looked at again", async || {
        let now = due().await;
        now.len() == 1 && now > before
    })
    .await;
    assert_eq!(providers.fcm.received().len(), 3, "one attempt each");
    become_(&paused, "active").await;
    app.advance(60);
    let delivered = app.delivery_in(&id, "delivered").await;
    assert_eq!(delivered["attempts"], 2);
}

/// Quiet hours that begin after the first attempt hold for the next one.
async fn what_waits_for_a_service_keeps_quiet_hours(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let hour = |seconds: i64| app.time(seconds)[11..16].to_owned();
    let quiet = |on_quiet: &str| json!({"quietHours": {"from": hour(120), "to": hour(3_600), "onQuiet": on_quiet}});
    let (defers, drops) = (quiet("defer"), quiet("drop"));
    for (event, schedule) in [("defers", &defers), ("drops", &drops)] {
        let trigger = json!({"kind": "event", "eventName": event});
        app.campaign(&json!({"trigger": trigger, "schedule": schedule}))
            .await;
    }
    let mut people = Vec::new();
    for (number, event) in [(1, "defers"), (2, "drops")] {
        let busy = Reply {
            status: 503,
            ..Reply::default()
        };
        providers.fcm.reply_next(busy.with("retry-after", "600"));
        let session = app.session(event).await;
        app.push_token(&session, "phone", &providers.fcm.token(number))
            .await;
        app.fires(&session, event, &json!({})).await;
        app.until("it is not put off", async || {
            waiting(app).await.len() == people.len() + 1
        })
        .await;
        people.push(session);
    }
    app.advance(700);
    let failed = app.delivered_to(&people[1], "failed", 1).await;
    assert_eq!(failed[0]["reason"], "quiet_hours");
    let end = app.clock.now().0 + 1_000_000_000;
    app.until("it is not put off to their end", async || {
        let due: Vec<(i64,)> = app
            .rows("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL")
            .await;
        due.iter().any(|(at,)| *at > end)
    })
    .await;
    app.advance(3_600);
    let delivered = app.delivered_to(&people[0], "delivered", 1).await;
    assert_eq!(delivered[0]["attempts"], 2);
    assert_eq!(providers.fcm.received().len(), 3);
}

/// Three hours are more than any pause that no service asks for. A message that is worth two hours fails after them.
async fn a_service_is_left_alone_for_as_long_as_it_asks(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let session = app.session("ada").await;
    app.push_token(&session, "phone", &providers.fcm.token(1))
        .await;
    let mut ids = Vec::new();
    for options in [json!({}), json!({"ttlSeconds": 7_200})] {
        let parts = json!({"mode": "transactional", "trigger": null, "options": options});
        let campaign = app.campaign(&parts).await;
        let busy = Reply {
            status: 503,
            ..Reply::default()
        };
        providers.fcm.reply_next(busy.with("retry-after", "10800"));
        let body = json!({"campaignId": campaign, "anonymousId": "ada"});
        ids.push(text(
            &app.transactional(&body).await.data(202),
            "deliveryId",
        ));
        app.until("it is not put off", async || {
            waiting(app).await.len() == ids.len()
        })
        .await;
    }
    let due: Vec<(i64,)> = app
        .rows("SELECT due_at FROM deliveries ORDER BY due_at")
        .await;
    let seconds = |at: i64| (at - app.clock.now().0) / 1_000_000;
    assert!((3_600..=7_200).contains(&seconds(due[0].0)), "{due:?}");
    assert!((7_201..=10_800).contains(&seconds(due[1].0)), "{due:?}");

    app.advance(7_200);
    let failed = app.delivery_in(&ids[1], "failed").await;
    assert_eq!(
        (&failed["reason"], &failed["attempts"]),
        (&json!("expired"), &json!(1)),
        "it was handed over once"
    );
    app.advance(3_600);
    let delivered = app.delivery_in(&ids[0], "delivered").await;
    assert_eq!(delivered["attempts"], 2);
    assert_eq!(providers.fcm.received().len(), 3);
}

/// One service asks for two hours. The other one is asked again before.
async fn a_device_waits_for_its_own_service_alone(app: &mut TestApp) {
    let (providers, campaign) = transactional(app).await;
    let session = app.session("ada").await;
    app.push_token(&session, "phone", &providers.apns.token(1))
        .await;
    app.push_token(&session, "tablet", &providers.fcm.token(2))
        .await;
    let busy = Reply {
        status: 503,
        ..Reply::default()
    };
    providers
        .apns
        .reply_next(busy.clone().with("retry-after", "7200"));
    providers.fcm.reply_next(busy);
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.until("it is not put off", async || waiting(app).await == [(1,)])
        .await;
    let received = || [1, 2].map(|number| for_device(&providers, number).len());
    assert_eq!(received(), [1, 1]);

    app.advance(60);
    app.delivery_in(&id, "delivered").await;
    assert_eq!(received(), [1, 2]);
    assert_eq!(waiting(app).await, [(2,)]);

    app.advance(7_200);
    app.until("the other device gets nothing", async || {
        received() == [2, 2]
    })
    .await;
    app.until("the answer is not written", async || {
        app.count("deliveries WHERE node IS NOT NULL").await == 0
    })
    .await;
    assert_eq!(waiting(app).await, []);
    assert_eq!(app.delivery(&id).await["attempts"], 3);
}

async fn what_is_for_now_or_never_is_tried_once(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let session = app.session("ada").await;
    app.push_token(&session, "phone", &providers.fcm.token(1))
        .await;
    let parts = json!({"mode": "transactional", "trigger": null, "options": {"ttlSeconds": 0}});
    let campaign = app.campaign(&parts).await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    for status in [503, 200] {
        providers.fcm.reply_next(Reply {
            status,
            ..Reply::default()
        });
        let id = text(&app.transactional(&body).await.data(202), "deliveryId");
        let (state, reason) = match status {
            503 => ("failed", json!("expired")),
            _ => ("delivered", Value::Null),
        };
        let ended = app.delivery_in(&id, state).await;
        assert_eq!((&ended["reason"], &ended["attempts"]), (&reason, &json!(1)));
    }
    assert_eq!(waiting(app).await, []);
    assert_eq!(providers.fcm.received().len(), 2);
}
