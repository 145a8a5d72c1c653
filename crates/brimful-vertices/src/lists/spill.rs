//! Run files: what does not fit in memory, sorted by key, in blocks of one nameless file.
//!
//! A *group* is a key and the letters to it; a *run* is groups of ascending keys, written once and read in
//! order any number of times. All lists of an execution share one file: a block is free again when its run is
//! dropped, so the file does not grow for ever. No crash promise.
//! Invariant: a writer or a reader holds one block, whatever the length.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_store::{Content, Error as StoreError, Folder, Job, StoreFile};

use crate::error::Result;

/// Bytes of a block: what is read or written at once.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// The file that lists spill to.
#[derive(Debug)]
pub struct SpillFile {
    file: StoreFile,
    space: Mutex<Space>,
}

#[derive(Debug, Default)]
struct Space {
    free: Vec<u64>,
    end: u64,
    written_bytes: u64,
}

impl SpillFile {
    /// An empty file in `folder`, gone when dropped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be made.
    pub fn new(folder: &dyn Folder, job: &Job) -> Result<Self> {
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?.counted_as(Content::Signals),
            space: Mutex::default(),
        })
    }

    /// Bytes spilled so far.
    pub fn written_bytes(&self) -> u64 {
        self.space().written_bytes
    }

    /// Bytes that the file has at most taken of the disk.
    pub fn file_bytes(&self) -> u64 {
        self.space().end * BLOCK_BYTES as u64
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a block where there is room; its number.
    fn write(&self, bytes: &[u8]) -> Result<u64> {
        let block = {
            let mut space = self.space();
            space.written_bytes += bytes.len() as u64;
            space.free.pop().unwrap_or_else(|| {
                space.end += 1;
                space.end - 1
            })
        };
        let offset = block * BLOCK_BYTES as u64;
        self.file.write_all_at(bytes, offset)?;
        // Under a hard limit nobody should wait for dirty pages later.
        self.file.start_writing(offset, bytes.len() as u64);
        Ok(block)
    }
}

/// Groups of ascending keys, on disk until dropped.
#[derive(Debug)]
pub(super) struct Run {
    file: Arc<SpillFile>,
    blocks: Vec<u64>,
    bytes: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.file.space().free.append(&mut self.blocks);
    }
}

/// Writes a run.
#[derive(Debug)]
pub(super) struct RunWriter {
    run: Run,
    buffer: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(file: &Arc<SpillFile>) -> Self {
        let run = Run { file: Arc::clone(file), blocks: Vec::new(), bytes: 0 };
        Self { run, buffer: Vec::with_capacity(BLOCK_BYTES) }
    }

    /// Begins a group; no key is empty, and each is greater than the one before.
    pub(super) fn begin(&mut self, key: &[u8]) -> Result<()> {
        self.number(key.len())?;
        self.bytes(key)
    }

    /// Adds a letter to the group.
    pub(super) fn letter(&mut self, letter: &[u8]) -> Result<()> {
        self.number(letter.len() + 1)?;
        self.bytes(letter)
    }

    /// Ends the group.
    pub(super) fn end(&mut self) -> Result<()> {
        self.number(0)
    }

    /// Ends the run.
    pub(super) fn finish(mut self) -> Result<Run> {
        self.flush()?;
        Ok(self.run)
    }

    /// Seven bits a byte, low bits first.
    fn number(&mut self, number: usize) -> Result<()> {
        let mut rest = number;
        while rest >= 128 {
            self.bytes(&[rest as u8 | 128])?;
            rest >>= 7;
        }
        self.bytes(&[rest as u8])
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
            if self.buffer.len() == BLOCK_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.run.blocks.push(self.run.file.write(&self.buffer)?);
            self.run.bytes += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Reads a run; a clone reads on from the same place.
#[derive(Debug, Clone)]
pub(super) struct RunReader {
    run: Arc<Run>,
    /// Bytes read into the buffer so far, this one included.
    read: u64,
    buffer: Vec<u8>,
    at: usize,
    /// One more than the bytes of the letter that comes.
    coming: u64,
    letter: Vec<u8>,
}

impl RunReader {
    pub(super) fn new(run: Arc<Run>) -> Self {
        Self { run, read: 0, buffer: Vec::new(), at: 0, coming: 0, letter: Vec::new() }
    }

    /// Moves the key of the next group into `key`; false at the end. The letters of the group before have been read.
    pub(super) fn next_group(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        if self.left() == 0 {
            return Ok(false);
        }
        let length = self.number()?;
        self.append(length, key)?;
        Ok(true)
    }

    /// Whether the group has another letter; ask once, then take it.
    pub(super) fn has_letter(&mut self) -> Result<bool> {
        self.coming = self.number()?;
        Ok(self.coming > 0)
    }

    /// The letter that there is.
    pub(super) fn take_letter(&mut self) -> Result<&[u8]> {
        let length = self.coming.saturating_sub(1);
        // Most letters lie within the block.
        if length <= (self.buffer.len() - self.at) as u64 {
            let start = self.at;
            self.at += length as usize;
            return Ok(self.buffer.get(start..self.at).unwrap_or_default());
        }
        let mut letter = std::mem::take(&mut self.letter);
        letter.clear();
        let appended = self.append(length, &mut letter);
        self.letter = letter;
        appended?;
        Ok(&self.letter)
    }

    /// Bytes that the run has left.
    fn left(&self) -> u64 {
        self.run.bytes - self.read + (self.buffer.len() - self.at) as u64
    }

    fn number(&mut self) -> Result<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let byte = self.buffer.get(self.at).copied().filter(|_| shift < 63);
            let Some(byte) = byte else { return Err(self.broken("a number has no end")) };
            self.at += 1;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn append(&mut self, length: u64, out: &mut Vec<u8>) -> Result<()> {
        if length > self.left() {
            return Err(self.broken("a record is longer than its run"));
        }
        let mut missing = length as usize;
        while missing > 0 {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let now = missing.min(self.buffer.len() - self.at);
            out.extend_from_slice(self.buffer.get(self.at..self.at + now).unwrap_or_default());
            self.at += now;
            missing -= now;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let (at, length) = (self.read, (self.run.bytes - self.read).min(BLOCK_BYTES as u64));
        let block = self.run.blocks.get((at / BLOCK_BYTES as u64) as usize).copied();
        let Some(block) = block.filter(|_| length > 0) else {
            return Err(self.broken("it ends within a record"));
        };
        self.buffer.resize(length as usize, 0);
        self.run.file.file.read_exact_at(&mut self.buffer, block * BLOCK_BYTES as u64)?;
        self.read += length;
        self.at = 0;
        Ok(())
    }

    /// Somebody else changed the file.
    fn broken(&self, what: &str) -> crate::error::Error {
        let at = self.read - (self.buffer.len() - self.at) as u64;
        StoreError::corrupt(self.run.file.file.path(), at, format!("a run of spilled letters: {what}")).into()
    }
}
