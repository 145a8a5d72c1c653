//! The bits of the external ids of a graph, by rank.
//!
//! Invariant: for vertices on disk, memory does not grow with the number of vertices, except in
//! [`GraphIds::all`].

use std::sync::{Arc, Mutex, PoisonError};

use brimful::execution::Error;
use brimful::graph::{Graph, Result};
use brimful::store::{Reservation, Resources};

/// Ids that are read at once.
const BLOCK: usize = 512;
/// The greatest number of blocks in memory: 16 MiB.
const MAX_BLOCKS: u64 = 4096;
/// Blocks take this part of the budget at most.
const PART_OF_BUDGET: u64 = 128;

/// The ids of the vertices of a graph.
pub(super) struct GraphIds {
    graph: Arc<Graph>,
    bits: Bits,
    _memory: Reservation,
}

enum Bits {
    /// Of all vertices.
    InMemory(Vec<u64>),
    /// Read from the graph. A block has one place, by its number.
    InBlocks(Mutex<Vec<Option<Block>>>),
    /// The ids follow one another.
    Computed,
}

const BYTES_OF_BLOCK: u64 = (BLOCK * 8 + size_of::<Option<Block>>()) as u64;

struct Block {
    number: u64,
    bits: Vec<u64>,
}

/// Bytes of the blocks of ids that are in memory at a time, about `wanted`, if the vertices are on
/// disk.
fn blocks(graph: &Graph, wanted: u64) -> u64 {
    let most = (wanted / BYTES_OF_BLOCK).clamp(1, MAX_BLOCKS);
    graph.vertices().div_ceil(BLOCK as u64).clamp(1, most) * BYTES_OF_BLOCK
}

impl GraphIds {
    /// The ids of `graph`, of all vertices in memory unless the vertices are `on_disk`.
    pub(super) fn new(
        graph: &Arc<Graph>,
        on_disk: bool,
        resources: &Resources,
    ) -> std::result::Result<Self, Error> {
        let vertices = graph.vertices();
        let bytes = match (graph.has_consecutive_ids(), on_disk) {
            (true, _) => 0,
            (false, true) => blocks(graph, resources.budget.limit() / PART_OF_BUDGET),
            (false, false) => 8 * vertices,
        };
        let memory = resources.budget.reserve(bytes, "for the ids of vertices")?;
        let bits = match (graph.has_consecutive_ids(), on_disk) {
            (true, _) => Bits::Computed,
            (false, true) => {
                let blocks = bytes / BYTES_OF_BLOCK;
                Bits::InBlocks(Mutex::new((0..blocks).map(|_| None).collect()))
            }
            (false, false) => {
                let mut bits = vec![0; vertices as usize];
                graph.external_ids(0, &mut bits)?;
                Bits::InMemory(bits)
            }
        };
        Ok(Self { graph: Arc::clone(graph), bits, _memory: memory })
    }

    /// The most bytes of memory of the ids in a budget that has `others` bytes for all else.
    pub(super) fn bytes_beside(graph: &Graph, on_disk: bool, others: u64) -> u64 {
        match (graph.has_consecutive_ids(), on_disk) {
            (true, _) => 0,
            // The part of a budget that is larger than `others` by this part.
            (false, true) => blocks(graph, others / (PART_OF_BUDGET - 1) + BYTES_OF_BLOCK),
            (false, false) => 8 * graph.vertices(),
        }
    }

    /// The number of vertices.
    pub(super) fn len(&self) -> u64 {
        self.graph.vertices()
    }

    /// The bits of the id of a rank; `None` for a rank beyond the graph.
    pub(super) fn get(&self, rank: u64) -> Result<Option<u64>> {
        if rank >= self.len() {
            return Ok(None);
        }
        match &self.bits {
            Bits::InMemory(bits) => Ok(bits.get(rank as usize).copied()),
            Bits::Computed => {
                let mut bits = [0];
                self.graph.external_ids(rank, &mut bits)?;
                Ok(Some(bits[0]))
            }
            Bits::InBlocks(blocks) => {
                let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
                let (number, at) = (rank / BLOCK as u64, rank as usize % BLOCK);
                let place = (number % blocks.len() as u64) as usize;
                let Some(slot) = blocks.get_mut(place) else { return Ok(None) };
                if slot.as_ref().is_none_or(|block| block.number != number) {
                    let start = number * BLOCK as u64;
                    let count = (self.len() - start).min(BLOCK as u64) as usize;
                    let mut bits = slot.take().map_or_else(Vec::new, |block| block.bits);
                    bits.resize(count, 0);
                    self.graph.external_ids(start, &mut bits)?;
                    *slot = Some(Block { number, bits });
                }
                Ok(slot.as_ref().and_then(|block| block.bits.get(at).copied()))
            }
        }
    }

    /// The bits of all ids, for work that needs them together.
    pub(super) fn all(&self) -> Result<Vec<u64>> {
        let mut bits = vec![0; self.len() as usize];
        self.graph.external_ids(0, &mut bits)?;
        Ok(bits)
    }
}
