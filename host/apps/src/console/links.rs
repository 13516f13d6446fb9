//! Links that sign somebody in, once.

use nudge_db::{Timestamp, Tx};
use nudge_http::ApiError;

use super::store::{self, LinkRow};
use super::{CODE_LIFETIME, Grants, Secret, secret_hash};

/// Makes a link; answers its address, the only time that its code is known.
pub async fn create(
    tx: &mut Tx,
    public_url: &str,
    subject: &str,
    grants: &Grants,
    now: Timestamp,
) -> nudge_db::Result<String> {
    let code = Secret::generate();
    let grants = serde_json::to_string(grants)
        .map_err(|cause| nudge_db::Error::corrupt("console_links", "grants", cause))?;
    let link = LinkRow {
        subject: subject.to_owned(),
        grants,
    };
    store::insert_link(tx, &code.hash, &link, now.plus(CODE_LIFETIME)).await?;
    Ok(format!("{public_url}/console/#login={}", code.text))
}

/// Uses a link up, if the code is one's that was not used and is not too old.
pub(super) async fn take(
    tx: &mut Tx,
    code: &str,
    now: Timestamp,
) -> Result<Option<LinkRow>, ApiError> {
    let Some(hash) = secret_hash(code) else {
        return Ok(None);
    };
    Ok(store::take_link(tx, &hash, now).await?)
}
