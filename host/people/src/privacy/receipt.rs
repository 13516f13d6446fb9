//! Receipts of deletions: what was erased from where, signed by the server.

use nudge_db::Timestamp;
use nudge_http::issuer::Issuer;
use nudge_platform::{clock, secrets};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::deletion::Step;

/// What a receipt says it is, in its header.
const TYPE: &str = "nudge-deletion-receipt+jws";

/// What was erased. The fields are in the order of their names, so that its JSON is canonical (RFC 8785).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    app_id: Uuid,
    completed_at: String,
    job_id: Uuid,
    /// A keyed hash, which only this installation can make again.
    person: &'a str,
    requested_at: String,
    stores: Vec<StoreLine<'a>>,
    version: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoreLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    deleted_count: i64,
    store: &'a str,
}

/// A signed receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// SHA-256 of the receipt's JSON, in hexadecimal.
    pub digest: String,
    /// The receipt's JSON, signed: a JWS in compact form (RFC 7515).
    pub signature: String,
}

/// Of which deletion a receipt is.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub app_id: Uuid,
    pub job_id: Uuid,
    pub person: &'a str,
    pub requested_at: Timestamp,
    pub completed_at: Timestamp,
}

/// Writes and signs a receipt. None: it could not be signed, which is a defect.
pub(super) fn issue(issuer: &Issuer, about: About<'_>, steps: &[Step]) -> Option<Receipt> {
    let document = Document {
        app_id: about.app_id,
        completed_at: clock::to_text(about.completed_at),
        job_id: about.job_id,
        person: about.person,
        requested_at: clock::to_text(about.requested_at),
        stores: steps
            .iter()
            .map(|step| StoreLine {
                completed_at: step.completed_at.map(clock::to_text),
                deleted_count: step.deleted_count,
                store: &step.store,
            })
            .collect(),
        version: 1,
    };
    let text = serde_json::to_vec(&document).ok()?;
    Some(Receipt {
        digest: secrets::hexadecimal(&secrets::sha256(&text)),
        signature: issuer.sign(TYPE, &text)?,
    })
}
