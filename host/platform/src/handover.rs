//! Rows that are made as claimed go to whoever works on them without a look at the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::wake::Wake;

/// The way from those who make rows to the one who works on them. Cheap to clone.
#[derive(Debug)]
pub struct Handover<T> {
    wake: Wake,
    /// Whether a claim may be in the database that nobody here knows of.
    in_doubt: Arc<AtomicBool>,
    ready: UnboundedSender<T>,
    /// Until somebody works on them.
    made: Arc<Mutex<Option<UnboundedReceiver<T>>>>,
}

impl<T> Clone for Handover<T> {
    fn clone(&self) -> Self {
        Self {
            wake: self.wake.clone(),
            in_doubt: Arc::clone(&self.in_doubt),
            ready: self.ready.clone(),
            made: Arc::clone(&self.made),
        }
    }
}

impl<T> Default for Handover<T> {
    fn default() -> Self {
        let (ready, made) = mpsc::unbounded_channel();
        Self {
            wake: Wake::default(),
            in_doubt: Arc::default(),
            ready,
            made: Arc::new(Mutex::new(Some(made))),
        }
    }
}

impl<T> Handover<T> {
    /// What is made comes here from now on. None: it goes to somebody else already.
    pub fn open(&self) -> Option<UnboundedReceiver<T>> {
        self.made.lock().take()
    }

    /// Hands over what is made. Where nobody works on it any longer, the process ends.
    pub fn send(&self, made: T) {
        drop(self.ready.send(made));
    }

    /// Has the database looked at now.
    pub fn wake(&self) {
        self.wake.wake();
    }

    /// Resolves once the database is to be looked at.
    pub fn notified(&self) -> Notified<'_> {
        self.wake.notified()
    }

    /// Rows may have been made as claimed of which nobody here knows.
    pub fn doubt(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether that is so since this was asked last.
    pub fn take_doubt(&self) -> bool {
        self.in_doubt.swap(false, Ordering::Relaxed)
    }
}
