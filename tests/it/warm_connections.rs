//! Connections to PostgreSQL: the one that was used last is used next, and none is kept from those who wait.

use std::time::Duration;

use nudge_db::{Db, Kind, Options, Tx};

use crate::concurrency::join;

async fn open(connections: u32) -> Db {
    let options = Options::new(tests::postgres::database().await, connections);
    Db::open(&options).await.unwrap()
}

/// The process of PostgreSQL behind a connection.
async fn process(tx: &mut Tx) -> i64 {
    let (process,): (i64,) = tx
        .sql("SELECT CAST(pg_backend_pid() AS BIGINT)")
        .fetch_one()
        .await
        .unwrap();
    process
}

/// So many connections at once; the processes behind them.
async fn at_once(db: &Db, count: usize) -> Vec<i64> {
    let mut held = Vec::new();
    let mut processes = Vec::new();
    for _ in 0..count {
        let mut tx = db.read().await.unwrap();
        processes.push(process(&mut tx).await);
        held.push(tx);
    }
    processes
}

/// Ends a process of PostgreSQL, and with it the connection that it is behind.
async fn end(db: &Db, process: i64) {
    let mut tx = db.write().await.unwrap();
    let ended: (bool,) = tx
        .sql("SELECT pg_terminate_backend(CAST($1 AS INTEGER), 5000)")
        .bind(process)
        .fetch_one()
        .await
        .unwrap();
    assert!(ended.0);
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_that_was_used_last_is_used_next() {
    let db = open(3).await;
    let all = at_once(&db, 3).await;
    let last = at_once(&db, 1).await;
    assert!(all.contains(&last[0]));
    for _ in 0..20 {
        assert_eq!(at_once(&db, 1).await, last);
    }
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_get_connections_that_are_kept_warm() {
    let db = open(2).await;
    for _ in 0..10 {
        at_once(&db, 2).await;
        // Nobody but them could give the two connections back.
        let (mut one, mut two) = (db.write().await.unwrap(), db.write().await.unwrap());
        assert_ne!(process(&mut one).await, process(&mut two).await);
        // There is no third.
        let third = tokio::time::timeout(Duration::from_millis(50), db.write()).await;
        assert!(third.is_err());
        one.commit().await.unwrap();
        two.rollback().await.unwrap();
    }
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_share_few_connections() {
    let db = open(2).await;
    let tasks = (0..200).map(|number| {
        let db = &db;
        async move {
            let mut tx = match number % 3 {
                0 => db.read().await.unwrap(),
                1 => db.write_each().await.unwrap(),
                _ => db.write().await.unwrap(),
            };
            process(&mut tx).await;
            if number % 2 == 0 {
                tx.commit().await.unwrap();
            }
        }
    });
    join(tasks).await;
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_failed_or_was_left_spoils_no_other() {
    let db = open(1).await;
    let mut tx = db.read().await.unwrap();
    let failed = tx.sql("SELECT 1 / 0").execute().await.unwrap_err();
    assert_ne!(failed.kind(), Kind::Serialization);
    drop(tx);
    let before = at_once(&db, 1).await;

    let mut tx = db.read().await.unwrap();
    let sleeps = tx.sql("SELECT pg_sleep(0.3)").execute();
    let left = tokio::time::timeout(Duration::from_millis(50), sleeps).await;
    assert!(left.is_err());
    drop(tx);
    assert_eq!(at_once(&db, 1).await, before);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_broke_is_replaced() {
    let (db, other) = (open(1).await, open(1).await);
    let broken = at_once(&db, 1).await;
    end(&other, broken[0]).await;
    // Whoever has it next finds that out; nobody after that.
    let mut tx = db.read().await.unwrap();
    let error = tx.sql("SELECT 1").execute().await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    drop(tx);
    let replaced = at_once(&db, 1).await;
    assert_ne!(replaced, broken);
    // After a while nobody finds it out.
    end(&other, replaced[0]).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_ne!(at_once(&db, 1).await, replaced);
    db.close().await;
    other.close().await;
}

/// A process that ends has transactions in hand, and nobody to roll them back.
#[test]
fn a_runtime_that_ends_ends_what_is_open() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let db = open(1).await;
        let mut tx = db.write().await.unwrap();
        process(&mut tx).await;
        tokio::runtime::Handle::current().spawn(async move {
            let _held = tx;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
    });
    drop(runtime);
}
