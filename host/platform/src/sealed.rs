//! Secrets at rest: values of the database that are encrypted under the master key, each bound to its row.
//!
//! AES-256-GCM (NIST SP 800-38D) under a key derived from the master key, with a random nonce; the table and the
//! row are associated data, so that a value copied to another row does not open there. A value names its key, so
//! that it opens after the master key was changed, as long as the earlier one is known.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_db::{Db, Result, Tx};

use crate::secrets::{self, Secrets};

const PURPOSE: &str = "sealed values";
const FORMAT: &str = "s1";
/// Rows that one transaction seals anew.
const STEP: i64 = 100;

/// An encrypted value, as it is stored.
#[derive(Clone, PartialEq, Eq, nudge_db::Type)]
#[sqlx(transparent)]
pub struct Sealed(String);

/// Where a sealed value is: what it opens for.
#[derive(Clone, Copy, Debug)]
pub struct SealedColumn<'a> {
    /// The table.
    pub table: &'static str,
    /// The row: its key, as text.
    pub row: &'a str,
}

/// A value does not open: it was changed, is another row's, or its master key is not known.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "a sealed value does not open; is the master key that of this database? `nudge secrets status` says how many values each key seals"
)]
pub struct Closed;

/// A column of sealed values. To seal values anew, all of these are gone through.
struct Column {
    table: &'static str,
    /// Takes the last row of the step before and a limit.
    list: &'static str,
    /// Takes the row, its value as it was, and the new one.
    replace: &'static str,
}

/// All sealed columns.
const COLUMNS: &[Column] = &[
    Column {
        table: "server_secrets",
        list: "SELECT name AS row_key, sealed FROM server_secrets WHERE name > $1 ORDER BY name LIMIT $2",
        replace: "UPDATE server_secrets SET sealed = $3 WHERE name = $1 AND sealed = $2",
    },
    Column {
        table: "push_credentials",
        list: "SELECT id AS row_key, sealed FROM push_credentials WHERE id > $1 ORDER BY id LIMIT $2",
        replace: "UPDATE push_credentials SET sealed = $3 WHERE id = $1 AND sealed = $2",
    },
    Column {
        table: "push_tokens",
        list: "SELECT registration AS row_key, sealed FROM push_tokens
               WHERE registration > $1 AND sealed IS NOT NULL ORDER BY registration LIMIT $2",
        replace: "UPDATE push_tokens SET sealed = $3 WHERE registration = $1 AND sealed = $2",
    },
    Column {
        table: "console_sessions",
        list: "SELECT hash AS row_key, sealed FROM console_sessions
               WHERE hash > $1 AND sealed IS NOT NULL ORDER BY hash LIMIT $2",
        replace: "UPDATE console_sessions SET sealed = $3 WHERE hash = $1 AND sealed = $2",
    },
    Column {
        table: "webhook_secrets",
        list: "SELECT name AS row_key, sealed FROM webhook_secrets WHERE name > $1 ORDER BY name LIMIT $2",
        replace: "UPDATE webhook_secrets SET sealed = $3 WHERE name = $1 AND sealed = $2",
    },
];

#[derive(nudge_db::FromRow)]
struct SealedRow {
    row_key: String,
    sealed: Sealed,
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealed(***)")
    }
}

impl Sealed {
    /// Encrypts a value for a place.
    pub fn seal(
        secrets: &Secrets,
        place: SealedColumn<'_>,
        value: &[u8],
    ) -> std::result::Result<Self, Closed> {
        let key = secrets.derive(PURPOSE);
        let key_id = key_id(&key);
        let nonce: [u8; NONCE_LEN] = secrets::random();
        let mut bytes = value.to_vec();
        cipher(&key)?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                context(place, &key_id),
                &mut bytes,
            )
            .map_err(|_| Closed)?;
        let content = [nonce.as_slice(), &bytes].concat();
        let content = URL_SAFE_NO_PAD.encode(content);
        Ok(Self(format!("{FORMAT}.{key_id}.{content}")))
    }

    /// Decrypts a value.
    pub fn open(
        &self,
        secrets: &Secrets,
        place: SealedColumn<'_>,
    ) -> std::result::Result<Vec<u8>, Closed> {
        let (key_id_text, content) = self.parts().ok_or(Closed)?;
        let key = secrets
            .derive_all(PURPOSE)
            .into_iter()
            .find(|key| key_id(key) == key_id_text)
            .ok_or(Closed)?;
        let content = URL_SAFE_NO_PAD.decode(content).map_err(|_| Closed)?;
        let (nonce, bytes) = content.split_first_chunk::<NONCE_LEN>().ok_or(Closed)?;
        let mut bytes = bytes.to_vec();
        let length = cipher(&key)?
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                context(place, key_id_text),
                &mut bytes,
            )
            .map_err(|_| Closed)?
            .len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Whether it is sealed with the newest key.
    fn is_newest(&self, secrets: &Secrets) -> bool {
        self.parts()
            .is_some_and(|(key, _)| key == key_id(&secrets.derive(PURPOSE)))
    }

    fn parts(&self) -> Option<(&str, &str)> {
        self.0
            .strip_prefix(FORMAT)?
            .strip_prefix('.')?
            .split_once('.')
    }
}

fn cipher(key: &[u8; 32]) -> std::result::Result<LessSafeKey, Closed> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| Closed)?;
    Ok(LessSafeKey::new(key))
}

/// What a value is bound to.
fn context(place: SealedColumn<'_>, key_id: &str) -> Aad<[u8; 32]> {
    Aad::from(secrets::hash(&[
        FORMAT.as_bytes(),
        key_id.as_bytes(),
        place.table.as_bytes(),
        place.row.as_bytes(),
    ]))
}

/// Names a key without telling anything of it.
fn key_id(key: &[u8; 32]) -> String {
    let hash = secrets::hash(&[b"key id", key]);
    URL_SAFE_NO_PAD.encode(hash.first_chunk::<9>().copied().unwrap_or_default())
}

/// A random key that the server keeps for itself, made when it is first asked for. It does not change when the
/// master key does.
pub async fn server_secret(db: &Db, secrets: &Secrets, name: &str) -> anyhow::Result<[u8; 32]> {
    let place = SealedColumn {
        table: "server_secrets",
        row: name,
    };
    let fresh = Sealed::seal(secrets, place, &secrets::random::<32>())?;
    let mut tx = db.write().await?;
    tx.sql(
        "INSERT INTO server_secrets (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
    )
    .bind(name.to_owned())
    .bind(fresh)
    .execute()
    .await?;
    let secret = find_secret(&mut tx, secrets, name).await?;
    tx.commit().await?;
    secret.ok_or_else(|| anyhow::anyhow!("the server's secret {name} is not there"))
}

/// A random key that a server keeps in a database that is only read. None: no server has asked for it.
pub async fn kept_secret(
    db: &Db,
    secrets: &Secrets,
    name: &str,
) -> anyhow::Result<Option<[u8; 32]>> {
    let mut tx = db.read().await?;
    find_secret(&mut tx, secrets, name).await
}

async fn find_secret(
    tx: &mut Tx,
    secrets: &Secrets,
    name: &str,
) -> anyhow::Result<Option<[u8; 32]>> {
    let sealed: Option<Sealed> = tx
        .sql("SELECT sealed FROM server_secrets WHERE name = $1")
        .bind(name.to_owned())
        .fetch_value()
        .await?;
    let Some(sealed) = sealed else {
        return Ok(None);
    };
    let place = SealedColumn {
        table: "server_secrets",
        row: name,
    };
    let opened = sealed.open(secrets, place)?;
    let secret = opened
        .try_into()
        .map_err(|_| anyhow::anyhow!("the server's secret {name} has not 32 bytes"))?;
    Ok(Some(secret))
}

/// Whether a database has sealed values, which need the keys that they were sealed with.
pub async fn any(db: &Db) -> Result<bool> {
    for column in COLUMNS {
        let mut tx = db.read().await?;
        if !list(&mut tx, column, "").await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the keys are those of a database: opens one value of each table that has sealed ones.
pub async fn check(db: &Db, secrets: &Secrets) -> anyhow::Result<()> {
    for column in COLUMNS {
        let mut tx = db.read().await?;
        if let Some(row) = list(&mut tx, column, "").await?.first() {
            let place = SealedColumn {
                table: column.table,
                row: &row.row_key,
            };
            row.sealed.open(secrets, place)?;
        }
    }
    Ok(())
}

/// How many values of a database each key has sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedBy {
    /// One count for each key that the server has, the newest key's first.
    pub known: Vec<u64>,
    /// Values that no key of the server opens.
    pub unknown: u64,
}

/// Counts all sealed values by their keys, some rows a transaction.
pub async fn count_by_key(db: &Db, secrets: &Secrets) -> Result<SealedBy> {
    let keys = secrets.derive_all(PURPOSE);
    let ids: Vec<String> = keys.iter().map(key_id).collect();
    let mut counts = SealedBy {
        known: vec![0; ids.len()],
        unknown: 0,
    };
    for column in COLUMNS {
        let mut after = String::new();
        loop {
            let mut tx = db.read().await?;
            let rows = list(&mut tx, column, &after).await?;
            let Some(last) = rows.last() else { break };
            last.row_key.clone_into(&mut after);
            for row in &rows {
                let id = row.sealed.parts().map(|(id, _)| id);
                let key = ids.iter().position(|known| Some(known.as_str()) == id);
                match key.and_then(|key| counts.known.get_mut(key)) {
                    Some(count) => *count += 1,
                    None => counts.unknown += 1,
                }
            }
        }
    }
    Ok(counts)
}

/// Seals every value anew that is not sealed with the newest key, some rows a transaction; tells how many after
/// each. Begun again after a crash, it does what is left.
pub async fn reseal(
    db: &Db,
    secrets: &Secrets,
    mut tell: impl FnMut(&'static str, u64),
) -> anyhow::Result<u64> {
    let mut total = 0;
    for column in COLUMNS {
        let mut after = String::new();
        loop {
            let mut tx = db.write().await?;
            let rows = list(&mut tx, column, &after).await?;
            let Some(last) = rows.last() else { break };
            after.clone_from(&last.row_key);
            for row in rows.iter().filter(|row| !row.sealed.is_newest(secrets)) {
                let place = SealedColumn {
                    table: column.table,
                    row: &row.row_key,
                };
                let value = row.sealed.open(secrets, place)?;
                let anew = Sealed::seal(secrets, place, &value)?;
                total += tx
                    .sql(column.replace)
                    .bind(row.row_key.clone())
                    .bind(row.sealed.clone())
                    .bind(anew)
                    .execute()
                    .await?;
            }
            tx.commit().await?;
            tell(column.table, total);
        }
    }
    Ok(total)
}

async fn list(tx: &mut Tx, column: &Column, after: &str) -> Result<Vec<SealedRow>> {
    tx.sql(column.list)
        .bind(after.to_owned())
        .bind(STEP)
        .fetch_all()
        .await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    const OLD: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const NEW: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    const HERE: SealedColumn<'static> = SealedColumn {
        table: "server_secrets",
        row: "a",
    };

    fn secrets(master: &str, previous: &[&str]) -> Secrets {
        let config = config::Secrets {
            master_key: config::Hidden(master.to_owned()),
            previous_keys: config::Hidden(previous.iter().map(|key| (*key).to_owned()).collect()),
        };
        Secrets::load(&config, Path::new("/")).unwrap()
    }

    #[test]
    fn a_value_opens_in_its_place_only_and_unchanged_only() {
        let secrets = secrets(OLD, &[]);
        let sealed = Sealed::seal(&secrets, HERE, b"secret").unwrap();
        assert_eq!(sealed.open(&secrets, HERE).unwrap(), b"secret");
        assert!(!sealed.0.contains("secret"));
        assert_ne!(sealed, Sealed::seal(&secrets, HERE, b"secret").unwrap());

        let elsewhere = SealedColumn { row: "b", ..HERE };
        assert!(sealed.open(&secrets, elsewhere).is_err());
        let elsewhere = SealedColumn {
            table: "other",
            ..HERE
        };
        assert!(sealed.open(&secrets, elsewhere).is_err());
        for position in 0..sealed.0.len() {
            let mut changed = sealed.0.clone().into_bytes();
            changed[position] ^= 1;
            if let Ok(changed) = String::from_utf8(changed) {
                assert!(Sealed(changed).open(&secrets, HERE).is_err(), "{position}");
            }
        }
        assert!(Sealed(String::new()).open(&secrets, HERE).is_err());
    }

    #[test]
    fn a_previous_key_opens_and_the_newest_seals() {
        let sealed = Sealed::seal(&secrets(OLD, &[]), HERE, b"secret").unwrap();
        let rotated = secrets(NEW, &[OLD]);
        assert_eq!(sealed.open(&rotated, HERE).unwrap(), b"secret");
        assert!(!sealed.is_newest(&rotated));
        assert!(sealed.open(&secrets(NEW, &[]), HERE).is_err());

        let anew = Sealed::seal(&rotated, HERE, b"secret").unwrap();
        assert!(anew.is_newest(&rotated));
        assert_eq!(anew.open(&secrets(NEW, &[]), HERE).unwrap(), b"secret");
    }
}
