//! Deleting what is stored of a person: a job of bounded steps, each of which can be the last before a crash.
//!
//! The person is suppressed before the job begins. A commit that had asked just before may still write, so that
//! the job goes through all stores, waits until no such commit can be on its way, and goes through them again.
//! Then the analytics store must confirm; then the receipt is written.

use std::time::Duration;

use nudge_db::{Dialect, Timestamp};
use nudge_platform::analytics::Erasure;
use nudge_platform::jobs::{self, Error, RunningJob};
use nudge_platform::tables::{self, Store};
use nudge_surveys::attempts;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::receipt::{self, About, Receipt};
use super::store::{self, Deleted};
use crate::services::Services;

/// The kind of the job.
pub const KIND: &str = "privacy.delete";
/// What the analytics store is called among the steps.
const ANALYTICS: &str = "analytics";
/// The pause before the analytics store is asked again; it doubles each time.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));
/// How long a deletion on SQLite waits at the most before it goes through all stores again: there is one process, which
/// either writes within twice `database.acquireTimeoutSeconds` what it has in hand, or refuses it.
const SQLITE_GRACE: Duration = Duration::from_secs(10);
/// The pause before SQLite is asked again to empty its log.
const SCRUB_AGAIN: Duration = Duration::from_secs(1);

/// Whose data to delete; none once it is deleted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PersonDeletionInput {
    subject_id: Option<Uuid>,
}

/// How far a deletion is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// What is done next.
    pub stage: Stage,
    /// A step for each store.
    pub steps: Vec<Step>,
    /// How often the analytics store has not confirmed.
    refusals: u32,
    /// Once everything is erased.
    pub receipt: Option<Receipt>,
}

/// What a deletion does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Goes through all stores.
    Erase,
    /// Waits until nothing is on its way to the database any longer.
    Settle {
        /// Until then.
        until: Timestamp,
    },
    /// Goes through all stores again.
    Sweep,
    /// Asks the analytics store.
    Analytics,
    /// Makes sure that the database's files have no trace either.
    Scrub,
}

/// How far one store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub store: String,
    /// Records that were erased.
    pub deleted_count: i64,
    /// When nothing was left.
    pub completed_at: Option<Timestamp>,
}

impl Default for Progress {
    fn default() -> Self {
        let names = tables::personal()
            .map(|store| store.name)
            .chain(std::iter::once(ANALYTICS));
        Self {
            stage: Stage::Erase,
            steps: names
                .map(|name| Step {
                    store: name.to_owned(),
                    deleted_count: 0,
                    completed_at: None,
                })
                .collect(),
            refusals: 0,
            receipt: None,
        }
    }
}

impl Progress {
    fn step(&mut self, name: &str) -> Option<&mut Step> {
        self.steps.iter_mut().find(|step| step.store == name)
    }

    fn erased(&self) -> i64 {
        self.steps.iter().map(|step| step.deleted_count).sum()
    }
}

/// A deletion in hand.
struct Deletion<'a> {
    services: &'a Services,
    job: &'a mut RunningJob,
    deleted: Deleted,
    progress: Progress,
}

/// Runs the job to its end.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let progress: Progress = job.progress()?;
    let input: PersonDeletionInput = job.input()?;
    let deleted = Deleted {
        app_id: job.app_id,
        subject_id: input.subject_id.unwrap_or_default(),
        job_id: job.id,
    };
    let mut deletion = Deletion {
        services,
        job,
        deleted,
        progress,
    };
    loop {
        match deletion.progress.stage {
            Stage::Erase => deletion.erase().await?,
            Stage::Settle { until } => deletion.settle(until).await?,
            Stage::Sweep => deletion.sweep().await?,
            Stage::Analytics => deletion.ask_analytics().await?,
            Stage::Scrub => return deletion.scrub().await,
        }
    }
}

impl Deletion<'_> {
    async fn erase(&mut self) -> Result<(), Error> {
        self.suppress_names().await?;
        self.go_through(tables::BELONGINGS).await?;
        self.leave_others().await?;
        self.begin_settling().await
    }

    async fn begin_settling(&mut self) -> Result<(), Error> {
        let until = self.services.clock.now().plus(self.grace());
        self.enter(Stage::Settle { until }).await
    }

    /// How long something may be on its way to the database.
    fn grace(&self) -> Duration {
        let configured = Duration::from_secs(self.services.config.privacy.grace_seconds);
        match self.services.db.dialect() {
            Dialect::Sqlite => configured.min(SQLITE_GRACE),
            Dialect::Postgres => configured,
        }
    }

    async fn settle(&mut self, until: Timestamp) -> Result<(), Error> {
        let now = self.services.clock.now();
        if until > now.plus(self.grace()) {
            // The clock was set back.
            return self.begin_settling().await;
        }
        if now < until {
            return Err(Error::Wait(until.since(now)));
        }
        self.enter(Stage::Sweep).await
    }

    async fn sweep(&mut self) -> Result<(), Error> {
        self.suppress_names().await?;
        self.go_through(tables::BELONGINGS).await?;
        self.leave_others().await?;
        self.go_through(tables::OWNERS).await?;
        let now = self.services.clock.now();
        for step in &mut self.progress.steps {
            if step.store != ANALYTICS {
                step.completed_at = Some(now);
            }
        }
        self.enter(Stage::Analytics).await
    }

    /// Aliases may have come since the deletion was queued: from a request that was on its way.
    async fn suppress_names(&mut self) -> Result<(), Error> {
        self.job.check()?;
        let now = self.services.clock.now();
        let mut tx = self.services.db.write().await?;
        super::suppress_names(&mut tx, &self.services.pseudonyms, self.deleted, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes the person out of what belongs to nobody: backtests may have ended since the deletion was queued, and jobs and
    /// segments may have noted the person as a place among the app's people. Nobody who is suppressed becomes one.
    async fn leave_others(&mut self) -> Result<(), Error> {
        let Deleted {
            app_id, subject_id, ..
        } = self.deleted;
        let mut tx = self.services.db.write().await?;
        super::erase_samples(&mut tx, app_id, subject_id).await?;
        super::leave_places(&mut tx, app_id, subject_id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Erases until nothing is found in any of some stores.
    async fn go_through(&mut self, stores: &'static [Store]) -> Result<(), Error> {
        loop {
            let mut erased = 0;
            for store in stores {
                erased += self.empty(store).await?;
            }
            if erased == 0 {
                return Ok(());
            }
        }
    }

    /// Erases all of a store, each step with its count in a transaction of its own.
    async fn empty(&mut self, store: &'static Store) -> Result<i64, Error> {
        let mut erased = 0;
        loop {
            self.job.check()?;
            let mut tx = self.services.db.write().await?;
            let rows = if store.name == tables::SURVEY_ATTEMPTS {
                self.erase_attempts(&mut tx).await?
            } else {
                vec![(
                    store.name,
                    store::erase(&mut tx, store, self.deleted).await?,
                )]
            };
            if rows.iter().all(|(_, count)| *count == 0) {
                return Ok(erased);
            }
            let mut progress = self.progress.clone();
            for (name, count) in rows {
                erased += count;
                if let Some(step) = progress.step(name) {
                    step.deleted_count += count;
                }
            }
            self.advance(&mut tx, &progress).await?;
            tx.commit().await?;
            self.progress = progress;
        }
    }

    /// Attempts go with their answers, and out of the counts that results are made of.
    async fn erase_attempts(
        &self,
        tx: &mut nudge_db::Tx,
    ) -> Result<Vec<(&'static str, i64)>, Error> {
        let Deleted {
            app_id, subject_id, ..
        } = self.deleted;
        let erased = attempts::erasure::erase(tx, app_id, subject_id).await?;
        Ok(vec![
            (tables::SURVEY_ATTEMPTS, erased.attempts),
            (tables::SURVEY_ANSWERS, erased.answers),
        ])
    }

    async fn ask_analytics(&mut self) -> Result<(), Error> {
        let mut tx = self.services.db.read().await?;
        let erasure = Erasure {
            app_id: self.deleted.app_id,
            subject_id: self.deleted.subject_id,
            aliases: store::alias_numbers(&mut tx, self.deleted).await?,
        };
        drop(tx);
        match self.services.analytics.erase(&erasure).await {
            Ok(count) => self.complete(count).await,
            Err(unconfirmed) => {
                tracing::warn!(job.id = %self.job.id, error = %unconfirmed, "a deletion waits");
                let doublings = self.progress.refusals.min(16);
                self.progress.refusals += 1;
                self.enter(Stage::Analytics).await?;
                let pause = ASK_AGAIN.0.saturating_mul(1 << doublings);
                Err(Error::Wait(pause.min(ASK_AGAIN.1)))
            }
        }
    }

    /// Writes the receipt, and forgets whose data it was.
    async fn complete(&mut self, analytics_count: i64) -> Result<(), Error> {
        let now = self.services.clock.now();
        let mut tx = self.services.db.write().await?;
        let requested_at = jobs::store::find(&mut tx, self.deleted.app_id, self.job.id)
            .await?
            .ok_or(Error::Lost)?
            .created_at;
        let mut progress = self.progress.clone();
        if let Some(step) = progress.step(ANALYTICS) {
            step.deleted_count = analytics_count;
            step.completed_at = Some(now);
        }
        let pseudonyms = &self.services.pseudonyms;
        let about = About {
            app_id: self.deleted.app_id,
            job_id: self.job.id,
            person: &pseudonyms.subject(self.deleted.app_id, self.deleted.subject_id),
            requested_at,
            completed_at: now,
        };
        let receipt = receipt::issue(&self.services.issuer, about, &progress.steps)
            .ok_or_else(|| Error::Failed("the receipt could not be signed".to_owned()))?;
        progress.receipt = Some(receipt);
        progress.stage = Stage::Scrub;
        self.advance(&mut tx, &progress).await?;
        self.job
            .forget_input(&mut tx, &json!({"subjectId": null}))
            .await?;
        tx.commit().await?;
        self.progress = progress;
        Ok(())
    }

    /// SQLite's log may still have pages as they were before; they must go too.
    async fn scrub(&mut self) -> Result<Value, Error> {
        self.job.check()?;
        if !self.services.db.scrub().await? {
            return Err(Error::Wait(SCRUB_AGAIN));
        }
        Ok(json!({"receipt": self.progress.receipt}))
    }

    async fn enter(&mut self, stage: Stage) -> Result<(), Error> {
        let progress = Progress {
            stage,
            ..self.progress.clone()
        };
        let mut tx = self.services.db.write().await?;
        self.advance(&mut tx, &progress).await?;
        tx.commit().await?;
        self.progress = progress;
        Ok(())
    }

    async fn advance(&mut self, tx: &mut nudge_db::Tx, progress: &Progress) -> Result<(), Error> {
        let (now, erased) = (self.services.clock.now(), progress.erased());
        self.job.advance(tx, progress, erased, None, now).await
    }
}
