//! Lists as CSV (contract 21, RFC 4180).

use nudge_platform::audit::{self, Entry};
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{Answer, send};
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};

use crate::attempts::{answer, forked, link_survey, start};

on_both_backends!(
    all_people_are_streamed,
    results_of_a_survey_are_rows,
    letters_deliveries_and_the_audit_log_are_rows,
    what_is_wrong_with_a_request_is_said_as_always,
    recipients_and_the_audit_log_are_longer_than_a_page,
    whatever_the_answer_it_depends_on_what_is_accepted,
);

async fn csv(app: &TestApp, path: &str, credential: &Credential) -> Answer {
    let request = app.request(Method::GET, &app.path(path), credential);
    send(request.header("accept", "text/csv")).await
}

/// The rows of an answer, the header line first.
#[track_caller]
fn rows(answer: &Answer) -> Vec<Vec<String>> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        answer.header("content-type"),
        "text/csv; charset=utf-8; header=present"
    );
    assert!(answer.text.ends_with("\r\n"));
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = answer.text.chars().peekable();
    while let Some(letter) = letters.next() {
        let row = rows.last_mut().unwrap();
        let cell = row.last_mut().unwrap();
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted => {
                assert_eq!(letters.next(), Some('\n'));
                rows.push(vec![String::new()]);
            }
            letter => cell.push(letter),
        }
    }
    rows.pop();
    let columns = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == columns));
    rows
}

/// The cells of a column, without its head.
#[track_caller]
fn column<'r>(rows: &'r [Vec<String>], name: &str) -> Vec<&'r str> {
    let place = rows[0].iter().position(|head| head == name).unwrap();
    rows[1..].iter().map(|row| row[place].as_str()).collect()
}

async fn all_people_are_streamed(app: &mut TestApp) {
    app.people(450).await;
    let ada = app.session("=ada,\"x\"").await;
    let update =
        json!({"anonymousId": ada.anonymous_id, "mutationId": app.id(), "set": {"note": "a\nb"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &update)
        .await
        .ok();

    // The limit and the cursor are those of pages.
    let all = rows(&csv(app, "/users?limit=1", &app.viewer()).await);
    assert_eq!(all.len(), 452);
    let ids = column(&all, "anonymousId");
    assert_eq!(ids[0], "'=ada,\"x\"");
    assert_eq!(
        ids[1..]
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        450
    );
    assert_eq!(column(&all, "topProperties")[0], r#"{"note":"a\nb"}"#);
    assert_eq!(column(&all, "subjectId")[0], ada.subject_id);
    let found = rows(&csv(app, "/users?q=person-44", &app.viewer()).await);
    assert_eq!(found.len(), 12);
    let none = rows(&csv(app, "/users?q=nobody", &app.viewer()).await);
    assert_eq!(none.len(), 1);
}

async fn results_of_a_survey_are_rows(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    app.people(430).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.write().await.unwrap();
    // Many of one instant.
    tx.sql(
        "INSERT INTO survey_answers (attempt_id, question_id, app_id, survey_id, value, counted, started_at, answered_at)
         SELECT id, 'q1', app_id, $2, '7', TRUE, $3, $3 FROM subjects WHERE app_id = $1",
    )
    .bind(app_id)
    .bind(survey)
    .bind(now)
    .execute()
    .await
    .unwrap();
    tx.commit().await.unwrap();
    app.advance(1);
    let late = app.time(0).replace(':', "%3A");
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    answer(app, &ada, &attempt, json!([["q1", 5]])).await.ok();

    let all = rows(&csv(app, &format!("/surveys/{survey}/responses"), &app.viewer()).await);
    assert_eq!(
        all[0],
        [
            "attemptId",
            "campaignId",
            "questionId",
            "answerValue",
            "answeredAt"
        ]
    );
    assert_eq!(all.len(), 432);
    assert_eq!((&all[1][0], &*all[1][3]), (&attempt, "5"));
    let attempts: std::collections::BTreeSet<&str> =
        column(&all, "attemptId").into_iter().collect();
    assert_eq!(attempts.len(), 431);
    let late = rows(
        &csv(
            app,
            &format!("/surveys/{survey}/responses?from={late}"),
            &app.viewer(),
        )
        .await,
    );
    assert_eq!(late.len(), 2);

    let recipients = rows(&csv(app, &format!("/surveys/{survey}/recipients"), &app.viewer()).await);
    assert_eq!(
        recipients[0],
        [
            "subjectId",
            "anonymousId",
            "externalId",
            "state",
            "suppressedBy",
            "at"
        ]
    );
    assert_eq!(recipients.len(), 2);
    assert_eq!(column(&recipients, "anonymousId"), ["ada"]);
    let none = rows(
        &csv(
            app,
            &format!("/surveys/{survey}/recipients?state=expired"),
            &app.viewer(),
        )
        .await,
    );
    assert_eq!(none.len(), 1);
}

async fn letters_deliveries_and_the_audit_log_are_rows(app: &mut TestApp) {
    app.define(
        "bought",
        &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..150)
        .map(|number| app.event(&ada, "bought", &json!({"n": number})))
        .collect();
    assert_eq!(app.ingest(&ada, &events).await.ok()["rejected"], 150);
    let letters = rows(&csv(app, "/dead-letters?eventName=bought", &app.viewer()).await);
    assert_eq!(letters.len(), 151);
    let listed = app
        .get(&app.path("/dead-letters?limit=1"), &app.viewer())
        .await
        .ok();
    assert_eq!(column(&letters, "id")[0], text(&listed["items"][0], "id"));
    let event: Value = serde_json::from_str(column(&letters, "event")[0]).unwrap();
    assert_eq!(event, listed["items"][0]["event"]);
    for may_be_empty in ["detail", "clientTimestamp", "timer"] {
        assert_eq!(column(&letters, may_be_empty)[0], "");
    }
    assert_eq!(
        rows(&csv(app, "/dead-letters?eventName=other", &app.viewer()).await).len(),
        1
    );

    let deliveries = rows(&csv(app, "/push/deliveries", &app.viewer()).await);
    assert_eq!((deliveries.len(), &*deliveries[0][0]), (1, "deliveryId"));

    let log = rows(&csv(app, "/audit-log", &app.admin()).await);
    assert_eq!(
        log[0],
        ["id", "at", "actor", "action", "resource", "detail"]
    );
    let listed = app
        .get(&app.path("/audit-log?limit=200"), &app.admin())
        .await
        .ok();
    let ids: Vec<String> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(item, "id"))
        .collect();
    assert_eq!(column(&log, "id"), ids);
}

async fn what_is_wrong_with_a_request_is_said_as_always(app: &mut TestApp) {
    csv(app, "/users", &Credential::none())
        .await
        .refused(401, "invalid_credentials");
    csv(app, "/audit-log", &app.viewer())
        .await
        .refused(403, "insufficient_role");
    csv(app, "/dead-letters?from=once", &app.viewer())
        .await
        .refused(422, "validation_failed");
    let path = format!("/surveys/{}/responses", app.id());
    csv(app, &path, &app.viewer())
        .await
        .refused(404, "not_found");
    // Who takes anything gets what was always there.
    let request = app.request(Method::GET, &app.path("/users"), &app.viewer());
    let answer = send(request.header("accept", "*/*")).await;
    assert!(answer.ok()["items"].is_array());
}

async fn whatever_the_answer_it_depends_on_what_is_accepted(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let paths = [
        "/users".to_owned(),
        "/dead-letters".to_owned(),
        "/push/deliveries".to_owned(),
        "/audit-log".to_owned(),
        format!("/surveys/{survey}/responses"),
        format!("/surveys/{survey}/recipients"),
    ];
    for path in paths {
        for accept in ["text/csv", "application/json"] {
            let request = app.request(Method::GET, &app.path(&path), &app.admin());
            let answer = send(request.header("accept", accept)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert_eq!(answer.header("vary"), "accept", "{path} as {accept}");
        }
    }
    let request = app.request(Method::GET, &app.path("/surveys"), &app.admin());
    assert_eq!(send(request).await.header("vary"), "");
}

async fn recipients_and_the_audit_log_are_longer_than_a_page(app: &mut TestApp) {
    app.people(430).await;
    let body = json!({
        "name": "All", "type": "in_app", "mode": "scheduled", "status": "active",
        "variants": [{"layout": "banner", "title": "Hello, \"all\""}],
    });
    let campaign = text(&app.create_campaign(&body).await.data(201), "id");
    app.until("everybody has it", async || {
        crate::runs::issued(app).await == (430, 430)
    })
    .await;
    let path = format!("/campaigns/{campaign}/recipients");
    let all = rows(&csv(app, &path, &app.viewer()).await);
    assert_eq!(all.len(), 431);
    assert_eq!(distinct(&column(&all, "anonymousId")), 430);
    assert!(column(&all, "state").iter().all(|state| *state == "issued"));

    let mut tx = app.services().db.write().await.unwrap();
    for number in 0..430 {
        let entry = Entry {
            app_id: app.access.app_id,
            actor: "user/\"one\",\ntwo",
            action: "test.noted",
            resource: format!("test/{number}"),
            detail: json!({"number": number}),
        };
        audit::record(&mut tx, &entry, app.clock.now())
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let log = rows(&csv(app, "/audit-log?action=test.noted", &app.admin()).await);
    assert_eq!(log.len(), 431);
    assert_eq!(distinct(&column(&log, "resource")), 430);
    assert_eq!(column(&log, "resource")[0], "test/429");
    assert_eq!(column(&log, "actor")[429], "user/\"one\",\ntwo");
}

/// How many different cells a column has.
fn distinct(cells: &[&str]) -> usize {
    let cells: std::collections::BTreeSet<&str> = cells.iter().copied().collect();
    cells.len()
}
