//! The division of the intervals of a graph among processes that make a run together.
//!
//! Each process has a contiguous range of intervals, and all have about equally much work.
//! Invariant: a run and its forecast divide a graph in the same way.

use std::ops::Range;
use std::sync::Arc;

use brimful_graph::read::shards::ShardFile;
use brimful_graph::{Graph, Index};

use crate::plan::extent::{Extent, present};
use crate::traverse::residency::segments_of_intervals;

/// The number of edges that take as long as collecting a vertex and sending its signal.
const EDGES_OF_A_VERTEX: u64 = 8;

/// The part of a graph that one process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionSize {
    /// Vertices.
    pub vertices: u64,
    /// Edges into them, in all indexes.
    pub edges: u64,
}

impl PartitionSize {
    /// The work of a superstep, in the time that an edge takes.
    pub(crate) fn work(self) -> u64 {
        self.edges + EDGES_OF_A_VERTEX * self.vertices
    }
}

/// The workers of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSize {
    /// Workers.
    pub workers: u64,
    /// The cores that they share, if all are on one machine; `None`: each has its own machine.
    pub cores: Option<u64>,
}

/// The workers of a cluster, and the parts of a graph that they own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The workers.
    pub(crate) size: ClusterSize,
    /// The parts; only the largest one if the graph is not built.
    pub(crate) parts: Vec<PartitionSize>,
}

impl Cluster {
    /// Workers that own parts of a graph on disk of this extent. A missing index is expected to be
    /// divided like the existing ones.
    pub fn of(size: ClusterSize, graph: &Graph, indexes: &[Index], extent: &Extent) -> Self {
        let edges = edges_of_intervals(graph, &present(graph, indexes));
        let grown = extent.edges() as f64 / edges.iter().sum::<u64>().max(1) as f64;
        let window = 1_usize << graph.description().interval_bits;
        let vertices = graph.connected() as usize;
        let place = |interval: usize| vertices.min(interval * window);
        let part = |range: Range<usize>| PartitionSize {
            vertices: (place(range.end) - place(range.start)) as u64,
            edges: (edges[range].iter().sum::<u64>() as f64 * grown) as u64,
        };
        let parts =
            balanced_ranges(&weights(&edges, window), size.workers as usize).into_iter().map(part);
        Self { size, parts: parts.collect() }
    }

    /// Workers that own equal parts of a graph of this extent.
    pub fn even(size: ClusterSize, extent: &Extent) -> Self {
        let intervals = extent.intervals().div_ceil(size.workers);
        let vertices = extent.vertices.min(intervals.saturating_mul(extent.interval()));
        let share = vertices as f64 / extent.vertices.max(1) as f64;
        let part = PartitionSize { vertices, edges: (extent.edges() as f64 * share) as u64 };
        Self { size, parts: vec![part] }
    }

    /// The most vertices of a part.
    pub(crate) fn max_vertices(&self) -> u64 {
        self.parts.iter().map(|part| part.vertices).max().unwrap_or(0)
    }

    /// The part with the most work.
    pub(crate) fn busiest(&self, work: impl Fn(PartitionSize) -> u64) -> PartitionSize {
        let busiest = self.parts.iter().max_by_key(|part| work(**part));
        busiest.copied().unwrap_or(PartitionSize { vertices: 0, edges: 0 })
    }

    /// The work on a machine, as if it had one process with all cores: that of the busiest worker,
    /// unless workers of `threads` threads share its cores.
    pub(crate) fn of_machine(&self, threads: usize, busiest: u64, whole: u64) -> u64 {
        let Some(cores) = self.size.cores else { return busiest };
        let at_once = (cores as f64 / threads as f64).clamp(1.0, self.size.workers as f64);
        whole.max((busiest as f64 * at_once) as u64)
    }
}

/// The intervals of each of `count` processes.
pub(crate) fn divide_intervals(
    graph: &Graph,
    indexes: &[&Arc<ShardFile>],
    count: usize,
) -> Vec<Range<usize>> {
    let window = 1 << graph.description().interval_bits;
    balanced_ranges(&weights(&edges_of_intervals(graph, indexes), window), count)
}

/// The edges into each interval, in all indexes.
fn edges_of_intervals(graph: &Graph, indexes: &[&Arc<ShardFile>]) -> Vec<u64> {
    let shards = segments_of_intervals(indexes.iter().copied(), graph.intervals() as usize);
    let edges = |(file, range): &(usize, Range<usize>)| {
        let segments = &indexes[*file].segments()[range.clone()];
        segments.iter().map(|segment| u64::from(segment.edges)).sum::<u64>()
    };
    shards.iter().map(|shard| shard.iter().map(edges).sum()).collect()
}

/// The work of each interval.
fn weights(edges: &[u64], window: usize) -> Vec<u64> {
    edges.iter().map(|&edges| PartitionSize { vertices: window as u64, edges }.work()).collect()
}

/// Cuts intervals of these weights into `count` ranges, as evenly as their order allows. Ranges may
/// be empty.
fn balanced_ranges(weights: &[u64], count: usize) -> Vec<Range<usize>> {
    let (mut start, mut left) = (0, weights.iter().sum::<u64>());
    (0..count)
        .map(|index| {
            let twice_even = 2 * left / (count - index) as u64;
            let (mut end, mut weight) = (start, 0);
            // The last interval belongs to this range if at least half of it still fits.
            while end < weights.len() && 2 * weight + weights[end] <= twice_even {
                weight += weights[end];
                end += 1;
            }
            if index + 1 == count {
                end = weights.len();
            }
            left -= weights[start..end].iter().sum::<u64>();
            std::mem::replace(&mut start, end)..end
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_dealt_evenly_and_in_order() {
        assert_eq!(balanced_ranges(&[1, 1, 1, 1], 2), [0..2, 2..4]);
        assert_eq!(balanced_ranges(&[9, 1, 1, 1, 1, 1], 3), [0..1, 1..4, 4..6]);
        assert_eq!(balanced_ranges(&[5], 3), [0..0, 0..1, 1..1]);
        assert_eq!(balanced_ranges(&[], 2), [0..0, 0..0]);
        for count in 1..9 {
            let parts = balanced_ranges(&[7, 1, 9, 2, 2, 40, 1, 3], count);
            assert_eq!((parts.len(), parts[0].start, parts[count - 1].end), (count, 0, 8));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
