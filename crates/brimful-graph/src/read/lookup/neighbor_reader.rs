//! Reads the edges of many vertices in batches.

use std::sync::Arc;

use super::arrays::Nearby;
use super::{Array, Direction, Lookup};
use crate::edges::EdgeBatch;
use crate::error::Result;

/// Reads the edges of many vertices, at most 131,072 vertices at a time.
#[derive(Debug)]
pub struct NeighborReader {
    lookup: Arc<Lookup>,
    vertices: Vec<u64>,
    direction: Direction,
    weighted: bool,
    at: usize,
    /// The maximum number of vertices of the next batch.
    count: usize,
}

/// The maximum number of vertices whose edges are read at once: of the first batch, and of later
/// ones if the edges of the one before filled at most half a batch.
const BATCH_VERTICES: [usize; 2] = [1 << 14, 1 << 17];
/// If degrees are known, a batch of several vertices has at most this many edges.
const BATCH_EDGES: u64 = 1 << 18;

impl NeighborReader {
    /// A reader of the edges of `vertices` (internal ids), in that order.
    pub fn new(
        lookup: Arc<Lookup>,
        vertices: Vec<u64>,
        direction: Direction,
        weighted: bool,
    ) -> Self {
        Self { lookup, vertices, direction, weighted, at: 0, count: BATCH_VERTICES[0] }
    }

    /// Replaces `batch` by the edges of the next vertices, with external ids; false at the end.
    ///
    /// # Errors
    /// As [`Lookup::neighbors`].
    pub fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        let rest = &self.vertices[self.at..];
        if rest.is_empty() {
            return Ok(false);
        }
        let mut count = rest.len().min(self.count);
        let mut distinct = rest[..count].to_vec();
        distinct.sort_unstable();
        while count > 1 {
            let edges = self.lookup.wanted(&distinct, self.direction)?;
            if edges <= BATCH_EDGES / 2 {
                self.count = (count * 2).min(BATCH_VERTICES[1]);
            }
            if edges <= BATCH_EDGES || edges == u64::MAX {
                break;
            }
            count = count.div_ceil(2);
            // At least two, from which later batches grow again.
            self.count = count.max(2);
            distinct.clear();
            distinct.extend(&rest[..count]);
            distinct.sort_unstable();
        }
        let places = places(&rest[..count]);
        self.at += count;
        distinct.dedup();
        let edges = self.lookup.collect_in_parallel(&distinct, self.direction, self.weighted)?;
        let mut ids = Nearby::new(&self.lookup, Array::Ids);
        let mut lists = Vec::with_capacity(distinct.len());
        let mut begin = 0;
        for (place, vertex) in distinct.iter().enumerate() {
            let list = edges[begin..].iter().take_while(|(other, _, _)| *other as usize == place);
            let end = begin + list.count();
            lists.push((ids.of(*vertex)?, begin..end));
            begin = end;
        }
        for place in places {
            let (own, list) = &lists[place as usize];
            for &(_, other, weight) in &edges[list.clone()] {
                let (source, target) = match self.direction {
                    Direction::Out => (*own, other),
                    Direction::In => (other, *own),
                };
                batch.sources.push(source);
                batch.targets.push(target);
                batch.weights.extend(self.weighted.then_some(weight));
            }
        }
        Ok(true)
    }
}

/// The place of each of `vertices` among the distinct ones in ascending order.
fn places(vertices: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..vertices.len() as u32).collect();
    order.sort_unstable_by_key(|at| vertices[*at as usize]);
    let mut places = vec![0; vertices.len()];
    let (mut place, mut last) = (0, None);
    for at in order {
        let vertex = vertices[at as usize];
        place += u32::from(last.is_some_and(|last| last != vertex));
        (places[at as usize], last) = (place, Some(vertex));
    }
    places
}
