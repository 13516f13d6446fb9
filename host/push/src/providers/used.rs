//! Which credentials apps use, read anew every so often: a broadcast asks for the same one thousands of times a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Db, Result};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::Target;
use crate::credentials::Status;
use crate::credentials::store::{self, Stored};

/// How long a credential is used without a look at the database: the bound for what other processes change.
const FRESH: Duration = Duration::from_millis(250);
/// Credentials in memory.
const MOST: usize = 1_000;

/// An app's platform and environment, by their names.
type Key = (Uuid, &'static str, &'static str);
/// A credential, and when it was read. Held while it is read, so that messages at once read it once.
type Slot = Arc<AsyncMutex<Option<(Instant, Arc<Stored>)>>>;

/// The credentials that were used lately.
#[derive(Default)]
pub(super) struct UsedCredentials(Mutex<HashMap<Key, Slot>>);

impl UsedCredentials {
    /// The credential that reaches a device of an app. None and those that are refused are looked for each time: what
    /// mends it takes effect at once.
    pub(super) async fn find(
        &self,
        db: &Db,
        app_id: Uuid,
        target: &Target,
    ) -> Result<Option<Arc<Stored>>> {
        let (platform, environment) = (target.platform, target.environment);
        let slot = self.slot((app_id, platform.name(), environment.name()));
        let mut held = slot.lock().await;
        if let Some((read_at, stored)) = &*held
            && read_at.elapsed() < FRESH
        {
            return Ok(Some(Arc::clone(stored)));
        }
        let read_at = Instant::now();
        let mut tx = db.read().await?;
        let found = store::used(&mut tx, app_id, platform, environment).await?;
        drop(tx);
        let found = found.map(Arc::new);
        let works = found
            .clone()
            .filter(|stored| stored.record.status == Status::Active);
        *held = works.map(|stored| (read_at, stored));
        Ok(found)
    }

    /// Reads an app's credentials anew: they have changed.
    pub(super) fn forget(&self, app_id: Uuid) {
        // One that is being read meanwhile is kept nowhere.
        self.0.lock().retain(|(of, ..), _| *of != app_id);
    }

    fn slot(&self, key: Key) -> Slot {
        let mut slots = self.0.lock();
        if slots.len() >= MOST && !slots.contains_key(&key) {
            slots.clear();
        }
        Arc::clone(slots.entry(key).or_default())
    }
}
