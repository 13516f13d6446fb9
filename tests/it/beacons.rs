//! What devices say of messages (contract 9).

use nudge_campaigns::webhooks::EventType::{Clicked, Dismissed, Displayed, Opened};
use nudge_db::Dialect;
use serde_json::{Value, json};
use tests::campaigns::states;
use tests::providers::{Providers, apns};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    each_type_counts_once_and_states_go_forward,
    what_arrived_nevertheless_has_no_reason_of_an_end,
    only_the_persons_own_deliveries_are_known,
    malformed_receipts_are_refused,
    receipts_at_the_same_time_count_once,
    receipts_of_a_request_are_one_transaction,
    a_clock_that_is_behind_opens_nothing_before_it_is_sent,
);

use crate::receiver::Receiver;

/// Somebody with a message on a device.
async fn message(app: &mut TestApp) -> (Providers, Session, String, String) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.delivery_in(&id, "delivered").await;
    (providers, ada, campaign, id)
}

async fn each_type_counts_once_and_states_go_forward(app: &mut TestApp) {
    let (_providers, ada, campaign, id) = message(app).await;
    for (kind, status) in [
        ("opened", "opened"),
        // Late, and again.
        ("displayed", "opened"),
        ("opened", "opened"),
        ("dismissed", "opened"),
        ("clicked", "clicked"),
        ("opened", "clicked"),
    ] {
        app.advance(1);
        let answer = app.receipt(&ada, &id, kind).await;
        assert_eq!(answer, json!({"accepted": 1, "unknown": []}), "{kind}");
        assert_eq!(app.delivery(&id).await["status"], status, "{kind}");
    }
    let delivery = app.delivery(&id).await;
    assert_eq!(
        states(&delivery),
        [
            "queued",
            "sent",
            "delivered",
            "opened",
            "displayed",
            "dismissed",
            "clicked"
        ]
    );
    let stats = app.campaign_of(&campaign).await["stats"].clone();
    for state in [
        "sent",
        "delivered",
        "displayed",
        "opened",
        "clicked",
        "dismissed",
    ] {
        assert_eq!(stats[state], 1, "{state}");
    }
}

async fn what_arrived_nevertheless_has_no_reason_of_an_end(app: &mut TestApp) {
    let (providers, ada, campaign, _) = message(app).await;
    let device = apns::device_token(1);
    providers.apns.refuse(&device, 410, "Unregistered");
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.delivery_in(&id, "bounced").await;
    assert_eq!(app.delivery(&id).await["reason"], "unregistered");
    app.receipt(&ada, &id, "opened").await;
    let delivery = app.delivery(&id).await;
    assert_eq!(
        (&delivery["status"], delivery.get("reason")),
        (&json!("opened"), None)
    );
}

async fn only_the_persons_own_deliveries_are_known(app: &mut TestApp) {
    let (_providers, _, _, id) = message(app).await;
    let ben = app.session("ben").await;
    let nobodys = app.id().to_string();
    let body = json!({"receipts": [{"deliveryId": id, "type": "opened"}, {"deliveryId": nobodys, "type": "opened"}]});
    let answer = app
        .post("/v1/sdk/push/receipts", &ben.credential(), &body)
        .await
        .ok();
    assert_eq!(answer, json!({"accepted": 0, "unknown": [id, nobodys]}));
    assert_eq!(app.delivery(&id).await["status"], "delivered");
}

async fn malformed_receipts_are_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let receipt = json!({"deliveryId": app.id(), "type": "opened"});
    let with = |parts: Value| {
        let mut receipt = receipt.clone();
        receipt
            .as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        json!({"receipts": [receipt]})
    };
    for body in [
        json!({}),
        json!({"receipts": []}),
        json!({"receipts": vec![receipt.clone(); 101]}),
        with(json!({"type": "seen"})),
        with(json!({"deliveryId": "x"})),
        with(json!({"at": "now"})),
        with(json!({"actionId": "a".repeat(201)})),
    ] {
        app.post("/v1/sdk/push/receipts", &ada.credential(), &body)
            .await
            .refused(422, "validation_failed");
    }
    let most = json!({"receipts": vec![receipt.clone(); 100], "sdk": "new"});
    app.post("/v1/sdk/push/receipts", &ada.credential(), &most)
        .await
        .ok();
    app.post("/v1/sdk/push/receipts", &app.sdk(), &most)
        .await
        .refused(401, "subject_token_required");
}

async fn receipts_at_the_same_time_count_once(app: &mut TestApp) {
    let (_providers, ada, campaign, id) = message(app).await;
    let sent = (0..10).map(|_| app.receipt(&ada, &id, "displayed"));
    for answer in futures_util::future::join_all(sent).await {
        assert_eq!(answer["accepted"], 1);
    }
    assert_eq!(app.campaign_of(&campaign).await["stats"]["displayed"], 1);
}

async fn receipts_of_a_request_are_one_transaction(app: &mut TestApp) {
    let (_providers, ada, campaign, first) = message(app).await;
    let receiver = Receiver::start().await;
    let events = [Displayed, Opened, Clicked, Dismissed];
    receiver.subscribe(app, "/hook", &events).await;
    let mut ids = vec![first];
    for _ in 1..25 {
        let body = json!({"campaignId": campaign, "anonymousId": "ada"});
        ids.push(text(
            &app.transactional(&body).await.data(202),
            "deliveryId",
        ));
    }
    for id in &ids {
        app.delivery_in(id, "delivered").await;
    }
    let kinds = ["displayed", "opened", "clicked"];
    let mut receipts = Vec::new();
    for id in &ids {
        for kind in kinds {
            receipts.push(json!({"deliveryId": id, "type": kind, "actionId": "b"}));
        }
        // Again, and with another button: the first one counts.
        receipts.push(json!({"deliveryId": id, "type": "clicked", "actionId": "c"}));
    }
    let nobodys = app.id().to_string();
    receipts[7]["deliveryId"] = json!(nobodys);
    let body = json!({"receipts": receipts});
    let expected = json!({"accepted": 99, "unknown": [nobodys]});
    for _ in 0..2 {
        let answer = app
            .post("/v1/sdk/push/receipts", &ada.credential(), &body)
            .await
            .ok();
        assert_eq!(answer, expected);
        for id in &ids {
            let delivery = app.delivery(id).await;
            assert_eq!(delivery["status"], "clicked");
        }
        let stats = app.campaign_of(&campaign).await["stats"].clone();
        for kind in kinds {
            assert_eq!(stats[kind], 25, "{kind}");
        }
    }
    let path = app.path(&format!("/campaigns/{campaign}/analytics"));
    let report = app.get(&path, &app.viewer()).await.ok();
    let clicks = json!([{"actionId": "b", "clicked": 25}]);
    assert_eq!(report["perAction"], clicks);
    // What is told of them was queued at one instant, each delivery's in the order of its receipts.
    let instants: Vec<(i64,)> = app
        .rows("SELECT DISTINCT created_at FROM webhook_messages")
        .await;
    assert_eq!(instants.len(), 1, "one transaction");
    let requests = receiver.wait(app, "/hook", 75).await;
    for id in &ids {
        let of_id: Vec<Value> = requests
            .iter()
            .map(super::receiver::Received::json)
            .filter(|body| body["data"]["deliveryId"] == json!(id))
            .collect();
        let told: Vec<String> = of_id.iter().map(|body| text(body, "event")).collect();
        assert_eq!(told, kinds, "{id}");
        assert_eq!(of_id[2]["data"]["actionId"], "b");
    }
    if app.services().db.dialect() == Dialect::Postgres {
        let writers: Vec<(String,)> = app.rows("SELECT DISTINCT xmin::text FROM deliveries").await;
        assert_eq!(writers.len(), 1, "one transaction wrote them all");
    }
}

async fn a_clock_that_is_behind_opens_nothing_before_it_is_sent(app: &mut TestApp) {
    let (_providers, ada, campaign, id) = message(app).await;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/hook", &[Opened]).await;
    let lately = json!({"kind": "message_interaction", "interaction": "opened", "campaignIds": [campaign], "withinDays": 7});
    let purchase = json!({"kind": "event", "eventName": "purchase"});
    app.survey_with(&json!({"trigger": purchase, "audience": {"include": lately}}))
        .await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);

    let receipt = json!({"deliveryId": id, "type": "opened", "at": "2020-01-01T00:00:00Z"});
    let body = json!({"receipts": [receipt]});
    app.post("/v1/sdk/push/receipts", &ada.credential(), &body)
        .await
        .ok();
    let delivery = app.delivery(&id).await;
    assert_eq!(states(&delivery)[..2], ["queued", "sent"]);
    let at = |status: &str| {
        let all = delivery["transitions"].as_array().unwrap().iter();
        let mut of_status = all.filter(|one| one["status"] == status);
        text(of_status.next().unwrap(), "at")
    };
    let sent_at = at("sent");
    assert_eq!(at("opened"), sent_at);
    let told = receiver.wait(app, "/hook", 1).await.remove(0).json();
    assert_eq!(text(&told, "fired_at"), sent_at);
    assert_eq!(text(&told["data"], "openedAt"), sent_at);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
}
