//! Positions by the hash of ids: 9 bytes a slot, of which at least an eighth stay free.
//!
//! Invariant: the memory of the table, and of both tables during growth, is reserved from the
//! budget before it is allocated.

use std::sync::Arc;

use brimful_store::Budget;
use hashbrown::HashTable;

use crate::error::Result;
use crate::growth::Growth;

/// The maximum memory, in bytes, of an index of `vertices` vertices. Removals can double it.
pub fn index_bytes(vertices: u64) -> u64 {
    // The number of slots is a power of two, and 7 of 8 are used; a slot is a position and a byte
    // of the hash.
    let places = vertices.saturating_mul(8).div_ceil(7).next_power_of_two().max(16);
    places * 9 + 64
}

/// The number of `slots` of a table that can be used.
fn usable_slots(slots: usize) -> usize {
    if slots > 8 { slots / 8 * 7 } else { slots - 1 }
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
        // Removed positions may take up the room. Then the table is cleaned in place if it is at
        // most half full, and grows otherwise.
        let full = usable_slots(self.table.num_buckets());
        let is_cleaned = needed <= full / 2;
        let new = if is_cleaned { 0 } else { index_bytes(needed.max(full + 1) as u64) };
        let old = self.growth.used();
        self.growth.take(new)?;
        self.table.reserve(more, |position| rehash(*position));
        self.growth.give(self.growth.used() - self.table.allocation_size() as u64);
        debug_assert!(self.growth.used() <= new.max(old), "the table is no larger than forecast");
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

#[cfg(test)]
mod tests {
    use brimful_store::splitmix::mix;

    use super::*;

    #[test]
    fn a_table_that_removals_fill_up_grows_within_its_reservation() {
        // Tables of 16,384 and 32,768 slots, of which 14,336 and 28,672 are used.
        for (room, positions, grows) in
            [(14_336, 12_000_u64, true), (28_672, 23_000, true), (14_336, 7_000, false)]
        {
            let budget = Budget::new(64 << 20, 0);
            let mut index = PositionIndex::new(&budget, "for a test").unwrap();
            index.reserve(room, mix).unwrap();
            (0..positions).for_each(|position| index.insert(mix(position), position));
            let first = index.table.allocation_size();
            for position in positions..20 * positions {
                let old = position - positions;
                assert_eq!(index.remove(mix(old), |found| found == old), Some(old));
                let before = index.table.allocation_size() as u64;
                index.reserve(1, mix).unwrap();
                let after = index.table.allocation_size() as u64;
                let most = if after == before { after } else { before + after };
                assert!(budget.peak() >= most, "{most} bytes in use, {} reserved", budget.peak());
                assert_eq!(index.bytes(), after);
                index.insert(mix(position), position);
            }
            assert_eq!(index.table.allocation_size() > first, grows, "{positions}");
            assert_eq!(index.len() as u64, positions);
        }
    }
}
