//! Open polls: who waits for instructions of which subject.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use uuid::Uuid;

/// The subjects whose SDKs wait. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    waiting: Arc<Mutex<HashMap<Uuid, Arc<Notify>>>>,
}

/// One open poll; its place is given back when it is dropped.
#[derive(Debug)]
pub struct Poll {
    polls: Polls,
    subject_id: Uuid,
    notify: Arc<Notify>,
}

impl Polls {
    /// Opens a poll. What is issued from now on wakes it.
    pub fn open(&self, subject_id: Uuid) -> Poll {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = Arc::clone(waiting.entry(subject_id).or_default());
        Poll {
            polls: self.clone(),
            subject_id,
            notify,
        }
    }

    /// Wakes a subject's polls.
    pub fn wake(&self, subject_id: Uuid) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = waiting.get(&subject_id) {
            notify.notify_waiters();
        }
    }

    /// Wakes everybody's polls, to look whether their app is still there.
    pub fn wake_all(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for notify in waiting.values() {
            notify.notify_waiters();
        }
    }
}

impl Poll {
    /// What resolves at the next issue; take it before looking, so that none is missed.
    pub fn issued(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut waiting = self
            .polls
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Two: the map's and this one.
        if Arc::strong_count(&self.notify) <= 2 {
            waiting.remove(&self.subject_id);
        }
    }
}
