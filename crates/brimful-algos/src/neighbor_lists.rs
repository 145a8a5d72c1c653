//! The neighbors of each vertex, ascending by internal id, made by the external sorter; in memory
//! if they fit, else in scratch.
//!
//! Invariant: symmetric lists have each neighbor once, whatever the direction of edges, and the
//! list of a vertex with a self-loop contains the vertex. Outgoing lists have an entry for each
//! arc. In weighted lists, entries of equal neighbors ascend by the bits of their weights.

use brimful_engine::plan::extent::Extent;
use brimful_engine::scratch::scratch_array;
use brimful_engine::traverse::scan::Scan;
use brimful_graph::Graph;
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_store::scratch::{ScratchArray, Windows};
use brimful_store::sorter::{self, Record, Sorter};
use brimful_store::{Error as StoreError, Resources};
use bytemuck::{Pod, Zeroable};

use crate::sorting::sorted_entries;
use crate::{Error, Result};

/// Entries written at once.
const BATCH: usize = 1 << 16;
/// Bytes of an entry, and of one that is sorted.
const ENTRY_BYTES: u64 = size_of::<u32>() as u64;
const SORTED_BYTES: u64 = size_of::<u64>() as u64;

/// A list at least this many times longer than the other is searched instead of scanned.
const MUCH_LONGER: usize = 16;

/// The edges that are in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Neighbors in either direction.
    Symmetric,
    /// Arcs that leave a vertex.
    Outgoing,
    /// Arcs that leave a vertex, with their weights.
    Weighted,
}

impl Listed {
    /// Bytes of an entry, and of one that is sorted.
    fn bytes(self) -> [u64; 2] {
        let weight = if self == Self::Weighted { size_of::<f64>() as u64 } else { 0 };
        [ENTRY_BYTES + weight, SORTED_BYTES + weight]
    }

    /// The maximum number of entries in the lists of a graph with `arcs` arcs.
    pub(crate) fn max_entries(self, arcs: u64, directed: bool) -> u64 {
        if directed && self == Self::Symmetric { 2 * arcs } else { arcs }
    }

    /// Bytes of memory and of scratch for lists of `entries` entries, in a budget with `left` bytes
    /// beyond the minimum.
    pub(crate) fn forecast_bytes(self, entries: u64, left: u64) -> (u64, u64) {
        let all = entries * self.bytes().iter().sum::<u64>();
        (left.min(all), all.saturating_sub(left))
    }
}

/// An arc to be sorted. Its ends are one word: the vertex of the list in the upper 32 bits, the
/// neighbor in the lower 32.
trait SortedArc: Record {
    fn new(ends: u64, weight: f64) -> Self;
    fn ends(&self) -> u64;
    fn weight(&self) -> f64;
}

impl SortedArc for u64 {
    fn new(ends: u64, _: f64) -> Self {
        ends
    }

    fn ends(&self) -> u64 {
        *self
    }

    fn weight(&self) -> f64 {
        1.0
    }
}

/// An arc with the bits of its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct WeightedArc {
    ends: u64,
    weight: u64,
}

impl Record for WeightedArc {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.ends
    }
}

impl SortedArc for WeightedArc {
    fn new(ends: u64, weight: f64) -> Self {
        Self { ends, weight: weight.to_bits() }
    }

    fn ends(&self) -> u64 {
        self.ends
    }

    fn weight(&self) -> f64 {
        f64::from_bits(self.weight)
    }
}

/// Lists of neighbors.
pub(crate) struct NeighborLists {
    /// The position of the first entry of each vertex; at the end, the number of all entries.
    starts: Vec<u64>,
    entries: ScratchArray<u32>,
    /// Empty without weights.
    weights: ScratchArray<f64>,
}

impl NeighborLists {
    /// The minimum bytes for making lists, besides those for reading the graph.
    pub(crate) fn array_bytes(vertices: u64, workers: usize) -> u64 {
        (vertices + 1) * size_of::<u64>() as u64
            + BATCH as u64 * (ENTRY_BYTES + size_of::<f64>() as u64)
            + sorter::minimum_bytes(workers, size_of::<WeightedArc>())
    }

    /// The minimum bytes for making lists.
    pub(crate) fn min_bytes(extent: &Extent, workers: usize) -> u64 {
        Self::array_bytes(extent.vertices, workers) + Scan::minimum_bytes(extent, workers)
    }

    /// The lists of `graph`, in `bytes` of memory beyond the minimum.
    pub(crate) fn of(
        graph: &Graph,
        listed: Listed,
        bytes: u64,
        resources: &Resources,
    ) -> Result<Self> {
        match listed {
            Listed::Weighted => Self::sorted::<WeightedArc>(graph, listed, bytes, resources),
            _ => Self::sorted::<u64>(graph, listed, bytes, resources),
        }
    }

    fn sorted<A: SortedArc>(
        graph: &Graph,
        listed: Listed,
        bytes: u64,
        resources: &Resources,
    ) -> Result<Self> {
        if graph.connected() >= u64::from(u32::MAX) {
            let problem = "lists of neighbors support fewer than 2^32 vertices with edges";
            return Err(Error::Usage(problem.into()));
        }
        let both_ways = graph.description().directed && listed == Listed::Symmetric;
        let max_entries = listed.max_entries(graph.forward().edges(), both_ways);
        let [entry_bytes, ..] = listed.bytes();
        let (sorter, is_resident) =
            sorted_entries::<A>(graph, max_entries, entry_bytes, bytes, resources, |arcs| {
                let (weighted, phase) = (listed == Listed::Weighted, ("list", &*resources.job));
                for_each_edge(graph.forward(), weighted, phase, |source, target, weight| {
                    arcs.push(A::new(source << u32::BITS | target, weight))?;
                    if both_ways && source != target {
                        arcs.push(A::new(target << u32::BITS | source, weight))?;
                    }
                    Ok(())
                })
            })?;
        let len = sorter.len() as usize;
        let weighted = if listed == Listed::Weighted { len } else { 0 };
        let mut entries = scratch_array(is_resident, (len, BATCH), graph, resources)?;
        let mut weights = scratch_array(is_resident, (weighted, BATCH), graph, resources)?;
        let mut starts = vec![0_u64; graph.connected() as usize + 1];
        let filling = Filling {
            starts: &mut starts,
            entries: entries.windows(),
            weights: (weighted > 0).then(|| weights.windows()),
            is_set: listed == Listed::Symmetric,
        };
        filling.fill(sorter, resources)?;
        Ok(Self { starts, entries, weights })
    }

    /// True if the entries are in memory.
    pub(crate) fn is_resident(&self) -> bool {
        self.entries.is_resident()
    }

    /// Bytes of memory that the entries take; 0 if they are in scratch.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let (entries, weights) = (self.entries.len() as u64, self.weights.len() as u64);
        let all = entries * ENTRY_BYTES + weights * size_of::<f64>() as u64;
        if self.is_resident() { all } else { 0 }
    }

    /// Number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The position of the first entry of a vertex.
    #[inline]
    pub(crate) fn start(&self, vertex: u32) -> usize {
        self.starts[vertex as usize] as usize
    }

    /// Number of entries of a vertex.
    #[inline]
    pub(crate) fn count(&self, vertex: u32) -> usize {
        (self.starts[vertex as usize + 1] - self.starts[vertex as usize]) as usize
    }

    /// The neighbors of a vertex, ascending; `buffer` holds them if they are on disk.
    #[inline]
    pub(crate) fn of_vertex<'l>(
        &'l self,
        vertex: u32,
        buffer: &'l mut Vec<u32>,
    ) -> Result<&'l [u32]> {
        let start = self.start(vertex);
        Ok(self.entries.slice(start..start + self.count(vertex), buffer)?)
    }

    /// The weights of the entries of a vertex; only for weighted lists.
    pub(crate) fn weights_of<'l>(
        &'l self,
        vertex: u32,
        buffer: &'l mut Vec<f64>,
    ) -> Result<&'l [f64]> {
        let start = self.start(vertex);
        Ok(self.weights.slice(start..start + self.count(vertex), buffer)?)
    }
}

/// Calls `each(place in one, place in other)` for every vertex in both lists, which must ascend.
#[inline]
pub(crate) fn common(one: &[u32], other: &[u32], mut each: impl FnMut(usize, usize)) {
    let is_swapped = one.len() > other.len();
    let (short, long) = if is_swapped { (other, one) } else { (one, other) };
    let (searches, mut at) = (long.len() / MUCH_LONGER >= short.len(), 0);
    for (place, vertex) in short.iter().enumerate() {
        let rest = &long[at..];
        at += match searches {
            true => rest.partition_point(|other| other < vertex),
            false => rest.iter().take_while(|other| *other < vertex).count(),
        };
        if long.get(at) == Some(vertex) {
            if is_swapped { each(at, place) } else { each(place, at) }
        }
    }
}

/// Writes entries, and the positions of lists.
struct Filling<'f> {
    starts: &'f mut [u64],
    entries: Windows<'f, u32>,
    weights: Option<Windows<'f, f64>>,
    /// True if repeated arcs are one entry.
    is_set: bool,
}

impl Filling<'_> {
    fn fill<A: SortedArc>(self, sorter: Sorter<'_, A>, resources: &Resources) -> Result<()> {
        let Self { starts, entries, weights, is_set } = self;
        let (mut batch, mut of_batch) = (Vec::with_capacity(BATCH), Vec::new());
        let (mut at, mut last) = (0, None);
        let mut flush = |batch: &mut Vec<u32>, of_batch: &mut Vec<f64>| {
            entries.write(at, batch)?;
            if let Some(weights) = &weights {
                weights.write(at, of_batch)?;
            }
            at += batch.len();
            batch.clear();
            of_batch.clear();
            Ok::<(), StoreError>(())
        };
        sorter.merge(&resources.pool, |arcs| {
            resources.job.check()?;
            for arc in arcs {
                let ends = arc.ends();
                if is_set && last == Some(ends) {
                    continue;
                }
                last = Some(ends);
                starts[(ends >> u32::BITS) as usize + 1] += 1;
                batch.push(ends as u32);
                of_batch.extend(weights.as_ref().map(|_| arc.weight()));
                if batch.len() == BATCH {
                    flush(&mut batch, &mut of_batch)?;
                }
            }
            Ok::<(), StoreError>(())
        })?;
        flush(&mut batch, &mut of_batch)?;
        let mut total = 0;
        for start in starts {
            total += *start;
            *start = total;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_is_found_in_lists_of_any_lengths() {
        let long: Vec<u32> = (0..1000).map(|at| at * 3).collect();
        for (one, other, expected) in [
            (&[][..], &[1, 2][..], &[][..]),
            (&[1, 3, 5], &[2, 3, 4, 5], &[3, 5]),
            (&[0, 4, 2997], &long, &[0, 2997]),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                let mut found = Vec::new();
                common(one, other, |at, at_other| {
                    assert_eq!(one[at], other[at_other]);
                    found.push(one[at]);
                });
                assert_eq!(found, expected);
            }
        }
    }
}
