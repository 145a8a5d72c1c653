//! Edges in memory, unpacked: the targets of each source, 4 bytes an edge, and 4 or 8 more for its
//! weight.
//!
//! For traversals that follow edges one by one, which a pass over packed shards cannot do.
//! Invariant: it contains every edge of the indexes once.

use std::ops::Range;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::Job;

use crate::error::Result;
use crate::plan::extent::{Extent, weight_bytes};
use crate::traverse::interval_edges::{Reader, Shards};
use crate::traverse::residency::ALL_INTERVALS;

/// Weights of the edges, in the narrower type that holds all exactly.
enum EdgeWeights {
    None,
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// The edges among the vertices of consecutive intervals, by source.
pub struct Adjacency {
    /// The position of the first edge of each source; sources are counted from the first vertex.
    starts: Vec<u32>,
    targets: Vec<u32>,
    weights: EdgeWeights,
}

impl Adjacency {
    /// Bytes of memory of the edges of a whole graph; `None` if its vertices or edges exceed 32-bit
    /// numbers.
    pub fn memory_bytes(extent: &Extent) -> Option<u64> {
        let (vertices, edges) = (extent.vertices, extent.edges());
        let edge_bytes = 4 + if extent.weighted { u64::from(extent.weight_bytes) } else { 0 };
        (vertices.max(edges) < u64::from(u32::MAX)).then(|| 4 * (vertices + 1) + edges * edge_bytes)
    }

    /// Bytes of memory for unpacking, in addition to the edges.
    pub fn reading_bytes(extent: &Extent) -> u64 {
        extent.columns().count() as u64 * extent.largest_unit() + extent.unpacked()
    }

    /// Unpacks the edges of `indexes` of `graph`, from sources to targets in the direction of
    /// signals.
    ///
    /// # Errors
    /// Corruption and I/O errors when they occur.
    pub fn of(
        graph: &Graph,
        indexes: Vec<Arc<ShardFile>>,
        (weighted, self_loops): (bool, bool),
        job: &Job,
    ) -> Result<Self> {
        let types =
            indexes.iter().flat_map(|shards| shards.segments()).map(|segment| segment.weight_type);
        let width = weighted.then_some(weight_bytes(types));
        let shards = Shards::new(graph, indexes, (weighted, 0), &ALL_INTERVALS);
        match shards.intervals() {
            0 => Ok(Self { starts: vec![0], targets: Vec::new(), weights: EdgeWeights::None }),
            count => Self::new(&shards, 0..count, (width, self_loops), job),
        }
    }

    /// Unpacks the edges with both ends in `intervals`, at least one interval.
    fn new(
        shards: &Shards,
        intervals: Range<usize>,
        (weight_bytes, self_loops): (Option<u8>, bool),
        job: &Job,
    ) -> Result<Self> {
        let first = shards.window(intervals.start).start;
        let count = shards.window(intervals.end - 1).end - first;
        let mut reader = Reader::default();
        // An entry holds first the number of edges of a source, then the position of its first
        // edge, and in the end that of the next source.
        let mut starts = vec![0_u32; count + 1];
        for interval in intervals.clone() {
            let shift = shards.window(interval).start;
            shards.each(interval, false, job, &mut reader, &mut |edges| {
                edges.all(|source, target| {
                    let counted = self_loops || source as usize != shift + target;
                    if let Some(edges) = starts.get_mut((source as usize).wrapping_sub(first)) {
                        *edges += u32::from(counted);
                    }
                    true
                })
            })?;
        }
        let mut edges = 0;
        for start in &mut starts {
            edges += std::mem::replace(start, edges);
        }
        let mut targets = vec![0_u32; edges as usize];
        let mut weights = match weight_bytes {
            None => EdgeWeights::None,
            Some(4) => EdgeWeights::F32(vec![0.0; edges as usize]),
            Some(_) => EdgeWeights::F64(vec![0.0; edges as usize]),
        };
        for interval in intervals {
            let shift = shards.window(interval).start;
            shards.each(interval, weight_bytes.is_some(), job, &mut reader, &mut |edges| {
                let mut values = edges.weights.iter();
                edges.all(|source, target| {
                    let weight = values.next().copied().unwrap_or(1.0);
                    let counted = self_loops || source as usize != shift + target;
                    let place =
                        starts.get_mut((source as usize).wrapping_sub(first)).filter(|_| counted);
                    let Some(place) = place else { return true };
                    let at = *place as usize;
                    *place += 1;
                    let Some(id) = targets.get_mut(at) else { return false };
                    *id = (shift + target - first) as u32;
                    match &mut weights {
                        EdgeWeights::None => {}
                        EdgeWeights::F32(weights) => weights[at] = weight as f32,
                        EdgeWeights::F64(weights) => weights[at] = weight,
                    }
                    true
                })
            })?;
        }
        // Each entry has advanced to the first edge of the next source.
        starts.rotate_right(1);
        starts[0] = 0;
        Ok(Self { starts, targets, weights })
    }

    /// The targets of `source`, one for each edge.
    #[inline]
    pub fn targets(&self, source: usize) -> &[u32] {
        &self.targets[self.starts[source] as usize..self.starts[source + 1] as usize]
    }

    /// Calls `edge(target, weight)` for the edges of `source`; returns their number.
    #[inline]
    pub fn each(&self, source: usize, mut edge: impl FnMut(usize, f64)) -> u64 {
        let range = self.starts[source] as usize..self.starts[source + 1] as usize;
        let targets = self.targets[range.clone()].iter().map(|target| *target as usize);
        let count = range.len() as u64;
        match &self.weights {
            EdgeWeights::None => targets.for_each(|target| edge(target, 1.0)),
            EdgeWeights::F32(weights) => targets
                .zip(&weights[range])
                .for_each(|(target, weight)| edge(target, f64::from(*weight))),
            EdgeWeights::F64(weights) => {
                targets.zip(&weights[range]).for_each(|(target, weight)| edge(target, *weight));
            }
        }
        count
    }
}
