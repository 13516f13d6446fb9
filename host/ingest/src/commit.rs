//! Group commit: what many requests submit goes to disk in one transaction.
//!
//! A writer takes everything that waits, up to a limit, commits it, and answers; meanwhile the next
//! group gathers. Small groups are committed one at a time, whichever writer's they are: what a transaction costs besides
//! its events is then shared by more of them. What can't be committed is answered as such and leaves nothing behind.
//!
//! Requests that wait for their effects wait for the disk once, not twice: see [`durability`].

use std::borrow::Cow;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use nudge_db::{Db, Dialect, Durability, Kind, Shards, Tx};
use nudge_http::admission;
use nudge_pipeline::{Fired, Pipeline, Room, SeenVersions, Size, Work};
use nudge_platform::config::Ingest;
use nudge_records::dead_letters::store::Inserted;
use nudge_records::dead_letters::{self, Letter, Stage};
use nudge_records::events::insert::{self, NewRequest};
use nudge_records::events::store::{Stored, committed};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::kept::{Plan, count, keep_letters, new_events, plan};
use crate::submission::Submission;
use crate::turns::Turns;

/// How often a transaction that lost against another is tried.
const MOST_TRIES: usize = 8;
/// After an event that was there already, so many groups expect others: clients that had no answer send
/// everything again.
const WARY_GROUPS: u32 = 50;

/// What became of a submission.
#[derive(Debug)]
pub enum CommitOutcome {
    /// It is on disk, or will be with what it fires.
    Committed(Committed),
    /// The token was revoked; nothing is stored.
    TokenRevoked,
    /// The subject's data was deleted or is about to be; nothing is stored.
    Suppressed,
    /// The subject has not consented to analytics; nothing is stored.
    ConsentMissing,
    /// The dead letters that it replays are gone: they were acknowledged, or replayed already; nothing is stored.
    LettersGone,
}

/// A submission that is committed.
#[derive(Debug)]
pub struct Committed {
    /// The subject.
    pub subject_id: Uuid,
    /// Answers when the events are evaluated, with what they fired; none if there is nothing to wait for.
    pub fired: Option<oneshot::Receiver<Fired>>,
    /// Its events, where they are on disk only with what they fire: see [`flush`](Self::flush).
    pub unflushed: Vec<Uuid>,
    /// Whether none of the events was there already.
    pub all_new: bool,
    /// Dead letters that were not kept, since events of their ids are there.
    pub known_letters: Vec<Uuid>,
}

impl Committed {
    /// Returns once the submission is on disk, if that is not certain.
    pub async fn flush(&self, app_id: Uuid, db: &Db, pipeline: &Pipeline) -> nudge_db::Result<()> {
        if self.unflushed.is_empty() {
            return Ok(());
        }
        pipeline.flush().await?;
        // A PostgreSQL that crashed meanwhile, and is back, has lost them.
        let mut tx = db.read().await?;
        let there = committed(&mut tx, app_id, self.subject_id, &self.unflushed).await?;
        if self.unflushed.iter().all(|id| there.contains(id)) {
            return Ok(());
        }
        let lost = "the database lost events in a crash";
        Err(nudge_db::Error::unavailable(io::Error::other(lost)))
    }
}

/// Nothing of the submission is on disk, or the server can't know.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Too many requests wait.
    #[error("the commit queue is full")]
    QueueFull,
    /// The server stops.
    #[error("the server is shutting down")]
    Stopping,
    /// The database says no.
    #[error("the commit failed")]
    Storage(#[source] Arc<nudge_db::Error>),
}

/// Who waits for a submission's outcome, and the room of the body that it came in: it is in memory until then, also if
/// its client has gone meanwhile.
struct Reply {
    sender: oneshot::Sender<Result<CommitOutcome, Error>>,
    _body: Option<Arc<admission::Room>>,
}

/// Hands submissions to the writers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Committer {
    writers: Arc<[mpsc::Sender<(Submission, Reply)>]>,
    /// Where the database is distributed, each shard has a writer.
    shards: Option<Shards>,
    /// How long a request waits for a place in the queue.
    queue_wait: Duration,
}

impl Committer {
    /// Starts the writers: one on SQLite, which has one anyway, as many as configured on PostgreSQL, and one for each shard of a
    /// distributed database, where groups of several shards cost more and wait for the slowest of them.
    pub fn start(
        db: &Db,
        pipeline: &Pipeline,
        config: &Ingest,
        tasks: &TaskTracker,
        halt: &CancellationToken,
    ) -> Self {
        let shards = db.shards();
        let at_a_time = config.postgres_writers.max(1);
        let count = match (db.dialect(), &shards) {
            (Dialect::Sqlite, _) => 1,
            (Dialect::Postgres, None) => at_a_time,
            (Dialect::Postgres, Some(shards)) => shards.count(),
        };
        let turns = Arc::new(Turns::new(db, at_a_time));
        let writers = (0..count)
            .map(|number| {
                let (sender, receiver) = mpsc::channel(config.queue_size.max(1));
                let writer = Writer {
                    db: db.clone(),
                    pipeline: pipeline.clone(),
                    most_events: config.commit_events,
                    wary: AtomicU32::new(0),
                    turns: Arc::clone(&turns),
                    shard: shards.as_ref().map(|_| number),
                };
                tasks.spawn(writer.run(receiver, halt.clone()));
                sender
            })
            .collect();
        Self {
            shards,
            writers,
            queue_wait: Duration::from_millis(config.queue_wait_ms),
        }
    }

    /// Commits a submission together with others. An alias always has the same writer.
    pub async fn commit(&self, submission: Submission) -> Result<CommitOutcome, Error> {
        self.commit_body(submission, None).await
    }

    /// Commits a submission that came in a body, as [`commit`](Self::commit) does.
    pub async fn commit_body(
        &self,
        submission: Submission,
        body: Option<Arc<admission::Room>>,
    ) -> Result<CommitOutcome, Error> {
        let index = match &self.shards {
            Some(shards) => shards.of(submission.alias),
            None => {
                usize::try_from(submission.alias.unsigned_abs()).unwrap_or(0) % self.writers.len()
            }
        };
        let writer = self.writers.get(index).ok_or(Error::Stopping)?;
        let (sender, replied) = oneshot::channel();
        let reply = Reply {
            sender,
            _body: body,
        };
        writer
            .send_timeout((submission, reply), self.queue_wait)
            .await
            .map_err(|error| match error {
                mpsc::error::SendTimeoutError::Timeout(_) => {
                    admission::shed("commits");
                    Error::QueueFull
                }
                mpsc::error::SendTimeoutError::Closed(_) => Error::Stopping,
            })?;
        replied.await.map_err(|_| Error::Stopping)?
    }
}

struct Writer {
    db: Db,
    pipeline: Pipeline,
    most_events: usize,
    /// Groups to come in which events that are there already are to be expected.
    wary: AtomicU32,
    turns: Arc<Turns>,
    /// Whose events the writer's groups have, where there are shards.
    shard: Option<usize>,
}

impl Writer {
    async fn run(self, mut queue: mpsc::Receiver<(Submission, Reply)>, halt: CancellationToken) {
        loop {
            let first = tokio::select! {
                first = queue.recv() => first,
                () = halt.cancelled() => {
                    // Requests in hand were accepted into the queue: they are still committed.
                    queue.close();
                    queue.recv().await
                }
            };
            let Some(first) = first else { return };
            let mut events = first.0.events.len();
            let mut group = vec![first];
            self.gather(&mut queue, &mut group, &mut events);
            let turn = self.turns.wait(self.shard, events).await;
            if turn.is_some() {
                self.gather(&mut queue, &mut group, &mut events);
            }
            metrics::histogram!("nudge_commit_requests")
                .record(u32::try_from(group.len()).unwrap_or(u32::MAX));
            // A panic is a defect that must not take the writer with it; who waits for the group is told to come back.
            let commit = AssertUnwindSafe(self.commit(group)).catch_unwind();
            if commit.await.is_err() {
                tracing::error!("a group of requests could not be committed");
            }
            drop(turn);
        }
    }

    /// Takes what waits, up to the limit.
    fn gather(
        &self,
        queue: &mut mpsc::Receiver<(Submission, Reply)>,
        group: &mut Vec<(Submission, Reply)>,
        events: &mut usize,
    ) {
        while *events < self.most_events
            && let Ok(next) = queue.try_recv()
        {
            *events += next.0.events.len();
            group.push(next);
        }
    }

    /// Commits a group. If the database refuses it for what is in it, each submission is tried alone, so
    /// that one spoils no other.
    async fn commit(&self, group: Vec<(Submission, Reply)>) {
        let (submissions, replies): (Vec<Submission>, Vec<Reply>) = group.into_iter().unzip();
        match self.commit_together(&submissions).await {
            Ok(outcomes) => answer(replies, outcomes.into_iter().map(Ok)),
            Err(error) if error.is_temporary() || submissions.len() == 1 => {
                let error = Error::Storage(Arc::new(error));
                answer(replies, std::iter::repeat_with(|| Err(error.clone())));
            }
            Err(_) => {
                for (submission, reply) in submissions.iter().zip(replies) {
                    let outcome = self.commit_together(std::slice::from_ref(submission)).await;
                    let outcome = outcome.map_err(|error| Error::Storage(Arc::new(error)));
                    answer(
                        vec![reply],
                        outcome.map(|mut outcomes| outcomes.pop()).transpose(),
                    );
                }
            }
        }
    }

    async fn commit_together(
        &self,
        submissions: &[Submission],
    ) -> nudge_db::Result<Vec<CommitOutcome>> {
        let started = Instant::now();
        let mut tries = 0;
        let mut expect_new = self.wary.load(Ordering::Relaxed) == 0;
        if !expect_new {
            self.wary.fetch_sub(1, Ordering::Relaxed);
        }
        loop {
            tries += 1;
            match self.try_commit(submissions, expect_new).await {
                Ok(outcomes) => {
                    metrics::histogram!("nudge_commit_seconds")
                        .record(started.elapsed().as_secs_f64());
                    return Ok(outcomes);
                }
                Err(error) if error.kind() == Kind::Serialization && tries < MOST_TRIES => {}
                Err(error) if error.kind() == Kind::Conflict && expect_new => {
                    self.wary.store(WARY_GROUPS, Ordering::Relaxed);
                    expect_new = false;
                }
                Err(error) => {
                    self.db.note_commit(Some(&error));
                    return Err(error);
                }
            }
        }
    }

    async fn try_commit(
        &self,
        submissions: &[Submission],
        expect_new: bool,
    ) -> nudge_db::Result<Vec<CommitOutcome>> {
        let rooms: Vec<Option<Room>> = submissions
            .iter()
            .map(|submission| {
                let events = submission.events.iter().map(|event| &**event);
                self.pipeline.room(Size::of(events))
            })
            .collect();
        // Events and their row in `pending` are one statement on a PostgreSQL of one machine; letters and refused events are others.
        let together = submissions.iter().any(|submission| {
            let is_empty = submission.letters.is_empty() && submission.rejected.is_empty();
            !is_empty || !submission.replays.is_empty()
        });
        let (durability, mut tx) = if together || self.db.shards().is_some() {
            (Durability::Full, self.db.write().await?)
        } else {
            let durability = durability(submissions, &rooms);
            (durability, self.db.write_each_with(durability).await?)
        };
        let Plan { seen: plan, new } = plan(&mut tx, submissions).await?;
        let kept: Vec<(&Submission, Option<Room>)> = new
            .iter()
            .map(|submission| &**submission)
            .zip(rooms)
            .zip(&plan)
            .filter(|((submission, _), plan)| plan.is_ok() && !submission.events.is_empty())
            .map(|((submission, room), _)| (submission, room))
            .collect();
        let (ids, stored) = self.insert(&mut tx, &kept, expect_new).await?;
        let letters = keep_letters(&mut tx, &new, &plan).await?;
        tx.commit().await?;
        if stored.iter().any(|events| !events.is_empty()) {
            self.db.note_commit(None);
        }
        let news = News {
            ids,
            stored,
            letters,
            durability,
        };
        let outcomes = self.hand_over(submissions.iter().zip(&new), plan, kept, news);
        // What nobody waits for is answered before its effects are on disk, or has none.
        for (submission, outcome) in submissions.iter().zip(&outcomes) {
            if let CommitOutcome::Committed(committed) = outcome
                && committed.fired.is_none()
            {
                let flushed = committed.flush(submission.app.id, &self.db, &self.pipeline);
                flushed.await?;
            }
        }
        Ok(outcomes)
    }

    /// Inserts requests with their events; answers their numbers and, for each, the events that are new.
    async fn insert(
        &self,
        tx: &mut Tx,
        kept: &[(&Submission, Option<Room>)],
        expect_new: bool,
    ) -> nudge_db::Result<(Vec<i64>, Vec<Vec<Stored>>)> {
        let node = self.pipeline.node();
        let requests: Vec<NewRequest<'_>> = kept
            .iter()
            .map(|(submission, room)| NewRequest {
                app_id: submission.app.id,
                alias: submission.alias,
                node: room.as_ref().map(|_| node),
                received_at: submission.received_at,
                origin: &submission.origin,
                events: &submission.events,
            })
            .collect();
        let inserted = insert::insert(tx, &requests, expect_new).await?;
        let events: usize = requests.iter().map(|request| request.events.len()).sum();
        let all_new = inserted.events == events as u64;
        let submissions: Vec<&Submission> =
            kept.iter().map(|(submission, _)| *submission).collect();
        let stored = new_events(tx, &submissions, &inserted.ids, all_new).await?;
        Ok((inserted.ids, stored))
    }

    /// Gives what is on disk to the pipeline. Submissions stand beside what was to be stored of them.
    fn hand_over<'s>(
        &self,
        submissions: impl Iterator<Item = (&'s Submission, &'s Cow<'s, Submission>)>,
        plan: Vec<Result<SeenVersions, CommitOutcome>>,
        kept: Vec<(&Submission, Option<Room>)>,
        news: News,
    ) -> Vec<CommitOutcome> {
        dead_letters::count(news.letters.new.iter().map(|_| Stage::Validation));
        let stats = &self.pipeline.stats();
        let mut new_letters = news.letters.new;
        let mut handed = kept.into_iter().zip(news.ids).zip(news.stored);
        let outcomes = submissions.zip(plan).map(|((submission, stored), plan)| {
            let seen = match plan {
                Ok(seen) => seen,
                Err(refused) => return refused,
            };
            let mut fired = None;
            let mut all_new = stored.events.len() == submission.events.len();
            let known = |letter: &&Letter| !news.letters.kept.contains(&letter.id);
            let known_letters = submission.letters.iter().filter(known);
            let known_letters: Vec<Uuid> = known_letters.map(|letter| letter.id).collect();
            all_new &= known_letters.is_empty();
            let mut new_events = Vec::new();
            if !stored.events.is_empty()
                && let Some((((submission, room), id), events)) = handed.next()
            {
                all_new &= events.len() == stored.events.len();
                new_events = events
                    .iter()
                    .map(|stored| Arc::clone(&stored.event))
                    .collect();
                if let (Some(room), false) = (room, events.is_empty()) {
                    let (sender, receiver) = oneshot::channel();
                    fired = submission.wants_instructions.then_some(receiver);
                    self.pipeline.submit(Work::request(
                        &submission.app,
                        submission.alias,
                        &submission.origin,
                        seen,
                        id,
                        events,
                        room,
                        sender,
                    ));
                }
            }
            // Each letter counts once, also where two submissions of the group have it.
            count(stats, submission, &new_events, |id| new_letters.remove(id));
            CommitOutcome::Committed(Committed {
                subject_id: seen.subject_id,
                fired,
                unflushed: match news.durability {
                    Durability::Full => Vec::new(),
                    Durability::Delayed => stored.events.iter().map(|event| event.id).collect(),
                },
                all_new,
                known_letters,
            })
        });
        outcomes.collect()
    }
}

/// What a transaction has brought.
struct News {
    /// The numbers of the requests that were inserted.
    ids: Vec<i64>,
    /// Their events that are new.
    stored: Vec<Vec<Stored>>,
    /// What came of the dead letters.
    letters: Inserted,
    durability: Durability,
}

/// Where all requests wait for their effects, whose commit waits for the disk anyway and takes along everything that was committed
/// before, theirs does not wait for it as well.
fn durability(submissions: &[Submission], rooms: &[Option<Room>]) -> Durability {
    let all_wait = submissions.iter().all(|it| it.wants_instructions);
    if all_wait && rooms.iter().all(Option::is_some) {
        Durability::Delayed
    } else {
        Durability::Full
    }
}

/// Answers the requests. One whose caller has gone is on disk all the same.
fn answer(replies: Vec<Reply>, outcomes: impl IntoIterator<Item = Result<CommitOutcome, Error>>) {
    for (reply, outcome) in replies.into_iter().zip(outcomes) {
        drop(reply.sender.send(outcome));
    }
}
