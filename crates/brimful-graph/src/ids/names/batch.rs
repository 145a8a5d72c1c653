//! Edges whose ends are strings, on the way to the dictionary.

use std::ops::Range;

/// Length of the longest vertex id, in bytes.
pub const LONGEST_NAME: usize = 64 << 10;
/// Names per batch, and the approximate limit of their total bytes.
const BATCH_NAMES: usize = 1 << 16;
const BATCH_BYTES: usize = 1 << 20;

/// Names in sequence: for edges two per edge, source first; for declared vertices one each.
#[derive(Debug, Default)]
pub struct NameBatch {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Weight of each edge; empty if edges have none.
    pub weights: Vec<f64>,
    /// Input position of each edge; empty unless requested.
    pub positions: Vec<u64>,
}

impl NameBatch {
    /// The maximum memory of a batch, in bytes, with the dictionary's buffers while it adds the
    /// batch.
    pub const MEMORY_BYTES: u64 = (2 * (BATCH_BYTES + 2 * LONGEST_NAME) + BATCH_NAMES * 40) as u64;

    /// Appends a name of at most [`LONGEST_NAME`] bytes of UTF-8.
    #[inline]
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// True if the batch should be processed before names are appended.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_NAMES || self.bytes.len() >= BATCH_BYTES
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all names and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.weights.clear();
        self.positions.clear();
    }

    /// All names, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| self.name(at))
    }

    /// Name number `at`.
    #[inline]
    pub(crate) fn name(&self, at: usize) -> &[u8] {
        &self.bytes[place(&self.ends, at)]
    }
}

/// The range of item `at` in concatenated items that end at `ends`.
#[inline]
pub(super) fn place(ends: &[u32], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[at] as usize
}
