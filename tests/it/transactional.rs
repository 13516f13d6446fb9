//! Messages that a backend asks for (specification 2.6 and 4.4, contract 9).

use std::time::Duration;

use futures_util::future::join_all;
use nudge_apps::key::Kind;
use nudge_campaigns::campaign::{self, removal};
use nudge_campaigns::settings::Cap;
use nudge_records::subjects;
use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::session::text;
use tests::{Backend, Credential, TestApp, on_both_backends, site};
use uuid::Uuid;

use crate::in_app::message;

on_both_backends!(
    a_message_is_queued_and_its_key_answers_it_again,
    fifty_requests_with_one_key_are_one_message,
    every_refusal_has_its_code,
    a_campaign_sends_within_its_schedule,
    missing_values_are_named,
    nobody_is_reached_without_device_or_consent,
    caps_hold_for_what_backends_send,
    a_campaign_that_is_deleted_meanwhile_sends_nothing,
);

async fn a_message_is_queued_and_its_key_answers_it_again(app: &mut TestApp) {
    let (providers, _, campaign) = app.with_phone_and_campaign().await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada", "data": {"a": 1}, "idempotencyKey": "order-1"});
    let first = app.transactional(&body).await;
    let placed = first.data(202);
    assert_eq!(
        (
            &placed["campaignId"],
            &placed["status"],
            &placed["duplicate"],
            &placed["recipients"]
        ),
        (&json!(campaign), &json!("queued"), &json!(false), &json!(1))
    );
    assert_eq!(first.header("idempotent-replayed"), "");
    let id = text(&placed, "deliveryId");
    app.delivery_in(&id, "delivered").await;

    // Another body, and a campaign that no longer runs: the original is answered.
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    let other = json!({"campaignId": app.id(), "externalId": "ben", "idempotencyKey": "order-1"});
    let again = app.transactional(&other).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    let again = again.data(200);
    assert_eq!(
        (&again["deliveryId"], &again["duplicate"]),
        (&json!(id), &json!(true))
    );
    assert_eq!(again["createdAt"], placed["createdAt"]);
    assert_eq!(providers.apns.received().len(), 1);
}

async fn fifty_requests_with_one_key_are_one_message(app: &mut TestApp) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "once"});
    let answers = join_all((0..50).map(|_| app.transactional(&body))).await;

    let ids: std::collections::BTreeSet<String> = answers
        .iter()
        .map(|answer| text(&answer.json()["data"], "deliveryId"))
        .collect();
    assert_eq!(ids.len(), 1);
    let queued = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(
        (
            queued,
            answers.iter().filter(|answer| answer.status == 200).count()
        ),
        (1, 49)
    );
    app.delivered_to(&ada, "delivered", 1).await;
    assert_eq!(providers.apns.received().len(), 1);
}

async fn every_refusal_has_its_code(app: &mut TestApp) {
    let (_providers, _, campaign) = app.with_phone_and_campaign().await;
    let triggered = app.campaign(&json!({})).await;
    let shown = message(app, json!({})).await;
    let draft = json!({"name": "n", "mode": "transactional", "variants": [{"title": "t"}]});
    let draft = text(&app.create_campaign(&draft).await.data(201), "id");
    let to_ada = |campaign: &str| json!({"campaignId": campaign, "anonymousId": "ada"});
    let unknown = app.id().to_string();
    for (body, status, code) in [
        (to_ada(&unknown), 404, "campaign_not_found"),
        (to_ada(&triggered), 409, "campaign_not_transactional"),
        (to_ada(&shown), 409, "campaign_not_transactional"),
        (to_ada(&draft), 409, "campaign_not_active"),
        (
            json!({"campaignId": campaign}),
            422,
            "exactly_one_recipient",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "ada", "externalId": "e"}),
            422,
            "exactly_one_recipient",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "nobody"}),
            404,
            "subject_not_found",
        ),
        (
            json!({"campaignId": campaign, "externalId": "nobody"}),
            404,
            "subject_not_found",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "ada", "data": {"a": {}}}),
            422,
            "validation_failed",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": ""}),
            422,
            "validation_failed",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "k".repeat(256)}),
            422,
            "validation_failed",
        ),
        (
            json!({"campaignId": campaign, "anonymousId": "ada", "colour": 1}),
            422,
            "validation_failed",
        ),
        (json!({"anonymousId": "ada"}), 422, "validation_failed"),
    ] {
        app.transactional(&body).await.refused(status, code);
    }
    assert_eq!(app.deliveries("").await.len(), 0);

    // The key of another app does not open this one.
    let workspace = app.access.workspace_id;
    let (_, foreign) = app
        .another_app(workspace, Kind::Server, &["push.transactional"])
        .await;
    let path = app.path("/push/transactional");
    app.post(&path, &Credential::bearer(&foreign), &to_ada(&campaign))
        .await
        .refused(404, "not_found");
    let scopeless = app.key(Kind::Server, &["events.write"]).await;
    app.post(&path, &Credential::bearer(&scopeless), &to_ada(&campaign))
        .await
        .refused(403, "insufficient_scope");
}

async fn a_campaign_sends_within_its_schedule(app: &mut TestApp) {
    let (_providers, _, _) = app.with_phone_and_campaign().await;
    let schedule = json!({"startAt": app.time(100), "endAt": app.time(200)});
    let campaign = app
        .campaign(&json!({"mode": "transactional", "trigger": null, "schedule": schedule}))
        .await;
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let refused = app.transactional(&body).await;
    let problem = refused.refused(409, "campaign_not_active");
    assert!(text(&problem, "detail").contains("schedule"), "{problem}");
    app.advance(100);
    app.transactional(&body).await.data(202);
    app.advance(100);
    app.transactional(&body)
        .await
        .refused(409, "campaign_not_active");
    assert_eq!(app.deliveries("").await.len(), 1);
}

async fn missing_values_are_named(app: &mut TestApp) {
    let (providers, _, _) = app.with_phone_and_campaign().await;
    let mut spec = personalization(
        &json!({"kind": "send_data"}),
        &[("code", "code", "string"), ("total", "sum", "number")],
    );
    spec["bindings"][1]["fallback"] = json!(0);
    let campaign = app
        .campaign(&json!({"mode": "transactional", "trigger": null,
            "variants": [{"title": "{{p.code}}", "body": "{{p.total}}", "personalization": spec}]}))
        .await;
    let with = |data: Value| json!({"campaignId": campaign, "anonymousId": "ada", "data": data});
    for data in [json!({}), json!({"code": null}), json!({"sum": 1})] {
        let refused = app.transactional(&with(data)).await;
        let problem = refused.refused(422, "missing_send_data");
        assert_eq!(refused.pointers(), ["/data/code"]);
        assert!(text(&problem, "detail").contains("`code`"), "{problem}");
    }
    let placed = app
        .transactional(&with(json!({"code": "{{p.total}} <b>", "sum": 12.5})))
        .await
        .data(202);
    let sent = app
        .delivery_in(&text(&placed, "deliveryId"), "delivered")
        .await;
    assert_eq!(
        (&sent["content"]["title"], &sent["content"]["body"]),
        (&json!("{{p.total}} <b>"), &json!("12.5"))
    );
    let received = providers.apns.received()[0].json();
    assert_eq!(received["aps"]["alert"]["title"], "{{p.total}} <b>");

    // A value of another type is an error, whatever the fallback.
    let placed = app
        .transactional(&with(json!({"code": "a", "sum": "12"})))
        .await
        .data(202);
    let failed = app
        .delivery_in(&text(&placed, "deliveryId"), "failed")
        .await;
    assert_eq!(failed["reason"], "type_mismatch");
}

async fn nobody_is_reached_without_device_or_consent(app: &mut TestApp) {
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    app.session("ben").await;
    let to = |name: &str| json!({"campaignId": campaign, "anonymousId": name});
    let placed = app.transactional(&to("ben")).await.data(202);
    assert_eq!(
        (&placed["status"], &placed["reason"], &placed["recipients"]),
        (&json!("skipped"), &json!("no_active_device"), &json!(0))
    );
    let body = json!({"anonymousId": "ada", "messaging": false});
    app.post("/v1/sdk/consent", &ada.credential(), &body)
        .await
        .ok();
    let placed = app.transactional(&to("ada")).await.data(202);
    assert_eq!(
        (&placed["status"], &placed["reason"]),
        (&json!("skipped"), &json!("consent_missing"))
    );
}

async fn caps_hold_for_what_backends_send(app: &mut TestApp) {
    let (_providers, ada, open) = app.with_phone_and_campaign().await;
    let transactional =
        |cap: Value| json!({"mode": "transactional", "trigger": null, "frequencyCap": cap});
    let cap = json!({"perSubject": {"max": 1, "windowDays": 7}});
    let capped = app.campaign(&transactional(cap)).await;
    let ignoring = app
        .campaign(&transactional(json!({"ignoreGlobalCap": true})))
        .await;
    let send = async |app: &TestApp, campaign: &str| {
        let body = json!({"campaignId": campaign, "anonymousId": "ada"});
        let placed = app.transactional(&body).await.data(202);
        let reason = placed.get("reason").and_then(Value::as_str);
        (text(&placed, "status"), reason.map(str::to_owned))
    };
    let queued = ("queued".to_owned(), None);
    let skipped = |reason: &str| ("skipped".to_owned(), Some(reason.to_owned()));
    // The campaign's own. Tests count for nothing.
    let path = app.path(&format!("/campaigns/{capped}/test-send"));
    let body = json!({"anonymousId": "ada"});
    app.post(&path, &app.editor(), &body).await.data(202);
    assert_eq!(send(app, &capped).await, queued);
    assert_eq!(send(app, &capped).await, skipped("frequency_cap"));
    assert_eq!(send(app, &open).await, queued);

    // The app's, which counts every message, whoever asked for it.
    app.set(|settings| {
        settings.frequency.push = Some(Cap {
            max: 3,
            window_days: 7,
        });
    })
    .await;
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let triggered = app.campaign(&json!({"trigger": trigger})).await;
    let made = async |app: &TestApp| {
        let of = format!("?campaignId={triggered}");
        app.deliveries(&of).await.len()
    };
    let buys = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[buys]).await.ok();
    app.settle().await;
    assert_eq!(made(app).await, 1);
    assert_eq!(send(app, &open).await, skipped("global_cap"));
    assert_eq!(send(app, &ignoring).await, queued);
    let buys = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[buys]).await.ok();
    app.settle().await;
    assert_eq!(made(app).await, 1, "a backend's count too");
    // After the window all begins anew.
    app.advance(7 * 86_400 + 1);
    assert_eq!(send(app, &capped).await, queued);
    assert_eq!(send(app, &open).await, queued);
}

async fn a_campaign_that_is_deleted_meanwhile_sends_nothing(app: &mut TestApp) {
    let (providers, ada, campaign) = app.with_phone_and_campaign().await;
    let app_id = app.access.app_id;
    let subject_id = Uuid::parse_str(&ada.subject_id).unwrap();
    let test = app.path(&format!("/campaigns/{campaign}/test-send"));
    let to_ada = json!({"anonymousId": "ada"});
    let order = json!({"campaignId": campaign, "anonymousId": "ada"});
    let (editor, now) = (app.editor(), app.clock.now());
    let id = Uuid::parse_str(&campaign).unwrap();
    // Both requests have found the campaign, and wait for the person.
    let mut tx = app.services().db.write().await.unwrap();
    assert!(
        subjects::store::lock(&mut tx, app_id, subject_id)
            .await
            .unwrap()
    );
    removal::delete(&mut tx, app_id, campaign::Kind::Push, id, "editor", now)
        .await
        .unwrap();
    let deleted = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tx.commit().await.unwrap();
    };
    let (tested, placed, ()) = tokio::join!(
        app.post(&test, &editor, &to_ada),
        app.transactional(&order),
        deleted
    );
    tested.refused(404, "not_found");
    // Whatever was answered, the sender looks at the campaign once more.
    if placed.status == 202 {
        let id = text(&placed.data(202), "deliveryId");
        let cancelled = app.delivery_in(&id, "cancelled").await;
        assert_eq!(cancelled["reason"], "campaign_deleted");
    }
    let tested: Vec<(i64,)> = app.rows("SELECT count(*) FROM deliveries WHERE test").await;
    assert_eq!(tested, [(0,)]);
    assert!(providers.apns.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_queue_one_message_for_a_key() {
    let mut one = TestApp::start(site!(), Backend::Postgres).await;
    let (providers, ada, campaign) = one.with_phone_and_campaign().await;
    let folder = tempfile::TempDir::new().unwrap();
    let mut config = one.config.clone();
    config.server.data_dir = folder.path().to_owned();
    let two = TestApp::open(site!(), config).await.unwrap();
    let body = json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "once"});
    let key = one.backend();
    let path = one.path("/push/transactional");
    let (left, right) = tokio::join!(
        join_all((0..25).map(|_| one.post(&path, &key, &body))),
        join_all((0..25).map(|_| two.post(&path, &key, &body))),
    );
    let answers: Vec<_> = left.into_iter().chain(right).collect();
    let ids: std::collections::BTreeSet<String> = answers
        .iter()
        .map(|answer| text(&answer.json()["data"], "deliveryId"))
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 202).count(),
        1
    );
    one.delivered_to(&ada, "delivered", 1).await;
    assert_eq!(providers.apns.received().len(), 1);
    two.finish().await;
    one.finish().await;
}
