use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::Lookup;
use super::*;

/// Names that begin with `hang` get no answer until they are released.
#[derive(Debug, Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    asked: Mutex<Vec<String>>,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
}

impl Gate {
    fn release(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }

    fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|asked| *asked == name).count()
    }

    fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

impl Lookup for Gate {
    fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().push(name.to_owned());
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        if name.starts_with("hang") {
            let mut open = self.open.lock();
            self.opened.wait_while(&mut open, |open| !*open);
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
        if name.starts_with("none") {
            return Err(io::Error::other("no such name"));
        }
        assert!(
            !name.starts_with("panic"),
            "as a module of the system's may"
        );
        Ok(vec!["192.0.2.1".parse().unwrap()])
    }
}

const LIMITS: Limits = Limits {
    threads: 8,
    each: 2,
    waiting: 64,
    waiting_each: 32,
};

fn pool() -> (Arc<Gate>, Pool) {
    let gate = Arc::new(Gate::default());
    let lookup: Arc<dyn Lookup> = Arc::<Gate>::clone(&gate);
    (gate, Pool::new("test", lookup, LIMITS))
}

/// Asks for what does not hang, however slow the machine is.
async fn ask(pool: &Pool, number: u128, name: &str) -> Answer {
    pool.ask_within(Duration::from_mins(2), owner(number), name)
        .await
}

fn owner(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Waits until so many look-ups hang.
async fn until_inside(gate: &Gate, count: usize) {
    while gate.inside() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hangs_holds_its_own_share_and_no_more() {
    let (gate, pool) = pool();
    // It is known to work.
    ask(&pool, 1, "works.example").await.unwrap();
    let mut hanging = tokio::task::JoinSet::new();
    for number in 0..1_100 {
        let pool = pool.clone();
        let name = format!("hang{number}.example");
        hanging.spawn(async move { pool.ask(owner(1), &name).await });
    }
    until_inside(&gate, LIMITS.each).await;

    // Somebody else's names, and one's own that works, do not wait for those that hang.
    ask(&pool, 2, "other.example").await.unwrap();
    ask(&pool, 1, "works.example").await.unwrap();
    let mut busy = 0;
    while let Some(answer) = hanging.join_next().await {
        match answer.unwrap() {
            Err(Unknown::Busy) => busy += 1,
            Err(Unknown::NoAddress) => {}
            Ok(_) => panic!("nothing was released"),
        }
    }
    assert!(
        busy >= 1_100 - LIMITS.each,
        "what hangs is told from what had to wait"
    );
    assert_eq!(gate.inside(), LIMITS.each);
    assert!(pool.0.state.lock().threads <= LIMITS.threads);
    assert!(gate.most_inside.load(Ordering::SeqCst) <= LIMITS.threads);

    gate.release();
    loop {
        let free = ask(&pool, 1, "later.example").await;
        if free.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nobody waited any longer for those whose turn had not come.
    let begun = gate.asked.lock().len();
    assert!(begun <= 16, "{begun} look-ups for nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_who_hang_leave_threads_to_others() {
    let (gate, pool) = pool();
    let mut hanging = tokio::task::JoinSet::new();
    for number in 0..4 {
        for place in 0..4 {
            let pool = pool.clone();
            let name = format!("hang{place}.of{number}.example");
            hanging.spawn(async move { ask(&pool, number, &name).await });
        }
    }
    until_inside(&gate, 6).await;
    ask(&pool, 9, "other.example").await.unwrap();
    assert!(gate.most_inside.load(Ordering::SeqCst) <= LIMITS.threads);
    gate.release();
    while let Some(answer) = hanging.join_next().await {
        answer.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_name_is_asked_for_once_at_a_time_and_not_again_where_it_has_no_address() {
    let (gate, pool) = pool();
    let together = [(); 20].map(|()| ask(&pool, 1, "hang.example"));
    let release = async {
        until_inside(&gate, 1).await;
        gate.release();
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(together), release);
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(gate.asked("hang.example"), 1);

    for _ in 0..5 {
        let answer = ask(&pool, 1, "none.example").await;
        assert_eq!(answer, Err(Unknown::NoAddress));
        let answer = ask(&pool, 2, "none.example").await;
        assert_eq!(answer, Err(Unknown::NoAddress));
    }
    // Once, unless this took seconds.
    assert!(gate.asked("none.example") < 10);
    for _ in 0..3 {
        ask(&pool, 1, "changes.example").await.unwrap();
    }
    assert_eq!(gate.asked("changes.example"), 3, "addresses are not kept");
    let answer = ask(&pool, 1, "panic.example").await;
    assert_eq!(answer, Err(Unknown::NoAddress));
    ask(&pool, 1, "fine.example").await.unwrap();
}
