//! Signing in to the console, and what a session opens (contract 22).
//!
//! # Invariants
//!
//! - **A session opens what its access token would** ([`sessions`]). A link's session has what the link granted; an issuer's session has
//!   its tokens, sealed, and the access token is verified with each request.
//! - **A secret is known to its browser alone**: cookies and codes are stored as SHA-256. A copy of the database opens no session.
//! - **A link and a login are used once** ([`store`]): one statement takes the row, in the transaction that makes the session.
//! - **A cookie changes something for the server's own pages alone** ([`site`]), and under the server's own name alone.
//! - **Tokens are renewed by one process at a time** ([`renewal`]), in a task that outlives its request: a refresh token that the provider has
//!   replaced is never thrown away with a connection.

pub mod http;
pub mod links;
pub mod login;
mod renewal;
pub mod sessions;
pub mod site;
mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use nudge_db::{Timestamp, Tx};
use nudge_http::issuer::Role;
use nudge_platform::secrets;
use serde::{Deserialize, Serialize};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use sessions::{SessionKey, SignedIn, is_open};
pub use site::Site;

use crate::key;

/// How long a link and a login can be used.
const CODE_LIFETIME: Duration = Duration::from_mins(10);

/// What sessions need beside the database.
#[derive(Debug)]
pub struct Console {
    /// Where the console is.
    pub site: Site,
    /// Renewals in hand; the server waits for them when it stops.
    pub tasks: TaskTracker,
}

/// What a link opens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Roles by workspace.
    pub roles: BTreeMap<Uuid, Role>,
    /// Whether it opens the operator routes.
    pub operator: bool,
}

/// Ends all sessions and takes back all links and logins. A database that was restored has some that were ended or used since.
pub async fn sign_everybody_out(tx: &mut Tx) -> nudge_db::Result<()> {
    store::clear(tx).await
}

/// A secret of 32 random bytes, in base 62.
struct Secret {
    text: String,
    hash: String,
}

impl Secret {
    fn generate() -> Self {
        let text = key::base62(&secrets::random::<32>(), key::BODY_DIGITS);
        let hash = hash(&text);
        Self { text, hash }
    }
}

/// The hash of a text under which it is stored, if it can be a secret.
fn secret_hash(text: &str) -> Option<String> {
    let is_secret =
        text.len() == key::BODY_DIGITS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_secret.then(|| hash(text))
}

fn hash(text: &str) -> String {
    secrets::hexadecimal(&secrets::sha256(text.as_bytes()))
}

/// Removes some of what has ended, of sessions, links and logins; answers how many.
pub async fn remove_ended(tx: &mut Tx, now: Timestamp) -> nudge_db::Result<u64> {
    store::delete_ended(tx, now, now.minus(sessions::IDLE)).await
}

/// Whether something has ended that [`remove_ended`] removes.
pub async fn has_ended(tx: &mut Tx, now: Timestamp) -> nudge_db::Result<bool> {
    store::has_ended(tx, now, now.minus(sessions::IDLE)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_random_and_known_by_their_hash() {
        let (one, other) = (Secret::generate(), Secret::generate());
        assert_ne!(one.text, other.text);
        assert_eq!(secret_hash(&one.text), Some(one.hash));
        for wrong in [
            "",
            "short",
            &"é".repeat(22),
            &one.text[1..],
            &format!("{}=", &other.text[1..]),
        ] {
            assert_eq!(secret_hash(wrong), None, "{wrong}");
        }
    }
}
