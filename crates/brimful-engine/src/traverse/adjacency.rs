//! Edges in memory, unpacked: the targets of each source, 4 bytes an edge, and 4 or 8 more for its
//! weight.
//!
//! For traversals that follow edges one by one, which a pass over packed shards cannot do.
//! Invariant: it contains every edge of the indexes once.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::huge::HugeArray;
use brimful_store::{Error as StoreError, Job, Resources};

use crate::error::Result;
use crate::plan::extent::{Extent, weight_bytes};
use crate::traverse::interval_edges::{Reader, Shards};
use crate::traverse::residency::{ALL_INTERVALS, columns, unit_bytes};

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
    sources: Range<usize>,
    /// For each source first its number of edges, then the position of its next edge.
    places: &'p mut [u32],
    /// The position of the first edge.
    first: u32,
    targets: &'p mut [u32],
    weights: EdgeWeights<&'p mut [f32], &'p mut [f64]>,
}

impl Adjacency {
    /// Bytes of memory of the edges of a whole graph; `None` if its vertices or edges exceed 32-bit
    /// numbers.
    pub fn memory_bytes(extent: &Extent) -> Option<u64> {
        let (vertices, edges) = (extent.vertices, extent.edges());
        let edge_bytes = 4 + if extent.weighted { u64::from(extent.weight_bytes) } else { 0 };
        (vertices.max(edges) < u64::from(u32::MAX)).then(|| 4 * (vertices + 1) + edges * edge_bytes)
    }

    /// Bytes of memory for unpacking by one thread, in addition to the edges.
    pub fn reading_bytes(extent: &Extent) -> u64 {
        extent.columns().count() as u64 * extent.largest_unit() + extent.unpacked()
    }

    /// Unpacks the edges of `indexes` of `graph`, from sources to targets in the direction of
    /// signals. The caller has reserved the memory, including that of one reader. Each further
    /// thread reserves the memory of its reader from the rest of the budget.
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
        let bytes = reader_bytes(&indexes, weighted);
        let reader = || resources.budget.reserve(bytes, "to unpack edges with several threads");
        // Without the memory, fewer threads unpack.
        let reserved: Vec<_> = (1..resources.workers()).map_while(|_| reader().ok()).collect();
        let expected: u64 = indexes.iter().map(|shards| shards.edges()).sum();
        let vertices = graph.connected() as usize;
        let ranges = even_ranges(&indexes, vertices, reserved.len() + 1);
        let shards = Shards::new(graph, indexes, (weighted, 0), &ALL_INTERVALS);
        // The first entry stays zero.
        let mut starts: HugeArray<u32> = HugeArray::zeroed(vertices + 1);
        let parts = of_ranges(&ranges, &mut starts[1..]);
        let counts = each_part(parts, resources, |part, reader| {
            part.count(&shards, self_loops, &resources.job, reader)
        })?;
        let found: u64 = counts.iter().sum();
        if found != expected {
            let what =
                format!("expected {expected} edges of the sources of segments, found {found}");
            return Err(StoreError::corrupt(graph.path(), 0, what).into());
        }
        let mut edges = 0;
        for start in &mut starts[1..] {
            edges += std::mem::replace(start, edges);
        }
        let mut targets = HugeArray::zeroed(edges as usize);
        let mut weights = match width {
            None => EdgeWeights::None,
            Some(4) => EdgeWeights::F32(HugeArray::zeroed(edges as usize)),
            Some(_) => EdgeWeights::F64(HugeArray::zeroed(edges as usize)),
        };
        let mut parts = of_ranges(&ranges, &mut starts[1..]);
        let ends: Vec<_> = parts
            .iter()
            .skip(1)
            .map(|part| part.places[0] as usize)
            .chain([edges as usize])
            .collect();
        let targets_of = split(&mut targets, &ends);
        let weights_of: Vec<_> = match &mut weights {
            EdgeWeights::None => ends.iter().map(|_| EdgeWeights::None).collect(),
            EdgeWeights::F32(all) => split(all, &ends).map(EdgeWeights::F32).collect(),
            EdgeWeights::F64(all) => split(all, &ends).map(EdgeWeights::F64).collect(),
        };
        for ((part, targets), weights) in parts.iter_mut().zip(targets_of).zip(weights_of) {
            part.first = part.places[0];
            (part.targets, part.weights) = (targets, weights);
        }
        each_part(parts, resources, |part, reader| {
            part.fill(&shards, self_loops, &resources.job, reader)
        })?;
        // Each entry has advanced to the first edge of the next source.
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

impl Part<'_> {
    /// Counts the edges of each source; returns their number, including self-loops.
    fn count(
        &mut self,
        shards: &Shards,
        self_loops: bool,
        job: &Job,
        reader: &mut Reader,
    ) -> Result<u64> {
        let mut found = 0;
        for interval in 0..shards.intervals() {
            let shift = shards.window(interval).start;
            shards.each_from(&self.sources, interval, false, job, reader, &mut |edges| {
                edges.all(|source, target| {
                    let counted = self_loops || source as usize != shift + target;
                    let place = (source as usize).wrapping_sub(self.sources.start);
                    if let Some(edges) = self.places.get_mut(place) {
                        *edges += u32::from(counted);
                        found += 1;
                    }
                    true
                })
            })?;
        }
        Ok(found)
    }

    fn fill(
        &mut self,
        shards: &Shards,
        self_loops: bool,
        job: &Job,
        reader: &mut Reader,
    ) -> Result<()> {
        let weighted = !matches!(self.weights, EdgeWeights::None);
        for interval in 0..shards.intervals() {
            let shift = shards.window(interval).start;
            shards.each_from(&self.sources, interval, weighted, job, reader, &mut |edges| {
                let mut values = edges.weights.iter();
                edges.all(|source, target| {
                    let weight = values.next().copied().unwrap_or(1.0);
                    let counted = self_loops || source as usize != shift + target;
                    let place = (source as usize).wrapping_sub(self.sources.start);
                    let place = self.places.get_mut(place).filter(|_| counted);
                    let Some(place) = place else { return true };
                    let at = (*place - self.first) as usize;
                    *place += 1;
                    let Some(id) = self.targets.get_mut(at) else { return false };
                    *id = (shift + target) as u32;
                    match &mut self.weights {
                        EdgeWeights::None => {}
                        EdgeWeights::F32(weights) => weights[at] = weight as f32,
                        EdgeWeights::F64(weights) => weights[at] = weight,
                    }
                    true
                })
            })?;
        }
        Ok(())
    }
}

/// Calls `work` for each part, on all threads; returns the results.
fn each_part<R: Send>(
    parts: Vec<Part<'_>>,
    resources: &Resources,
    work: impl Fn(&mut Part<'_>, &mut Reader) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
    resources.share(parts.len(), |at, reader: &mut Reader| {
        work(&mut parts[at].lock().unwrap_or_else(PoisonError::into_inner), reader)
    })
}

/// The parts of the sources in `ranges`, without places for edges.
fn of_ranges<'p>(ranges: &[Range<usize>], places: &'p mut [u32]) -> Vec<Part<'p>> {
    let ends: Vec<_> = ranges.iter().map(|range| range.end).collect();
    let part = |(sources, places): (&Range<usize>, _)| Part {
        sources: sources.clone(),
        places,
        first: 0,
        targets: &mut [],
        weights: EdgeWeights::None,
    };
    ranges.iter().zip(split(places, &ends)).map(part).collect()
}

/// The parts of `all` that end at `ends`, which ascend.
fn split<'a, T>(all: &'a mut [T], ends: &[usize]) -> impl Iterator<Item = &'a mut [T]> {
    let (mut rest, mut start) = (all, 0);
    ends.iter().map(move |&end| {
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
    let unpacked = indexes.iter().map(|shards| shards.largest_unpacked()).max();
    indexes.iter().map(largest).sum::<u64>() + unpacked.unwrap_or(0)
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

    #[test]
    fn slices_are_split_at_their_ends() {
        let mut numbers = [1, 2, 3, 4, 5, 6];
        let parts: Vec<_> = split(&mut numbers, &[2, 2, 5, 6]).map(|part| part.to_vec()).collect();
        assert_eq!(parts, [vec![1, 2], vec![], vec![3, 4, 5], vec![6]]);
    }
}
