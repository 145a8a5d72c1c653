//! A block of an array in memory, packed as in the file, for readers of few numbers.
//!
//! A number costs the unpacking of its batch of 256. Invariant: the block was verified when it was
//! read, so that each of its numbers is found.

use super::{Form, NumberBlock, decode};
use crate::codec::gaps::Gaps;
use crate::codec::{BATCH, BlockStart, Code, Keys, Unpack};

/// The numbers of a block.
#[derive(Debug)]
pub(crate) struct PackedBlock {
    block: NumberBlock,
    bytes: Vec<u8>,
    /// The batches of packed gaps; empty if the numbers are plain.
    batches: Vec<BlockStart>,
    unpack: Unpack,
}

impl PackedBlock {
    /// The numbers in `bytes`, which were decoded without an error; `None` if their batches have
    /// other lengths than those of the writer.
    pub(super) fn new(block: NumberBlock, bytes: &[u8]) -> Option<Self> {
        let batches = match block.form {
            Form::Gaps => Gaps::starts(bytes, 0)?,
            Form::Plain => Vec::new(),
        };
        let full = &batches[..batches.len().saturating_sub(1)];
        let regular = full.iter().all(|batch| batch.edges as usize == BATCH);
        let unpack = Unpack::fastest();
        regular.then(|| Self { block, bytes: bytes.into(), batches, unpack })
    }

    /// The place of the first number in the array.
    pub(crate) fn start(&self) -> u64 {
        self.block.start
    }

    /// Memory of the block, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.bytes.len() + size_of_val(&*self.batches)) as u64
    }

    /// The number at `place` in the array; `None` if the block does not contain it.
    pub(crate) fn get(&self, place: u64) -> Option<u64> {
        let at = place.checked_sub(self.block.start)? as usize;
        match self.block.form {
            Form::Gaps => self.batch(at / BATCH, |first, keys| {
                keys.iter().nth(at % BATCH).map(|key| first + u64::from(key))
            }),
            Form::Plain => self.words().get(at).map(|raw| u64::from_le_bytes(*raw)),
        }
    }

    /// The place of `number` in the array; `None` if the block does not contain it.
    pub(crate) fn find(&self, number: u64) -> Option<u64> {
        let at = match self.block.form {
            Form::Gaps => {
                let relative = number.checked_sub(self.block.first)?;
                let after =
                    self.batches.partition_point(|batch| u64::from(batch.source) <= relative);
                let batch = after.checked_sub(1)?;
                let place = self.batch(batch, |first, keys| {
                    keys.iter().position(|key| first + u64::from(key) == number)
                })?;
                batch * BATCH + place
            }
            Form::Plain => {
                self.words().binary_search_by_key(&number, |raw| u64::from_le_bytes(*raw)).ok()?
            }
        };
        Some(self.block.start + at as u64)
    }

    /// All numbers.
    pub(crate) fn unpacked(&self) -> Vec<u64> {
        match self.block.form {
            Form::Gaps => {
                let mut numbers = Vec::with_capacity(self.block.count as usize);
                // The bytes were decoded before.
                decode(&self.block, &self.bytes, &mut numbers);
                numbers
            }
            Form::Plain => self.words().iter().map(|raw| u64::from_le_bytes(*raw)).collect(),
        }
    }

    /// Calls `choose(first, keys)` with a batch, whose numbers are `first` + a key.
    fn batch<T>(
        &self,
        batch: usize,
        mut choose: impl FnMut(u64, Keys<'_>) -> Option<T>,
    ) -> Option<T> {
        let start = *self.batches.get(batch)?;
        let bytes = self.bytes.get(start.offset as usize..)?;
        let mut chosen = None;
        Gaps::decode_block(bytes, start, 0, self.unpack, &mut |base, keys| {
            chosen = choose(self.block.first + base, keys);
            true
        });
        chosen
    }

    /// The numbers of a plain block, as they are in the file.
    fn words(&self) -> &[[u8; 8]] {
        self.bytes.as_chunks().0
    }
}
