//! The neighbours of each vertex, whatever the direction of edges: each once, ascending by internal
//! id, made by the external sorter; in memory where they fit, else in scratch.
//!
//! Invariant: lists are symmetric; a vertex with a self-loop is in its own list.

use brimful_engine::RunOptions;
use brimful_engine::plan::extent::Extent;
use brimful_engine::traverse::scan::Scan;
use brimful_graph::read::segment_reader::SegmentReader;
use brimful_graph::{Graph, Index};
use brimful_store::scratch::ScratchArray;
use brimful_store::sorter::{self, Sorter};
use brimful_store::{Error as StoreError, Resources};

use crate::{Error, Result};

/// Entries written at once.
const BATCH: usize = 1 << 16;
/// Bytes of an entry, and of one that is sorted.
const ENTRY_BYTES: u64 = size_of::<u32>() as u64;
const SORTED_BYTES: u64 = size_of::<u64>() as u64;

/// A list this many times longer than the other is searched.
const MUCH_LONGER: usize = 16;

/// Lists of neighbours.
pub(crate) struct NeighbourLists {
    /// The first entry of each vertex, and the number of all.
    starts: Vec<u64>,
    entries: ScratchArray<u32>,
}

/// Entries of the lists of a graph with so many arcs, at most.
pub(crate) fn most_entries(arcs: u64, directed: bool) -> u64 {
    if directed { 2 * arcs } else { arcs }
}

/// Bytes of scratch and of memory for lists of so many entries in a budget with `left` bytes beyond
/// the least.
pub(crate) fn forecast_bytes(entries: u64, left: u64) -> (u64, u64) {
    let all = entries * (ENTRY_BYTES + SORTED_BYTES);
    (left.min(all), all.saturating_sub(left))
}

impl NeighbourLists {
    /// The least bytes for making lists, beside reading the graph.
    pub(crate) fn array_bytes(vertices: u64, workers: usize) -> u64 {
        (vertices + 1) * size_of::<u64>() as u64
            + BATCH as u64 * ENTRY_BYTES
            + sorter::minimum_bytes(workers, size_of::<u64>())
    }

    /// The least bytes for making lists.
    pub(crate) fn least_bytes(extent: &Extent, workers: usize) -> u64 {
        Self::array_bytes(extent.vertices, workers) + Scan::minimum_bytes(extent, workers)
    }

    /// The lists of `graph`, in `bytes` of memory beyond the least.
    pub(crate) fn of(graph: &Graph, bytes: u64, resources: &Resources) -> Result<Self> {
        let shards = graph
            .shards(Index::In)
            .ok_or_else(|| Error::Usage("the graph has no in-shards".into()))?;
        if graph.connected() >= u64::from(u32::MAX) {
            let what = "lists of neighbours are for less than 2^32 vertices with edges";
            return Err(Error::Usage(what.into()));
        }
        let (job, directed) = (&resources.job, graph.description().directed);
        let most = most_entries(shards.edges(), directed);
        // In memory if that leaves a sort of half of the entries there.
        let is_resident = bytes >= most * (ENTRY_BYTES + SORTED_BYTES / 2);
        let least = sorter::minimum_bytes(resources.workers(), size_of::<u64>());
        let sorting = least + if is_resident { bytes - most * ENTRY_BYTES } else { bytes };
        let options = RunOptions::default();
        let sorter = options.in_scratch(graph, |folder| {
            Sorter::<u64>::new(folder, sorting, resources.workers(), job)
        })?;
        let (mut writer, mut reader) = (sorter.writer(), SegmentReader::default());
        job.begin("list", shards.edges());
        for (index, segment) in shards.segments().iter().enumerate() {
            job.check()?;
            let mut pushed = Ok(());
            reader.for_each_edge(shards, index, |source, target, _| {
                if pushed.is_ok() {
                    pushed = writer.push(source << u32::BITS | target);
                }
                if pushed.is_ok() && directed && source != target {
                    pushed = writer.push(target << u32::BITS | source);
                }
            })?;
            pushed?;
            job.advance(u64::from(segment.edges));
        }
        writer.finish()?;
        let len = sorter.len() as usize;
        let mut entries = match is_resident {
            true => ScratchArray::resident(len, BATCH),
            false => {
                options.in_scratch(graph, |folder| ScratchArray::paged(len, BATCH, folder, job))?
            }
        };
        let mut starts = vec![0_u64; graph.connected() as usize + 1];
        fill(&mut starts, &mut entries, sorter, resources)?;
        Ok(Self { starts, entries })
    }

    /// Bytes of memory that entries take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        if self.entries.is_resident() { self.entries.len() as u64 * ENTRY_BYTES } else { 0 }
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

    /// Number of neighbours.
    #[inline]
    pub(crate) fn count(&self, vertex: u32) -> usize {
        (self.starts[vertex as usize + 1] - self.starts[vertex as usize]) as usize
    }

    /// The neighbours of a vertex, ascending; `buffer` holds them if they are on disk.
    #[inline]
    pub(crate) fn of_vertex<'l>(
        &'l self,
        vertex: u32,
        buffer: &'l mut Vec<u32>,
    ) -> Result<&'l [u32]> {
        let start = self.start(vertex);
        Ok(self.entries.slice(start..start + self.count(vertex), buffer)?)
    }
}

/// Calls `each(place in one, place in other)` for all that is in both ascending lists, ascending.
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

/// Writes entries, each once, and the positions of lists.
fn fill(
    starts: &mut [u64],
    entries: &mut ScratchArray<u32>,
    sorter: Sorter<'_, u64>,
    resources: &Resources,
) -> Result<()> {
    let out = entries.windows();
    let (mut batch, mut at, mut last) = (Vec::with_capacity(BATCH), 0, None);
    sorter.merge(&resources.pool, |pairs| {
        resources.job.check()?;
        for &pair in pairs {
            if last == Some(pair) {
                continue;
            }
            last = Some(pair);
            starts[(pair >> u32::BITS) as usize + 1] += 1;
            batch.push(pair as u32);
            if batch.len() == BATCH {
                out.write(at, &batch)?;
                at += batch.len();
                batch.clear();
            }
        }
        Ok::<(), StoreError>(())
    })?;
    out.write(at, &batch)?;
    let mut total = 0;
    for start in starts {
        total += *start;
        *start = total;
    }
    Ok(())
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
