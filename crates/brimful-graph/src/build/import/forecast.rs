//! Forecasts the cost of an import, or of building an index, from sizes alone.
//!
//! Invariant: the minimum is exactly the limit below which an import refuses; the other figures are
//! estimates.

use brimful_store::sorter::{self, Filled, Sorting};

use super::{IDS_BYTES, index_bytes, minimum_bytes};
use crate::build::degrees;
use crate::build::records::{EdgeRecord, KeyLayout, RecordWork, WeightedPair};
use crate::build::shards::encoding_bytes;
use crate::build::sizes::{Sizes, WEIGHT_BYTES};
use crate::input::policy::Policy;
use crate::input::scan::reading_bytes;
use crate::order::bitmap::IdBitmap;
use crate::order::choice;
use crate::read::shards::Geometry;

/// Bytes of memory traffic that represent reading, sorting and packing one edge. An import of
/// RMAT-22 takes 33 to 36 ns an edge where two threads read memory at 70 GB/s (bench/RESULTS.md);
/// three quarters of that are for the index.
const EDGE_TRAFFIC: u64 = 2400;
const INDEX_TRAFFIC: u64 = 1800;

/// Bytes of buffers that an edge touches while it is read and packed.
const BYTES_TOUCHED: u64 = 64;

/// The expected cost of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The smallest budget that works, in bytes besides the process.
    pub minimum_bytes: u64,
    /// Memory that is probably used, in bytes besides the process.
    pub memory_bytes: u64,
    /// The maximum bytes of temporary disk space in use at once, besides the graph.
    pub temporary_bytes: u64,
    /// Bytes of the graph's files.
    pub graph_bytes: u64,
    /// Bytes written and read, except those of the input.
    pub moved_bytes: u64,
    /// Memory traffic that represents the computation, in bytes.
    pub traffic_bytes: u64,
}

impl Forecast {
    /// [`min_disk_bytes`] of this forecast.
    pub fn min_disk_bytes(&self) -> u64 {
        min_disk_bytes(self.temporary_bytes, self.graph_bytes)
    }

    /// Seconds, given the throughput of memory and of disk in bytes a second.
    pub fn seconds(&self, memory: f64, disk: f64) -> f64 {
        (self.moved_bytes as f64 / disk).max(self.traffic_bytes as f64 / memory)
    }
}

/// A lower bound of the disk space for an import: half of the expected temporary files, and a
/// sixteenth of the graph, because repetitive edges pack to almost nothing.
pub fn min_disk_bytes(temporary_bytes: u64, graph_bytes: u64) -> u64 {
    temporary_bytes / 2 + graph_bytes / 16
}

/// The facts about an input and its treatment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// True if edges are spooled for the second pass, as from text, tables and streams.
    pub spooled: bool,
    /// True if the edges read have weights.
    pub weighted: bool,
    /// True if weights are computed from ids.
    pub hashes_weights: bool,
    /// The policy for self-loops and duplicates.
    pub policy: Policy,
}

/// Returns the bytes of a record.
struct RecordBytes;

impl RecordWork for RecordBytes {
    type Done = usize;

    fn with<R: EdgeRecord>(self) -> usize {
        size_of::<R>()
    }
}

/// The forecast of sorting the edges of an index in `bytes` of memory, with input positions if
/// `positioned`.
fn sorting(sizes: &Sizes, positioned: bool, bytes: u64, workers: usize) -> Filled {
    let layout = KeyLayout::new(sizes.vertices, Geometry::default().interval_bits);
    let record_bytes = layout.with_records(sizes.weighted, positioned, RecordBytes);
    Sorting { records: sizes.arcs(), record_bytes, bytes, workers, writers: workers }.forecast()
}

/// Memory for sorting an index, except for ids, given `spare` bytes beyond the minimum.
fn sorter_bytes(sizes: &Sizes, positions: bool, spare: u64, workers: usize) -> u64 {
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    sorters + spare + index_bytes(workers, sizes.weighted, positions)
}

/// The expected cost of an import of a graph of `sizes`, with a limit of `limit` bytes of memory
/// besides the process. Edges that will be merged are included, because their number is unknown.
pub fn forecast(sizes: &Sizes, reading: &Reading, limit: u64, workers: usize) -> Forecast {
    // A policy that may leave edges out needs input positions.
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
    let edge_bytes = 2 * of_end + if_so(of_end, merges) + if_so(8, reading.weighted);
    let spool = sizes.edges.saturating_mul(edge_bytes);
    let spooled = if_so(spool, reading.spooled);
    // Two sorters exist at a time: of ends and of edges by source, then of edges by source and by
    // target.
    let of_join = 32 + if_so(16, merges) + if_so(16, reading.weighted);
    let joins = if_so(sizes.edges.saturating_mul(of_join), joined);
    let mapped = if joined { spool } else { 0 };
    // Hash weights, and counts of merged edges, are weights of one byte.
    let are_small = sizes.weighted && (reading.hashes_weights || !reading.weighted);
    let unused = if_so(sizes.weight_bytes() / WEIGHT_BYTES * (WEIGHT_BYTES - 1), are_small);
    let indexes = sizes.indexes();
    let graph = sizes.graph_bytes().saturating_sub(indexes * unused);
    let temporary = spooled.saturating_add(joins.max(mapped.saturating_add(sorting.disk)));
    // If there are too few edges to fill the buffers, only the part that they fill is touched.
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

/// The expected cost of building the reverse index of a graph of `sizes`, one index of which has
/// `bytes` bytes.
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
