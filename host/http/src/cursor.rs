//! Cursors: opaque, tamper-evident, bound to the list and filters that they continue.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_db::Timestamp;
use nudge_platform::secrets::Secrets;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::code::Code;
use super::error::ApiError;
use super::page::Page;

/// How long a cursor is good for (contract 0).
pub const LIFETIME: Duration = Duration::from_hours(24);
const PURPOSE: &str = "cursor";
const SIGNATURE_BYTES: usize = 16;

/// The cursors of one list, as one request makes and opens them.
#[derive(Clone, Debug)]
pub struct Cursors<'s> {
    secrets: &'s Secrets,
    list: String,
    now: Timestamp,
}

impl<'s> Cursors<'s> {
    /// `list` names the list with its filters and whose it is: a cursor continues no other.
    pub fn new(secrets: &'s Secrets, list: String, now: Timestamp) -> Self {
        Self { secrets, list, now }
    }

    /// The position that a request's cursor stands for, if it has one.
    pub fn open<P: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<P>, ApiError> {
        cursor
            .map(|text| decode(self.secrets, &self.list, text, self.now))
            .transpose()
    }

    /// A cursor that continues behind a position.
    pub fn seal(&self, position: &impl Serialize) -> String {
        let expires = self.now.plus(LIFETIME);
        encode(self.secrets, &self.list, position, expires)
    }

    /// The cursor behind the last of some rows, where there are more.
    pub fn behind<T, P: Serialize>(
        &self,
        rows: &[T],
        more: bool,
        position: impl Fn(&T) -> P,
    ) -> Option<String> {
        let last = rows.last().filter(|_| more)?;
        Some(self.seal(&position(last)))
    }

    /// A page of rows that were read with one more than the limit.
    pub fn page<T, P: Serialize>(
        &self,
        mut rows: Vec<T>,
        limit: u32,
        position: impl Fn(&T) -> P,
    ) -> Page<T> {
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Page {
            next_cursor: self.behind(&rows, more, position),
            items: rows,
        }
    }
}

/// Seals a position. `list` names the list with its filters and whose it is.
pub fn encode(
    secrets: &Secrets,
    list: &str,
    position: &impl Serialize,
    expires: Timestamp,
) -> String {
    let mut sealed = expires.0.to_be_bytes().to_vec();
    sealed.extend(serde_json::to_vec(position).unwrap_or_default());
    let signature = secrets.sign(PURPOSE, &[list.as_bytes(), &sealed]);
    sealed.extend_from_slice(signature.get(..SIGNATURE_BYTES).unwrap_or_default());
    URL_SAFE_NO_PAD.encode(sealed)
}

/// Opens a cursor that [`encode`] made for the same list.
pub fn decode<T: DeserializeOwned>(
    secrets: &Secrets,
    list: &str,
    cursor: &str,
    now: Timestamp,
) -> Result<T, ApiError> {
    let invalid = || ApiError::new(Code::InvalidCursor);
    let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid())?;
    let at = sealed
        .len()
        .checked_sub(SIGNATURE_BYTES)
        .ok_or_else(invalid)?;
    let (content, signature) = sealed.split_at(at);
    let genuine = secrets.verify(PURPOSE, &[list.as_bytes(), content], signature);
    let (expires, position) = content.split_first_chunk::<8>().ok_or_else(invalid)?;
    if !genuine || i64::from_be_bytes(*expires) < now.0 {
        return Err(invalid());
    }
    serde_json::from_slice(position).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets() -> Secrets {
        Secrets::open(
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            std::path::Path::new("/"),
        )
        .unwrap()
    }

    proptest! {
        #[test]
        fn a_position_comes_back_from_its_own_list_until_it_expires(position: u64, list: String) {
            let expires = Timestamp::from_seconds(1_000);
            let cursor = encode(&secrets(), &list, &position, expires);

            let opened: u64 = decode(&secrets(), &list, &cursor, expires).unwrap();
            prop_assert_eq!(opened, position);
            let later = Timestamp::from_seconds(1_001);
            prop_assert!(decode::<u64>(&secrets(), &list, &cursor, later).is_err());
            let other = list + "x";
            prop_assert!(decode::<u64>(&secrets(), &other, &cursor, expires).is_err());
        }

        #[test]
        fn a_changed_cursor_is_refused(position: u64, at: prop::sample::Index, with in 1_u8..=127) {
            let expires = Timestamp::from_seconds(1_000);
            let mut bytes = encode(&secrets(), "list", &position, expires).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= with;
            if let Ok(changed) = std::str::from_utf8(&bytes) {
                prop_assert!(decode::<u64>(&secrets(), "list", changed, expires).is_err());
            }
        }
    }
}
