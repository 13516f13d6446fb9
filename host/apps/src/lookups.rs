//! Looking keys up that are not in memory: all that wait at a time go in one query, one query at a time.
//!
//! Anybody can make any number of keys that look like ours and are nobody's, and each has to be looked up, since it may be
//! somebody's first request to this process. So a guess must cost the database next to nothing, and nobody's key may be
//! refused for the guesses of others: it waits for two queries at the most, each of which is a few hundred keys by an index.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_db::{Db, Error, Result, Rows};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::keys::store::{self, KeyOwner};

/// What is looked up, and what waits for that. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookups(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: Vec<KeyQuestion>,
    /// Whether a task is at work on what waits.
    at_work: bool,
}

#[derive(Debug)]
struct KeyQuestion {
    hash: [u8; 32],
    reply: oneshot::Sender<Result<Option<KeyOwner>>>,
}

/// The task at work; if it ends too early, whoever waits is told, and the next one begins another.
struct LookupTask {
    lookups: Lookups,
    done: bool,
}

impl Lookups {
    /// Whose a key is, as the database knows.
    pub(super) async fn find(&self, db: &Db, hash: [u8; 32]) -> Result<Option<KeyOwner>> {
        let (reply, replied) = oneshot::channel();
        let begins = {
            let mut state = self.0.lock();
            state.waiting.push(KeyQuestion { hash, reply });
            !std::mem::replace(&mut state.at_work, true)
        };
        if begins {
            let work = LookupTask {
                lookups: self.clone(),
                done: false,
            };
            // A task of its own: the request that begins it may go while others wait.
            #[expect(
                clippy::disallowed_methods,
                reason = "shutdown waits for requests, and it is for nobody else"
            )]
            tokio::spawn(work.run(db.clone()));
        }
        replied.await.unwrap_or_else(|_| Err(given_up()))
    }

    /// Some that wait, unless nobody does: then the work is done.
    fn take(&self) -> Option<Vec<KeyQuestion>> {
        let mut state = self.0.lock();
        state.waiting.retain(|asked| !asked.reply.is_closed());
        if state.waiting.is_empty() {
            state.at_work = false;
            return None;
        }
        let some = state.waiting.len().min(Rows::MOST);
        Some(state.waiting.drain(..some).collect())
    }
}

impl LookupTask {
    async fn run(mut self, db: Db) {
        while let Some(asked) = self.lookups.take() {
            let found = look_up(&db, &asked).await;
            for KeyQuestion { hash, reply } in asked {
                let answer = match &found {
                    Ok(found) => Ok(found.get(&hash).copied()),
                    Err(error) => Err(error.clone()),
                };
                // Whoever asked may have gone.
                drop(reply.send(answer));
            }
        }
        self.done = true;
    }
}

impl Drop for LookupTask {
    fn drop(&mut self) {
        if !self.done {
            let mut state = self.lookups.0.lock();
            state.at_work = false;
            state.waiting.clear();
        }
    }
}

async fn look_up(db: &Db, asked: &[KeyQuestion]) -> Result<HashMap<[u8; 32], KeyOwner>> {
    let mut tx = db.read().await?;
    store::find_by_hashes(&mut tx, asked.iter().map(|asked| &asked.hash)).await
}

fn given_up() -> Error {
    Error::unavailable(std::io::Error::other("the look-up of a key was given up"))
}
