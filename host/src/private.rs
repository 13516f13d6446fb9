//! Files and folders that are their owner's alone: made so, and taken from others where an earlier version left them open.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What others than the owner may do.
const OTHERS: u32 = 0o077;
/// Of a folder: everybody may put files into it, and remove their own.
const SHARED: u32 = 0o1000;
/// What files beside a database are called after it: SQLite's, and the one that a server locks.
const BESIDE_DATABASES: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];

/// Makes a folder, or closes the one that is there.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    close(path);
    Ok(())
}

/// Closes the files of a SQLite database, as far as they are there. Those that SQLite makes later are like the first.
pub fn database(path: &Path) {
    close_file(path);
    for ending in BESIDE_DATABASES {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        close_file(&PathBuf::from(name));
    }
}

/// Closes a folder of compiled plugins and the files in it.
pub fn cache(path: &Path) -> io::Result<()> {
    folder(path)?;
    for entry in fs::read_dir(path)? {
        close_file(&entry?.path());
    }
    Ok(())
}

/// Closes a file, if it is there and no link to another.
pub fn close_file(path: &Path) {
    if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        close(path);
    }
}

/// Takes a file or folder from others. Where that can't be done, as in a volume of somebody else's, the log says so.
fn close(path: &Path) {
    let closed = path.metadata().and_then(|found| {
        let mode = found.permissions().mode();
        if mode & OTHERS == 0 {
            return Ok(());
        }
        if found.is_dir() && mode & SHARED != 0 {
            return Err(io::Error::other("it is a folder that everybody shares"));
        }
        fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))
    });
    match closed {
        Ok(()) => {}
        // Others of this user's processes come and go.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "others than its owner may use what should be private");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn open(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_made_and_what_is_there_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("a/new"), folder.path().join("old"));
        super::folder(&new).unwrap();
        assert_eq!(mode(&new), 0o700);

        fs::create_dir(&old).unwrap();
        open(&old, 0o755);
        let names = ["nudge.db", "nudge.db-wal", "nudge.db-shm"].map(|name| old.join(name));
        for name in &names {
            fs::write(name, "x").unwrap();
            open(name, 0o644);
        }
        super::folder(&old).unwrap();
        database(&names[0]);
        assert_eq!(mode(&old), 0o700);
        for name in &names {
            assert_eq!(mode(name), 0o600, "{}", name.display());
        }
    }

    #[test]
    fn what_everybody_shares_and_what_is_linked_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        open(&shared, 0o1777);
        super::folder(&shared).unwrap();
        assert_eq!(mode(&shared), 0o1777);

        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "x").unwrap();
        open(&file, 0o644);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        close_file(&link);
        assert_eq!(mode(&file), 0o644);
        close_file(&folder.path().join("nothing"));
    }
}
