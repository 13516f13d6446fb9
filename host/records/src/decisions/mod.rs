//! Decisions of trigger plugins, kept so that they can be made again (contract 12).
//!
//! | module | holds |
//! |---|---|
//! | `record` | what is kept of a call |
//! | `transcript` | what the plugin asked in it, and the same as facts of another call |
//! | `recovery` | removing what is kept long enough |
//! | `store` | decisions in the database |
//!
//! A decision is written in the transaction of its effects. It names events and configurations rather than
//! repeating them; what the plugin was told is kept as it was told, since all of that changes.

pub mod record;
pub mod recovery;
pub mod store;
pub mod transcript;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Timestamp, Tx};
use parking_lot::Mutex;
use uuid::Uuid;

pub use record::Record;
pub use recovery::{expire, run};

/// How often the use of a configuration is noted.
const NOTE_USE: Duration = Duration::from_hours(24);
/// Configurations whose use is remembered at the most.
const MOST_REMEMBERED: usize = 10_000;
/// Decisions that are removed in one go.
const REMOVED_AT_ONCE: usize = 500;

/// A configuration that a decision was made under.
#[derive(Clone, Debug)]
pub struct Config {
    /// What decisions name it by.
    pub digest: [u8; 32],
    /// The configuration, as JSON.
    pub text: Arc<str>,
    /// The event properties that the version read under it.
    pub properties: Arc<[String]>,
}

/// A decision that was just made.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The subjects whose data it holds.
    pub subjects: Vec<Uuid>,
    /// The encoded [`Record`].
    pub record: Vec<u8>,
    /// The configurations that it names.
    pub configs: Vec<Config>,
}

/// A decision about to be stored.
#[derive(Clone, Debug)]
pub struct NewDecision {
    /// Its id, made when its effects are.
    pub id: Uuid,
    /// The subjects whose data it holds.
    pub subjects: Vec<Uuid>,
    /// The encoded [`Record`].
    pub record: Vec<u8>,
    /// The configurations that it names.
    pub configs: Vec<Config>,
}

/// The configurations whose use this process has noted lately, so that most batches need not.
#[derive(Debug, Default)]
pub struct Noted(Mutex<HashMap<(Uuid, [u8; 32]), Timestamp>>);

impl Noted {
    /// Of the configurations of decisions those whose use is to be noted.
    fn missing<'d>(
        &self,
        app_id: Uuid,
        decisions: &'d [NewDecision],
        now: Timestamp,
    ) -> Vec<&'d Config> {
        let noted = self.0.lock();
        let mut missing: Vec<&Config> = Vec::new();
        for config in decisions.iter().flat_map(|decision| &decision.configs) {
            let fresh = noted
                .get(&(app_id, config.digest))
                .is_some_and(|at| now.since(*at) < NOTE_USE);
            if !fresh && missing.iter().all(|other| other.digest != config.digest) {
                missing.push(config);
            }
        }
        // One order for all processes, so that they do not deadlock.
        missing.sort_unstable_by_key(|config| config.digest);
        missing
    }

    /// Remembers what [`write()`] has noted, once that is committed.
    pub fn remember(&self, app_id: Uuid, digests: &[[u8; 32]], now: Timestamp) {
        if digests.is_empty() {
            return;
        }
        let mut noted = self.0.lock();
        if noted.len() > MOST_REMEMBERED {
            noted.clear();
        }
        noted.extend(digests.iter().map(|digest| ((app_id, *digest), now)));
    }
}

/// Adds decisions. Answers the configurations whose use was noted: [`Noted::remember`] them after the commit.
pub async fn write(
    tx: &mut Tx,
    app_id: Uuid,
    decisions: &[NewDecision],
    noted: &Noted,
    now: Timestamp,
) -> nudge_db::Result<Vec<[u8; 32]>> {
    if decisions.is_empty() {
        return Ok(Vec::new());
    }
    let missing = noted.missing(app_id, decisions, now);
    store::use_configs(tx, app_id, &missing, now).await?;
    store::insert(tx, app_id, decisions).await?;
    Ok(missing.into_iter().map(|config| config.digest).collect())
}
