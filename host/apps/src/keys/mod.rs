//! Keys of apps (contract 1, 13): made, listed, revoked, and what they are used for.

pub mod http;
pub mod store;
pub(crate) mod uses;

pub use uses::{Reason, Uses, run};

use nudge_db::{Timestamp, Tx};
use nudge_platform::field_error::FieldError;
use uuid::Uuid;

use crate::key::{Kind, NewKey};

/// Live keys of an app.
pub const MOST: i64 = 100;
/// Keys of an app that are not revoked, though they may have expired: all of them are in its snapshot.
const MOST_WITH_EXPIRED: i64 = 1_000;
/// The longest name, in characters.
pub const MOST_NAME: usize = 120;

/// What a key is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it is for.
    pub kind: Kind,
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// Why a key was not made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this id that works.
    #[error("no such key")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many keys")]
    TooMany,
    /// It is not what a key can be.
    #[error("not a valid key")]
    Invalid(Vec<FieldError>),
    /// The database.
    #[error("the database refused a key")]
    Storage(#[from] nudge_db::Error),
}

/// What is wrong with a key that somebody wants.
fn check(wanted: &Wanted, now: Timestamp) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !is_name(&wanted.name) {
        let detail = format!("name has 1 to {MOST_NAME} characters and no control characters");
        errors.push(FieldError::new("/name", "invalid", detail));
    }
    let known = wanted.kind.scopes();
    for (index, scope) in wanted.scopes.iter().enumerate() {
        let pointer = || format!("/scopes/{index}");
        if !known.contains(&scope.as_str()) {
            let detail = if known.is_empty() {
                "keys of this kind have no scopes".to_owned()
            } else {
                format!("scopes of this kind are: {}", known.join(", "))
            };
            errors.push(FieldError::new(pointer(), "unknown_scope", detail));
        } else if wanted
            .scopes
            .iter()
            .take(index)
            .any(|before| before == scope)
        {
            let detail = "each scope is named once";
            errors.push(FieldError::new(pointer(), "duplicate", detail));
        }
    }
    if wanted
        .expires_at
        .is_some_and(|expires_at| expires_at <= now)
    {
        let detail = "expiresAt must be in the future";
        errors.push(FieldError::new("/expiresAt", "out_of_range", detail));
    }
    errors
}

/// Whether a text can be the name of an app or a key.
pub fn is_name(name: &str) -> bool {
    (1..=MOST_NAME).contains(&name.chars().count())
        && !name.trim().is_empty()
        && !name.chars().any(char::is_control)
}

/// Makes a key; the only time that its text is known.
pub async fn create(
    tx: &mut Tx,
    app_id: Uuid,
    workspace_id: Uuid,
    wanted: &Wanted,
    now: Timestamp,
) -> Result<(Uuid, NewKey), Error> {
    let errors = check(wanted, now);
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    // Before the count, so that two at once can't both find room.
    nudge_campaigns::apps::bump_version(tx, app_id, now).await?;
    let live = store::count_live(tx, app_id, now).await?;
    if live >= MOST || store::count(tx, app_id).await? >= MOST_WITH_EXPIRED {
        return Err(Error::TooMany);
    }
    let key = NewKey::generate(wanted.kind);
    let id = nudge_platform::id::new(now);
    let scopes: Vec<&str> = wanted.scopes.iter().map(String::as_str).collect();
    let row = store::NewRow {
        id,
        app_id,
        workspace_id,
        name: &wanted.name,
        scopes: &scopes,
        expires_at: wanted.expires_at,
    };
    store::insert(tx, &row, &key, now).await?;
    Ok((id, key))
}

/// Revokes a key.
pub async fn revoke(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    if !store::revoke(tx, app_id, id, now).await? {
        return Err(Error::NotFound);
    }
    Ok(nudge_campaigns::apps::bump_version(tx, app_id, now).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut Wanted)) -> Vec<(String, String)> {
        let mut wanted = Wanted {
            kind: Kind::Server,
            name: "backend".to_owned(),
            scopes: vec!["events.write".to_owned()],
            expires_at: None,
        };
        change(&mut wanted);
        let errors = check(&wanted, Timestamp::from_seconds(1_000));
        errors
            .into_iter()
            .map(|error| (error.pointer, error.code))
            .collect()
    }

    #[test]
    fn names_scopes_and_expiry_are_checked_at_their_limits() {
        let one = |pointer: &str, code: &str| vec![(pointer.to_owned(), code.to_owned())];
        assert_eq!(wrong(|_| {}), []);
        assert_eq!(wrong(|key| key.name = "é".repeat(120)), []);
        assert_eq!(
            wrong(|key| key.name = "é".repeat(121)),
            one("/name", "invalid")
        );
        assert_eq!(
            wrong(|key| key.name = " ".to_owned()),
            one("/name", "invalid")
        );
        assert_eq!(
            wrong(|key| key.name = "a\nb".to_owned()),
            one("/name", "invalid")
        );
        assert_eq!(
            wrong(|key| key.kind = Kind::Write),
            one("/scopes/0", "unknown_scope")
        );
        assert_eq!(
            wrong(|key| key.scopes.push("users.properties.write".to_owned())),
            one("/scopes/1", "unknown_scope")
        );
        assert_eq!(
            wrong(|key| key.scopes.push("events.write".to_owned())),
            one("/scopes/1", "duplicate")
        );
        let at = |seconds| {
            move |key: &mut Wanted| key.expires_at = Some(Timestamp::from_seconds(seconds))
        };
        assert_eq!(wrong(at(1_001)), []);
        assert_eq!(wrong(at(1_000)), one("/expiresAt", "out_of_range"));
    }
}
