//! What a restore of a backup ends: sessions of the console, links and logins.

use std::path::Path;

use nudge_db::{Db, Options};

use crate::backups::{Place, start, succeed};

const TABLES: [&str; 3] = ["console_sessions", "console_links", "console_logins"];

async fn open(data: &str) -> Db {
    let url = format!("sqlite:{data}/nudge.db");
    Db::open(&Options::new(url, 1)).await.unwrap()
}

/// Puts a session, a link and a login into a database.
async fn sign_in(data: &str) {
    let db = open(data).await;
    let mut tx = db.write().await.unwrap();
    for statement in [
        "INSERT INTO console_sessions (hash, subject, grants, token_ends_at, renewal, renewing_until, created_at, used_at, ends_at)
         VALUES ('of-a-test', 'ada', '{}', 0, 0, 0, 0, 0, 9000000000000000)",
        "INSERT INTO console_links (hash, subject, grants, ends_at) VALUES ('of-a-test', 'ada', '{}', 9000000000000000)",
        "INSERT INTO console_logins (hash, issuer, return_to, ends_at)
         VALUES ('of-a-test', 'https://id.example', '/', 9000000000000000)",
    ] {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    db.close().await;
}

/// How many sessions, links and logins of [`sign_in`] a database has.
async fn signed_in(data: &str) -> [i64; 3] {
    let db = open(data).await;
    let mut tx = db.read().await.unwrap();
    let mut counts = [0_i64; 3];
    for (table, count) in TABLES.into_iter().zip(&mut counts) {
        let statement = tx.sql("SELECT count(*) FROM ").push(table);
        *count = statement
            .push(" WHERE hash = 'of-a-test'")
            .fetch_scalar()
            .await
            .unwrap();
    }
    drop(tx);
    db.close().await;
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_signed_in_at_a_backup_signs_in_again() {
    let place = Place::new();
    let (data, file) = (place.path("data"), place.path("backup"));
    let (restored, again) = (place.path("new"), place.path("again"));
    std::fs::create_dir(&data).unwrap();
    let child = start(Path::new(&data));
    assert_eq!(child.terminate(), Some(0));
    sign_in(&data).await;
    place.back_up(&data, &file);
    assert_eq!(signed_in(&data).await, [1; 3]);

    place.restore(&file, &data, &restored, &[]);
    assert_eq!(signed_in(&restored).await, [0; 3]);
    let later = format!("sqlite:{data}/nudge.db");
    place.restore(&file, &data, &again, &["--deletions-from", &later]);
    assert_eq!(signed_in(&again).await, [0; 3]);

    // As after a restore by the database's own programs.
    sign_in(&restored).await;
    let from = ["repeat-deletions", "--from", &later];
    succeed(&[&from[..], &["--data-dir", &restored]].concat());
    assert_eq!(signed_in(&restored).await, [0; 3]);
    // The later state is only read.
    assert_eq!(signed_in(&data).await, [1; 3]);
}
