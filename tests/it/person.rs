//! Somebody with distinctive ids and values, and where they are found.

use nudge_db::Dialect;
use nudge_platform::tables::{self, Copied};
use serde_json::{Value, json};
use tests::session::{hex, text};
use tests::{Session, TestApp};
use uuid::Uuid;

use crate::attempts::{answer, link_survey, start};
use crate::exports;

/// An id or value that occurs nowhere else.
pub(crate) const SECRETS: [&str; 11] = [
    "anon-7f3a9c21-needle",
    "anon-second-88b1-needle",
    "ext-ada-55d0-needle",
    "propkey-needle",
    "propvalue-41ce-needle",
    "eventvalue-9917-needle",
    "lettervalue-3b20-needle",
    "pluginstate-needle",
    "en-needle",
    "answervalue-52d1-needle",
    "77441198203",
];

pub(crate) async fn execute(app: &TestApp, sql: &'static str, values: &[&str]) {
    let mut tx = app.services().db.write().await.unwrap();
    let mut statement = tx.sql(sql);
    for value in values {
        statement = statement.bind((*value).to_owned());
    }
    statement.execute().await.unwrap();
    tx.commit().await.unwrap();
}

/// Somebody who has everything.
pub(crate) async fn everything(app: &TestApp) -> Session {
    let client_id = app.id();
    let body = json!({"anonymousId": SECRETS[0], "clientId": client_id});
    let data = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    let mut ada = app.session(SECRETS[0]).await;
    ada.token = text(&data, "subjectToken");
    // Aliases, properties and letters of later stages, as the routes for them will store them.
    let mut tx = app.services().db.write().await.unwrap();
    let subject = Uuid::parse_str(&ada.subject_id).unwrap();
    let app_id = app.access.app_id;
    for (kind, value) in [("anonymous", SECRETS[1]), ("external", SECRETS[2])] {
        tx.sql("INSERT INTO aliases (app_id, kind, value, subject_id, token_epoch, created_at) VALUES ($1, $2, $3, $4, 0, 0)")
            .bind(app_id).bind(kind.to_owned()).bind(value.to_owned()).bind(subject)
            .execute().await.unwrap();
    }
    tx.sql("UPDATE subjects SET external_id = $1 WHERE id = $2")
        .bind(SECRETS[2].to_owned())
        .bind(subject)
        .execute()
        .await
        .unwrap();
    tx.sql("INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at) VALUES ($1, $2, $3, $4, 'sdk', 0)")
        .bind(subject).bind(SECRETS[3].to_owned()).bind(app_id).bind(format!("\"{}\"", SECRETS[4]))
        .execute().await.unwrap();
    // Under the id that the person had before, some of it.
    let before = Uuid::from_u128(77);
    let secret = || SECRETS[4].to_owned();
    for text in [
        "INSERT INTO devices (subject_id, device_id, app_id, platform, first_seen_at, last_seen_at)
         VALUES ($2, $4, $1, 'ios', 0, 0)",
        "INSERT INTO merged_subjects (id, app_id, subject_id, merged_at) SELECT $3, $1, $2, 0 WHERE $4 <> ''",
        "INSERT INTO plugin_log_subjects (app_id, subject_id, call_id, at) SELECT $1, $3, $2, 0 WHERE $4 <> ''",
        "INSERT INTO plugin_log (id, owner_id, name, app_id, version, at, level, kind, message, call_id)
         VALUES ($3, $1, 'cart', $1, '1.0.0', 0, 1, 'trigger', $4, $2)",
        "INSERT INTO decisions (app_id, id, record) SELECT $1, $2, hash FROM keys WHERE app_id = $1 AND $4 <> '' AND $3 <> app_id LIMIT 1",
        "INSERT INTO decision_subjects (app_id, decision_id, subject_id) SELECT $1, $2, $3 WHERE $4 <> ''",
        "INSERT INTO deliveries (id, app_id, campaign_id, campaign_version, variant_id, subject_id, test, recipients, status,
                                 content, attempts, lane, created_at)
         VALUES ($3, $1, $1, 1, $1, $2, FALSE, 1, 'delivered', '\"' || $4 || '\"', 1, 1, 4102444800000000)",
        "INSERT INTO occasions (id, app_id, campaign_id, subject_id, alias_number, key, due_at, event_seq)
         SELECT $3, $1, $1, $2, 0, $4, 9000000000000000, 0",
        "INSERT INTO webhook_messages (id, app_id, webhook_id, subject_id, delivery_id, position, event_type, body, state,
                                       attempts, created_at)
         VALUES ($3, $1, $1, $2, $1, $1, 'sent', $4, 'failed', 1, 4102444800000000)",
        "INSERT INTO webhook_attempts (id, app_id, webhook_id, message_id, event_type, attempt, at, latency_ms, error)
         VALUES ($2, $1, $1, $3, 'sent', 1, 0, 7, $4)",
        "INSERT INTO plugin_differences (id, owner_id, name, app_id, version, since, subject_id, event_id, difference, at)
         VALUES ($2, $1, 'cart', $1, '1.0.0', 0, $3, $2, $4, 0)",
    ] {
        let statement = tx.sql(text).bind(app_id).bind(subject).bind(before);
        statement.bind(secret()).execute().await.unwrap();
    }
    tx.commit().await.unwrap();

    app.push_token(
        &ada,
        SECRETS[4],
        &json!({"provider": "fcm", "token": "a-push-token"}),
    )
    .await;

    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.survey(
        &json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "nth", "n": 2}}),
    )
    .await;
    app.survey(&json!({"kind": "event", "eventName": "purchase", "delaySeconds": 86_400}))
        .await;
    app.define(
        "checked",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    answers(app, &ada).await;
    let mut events: Vec<Value> = (0..3)
        .map(|_| app.event(&ada, "purchase", &json!({"note": SECRETS[5]})))
        .collect();
    events.push(app.event(&ada, "checked", &json!({"b": SECRETS[6]})));
    let mut batch = ada.batch(&events);
    batch["context"]["locale"] = json!(SECRETS[8]);
    let data = app.post_batch(&ada, &batch).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(3), &json!(1))
    );
    app.settle().await;
    for (id, stage) in [("1", "trigger"), ("2", "personalization")] {
        let mut tx = app.services().db.write().await.unwrap();
        tx.sql("INSERT INTO dead_letters (id, app_id, alias_number, event_id, event_name, stage, reason, violations, event, timestamp, received_at, attempts, state)
                SELECT $1, app_id, alias_number, event_id, event_name, $2, reason, violations, event, timestamp, received_at, attempts, state
                FROM dead_letters WHERE stage = 'validation'")
            .bind(Uuid::from_u128(id.parse().unwrap())).bind(stage.to_owned())
            .execute().await.unwrap();
        tx.sql("UPDATE plugin_states SET state = $1")
            .bind(SECRETS[7].as_bytes().to_vec())
            .execute()
            .await
            .unwrap();
        // A request that waits while another process is about to die.
        if stage == "trigger" {
            tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
                .bind(Uuid::nil())
                .bind(app.clock.now())
                .execute()
                .await
                .unwrap();
            tx.sql("INSERT INTO pending (app_id, alias_number, ordinal, node) SELECT app_id, number, 0, $1 FROM aliases WHERE value = $2")
                .bind(Uuid::nil()).bind(SECRETS[0].to_owned()).execute().await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    fill(app, subject).await;
    let export = exports::export(app, &json!({"anonymousId": SECRETS[0]})).await;
    let done = exports::reaches(app, &export, "completed").await;
    check_copy(&exports::download(app, &done).await);
    ada
}

/// A row for each table of people's that has none, made of what its columns are: the person's, with a secret in each text.
async fn fill(app: &TestApp, subject: Uuid) {
    let is_sqlite = app.services().db.dialect() == Dialect::Sqlite;
    let id = |id: Uuid| {
        if is_sqlite {
            format!("x'{}'", hex(id.as_bytes()))
        } else {
            format!("'{id}'")
        }
    };
    // Exports fill their own; whoever is noted in the other is looked at at once, and not noted any longer.
    let others = ["privacy_exports", "privacy_export_chunks", "segment_checks"];
    for (table, rows) in app.dump().await {
        let is_personal = tables::personal().any(|store| store.table.name == table);
        if !is_personal || !rows.is_empty() || others.contains(&&*table) {
            continue;
        }
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, kind, required) in app.columns(&table).await {
            values.push(match (&*name, &*kind.to_lowercase()) {
                ("app_id", _) => id(app.access.app_id),
                ("subject_id", _) => id(subject),
                ("alias_number", _) => {
                    format!(
                        "(SELECT max(number) FROM aliases WHERE value = '{}')",
                        SECRETS[0]
                    )
                }
                _ if !required => continue,
                (_, "uuid" | "blob") => id(Uuid::from_u128(77)),
                (_, "bytea") => "'\\x00'".to_owned(),
                (_, "text") => format!("'{}'", SECRETS[4]),
                (_, "boolean") => "FALSE".to_owned(),
                // Long after the test.
                _ => "9000000000000000".to_owned(),
            });
            names.push(name);
        }
        let (names, values) = (names.join(", "), values.join(", "));
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({values})");
        execute(app, sql.leak(), &[]).await;
    }
}

/// The archive has whatever the list of tables says that it has.
fn check_copy(archive: &[u8]) {
    let profile: Value = serde_json::from_str(&exports::file(archive, "profile.json")).unwrap();
    for store in tables::personal() {
        match store.copied {
            Copied::In(file) => assert!(!exports::file(archive, file).is_empty(), "{file}"),
            Copied::Profile(member) => assert!(profile.get(member).is_some(), "{member}"),
            Copied::Not => {}
        }
    }
}

/// Answers to a survey, in words and as a number, which is counted.
async fn answers(app: &TestApp, ada: &Session) {
    let flow = json!({"questions": [
        {"id": "words", "type": "short_text", "title": "?"},
        {"id": "number", "type": "number", "title": "?"},
    ]});
    let survey = link_survey(app, flow).await;
    let attempt = start(app, ada, survey).await;
    let number: u64 = SECRETS[10].parse().unwrap();
    answer(
        app,
        ada,
        &attempt,
        json!([["words", SECRETS[9]], ["number", number]]),
    )
    .await
    .ok();
}

/// How a text or an id may be written in a dump of a table.
pub(crate) fn writings(secret: &str) -> Vec<String> {
    let mut writings = vec![secret.to_lowercase(), hex(secret.as_bytes())];
    if let Ok(id) = Uuid::parse_str(secret) {
        writings.push(hex(id.as_bytes()));
    }
    writings
}

pub(crate) async fn tables_with(app: &TestApp, secret: &str) -> Vec<String> {
    let writings = writings(secret);
    let has = |row: &String| writings.iter().any(|writing| row.contains(writing));
    let dump = app.dump().await.into_iter();
    dump.filter(|(_, rows)| rows.iter().any(has))
        .map(|(table, _)| table)
        .collect()
}

/// Files below the data directory that have a text or an id in them.
pub(crate) fn files_with(folder: &std::path::Path, secret: &str) -> Vec<std::path::PathBuf> {
    let mut needles = vec![secret.as_bytes().to_vec()];
    if let Ok(id) = Uuid::parse_str(secret) {
        needles.push(id.as_bytes().to_vec());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, secret));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let has = |needle: &Vec<u8>| bytes.windows(needle.len()).any(|window| window == needle);
        if needles.iter().any(has) {
            found.push(path);
        }
    }
    found
}
