//! Edges in memory, unpacked: the targets of each source, 4 bytes an edge, and 4 or 8 more for its
//! weight.
//!
//! For traversals that follow edges one by one, which a pass over packed shards cannot do.
//! Invariant: it contains every edge of the indexes once.

use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::huge::HugeArray;
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Resources};

use crate::error::Result;
use crate::plan::extent::{Extent, weight_bytes};
use crate::traverse::by_source::{EdgeBatch, EdgeOfSource, EdgesBySource, split, split_at_ends};

/// Weights of the edges, in the narrower type that holds all exactly.
enum EdgeWeights<F32, F64> {
    None,
    F32(F32),
    F64(F64),
}

/// The edges among the vertices of a graph, by source.
pub struct Adjacency {
    /// The position of the first edge of each source.
    starts: HugeArray<u32>,
    targets: HugeArray<u32>,
    weights: EdgeWeights<HugeArray<f32>, HugeArray<f64>>,
}

/// The sources that one thread unpacks.
struct Part<'p> {
    /// For each source the position of its next edge.
    next: &'p mut [u32],
    /// The position of the first edge.
    first: u32,
    targets: &'p mut [u32],
    weights: EdgeWeights<&'p mut [f32], &'p mut [f64]>,
}

impl Part<'_> {
    /// Adds the edges for which `is_counted` holds; false if there are more than were counted.
    fn add(&mut self, edges: &EdgeBatch<'_>, is_counted: impl Fn(EdgeOfSource) -> bool) -> bool {
        let Self { next, first, targets, weights } = self;
        edges.all(|edge| {
            if !is_counted(edge) {
                return true;
            }
            let position = &mut next[edge.at];
            let at = (*position - *first) as usize;
            *position += 1;
            let Some(target) = targets.get_mut(at) else { return false };
            *target = edge.target as u32;
            match weights {
                EdgeWeights::None => {}
                EdgeWeights::F32(weights) => weights[at] = edge.weight as f32,
                EdgeWeights::F64(weights) => weights[at] = edge.weight,
            }
            true
        })
    }
}

impl Adjacency {
    /// Bytes of memory of the edges of a whole graph; `None` if its vertices or edges exceed 32-bit
    /// numbers.
    pub fn memory_bytes(extent: &Extent) -> Option<u64> {
        let (vertices, edges) = (extent.vertices, extent.edges());
        let edge_bytes = 4 + if extent.weighted { u64::from(extent.weight_bytes) } else { 0 };
        (vertices.max(edges) < u64::from(u32::MAX)).then(|| 4 * (vertices + 1) + edges * edge_bytes)
    }

    /// Unpacks the edges of `indexes` of `graph`, from sources to targets in the direction of
    /// signals. The caller has reserved the memory, including that of reading them with one thread;
    /// each further thread reserves its own from the rest of the budget.
    ///
    /// # Errors
    /// Corruption and I/O errors when they occur.
    pub fn of(
        graph: &Graph,
        indexes: Vec<Arc<ShardFile>>,
        (weighted, self_loops): (bool, bool),
        resources: &Resources,
    ) -> Result<Self> {
        let types =
            indexes.iter().flat_map(|shards| shards.segments()).map(|segment| segment.weight_type);
        let width = weighted.then_some(weight_bytes(types));
        let by_source = EdgesBySource::new(graph, indexes, weighted, resources);
        let is_counted = |edge: EdgeOfSource| self_loops || edge.source != edge.target;
        let (starts, edges) = count_edges(&by_source, graph, is_counted)?;
        let targets = HugeArray::zeroed(edges as usize);
        let weights = match width {
            None => EdgeWeights::None,
            Some(4) => EdgeWeights::F32(HugeArray::zeroed(edges as usize)),
            Some(_) => EdgeWeights::F64(HugeArray::zeroed(edges as usize)),
        };
        let mut edges = Self { starts, targets, weights };
        edges.fill(&by_source, weighted, is_counted)?;
        Ok(edges)
    }

    /// Fills the lists, whose starts are counted.
    fn fill(
        &mut self,
        by_source: &EdgesBySource<'_>,
        weighted: bool,
        is_counted: impl Fn(EdgeOfSource) -> bool + Sync,
    ) -> Result<()> {
        let Self { starts, targets, weights } = self;
        let edges = targets.len();
        let next: Vec<_> = split(&mut starts[1..], by_source.ranges()).collect();
        let firsts: Vec<_> = next.iter().map(|next| next[0]).collect();
        let ends = || {
            let next = firsts.iter().skip(1).map(|first| *first as usize);
            next.chain([edges])
        };
        let weights_of: Vec<_> = match weights {
            EdgeWeights::None => firsts.iter().map(|_| EdgeWeights::None).collect(),
            EdgeWeights::F32(weights) => {
                split_at_ends(weights, ends()).map(EdgeWeights::F32).collect()
            }
            EdgeWeights::F64(weights) => {
                split_at_ends(weights, ends()).map(EdgeWeights::F64).collect()
            }
        };
        let targets_of = split_at_ends(targets, ends());
        let parts = next.into_iter().zip(&firsts).zip(targets_of).zip(weights_of);
        let parts = parts.map(|(((next, first), targets), weights)| Part {
            next,
            first: *first,
            targets,
            weights,
        });
        by_source.for_each(parts, weighted, |part, edges| part.add(&edges, &is_counted))?;
        // Each entry has advanced to the first edge of the next source.
        Ok(())
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

/// The position of the first edge of each source, one entry late, and the number of edges that
/// `is_counted`.
fn count_edges(
    by_source: &EdgesBySource<'_>,
    graph: &Graph,
    is_counted: impl Fn(EdgeOfSource) -> bool + Sync,
) -> Result<(HugeArray<u32>, u32)> {
    // The first entry stays zero.
    let mut starts: HugeArray<u32> = HugeArray::zeroed(graph.connected() as usize + 1);
    let counts = split(&mut starts[1..], by_source.ranges()).map(|counts| (counts, 0_u64));
    let parts = by_source.for_each(counts, false, |(counts, visited), edges| {
        edges.all(|edge| {
            counts[edge.at] += u32::from(is_counted(edge));
            *visited += 1;
            true
        })
    })?;
    let (expected, visited) =
        (by_source.edges(), parts.iter().map(|(_, visited)| *visited).sum::<u64>());
    if visited != expected {
        let problem = format!(
            "expected {} of the sources of segments, found {visited}",
            counted(expected, "edge")
        );
        return Err(StoreError::corrupt(graph.path(), 0, problem).into());
    }
    let mut edges = 0;
    for start in &mut starts[1..] {
        edges += std::mem::replace(start, edges);
    }
    Ok((starts, edges))
}

#[cfg(test)]
mod tests {
    use brimful_graph::build::import::{ImportOptions, Input, import};
    use brimful_graph::read::shards::Geometry;
    use brimful_store::Budget;

    use super::*;

    /// The edges of each source: target, and bits of the weight.
    type Edges = Vec<Vec<(usize, u64)>>;

    fn edges_of(adjacency: &Adjacency, vertices: u64) -> Edges {
        let of = |source| {
            let mut edges = Vec::new();
            adjacency.each(source, |target, weight| edges.push((target, weight.to_bits())));
            edges
        };
        (0..vertices as usize).map(of).collect()
    }

    #[test]
    fn any_number_of_threads_unpacks_the_same_lists() {
        let folder = tempfile::tempdir().unwrap();
        let (text, path) = (folder.path().join("edges.txt"), folder.path().join("graph"));
        let edge = |i: u64| (i * i % 97, i * 7919 % 101, i % 13);
        let lines: Vec<_> = (0..3000).map(edge).map(|(s, t, w)| format!("{s} {t} {w}\n")).collect();
        std::fs::write(&text, format!("source target weight\n{}", lines.concat())).unwrap();
        let resources = |budget: u64, threads| {
            Resources::new(Budget::new(budget, 0), Arc::default(), Some(threads)).unwrap()
        };
        let geometry =
            Geometry { interval_bits: 4, window_edges: 300, segment_edges: 32, unit_bytes: 400 };
        let options = ImportOptions { geometry, reverse: true, ..ImportOptions::default() };
        import(Input::EdgeList(vec![text]), &path, &options, &resources(1 << 28, 2)).unwrap();
        let graph = Graph::open(&path, &Arc::default()).unwrap();
        for self_loops in [false, true] {
            let unpacked = |budget, threads| {
                let indexes = vec![Arc::clone(graph.forward())];
                let resources = resources(budget, threads);
                let all = Adjacency::of(&graph, indexes, (true, self_loops), &resources).unwrap();
                edges_of(&all, graph.connected())
            };
            let one = unpacked(1 << 28, 1);
            let loops = (0..3000).map(edge).filter(|(source, target, _)| source == target).count();
            let count = 3000 - if self_loops { 0 } else { loops };
            assert_eq!(one.iter().map(Vec::len).sum::<usize>(), count);
            for (budget, threads) in [(1 << 28, 2), (1 << 28, 7), (1, 3)] {
                assert_eq!(unpacked(budget, threads), one, "{threads} threads");
            }
        }
    }
}
