//! What leaves the cache: what nobody has used for long, and of too much the least recently used.
//!
//! A file's time of modification is when it was last used. Several processes may share a folder and do this at a time:
//! whoever has a file open goes on reading it, and what is gone is compiled again. Only files that are named as the
//! cache names its own are looked at.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

/// What files of the cache end with.
pub(crate) const EXTENSION: &str = "cwasm";

/// How much stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// All files together.
    pub(crate) bytes: u64,
    /// For how long a file may lie unused.
    pub(crate) age: Duration,
}

struct Entry {
    used: SystemTime,
    path: PathBuf,
    bytes: u64,
}

/// Notes that a file is used now.
pub(crate) fn touch(file: &fs::File) -> io::Result<()> {
    let instant = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps {
        last_access: instant(UTIME_OMIT),
        last_modification: instant(UTIME_NOW),
    };
    Ok(rustix::fs::futimens(file, &times)?)
}

/// Removes what is past the bounds. What was used last stays, however large it is.
pub(crate) fn prune(folder: &Path, bounds: Bounds) -> io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_ours(&path)
            && let Some((used, bytes)) = usage(&path)?
        {
            entries.push(Entry { used, path, bytes });
        }
    }
    entries.sort_by_key(|entry| entry.used);
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut left = entries.len();
    for entry in entries {
        let is_old = entry.used.elapsed().is_ok_and(|idle| idle >= bounds.age);
        let is_too_much = bytes > bounds.bytes && left > 1;
        if !is_old && !is_too_much {
            break;
        }
        left -= 1;
        bytes -= entry.bytes;
        // Another process may have used it, or removed it, since it was listed.
        if usage(&entry.path)?.is_some_and(|(used, _)| used == entry.used) {
            remove(&entry.path)?;
        }
    }
    Ok(())
}

/// Whether a file is named `<digest>-<engine>.cwasm`.
fn is_ours(path: &Path) -> bool {
    let hexadecimal = |text: &str, length| {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        text.len() == length && text.bytes().all(digit)
    };
    path.extension()
        .is_some_and(|extension| extension == EXTENSION)
        && path
            .file_stem()
            .and_then(|stem| stem.to_str()?.split_once('-'))
            .is_some_and(|(digest, engine)| hexadecimal(digest, 64) && hexadecimal(engine, 32))
}

/// When a file was last used, and its size. None where there is none.
fn usage(path: &Path) -> io::Result<Option<(SystemTime, u64)>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some((found.modified()?, found.len()))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn name(number: u8) -> String {
        format!("{number:064x}-{}.{EXTENSION}", "0".repeat(32))
    }

    /// A file of so many bytes that was used so many hours ago.
    fn file(folder: &Path, name: &str, bytes: u64, hours: u32) {
        let file = fs::File::create(folder.join(name)).unwrap();
        file.set_len(bytes).unwrap();
        touch(&file).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - HOUR * hours).unwrap();
    }

    fn left(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_least_recently_used_go_until_the_rest_fits() {
        let folder = tempfile::tempdir().unwrap();
        for (number, hours) in [(1, 2), (2, 4), (3, 1), (4, 3)] {
            file(folder.path(), &name(number), 100, hours);
        }
        let bounds = |bytes| Bounds {
            bytes,
            age: HOUR * 9,
        };

        prune(folder.path(), bounds(400)).unwrap();
        assert_eq!(left(folder.path()).len(), 4);
        prune(folder.path(), bounds(399)).unwrap();
        assert_eq!(left(folder.path()), [name(1), name(3), name(4)]);
        prune(folder.path(), bounds(100)).unwrap();
        assert_eq!(left(folder.path()), [name(3)]);
        prune(folder.path(), bounds(0)).unwrap();
        assert_eq!(left(folder.path()), [name(3)]);
    }

    #[test]
    fn what_nobody_uses_goes() {
        let folder = tempfile::tempdir().unwrap();
        for (number, hours) in [(1, 4), (2, 5), (3, 6)] {
            file(folder.path(), &name(number), 1, hours);
        }
        let bounds = Bounds {
            bytes: 100,
            age: HOUR * 5,
        };
        prune(folder.path(), bounds).unwrap();
        assert_eq!(left(folder.path()), [name(1)]);
    }

    #[test]
    fn what_is_not_the_caches_own_is_let_be() {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "notes.cwasm".to_owned(),
            name(1).replace(".cwasm", ".wasm"),
            name(1).replace('0', "G"),
            format!("x{}", name(1)),
        ];
        for other in &others {
            file(folder.path(), other, 1, 10);
        }
        fs::create_dir(folder.path().join(name(2))).unwrap();
        let before = left(folder.path());
        let bounds = Bounds {
            bytes: 0,
            age: Duration::ZERO,
        };
        prune(folder.path(), bounds).unwrap();
        assert_eq!(left(folder.path()), before);
    }
}
