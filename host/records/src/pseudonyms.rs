//! Keyed hashes that stand for people after they are deleted. The key never changes, so that a name is known
//! again as long as the database is there; without the key a hash tells nothing, not even by trial.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_db::Db;
use nudge_platform::sealed;
use nudge_platform::secrets::{self, Secrets};
use uuid::{Builder, Uuid};

use crate::subjects::AliasKind;

/// Makes the hashes. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Pseudonyms {
    key: [u8; 32],
}

impl std::fmt::Debug for Pseudonyms {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Pseudonyms(***)")
    }
}

/// What the key is called.
const SECRET: &str = "pseudonyms";

impl Pseudonyms {
    /// Reads the key from the database, where it is sealed under the master key; makes it at the first start.
    pub async fn open(db: &Db, secrets: &Secrets) -> anyhow::Result<Self> {
        let key = sealed::server_secret(db, secrets, SECRET).await?;
        Ok(Self { key })
    }

    /// Reads the key from a database that is only read. None: it has none yet.
    pub async fn read(db: &Db, secrets: &Secrets) -> anyhow::Result<Option<Self>> {
        let key = sealed::kept_secret(db, secrets, SECRET).await?;
        Ok(key.map(|key| Self { key }))
    }

    /// Stands for a name that a person has in an app.
    pub fn alias(&self, app_id: Uuid, kind: AliasKind, value: &str) -> String {
        self.named(app_id, kind.name(), value)
    }

    /// Stands for a name whose kind is as the database has it.
    pub fn named(&self, app_id: Uuid, kind: &str, value: &str) -> String {
        self.hash(&[
            b"alias",
            app_id.as_bytes(),
            kind.as_bytes(),
            value.as_bytes(),
        ])
    }

    /// Stands for a person.
    pub fn subject(&self, app_id: Uuid, subject_id: Uuid) -> String {
        self.hash(&[b"subject", app_id.as_bytes(), subject_id.as_bytes()])
    }

    /// An id for whoever comes back under a name of somebody who was deleted. It is stored nowhere.
    pub fn nobody(&self, app_id: Uuid, kind: AliasKind, value: &str) -> Uuid {
        let parts: [&[u8]; 4] = [
            b"nobody",
            app_id.as_bytes(),
            kind.name().as_bytes(),
            value.as_bytes(),
        ];
        let hash = secrets::keyed_hash(&self.key, &parts);
        Builder::from_random_bytes(hash.first_chunk().copied().unwrap_or_default()).into_uuid()
    }

    fn hash(&self, parts: &[&[u8]]) -> String {
        URL_SAFE_NO_PAD.encode(secrets::keyed_hash(&self.key, parts))
    }
}
