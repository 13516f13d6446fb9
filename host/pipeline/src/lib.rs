//! What follows from committed events: projection, triggers, effects. Each exactly once, in order for each subject.
//!
//! A request's row in `pending` is claimed by the process that commits it, in the same transaction; the events go to the app's queue in memory at
//! once. A queue takes the requests that wait, reads the subjects, asks the plugins, and writes all effects in one transaction, which also removes the
//! row: it commits only if the row was still there and its own, and no subject changed since it was read. Rows that a process leaves behind when it
//! dies, or has no room for, are claimed by whichever process has room.
//!
//! # Invariants
//!
//! - **Effects happen exactly once.** The transaction of the effects deletes the request's row from `pending`, and commits only if the row was still
//!   claimed by this process, no earlier request of the same person was left, and no subject's `version` moved. Timers, scheduled work and replayed dead letters are
//!   consumed the same way. An instruction's id is derived from what fired it, so that one firing can't have two.
//! - **Order.** A request's events are numbered from `pending.id * 512` on, by the database. A person's requests are processed by that number, whichever
//!   alias they came under. Concurrent requests have no order.
//! - **What is due waits for what arrived before** (`scheduled_work::in_turn`). A timer or an occasion is claimed once nothing is left of the person that
//!   arrived until it was due; what arrived later cancels no timer that was due.
//! - **Row claims, not partitions** (`claims.rs`, `recovery.rs`). A process proves that it lives by a heartbeat; the claims of one whose heartbeat has not
//!   changed for `pipeline.nodeTimeoutSeconds` are released (`signs.rs`). A request is claimed from the database only if its person's first one is unclaimed or the claimer's own.
//!   So a person's first request is in a living process's hand, or free for any that has room.
//! - **A subject that was written is remembered** (`memory.rs`). That is safe since effects are written only if the subject's `version` is still the remembered one.
//! - **No transaction across a plugin call or a network call.** Read, release, call, write. The one exception reads: a plugin's question about history is
//!   answered on the plugin's thread from a short read transaction.
//! - **A failing batch is taken apart** until only the events that the plugin fails on are left; those become dead letters.
//! - **What fails for another reason is tried again by itself** (`failing.rs`): nobody waits for it but its own alias.
//! - **A shadow sees what the active version saw** (`shadow.rs`): the same items and facts. Its answers are compared and dropped.
//! - **The window begins a session, and a session begins once** (`projection.rs`).
//! - **A run begins once and reaches everybody once** (`runs/`). A page's scheduled work and the run's place are one commit.
//! - **What the host holds back has not fired** (`delivery_rules.rs`, contract 13). Consent, sample, schedule and caps are among the conditions of a firing.
//! - **An in-app message is made once** (`messages.rs`). It is made before the effects are written, only of firings that pass the delivery rules, and kept in its
//!   instruction. What can't be made of what is known is suppressed; what the plugin fails on is a dead letter that fires again when it is replayed.
//! - **A question about somebody's past costs as much as its limit** ([`history`]).
//! - **A change of a segment is told once** ([`segments`]).
//! - **Room for a plugin's states of a person is shared** (`quota.rs`): 64 KiB and 256 timers a subject; beyond that a campaign may keep its share. The
//!   host's own plugin has as many timers as events set.
//! - **A backtest takes no effect and reads the past** ([`backtest`]): states and timers of its own, in memory, within 128 MiB.
//! - **Why is asked for the timer too** (`explain/later.rs`).

mod app_queue;
pub mod audience;
pub mod backtest;
mod batch;
mod calls;
mod claims;
pub mod decisions;
mod delivery_rules;
pub mod devices;
mod earlier;
mod effects;
mod evaluate;
pub mod explain;
mod facts;
mod failing;
mod firing;
mod groups;
pub mod history;
mod memory;
mod messages;
mod occasions;
pub mod personalization;
pub mod places;
pub mod plugin_state;
mod projection;
mod quota;
mod reading;
mod recipients;
mod recording;
mod recovery;
mod room;
pub mod router;
mod run_firings;
pub mod runs;
pub mod saving;
pub mod segments;
pub mod services;
mod setback;
mod shadow;
mod signs;
mod store;
pub mod tasks;
mod waiting;
mod work;
mod zones;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nudge_apps::Registry;
use nudge_db::Db;
use nudge_platform::clock::Clock;
use nudge_platform::config;
use nudge_platform::polls::Polls;
use nudge_platform::traces::Traces;
use nudge_plugin_runtime::Plugins;
use nudge_records::decisions::Noted;
use nudge_records::deliveries::in_hand::DeliveriesInHand;
use nudge_records::stats::Stats;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use crate::recovery::Recovery;
pub use devices::registered;
pub use groups::seed;
use memory::Memory;
pub use memory::SeenVersions;
use room::Space;
pub use room::{Room, Size};
use work::ClaimedRows;
pub use work::{Fired, Source, Work};

/// Hands work to the lanes. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub db: Db,
    pub apps: Arc<Registry>,
    pub plugins: Plugins,
    pub polls: Polls,
    pub clock: Clock,
    pub traces: Option<Traces>,
    pub stats: Arc<Stats>,
    pub config: config::Pipeline,
    /// Cancelled when nothing more is to be processed.
    pub halt: CancellationToken,
    tasks: TaskTracker,
    node: Uuid,
    space: Space,
    /// Whether new requests wait in the database, behind others that do.
    spilling: AtomicBool,
    in_hand: ClaimedRows,
    /// Subjects as they were written last.
    memory: Memory,
    /// Configurations of decisions whose use is noted.
    noted_configs: Noted,
    /// Whether no other process shared the database at the last look.
    is_alone: AtomicBool,
    /// Since when this process has given no sign of life; none while nobody looks for one.
    silent_since: Mutex<Option<Instant>>,
    /// Push messages that this process is sending.
    deliveries: DeliveriesInHand,
    /// Wakes whoever looks at people whose segments may have changed.
    segment_checks: nudge_platform::wake::Wake,
    lanes: Mutex<HashMap<(Uuid, usize), mpsc::UnboundedSender<Work>>>,
    /// Tells lanes that one of them has processed a batch: the turn of what waits in another may have come.
    turns: watch::Sender<()>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Pipeline")
            .field("node", &self.inner.node)
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    /// A pipeline without work.
    #[expect(clippy::too_many_arguments, reason = "the services that it is made of")]
    pub fn new(
        db: Db,
        apps: Arc<Registry>,
        plugins: Plugins,
        polls: Polls,
        clock: Clock,
        traces: Option<Traces>,
        config: config::Pipeline,
        tasks: TaskTracker,
        halt: CancellationToken,
    ) -> Self {
        let space = Space::new(&config);
        let node = nudge_platform::id::new(clock.now());
        let inner = Inner {
            db,
            apps,
            plugins,
            polls,
            clock,
            traces,
            stats: Arc::default(),
            config,
            halt,
            tasks,
            node,
            space,
            spilling: AtomicBool::new(false),
            in_hand: ClaimedRows::default(),
            memory: Memory::new(),
            noted_configs: Noted::default(),
            is_alone: AtomicBool::new(false),
            silent_since: Mutex::default(),
            deliveries: DeliveriesInHand::new(node),
            segment_checks: nudge_platform::wake::Wake::default(),
            lanes: Mutex::default(),
            turns: watch::Sender::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Counts of what happens, on their way to the database.
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.inner.stats)
    }

    /// This process, among those that share the database.
    pub fn node(&self) -> Uuid {
        self.inner.node
    }

    /// For how long this process has not managed to say that it lives. Past `pipeline.nodeTimeoutSeconds` others take
    /// its work over.
    pub fn silence(&self) -> Duration {
        let silent_since = *self.inner.silent_since.lock();
        silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns once everything is on disk that was committed before, delayed or not.
    pub async fn flush(&self) -> nudge_db::Result<()> {
        let inner = &self.inner;
        let mut tx = inner.db.write().await?;
        claims::touch(&mut tx, inner.node, inner.clock.now()).await?;
        tx.silently();
        tx.commit().await
    }

    /// Whether no request is in memory: those that were claimed have taken effect and are counted.
    pub fn is_idle(&self) -> bool {
        self.inner.in_hand.requests() == 0
    }

    /// Push messages that this process is sending.
    pub fn deliveries(&self) -> &DeliveriesInHand {
        &self.inner.deliveries
    }

    /// Wakes whoever looks at people whose segments may have changed.
    pub fn segment_checks(&self) -> &nudge_platform::wake::Wake {
        &self.inner.segment_checks
    }

    /// Room in memory for some events, if there is. Once there is none, new requests wait in the
    /// database until those before them were taken from there, so that they do not overtake them.
    pub fn room(&self, size: Size) -> Option<Room> {
        if self.inner.spilling.load(Ordering::Relaxed) {
            return None;
        }
        let room = self.inner.room_for_claimed(size);
        if room.is_none() {
            self.inner.spilling.store(true, Ordering::Relaxed);
        }
        room
    }

    /// Room in memory for some events, when there is. None: the server stops.
    pub async fn wait_for_room(&self, size: Size) -> Option<Room> {
        self.inner.space.take(size).await
    }

    /// Gives work to its lane. A subject's work is in the same one, but for what was found in the database: of that the alias alone
    /// is known, and where another lane has what is before it, it waits for its turn.
    pub fn submit(&self, mut work: Work) {
        work.held = work.claim().map(|claim| self.inner.in_hand.hold(claim));
        let index = work.lane(self.inner.config.lanes_per_app.max(1));
        let mut lanes = self.inner.lanes.lock();
        let key = (work.app_id, index);
        let lane = lanes.entry(key).or_insert_with(|| self.open_lane());
        // A lane ends when the server stops; then the work stays in the database.
        if let Err(mpsc::error::SendError(work)) = lane.send(work)
            && !self.inner.halt.is_cancelled()
        {
            let lane = self.open_lane();
            drop(lane.send(work));
            lanes.insert(key, lane);
        }
    }

    fn open_lane(&self) -> mpsc::UnboundedSender<Work> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.inner
            .tasks
            .spawn(app_queue::run(Arc::clone(&self.inner), receiver));
        sender
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl Inner {
    pub(crate) fn node(&self) -> Uuid {
        self.node
    }

    /// Room for work that was claimed from the database.
    pub(crate) fn room_for_claimed(&self, size: Size) -> Option<Room> {
        self.space.try_take(size)
    }

    /// Nothing waits in the database any longer.
    pub(crate) fn caught_up(&self) {
        self.spilling.store(false, Ordering::Relaxed);
    }

    /// The memory for events.
    fn space(&self) -> &Space {
        &self.space
    }
}
