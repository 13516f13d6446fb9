//! SQLite's planner, which has no statistics, would walk through all rows of an app for some lengths of lists, and for
//! somebody's aliases.

use nudge_db::{Rows, Tx};
use nudge_platform::jobs;
use nudge_push::tokens;
use nudge_records::{events, subjects};
use tests::{Backend, TestApp, site};
use uuid::Uuid;

/// Each length that a list has once it is padded.
fn lengths() -> impl Iterator<Item = usize> {
    (0..)
        .map(|power| 1 << power)
        .take_while(|it| *it <= Rows::MOST)
}

#[tokio::test]
async fn sqlite_looks_every_list_up() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let app_id = app.access.app_id;
    let services = app.services();
    let mut tx = services.db.read().await.unwrap();
    tx.explain();
    for length in lengths() {
        let people: Vec<Uuid> = (0..length).map(|_| app.id()).collect();
        tokens::store::active_of(&mut tx, &services.secrets, app_id, &people)
            .await
            .unwrap();
        check(
            &mut tx,
            length,
            &["push_tokens_2 (app_id=? AND subject_id=?)"],
        );
        nudge_records::deliveries::store::names(&mut tx, app_id, &people)
            .await
            .unwrap();
        check(&mut tx, length, &["(app_id=? AND id=?)"]);
        // What people have many of is looked up for each.
        let found: Vec<Uuid> = tx
            .with_rows("v(id)", Rows::new().uuids(people))
            .push(
                " SELECT s.id FROM v JOIN subjects s ON s.id = v.id JOIN aliases a ON a.subject_id = s.id
                  WHERE s.app_id = ",
            )
            .push_bind(app_id)
            .push(" GROUP BY s.id ORDER BY s.id")
            .fetch_values()
            .await
            .unwrap();
        assert!(found.is_empty(), "it is only explained");
        check(&mut tx, length, &["(app_id=? AND id=?)", "(subject_id=?)"]);
    }
    drop(tx);
    app.finish().await;
}

#[tokio::test]
async fn sqlite_finds_aliases_by_their_subject() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let (app_id, id) = (app.access.app_id, app.id());
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    // A count finds no row where nothing is run.
    subjects::store::count_aliases(&mut tx, app_id, id)
        .await
        .unwrap_err();
    no_walk(&tx.plans());
    subjects::store::revoke_all_tokens(&mut tx, app_id, id)
        .await
        .unwrap();
    no_walk(&tx.plans());
    events::store::of_subject(&mut tx, app_id, id, id)
        .await
        .unwrap();
    no_walk(&tx.plans());
    for length in lengths() {
        let ids: Vec<Uuid> = (0..length).map(|_| app.id()).collect();
        events::store::committed(&mut tx, app_id, id, &ids)
            .await
            .unwrap();
        no_walk(&tx.plans());
    }
    drop(tx);
    app.finish().await;
}

/// Whether nothing is found by its app alone.
fn no_walk(plan: &[String]) {
    let walked = |line: &&String| line.starts_with("SEARCH") && line.ends_with("(app_id=?)");
    assert!(!plan.is_empty());
    assert_eq!(plan.iter().find(walked), None, "{plan:#?}");
}

/// Whether the list comes first, and tables are found by these columns of their indexes.
fn check(tx: &mut Tx, length: usize, by: &[&str]) {
    let plan = tx.plans();
    let begins = plan.iter().position(|line| line.starts_with("SCAN"));
    let first = begins.and_then(|at| plan.get(at));
    let is_list = |line: &String| {
        line.contains("VALUES") || line.contains("CONSTANT") || line.contains("subquery")
    };
    assert!(first.is_some_and(is_list), "{length}: {plan:#?}");
    no_walk(&plan);
    for columns in by {
        assert!(
            plan.iter()
                .any(|line| line.trim_end_matches(" LEFT-JOIN").ends_with(columns)),
            "{length}: {plan:#?}"
        );
    }
}

/// Those that have ended are not walked over to count those that have not.
#[tokio::test]
async fn sqlite_counts_the_jobs_of_a_kind_that_have_not_ended() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let app_id = app.access.app_id;
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    // A count finds no row where nothing is run.
    jobs::store::count_unfinished(&mut tx, app_id, "kind")
        .await
        .unwrap_err();
    let is_looked_up = |plan: &[String], what: &str| {
        assert!(plan.iter().any(|line| line.contains(what)), "{plan:#?}");
        no_walk(plan);
    };
    let unfinished = "jobs_of_kind (app_id=? AND kind=? AND completed_at=?)";
    is_looked_up(&tx.plans(), unfinished);
    let before = app.clock.now();
    let kinds = vec!["one", "other"];
    jobs::store::delete_ended(&mut tx, app_id, kinds, before)
        .await
        .unwrap();
    let ended = "jobs_of_kind (app_id=? AND kind=? AND completed_at<?)";
    is_looked_up(&tx.plans(), ended);
    drop(tx);
    app.finish().await;
}
