//! Reads numbers of vertices, such as ids and sums of degrees, from the blocks of their arrays.
//!
//! Invariant: a [`Nearby`] has at most [`SLOTS`] unpacked blocks.

use std::ops::Range;
use std::sync::Arc;

use super::{Array, Lookup};
use crate::codec::BATCH;
use crate::error::{Error, Result};
use crate::ids::ascending::{BLOCK_NUMBERS, PackedBlock};

/// Blocks in use at a time.
const SLOTS: usize = 8;

/// Numbers of vertices that are mostly close together.
pub(super) struct Nearby<'l> {
    lookup: &'l Lookup,
    array: Array,
    /// Recent blocks, in a slot by block number modulo the number of slots.
    slots: [Option<NearbyBlock>; SLOTS],
    /// The slot of the block that was used last, and its range of vertices.
    last: (usize, Range<u64>),
}

/// A block whose batches are unpacked one by one, until that has cost as much as all at once.
pub(super) struct NearbyBlock {
    index: usize,
    packed: Arc<PackedBlock>,
    uses: usize,
    unpacked: Vec<u64>,
}

impl NearbyBlock {
    pub(super) fn new(index: usize, packed: Arc<PackedBlock>) -> Self {
        Self { index, packed, uses: 0, unpacked: Vec::new() }
    }

    /// Counts a use, and unpacks a block that is used often; true if it is unpacked.
    #[inline]
    fn unpack_if_used_often(&mut self) -> bool {
        if self.unpacked.is_empty() {
            self.uses += 1;
            if self.uses > BLOCK_NUMBERS / BATCH {
                self.unpacked = self.packed.unpacked();
            }
        }
        !self.unpacked.is_empty()
    }

    /// The place of `number` in the array; `None` if the block does not contain it.
    pub(super) fn find(&mut self, number: u64) -> Option<u64> {
        if !self.unpack_if_used_often() {
            return self.packed.find(number);
        }
        self.unpacked.binary_search(&number).ok().map(|at| self.packed.start() + at as u64)
    }

    /// The number at `place` in the array, `at` in the block.
    #[inline]
    fn get(&mut self, place: u64, at: usize) -> Option<u64> {
        if !self.unpack_if_used_often() {
            return self.packed.get(place);
        }
        self.unpacked.get(at).copied()
    }
}

impl<'l> Nearby<'l> {
    pub(super) fn new(lookup: &'l Lookup, array: Array) -> Self {
        Self { lookup, array, slots: Default::default(), last: (0, 0..0) }
    }

    /// The number of `vertex`.
    #[inline]
    pub(super) fn of(&mut self, vertex: u64) -> Result<u64> {
        if !self.last.1.contains(&vertex) && !self.load(vertex)? {
            let mut id = [0];
            self.lookup.graph.external_ids(vertex, &mut id)?;
            return Ok(id[0]);
        }
        let (slot, places) = &self.last;
        let at = (vertex - places.start) as usize;
        let number = self.slots[*slot].as_mut().and_then(|block| block.get(vertex, at));
        number.ok_or_else(|| Error::no_such_rank(vertex))
    }

    /// Loads the block of `vertex`; false if ids are consecutive, and in no file.
    fn load(&mut self, vertex: u64) -> Result<bool> {
        let graph = &self.lookup.graph;
        let file = match self.array {
            Array::DegreeSums => graph.degree_sums(),
            Array::Ids => match graph.ids_file() {
                Some(file) => file,
                None => return Ok(false),
            },
        };
        let index = file.block_of(vertex);
        let slot = index % self.slots.len();
        if self.slots[slot].as_ref().is_none_or(|block| block.index != index) {
            let packed = self.lookup.block(self.array, file, index)?;
            self.slots[slot] = Some(NearbyBlock::new(index, packed));
        }
        self.last = (slot, file.places(index));
        Ok(true)
    }
}
