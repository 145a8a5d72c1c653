//! The limits of sparse supersteps, and their memory.

use crate::plan::extent::Extent;
use crate::plan::needs::Needs;

/// Sparse traversal is tried if at most one vertex in this many signals.
const SOURCES_PER_SIGNAL: u64 = 32;
/// Sparse traversal is abandoned if more than one vertex in this many receives a signal: dense
/// traversal is then faster.
const TARGETS_PER_SUM: u64 = 16;
/// If memory is short, both limits are lower by this factor.
const SCARCITY: u64 = 8;
/// The least value of both limits, in vertices.
const FEWEST: u64 = 1 << 12;

/// The maximum numbers of vertices in a sparse superstep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Vertices that signal.
    pub(super) sources: u64,
    /// Vertices that receive a signal.
    pub(super) targets: u64,
}

impl Limits {
    /// The limits beyond which dense supersteps are faster.
    pub(crate) fn ample(vertices: u64) -> Self {
        Self::new(vertices, 1)
    }

    /// The limits if memory is short.
    pub(crate) fn scarce(vertices: u64) -> Self {
        Self::new(vertices, SCARCITY)
    }

    fn new(vertices: u64, scarcity: u64) -> Self {
        let one_in = |many: u64| (vertices / (many * scarcity)).max(FEWEST).min(vertices);
        Self { sources: one_in(SOURCES_PER_SIGNAL), targets: one_in(TARGETS_PER_SUM) }
    }
}

/// Bytes of memory that sparse supersteps take at most beyond the `dense` bytes with which a dense
/// superstep reads and sums. The working memory of the two is never allocated at the same time.
pub(crate) fn memory_bytes(
    needs: &Needs,
    extent: &Extent,
    limits: Limits,
    workers: u64,
    dense: u64,
) -> u64 {
    let working = limits.targets * needs.target_sum
        + sums(needs, extent, workers)
        + reading_bytes(extent, workers);
    directories(extent) + lists(needs, limits) + working.saturating_sub(dense)
}

/// Bytes that sparse supersteps are likely to take beyond the `dense` bytes: growing lists may be
/// half empty.
pub(crate) fn likely_bytes(
    needs: &Needs,
    extent: &Extent,
    limits: Limits,
    workers: u64,
    dense: u64,
) -> u64 {
    let working = limits.targets * needs.target_sum / 2 + sums(needs, extent, workers);
    directories(extent) + lists(needs, limits) / 2 + working.saturating_sub(dense)
}

/// Bytes with which sparse supersteps read: for each worker a unit of every file.
pub(crate) fn reading_bytes(extent: &Extent, workers: u64) -> u64 {
    let units: u64 = extent.columns().map(|column| column.largest).sum();
    workers * (units + extent.plain_segment_bytes())
}

fn directories(extent: &Extent) -> u64 {
    extent.indexes.iter().map(|index| index.directory).sum()
}

/// Bytes of the frontier of this superstep, and of the next one. If vertices hold back signals,
/// bytes of their ids and signals too, and of sorting them.
fn lists(needs: &Needs, limits: Limits) -> u64 {
    let held_back = if needs.ordered { 8 + 8 / 2 + 2 * needs.signal } else { 0 };
    (limits.sources + limits.targets) * (8 + held_back)
}

/// Bytes of sums, marks and lists of touched targets.
fn sums(needs: &Needs, extent: &Extent, workers: u64) -> u64 {
    let window = if extent.indexes.is_empty() { 0 } else { extent.interval().min(extent.vertices) };
    workers * window * (needs.sum + 1 + 4 + needs.target_sum)
}
