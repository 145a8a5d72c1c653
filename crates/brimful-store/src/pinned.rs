//! A pinned block: a sealed block that stays in memory after its first use.
//!
//! Invariant: it is read once, whatever the number of concurrent requests, so there is one copy at
//! any moment. After a failed read the next use tries again.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::Result;
use crate::sealed::{Buffer, SealedFile};

/// A block that is or will be in memory.
#[derive(Debug)]
pub struct PinnedBlock {
    file: Arc<SealedFile>,
    block: usize,
    buffer: OnceLock<Buffer>,
    /// Held during the read.
    reading: Mutex<()>,
}

impl PinnedBlock {
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

    /// Returns the block. Reads and verifies it if it is not in memory. If it is in memory, or if
    /// another thread is reading it, its bytes count as found.
    ///
    /// # Errors
    /// Errors of the read; the block is then not in memory.
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
