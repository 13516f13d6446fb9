//! The audit log: who changed what (contract 13). Entries are added in the transaction of the change and
//! never touched again.

pub mod store;

use nudge_db::{Timestamp, Tx};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The actor of what the server does by itself, such as a roll-back.
pub const SERVER: &str = "server";

/// Bytes of a member's JSON text, above which a patch's member is only named.
const MOST_MEMBER_BYTES: usize = 2_000;

/// One change.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The app that it concerns.
    pub app_id: Uuid,
    /// Who did it: the subject of an access token, `key/<id>`, or [`SERVER`].
    pub actor: &'a str,
    /// What was done, as `resource.verb`: `plugin.activated`, `key.revoked`.
    pub action: &'static str,
    /// What it was done to: a kind and an id or name, `plugin/cart-abandonment`. Names no person.
    pub resource: String,
    /// What else is worth knowing. Holds no secret, and nothing of a person's data.
    pub detail: Value,
}

/// What an entry says of a merge patch (RFC 7396): `patch` has the members as they were sent; `omitted` names those that are
/// too long for a log.
pub fn of_patch(patch: &Map<String, Value>) -> Map<String, Value> {
    let is_short = |value: &Value| value.to_string().len() <= MOST_MEMBER_BYTES;
    let (short, long): (Vec<_>, Vec<_>) = patch.iter().partition(|(_, value)| is_short(value));
    let short = short.into_iter();
    let short: Map<String, Value> = short
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut detail = Map::from_iter([("patch".to_owned(), Value::Object(short))]);
    if !long.is_empty() {
        let names: Vec<&String> = long.into_iter().map(|(name, _)| name).collect();
        detail.insert("omitted".to_owned(), json!(names));
    }
    detail
}

/// Adds an entry to the log of its app.
pub async fn record(tx: &mut Tx, entry: &Entry<'_>, now: Timestamp) -> nudge_db::Result<()> {
    store::insert(tx, crate::id::new(now), entry, now).await
}
