//! Keeps the pipeline going: signs of life, work that others left, timers that fall due, apps that
//! others changed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nudge_db::{Dialect, Timestamp, Tx};
use nudge_platform::due::{self, Next, Pacer, Setbacks};
use nudge_records::events;
use nudge_records::events::Origin;
use nudge_records::events::store::{RequestKey, Stored};
use nudge_records::scheduled_work::{self, ClaimedOccasion, DueTimer};
use nudge_records::subjects;
use uuid::Uuid;

use super::claims::{self, ClaimedRequest, ClaimedTimer};
use super::devices::Device;
use super::signs::Signs;
use super::work::{Claim, Source, Work};
use super::{Pipeline, Size, setback, store};

/// How often a process says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// For so long a process is waited for of which only an old sign of life is known: it would have given some more.
const PATIENCE: Duration = Duration::from_secs(6);
/// Requests and timers that are claimed at once, at the most.
const CLAIM: i64 = 500;
/// How soon more are looked for while some are in memory: a run over all subjects is not to wait for the next look.
const MORE_OCCASIONS: Duration = Duration::from_millis(25);

/// The pipeline's housekeeping: one a process.
#[derive(Debug)]
pub struct Recovery {
    pipeline: Pipeline,
    beat_at: Timestamp,
    /// Signs of life of other processes.
    signs: Signs,
    /// When claims of processes that are not there were given up last.
    released_at: Timestamp,
    /// Whether that is to be done.
    must_release: bool,
    /// Claims whose work was not in memory at the last look.
    suspects: HashSet<Claim>,
    /// Whether nothing was left to do at the last sign of life, and nothing was committed since.
    is_quiet: bool,
    setbacks: Setbacks,
}

impl Recovery {
    /// Signs this process in. On SQLite it has the database for itself, and takes over at once what an
    /// earlier one left.
    pub async fn sign_in(pipeline: Pipeline) -> nudge_db::Result<Self> {
        let inner = pipeline.inner();
        let now = inner.clock.now();
        let mut tx = inner.db.write().await?;
        claims::beat(&mut tx, inner.node(), now).await?;
        let timeout = Duration::from_secs(inner.config.node_timeout_seconds);
        let mut signs = match tx.dialect() {
            Dialect::Sqlite => {
                claims::leave_all_but(&mut tx, inner.node()).await?;
                inner.is_alone.store(true, Ordering::Relaxed);
                // Nobody else can give any.
                Signs::new(timeout, Duration::ZERO)
            }
            Dialect::Postgres => Signs::new(timeout, PATIENCE),
        };
        signs.note(
            &claims::others(&mut tx, inner.node()).await?,
            Instant::now(),
        );
        tx.commit().await?;
        Ok(Self {
            pipeline,
            beat_at: now,
            signs,
            released_at: now,
            must_release: false,
            suspects: HashSet::new(),
            is_quiet: false,
            setbacks: Setbacks::default(),
        })
    }

    /// Runs until the server stops.
    pub async fn run(mut self) {
        let inner = self.pipeline.inner();
        let (poll_ms, what) = (inner.config.poll_ms, "the pipeline's housekeeping");
        let mut pacer = Pacer::new(&inner.db, &inner.clock, poll_ms, what);
        loop {
            if pacer.look() {
                self.is_quiet = false;
            }
            let next = pacer.note(self.turn().await).unwrap_or(Next::Soon);
            let inner = self.pipeline.inner();
            tokio::select! {
                () = pacer.wait(next) => {}
                () = tokio::time::sleep(MORE_OCCASIONS), if inner.in_hand.occasions() > 0 => {}
                () = inner.halt.cancelled() => return,
            }
        }
    }

    async fn turn(&mut self) -> nudge_db::Result<Next> {
        let now = self.pipeline.inner().clock.now();
        let silent = due::is_over(HEARTBEAT, self.beat_at, now);
        let beats = silent && !self.is_quiet;
        if beats {
            let inner = self.pipeline.inner();
            inner.silent_since.lock().get_or_insert_with(Instant::now);
            self.beat(now).await?;
        }
        // Only now: that may take long or fail, and this process lives nevertheless.
        self.heed_the_clock().await?;
        self.pipeline.inner().memory.age();
        self.catch_up().await?;
        if beats {
            self.look_after(now).await?;
        }
        let mut caught_up = Instant::now();
        while self.claim(now).await? {
            let inner = self.pipeline.inner();
            // However much there is to claim: a process that gives no sign of life loses what it has claimed.
            if inner.clock.now().since(self.beat_at) >= HEARTBEAT {
                break;
            }
            if caught_up.elapsed() >= Duration::from_millis(inner.config.poll_ms) {
                self.catch_up().await?;
                caught_up = Instant::now();
            }
        }
        if !self.is_quiet {
            return Ok(Next::Soon);
        }
        let mut tx = self.pipeline.inner().db.read().await?;
        let timer = claims::next_timer(&mut tx).await?;
        let occasion = scheduled_work::next(&mut tx).await?;
        Ok(Next::At(timer).or(Next::At(occasion)))
    }

    /// Has apps read anew that other processes have changed.
    async fn catch_up(&self) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        for app in inner.apps.changed().await? {
            // Loading plugins can take long, and neither other apps nor the rest of a turn wait for it.
            let halt = inner.halt.clone();
            inner.tasks.spawn(async move {
                tokio::select! {
                    () = app.finish() => {}
                    () = halt.cancelled() => {}
                }
            });
        }
        Ok(())
    }

    /// Lets nothing wait for a time that a clock which was ahead has had already.
    async fn heed_the_clock(&mut self) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        if !self.setbacks.look(&inner.clock) {
            return Ok(());
        }
        // However much there is: a process that gives no sign of life loses what it has claimed.
        let put_right = setback::put_right(inner, inner.clock.now(), HEARTBEAT).await;
        if !matches!(put_right, Ok(true)) {
            self.setbacks.forget();
            self.is_quiet = false;
        }
        put_right.map(drop)
    }

    async fn beat(&mut self, now: Timestamp) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        let mut tx = inner.db.write().await?;
        claims::beat(&mut tx, inner.node(), now).await?;
        let seen_at = Instant::now();
        self.signs
            .note(&claims::others(&mut tx, inner.node()).await?, seen_at);
        let buried = claims::bury(&mut tx, &self.signs.silent(seen_at, now)).await?;
        tx.silently();
        tx.commit().await?;
        if buried > 0 {
            tracing::warn!(
                nodes = buried,
                "processes fell silent, their work is taken over"
            );
        }
        *inner.silent_since.lock() = Some(Instant::now());
        self.beat_at = now;
        let timeout = Duration::from_secs(inner.config.node_timeout_seconds);
        // Once in a while in any case: one that was given up for dead may have claimed more before it ended.
        self.must_release |= buried > 0 || due::is_over(timeout, self.released_at, now);
        Ok(())
    }

    /// Looks after all that waits and is claimed. On a distributed database all shards have a part in it.
    async fn look_after(&mut self, now: Timestamp) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        if inner.db.shards().is_some() {
            inner.db.look_up_shards().await?;
        }
        if self.must_release {
            let mut tx = self.pipeline.inner().db.write().await?;
            claims::release(&mut tx).await?;
            tx.commit().await?;
            self.must_release = false;
            self.released_at = now;
        }
        self.release_strays().await?;
        let inner = self.pipeline.inner();
        let mut tx = inner.db.read().await?;
        let backlog = events::store::backlog(&mut tx, i64::MAX).await?;
        let is_alone = claims::is_alone(&mut tx, inner.node()).await?;
        inner.is_alone.store(is_alone, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("nudge_pipeline_pending_requests").set(backlog.requests as f64);
        let age = backlog
            .oldest
            .map_or(Duration::ZERO, |oldest| now.since(oldest));
        metrics::gauge!("nudge_pipeline_oldest_pending_seconds").set(age.as_secs_f64());
        // Where other processes look for signs of life, there is no rest.
        self.is_quiet = inner.db.commits().is_some()
            && is_alone
            && backlog.requests == 0
            && self.suspects.is_empty()
            && inner.in_hand.is_empty();
        if self.is_quiet {
            *inner.silent_since.lock() = None;
        }
        Ok(())
    }

    /// Gives up claims whose work is not in memory, as after a commit whose answer got lost. One that is
    /// seen twice in a row is not just on its way.
    async fn release_strays(&mut self) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        let mut tx = inner.db.read().await?;
        let mut own = claims::claims(&mut tx, inner.node()).await?;
        drop(tx);
        own.retain(|claim| !inner.in_hand.has(claim));
        let mut strays = own.clone();
        strays.retain(|claim| self.suspects.contains(claim));
        let count = strays.all().count();
        if count > 0 {
            tracing::warn!(claims = count, "claims without work are given up");
            let mut tx = inner.db.write().await?;
            claims::release_claims(&mut tx, inner.node(), &strays).await?;
            tx.commit().await?;
        }
        self.suspects = own.all().collect();
        Ok(())
    }

    /// Claims work that waits, as far as there is room; answers whether there may be more.
    async fn claim(&self, now: Timestamp) -> nudge_db::Result<bool> {
        let inner = self.pipeline.inner();
        let (free_requests, free_events) =
            (inner.space().free_requests(), inner.space().free_events());
        if free_requests == 0 || inner.halt.is_cancelled() {
            return Ok(false);
        }
        let few = self.pipeline.room_for_occasions().min(free_events);
        let mut tx = inner.db.read().await?;
        let arrived = claims::anything_waits(&mut tx, now).await?;
        if !arrived {
            inner.caught_up();
        }
        let occasion = few > 0 && scheduled_work::any_waits(&mut tx, now).await?;
        drop(tx);
        if !arrived && !occasion {
            return Ok(false);
        }
        let at_most = |free: usize| i64::try_from(free).unwrap_or(CLAIM).clamp(1, CLAIM);
        let limit = at_most(free_requests);
        let few = i64::try_from(few).unwrap_or_default();
        let mut tx = inner.db.write().await?;
        let requests = claims::claim_requests(&mut tx, inner.node(), limit).await?;
        let timers = claims::claim_timers(&mut tx, inner.node(), now, at_most(free_events)).await?;
        let occasions = if occasion {
            scheduled_work::claim(&mut tx, inner.node(), now, few).await?
        } else {
            Vec::new()
        };
        tx.commit().await?;
        let (timers, occasions) = in_order(timers, occasions);

        let more = requests.len() + timers.len() + occasions.len() > 0;
        let mut tx = inner.db.read().await?;
        self.submit_requests(&mut tx, requests).await?;
        let timers = self.submit_timers(&mut tx, timers).await?;
        let occasions = self.submit_occasions(&mut tx, occasions).await?;
        drop(tx);
        self.remove(&timers, &occasions).await?;
        Ok(more)
    }

    async fn submit_requests(
        &self,
        tx: &mut Tx,
        requests: Vec<ClaimedRequest>,
    ) -> nudge_db::Result<()> {
        let inner = self.pipeline.inner();
        let key = |request: &ClaimedRequest| (request.alias_number, request.id);
        let keys: Vec<RequestKey> = requests.iter().map(key).collect();
        let mut events = events::store::events_of(tx, &keys).await?;
        for request in requests {
            let mut events = events.remove(&request.id).unwrap_or_default();
            if let (Some(session_id), Some(first)) = (request.session_id, events.first()) {
                // All events of a request have one origin.
                let origin = Arc::new(Origin {
                    session_id: Some(session_id),
                    ..(*first.origin).clone()
                });
                for stored in &mut events {
                    stored.origin = Arc::clone(&origin);
                }
            }
            let room = inner.room_for_claimed(Size::of_stored(&events));
            let (app_id, alias) = (request.app_id, request.alias_number);
            let mut work = Work::new(Source::Request(request.id), app_id, alias, events, room);
            work.device = Device::of(request.device_id, request.sdk_version);
            self.pipeline.submit(work);
        }
        Ok(())
    }

    /// Gives occasions to their lanes; answers those whose events are gone.
    async fn submit_occasions(
        &self,
        tx: &mut Tx,
        mut occasions: Vec<ClaimedOccasion>,
    ) -> nudge_db::Result<Vec<Uuid>> {
        let seqs = occasions.iter().map(|occasion| occasion.event_seq);
        let behind = events(tx, seqs).await?;
        let is_gone = |occasion: &mut ClaimedOccasion| {
            let seq = occasion.event_seq;
            scheduled_work::instant_of(seq).is_none() && !behind.contains_key(&seq)
        };
        let gone = occasions.extract_if(.., is_gone);
        let gone = gone.map(|occasion| occasion.id).collect();
        self.pipeline.submit_occasions(occasions, &behind);
        Ok(gone)
    }

    /// Removes timers and occasions whose events are gone: nothing follows from them, and they would be claimed again and again.
    async fn remove(&self, timers: &[Uuid], occasions: &[Uuid]) -> nudge_db::Result<()> {
        if timers.is_empty() && occasions.is_empty() {
            return Ok(());
        }
        let (timer, occasion) = (timers.first(), occasions.first());
        tracing::warn!(
            timers = timers.len(),
            timer.id = timer.map(tracing::field::display),
            occasions = occasions.len(),
            occasion.id = occasion.map(tracing::field::display),
            "what has fallen due is removed, as the events behind it are gone"
        );
        let inner = self.pipeline.inner();
        let mut tx = inner.db.write().await?;
        store::timers::delete_due(&mut tx, timers, inner.node()).await?;
        scheduled_work::delete_due(&mut tx, occasions, inner.node()).await?;
        tx.commit().await
    }

    /// Gives timers to their lanes; answers those whose events are gone.
    async fn submit_timers(
        &self,
        tx: &mut Tx,
        timers: Vec<ClaimedTimer>,
    ) -> nudge_db::Result<Vec<Uuid>> {
        let mut gone = Vec::new();
        let events = events(tx, timers.iter().map(|timer| timer.event_seq)).await?;
        // What a plugin set at its campaign's own occasion has no event that says whose it is.
        let owners: BTreeSet<(Uuid, Uuid)> = timers
            .iter()
            .filter(|timer| scheduled_work::instant_of(timer.event_seq).is_some())
            .map(|timer| (timer.app_id, timer.subject_id))
            .collect();
        let aliases = subjects::store::oldest_aliases(tx, &owners).await?;
        for timer in timers {
            let found = match scheduled_work::instant_of(timer.event_seq) {
                Some(at) => aliases.get(&timer.subject_id).map(|alias| {
                    let event = scheduled_work::event(timer.campaign_id, at);
                    (timer.app_id, *alias, event)
                }),
                None => events.get(&timer.event_seq).cloned(),
            };
            let Some((app_id, alias, stored)) = found else {
                // Without an event, and without an alias: its person was merged into another one. The claim is given up, and the timer
                // claimed anew.
                if scheduled_work::instant_of(timer.event_seq).is_none() {
                    gone.push(timer.id);
                }
                continue;
            };
            let due = DueTimer {
                id: timer.id,
                campaign_id: timer.campaign_id,
                key: timer.key,
                plugin: timer.plugin,
                payload: timer.payload,
                due_at: timer.due_at,
                last_seq: None,
            };
            let size = Size::of([&*stored.event]);
            let room = self.pipeline.inner().room_for_claimed(size);
            self.pipeline.submit(Work::new(
                Source::Timer(due),
                app_id,
                alias,
                vec![stored],
                room,
            ));
        }
        Ok(gone)
    }

    /// Signs a process out: what it has not done is free for others at once.
    pub async fn sign_out(pipeline: &Pipeline) -> nudge_db::Result<()> {
        let inner = pipeline.inner();
        let mut tx = inner.db.write().await?;
        claims::leave(&mut tx, inner.node()).await?;
        tx.commit().await
    }
}

/// What was claimed in the order in which it counts: a database answers with rows in any.
fn in_order(
    mut timers: Vec<ClaimedTimer>,
    mut occasions: Vec<ClaimedOccasion>,
) -> (Vec<ClaimedTimer>, Vec<ClaimedOccasion>) {
    timers.sort_by_key(|timer| (timer.due_at, timer.event_seq));
    // The numbers of a campaign's own occasions descend.
    occasions.sort_by_key(|occasion| {
        let at = scheduled_work::instant_of(occasion.event_seq);
        (at, occasion.event_seq)
    });
    (timers, occasions)
}

/// Events that were sent, by their numbers, with their apps and aliases.
async fn events(
    tx: &mut Tx,
    seqs: impl Iterator<Item = i64>,
) -> nudge_db::Result<HashMap<i64, (Uuid, i64, Stored)>> {
    let seqs: Vec<i64> = seqs.filter(|seq| *seq >= 0).collect();
    let found = events::store::at(tx, &seqs).await?;
    let by_number = found.into_iter();
    Ok(by_number
        .map(|(app_id, alias, stored)| (stored.seq, (app_id, alias, stored)))
        .collect())
}
