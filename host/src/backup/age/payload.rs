//! The body of a file: chunks, each with its number and whether it is the last.

use std::io::{self, Read, Write};

use aws_lc_rs::aead::LessSafeKey;

use super::{cipher, invalid, open, seal};

const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;

/// Counts chunks.
#[derive(Default)]
struct Counter(u64);

impl Counter {
    /// The nonce of the next chunk: its number in eleven bytes, and whether it is the last.
    fn next(&mut self, is_last: bool) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[3..11].copy_from_slice(&self.0.to_be_bytes());
        nonce[11] = u8::from(is_last);
        self.0 += 1;
        nonce
    }
}

/// Encrypts what is written to it. Without [`Self::finish`] the file opens nowhere.
pub struct Sealed<W> {
    output: W,
    cipher: LessSafeKey,
    counter: Counter,
    chunk: Vec<u8>,
}

impl<W: Write> Sealed<W> {
    pub(super) fn new(output: W, key: &[u8; 32]) -> io::Result<Self> {
        Ok(Self {
            output,
            cipher: cipher(key)?,
            counter: Counter::default(),
            chunk: Vec::with_capacity(CHUNK + TAG),
        })
    }

    fn end_chunk(&mut self, is_last: bool) -> io::Result<()> {
        let nonce = self.counter.next(is_last);
        seal(&self.cipher, nonce, &mut self.chunk)?;
        self.output.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Ends the file; answers where it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_chunk(true)?;
        self.output.flush()?;
        Ok(self.output)
    }
}

impl<W: Write> Write for Sealed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits: it may be the last.
        if self.chunk.len() == CHUNK && !bytes.is_empty() {
            self.end_chunk(false)?;
        }
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend(bytes.iter().take(taken));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Decrypts what is read from it.
pub struct Opened<R> {
    input: R,
    cipher: LessSafeKey,
    counter: Counter,
    /// What is decrypted, from `place` on.
    chunk: Vec<u8>,
    place: usize,
    /// The first byte of the next chunk, which is there unless this is the last.
    ahead: Option<u8>,
    over: bool,
}

impl<R: Read> Opened<R> {
    pub(super) fn new(input: R, key: &[u8; 32]) -> io::Result<Self> {
        Ok(Self {
            input,
            cipher: cipher(key)?,
            counter: Counter::default(),
            chunk: Vec::with_capacity(CHUNK + TAG + 1),
            place: 0,
            ahead: None,
            over: false,
        })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        self.chunk.clear();
        self.place = 0;
        self.chunk.extend(self.ahead.take());
        let rest = CHUNK + TAG + 1 - self.chunk.len();
        let mut rest = self.input.by_ref().take(rest as u64);
        rest.read_to_end(&mut self.chunk)?;
        self.over = self.chunk.len() <= CHUNK + TAG;
        if !self.over {
            self.ahead = self.chunk.pop();
        }
        let is_first = self.counter.0 == 0;
        let nonce = self.counter.next(self.over);
        let opened = open(&self.cipher, nonce, &mut self.chunk);
        // An empty chunk after others would be one that nobody wrote.
        if opened.is_none() || (self.chunk.is_empty() && !is_first) {
            self.chunk.clear();
            return Err(invalid("the file was changed, or ends too early"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Opened<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.place == self.chunk.len() && !self.over {
            self.next_chunk()?;
        }
        let mut rest = self.chunk.get(self.place..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.place += read;
        Ok(read)
    }
}
