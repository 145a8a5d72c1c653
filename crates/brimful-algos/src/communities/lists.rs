//! Lists of the neighbors of each vertex with their weights, made by the external sorter; in memory
//! if they fit, else in scratch.
//!
//! Invariant: a list has one entry for each neighbor, by ascending number, with the sum of the
//! weights, which are added in ascending order; the lists are symmetric. Memory stays within the
//! [`ListBudget`].

use std::cell::Cell;
use std::ops::Range;

use brimful_engine::plan::extent::Extent;
use brimful_engine::scratch::scratch_array;
use brimful_engine::traverse::scan::Scan;
use brimful_graph::Graph;
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_store::scratch::{ScratchArray, Windows};
use brimful_store::sorter::{self, Record, SortWriter};
use brimful_store::{Error as StoreError, Job, Resources};
use bytemuck::{Pod, Zeroable};

use crate::Result;
use crate::out_weights::scale_of_weights;
use crate::sorting::sorted_entries;

/// Entries read or written at once.
const BATCH: usize = 1 << 16;

/// Bytes of an entry of a list.
pub(super) const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// The least bytes for making and reading lists.
pub(super) fn min_bytes(workers: usize) -> u64 {
    sorter::minimum_bytes(workers, size_of::<Link>()) + 3 * BATCH as u64 * ENTRY_BYTES
}

/// Bytes for reading the edges of a graph.
pub(super) fn reading_bytes(extent: &Extent, workers: usize) -> u64 {
    Scan::minimum_bytes(extent, workers)
}

/// Bytes of lists with `entries` entries, of the lists of the next level, and of sorting these.
pub(super) fn bytes_of_levels(entries: u64) -> u64 {
    entries * (2 * ENTRY_BYTES + size_of::<Link>() as u64)
}

/// The numbers of the vertices of a graph in the lists, in the order in which they are visited:
/// consecutive internal ids are about n / golden ratio apart, modulo n. In the order of internal
/// ids, hubs would come first and be joined while all communities are still single vertices, which
/// yields less modularity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    vertices: u64,
    /// Coprime to the number of vertices, so that numbers are unique.
    stride: u64,
}

impl Order {
    pub(super) fn of(graph: &Graph) -> Self {
        let vertices = graph.connected();
        let golden = (vertices as f64 * 0.618_033_988_749_895) as u64;
        let is_coprime = |stride: &u64| common_divisor(*stride, vertices) == 1;
        Self { vertices, stride: (golden.max(1)..).find(is_coprime).unwrap_or(1) }
    }

    /// The number of a vertex.
    #[inline]
    pub(super) fn number(self, vertex: u32) -> u32 {
        // Both factors are below 2^32.
        (u64::from(vertex) * self.stride % self.vertices) as u32
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// A neighbor in a list.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed(4))]
struct Entry {
    neighbor: u32,
    weight: f64,
}

/// An entry to be sorted: vertex, neighbor, and the bits of the weight. Weights are not negative,
/// so their bits have the order of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Link {
    vertex: u32,
    neighbor: u32,
    weight: u64,
}

impl Record for Link {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        u64::from(self.vertex) << 32 | u64::from(self.neighbor)
    }
}

/// The memory for lists beyond the minimum, and the graph in whose scratch other lists lie.
pub(super) struct ListBudget<'r> {
    /// Bytes that no list has taken.
    bytes: Cell<u64>,
    graph: &'r Graph,
    resources: &'r Resources,
}

impl<'r> ListBudget<'r> {
    pub(super) fn new(bytes: u64, graph: &'r Graph, resources: &'r Resources) -> Self {
        Self { bytes: Cell::new(bytes), graph, resources }
    }

    pub(super) fn job(&self) -> &'r Job {
        &self.resources.job
    }

    /// Makes the lists of `vertices` vertices from the links that `push` pushes, at most
    /// `max_links`.
    fn sorted(
        &self,
        vertices: usize,
        max_links: u64,
        push: impl FnOnce(&mut Links<'_, '_, '_>) -> Result<()>,
    ) -> Result<Lists<'_>> {
        let (resources, job, free_bytes) = (self.resources, self.job(), self.bytes.get());
        let (sorter, is_resident) =
            sorted_entries(self.graph, max_links, ENTRY_BYTES, free_bytes, resources, |writer| {
                push(&mut Links { writer })
            })?;
        let len = sorter.len() as usize;
        let entries = scratch_array(is_resident, (len, BATCH), self.graph, resources)?;
        let bytes = if is_resident { len as u64 * ENTRY_BYTES } else { 0 };
        self.bytes.set(free_bytes - bytes);
        let reservation = ListReservation { bytes, free_bytes: &self.bytes };
        let mut lists = Lists { entries, lengths: vec![0; vertices], _reservation: reservation };
        let mut filling = Filling {
            entries: lists.entries.windows(),
            lengths: &mut lists.lengths,
            at: 0,
            batch: Vec::with_capacity(BATCH),
            last: None,
        };
        sorter.merge(&resources.pool, |links| {
            job.check()?;
            links.iter().try_for_each(|link| filling.push(*link))
        })?;
        filling.finish()?;
        Ok(lists)
    }
}

/// Receives the links of lists, in any order.
pub(super) struct Links<'w, 's, 'j> {
    writer: &'w mut SortWriter<'s, 'j, Link>,
}

impl Links<'_, '_, '_> {
    #[inline]
    pub(super) fn push(&mut self, vertex: u32, neighbor: u32, weight: f64) -> Result<()> {
        Ok(self.writer.push(Link { vertex, neighbor, weight: weight.to_bits() })?)
    }
}

/// Writes lists from sorted links.
struct Filling<'l> {
    entries: Windows<'l, Entry>,
    lengths: &'l mut [u32],
    /// Entries written.
    at: usize,
    batch: Vec<Entry>,
    /// The entry that the next link may add to, and its vertex.
    last: Option<(u32, Entry)>,
}

impl Filling<'_> {
    fn push(&mut self, link: Link) -> Result<(), StoreError> {
        let weight = f64::from_bits(link.weight);
        if let Some((vertex, entry)) = &mut self.last
            && (*vertex, entry.neighbor) == (link.vertex, link.neighbor)
        {
            entry.weight += weight;
            return Ok(());
        }
        self.end_entry()?;
        self.last = Some((link.vertex, Entry { neighbor: link.neighbor, weight }));
        Ok(())
    }

    fn end_entry(&mut self) -> Result<(), StoreError> {
        let Some((vertex, entry)) = self.last.take() else { return Ok(()) };
        self.lengths[vertex as usize] += 1;
        self.batch.push(entry);
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.entries.write(self.at, &self.batch)?;
        self.at += self.batch.len();
        self.batch.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.end_entry()?;
        self.flush()
    }
}

/// Memory of lists; dropping it returns the bytes to the budget.
struct ListReservation<'r> {
    bytes: u64,
    /// The bytes of the budget that no list has taken.
    free_bytes: &'r Cell<u64>,
}

impl Drop for ListReservation<'_> {
    fn drop(&mut self) {
        self.free_bytes.set(self.free_bytes.get() + self.bytes);
    }
}

/// The neighbors of each vertex.
pub(super) struct Lists<'r> {
    entries: ScratchArray<Entry>,
    /// Entries of each vertex.
    lengths: Vec<u32>,
    _reservation: ListReservation<'r>,
}

impl<'r> Lists<'r> {
    /// The lists of `graph`, with a link in each direction for an edge, and twice the weight for a
    /// self-loop. Weights are multiplied by one power of two, so that their sums do not overflow:
    /// only ratios of weights matter.
    pub(super) fn of(graph: &Graph, weighted: bool, budget: &'r ListBudget<'_>) -> Result<Self> {
        let shards = graph.forward();
        let (vertices, directed) = (graph.connected() as usize, graph.description().directed);
        let order = Order::of(graph);
        let max_links = super::listed_arcs(shards.edges(), directed);
        let scale = scale_of_weights(graph, weighted);
        budget.sorted(vertices, max_links, |links| {
            for_each_edge(shards, weighted, ("list", budget.job()), |source, target, weight| {
                let weight = weight * scale;
                let [source, target] = [source, target].map(|vertex| order.number(vertex as u32));
                match (source == target, directed) {
                    (true, _) => links.push(source, target, 2.0 * weight),
                    (false, false) => links.push(source, target, weight),
                    (false, true) => links
                        .push(source, target, weight)
                        .and_then(|()| links.push(target, source, weight)),
                }
            })
        })
    }

    /// The lists of the next level, which has `vertices` vertices, made from the links that `push`
    /// pushes, at most as many as these lists have entries.
    pub(super) fn next(
        &self,
        vertices: usize,
        budget: &'r ListBudget<'_>,
        push: impl FnOnce(&mut Links<'_, '_, '_>) -> Result<()>,
    ) -> Result<Self> {
        budget.sorted(vertices, self.entries(), push)
    }

    /// Number of vertices.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> u64 {
        self.lengths.iter().map(|length| u64::from(*length)).sum()
    }

    /// Calls `each(vertex, list)` for all vertices, ascending.
    pub(super) fn for_each(
        &self,
        job: &Job,
        mut each: impl FnMut(usize, List<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut buffer, mut vertex, mut start) = (Vec::new(), 0, 0);
        while vertex < self.lengths.len() {
            job.check()?;
            // Reads as many whole lists as fit; a longer list is read alone, in batches.
            let (mut end, mut last) = (start, vertex);
            while let Some(length) = self.lengths.get(last)
                && (end + *length as usize - start <= BATCH || last == vertex)
            {
                end += *length as usize;
                last += 1;
            }
            let whole = match end - start <= BATCH {
                true => Some(self.entries.slice(start..end, &mut buffer)?),
                false => None,
            };
            for vertex in vertex..last {
                let range = start..start + self.lengths[vertex] as usize;
                let entries = whole.map(|whole| {
                    let first = end - whole.len();
                    &whole[range.start - first..range.end - first]
                });
                each(vertex, List { entries, range: range.clone(), all_entries: &self.entries })?;
                start = range.end;
            }
            vertex = last;
        }
        Ok(())
    }
}

/// The neighbors of a vertex.
pub(super) struct List<'l> {
    /// `None` if the list is too long to be in memory at once.
    entries: Option<&'l [Entry]>,
    range: Range<usize>,
    /// The entries of all vertices.
    all_entries: &'l ScratchArray<Entry>,
}

impl List<'_> {
    /// Calls `each(neighbor, weight)` for all neighbors, ascending.
    #[inline]
    pub(super) fn each(&self, mut each: impl FnMut(usize, f64)) -> Result<()> {
        let mut pass = |entries: &[Entry]| {
            for Entry { neighbor, weight } in entries.iter().copied() {
                each(neighbor as usize, weight);
            }
        };
        if let Some(entries) = self.entries {
            pass(entries);
            return Ok(());
        }
        let mut buffer = Vec::new();
        for start in self.range.clone().step_by(BATCH) {
            let end = self.range.end.min(start + BATCH);
            pass(self.all_entries.slice(start..end, &mut buffer)?);
        }
        Ok(())
    }
}
