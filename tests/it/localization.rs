//! Surveys in people's languages (contract 7).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    people_see_their_language,
    a_first_visitor_sees_the_language_of_the_request,
    a_path_that_leads_nowhere_is_refused,
);

fn localization() -> Value {
    json!({
        "defaultLocale": "en",
        "translations": {
            "de": {"questions/q1/title": "Wie war's?", "endScreens/e1/title": "Danke", "questions/q2/options/a/label": "Rot"},
            "de-AT": {"questions/q1/title": "Wia woar's?"},
        },
    })
}

fn flow() -> Value {
    json!({
        "questions": [
            {"id": "q1", "type": "nps", "title": "How was it?", "required": true},
            {"id": "q2", "type": "single_choice", "title": "Which?", "options": [{"id": "a", "label": "Red"}]},
        ],
        "endScreens": [{"id": "e1", "title": "Thanks"}],
    })
}

async fn speaks(app: &TestApp, session: &Session, locale: Option<&str>) {
    let mut batch = session.batch(&[app.event(session, "opened", &json!({}))]);
    batch["context"]["locale"] = json!(locale);
    app.post_batch(session, &batch).await.ok();
    app.settle().await;
}

async fn people_see_their_language(app: &mut TestApp) {
    let parts = json!({"mode": "on_demand", "flow": flow(), "localization": localization()});
    let survey = app.survey_with(&parts).await;
    for (name, locale, title, thanks, red, spoken) in [
        ("at", Some("de-AT"), "Wia woar's?", "Danke", "Rot", "de"),
        ("ch", Some("de_CH"), "Wie war's?", "Danke", "Rot", "de"),
        ("fr", Some("fr-FR"), "How was it?", "Thanks", "Red", "en"),
        ("none", None, "How was it?", "Thanks", "Red", "en"),
    ] {
        let session = app.session(name).await;
        speaks(app, &session, locale).await;
        let event = app.event(&session, "purchase", &json!({}));
        let at_once = app.ingest_and_ask(&session, &[event]).await["instructions"].take();
        let offered = app.offered(&session).await;
        let body = json!({"anonymousId": name});
        let path = format!("/v1/sdk/surveys/{survey}/attempts");
        let started = app
            .post(&path, &session.credential(), &body)
            .await
            .data(201);
        for survey in [
            &at_once[0]["payload"]["survey"],
            &offered[0]["payload"]["survey"],
            &started["survey"],
        ] {
            let flow = &survey["flow"];
            assert_eq!(flow["questions"][0]["title"], title, "{name}");
            assert_eq!(flow["endScreens"][0]["title"], thanks, "{name}");
            assert_eq!(flow["questions"][1]["options"][0]["label"], red, "{name}");
            assert!(survey.get("localization").is_none());
            assert_eq!(survey["locale"], spoken, "{name}");
        }
    }
    let path = app.path(&format!("/surveys/{survey}"));
    let shown = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(shown["localization"], localization());
    assert_eq!(shown["flow"]["questions"][0]["title"], "How was it?");
    // An instruction from before keeps its texts.
    let session = app.session("late").await;
    speaks(app, &session, Some("de")).await;
    app.fires(&session, "purchase", &json!({})).await;
    app.patch(&path, &app.editor(), &json!({"localization": null}))
        .await
        .ok();
    let offered = app.offered(&session).await;
    let title = &offered[0]["payload"]["survey"]["flow"]["questions"][0]["title"];
    assert_eq!(title, "Wie war's?");
}

async fn a_first_visitor_sees_the_language_of_the_request(app: &mut TestApp) {
    let parts = json!({"mode": "on_demand", "flow": flow(), "localization": localization()});
    let survey = app.survey_with(&parts).await;
    let path = format!("/v1/sdk/surveys/{survey}/attempts");
    for (name, locale, asked, title) in [
        ("at", None, "en;q=0.7, de-AT, fr;q=0.8", "Wia woar's?"),
        ("fr", None, "fr-FR, de;q=0.9", "How was it?"),
        ("odd", None, "*, d e, ;q=1", "How was it?"),
        // What the person's own device says is better known.
        ("known", Some("en-GB"), "de-AT", "How was it?"),
    ] {
        let session = app.session(name).await;
        if locale.is_some() {
            speaks(app, &session, locale).await;
        }
        let credential = session.credential().and("accept-language", asked);
        let body = json!({"anonymousId": name});
        let started = app.post(&path, &credential, &body).await.data(201);
        let question = &started["survey"]["flow"]["questions"][0];
        assert_eq!(question["title"], title, "{name}");
    }
    let kept: Vec<(String,)> = app
        .rows("SELECT locale FROM subjects WHERE locale IS NOT NULL")
        .await;
    assert_eq!(kept, [("en-GB".to_owned(),)]);
}

async fn a_path_that_leads_nowhere_is_refused(app: &mut TestApp) {
    for (translations, pointer) in [
        (
            json!({"de": {"questions/zz/title": "x"}}),
            "/localization/translations/de/questions~1zz~1title",
        ),
        (
            json!({"de": {"questions/q1/type": "x"}}),
            "/localization/translations/de/questions~1q1~1type",
        ),
        (
            json!({"de": {"questions/q1/title": ""}}),
            "/localization/translations/de/questions~1q1~1title",
        ),
        (json!({"d e": {}}), "/localization/translations/d e"),
    ] {
        let body = json!({"name": "x", "flow": flow(), "localization": {"defaultLocale": "en", "translations": translations}});
        let refused = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
    let body =
        json!({"name": "x", "flow": flow(), "localization": {"defaultLocale": "en", "colour": 1}});
    let refused = app.post(&app.path("/surveys"), &app.editor(), &body).await;
    refused.refused(422, "validation_failed");
}
