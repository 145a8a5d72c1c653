//! A sealed block that stays in memory once somebody has asked for it.
//!
//! Invariant: it is read once however many threads ask for it at the same time, so that there is one copy of it at any moment; only a
//! read that failed is tried again, by the next one who asks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::Result;
use crate::sealed::{Buffer, SealedFile};

/// A block, in memory or not yet.
#[derive(Debug)]
pub struct KeptBlock {
    file: Arc<SealedFile>,
    block: usize,
    buffer: OnceLock<Buffer>,
    /// Held while it is read.
    reading: Mutex<()>,
}

impl KeptBlock {
    /// Block `block` of `file`, not yet in memory.
    ///
    /// # Panics
    /// If the file has no such block.
    pub fn new(file: &Arc<SealedFile>, block: usize) -> Self {
        assert!(block < file.entries().len(), "the file has the block");
        Self { file: Arc::clone(file), block, buffer: OnceLock::new(), reading: Mutex::new(()) }
    }

    /// The block, if it is in memory.
    pub fn get(&self) -> Option<&Buffer> {
        self.buffer.get()
    }

    /// The block: read now and verified, unless it is in memory, or comes into it while this waits for another thread's read. Then
    /// it is counted as found.
    ///
    /// # Errors
    /// Those of the read; the block is then not in memory.
    pub fn load(&self) -> Result<&Buffer> {
        let _one = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buffer) = self.buffer.get() {
            self.file.count_found(self.block);
            return Ok(buffer);
        }
        let mut buffer = Buffer::new();
        self.file.read_block(self.block, &mut buffer)?;
        Ok(self.buffer.get_or_init(|| buffer))
    }
}
