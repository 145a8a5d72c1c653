//! Positions by the hash of ids: 9 bytes a slot, of which at least an eighth stay free.
//!
//! Invariant: the memory of the table, and of both tables during growth, is reserved from the
//! budget before it is allocated.

use std::sync::Arc;

use brimful_store::Budget;
use hashbrown::HashTable;

use crate::error::Result;
use crate::growth::Growth;

/// The maximum memory, in bytes, of an index of `vertices` vertices.
pub fn index_bytes(vertices: u64) -> u64 {
    // The number of slots is a power of two, and 7 of 8 are used; a slot is a position and a byte
    // of the hash.
    let places = vertices.saturating_mul(8).div_ceil(7).next_power_of_two().max(16);
    places * 9 + 64
}

#[derive(Debug)]
pub(crate) struct PositionIndex {
    table: HashTable<u64>,
    growth: Growth,
}

impl PositionIndex {
    pub(crate) fn new(budget: &Arc<Budget>, purpose: &'static str) -> Result<Self> {
        Ok(Self { table: HashTable::new(), growth: Growth::new(budget, purpose)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.growth.used()
    }

    /// The position with this hash for which `is_match` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_match: impl FnMut(u64) -> bool) -> Option<u64> {
        self.table.find(hash, |position| is_match(*position)).copied()
    }

    /// Reserves memory for `more` positions. `rehash` gives the hash of a position.
    pub(crate) fn reserve(&mut self, more: usize, rehash: impl Fn(u64) -> u64) -> Result<()> {
        let needed = self.table.len() + more;
        if needed <= self.table.capacity() {
            return Ok(());
        }
        let (new, old) = (index_bytes(needed as u64), self.growth.used());
        self.growth.take(new)?;
        self.table.reserve(more, |position| rehash(*position));
        self.growth.give(self.growth.used() - self.table.allocation_size() as u64);
        debug_assert!(self.growth.used() <= old + new, "the table is no larger than forecast");
        Ok(())
    }

    /// Adds a new position, after [`PositionIndex::reserve`].
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, position: u64) {
        debug_assert!(self.table.len() < self.table.capacity(), "there is room");
        self.table.insert_unique(hash, position, |_| 0);
    }

    /// Changes the position `from` to `to`.
    #[inline]
    pub(crate) fn relocate(&mut self, hash: u64, from: u64, to: u64) {
        if let Some(position) = self.table.find_mut(hash, |position| *position == from) {
            *position = to;
        }
    }

    /// Removes the position with this hash for which `is_match` returns true.
    pub(crate) fn remove(
        &mut self,
        hash: u64,
        mut is_match: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        let entry = self.table.find_entry(hash, |position| is_match(*position)).ok()?;
        Some(entry.remove().0)
    }
}
