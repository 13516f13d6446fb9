//! Credentials that were used lately, opened, each with the token that it was granted last, and a key of Apple's with its
//! connections. They are known by their ids, whose rows never change their keys.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::jws::{SigningKey, Unusable};
use super::{apns, fcm, webpush};
use crate::credentials::store::Stored;
use crate::credentials::{Identity, PrivateKey};

/// Credentials in memory.
const MOST: usize = 1_000;

/// A credential, ready to be used.
pub(super) enum Opened {
    Apple(apns::Key),
    Google(fcm::Account),
    Web(webpush::Key),
}

/// The credentials in memory.
#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<Uuid, Arc<Opened>>>);

impl Opened {
    fn new(identity: Identity, key: &PrivateKey) -> Result<Self, Unusable> {
        Ok(match identity {
            Identity::Apple(apple) => Self::Apple(apns::Key::new(apple, SigningKey::ec(key)?)),
            Identity::Google(google) => {
                Self::Google(fcm::Account::new(google, SigningKey::rsa(key)?))
            }
            Identity::Web(web) => Self::Web(webpush::Key::new(web, SigningKey::ec(key)?)),
        })
    }
}

impl Cache {
    /// A credential that was used before.
    pub(super) fn known(&self, id: Uuid) -> Option<Arc<Opened>> {
        let cached = self.0.lock();
        cached.get(&id).map(Arc::clone)
    }

    /// Opens a credential. Of two that do at once, one keeps what the other made.
    pub(super) fn open(&self, stored: &Stored, key: &PrivateKey) -> Result<Arc<Opened>, Unusable> {
        let opened = Arc::new(Opened::new(stored.record.identity.clone(), key)?);
        let mut cached = self.0.lock();
        if cached.len() >= MOST {
            // One that is still used is opened anew.
            let any = cached.keys().next().copied();
            any.and_then(|any| cached.remove(&any));
        }
        Ok(Arc::clone(cached.entry(stored.record.id).or_insert(opened)))
    }
}
