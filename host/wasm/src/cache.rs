//! Compiled plugins on disk.
//!
//! A file holds a signature and machine code. Its name says which component was compiled, by which version
//! and configuration of the engine; the signature covers name and code, so that a file that somebody else
//! wrote, changed or renamed is as good as none. `prune` says what leaves the folder again.

use std::fs;
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use crate::limits::{CACHE_AGE, CACHE_BYTES, LEFT_BEHIND};
use crate::prune::{Bounds, EXTENSION, prune, touch};
use crate::trusted::CompiledCode;

const SIGNATURE_BYTES: usize = 32;

/// How much of the cache stays.
const BOUNDS: Bounds = Bounds {
    bytes: CACHE_BYTES,
    age: CACHE_AGE,
};

/// What the names of folders began with in which earlier versions compiled.
const COMPILING: &str = "compiling-";

/// What the names of files begin with that are not written to their end yet.
const WRITING: &str = "writing-";

pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    /// Which engine compiled: its version and everything that its code depends on.
    engine: String,
}

impl Cache {
    pub(crate) fn new(folder: PathBuf, key: [u8; 32], engine: &Engine) -> io::Result<Self> {
        // What is in it is this user's code to run.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        remove_left_behind(&folder)?;
        prune_or_warn(&folder);
        let mut hash = HashWriter(Sha256::new());
        // Covers wasmtime's version too.
        engine.precompile_compatibility_hash().hash(&mut hash);
        let mut engine = hexadecimal(&hash.0.finalize());
        engine.truncate(32);
        Ok(Self {
            folder,
            key,
            engine,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the compiled code of the component with this digest.
    pub(crate) fn find(&self, digest: &str) -> Option<CompiledCode> {
        let name = self.name(digest);
        let mut bytes = match read(&self.folder.join(&name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(file = name, %error, "a compiled plugin cannot be read");
                return None;
            }
        };
        let (signature, code) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        if self.signer(&name, code).verify_slice(signature).is_err() {
            tracing::warn!(
                file = name,
                "a compiled plugin has no valid signature and is compiled again"
            );
            return None;
        }
        bytes.drain(..SIGNATURE_BYTES);
        Some(CompiledCode::vouched_for(bytes))
    }

    /// Whether there is a file for the component with this digest.
    pub(crate) fn has(&self, digest: &str) -> bool {
        self.folder.join(self.name(digest)).is_file()
    }

    /// Keeps compiled code. Other processes see the whole file or none.
    pub(crate) fn insert(&self, digest: &str, code: &CompiledCode) -> io::Result<()> {
        let name = self.name(digest);
        let signature = self.signer(&name, code.bytes()).finalize().into_bytes();
        let mut file = tempfile::Builder::new()
            .prefix(WRITING)
            .tempfile_in(&self.folder)?;
        file.write_all(&signature)?;
        file.write_all(code.bytes())?;
        file.persist(self.folder.join(name))?;
        prune_or_warn(&self.folder);
        Ok(())
    }

    fn name(&self, digest: &str) -> String {
        format!("{digest}-{}.{EXTENSION}", self.engine)
    }

    #[expect(clippy::expect_used, reason = "keys of every length will do")]
    fn signer(&self, name: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut signer =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of every length");
        signer.update(name.as_bytes());
        signer.update(code);
        signer
    }
}

/// Reads a file of the cache, and notes that it is used.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    if let Err(error) = touch(&file) {
        // It may go sooner than others that are used less, nothing else.
        tracing::debug!(file = %path.display(), %error, "the use of a compiled plugin cannot be noted");
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A folder that is too full is none that can't be used.
fn prune_or_warn(folder: &Path) {
    if let Err(error) = prune(folder, BOUNDS) {
        tracing::warn!(%error, "old compiled plugins cannot be removed");
    }
}

/// Removes what processes that were killed while they compiled have left behind.
fn remove_left_behind(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let unfinished = name
            .to_str()
            .is_some_and(|name| name.starts_with(COMPILING) || name.starts_with(WRITING));
        if !unfinished {
            continue;
        }
        // Another process may just be done with it.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        // A time in the future is no reason to wait for it.
        let age = found.modified()?.elapsed().unwrap_or(LEFT_BEHIND);
        if age < LEFT_BEHIND {
            continue;
        }
        let removed = if found.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        if let Err(error) = removed {
            tracing::warn!(file = ?name, %error, "an unfinished compilation cannot be removed");
        }
    }
    Ok(())
}

/// The digest that identifies a component: SHA-256, in hexadecimal.
pub fn digest(component: &[u8]) -> String {
    hexadecimal(&Sha256::digest(component))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// A hash that is the same in every process.
struct HashWriter(Sha256);

impl Hasher for HashWriter {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}
