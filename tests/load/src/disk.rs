//! What the disk costs alone.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it takes to append 4 KiB and have them on disk, so many times.
pub(crate) fn appends(directory: &Path, count: usize) -> anyhow::Result<Vec<Duration>> {
    let mut file = File::create(directory.join("appends"))?;
    let block = [7; 4096];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    Ok(times)
}
