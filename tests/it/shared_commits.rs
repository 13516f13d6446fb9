//! Transactions of SQLite that share a commit: whoever is told that one is done finds it on disk, and one that fails takes
//! nothing of the others with it.

use std::path::PathBuf;
use std::time::Duration;

use nudge_db::{Db, Kind, Options, Result, Tx};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Longer than anything takes that does not hang.
const HANGS: Duration = Duration::from_mins(1);
/// How long something stays as it is.
const STAYS: Duration = Duration::from_millis(100);

/// A database with a table of numbers.
struct Numbers {
    db: Db,
    path: PathBuf,
    _folder: TempDir,
}

async fn open(path: &std::path::Path) -> Db {
    let url = format!("sqlite:{}", path.display());
    Db::open(&Options::new(url, 2)).await.unwrap()
}

impl Numbers {
    async fn new() -> Self {
        let folder = TempDir::with_prefix("nudge-test-").unwrap();
        let path = folder.path().join("numbers.db");
        let db = open(&path).await;
        let mut tx = db.write().await.unwrap();
        let table = "CREATE TABLE numbers (number INTEGER PRIMARY KEY, text BLOB) STRICT";
        tx.sql(table).execute().await.unwrap();
        tx.commit().await.unwrap();
        Self {
            db,
            path,
            _folder: folder,
        }
    }

    /// A transaction that adds a number and can wait for others.
    async fn adds(&self, number: i64) -> Tx {
        let mut tx = self.db.unhurried().write().await.unwrap();
        add(&mut tx, number).await.unwrap();
        tx
    }

    /// One that waits for its turn.
    async fn queues(&self, number: i64) -> JoinHandle<Tx> {
        let db = self.db.unhurried();
        let queued = aside(async move {
            let mut tx = db.write().await.unwrap();
            add(&mut tx, number).await.unwrap();
            tx
        });
        tokio::time::sleep(STAYS).await;
        queued
    }

    /// Adds numbers one after another: a commit that waits for the next transaction, that one, and those that wait behind it.
    async fn group<const BEHIND: usize>(
        &self,
        first: i64,
    ) -> (JoinHandle<Result<()>>, Tx, [JoinHandle<Tx>; BEHIND]) {
        let one = self.adds(first).await;
        let two = self.queues(first + 1).await;
        let mut behind = Vec::new();
        for number in (first + 2..).take(BEHIND) {
            behind.push(self.queues(number).await);
        }
        let one = commits(one);
        (one, two.await.unwrap(), behind.try_into().unwrap())
    }

    /// The numbers that others see.
    async fn all(&self) -> Vec<i64> {
        numbers(&self.db).await
    }

    /// Those that are on disk: another process, which may write too, sees them.
    async fn kept(&self) -> Vec<i64> {
        let other = open(&self.path).await;
        let kept = numbers(&other).await;
        let mut tx = other.write().await.unwrap();
        add(&mut tx, -1).await.unwrap();
        tx.rollback().await.unwrap();
        other.close().await;
        kept
    }
}

/// Runs something beside the test.
fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    TaskTracker::new().spawn(work)
}

async fn add(tx: &mut Tx, number: i64) -> Result<()> {
    let statement = tx
        .sql("INSERT INTO numbers (number) VALUES ($1)")
        .bind(number);
    statement.execute().await.map(drop)
}

async fn numbers(db: &Db) -> Vec<i64> {
    let mut tx = db.read().await.unwrap();
    let all = tx.sql("SELECT number FROM numbers ORDER BY number");
    all.fetch_values().await.unwrap()
}

/// Commits, while others do what they do.
fn commits(tx: Tx) -> JoinHandle<Result<()>> {
    aside(tx.commit())
}

/// What a commit has come to.
async fn outcome(commit: JoinHandle<Result<()>>) -> Result<()> {
    tokio::time::timeout(HANGS, commit).await.unwrap().unwrap()
}

/// Whether a commit waits for something.
async fn waits(commit: &JoinHandle<Result<()>>) -> bool {
    tokio::time::sleep(STAYS).await;
    !commit.is_finished()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_may_wait_for_those_that_wait_to_write() {
    let numbers = Numbers::new().await;
    let (one, two, []) = numbers.group(1).await;
    assert!(waits(&one).await);
    assert_eq!(numbers.all().await, [0; 0], "none is committed yet");
    let two = commits(two);
    outcome(one).await.unwrap();
    outcome(two).await.unwrap();
    assert_eq!(numbers.kept().await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_where_nobody_else_writes() {
    let numbers = Numbers::new().await;
    for number in [1, 2] {
        let tx = numbers.adds(number).await;
        tx.commit().await.unwrap();
    }
    assert_eq!(numbers.kept().await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_somebody_waits_for_is_committed_at_once() {
    let numbers = Numbers::new().await;
    let one = numbers.adds(1).await;
    let db = numbers.db.clone();
    let two = aside(async move { db.write().await.unwrap() });
    tokio::time::sleep(STAYS).await;
    let one = commits(one);
    let mut two = two.await.unwrap();
    add(&mut two, 2).await.unwrap();
    let three = numbers.queues(3).await;
    assert!(waits(&one).await);
    outcome(commits(two)).await.unwrap();
    outcome(one).await.unwrap();
    let three = three.await.unwrap();
    assert_eq!(numbers.all().await, [1, 2]);
    outcome(commits(three)).await.unwrap();
    assert_eq!(numbers.kept().await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_fails_takes_nothing_of_the_others_with_it() {
    for rolls_back in [false, true] {
        let numbers = Numbers::new().await;
        let (one, mut two, [three]) = numbers.group(1).await;
        let again = add(&mut two, 1).await.unwrap_err();
        assert_eq!(
            again.kind(),
            Kind::Conflict,
            "it sees what those before it did"
        );
        if rolls_back {
            two.rollback().await.unwrap();
        } else {
            drop(two);
        }
        let three = commits(three.await.unwrap());
        outcome(one).await.unwrap();
        outcome(three).await.unwrap();
        assert_eq!(numbers.kept().await, [1, 3], "{rolls_back}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_one_may_go_away() {
    let numbers = Numbers::new().await;
    let (one, two, []) = numbers.group(1).await;
    // It goes away while it has its turn, and so does one that waits for it.
    let three = numbers.queues(3).await;
    three.abort();
    drop(two);
    outcome(one).await.unwrap();
    assert_eq!(numbers.kept().await, [1]);

    // One that goes away before it commits holds nobody up, in whatever process.
    drop(numbers.adds(4).await);
    assert_eq!(numbers.kept().await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_goes_away_amid_its_commit_takes_no_others_with_it() {
    let numbers = Numbers::new().await;
    let (one, two, [three]) = numbers.group(1).await;
    let two = commits(two);
    let three = three.await.unwrap();
    assert!(waits(&two).await);
    two.abort();
    let three = commits(three);
    outcome(one).await.unwrap();
    outcome(three).await.unwrap();
    assert_eq!(numbers.kept().await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_goes_to_its_end_and_is_told_of_whoever_goes_away() {
    let numbers = Numbers::new().await;
    let mut commits = numbers.db.commits().unwrap();
    let mut amid = 0;
    for number in 0..20 {
        let tx = if number % 2 == 0 {
            numbers.adds(number).await
        } else {
            let mut tx = numbers.db.write().await.unwrap();
            add(&mut tx, number).await.unwrap();
            tx
        };
        commits.borrow_and_update();
        // On a busy machine one may be over before it is looked at.
        amid += usize::from(futures_util::poll!(tx.commit()).is_pending());
        let told = tokio::time::timeout(HANGS, commits.changed()).await;
        told.unwrap().unwrap();
        assert_eq!(numbers.kept().await.last(), Some(&number));
    }
    assert!(amid > 0, "nobody went away amid a commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_that_go_away_cost_no_connection() {
    let numbers = Numbers::new().await;
    // Others have no part in it: it ends with its connection.
    let mut tx = numbers.db.write().await.unwrap();
    let mark = "CREATE TEMP TABLE mark (number INTEGER)";
    tx.sql(mark).execute().await.unwrap();
    tx.commit().await.unwrap();
    for number in 0..200_u64 {
        let tx = numbers.adds(number.cast_signed()).await;
        let commit = commits(tx);
        tokio::time::sleep(Duration::from_micros(number * 5)).await;
        commit.abort();
    }
    let mut tx = numbers.db.write().await.unwrap();
    let marks: i64 = tx
        .sql("SELECT count(*) FROM mark")
        .fetch_scalar()
        .await
        .unwrap();
    assert_eq!(marks, 0);
    tx.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_sqlite_undoes_everything_all_are_told() {
    let numbers = Numbers::new().await;
    let (one, mut two, [three]) = numbers.group(1).await;
    // A full disk, of which SQLite rolls back the whole transaction.
    tx_fills_the_disk(&mut two).await;
    drop(two);
    assert_eq!(outcome(one).await.unwrap_err().kind(), Kind::Unavailable);
    // The next one has a transaction of its own.
    outcome(commits(three.await.unwrap())).await.unwrap();
    assert_eq!(numbers.kept().await, [3]);

    // So it is where the failed one goes on and commits.
    let (four, mut five, []) = numbers.group(4).await;
    tx_fills_the_disk(&mut five).await;
    assert_eq!(
        outcome(commits(five)).await.unwrap_err().kind(),
        Kind::Unavailable
    );
    assert_eq!(outcome(four).await.unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(numbers.kept().await, [3]);

    // And where it is the first, whose commit was to wait.
    let mut six = numbers.adds(6).await;
    let seven = numbers.queues(7).await;
    tx_fills_the_disk(&mut six).await;
    assert!(outcome(commits(six)).await.is_err());
    outcome(commits(seven.await.unwrap())).await.unwrap();
    assert_eq!(numbers.kept().await, [3, 7]);
}

async fn tx_fills_the_disk(tx: &mut Tx) {
    tx.sql("PRAGMA max_page_count = 1").execute().await.unwrap();
    let large = "INSERT INTO numbers (number, text) VALUES (1000, zeroblob(1000000))";
    let error = tx.sql(large).execute().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_all_there() {
    let numbers = Numbers::new().await;
    let mut all = Vec::new();
    for number in 0..500 {
        let db = if number % 5 == 0 {
            numbers.db.clone()
        } else {
            numbers.db.unhurried()
        };
        all.push(aside(async move {
            let mut tx = db.write().await?;
            add(&mut tx, number).await?;
            match number % 7 {
                0 => tx.rollback().await,
                1 => {
                    drop(tx);
                    Ok(())
                }
                _ => tx.commit().await,
            }
        }));
        // Some go away, wherever they are.
        if number % 11 == 0 {
            tokio::task::yield_now().await;
            all.last().unwrap().abort();
        }
    }
    let mut told = Vec::new();
    for (number, one) in (0..).zip(all) {
        let Ok(outcome) = one.await else { continue };
        outcome.unwrap();
        told.push(number);
    }
    let kept = numbers.kept().await;
    for number in told {
        assert_eq!(kept.contains(&number), number % 7 > 1, "{number}");
    }
    assert!(kept.iter().all(|number| number % 7 > 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_waits_for_what_is_under_way() {
    let numbers = Numbers::new().await;
    let (one, two, []) = numbers.group(1).await;
    let db = numbers.db.clone();
    let closed = aside(async move { db.close().await });
    tokio::time::sleep(STAYS).await;
    assert!(!closed.is_finished());
    drop(two);
    tokio::time::timeout(HANGS, closed).await.unwrap().unwrap();
    outcome(one).await.unwrap();
    assert_eq!(numbers.kept().await, [1]);
    assert_eq!(
        numbers.db.write().await.unwrap_err().kind(),
        Kind::Unavailable
    );
}
