//! Subject tokens: who an SDK speaks for, signed by the server.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_db::Timestamp;
use nudge_platform::secrets::Secrets;
use uuid::Uuid;

const PREFIX: &str = "st_";
const PURPOSE: &str = "subject token";
const SIGNATURE_BYTES: usize = 32;

/// What a subject token says. It is revoked when the alias's epoch moves on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectToken {
    /// The app.
    pub app_id: Uuid,
    /// The subject that it was issued for.
    pub subject_id: Uuid,
    /// The alias that it was issued for.
    pub alias: i64,
    /// The alias's epoch when it was issued.
    pub epoch: i64,
    /// What [`fingerprint`] makes of the alias's anonymous id.
    pub fingerprint: [u8; 16],
    /// When it expires.
    pub expires_at: Timestamp,
    /// Events of then or before are not the subject's: somebody had the alias's name who was deleted.
    pub events_after: Option<Timestamp>,
}

/// Signs a token.
pub fn seal(secrets: &Secrets, token: &SubjectToken) -> String {
    let mut content = Vec::with_capacity(80 + SIGNATURE_BYTES);
    content.extend_from_slice(token.app_id.as_bytes());
    content.extend_from_slice(token.subject_id.as_bytes());
    for number in [token.alias, token.epoch, token.expires_at.0] {
        content.extend_from_slice(&number.to_be_bytes());
    }
    content.extend_from_slice(&token.fingerprint);
    if let Some(after) = token.events_after {
        content.extend_from_slice(&after.0.to_be_bytes());
    }
    let signature = secrets.sign(PURPOSE, &[&content]);
    content.extend_from_slice(&signature);
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(content))
}

/// Reads a token, if it was signed here.
pub fn open(secrets: &Secrets, text: &str) -> Option<SubjectToken> {
    let sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
    let (content, signature) =
        sealed.split_at_checked(sealed.len().checked_sub(SIGNATURE_BYTES)?)?;
    if !secrets.verify(PURPOSE, &[content], signature) {
        return None;
    }
    let (app_id, content) = content.split_first_chunk::<16>()?;
    let (subject_id, content) = content.split_first_chunk::<16>()?;
    let (alias, content) = content.split_first_chunk::<8>()?;
    let (epoch, content) = content.split_first_chunk::<8>()?;
    let (expires_at, content) = content.split_first_chunk::<8>()?;
    let (fingerprint, content) = content.split_first_chunk::<16>()?;
    let events_after = if content.is_empty() {
        None
    } else {
        Some(Timestamp(i64::from_be_bytes(content.try_into().ok()?)))
    };
    Some(SubjectToken {
        app_id: Uuid::from_bytes(*app_id),
        subject_id: Uuid::from_bytes(*subject_id),
        alias: i64::from_be_bytes(*alias),
        epoch: i64::from_be_bytes(*epoch),
        expires_at: Timestamp(i64::from_be_bytes(*expires_at)),
        fingerprint: *fingerprint,
        events_after,
    })
}

/// Stands for an anonymous id in a token, so that ingest need not look it up.
pub fn fingerprint(anonymous_id: &str) -> [u8; 16] {
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&nudge_platform::secrets::hash(&[anonymous_id.as_bytes()])[..16]);
    fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_and_changed_ones_do_not() {
        let secrets = Secrets::open(
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            std::path::Path::new("/"),
        )
        .unwrap();
        let token = SubjectToken {
            app_id: Uuid::from_u128(1),
            subject_id: Uuid::from_u128(2),
            alias: 3,
            epoch: 4,
            expires_at: Timestamp(5),
            fingerprint: fingerprint("a"),
            events_after: None,
        };
        let text = seal(&secrets, &token);
        assert_eq!(open(&secrets, &text), Some(token.clone()));
        let anew = SubjectToken {
            events_after: Some(Timestamp(6)),
            ..token
        };
        assert_eq!(open(&secrets, &seal(&secrets, &anew)), Some(anew));
        for position in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[position] ^= 1;
            if let Ok(changed) = std::str::from_utf8(&changed) {
                assert_eq!(open(&secrets, changed), None);
            }
        }
        assert_eq!(open(&secrets, "st_"), None);
    }
}
