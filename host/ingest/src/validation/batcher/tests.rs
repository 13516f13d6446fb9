//! Requests that are asked about together.

use std::sync::mpsc;
use std::time::Duration;

use futures_util::future::join_all;
use nudge_campaigns::definitions::{Enforced, Enforcement};
use nudge_db::Timestamp;
use nudge_plugin_runtime::{Accepted, Active, Origin, RolloutPeriod, Share};
use nudge_records::events::Event;
use nudge_wasm::{Compiler, Engine, EngineConfig, Limits, Reads};

use super::*;
use crate::validation::Verdict;

const APPS: [Uuid; 2] = [Uuid::from_u128(1), Uuid::from_u128(2)];
const ALL: (usize, usize) = (usize::MAX, usize::MAX);
/// Makes the plugin trap.
const TRAPS: &str = "far_item";

/// A definition whose plugin does what an event's `mode` says.
fn enforced() -> Arc<Enforced> {
    enforced_within(Duration::from_mins(1))
}

/// The same, of a plugin whose calls may take so long.
fn enforced_within(validation_deadline: Duration) -> Arc<Enforced> {
    let folder = tempfile::tempdir().unwrap();
    let config = EngineConfig {
        cache_dir: folder.path().to_owned(),
        cache_key: [0; 32],
        compiler: Compiler::InProcess,
        limits: Limits {
            validation_deadline,
            describe_deadline: Duration::from_mins(1),
            ..Limits::default()
        },
        pool_slots: 1,
        made_ahead: 0,
    };
    let engine = Engine::new(config).unwrap();
    let plugin = engine.load(test_guests::MISBEHAVING_VALIDATION).unwrap();
    let period = RolloutPeriod {
        owner: Uuid::nil(),
        name: plugin.description().name.clone(),
        version: plugin.description().version.clone(),
        since: Timestamp(0),
    };
    let reads = Reads {
        properties: vec!["mode".to_owned()],
        ..Reads::default()
    };
    Arc::new(Enforced {
        id: Uuid::nil(),
        enforcement: Enforcement::Enforce,
        accepted: Accepted {
            decider: Arc::new(Active {
                origin: Origin::BuiltIn,
                plugin: Arc::new(plugin),
                period: Arc::new(period),
                candidate: None,
                rolled_back: None,
            }),
            config: "{}".into(),
            reading: Arc::new(reads.into()),
            trial: None,
            ask_again: false,
        },
    })
}

/// Events, each with its place in its request and its mode.
fn declared(enforced: &Arc<Enforced>, events: &[(usize, &str)]) -> Arc<[Declared]> {
    let event = |(place, mode): &(usize, &str)| Declared {
        place: *place,
        subject: Uuid::nil(),
        enforced: Arc::clone(enforced),
        event: Event {
            id: Uuid::nil(),
            name: "checked".into(),
            timestamp: Timestamp(0),
            client_timestamp: None,
            properties: format!(r#"{{"mode":"{mode}"}}"#).into(),
        },
    };
    events.iter().map(event).collect()
}

fn context(app: Uuid) -> Context {
    Context {
        app_id: app,
        now: Timestamp(0),
        recorder: None,
    }
}

/// How many violations each place has; none: the plugin failed on it.
fn counts(found: PlacedVerdicts) -> Vec<(usize, Option<usize>)> {
    let count = |(place, verdict)| match verdict {
        Verdict::Broken(violations) => (place, Some(violations.len())),
        Verdict::Unchecked => (place, None),
        other => panic!("{other:?} is nothing to find"),
    };
    let mut counts: Vec<(usize, Option<usize>)> = found.into_iter().map(count).collect();
    counts.sort_unstable();
    counts
}

/// What is found of requests, each of an app, that gather while the one thread is taken.
async fn gathered(requests: &[(Uuid, &[(usize, &str)])]) -> Vec<Vec<(usize, Option<usize>)>> {
    let enforced = enforced();
    let share = Share {
        threads: 1,
        budget: Duration::from_mins(1),
    };
    let workers = Workers::start("test", 1, share).unwrap();
    let (release, taken) = mpsc::channel::<()>();
    workers.offer(Uuid::nil(), ALL, move || taken.recv().unwrap());
    let together = &Batcher::default();
    let workers = &workers;
    let checks = requests.iter().map(|(app, events)| {
        let (context, declared) = (context(*app), declared(&enforced, events));
        async move {
            let found = together.check(workers, &context, &declared).await;
            counts(found.unwrap())
        }
    });
    // All of them are asked before the thread is free.
    let (found, ()) = tokio::join!(biased; join_all(checks), async {
        let waiting: usize = together.0.lock().values().map(|it| it.requests.len()).sum();
        assert_eq!(waiting, requests.len());
        release.send(()).unwrap();
    });
    // The thread answers before it ends its job.
    workers.run(Uuid::nil(), || ()).await.unwrap();
    assert!(together.0.lock().is_empty());
    found
}

#[tokio::test]
async fn requests_get_their_own_verdicts() {
    let found = gathered(&[
        (APPS[0], &[(0, "report:1"), (3, ""), (7, "report:2")]),
        (APPS[0], &[(1, "")]),
        (APPS[1], &[(0, "report:3")]),
        (APPS[0], &[(0, ""), (1, "report:4")]),
    ])
    .await;
    let expected = [
        vec![(0, Some(1)), (7, Some(2))],
        vec![],
        vec![(0, Some(3))],
        vec![(1, Some(4))],
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_request_that_traps_hurts_no_other() {
    let found = gathered(&[
        (APPS[0], &[(0, "report:1"), (1, "")]),
        (
            APPS[0],
            &[(0, "report:1"), (1, TRAPS), (2, "report:2"), (3, "")],
        ),
        (APPS[0], &[(5, "report:3")]),
        (APPS[0], &[(0, TRAPS)]),
    ])
    .await;
    let expected = [
        vec![(0, Some(1))],
        vec![(0, Some(1)), (1, None), (2, Some(2))],
        vec![(5, Some(3))],
        vec![(0, None)],
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_plugin_that_is_too_slow_for_many_events_is_not_asked_for_ever() {
    let enforced = enforced_within(Duration::from_millis(20));
    for (slow, passing) in [(500, 500), (60, 250)] {
        let mode = |place: usize| if place < slow { "loop" } else { "" };
        let events: Vec<(usize, &str)> = (0..500).map(|place| (place, mode(place))).collect();
        let started = Instant::now();
        let found = validation::check(&context(APPS[0]), &declared(&enforced, &events));
        assert!(started.elapsed() < Duration::from_secs(10));
        let found = counts(found);
        assert!(found.iter().all(|(_, violations)| violations.is_none()));
        assert!((0..slow).all(|place| found.contains(&(place, None))));
        // What is left when it was asked for long enough is asked about once more.
        assert!(found.iter().all(|(place, _)| *place < passing), "{found:?}");
    }
}

/// A request with so many events, and who waits for it.
fn request(
    enforced: &Arc<Enforced>,
    app: Uuid,
    count: usize,
) -> (Request, oneshot::Receiver<PlacedVerdicts>) {
    let (reply, replied) = oneshot::channel();
    let events: Vec<(usize, &str)> = (0..count).map(|place| (place, "")).collect();
    let request = Request {
        context: context(app),
        declared: declared(enforced, &events),
        reply,
    };
    (request, replied)
}

#[test]
fn a_call_takes_what_fits_of_one_app_in_turn() {
    let enforced = enforced();
    let together = Batcher::default();
    for (app, count) in [
        (0, 300),
        (1, 1),
        (0, 200),
        (0, 1),
        (1, 499),
        (0, 500),
        (0, 499),
        (1, 1),
    ] {
        let (request, _) = request(&enforced, APPS[app], count);
        let mut waiting = together.0.lock();
        waiting.entry(APPS[app]).or_default().add(request);
    }
    let take = |app: usize| -> Vec<usize> {
        let taken = together.take(APPS[app]);
        assert!(
            taken
                .iter()
                .all(|request| request.context.app_id == APPS[app])
        );
        taken.iter().map(|request| request.declared.len()).collect()
    };
    assert_eq!(take(0), [300, 200], "500 are one call");
    assert_eq!(take(0), [1], "501 are not");
    assert_eq!(take(1), [1, 499]);
    assert_eq!(take(0), [500]);
    assert_eq!(take(0), [499]);
    assert_eq!(
        take(0),
        [0; 0],
        "a job whose request went along with an earlier one"
    );
    assert_eq!(take(1), [1]);
    assert!(together.0.lock().values().all(|it| it.events == 0));
}

#[test]
fn one_thread_does_for_an_app_until_enough_waits_for_another() {
    let enforced = enforced();
    let mut waiting = AppQueue::default();
    let add = |waiting: &mut AppQueue, count| {
        let (request, _) = request(&enforced, APPS[0], count);
        waiting.add(request)
    };
    assert!(add(&mut waiting, 1));
    assert!(!add(&mut waiting, WORTH_A_THREAD - 2));
    assert!(add(&mut waiting, 1));
    assert!(!add(&mut waiting, WORTH_A_THREAD - 1));
    assert!(add(&mut waiting, 1));
    assert_eq!(waiting.jobs, 3);
    // Whoever is last leaves nothing behind.
    assert_eq!([(); 4].map(|()| waiting.end()), [false, false, true, true]);
    waiting.take();
    assert!(!waiting.end());
    assert_eq!(waiting.jobs, 0);
}

#[tokio::test]
async fn what_a_panic_leaves_is_asked_all_the_same() {
    let enforced = enforced();
    let workers = Workers::start("test", 1, Share::ALL).unwrap();
    let together = Batcher::default();
    let (waits, answer) = request(&enforced, APPS[0], 1);
    assert!(together.0.lock().entry(APPS[0]).or_default().add(waits));
    let job = Job {
        together: together.clone(),
        workers: workers.clone(),
        app_id: APPS[0],
    };
    workers.offer(APPS[0], ALL, move || {
        let _job = job;
        panic!("on purpose");
    });
    assert_eq!(counts(answer.await.unwrap()), []);
}

#[test]
fn who_has_gone_is_not_told_and_spoils_nothing() {
    let enforced = enforced();
    let (gone, answer) = request(&enforced, APPS[0], 1);
    drop(answer);
    let (stays, answer) = request(&enforced, APPS[0], 2);
    run(vec![gone, stays]);
    assert_eq!(counts(answer.blocking_recv().unwrap()), []);
}
