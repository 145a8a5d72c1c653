//! The vertices that are due to signal, in the first blocks of a checkpoint.

use brimful_store::checkpoint::{Draft, Saved};
use brimful_store::sealed::Buffer;
use brimful_store::{Error as StoreError, Job};
use brimful_vertices::Id;

use crate::error::Result;

/// Bytes from which a block of ids is written.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes the ids that `for_each` passes on.
pub(crate) fn save<I: Id>(
    draft: &mut Draft,
    for_each: impl FnOnce(&mut dyn FnMut(I) -> Result<()>) -> Result<()>,
    job: &Job,
) -> Result<()> {
    let mut ids = Vec::new();
    for_each(&mut |id| {
        id.write(&mut ids);
        if ids.len() >= BLOCK_BYTES {
            job.check()?;
            draft.block(&ids)?;
            ids.clear();
        }
        Ok(())
    })?;
    if !ids.is_empty() {
        draft.block(&ids)?;
    }
    Ok(())
}

/// The ids in a checkpoint.
#[derive(Debug)]
pub(crate) struct DueVertices {
    saved: Saved,
    count: u64,
}

impl DueVertices {
    /// The first `count` ids of a checkpoint.
    pub(crate) fn new(saved: Saved, count: u64) -> Self {
        Self { saved, count }
    }

    /// Calls `each` for every id.
    pub(crate) fn for_each<I: Id>(&mut self, mut each: impl FnMut(I) -> Result<()>) -> Result<()> {
        self.saved.rewind();
        let (mut left, mut block) = (self.count, Buffer::new());
        while left > 0 {
            let mut ids: &[u8] = if self.saved.block(&mut block)? { block.bytes() } else { &[] };
            let before = left;
            while let Some(id) = I::read(&mut ids).filter(|_| left > 0) {
                left -= 1;
                each(id)?;
            }
            if left == before || !ids.is_empty() {
                let problem = "its list of vertices that are due to signal is not whole";
                return Err(StoreError::corrupt_checkpoint(self.saved.path(), 0, problem).into());
            }
        }
        Ok(())
    }

    /// The checkpoint at the first block after the ids.
    pub(crate) fn rest<I: Id>(&mut self) -> Result<&mut Saved> {
        self.for_each(|_: I| Ok(()))?;
        Ok(&mut self.saved)
    }
}
