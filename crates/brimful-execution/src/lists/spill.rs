//! Spilled runs: messages that exceed memory, sorted by key, in blocks of one scratch file.
//!
//! A *group* is a key and the messages to it. A *run* is a sequence of groups with ascending keys,
//! written once and read in order any number of times. All lists of an execution share one file.
//! Dropping a run frees its blocks, so the file does not grow forever. The file is not read again
//! after a crash. Invariant: a writer or a reader holds one block, whatever the length of the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_store::{Content, Error as StoreError, Folder, Job, StoreFile};

use crate::error::Result;

/// Bytes of a block, the unit of reading and writing.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// The file that lists spill to.
#[derive(Debug)]
pub struct SpillFile {
    file: StoreFile,
    job: Arc<Job>,
    space: Mutex<SpillSpace>,
}

#[derive(Debug, Default)]
struct SpillSpace {
    free: Vec<u64>,
    end: u64,
    written_bytes: u64,
}

impl SpillFile {
    /// An empty file in `folder`, deleted when dropped. Its writing and reading end when `job` is
    /// canceled.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be created.
    pub fn new(folder: &dyn Folder, job: &Arc<Job>) -> Result<Self> {
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?.counted_as(Content::Signals),
            job: Arc::clone(job),
            space: Mutex::default(),
        })
    }

    /// Bytes spilled so far.
    pub fn written_bytes(&self) -> u64 {
        self.space().written_bytes
    }

    /// The peak size of the file on disk, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.space().end * BLOCK_BYTES as u64
    }

    #[cfg(test)]
    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    fn space(&self) -> MutexGuard<'_, SpillSpace> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a free block and returns its number.
    fn write(&self, bytes: &[u8]) -> Result<u64> {
        self.job.check()?;
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
        // Starts writing now, so that no worker waits for dirty pages under a hard memory limit.
        self.file.start_writing(offset, bytes.len() as u64);
        Ok(block)
    }
}

/// Groups of ascending keys, on disk until dropped.
#[derive(Debug)]
pub(super) struct SpilledRun {
    file: Arc<SpillFile>,
    blocks: Vec<u64>,
    bytes: u64,
}

impl Drop for SpilledRun {
    fn drop(&mut self) {
        self.file.space().free.append(&mut self.blocks);
    }
}

/// Writes a run.
#[derive(Debug)]
pub(super) struct SpilledRunWriter {
    run: SpilledRun,
    buffer: Vec<u8>,
}

impl SpilledRunWriter {
    pub(super) fn new(file: &Arc<SpillFile>) -> Self {
        let run = SpilledRun { file: Arc::clone(file), blocks: Vec::new(), bytes: 0 };
        Self { run, buffer: Vec::with_capacity(BLOCK_BYTES) }
    }

    /// Begins a group; no key is empty, and each is greater than the one before.
    pub(super) fn begin(&mut self, key: &[u8]) -> Result<()> {
        self.number(key.len())?;
        self.bytes(key)
    }

    /// Adds a message to the group.
    pub(super) fn message(&mut self, message: &[u8]) -> Result<()> {
        self.number(message.len() + 1)?;
        self.bytes(message)
    }

    /// Ends the group.
    pub(super) fn end(&mut self) -> Result<()> {
        self.number(0)
    }

    /// Ends the run.
    pub(super) fn finish(mut self) -> Result<SpilledRun> {
        self.flush()?;
        Ok(self.run)
    }

    /// Writes a number, seven bits a byte, low bits first.
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

/// Reads a run; a clone continues from the same position.
#[derive(Debug, Clone)]
pub(super) struct SpilledRunReader {
    run: Arc<SpilledRun>,
    /// Bytes of the run read so far, including those in the buffer.
    read: u64,
    buffer: Vec<u8>,
    at: usize,
    /// One more than the bytes of the next message.
    coming: u64,
    message: Vec<u8>,
}

impl SpilledRunReader {
    pub(super) fn new(run: Arc<SpilledRun>) -> Self {
        Self { run, read: 0, buffer: Vec::new(), at: 0, coming: 0, message: Vec::new() }
    }

    /// Moves the key of the next group into `key`; false at the end. The messages of the group
    /// before have been read.
    pub(super) fn next_group(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        if self.left() == 0 {
            return Ok(false);
        }
        let length = self.number()?;
        self.append(length, key)?;
        Ok(true)
    }

    /// True if the group has another message. Call this once before each message that is taken.
    pub(super) fn has_message(&mut self) -> Result<bool> {
        self.coming = self.number()?;
        Ok(self.coming > 0)
    }

    /// The message that [`SpilledRunReader::has_message`] announced.
    pub(super) fn take_message(&mut self) -> Result<&[u8]> {
        let length = self.coming.saturating_sub(1);
        // Most messages are within the block.
        if length <= (self.buffer.len() - self.at) as u64 {
            let start = self.at;
            self.at += length as usize;
            return Ok(self.buffer.get(start..self.at).unwrap_or_default());
        }
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        let appended = self.append(length, &mut message);
        self.message = message;
        appended?;
        Ok(&self.message)
    }

    /// Unread bytes of the run.
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
        self.run.file.job.check()?;
        self.buffer.resize(length as usize, 0);
        self.run.file.file.read_exact_at(&mut self.buffer, block * BLOCK_BYTES as u64)?;
        self.read += length;
        self.at = 0;
        Ok(())
    }

    /// The error of a file that another process has changed.
    fn broken(&self, problem: &str) -> crate::error::Error {
        let at = self.read - (self.buffer.len() - self.at) as u64;
        StoreError::corrupt(
            self.run.file.file.path(),
            at,
            format!("a run of spilled messages: {problem}"),
        )
        .into()
    }
}
