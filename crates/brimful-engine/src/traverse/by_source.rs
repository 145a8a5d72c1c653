//! The edges of indexes, dealt to threads by their sources.
//!
//! A thread alone writes the data of its sources, without locks, and in their order within each
//! interval. Invariant: every edge is passed once, to the thread of its source.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::{Reservation, Resources};

use crate::error::{Error, Result};
use crate::plan::extent::Extent;
use crate::traverse::interval_edges::{IntervalEdges, Reader, Shards};
use crate::traverse::residency::{ALL_INTERVALS, columns, unit_bytes};

/// The edges of a graph by source.
pub struct EdgesBySource<'e> {
    shards: Shards,
    /// The sources of each thread.
    ranges: Vec<Range<usize>>,
    edges: u64,
    resources: &'e Resources,
    _readers: Vec<Reservation>,
}

/// A batch of edges, some of which may belong to other threads.
pub struct EdgeBatch<'b> {
    edges: IntervalEdges<'b>,
    /// The sources of the thread.
    sources: &'b Range<usize>,
    /// The first target of the interval.
    first_target: usize,
}

/// An edge of a thread.
#[derive(Debug, Clone, Copy)]
pub struct EdgeOfSource {
    /// The place of the source among the sources of the thread.
    pub at: usize,
    /// The source.
    pub source: usize,
    /// The target.
    pub target: usize,
    /// The weight; 1 without weights.
    pub weight: f64,
}

impl<'e> EdgesBySource<'e> {
    /// Bytes of memory with one thread.
    pub fn reading_bytes(extent: &Extent) -> u64 {
        extent.columns().count() as u64 * extent.largest_unit() + extent.plain_segment_bytes()
    }

    /// The edges of `indexes` of `graph`, from sources to targets in the direction of signals. The
    /// caller has reserved the memory of one thread; each further thread reserves its own from the
    /// rest of the budget.
    pub fn new(
        graph: &Graph,
        indexes: Vec<Arc<ShardFile>>,
        weighted: bool,
        resources: &'e Resources,
    ) -> Self {
        let bytes = reader_bytes(&indexes, weighted);
        let reader = || resources.budget.reserve(bytes, "to unpack edges with several threads");
        // Without the memory, fewer threads unpack.
        let readers: Vec<_> = (1..resources.workers()).map_while(|_| reader().ok()).collect();
        Self {
            ranges: even_ranges(&indexes, graph.connected() as usize, readers.len() + 1),
            edges: indexes.iter().map(|shards| shards.edges()).sum(),
            shards: Shards::new(graph, indexes, weighted, 0, &ALL_INTERVALS),
            resources,
            _readers: readers,
        }
    }

    /// The number of edges.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// The sources of each thread: ascending ranges of all vertices.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Calls `batch(part, edges)` for all edges, a batch at a time. `parts` has one entry for each
    /// range; `part` is the entry of the range of the sources. Returns the parts.
    ///
    /// # Errors
    /// Errors of reading; corruption also if `batch` returns false because an edge is impossible.
    pub fn for_each<P: Send>(
        &self,
        parts: impl IntoIterator<Item = P>,
        weighted: bool,
        batch: impl Fn(&mut P, EdgeBatch<'_>) -> bool + Sync,
    ) -> Result<Vec<P>> {
        let (shards, job) = (&self.shards, &self.resources.job);
        let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
        self.resources.parallel_map(parts.len(), |index, reader: &mut Reader| {
            let mut part = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
            let sources = &self.ranges[index];
            (0..shards.intervals()).try_for_each(|interval| {
                let first_target = shards.window(interval).start;
                shards.each_from(sources, interval, weighted, job, reader, &mut |edges| {
                    batch(&mut part, EdgeBatch { edges, sources, first_target })
                })?;
                Ok::<_, Error>(())
            })
        })?;
        let parts = parts.into_iter().map(Mutex::into_inner);
        Ok(parts.map(|part| part.unwrap_or_else(PoisonError::into_inner)).collect())
    }
}

impl EdgeBatch<'_> {
    /// Calls `edge` for the edges of the thread, in order; false if a call returns false, or an end
    /// of an edge is not a vertex.
    #[inline]
    pub fn all(&self, mut edge: impl FnMut(EdgeOfSource) -> bool) -> bool {
        let (start, count) = (self.sources.start, self.sources.len());
        let mut edge_of_thread = |source: u64, target: usize, weight: f64| {
            let source = source as usize;
            let at = source.wrapping_sub(start);
            let target = self.first_target + target;
            at >= count || edge(EdgeOfSource { at, source, target, weight })
        };
        if self.edges.weights.is_empty() {
            return self.edges.all(|source, target| edge_of_thread(source, target, 1.0));
        }
        let mut weights = self.edges.weights.iter();
        self.edges.all(|source, target| {
            weights.next().is_some_and(|weight| edge_of_thread(source, target, *weight))
        })
    }
}

/// The parts of `all` that belong to `ranges`, which ascend and cover it.
pub fn split<'a, T>(
    all: &'a mut [T],
    ranges: &[Range<usize>],
) -> impl Iterator<Item = &'a mut [T]> {
    split_at_ends(all, ranges.iter().map(|range| range.end))
}

/// The parts of `all` that end at `ends`, which ascend.
pub fn split_at_ends<T>(
    all: &mut [T],
    ends: impl Iterator<Item = usize>,
) -> impl Iterator<Item = &mut [T]> {
    let (mut rest, mut start) = (all, 0);
    ends.map(move |end| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(end - start);
        (rest, start) = (after, end);
        part
    })
}

/// At most `count` ranges of the sources below `vertices`, none empty, with about as many edges
/// each.
fn even_ranges(indexes: &[Arc<ShardFile>], vertices: usize, count: usize) -> Vec<Range<usize>> {
    let segments = indexes.iter().flat_map(|shards| shards.segments());
    let mut ends: Vec<_> =
        segments.map(|segment| (segment.last_source, u64::from(segment.edges))).collect();
    ends.sort_unstable();
    let edges: u64 = ends.iter().map(|(_, edges)| edges).sum();
    let (mut ranges, mut start, mut before) = (Vec::new(), 0, 0);
    for (last, of_segment) in ends {
        before += of_segment;
        let end = (last as usize + 1).min(vertices);
        let is_full = before * count as u64 >= edges * (ranges.len() as u64 + 1);
        if is_full && end > start && ranges.len() + 1 < count {
            ranges.push(start..end);
            start = end;
        }
    }
    if start < vertices {
        ranges.push(start..vertices);
    }
    ranges
}

/// Bytes of the buffers of a reader of `indexes`.
fn reader_bytes(indexes: &[Arc<ShardFile>], weighted: bool) -> u64 {
    let largest = |shards: &Arc<ShardFile>| {
        let units = columns(shards, weighted).map(|file| unit_bytes(shards, file).max());
        units.flatten().sum::<u64>()
    };
    let plain = indexes.iter().map(|shards| shards.largest_unpacked()).max();
    indexes.iter().map(largest).sum::<u64>() + plain.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_split_at_their_ends() {
        let mut numbers = [1, 2, 3, 4, 5, 6];
        let parts = split_at_ends(&mut numbers, [2, 2, 5, 6].into_iter());
        assert_eq!(
            parts.map(|part| part.to_vec()).collect::<Vec<_>>(),
            [vec![1, 2], vec![], vec![3, 4, 5], vec![6]]
        );
    }
}
