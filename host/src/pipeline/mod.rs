//! What happens to committed events: projection, triggers, effects. Each exactly once, in order for
//! each subject.
//!
//! A request's row in `pending` is claimed by the process that commits it, in the same transaction;
//! the events go to the app's lane in memory at once. A lane takes what waits, reads the subjects, asks
//! the plugins, and writes all effects in one transaction, which also removes the row: it commits only
//! if the row was still there and its own, and no subject changed since it was read. What a process
//! leaves behind when it dies, or has no room for, is claimed by whichever process has room.

pub mod backtest;
mod calls;
mod claims;
mod devices;
mod effects;
mod evaluate;
pub mod explain;
mod facts;
mod firing;
mod gate;
mod groups;
pub mod history;
mod keeper;
mod lane;
mod memory;
pub mod occasions;
mod projection;
mod reading;
pub(crate) mod recipients;
mod recording;
mod room;
mod run_firings;
mod shares;
mod store;
mod trials;
mod unit;
mod waiting;
mod work;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nudge_db::Db;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::apps::Registry;
use crate::clock::Clock;
use crate::config;
use crate::decisions;
use crate::instructions::polls::Polls;
use crate::plugins::Plugins;
use crate::push::sender;
use crate::stats::Stats;

pub(crate) use devices::registered as device_registered;
pub(crate) use groups::seed;
pub use keeper::Keeper;
use memory::Memory;
pub use memory::Seen;
pub use projection::SESSION_BEGAN;
use room::Space;
pub use room::{Room, Size};
use work::InHand;
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
    pub stats: Arc<Stats>,
    pub config: config::Pipeline,
    /// Cancelled when nothing more is to be processed.
    pub halt: CancellationToken,
    tasks: TaskTracker,
    node: Uuid,
    space: Space,
    /// Whether new requests wait in the database, behind others that do.
    spilling: AtomicBool,
    in_hand: InHand,
    /// Subjects as they were written last.
    memory: Memory,
    /// Configurations of decisions whose use is noted.
    noted_configs: decisions::Noted,
    /// Wakes the sender of push messages.
    deliveries: sender::Wake,
    lanes: Mutex<HashMap<(Uuid, usize), mpsc::UnboundedSender<Work>>>,
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
        config: config::Pipeline,
        tasks: TaskTracker,
        halt: CancellationToken,
    ) -> Self {
        let space = Space::new(&config);
        let node = crate::id::new(clock.now());
        let inner = Inner {
            db,
            apps,
            plugins,
            polls,
            clock,
            stats: Arc::default(),
            config,
            halt,
            tasks,
            node,
            space,
            spilling: AtomicBool::new(false),
            in_hand: InHand::default(),
            memory: Memory::new(),
            noted_configs: decisions::Noted::default(),
            deliveries: sender::Wake::default(),
            lanes: Mutex::default(),
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

    /// Wakes the sender of push messages.
    pub fn deliveries(&self) -> &sender::Wake {
        &self.inner.deliveries
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

    /// Gives work to its lane. A subject's work is always in the same one.
    pub fn submit(&self, mut work: Work) {
        work.held = work.claim().map(|claim| self.inner.in_hand.hold(claim));
        let lanes_per_app = self.inner.config.lanes_per_app.max(1);
        let index = usize::try_from(work.alias.unsigned_abs()).unwrap_or(0) % lanes_per_app;
        let mut lanes = self
            .inner
            .lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
            .spawn(lane::run(Arc::clone(&self.inner), receiver));
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
