//! The file system that has the data directory.

use std::io;
use std::path::Path;

/// How large a file system is, and how much of it is free.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// What this process may still write, in bytes.
    pub free_bytes: u64,
}

impl Disk {
    /// The file system that has a path.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Self {
            size_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    /// The share that is free, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn free_share(self) -> f64 {
        self.free_bytes as f64 / self.size_bytes.max(1) as f64
    }
}
