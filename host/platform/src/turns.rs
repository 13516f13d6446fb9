//! Turns at work that is heavy: so many at a time, of which one owner has some at the most.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Who may work. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns {
    all: Arc<Semaphore>,
    most_of_one: usize,
    /// Of each owner that waits or works.
    owners: Arc<Mutex<HashMap<Uuid, Weak<Semaphore>>>>,
}

/// A turn; given back when it is dropped. The work itself holds it: a request that ends may leave work behind.
#[derive(Debug)]
pub struct Turn {
    _of_owner: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Turns {
    /// So many at a time, and of one owner so many.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(most)),
            most_of_one,
            owners: Arc::default(),
        }
    }

    /// An owner's turn; none: it did not come in time.
    pub async fn take(&self, owner: Uuid, within: Duration) -> Option<Turn> {
        let of_owner = self.of(owner);
        let both = async {
            // Its own first: what waits behind the owner's others takes nothing from anybody.
            Some(Turn {
                _of_owner: of_owner.acquire_owned().await.ok()?,
                _of_all: Arc::clone(&self.all).acquire_owned().await.ok()?,
            })
        };
        tokio::time::timeout(within, both).await.ok()?
    }

    fn of(&self, owner: Uuid) -> Arc<Semaphore> {
        let mut owners = self.owners.lock();
        // Whoever waits or works holds its owner's.
        owners.retain(|_, turns| turns.strong_count() > 0);
        let turns = owners.get(&owner).and_then(Weak::upgrade);
        turns.unwrap_or_else(|| {
            let turns = Arc::new(Semaphore::new(self.most_of_one));
            owners.insert(owner, Arc::downgrade(&turns));
            turns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;
    const SOON: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn an_owner_leaves_turns_to_others() {
        let turns = Turns::new(2, 1);
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let ones = turns.take(one, AT_ONCE).await;
        assert!(ones.is_some());
        assert!(turns.take(one, AT_ONCE).await.is_none());
        let mut waits = Box::pin(turns.take(one, SOON));
        assert!(futures_util::FutureExt::now_or_never(&mut waits).is_none());
        // Who waits for a turn of its own has none of the others'.
        let twos = turns.take(two, AT_ONCE).await;
        assert!(twos.is_some());
        assert!(turns.take(three, AT_ONCE).await.is_none());
        drop(ones);
        assert!(waits.await.is_some());
        drop(twos);
        assert!(turns.take(three, AT_ONCE).await.is_some());
        drop(turns.take(one, AT_ONCE).await);
        assert_eq!(turns.owners.lock().len(), 1, "nobody else is remembered");
    }
}
