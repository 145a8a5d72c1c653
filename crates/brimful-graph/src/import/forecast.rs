//! What an import, or building an index, will take: worked out from sizes alone.
//!
//! Invariant: the minimum is the one that an import refuses less than; the rest is what one is
//! likely to use.

use brimful_store::sorter::{self, Filled, Sorting};

use super::{IDS_BYTES, index_bytes, minimum_bytes};
use crate::bitmap::IdBitmap;
use crate::build::encoding_bytes;
use crate::choice;
use crate::degrees;
use crate::policy::Policy;
use crate::records::{KeyLayout, Pair, WeightedKey, WeightedPair};
use crate::scan::reading_bytes;
use crate::shards::Geometry;
use crate::sizes::{Sizes, WEIGHT_BYTES};

/// Bytes of memory traffic that stand for an edge that is read, sorted and packed: an import of
/// RMAT-24 takes 34 ns an edge where memory is read at 30 GB/s (bench/RESULTS.md); three quarters
/// of that are the index's.
const EDGE_TRAFFIC: u64 = 1000;
const INDEX_TRAFFIC: u64 = 750;

/// Bytes of buffers that an edge passes through while it is read and packed.
const BYTES_TOUCHED: u64 = 64;

/// What an import will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The smallest budget that works, beside the process.
    pub minimum_bytes: u64,
    /// Memory that it is likely to fill, beside the process.
    pub memory_bytes: u64,
    /// The most bytes of disk that it has beside the graph until it ends.
    pub temporary_bytes: u64,
    /// Bytes of the graph.
    pub graph_bytes: u64,
    /// Bytes written and read beside the input.
    pub moved_bytes: u64,
    /// Memory traffic that stands for its work.
    pub traffic_bytes: u64,
}

impl Forecast {
    /// [`least_disk_bytes`] of it.
    pub fn least_disk_bytes(&self) -> u64 {
        least_disk_bytes(self.temporary_bytes, self.graph_bytes)
    }

    /// Seconds, where memory and disk move so many bytes a second.
    pub fn seconds(&self, memory: f64, disk: f64) -> f64 {
        (self.moved_bytes as f64 / disk).max(self.traffic_bytes as f64 / memory)
    }
}

/// Bytes of disk that an import surely takes: half of the temporary files foreseen, and the graph
/// at a sixteenth, as edges that repeat themselves pack to hardly anything.
pub fn least_disk_bytes(temporary_bytes: u64, graph_bytes: u64) -> u64 {
    temporary_bytes / 2 + graph_bytes / 16
}

/// What is read, and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Text, tables and streams are kept to be read again.
    pub spooled: bool,
    /// They have weights.
    pub weighted: bool,
    /// Weights are made of ids.
    pub hashes_weights: bool,
    /// What is left out.
    pub policy: Policy,
}

/// The forecast of sorting the edges of an index in `bytes` of memory, with input positions if
/// `positioned`.
fn sorting(sizes: &Sizes, positioned: bool, bytes: u64, workers: usize) -> Filled {
    let layout = KeyLayout::new(sizes.vertices, Geometry::default().interval_bits);
    let record_bytes = match (layout.is_narrow(), sizes.weighted) {
        (true, false) => size_of::<u64>(),
        (true, true) => size_of::<WeightedKey>(),
        (false, false) => size_of::<Pair>(),
        (false, true) => size_of::<WeightedPair>(),
    };
    let record_bytes = record_bytes + if positioned { size_of::<u64>() } else { 0 };
    Sorting { records: sizes.arcs(), record_bytes, bytes, workers, writers: workers }.forecast()
}

/// What sorting an index may use, ids aside, where `spare` bytes are beyond the minimum.
fn sorter_bytes(sizes: &Sizes, positions: bool, spare: u64, workers: usize) -> u64 {
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    sorters + spare + index_bytes(workers, sizes.weighted, positions)
}

/// What an import of a graph of `sizes` will take of `limit` bytes of memory beside the process.
/// Edges that are merged count, as nobody knows them.
pub fn forecast(sizes: &Sizes, reading: &Reading, limit: u64, workers: usize) -> Forecast {
    // Whoever may leave edges out remembers where they stand.
    let (positions, merges) = (reading.policy.leaves_out(), reading.policy.merges());
    let minimum = minimum_bytes(workers, sizes.weighted, positions);
    let spare = limit.max(minimum) - minimum;
    let bitmap = IdBitmap::bytes_of(sizes.vertices);
    let joined = sizes.vertices > 1 << 32 || bitmap > IDS_BYTES + spare / 2;
    let counted = (sizes.vertices * degrees::bytes_per_vertex(sizes.weighted)).min(spare / 4);
    let ids = if joined { 0 } else { bitmap };
    let sorters = sorter_bytes(sizes, positions, spare, workers);
    let sorters = sorters.saturating_sub(ids.saturating_sub(IDS_BYTES) + counted);
    let sorting = sorting(sizes, merges, sorters, workers);
    let of_end = if sizes.vertices > 1 << 32 { 8 } else { 4 };
    let if_so = |bytes: u64, so: bool| if so { bytes } else { 0 };
    let of_edge = 2 * of_end + if_so(of_end, merges) + if_so(8, reading.weighted);
    let spool = sizes.edges.saturating_mul(of_edge);
    let spooled = if_so(spool, reading.spooled);
    // Ends and edges by source are sorted at once, then edges by source and by target.
    let of_join = 32 + if_so(16, merges) + if_so(16, reading.weighted);
    let joins = if_so(sizes.edges.saturating_mul(of_join), joined);
    let mapped = if joined { spool } else { 0 };
    // Hashes, and numbers of edges, are weights of a byte.
    let are_small = sizes.weighted && (reading.hashes_weights || !reading.weighted);
    let unused = if_so(sizes.weight_bytes() / WEIGHT_BYTES * (WEIGHT_BYTES - 1), are_small);
    let indexes = sizes.indexes();
    let graph = sizes.graph_bytes().saturating_sub(indexes * unused);
    let temporary = spooled.saturating_add(joins.max(mapped.saturating_add(sorting.disk)));
    // Of buffers that few edges do not fill as many are touched as those take.
    let touched = |bytes: u64| bytes.min(sizes.edges.saturating_mul(BYTES_TOUCHED));
    let reading = touched(reading_bytes(workers, positions) + choice::memory_bytes(workers));
    let writing = touched(encoding_bytes(workers, sizes.weighted, positions));
    Forecast {
        minimum_bytes: minimum,
        memory_bytes: ids + counted + reading.max(sorting.memory + writing / 2),
        temporary_bytes: temporary,
        graph_bytes: graph,
        moved_bytes: temporary
            .saturating_mul(2)
            .saturating_add((indexes - 1) * sorting.disk)
            .saturating_add(graph),
        traffic_bytes: sizes.edges.saturating_mul(EDGE_TRAFFIC + (indexes - 1) * INDEX_TRAFFIC),
    }
}

/// What building the reverse index of a graph of `sizes`, `bytes` of which are an index, will take.
pub fn forecast_index(sizes: &Sizes, bytes: u64, limit: u64, workers: usize) -> Forecast {
    let minimum = minimum_bytes(workers, sizes.weighted, false);
    let spare = limit.saturating_sub(minimum);
    let sorting = sorting(sizes, false, sorter_bytes(sizes, false, spare, workers), workers);
    Forecast {
        minimum_bytes: minimum,
        memory_bytes: sorting.memory + encoding_bytes(workers, sizes.weighted, false) / 2,
        temporary_bytes: sorting.disk,
        graph_bytes: bytes,
        moved_bytes: sorting.disk.saturating_mul(2).saturating_add(2 * bytes),
        traffic_bytes: sizes.arcs().saturating_mul(INDEX_TRAFFIC),
    }
}
