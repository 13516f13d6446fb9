//! Waking a loop that looks for work.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes the loop: there is work. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Has it look now rather than at the next turn.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Resolves at the next wake.
    pub fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.notified()
    }
}
