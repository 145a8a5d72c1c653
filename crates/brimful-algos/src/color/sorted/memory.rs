//! The division of the budget, and the forecast that follows from it.
//!
//! Invariant: the parts in memory at the same time are within the budget.

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_store::sorter::{self, Sorting};

use super::parts::PART_BITS;
use super::{BATCH, NUMBER, Turn};
use crate::planning::Planner;

/// Memory traffic, in bytes, equivalent to the work on an edge: RMAT-22 takes 4 s of two threads.
const SORTED_TRAFFIC: u64 = 3500;
/// Bits of a word of marks.
pub(super) const WORD: u64 = u64::BITS as u64;

/// The division of the memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The smallest memory of a run.
    pub(super) minimum: u64,
    /// Bytes of buffers.
    pub(super) fixed: u64,
    /// Bytes of sorters, and of numbers and marks beside them.
    pub(super) shared: u64,
    /// Bytes of the ranks, and later of the result, if they are in memory; else 0.
    pub(super) numbers: u64,
    /// Bytes of marks.
    pub(super) marks: u64,
}

impl Memory {
    /// Divides `limit` bytes, or the minimum if that is more.
    pub(super) fn new(extent: &Extent, directed: bool, workers: usize, limit: u64) -> Self {
        let windows = extent.vertices.min(extent.interval()) * 2 * NUMBER;
        let batches = 4 * BATCH as u64 * NUMBER;
        let fixed = workers as u64 * (extent.reader_bytes() + windows) + batches;
        let [of_turns, of_words] = Self::least_sorting(workers);
        let all = Self::bytes_of(2 * Self::degrees(extent, directed) + extent.vertices);
        let marks = Self::least_marks(extent, directed).min(all);
        let minimum = fixed + of_words + of_turns.max(marks);
        let (spare, numbers) = (limit.saturating_sub(minimum), extent.vertices * NUMBER);
        Self {
            minimum,
            fixed,
            shared: minimum - fixed + spare,
            numbers: if numbers <= spare / 4 { numbers } else { 0 },
            marks: marks + (spare / 4).min(all - marks),
        }
    }

    /// The least bytes of a sorter of turns, and of one of words.
    fn least_sorting(workers: usize) -> [u64; 2] {
        [size_of::<Turn>(), size_of::<u64>()].map(|bytes| sorter::minimum_bytes(workers, bytes))
    }

    /// The sum of all degrees.
    fn degrees(extent: &Extent, directed: bool) -> u64 {
        extent.edges() * if directed { 2 } else { 1 }
    }

    /// Bytes of `bits` bits of marks, and of the word after them.
    pub(super) fn bytes_of(bits: u64) -> u64 {
        (bits.div_ceil(WORD) + 1) * size_of::<u64>() as u64
    }

    /// The least bytes of marks: enough for the vertex with the most bits, and enough for a small
    /// number of parts. If a vertex has n bits, n vertices have degrees of n / 2 or more.
    fn least_marks(extent: &Extent, directed: bool) -> u64 {
        let degrees = Self::degrees(extent, directed);
        // Two parts in succession have more bits than one may have.
        let of_parts = (2 * degrees + extent.vertices) >> (PART_BITS - 2);
        let of_vertex = (2 * degrees).isqrt() + 1;
        Self::bytes_of(of_parts.max(of_vertex).max(1 << 19))
    }

    /// The bits of marks of a part.
    pub(super) fn bits_of_part(&self) -> u64 {
        (self.marks / size_of::<u64>() as u64 - 1) * WORD
    }

    /// Bytes of the sorters of turns and of ranks.
    pub(super) fn ordering(&self, workers: usize) -> [u64; 2] {
        let [of_turns, of_words] = Self::least_sorting(workers);
        let half = self.shared.saturating_sub(of_turns + of_words) / 2;
        [of_turns + half, of_words + half]
    }

    /// Bytes of the sorter of edges, which meets first the ranks and then the marks.
    pub(super) fn sorting(&self) -> u64 {
        self.shared - self.numbers.max(self.marks)
    }
}

/// Forecasts a run.
pub(in super::super) fn forecast(planner: &Planner<'_>) -> Forecast {
    let directed = planner.is_directed();
    planner.of_scan(|setting| {
        let (extent, workers) = (setting.extent, setting.workers);
        let memory = Memory::new(extent, directed, workers, planner.limit());
        let sorted = |records, record_bytes, bytes, writers| {
            Sorting { records, record_bytes, bytes, workers, writers }.forecast()
        };
        let [of_turns, of_ranks] = memory.ordering(workers);
        let turns = sorted(extent.vertices, size_of::<Turn>(), of_turns, 1);
        let ranks = sorted(extent.vertices, size_of::<u64>(), of_ranks, 1);
        let degrees = Memory::degrees(extent, directed);
        let edges = sorted(degrees / 2, size_of::<u64>(), memory.sorting(), workers);
        // Degrees are spread evenly between powers of two; a vertex has as many bits as the next.
        let marks = memory.marks.min(Memory::bytes_of(degrees * 3 / 2 + extent.vertices));
        let (numbers, written) = (extent.vertices * NUMBER, edges.disk);
        // Vertices and colors by rank are on disk, and ranks and the result unless they fit.
        let arrays = 3 * numbers - memory.numbers;
        let needed = (turns.merging + ranks.memory)
            .max(memory.numbers + edges.memory)
            .max(marks + edges.merging);
        let scratch = (turns.disk + ranks.disk).max(written) + arrays;
        Forecast {
            in_memory_bytes: memory.minimum,
            read_bytes: 2 * extent.packed() + written + arrays,
            written_bytes: written + arrays,
            traffic_bytes: SORTED_TRAFFIC * extent.edges(),
            moves: true,
            timed: true,
            ..setting.forecast_other(
                [memory.minimum, memory.fixed + needed, memory.numbers, scratch],
                Steps::exactly(1),
            )
        }
    })
}
