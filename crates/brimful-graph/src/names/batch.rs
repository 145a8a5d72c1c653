//! Edges whose ends are strings, on their way into the dictionary.

use std::ops::Range;

/// Longest vertex id, in bytes.
pub const LONGEST_NAME: usize = 64 << 10;
/// Names per batch, and about as many bytes as they may have together.
const BATCH_NAMES: usize = 1 << 16;
const BATCH_BYTES: usize = 1 << 20;

/// Names one after another: of edges two an edge, source first; of declared vertices one each.
#[derive(Debug, Default)]
pub struct NameBatch {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Weight of each edge; empty if the edges have none.
    pub weights: Vec<f64>,
    /// Input position of each edge; empty unless asked for.
    pub positions: Vec<u64>,
}

impl NameBatch {
    /// Most bytes of memory of a batch, and of what the dictionary keeps beside it while it is
    /// taken.
    pub const MEMORY_BYTES: u64 = (2 * (BATCH_BYTES + 2 * LONGEST_NAME) + BATCH_NAMES * 40) as u64;

    /// Appends a name of at most [`LONGEST_NAME`] bytes of UTF-8.
    #[inline]
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// True if it should be taken before more is appended.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_NAMES || self.bytes.len() >= BATCH_BYTES
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no name.
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| self.name(at))
    }

    /// Name number `at`.
    #[inline]
    pub(crate) fn name(&self, at: usize) -> &[u8] {
        &self.bytes[place(&self.ends, at)]
    }
}

/// Where item `at` lies if items lie one after another and end at `ends`.
#[inline]
pub(super) fn place(ends: &[u32], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[at] as usize
}
