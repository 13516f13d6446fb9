//! A leader that goes away under Patroni, which promotes the synchronous standby: what was answered is there once, and the
//! server is with the new leader soon.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tests::postgres::Patroni;

use crate::failover::{DEADLINE, SOON, first_success, server};
use crate::faults::{all_once, people, send_amid};

/// Makes the leader go away while clients send; the server is with the other one within so long of its promotion.
async fn fails_over(within: Duration, gone: fn(&Patroni, usize)) {
    let Some(cluster) = tokio::task::spawn_blocking(Patroni::start).await.unwrap() else {
        return;
    };
    let cluster = Arc::new(cluster);
    let app = server(cluster.url()).await;
    let people = people(&app).await;
    let probe = app.session("probe").await;
    let (mut probed, mut took) = (String::new(), Duration::MAX);
    let mut sent = send_amid(&app, &people, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let cluster = Arc::clone(&cluster);
        let promoted = tokio::task::spawn_blocking(move || {
            let leader = cluster.leader().unwrap();
            gone(&cluster, leader);
            cluster.wait_for_other(leader);
            Instant::now()
        });
        let promoted = promoted.await.unwrap();
        probed = first_success(&app, &probe).await;
        took = promoted.elapsed();
    })
    .await;
    assert!(took <= within, "{took:?}");
    sent.push(probed);
    all_once(&app, sent).await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_replaced_within_seconds() {
    fails_over(SOON, Patroni::kill).await;
}

/// Nobody closes the connections of a leader that stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_leader_is_given_up_at_the_deadline() {
    fails_over(DEADLINE + SOON, Patroni::freeze).await;
}
