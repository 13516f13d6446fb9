//! What is in a backup: a gzipped tar of two files.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use indicatif::ProgressBar;
use tar::{Archive, Builder, EntryType, Header};

/// The database in an archive, and in the folder that it is unpacked to.
pub(super) const DATABASE: &str = "nudge.db";
/// The keys in an archive, and in the folder that it is unpacked to.
pub(super) const KEY: &str = "master.key";

/// Writes a database and its keys.
pub(super) fn write<W: Write>(
    output: W,
    database: &Path,
    key: Option<&[u8]>,
    progress: &ProgressBar,
) -> io::Result<W> {
    let mut archive = Builder::new(GzEncoder::new(output, Compression::fast()));
    if let Some(key) = key {
        archive.append_data(&mut header(key.len() as u64), KEY, key)?;
    }
    let database = File::open(database)?;
    let size = database.metadata()?.len();
    progress.set_length(size);
    archive.append_data(&mut header(size), DATABASE, progress.wrap_read(database))?;
    archive.into_inner()?.finish()
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(EntryType::Regular);
    header
}

/// Unpacks an archive into a folder that has nothing in it. Anything but the files of a backup is refused.
pub(super) fn read(input: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = Archive::new(GzDecoder::new(input));
    let mut has_database = false;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let name = [DATABASE, KEY]
            .into_iter()
            .find(|name| path == Path::new(name));
        let Some(name) = name.filter(|_| entry.header().entry_type() == EntryType::Regular) else {
            let detail = format!(
                "the archive has {}, which is no part of a backup",
                path.display()
            );
            return Err(io::Error::new(ErrorKind::InvalidData, detail));
        };
        let mut options = File::options();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(folder.join(name))?;
        io::copy(&mut entry, &mut file)?;
        file.sync_all()?;
        has_database |= name == DATABASE;
    }
    // To the last chunk, which says that nothing was cut off.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    if has_database {
        return Ok(());
    }
    let detail = "the archive has no database";
    Err(io::Error::new(ErrorKind::InvalidData, detail))
}
