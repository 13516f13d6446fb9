//! Changes that go to the database together: they take effect together or not at all, on both databases.

use nudge_db::{Db, Kind, Rows, Tx};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    changes_wait_for_the_commit_and_take_effect_together,
    a_change_that_finds_other_rows_than_expected_takes_all_others_with_it,
    a_statement_that_cannot_wait_sees_the_changes_before_it,
    what_is_dropped_changes_nothing,
);

/// A table of numbers and how often each was counted.
async fn table(app: &TestApp) -> Db {
    let db = app.services().db.clone();
    let mut tx = db.write().await.unwrap();
    tx.sql("CREATE TABLE counted (number BIGINT NOT NULL PRIMARY KEY, times BIGINT NOT NULL)")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    db
}

async fn add(tx: &mut Tx, numbers: &[i64]) -> bool {
    let rows = Rows::new().integers(numbers.iter().copied());
    tx.change_rows("v(number)", rows)
        .push(" INSERT INTO counted (number, times) SELECT v.number, ")
        .push_bind(1_i64)
        .push(" FROM v WHERE true")
        .change(None)
        .await
        .unwrap()
}

/// Counts numbers once more, all of which must be there.
async fn count(tx: &mut Tx, numbers: &[i64]) -> bool {
    let rows = Rows::new().integers(numbers.iter().copied());
    tx.change_rows("v(number)", rows)
        .push(" UPDATE counted SET times = times + ")
        .push_bind(1_i64)
        .push(" FROM v WHERE counted.number = v.number")
        .change(Some(numbers.len() as u64))
        .await
        .unwrap()
}

async fn counted(db: &Db) -> Vec<(i64, i64)> {
    let mut tx = db.read().await.unwrap();
    let all = tx.sql("SELECT number, times FROM counted ORDER BY number");
    all.fetch_all().await.unwrap()
}

async fn changes_wait_for_the_commit_and_take_effect_together(app: &mut TestApp) {
    let db = table(app).await;
    let mut tx = db.write_together().await.unwrap();
    assert!(add(&mut tx, &[1, 2]).await);
    tx.commit().await.unwrap();

    let mut tx = db.write_together().await.unwrap();
    assert!(count(&mut tx, &[2]).await);
    assert!(add(&mut tx, &[3]).await);
    assert!(count(&mut tx, &[1]).await);
    tx.commit().await.unwrap();
    assert_eq!(counted(&db).await, [(1, 2), (2, 2), (3, 1)]);

    db.write_together().await.unwrap().commit().await.unwrap();
}

async fn a_change_that_finds_other_rows_than_expected_takes_all_others_with_it(app: &mut TestApp) {
    let db = table(app).await;
    let mut tx = db.write_together().await.unwrap();
    assert!(add(&mut tx, &[1]).await);
    tx.commit().await.unwrap();

    for waits in [true, false] {
        let mut tx = db.write_together().await.unwrap();
        assert!(add(&mut tx, &[2]).await);
        if !waits {
            let all: Vec<(i64,)> = tx
                .sql("SELECT number FROM counted")
                .fetch_all()
                .await
                .unwrap();
            assert_eq!(all.len(), 2);
        }
        // SQLite knows at once, PostgreSQL when the changes are sent.
        if count(&mut tx, &[1, 7]).await {
            let lost = tx.commit().await.unwrap_err();
            assert_eq!(lost.kind(), Kind::Serialization);
        } else {
            tx.rollback().await.unwrap();
        }
        assert_eq!(counted(&db).await, [(1, 1)]);
    }
}

async fn a_statement_that_cannot_wait_sees_the_changes_before_it(app: &mut TestApp) {
    let db = table(app).await;
    let mut tx = db.write_together().await.unwrap();
    assert!(add(&mut tx, &[1, 2]).await);
    let doubled = tx.sql("UPDATE counted SET times = times * 2 WHERE number > 1");
    assert_eq!(doubled.execute().await.unwrap(), 1);
    assert!(count(&mut tx, &[2]).await);
    tx.commit().await.unwrap();
    assert_eq!(counted(&db).await, [(1, 1), (2, 3)]);
}

async fn what_is_dropped_changes_nothing(app: &mut TestApp) {
    let db = table(app).await;
    let mut tx = db.write_together().await.unwrap();
    assert!(add(&mut tx, &[1]).await);
    drop(tx);
    let mut tx = db.write_together().await.unwrap();
    assert!(add(&mut tx, &[2]).await);
    let all = tx.sql("SELECT number, times FROM counted");
    assert_eq!(all.fetch_all::<(i64, i64)>().await.unwrap(), [(2, 1)]);
    assert!(add(&mut tx, &[3]).await);
    tx.rollback().await.unwrap();
    assert_eq!(counted(&db).await, []);
}
