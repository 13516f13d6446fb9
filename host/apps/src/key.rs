//! Keys of an app: what they look like and what they allow.

use std::sync::atomic::{AtomicI64, Ordering};
use strum::{EnumString, IntoStaticStr};

use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits of 32 bytes.
pub(crate) const BODY_DIGITS: usize = 43;
/// Base-62 digits of the 4 bytes of the checksum.
const CHECKSUM_DIGITS: usize = 6;
/// How exactly it is known when a key was last used.
const LAST_USED: i64 = 60_000_000;

/// The scope of server-side ingest.
pub const EVENTS_WRITE: &str = "events.write";
/// The scope of transactional sends.
pub const PUSH_TRANSACTIONAL: &str = "push.transactional";
/// The scope of property updates from a backend.
pub const USERS_PROPERTIES_WRITE: &str = "users.properties.write";

/// What a key is for (contract 1).
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Public; in apps and pages.
    Write,
    /// Secret; on the customer's servers.
    Server,
    /// Secret; for tools that write user properties.
    Api,
}

impl Kind {
    /// The kind's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What people call such a key.
    pub fn title(self) -> &'static str {
        match self {
            Self::Write => "a write key (`wk_…`)",
            Self::Server => "a server key (`sk_…`)",
            Self::Api => "an API token (`at_…`)",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Write => "wk_",
            Self::Server => "sk_",
            Self::Api => "at_",
        }
    }

    /// What keys of the kind can be allowed (contract 1).
    pub fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::Write => &[],
            Self::Server => &[EVENTS_WRITE, PUSH_TRANSACTIONAL],
            Self::Api => &[USERS_PROPERTIES_WRITE],
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// A key as the app's snapshot has it.
#[derive(Debug)]
pub struct Key {
    /// Its id.
    pub id: Uuid,
    /// What it is for.
    pub kind: Kind,
    /// What it allows, such as `events.write`.
    pub scopes: Vec<String>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When its last use was noted, in microseconds since the epoch; 0 for never.
    last_used_at: AtomicI64,
}

impl Key {
    /// A key as it is stored.
    pub fn new(
        id: Uuid,
        kind: Kind,
        scopes: Vec<String>,
        expires_at: Option<Timestamp>,
        last_used_at: Option<Timestamp>,
    ) -> Self {
        Self {
            id,
            kind,
            scopes,
            expires_at,
            last_used_at: AtomicI64::new(last_used_at.unwrap_or_default().0),
        }
    }

    /// Whether this use is to be noted: the first in a minute is, by one of however many requests.
    pub fn notes_use(&self, now: Timestamp) -> bool {
        let before = self.last_used_at.load(Ordering::Relaxed);
        now.0.saturating_sub(before) >= LAST_USED
            && self
                .last_used_at
                .compare_exchange(before, now.0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether the key allows something.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|held| held == scope)
    }

    /// Whether the key works at this time.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// A key that was just made.
pub struct NewKey {
    /// What it is for.
    pub kind: Kind,
    /// What the caller sends; never stored.
    pub text: String,
    /// What is stored.
    pub hash: [u8; 32],
}

impl NewKey {
    /// Makes a key of 32 random bytes.
    pub fn generate(kind: Kind) -> Self {
        let body = base62(&nudge_platform::secrets::random::<32>(), BODY_DIGITS);
        let text = format!("{}{body}{}", kind.prefix(), checksum(kind.prefix(), &body));
        let hash = Sha256::digest(text.as_bytes()).into();
        Self { kind, text, hash }
    }
}

/// The hash under which a key is stored, if the text can be one: a mistyped key fails here, without a
/// look-up.
pub fn hash(text: &str) -> Option<[u8; 32]> {
    let (prefix, rest) = text.split_at_checked(3)?;
    let (body, sum) = rest.split_at_checked(BODY_DIGITS)?;
    let known = [Kind::Write, Kind::Server, Kind::Api]
        .iter()
        .any(|kind| kind.prefix() == prefix);
    (known && checksum(prefix, body) == sum).then(|| Sha256::digest(text.as_bytes()).into())
}

fn checksum(prefix: &str, body: &str) -> String {
    let digest = Sha256::new()
        .chain_update(prefix)
        .chain_update(body)
        .finalize();
    base62(
        digest.first_chunk::<4>().unwrap_or(&[0; 4]),
        CHECKSUM_DIGITS,
    )
}

/// A big-endian number in base 62, padded to a width.
pub(crate) fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_usize;
        for byte in &mut number {
            let value = remainder * 256 + usize::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *digit = DIGITS.get(remainder).copied().unwrap_or(b'0');
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_key_is_recognized() {
        let key = NewKey::generate(Kind::Write);
        assert_eq!(hash(&key.text), Some(key.hash));

        let mistyped: String = key.text.chars().rev().collect();
        assert_eq!(hash(&mistyped), None);
        assert_eq!(hash("wk_é"), None);
        let mut changed = key.text.into_bytes();
        changed[10] = if changed[10] == b'x' { b'y' } else { b'x' };
        assert_eq!(hash(std::str::from_utf8(&changed).unwrap()), None);
    }

    #[test]
    fn base62_of_all_ones_fills_its_width() {
        assert_eq!(base62(&[0xff; 32], BODY_DIGITS).len(), BODY_DIGITS);
        assert_eq!(base62(&[0, 61], 2), "0z");
    }
}
