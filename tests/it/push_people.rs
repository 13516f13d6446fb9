//! Messages of people: what becomes of them when two subjects are one person, and what a copy of somebody's data has
//! of them (contract 2, 6, 9).

use nudge_campaigns::settings::Cap;
use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::campaigns::states;
use tests::providers::{Hold, Providers, Reply};
use tests::session::{Session, text};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::exports::{download, export, lines, reaches};
use crate::identity::Backend;
use crate::receiver::Receiver;

on_both_backends!(
    messages_of_both_are_the_persons_and_go_on,
    a_message_is_its_persons_whoever_that_has_become,
    caps_count_what_both_were_to_get,
    an_export_has_the_persons_messages,
    a_token_that_cannot_be_read_holds_up_its_person_alone,
);

/// Somebody whom FCM reaches.
async fn tablet(app: &TestApp, providers: &Providers) -> Session {
    let tablet = app.session("tablet").await;
    app.push_token(&tablet, "tablet", &providers.fcm.token(1))
        .await;
    tablet
}

async fn order(app: &TestApp, campaign: &str, whom: &str) -> String {
    let body = json!({"campaignId": campaign, "anonymousId": whom});
    text(&app.transactional(&body).await.data(202), "deliveryId")
}

async fn messages_of_both_are_the_persons_and_go_on(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    app.credential(&providers.fcm.credential()).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.push_token(&phone, "phone", &providers.apns.token(1))
        .await;
    let tablet = tablet(app, &providers).await;
    let campaign = app.transactional_campaign().await;
    let first = order(app, &campaign, "phone").await;
    app.delivery_in(&first, "delivered").await;
    let second = order(app, &campaign, "tablet").await;
    app.delivery_in(&second, "delivered").await;
    // One that the service does not take now, and one that waits for its campaign.
    providers.fcm.answer_next(503, "UNAVAILABLE");
    let third = order(app, &campaign, "tablet").await;
    app.until("the answer is not written", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1")
            .await;
        waiting.len() == 1
    })
    .await;

    let merged = backend.identify(app, "tablet", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    assert_ne!(tablet.subject_id, phone.subject_id);

    // The former id leads to the person too.
    let former = format!("?subjectId={}", tablet.subject_id);
    assert_eq!(app.deliveries(&former).await.len(), 3);
    let list = app
        .deliveries(&format!("?subjectId={}", phone.subject_id))
        .await;
    let ids: Vec<String> = list.iter().map(|it| text(it, "deliveryId")).collect();
    assert_eq!(ids, [third.clone(), second.clone(), first.clone()]);
    assert!(
        list.iter()
            .all(|it| it["subjectId"] == json!(phone.subject_id))
    );
    // What is sent again goes to the device that it was for, and to no other.
    app.advance(10);
    let sent = app.delivery_in(&third, "delivered").await;
    assert_eq!(sent["attempts"], 2);
    assert_eq!(providers.fcm.received().len(), 3);
    assert_eq!(providers.apns.received().len(), 1);
    // The person's token speaks for all of them now.
    for id in [&first, &second, &third] {
        assert_eq!(app.receipt(&merged, id, "opened").await["accepted"], 1);
    }
    // A new one goes to both devices.
    let fourth = order(app, &campaign, "phone").await;
    app.delivery_in(&fourth, "delivered").await;
    app.until("both devices get it", async || {
        (
            providers.fcm.received().len(),
            providers.apns.received().len(),
        ) == (4, 2)
    })
    .await;
}

/// A person becomes part of another while a message waits to be handed over, and while another is with the provider.
async fn a_message_is_its_persons_whoever_that_has_become(app: &mut TestApp) {
    app.config.webhooks.allow_http = true;
    app.config.webhooks.allow_private_networks = true;
    let backend = Backend::new(app).await;
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let tablet = tablet(app, &providers).await;
    let campaign = app.transactional_campaign().await;
    let hold = Hold::default();
    let answer = Reply::json(200, &json!({"name": "projects/p/messages/1"}));
    providers.fcm.reply_next(answer.held(&hold));
    let first = order(app, &campaign, "tablet").await;
    app.until("it is not with the provider", async || {
        providers.fcm.received().len() == 1
    })
    .await;
    let merged = backend.identify(app, "tablet", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    // Whoever listens by now is told.
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[EventType::Delivered]).await;
    hold.release();
    let delivered = app.delivery_in(&first, "delivered").await;
    assert_eq!(delivered["subjectId"], json!(phone.subject_id));
    let told = receiver.wait(app, "/", 1).await.remove(0).json();
    let data = &told["data"];
    assert_eq!(
        (&data["deliveryId"], &data["subjectId"], &data["externalId"]),
        (&json!(first), &json!(phone.subject_id), &json!("e-1"))
    );

    // The row of one that was merged is gone by the time that the message is looked at.
    providers.fcm.answer_next(503, "UNAVAILABLE");
    let second = order(app, &campaign, "tablet").await;
    let waits_until = async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT due_at FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1")
            .await;
        waiting.first().map(|row| row.0)
    };
    app.until("the answer is not written", async || {
        waits_until().await.is_some()
    })
    .await;
    let become_of = async |whose: &str| {
        let update = "UPDATE deliveries SET subject_id = $2 WHERE id = $1";
        let mut tx = app.services().db.write().await.unwrap();
        let statement = tx.sql(update).bind(second.parse::<Uuid>().unwrap());
        let statement = statement.bind(whose.parse::<Uuid>().unwrap());
        assert_eq!(statement.execute().await.unwrap(), 1);
        tx.commit().await.unwrap();
    };
    become_of(&tablet.subject_id).await;
    let before = waits_until().await;
    app.advance(10);
    app.until("nobody has looked", async || {
        let after = waits_until().await;
        after.is_some() && after != before
    })
    .await;
    become_of(&phone.subject_id).await;
    app.advance(1);
    let sent = app.delivery_in(&second, "delivered").await;
    assert_eq!(sent["attempts"], 2);
}

/// Each of two is to get a message of a campaign of its own, and the app has one for each person.
async fn caps_count_what_both_were_to_get(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    app.set(|settings| {
        settings.frequency.push = Some(Cap {
            max: 1,
            window_days: 7,
        });
    })
    .await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.push_token(&phone, "phone", &providers.fcm.token(2))
        .await;
    tablet(app, &providers).await;
    // Nothing is sent while the tokens are sealed for others.
    write(
        app,
        "UPDATE push_tokens SET registration = registration || '-'",
    )
    .await;
    let mut ids = Vec::new();
    for whom in ["tablet", "phone"] {
        let campaign = app.transactional_campaign().await;
        ids.push(order(app, &campaign, whom).await);
        app.advance(1);
    }
    let merged = backend.identify(app, "tablet", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    write(
        app,
        "UPDATE push_tokens SET registration = rtrim(registration, '-')",
    )
    .await;
    app.advance(120);

    let skipped = app.delivery_in(&ids[1], "skipped").await;
    assert_eq!(skipped["reason"], "global_cap");
    app.delivery_in(&ids[0], "delivered").await;
    assert_eq!(providers.fcm.received().len(), 2, "one to each device");
}

async fn an_export_has_the_persons_messages(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for (session, number) in [(&ada, 1), (&bob, 2)] {
        let device = format!("device-{number}");
        app.push_token(session, &device, &providers.apns.token(number))
            .await;
    }
    let campaign = app.transactional_campaign().await;
    let opened = order(app, &campaign, "ada").await;
    app.delivery_in(&opened, "delivered").await;
    app.advance(1);
    app.receipt(&ada, &opened, "opened").await;
    providers
        .apns
        .reply_next(Reply::json(400, &json!({"reason": "BadTopic"})));
    let failed = order(app, &campaign, "ada").await;
    app.delivery_in(&failed, "failed").await;
    let others = order(app, &campaign, "bob").await;
    app.delivery_in(&others, "delivered").await;

    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let view = reaches(app, &id, "completed").await;
    let archive = download(app, &view).await;
    let copied = lines(&archive, "deliveries.ndjson");
    assert_eq!(copied.len(), 2);
    for (copy, id) in copied.iter().zip([&opened, &failed]) {
        let shown = app.delivery(id).await;
        for key in [
            "deliveryId",
            "campaignId",
            "variantId",
            "status",
            "content",
            "test",
            "transitions",
            "createdAt",
        ] {
            assert_eq!(copy[key], shown[key], "{key}");
        }
    }
    assert_eq!(
        states(&copied[0]),
        ["queued", "sent", "delivered", "opened"]
    );
    assert_eq!(copied[0]["reason"], Value::Null);
    assert_eq!(copied[1]["reason"], "bad_topic");
    let text = copied.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains(&others));
}

async fn write(app: &TestApp, sql: &'static str) {
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(sql).execute().await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_token_that_cannot_be_read_holds_up_its_person_alone(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.transactional_campaign().await;
    for (whom, token) in [("ada", 1), ("bob", 2)] {
        let session = app.session(whom).await;
        let token = providers.fcm.token(token);
        app.push_token(&session, &format!("of {whom}"), &token)
            .await;
    }
    // It is sealed for another registration.
    write(
        app,
        "UPDATE push_tokens SET registration = registration || '-' WHERE device_id = 'of ada'",
    )
    .await;
    let held = order(app, &campaign, "ada").await;
    let sent = order(app, &campaign, "bob").await;
    app.delivery_in(&sent, "delivered").await;
    app.delivery_in(&held, "queued").await;
    assert_eq!(providers.fcm.received().len(), 1);

    write(
        app,
        "UPDATE push_tokens SET registration = rtrim(registration, '-')",
    )
    .await;
    app.advance(120);
    app.delivery_in(&held, "delivered").await;
}
