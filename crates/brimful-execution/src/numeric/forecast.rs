//! Forecast of a numeric program on a store, before it is loaded.
//!
//! The size of records is measured by writing one of average degree; the rest follows from the
//! limits of loading, stores and lists.

use brimful_collections::DiskMap;
use brimful_engine::plan::needs::Needs;
use brimful_graph::Graph;
use brimful_store::sorter::Sorting;
use brimful_vertices::serializer::named;
use brimful_vertices::vertex::VertexParts;
use brimful_vertices::{Edges, StoreKind, Stored, Vertex, index_bytes};

use crate::error::Result;
use crate::from_graph::{EdgeData, LoadingShares, StoreOptions, Tagged, edge_bytes, partitions_of};
use crate::hubs::{Copies, bytes_of_graph};
use crate::numeric::parts::{SignalWords, StateWords};
use crate::numeric::sizes::{BySize, by_size};
use crate::{ListLocation, run};

/// The description of a planned run on a store.
#[derive(Clone, Copy)]
pub struct Planned<'p> {
    /// The store.
    pub stores: StoreOptions<'p>,
    /// Name of the serializer; `None`: `native`.
    pub serializer: Option<&'p str>,
    /// The location of the lists.
    pub lists: ListLocation,
    /// Number of all vertices, and of those with edges.
    pub vertices: (u64, u64),
    /// Edges of all indexes that the program walks.
    pub edges: u64,
    /// True if the graph is directed.
    pub directed: bool,
    /// True if the run uses weights.
    pub weighted: bool,
    /// Compute threads.
    pub workers: usize,
    /// Budget in bytes, beyond those of the process.
    pub limit: u64,
    /// Bytes of the copies of the largest vertices: [`hub_bytes`].
    pub hubs: u64,
}

/// The cost of a planned run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The approximate smallest budget that works.
    pub minimum: u64,
    /// Memory, beyond that of the process.
    pub memory: u64,
    /// Memory of the result.
    pub result: u64,
    /// Disk until the run ends: the vertices of a store on disk, and the data of loading and lists
    /// that exceeds memory.
    pub scratch: u64,
}

/// Bytes of a vertex.
struct VertexBytes {
    /// A live vertex with its heap memory, and without.
    live: u64,
    bare: u64,
    /// The bytes of its record and key.
    record: u64,
    signal: u64,
}

/// An average vertex: the number of vertices, edges, and the serializer.
struct Average<'s> {
    vertices: u64,
    edges: u64,
    serializer: &'s str,
}

/// Bytes of a store.
struct StoreBytes {
    memory: u64,
    disk: u64,
}

impl StoreBytes {
    /// A store in memory: vertices of `each` bytes, and the index of each partition.
    fn in_memory(vertices: u64, each: u64, partitions: usize) -> Self {
        let partitions = partitions as u64;
        let index = partitions * index_bytes(vertices.div_ceil(partitions));
        Self { memory: vertices * each + index, disk: 0 }
    }

    /// A store on disk, whose pages may use `share` bytes of memory.
    fn on_disk(vertices: u64, records: u64, partitions: usize, share: u64) -> Self {
        let (buffers, bytes) =
            (partitions as u64 * DiskMap::KEY_BYTES, records * LOOSE.0 / LOOSE.1);
        let pages = share.saturating_sub(buffers);
        // The fullest partition has more than its share. If a small part does not fit, pages that
        // are read meanwhile also cause writes.
        let too_much = bytes.saturating_sub(pages * HELD.0 / HELD.1);
        // Keys stay in their buffers until these are full.
        let keys = if 8 * vertices <= buffers * 7 / 8 { 0 } else { vertices * KEY_BYTES };
        Self {
            memory: bytes.min(share * FILLED.0 / FILLED.1) + buffers.min(16 * vertices),
            disk: keys + bytes.min(EVICTED * too_much),
        }
    }
}

/// Maximum number of edges of the vertex that is written as a sample.
const MAX_WRITTEN: u64 = 1 << 12;
/// Approximate overhead of the allocator for each allocation.
const ALLOCATION_OVERHEAD_BYTES: usize = 16;
/// Bytes before a record in memory.
const RECORD_HEADER: u64 = 9;
/// Records on disk that grow and move take this many times their bytes.
const LOOSE: (u64, u64) = (4, 3);
/// The share of page memory that is reserved at once, and filled if there are enough pages.
const FILLED: (u64, u64) = (3, 4);
/// The share of page memory that fills before the first page is written.
const HELD: (u64, u64) = (9, 10);
/// Bytes written for each byte that does not fit in page memory.
const EVICTED: u64 = 8;
/// Disk space of a key, unless keys stay in their buffers.
const KEY_BYTES: u64 = 15;
/// Bytes of records on disk for a byte of the tables of their pages.
const PAGES_PER_TABLE: u64 = 32;

impl BySize for Average<'_> {
    type Out = VertexBytes;

    fn call<const S: usize, const M: usize, E: EdgeData>(self) -> Result<VertexBytes> {
        let all = self.edges.div_ceil(self.vertices.max(1));
        let degree = all.min(MAX_WRITTEN);
        // Neighbors at nearly even distances.
        let step = (self.vertices / degree.max(1)).max(1);
        let targets: Vec<u64> = (0..degree).map(|edge| edge * step + edge * 7919 % step).collect();
        let data = targets.iter().map(|_| E::new(1.0, 1)).collect();
        let mut vertex: Vertex<u64, StateWords<S>, E, SignalWords<M>> =
            Vertex::from_parts(VertexParts {
                id: self.vertices / 2,
                state: StateWords::new(degree as f64),
                edges: Edges::from_parts(targets, data).unwrap_or_default(),
                signalled: None,
                latest: Vec::new(),
                parallels: Vec::new(),
            });
        vertex.signalled = Some(vertex.state);
        let (mut record, mut key) = (Vec::new(), Vec::new());
        let mut serializer =
            named::<Vertex<u64, StateWords<S>, E, SignalWords<M>>>(self.serializer)?;
        let written = serializer.encode(&vertex, &mut record);
        written.map_err(|problem| {
            crate::Error::Usage(format!("the serializer {}: {problem}", self.serializer))
        })?;
        brimful_vertices::Field::write(vertex.id(), &mut key);
        let pieces = if size_of::<E>() == 0 { 1 } else { 2 };
        // With more edges than written, nearly all bytes are those of edges.
        let grown = |bytes: usize| bytes as u64 * all.max(1) / degree.max(1);
        Ok(VertexBytes {
            live: grown(
                size_of_val(&vertex) + vertex.heap_bytes() + pieces * ALLOCATION_OVERHEAD_BYTES,
            ),
            bare: size_of_val(&vertex) as u64,
            record: grown(record.len() + key.len()),
            signal: size_of::<SignalWords<M>>() as u64,
        })
    }
}

/// Bytes of the copies of the largest vertices of `graph` during a run of a program with these
/// `needs`, estimated from out-degrees and the largest in-degree.
///
/// # Errors
/// [`crate::Error::Usage`] for an unknown store; I/O.
pub fn hub_bytes(
    needs: &Needs,
    graph: &Graph,
    stores: &StoreOptions<'_>,
    (weighted, workers): (bool, usize),
) -> Result<u64> {
    let data = match (weighted, graph.description().directed && needs.indexes.len() > 1) {
        (false, false) => 0,
        (false, true) => size_of::<u8>(),
        (true, _) => size_of::<Tagged>(),
    };
    let hands = workers.min(partitions_of(stores, workers)?);
    let copies = Copies::new(stores, data as u64, hands)?;
    bytes_of_graph(copies, (graph, needs.indexes, graph.connected()))
}

/// The forecast of a run of a program with these `needs`.
///
/// # Errors
/// [`crate::Error::Usage`] for an unknown store or serializer, or a program that is too large for
/// stores.
pub fn forecast(needs: &Needs, planned: &Planned<'_>) -> Result<Taken> {
    let Planned { stores, weighted, workers, limit, edges, .. } = *planned;
    let StoreOptions { store, schemes, cache, .. } = stores;
    let (all, connected) = planned.vertices;
    let vertices = if needs.full { all } else { connected };
    let words = |bytes: u64| bytes.div_ceil(8) as usize;
    let tagged = planned.directed && needs.indexes.len() > 1;
    let average = Average { vertices, edges, serializer: planned.serializer.unwrap_or("native") };
    let sample = by_size((words(needs.state), words(needs.sum)), (weighted, tagged), average)?;
    let partitions = partitions_of(&stores, workers)?;
    let kind = schemes.kind(store)?;
    let is_on_disk = kind.has_share();
    let states = connected * needs.state;
    let result = if is_on_disk { 0 } else { states };
    let shared =
        result + planned.hubs + LoadingShares::least(workers, partitions, edge_bytes(weighted));
    let records = vertices * sample.record;
    let stored = match kind {
        _ if is_on_disk => {
            StoreBytes::on_disk(vertices, records, partitions, limit.saturating_sub(shared) / 2)
        }
        StoreKind::Live => StoreBytes::in_memory(vertices, sample.live, partitions),
        _ => StoreBytes::in_memory(vertices, sample.record + RECORD_HEADER, partitions),
    };
    let cached = cache.map_or(0, |cache| vertices.min(cache.capacity() as u64) * sample.live);

    // When live vertices grow, and those of a partition all at once, old and new ones coexist for a
    // moment: an array of them grows by a quarter. Tables of pages are small.
    let minimum = shared
        + if is_on_disk {
            2 * records / PAGES_PER_TABLE
        } else if kind != StoreKind::Live {
            stored.memory + stored.memory / 2
        } else {
            stored.memory + (stored.memory * 2 / 3).max(vertices * sample.bare * 5 / 4)
        };
    let free = limit.max(minimum) - result - planned.hubs;
    // Stores on disk reserve their memory before loading, and gathered vertices before sorting.
    let of_stores =
        if is_on_disk { (limit.max(minimum) - shared) / 2 * FILLED.0 / FILLED.1 } else { 0 };
    let record_bytes = edge_bytes(weighted);
    let gathering = LoadingShares::new(free - of_stores, workers, record_bytes).gathering;
    let after = free.saturating_sub(of_stores + gathering);
    let loading = LoadingShares::new(after, workers, record_bytes);
    let sorting =
        Sorting { records: edges, record_bytes, bytes: loading.sorting, workers, writers: 1 };
    let sorted = sorting.forecast();
    // Live vertices are not copied when they are stored.
    let gathered = if kind != StoreKind::Live { gathering / 2 } else { 0 };
    let gathered = gathered.min(vertices * sample.live);

    // A signal to each vertex, as received and as serialized, and the list of due vertices.
    let lists = match planned.lists {
        ListLocation::Memory => {
            run::list_bytes(free.saturating_sub(stored.memory + cached), stores.are_fixed()?)
        }
        ListLocation::Disk => run::minimum_bytes(workers, partitions),
    };
    let waiting = vertices * (2 * (sample.signal + 24) + 20);
    // In memory, lists grow step by step, and groups taken from them coexist with them.
    let list_peak = vertices * (4 * (sample.signal + 24) + 32);
    let full = stored.memory + cached + (sorted.merging + gathered).max(list_peak.min(lists));
    Ok(Taken {
        minimum,
        memory: (result + planned.hubs + full.max(sorted.memory)).min(limit.max(minimum)),
        result,
        scratch: stored.disk + states - result + sorted.disk.max(waiting.saturating_sub(lists)),
    })
}
