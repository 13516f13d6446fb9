//! In-app messages are written and removed by the routes of campaigns.

use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use super::{buys, message, message_with};

on_both_backends!(
    campaigns_of_both_types_are_listed_and_managed_by_the_same_routes,
    what_breaks_the_contract_is_named_by_its_place,
    what_is_deleted_is_offered_to_nobody,
);

async fn campaigns_of_both_types_are_listed_and_managed_by_the_same_routes(app: &mut TestApp) {
    let push = app.campaign(&json!({})).await;
    let shown = message(app, json!({"expiresAfterSeconds": 60})).await;
    let list = async |query: &str| {
        let path = app.path(&format!("/campaigns{query}"));
        let listed = app.get(&path, &app.viewer()).await.ok();
        let items = listed.as_array().unwrap().clone();
        items
            .iter()
            .map(|it| (text(it, "id"), text(it, "type")))
            .collect::<Vec<_>>()
    };
    let (of_push, of_app) = (
        (push, "push".to_owned()),
        (shown.clone(), "in_app".to_owned()),
    );
    assert_eq!(list("").await, [of_app.clone(), of_push.clone()]);
    assert_eq!(list("?type=push").await, [of_push]);
    assert_eq!(list("?type=in_app").await, [of_app]);

    let path = app.path(&format!("/campaigns/{shown}"));
    let before = app.campaign_of(&shown).await;
    assert_eq!(
        (&before["type"], &before["expiresAfterSeconds"]),
        (&json!("in_app"), &json!(60))
    );
    let change = json!({"status": "paused", "variants": [{"layout": "banner", "title": "New"}]});
    let changed = app.patch(&path, &app.editor(), &change).await.ok();
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["variants"][0]["id"], before["variants"][0]["id"]);
    let refused = app
        .patch(&path, &app.editor(), &json!({"type": "push"}))
        .await;
    refused.refused(422, "validation_failed");
    // What is of one kind is not of another.
    app.get(&app.path(&format!("/surveys/{shown}")), &app.viewer())
        .await
        .refused(404, "not_found");
    let actions: Vec<(String,)> = app
        .rows("SELECT action FROM audit_log WHERE action LIKE 'campaign.%' ORDER BY id")
        .await;
    assert_eq!(
        actions.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["campaign.created", "campaign.created", "campaign.updated"]
    );
}

async fn what_breaks_the_contract_is_named_by_its_place(app: &mut TestApp) {
    let variant = |parts: Value| {
        let mut variant = json!({"layout": "modal", "title": "t"});
        variant
            .as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        json!({"variants": [variant]})
    };
    let button = |parts: Value| {
        let mut button = json!({"id": "b", "label": "B", "openAction": {"action": "none"}});
        button
            .as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        variant(json!({"buttons": [button]}))
    };
    let many: Vec<Value> = ["a", "b", "c"]
        .map(|id| json!({"id": id, "label": id, "openAction": {"action": "none"}}))
        .to_vec();
    for (parts, pointer) in [
        (json!({"type": "sms"}), "/type"),
        (json!({"mode": "broadcast"}), "/mode"),
        (json!({"options": {}}), "/options"),
        (json!({"expiresAfterSeconds": 0}), "/expiresAfterSeconds"),
        (variant(json!({"layout": "toast"})), "/variants/0/layout"),
        (
            variant(json!({"imageUrl": "http://shop.example/a.png"})),
            "/variants/0/imageUrl",
        ),
        (variant(json!({"title": "{{p.name}}"})), "/variants/0/title"),
        (variant(json!({"body": "{{name}}"})), "/variants/0/body"),
        (variant(json!({"buttons": many})), "/variants/0/buttons"),
        (button(json!({"label": " "})), "/variants/0/buttons/0/label"),
        (
            button(json!({"style": "loud"})),
            "/variants/0/buttons/0/style",
        ),
        (
            button(json!({"openAction": {"action": "url", "url": "javascript:alert(1)"}})),
            "/variants/0/buttons/0/openAction/url",
        ),
        (
            variant(
                json!({"localization": {"defaultLocale": "en", "translations": {"de": {"footer": "x"}}}}),
            ),
            "/variants/0/localization/translations/de/footer",
        ),
        (
            variant(
                json!({"localization": {"defaultLocale": "en", "translations": {"de": {"title": "{{p.x}}"}}}}),
            ),
            "/variants/0/localization/translations/de/title",
        ),
        (json!({"theme": {"radius": 99}}), "/theme/radius"),
    ] {
        let answer = app.create_campaign(&message_with(&parts)).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{parts}");
    }
    let low = json!({"theme": {"text": "#777777", "background": "#ffffff"}});
    let refused = app.create_campaign(&message_with(&low)).await;
    refused.refused(422, "low_contrast");
    assert_eq!(refused.pointers(), ["/theme/text"]);
    for (parts, pointer) in [
        (json!({"variants": []}), "/variants"),
        (json!({"trigger": null}), "/trigger"),
        (
            json!({"variants": [{"layout": "card"}]}),
            "/variants/0/title",
        ),
    ] {
        let answer = app.create_campaign(&message_with(&parts)).await;
        answer.refused(422, "not_activatable");
        assert_eq!(answer.pointers(), [pointer], "{parts}");
    }
}

async fn what_is_deleted_is_offered_to_nobody(app: &mut TestApp) {
    let campaign = message(app, json!({})).await;
    let ada = app.session("ada").await;
    buys(app, &ada, json!({})).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.delete(&path, &app.editor()).await.data(204);
    assert_eq!(app.offered(&ada).await, json!([]));
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.until("nothing is left of it", async || {
        crate::runs::issued(app).await == (0, 0)
    })
    .await;
}
