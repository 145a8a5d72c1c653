//! What a numeric program on a store will take, before it is loaded.
//!
//! Records are counted by writing one of a vertex of average degree, the rest follows from what
//! loading, stores and lists may use.

use brimful_collections::DiskMap;
use brimful_engine::needs::Needs;
use brimful_graph::Graph;
use brimful_store::sorter::Sorting;

use crate::cache::Choice;
use crate::error::Result;
use crate::execution::{Lists, run};
use crate::from_graph::hubs::{Copies, bytes_of_graph};
use crate::from_graph::{EdgeData, LoadingShares, Tagged, edge_bytes, partitions_of};
use crate::index::Index;
use crate::numeric::parts::{Cell, Words};
use crate::numeric::{BySize, by_size};
use crate::open::Schemes;
use crate::serializer::named;
use crate::vertex::{Edges, Parts, Stored, Vertex};

/// A run on a store that is planned.
pub struct Planned<'p> {
    /// The store, by its URL.
    pub store: &'p str,
    /// The stores that there are.
    pub schemes: &'p Schemes,
    /// How it writes vertices, by name; `None`: `native`.
    pub serializer: Option<&'p str>,
    /// A cache over it.
    pub cache: Option<Choice>,
    /// Where the lists are.
    pub lists: Lists,
    /// All vertices, and those that have edges.
    pub vertices: (u64, u64),
    /// Edges of all indexes that are walked.
    pub edges: u64,
    /// The graph has directions.
    pub directed: bool,
    /// Weights count.
    pub weighted: bool,
    /// Compute threads.
    pub workers: usize,
    /// Bytes of memory beside the process.
    pub limit: u64,
    /// Bytes that the copies of its largest vertices take: [`hub_bytes`].
    pub hubs: u64,
}

/// What such a run takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The smallest budget in which it works, about.
    pub minimum: u64,
    /// Memory beside the process.
    pub memory: u64,
    /// Memory of the result.
    pub result: u64,
    /// Disk until it ends: the vertices of a store that is there, and what loading and lists have
    /// beyond memory.
    pub scratch: u64,
}

/// Bytes of a vertex.
struct Sample {
    /// Live, with what it owns.
    live: u64,
    /// Its record and key.
    record: u64,
    signal: u64,
}

/// A vertex of so many vertices and edges.
struct Average<'s> {
    vertices: u64,
    edges: u64,
    serializer: &'s str,
}

/// Most edges of the vertex that is written.
const MOST_WRITTEN: u64 = 1 << 12;
/// Bytes that the system adds to each piece of memory, about.
const PIECE_BYTES: usize = 16;
/// Bytes before a record in memory.
const RECORD_HEADER: u64 = 9;
/// Of records on disk so much more is taken, as they grow and move; so much of the memory of their
/// pages is reserved at once, and filled where those are more; so much of it they may take before
/// any is written, so many bytes are written for each that does not fit; and keys that are not put
/// off have so many bytes of disk for a vertex.
const LOOSE: (u64, u64) = (4, 3);
const FILLED: (u64, u64) = (3, 4);
const HELD: (u64, u64) = (9, 10);
const EVICTED: u64 = 8;
const KEY_BYTES: u64 = 15;
/// Bytes of records on disk for a byte of the tables of their pages.
const PAGES_PER_TABLE: u64 = 32;

impl BySize for Average<'_> {
    type Out = Sample;

    fn call<const S: usize, const M: usize, E: EdgeData>(self) -> Result<Sample> {
        let all = self.edges.div_ceil(self.vertices.max(1));
        let degree = all.min(MOST_WRITTEN);
        // Neighbours evenly, a little apart from where they would be.
        let step = (self.vertices / degree.max(1)).max(1);
        let targets: Vec<u64> = (0..degree).map(|edge| edge * step + edge * 7919 % step).collect();
        let data = targets.iter().map(|_| E::new(1.0, 1)).collect();
        let mut vertex: Vertex<u64, Cell<S>, E, Words<M>> = Vertex::from_parts(Parts {
            id: self.vertices / 2,
            state: Cell::new(degree as f64),
            edges: Edges::from_parts(targets, data).unwrap_or_default(),
            signalled: None,
            latest: Vec::new(),
            parallels: Vec::new(),
        });
        vertex.signalled = Some(vertex.state);
        let (mut record, mut key) = (Vec::new(), Vec::new());
        let mut serializer = named::<Vertex<u64, Cell<S>, E, Words<M>>>(self.serializer)?;
        let written = serializer.encode(&vertex, &mut record);
        written.map_err(|what| {
            crate::Error::Usage(format!("the serializer {}: {what}", self.serializer))
        })?;
        crate::field::Field::write(vertex.id(), &mut key);
        let pieces = if size_of::<E>() == 0 { 1 } else { 2 };
        // Of more edges than that nearly all bytes are theirs.
        let grown = |bytes: usize| bytes as u64 * all.max(1) / degree.max(1);
        Ok(Sample {
            live: grown(size_of_val(&vertex) + vertex.heap_bytes() + pieces * PIECE_BYTES),
            record: grown(record.len() + key.len()),
            signal: size_of::<Words<M>>() as u64,
        })
    }
}

/// Where the vertices of a run are, for [`hub_bytes`].
pub struct Held<'p> {
    /// The store, by its URL.
    pub store: &'p str,
    /// The stores that there are.
    pub schemes: &'p Schemes,
    /// A cache over it.
    pub cache: Option<Choice>,
    /// Weights count.
    pub weighted: bool,
    /// Compute threads.
    pub workers: usize,
}

/// Bytes that the copies of the largest vertices of `graph` take while a program that has these
/// `needs` runs on it, as far as out-degrees say.
///
/// # Errors
/// [`crate::Error::Usage`] for a store that there is not; I/O.
pub fn hub_bytes(needs: &Needs, graph: &Graph, held: &Held<'_>) -> Result<u64> {
    let data = match (held.weighted, graph.description().directed && needs.indexes.len() > 1) {
        (false, false) => 0,
        (false, true) => size_of::<u8>(),
        (true, _) => size_of::<Tagged>(),
    };
    let partitions = partitions_of(None, held.store, held.schemes, held.workers)?;
    let hands = held.workers.min(partitions);
    let copies = Copies::new((held.store, held.schemes), held.cache.is_some(), data as u64, hands)?;
    bytes_of_graph(copies, (graph, needs.indexes, graph.connected()))
}

/// What a run of a program that has these `needs` will take.
///
/// # Errors
/// [`crate::Error::Usage`] for a store or a serializer that there is not, or a program that is too
/// large for stores.
pub fn forecast(needs: &Needs, planned: &Planned<'_>) -> Result<Taken> {
    let Planned { store, schemes, weighted, workers, limit, edges, .. } = *planned;
    let (all, connected) = planned.vertices;
    let vertices = if needs.full { all } else { connected };
    let words = |bytes: u64| bytes.div_ceil(8) as usize;
    let tagged = planned.directed && needs.indexes.len() > 1;
    let average = Average { vertices, edges, serializer: planned.serializer.unwrap_or("native") };
    let sample = by_size((words(needs.state), words(needs.sum)), (weighted, tagged), average)?;
    let partitions = partitions_of(None, store, schemes, workers)?;
    let result = connected * needs.state;
    let beside =
        result + planned.hubs + LoadingShares::least(workers, partitions, edge_bytes(weighted));
    let index = partitions as u64 * Index::bytes_of(vertices.div_ceil(partitions as u64));
    let records = vertices * sample.record;
    let is_on_disk = schemes.folder(store)?.is_some();
    // Of a store, in memory and on disk.
    let (stored, on_disk) = if is_on_disk {
        let (share, bytes) = (limit.saturating_sub(beside) / 2, records * LOOSE.0 / LOOSE.1);
        let pages = share.saturating_sub(partitions as u64 * DiskMap::KEY_BYTES);
        // The fullest partition has more than its share. Where little does not fit, what is read
        // meanwhile goes to disk, too.
        let too_much = bytes.saturating_sub(pages * HELD.0 / HELD.1);
        // Keys are put off as long as their buffers are not full.
        let put_off = 8 * vertices <= partitions as u64 * DiskMap::KEY_BYTES * 7 / 8;
        let keys = if put_off { 0 } else { vertices * KEY_BYTES };
        let buffers = (16 * vertices).min(partitions as u64 * DiskMap::KEY_BYTES);
        (bytes.min(share * FILLED.0 / FILLED.1) + buffers, keys + bytes.min(EVICTED * too_much))
    } else if schemes.keeps_records(store)? {
        (records + vertices * RECORD_HEADER + index, 0)
    } else {
        (vertices * sample.live + index, 0)
    };
    let cached =
        planned.cache.map_or(0, |cache| vertices.min(cache.capacity() as u64) * sample.live);

    // Where live vertices grow, and of one partition all at once, there are old and new ones for a
    // moment. Tables of pages are small.
    let minimum = beside
        + if is_on_disk {
            2 * records / PAGES_PER_TABLE
        } else if schemes.keeps_records(store)? {
            stored + stored / 2
        } else {
            stored + stored * 2 / 3
        };
    let free = limit.max(minimum) - result - planned.hubs;
    // Stores on disk have their memory before anything is loaded, and those who gather before
    // anything is sorted.
    let of_stores =
        if is_on_disk { (limit.max(minimum) - beside) / 2 * FILLED.0 / FILLED.1 } else { 0 };
    let record_bytes = edge_bytes(weighted);
    let gathering = LoadingShares::new(free - of_stores, workers, record_bytes).gathering;
    let after = free.saturating_sub(of_stores + gathering);
    let loading = LoadingShares::new(after, workers, record_bytes);
    let sorting =
        Sorting { records: edges, record_bytes, bytes: loading.sorting, workers, writers: 1 };
    let sorted = sorting.forecast();
    // Live vertices are not copied when they are stored.
    let gathered = if schemes.keeps_records(store)? { gathering / 2 } else { 0 };
    let gathered = gathered.min(vertices * sample.live);

    // A signal to each vertex, as it came and written down, and who is to signal.
    let lists = match planned.lists {
        Lists::Memory => free.saturating_sub(stored + cached) / 2,
        Lists::Disk => run::minimum_bytes(workers, partitions),
    };
    let waiting = vertices * (2 * (sample.signal + 24) + 20);
    // In memory lists grow step by step, and what is taken from them lies beside them.
    let held = vertices * (4 * (sample.signal + 24) + 32);
    let full = stored + cached + (sorted.merging + gathered).max(held.min(lists));
    Ok(Taken {
        minimum,
        memory: (result + planned.hubs + full.max(sorted.memory)).min(limit.max(minimum)),
        result,
        scratch: on_disk + sorted.disk.max(waiting.saturating_sub(lists)),
    })
}
