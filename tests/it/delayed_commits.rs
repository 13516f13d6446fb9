//! Commits that do not wait for the disk: what they change is there at once, and on disk with the next commit.

use nudge_db::{Db, Dialect, Durability, Timestamp, Tx};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    a_delayed_commit_is_seen_at_once_and_flushed_by_the_next_one,
    what_comes_after_a_delayed_commit_waits_for_the_disk,
    a_process_has_all_flushed,
);

/// Tries until a delayed commit was seen that the database's own writer had not flushed yet.
const TRIES: i64 = 50;

async fn table(app: &TestApp) -> Db {
    let db = app.services().db.clone();
    let mut tx = db.write().await.unwrap();
    let table = "CREATE TABLE numbers (number BIGINT NOT NULL PRIMARY KEY)";
    tx.sql(table).execute().await.unwrap();
    tx.commit().await.unwrap();
    db
}

async fn add(tx: &mut Tx, number: i64) {
    let delayed_commit = tx.delayed_commit();
    let added = tx
        .sql("INSERT INTO numbers (number) SELECT n.number FROM (SELECT ")
        .push_bind(number)
        .push(" AS number) AS n")
        .push(delayed_commit)
        .execute();
    assert_eq!(added.await.unwrap(), 1);
}

async fn count(db: &Db) -> i64 {
    let mut tx = db.read().await.unwrap();
    let count = tx.sql("SELECT count(*) FROM numbers");
    count.fetch_scalar().await.unwrap()
}

/// How far the log of PostgreSQL is written, and how far it is on disk.
async fn log(db: &Db) -> (i64, i64) {
    let mut tx = db.read().await.unwrap();
    let places = tx.sql(
        "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT), CAST(pg_current_wal_flush_lsn() - '0/0' AS BIGINT)",
    );
    let places: Vec<(i64, i64)> = places.fetch_all().await.unwrap();
    places[0]
}

/// How commits of a transaction of SQLite reach the disk: 1, with a later one; 2, at once.
async fn synchronous(tx: &mut Tx) -> i64 {
    let asked = tx.sql("PRAGMA synchronous");
    asked.fetch_scalar().await.unwrap()
}

async fn a_delayed_commit_is_seen_at_once_and_flushed_by_the_next_one(app: &mut TestApp) {
    let db = table(app).await;
    let is_postgres = db.dialect() == Dialect::Postgres;
    let mut delayed = false;
    for number in 0..TRIES {
        let mut tx = db.write_each_with(Durability::Delayed).await.unwrap();
        add(&mut tx, 2 * number).await;
        if !is_postgres {
            assert_eq!(synchronous(&mut tx).await, 1);
        }
        tx.commit().await.unwrap();
        let (written, flushed) = if is_postgres { log(&db).await } else { (0, 0) };
        delayed |= flushed < written;
        assert_eq!(count(&db).await, 2 * number + 1);

        let mut tx = db.write_each().await.unwrap();
        add(&mut tx, 2 * number + 1).await;
        if !is_postgres {
            assert_eq!(synchronous(&mut tx).await, 2);
        }
        tx.commit().await.unwrap();
        assert!(!is_postgres || log(&db).await.1 >= written);
    }
    assert!(delayed || !is_postgres, "no commit was delayed");
}

async fn what_comes_after_a_delayed_commit_waits_for_the_disk(app: &mut TestApp) {
    let db = table(app).await;
    if db.dialect() == Dialect::Postgres {
        // A connection is as before: the next statement asks for nothing.
        let mut tx = db.write_each_with(Durability::Delayed).await.unwrap();
        add(&mut tx, 0).await;
        let now = tx.sql("SELECT current_setting('synchronous_commit')");
        let now: String = now.fetch_scalar().await.unwrap();
        assert_eq!(now, "on");
        return;
    }
    for (number, unhurried) in [(1, false), (2, true), (3, false)] {
        let mut tx = db.write_each_with(Durability::Delayed).await.unwrap();
        add(&mut tx, number).await;
        match number {
            1 => tx.commit().await.unwrap(),
            2 => tx.rollback().await.unwrap(),
            _ => drop(tx),
        }
        let next = if unhurried {
            db.unhurried()
        } else {
            db.clone()
        };
        let mut tx = next.write().await.unwrap();
        assert_eq!(synchronous(&mut tx).await, 2);
        tx.rollback().await.unwrap();
    }
    assert_eq!(count(&db).await, 1);
}

async fn a_process_has_all_flushed(app: &mut TestApp) {
    let db = table(app).await;
    let pipeline = &app.services().pipeline;
    let beats = async || {
        let mut tx = db.read().await.unwrap();
        let beats = tx.sql("SELECT heartbeat_at FROM nodes WHERE id = $1");
        let beats: Timestamp = beats.bind(pipeline.node()).fetch_scalar().await.unwrap();
        beats
    };
    for number in 0..3 {
        let mut tx = db.write_each_with(Durability::Delayed).await.unwrap();
        add(&mut tx, number).await;
        tx.commit().await.unwrap();
        let before = beats().await;
        pipeline.flush().await.unwrap();
        assert!(
            beats().await > before,
            "SQLite writes nothing where nothing differs"
        );
    }
}
