//! The master key and what is derived from it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Derives a key for each purpose from one master key, so that processes which share the master key
/// accept each other's tokens.
#[derive(Clone)]
pub struct Secrets {
    master: [u8; 32],
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets(***)")
    }
}

impl Secrets {
    /// Takes the configured key (Base64 of 32 bytes), or the one in the data directory, made when it is
    /// not there and readable by its owner only.
    pub fn open(configured: &str, data_dir: &Path) -> anyhow::Result<Self> {
        if !configured.is_empty() {
            return Self::decode(configured).context("secrets.masterKey");
        }
        let path = data_dir.join("master.key");
        if let Ok(text) = fs::read_to_string(&path) {
            return Self::decode(text.trim()).with_context(|| path.display().to_string());
        }
        let secrets = Self { master: random() };
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| {
                file.write_all(STANDARD.encode(secrets.master).as_bytes())?;
                file.sync_all()
            })
            .with_context(|| format!("can't write the key file {}", path.display()))?;
        Ok(secrets)
    }

    fn decode(text: &str) -> anyhow::Result<Self> {
        match STANDARD.decode(text)?.try_into() {
            Ok(master) => Ok(Self { master }),
            Err(_) => bail!("the key must be the Base64 of 32 bytes"),
        }
    }

    /// The key for a purpose.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        authenticate(&self.master, &[purpose.as_bytes()])
    }

    /// Authenticates a message for a purpose.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        authenticate(&self.derive(purpose), parts)
    }

    /// Whether a message was signed here, for this purpose, in constant time.
    pub fn verify(&self, purpose: &str, parts: &[&[u8]], signature: &[u8]) -> bool {
        self.sign(purpose, parts).ct_eq(signature).into()
    }
}

/// HMAC-SHA256 over parts, each preceded by its length, so that no two lists of parts look alike.
fn authenticate(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is good");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// SHA-256 over parts, each preceded by its length.
pub fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    sha.finalize().into()
}

/// Bytes from the system's random number generator.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(
        clippy::expect_used,
        reason = "without randomness no secret can be made; nothing can go on"
    )]
    getrandom::fill(&mut bytes).expect("the system's random number generator answers");
    bytes
}
