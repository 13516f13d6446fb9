//! A zip that is written piece by piece, and of which no more is in memory than the last piece.

use std::io::{Error, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

/// Where the compressed bytes gather until they are taken.
#[derive(Clone, Debug, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut gathered = self.0.lock();
        gathered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A zip in the making.
pub(super) struct Archive {
    zip: ZipWriter<StreamWriter<Sink>>,
    sink: Sink,
}

impl Archive {
    /// One without files.
    pub(super) fn new() -> Self {
        let sink = Sink::default();
        Self {
            zip: ZipWriter::new_stream(sink.clone()),
            sink,
        }
    }

    /// Begins a file; the one before it is whole.
    pub(super) fn begin(&mut self, name: &str) -> std::io::Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(true);
        self.zip.start_file(name, options).map_err(Error::other)
    }

    /// Adds to the file that was begun last.
    pub(super) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.zip.write_all(bytes)
    }

    /// What was compressed since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.sink.take()
    }

    /// Ends the archive; answers the rest of it.
    pub(super) fn end(self) -> std::io::Result<Vec<u8>> {
        let Self { zip, sink } = self;
        zip.finish().map_err(Error::other)?;
        Ok(sink.take())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn pieces_make_a_zip_and_only_one_is_in_memory() {
        let mut archive = Archive::new();
        let mut zipped = Vec::new();
        let line = |number: u64| {
            format!(
                "{{\"number\": {number}, \"noise\": {}}}\n",
                number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            )
        };
        archive.begin("lines.ndjson").unwrap();
        let mut largest = 0;
        for number in 0..20_000 {
            archive.write(line(number).as_bytes()).unwrap();
            let piece = archive.take();
            largest = largest.max(piece.len());
            zipped.extend(piece);
        }
        archive.begin("empty.json").unwrap();
        archive.write(b"[]").unwrap();
        zipped.extend(archive.end().unwrap());
        assert!(largest < 256 * 1024, "{largest}");

        let mut read = zip::ZipArchive::new(std::io::Cursor::new(zipped)).unwrap();
        assert_eq!(read.len(), 2);
        let mut text = String::new();
        read.by_name("lines.ndjson")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, (0..20_000).map(line).collect::<String>());
    }
}
