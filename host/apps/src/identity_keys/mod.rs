//! Public keys of an app's backend, which verify the identity tokens that it signs (contract 2, 13).

pub mod http;
pub mod store;

use std::cmp::Reverse;

use nudge_db::{Timestamp, Tx};
use nudge_platform::public_key::{PublicKey, Unusable};
use uuid::Uuid;

/// Identity keys of an app (contract 2).
pub const MOST: usize = 5;
/// The longest `kid`, in characters.
pub const MOST_KID: usize = 128;

/// An identity key, ready to verify tokens.
#[derive(Clone, Debug)]
pub struct IdentityKey {
    /// What tokens call it in their header.
    pub kid: String,
    /// The key.
    pub key: PublicKey,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// A position in an app's identity keys, newest first.
pub type IdentityKeyPosition = (Reverse<Timestamp>, String);

impl IdentityKey {
    /// Its position.
    pub fn position(&self) -> IdentityKeyPosition {
        (Reverse(self.created_at), self.kid.clone())
    }
}

/// Why an identity key was not registered or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this kid.
    #[error("no such identity key")]
    NotFound,
    /// The app has one of this kid.
    #[error("the kid is taken")]
    KidTaken,
    /// The app has as many as it may.
    #[error("too many identity keys")]
    TooMany,
    /// The kid is not one.
    #[error("not a kid")]
    InvalidKid,
    /// The key is not one that verifies identity tokens.
    #[error("not a usable key")]
    Unusable(#[from] Unusable),
    /// The database.
    #[error("the database refused an identity key")]
    Storage(#[from] nudge_db::Error),
}

/// Registers a key.
pub async fn create(tx: &mut Tx, app_id: Uuid, key: &IdentityKey) -> Result<(), Error> {
    let printable = key.kid.bytes().all(|byte| byte.is_ascii_graphic());
    if !printable || !(1..=MOST_KID).contains(&key.kid.len()) {
        return Err(Error::InvalidKid);
    }
    // Before the count, so that two at once can't both find room.
    nudge_campaigns::apps::bump_version(tx, app_id, key.created_at).await?;
    let present = store::list(tx, app_id).await?;
    if present.iter().any(|present| present.kid == key.kid) {
        return Err(Error::KidTaken);
    }
    if present.len() >= MOST {
        return Err(Error::TooMany);
    }
    Ok(store::insert(tx, app_id, key).await?)
}

/// Removes a key.
pub async fn delete(tx: &mut Tx, app_id: Uuid, kid: &str, now: Timestamp) -> Result<(), Error> {
    if !store::delete(tx, app_id, kid).await? {
        return Err(Error::NotFound);
    }
    Ok(nudge_campaigns::apps::bump_version(tx, app_id, now).await?)
}
