//! The master key and what is derived from it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config;

/// The file in the data directory that has the keys unless they are configured: the Base64 of one a line, the
/// newest first.
const KEY_FILE: &str = "master.key";

/// Derives a key for each purpose from a master key, so that processes which share the master key accept each
/// other's tokens. What earlier master keys have signed or sealed is still accepted; nothing new is made with
/// them.
#[derive(Clone)]
pub struct Secrets {
    newest: [u8; 32],
    previous: Vec<[u8; 32]>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets(***)")
    }
}

impl Secrets {
    /// Takes the configured keys, or those in the data directory.
    pub fn load(config: &config::Secrets, data_dir: &Path) -> anyhow::Result<Self> {
        let mut secrets = Self::open(&config.master_key, data_dir)?;
        for text in &*config.previous_keys {
            let key = decode(text).context("secrets.previousKeys")?;
            secrets.previous.push(key);
        }
        Ok(secrets)
    }

    /// Whether keys are configured or in the data directory, so that none will be made.
    pub fn are_there(config: &config::Secrets, data_dir: &Path) -> io::Result<bool> {
        Ok(!config.master_key.is_empty() || is_there(&data_dir.join(KEY_FILE))?)
    }

    /// Where the keys of a data directory are, unless they are configured.
    pub fn file(data_dir: &Path) -> PathBuf {
        data_dir.join(KEY_FILE)
    }

    /// Takes the configured key (Base64 of 32 bytes), or those in the data directory. Where there are none, one
    /// is made, readable by its owner only; a file that others may read is refused.
    pub fn open(configured: &str, data_dir: &Path) -> anyhow::Result<Self> {
        if !configured.is_empty() {
            let newest = decode(configured).context("secrets.masterKey")?;
            return Ok(Self::new(newest, Vec::new()));
        }
        let path = data_dir.join(KEY_FILE);
        if is_there(&path)? {
            return read_file(&path).with_context(|| path.display().to_string());
        }
        let secrets = Self::new(random(), Vec::new());
        write_file(&path, &secrets, false)
            .with_context(|| format!("can't write the key file {}", path.display()))?;
        Ok(secrets)
    }

    /// Puts a new master key in the place of the data directory's, which stays as a previous one. None: a random
    /// one.
    pub fn rotate_file(data_dir: &Path, new_key: Option<&str>) -> anyhow::Result<Self> {
        let path = data_dir.join(KEY_FILE);
        let before = read_file(&path).with_context(|| path.display().to_string())?;
        let newest = match new_key {
            Some(text) => decode(text).context("the new key")?,
            None => random(),
        };
        if before.keys().any(|key| *key == newest) {
            bail!("the new key is one of those in {}", path.display());
        }
        let secrets = Self::new(newest, before.keys().copied().collect());
        write_file(&path, &secrets, true)
            .with_context(|| format!("can't write the key file {}", path.display()))?;
        Ok(secrets)
    }

    /// Leaves the newest key alone in the data directory's file; what previous ones signed or sealed is refused
    /// from then on.
    pub fn forget_previous(data_dir: &Path) -> anyhow::Result<()> {
        let path = data_dir.join(KEY_FILE);
        let secrets = read_file(&path).with_context(|| path.display().to_string())?;
        write_file(&path, &Self::new(secrets.newest, Vec::new()), true)
            .with_context(|| format!("can't write the key file {}", path.display()))
    }

    fn new(newest: [u8; 32], previous: Vec<[u8; 32]>) -> Self {
        Self { newest, previous }
    }

    /// All master keys, the newest first.
    fn keys(&self) -> impl Iterator<Item = &[u8; 32]> {
        std::iter::once(&self.newest).chain(&self.previous)
    }

    /// The key for a purpose.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        authenticate(&self.newest, &[purpose.as_bytes()])
    }

    /// The keys for a purpose that each master key leads to, the newest first.
    pub fn derive_all(&self, purpose: &str) -> Vec<[u8; 32]> {
        self.keys()
            .map(|key| authenticate(key, &[purpose.as_bytes()]))
            .collect()
    }

    /// Authenticates a message for a purpose.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        authenticate(&self.derive(purpose), parts)
    }

    /// Whether a message was signed here, for this purpose, in constant time. Of a signature that was shortened
    /// the beginning is compared; the caller sees to its length.
    pub fn verify(&self, purpose: &str, parts: &[&[u8]], signature: &[u8]) -> bool {
        self.derive_all(purpose).iter().any(|key| {
            let expected = authenticate(key, parts);
            let expected = expected.get(..signature.len()).unwrap_or_default();
            !expected.is_empty() && bool::from(expected.ct_eq(signature))
        })
    }
}

/// Whether there is a file. Where that can't be seen, the error names the file and says what to do.
pub fn is_there(path: &Path) -> io::Result<bool> {
    path.try_exists().map_err(|error| {
        let kind = error.kind();
        let what = match kind {
            io::ErrorKind::PermissionDenied => {
                "Permission denied; run this as the user that the server runs as".to_owned()
            }
            _ => error.to_string(),
        };
        io::Error::new(kind, format!("{}: {what}", path.display()))
    })
}

fn decode(text: &str) -> anyhow::Result<[u8; 32]> {
    // What a decoder says of a text has parts of it.
    let bytes = STANDARD.decode(text).unwrap_or_default();
    match bytes.try_into() {
        Ok(key) => Ok(key),
        Err(_) => bail!("the key must be the Base64 of 32 bytes"),
    }
}

fn read_file(path: &Path) -> anyhow::Result<Secrets> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("others than its owner may use the file; run `chmod 600` on it");
    }
    let text = fs::read_to_string(path)?;
    let mut keys = text.split_whitespace().map(decode);
    let newest = keys.next().context("the file is empty")??;
    Ok(Secrets::new(newest, keys.collect::<anyhow::Result<_>>()?))
}

/// Writes the file under another name first, so that there is no moment without a whole one. Readable by its
/// owner only. One that is there already is replaced if the caller means to.
fn write_file(path: &Path, secrets: &Secrets, replace: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    for key in secrets.keys() {
        writeln!(file, "{}", STANDARD.encode(key))?;
    }
    file.as_file().sync_all()?;
    if replace {
        file.persist(path)?;
    } else {
        file.persist_noclobber(path)?;
    }
    // The new name is on disk once the directory is.
    fs::File::open(folder)?.sync_all()
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

/// HMAC-SHA256 over parts with a key that is derived from no master key, each part preceded by its length.
pub fn keyed_hash(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    authenticate(key, parts)
}

/// SHA-256 of bytes as they are.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
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

/// Bytes in hexadecimal, in lower case.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const NEW: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    fn configured(master: &str, previous: &[&str]) -> Secrets {
        let config = config::Secrets {
            master_key: config::Hidden(master.to_owned()),
            previous_keys: config::Hidden(previous.iter().map(|key| (*key).to_owned()).collect()),
        };
        Secrets::load(&config, Path::new("/")).unwrap()
    }

    #[test]
    fn what_a_previous_key_signed_is_good_as_long_as_the_key_is_known() {
        let old = configured(OLD, &[]);
        let rotated = configured(NEW, &[OLD]);
        let new = configured(NEW, &[]);
        let signature = old.sign("test", &[b"message"]);

        assert!(rotated.verify("test", &[b"message"], &signature));
        assert!(rotated.verify("test", &[b"message"], &signature[..16]));
        assert!(!rotated.verify("other", &[b"message"], &signature));
        assert!(!new.verify("test", &[b"message"], &signature));
        assert!(!rotated.verify("test", &[b"message"], &[]));
        assert_eq!(
            rotated.sign("test", &[b"message"]),
            new.sign("test", &[b"message"])
        );
    }

    #[test]
    fn what_can_not_be_seen_is_not_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let none = config::Secrets {
            master_key: config::Hidden(String::new()),
            previous_keys: config::Hidden(Vec::new()),
        };
        assert!(!Secrets::are_there(&none, folder.path()).unwrap());
        // A folder that is a file can't be looked into, whoever asks.
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let unseen = Secrets::are_there(&none, &file).unwrap_err();
        let place = file.join(KEY_FILE).display().to_string();
        assert!(unseen.to_string().starts_with(&place), "{unseen}");
        assert!(Secrets::open("", &file).is_err());
    }

    #[test]
    fn the_key_file_is_its_owners_alone_and_keeps_previous_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_FILE);
        let first = Secrets::open("", folder.path()).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let signature = first.sign("test", &[b"message"]);

        let rotated = Secrets::rotate_file(folder.path(), Some(NEW)).unwrap();
        assert_eq!(rotated.newest, decode(NEW).unwrap());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let read = Secrets::open("", folder.path()).unwrap();
        assert!(read.verify("test", &[b"message"], &signature));
        assert!(Secrets::rotate_file(folder.path(), Some(NEW)).is_err());
        Secrets::forget_previous(folder.path()).unwrap();
        let read = Secrets::open("", folder.path()).unwrap();
        assert!(!read.verify("test", &[b"message"], &signature));

        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = Secrets::open("", folder.path()).unwrap_err();
            assert!(format!("{refused:#}").contains("chmod 600"), "{mode:o}");
        }
    }
}
