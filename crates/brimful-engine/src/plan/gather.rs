//! The plan of a run over neighbor lists: the division of the budget, made before the run begins.
//!
//! States and lengths of lists are all in memory, or all on disk; programs that settle have one
//! copy of the states, others an old and a new one. A worker holds at least the lists of one item,
//! and those of its longest list; if there is memory for all lists, they are made once. Invariant:
//! the sum of all parts is within the budget.

use brimful_store::Budget;

use crate::error::Result;
use crate::plan::extent::{Extent, IndexExtent};
use crate::plan::needs::GatherNeeds;
use crate::traverse::interval_edges::spill;

/// The purpose of the budget, in error messages.
pub(crate) const PURPOSE: &str = "to gather neighbors in this graph";

/// The division of the budget, and the location of all arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatherPlan {
    /// True if states and lengths are in memory.
    pub(crate) resident: bool,
    /// The maximum number of targets whose lists a worker makes together, and the maximum number of
    /// their neighbors.
    pub(crate) targets: u64,
    pub(crate) neighbors: u64,
    /// Bytes of the lists and targets of all workers.
    pub(crate) list_bytes: u64,
    /// Bytes of packed units that stay in memory.
    pub(crate) pinned_bytes: u64,
    /// True if all lists are made once and stay in memory, as ids.
    pub(crate) unpacked: bool,
}

/// Bytes of memory of the lists that a worker makes together.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// For each neighbor: its id, weight and state, as far as lists contain them.
    neighbor: u64,
    /// For each target.
    target: u64,
}

impl Cost {
    fn new(needs: &GatherNeeds, resident: bool, weighted: bool) -> Self {
        let state = needs.state;
        // The end of its list, its turn and its new state; its old state and its length; its degree
        // and strength.
        let windows = if resident { 0 } else { state + 4 };
        let degrees = if needs.degrees { 8 + 8 } else { 0 };
        let (id, listed) = (if needs.ids { 4 } else { 0 }, !resident || !needs.ids);
        Self {
            neighbor: id + if weighted { 8 } else { 0 } + if listed { state } else { 0 },
            target: 8 + 4 + state + windows + degrees,
        }
    }
}

/// Bytes of states (old and new, unless the program settles) and of lengths of lists.
fn arrays(needs: &GatherNeeds, extent: &Extent) -> u64 {
    let copies = if needs.settles { 1 } else { 2 };
    extent.vertices * (copies * needs.state + 4)
}

/// Bytes of one unit of each file, and of one decompressed segment of each.
fn units(extent: &Extent) -> u64 {
    let of_index = |index: &IndexExtent| {
        index.columns.iter().map(|column| column.largest).sum::<u64>() + index.plain_segment_bytes
    };
    extent.indexes.iter().map(of_index).sum()
}

/// The minimum bytes of a run.
fn least(needs: &GatherNeeds, extent: &Extent, resident: bool, workers: u64) -> u64 {
    let window = extent.vertices.min(extent.interval());
    let (arrays, sources) =
        if resident { (arrays(needs, extent), 0) } else { (0, window * needs.state) };
    let cost = Cost::new(needs, resident, extent.weighted);
    let lists =
        extent.longest_list * needs.buffers + min_neighbors(extent, resident) * cost.neighbor;
    arrays
        + needs.exchange
        + workers
            * (units(extent) + spill::read_bytes(extent) + sources + window * cost.target + lists)
}

/// The fewest neighbors that a worker lists together: the longest list, and enough to limit the
/// number of parts. States on disk are read for each part.
fn min_neighbors(extent: &Extent, resident: bool) -> u64 {
    let enough = if resident { 1 << 16 } else { 1 << 18 };
    extent.longest_list.max((extent.edges() / 64).min(enough))
}

/// Bytes of all lists, and of a set of vertices; `None` for programs whose lists have more than
/// ids, or which make fewer lists in each superstep.
fn unpacked_bytes(needs: &GatherNeeds, extent: &Extent) -> Option<u64> {
    let has_ids_alone = !extent.weighted && !needs.settles;
    has_ids_alone.then(|| 4 * extent.edges() + extent.vertices.div_ceil(64) * 8)
}

/// The needs of a program whose processes exchange states: with the bytes of a message and, if the
/// budget has room, with those of memory that they share. Returns the latter too.
pub(crate) fn needs_of_exchange(
    needs: GatherNeeds,
    message: u64,
    shared: u64,
    extent: &Extent,
    workers: u64,
    limit: u64,
) -> (GatherNeeds, u64) {
    let with = needs.with_exchange(message + shared);
    if GatherPlan::minimum_bytes(&with, extent, workers) <= limit {
        return (with, shared);
    }
    (needs.with_exchange(message), 0)
}

impl GatherPlan {
    /// The smallest budget of a run, in bytes beyond those of the process.
    pub(crate) fn minimum_bytes(needs: &GatherNeeds, extent: &Extent, workers: u64) -> u64 {
        least(needs, extent, true, workers).min(least(needs, extent, false, workers))
    }

    /// The smallest budget with which states and lengths of lists are in memory, in bytes beyond
    /// those of the process.
    pub(crate) fn in_memory_bytes(needs: &GatherNeeds, extent: &Extent, workers: u64) -> u64 {
        least(needs, extent, true, workers)
    }

    /// Plans a run of a program that needs `needs` over a graph of `extent`.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub(crate) fn new(
        needs: &GatherNeeds,
        extent: &Extent,
        workers: u64,
        budget: &Budget,
    ) -> Result<Self> {
        let vertices = extent.vertices;
        let window = vertices.min(extent.interval());
        let minimum = |resident: bool| least(needs, extent, resident, workers);
        let resident = minimum(true) <= budget.limit() || minimum(true) <= minimum(false);
        budget.require(minimum(resident), PURPOSE)?;
        let spare = budget.limit() - minimum(resident);
        let packed = extent.packed();
        if resident && unpacked_bytes(needs, extent).is_some_and(|bytes| bytes <= spare) {
            return Ok(Self {
                resident,
                targets: window,
                neighbors: extent.edges(),
                list_bytes: 0,
                pinned_bytes: 0,
                unpacked: true,
            });
        }
        // A quarter of the spare memory makes lists long enough; the rest pins edges. Programs that
        // settle gain more from long lists of many targets, which save supersteps.
        let share = if needs.settles { spare - spare / 4 } else { spare / 4 };
        let lists = share.max(spare.saturating_sub(packed)) / workers;
        let cost = Cost::new(needs, resident, extent.weighted);
        let more = if needs.settles { (vertices - window).min(lists / 4 / cost.target) } else { 0 };
        let targets = window + more;
        let least = min_neighbors(extent, resident);
        let neighbors =
            (least + (lists - more * cost.target) / cost.neighbor).min(extent.edges().max(least));
        Ok(Self {
            resident,
            targets,
            neighbors,
            list_bytes: workers * (targets * cost.target + neighbors * cost.neighbor),
            pinned_bytes: packed.min(spare - lists * workers),
            unpacked: false,
        })
    }

    /// Bytes that a run is likely to fill: the lists of a worker have the edges of one item, and
    /// units are read only if they are not pinned.
    pub(crate) fn likely_bytes(&self, needs: &GatherNeeds, extent: &Extent, workers: u64) -> u64 {
        let cost = Cost::new(needs, self.resident, extent.weighted);
        let shard: u64 = extent.indexes.iter().map(|index| index.largest_shard).sum();
        let item = if needs.settles { extent.edges() } else { shard };
        let sources =
            if self.resident { 0 } else { extent.vertices.min(extent.interval()) * needs.state };
        let streamed = extent.packed() - self.pinned_bytes.min(extent.packed());
        let of_worker = sources + self.targets * cost.target;
        let lists = match self.unpacked {
            true => unpacked_bytes(needs, extent).unwrap_or(0),
            false => (workers * self.neighbors.min(item)).min(extent.edges()) * cost.neighbor,
        };
        let arrays = if self.resident { arrays(needs, extent) } else { 0 };
        arrays
            + needs.exchange
            + workers * of_worker
            + lists
            + (workers * units(extent)).min(streamed)
            + self.pinned_bytes
    }

    /// Edges of intervals that are split into parts, because their lists do not fit together.
    pub(crate) fn spilled_edges(&self, extent: &Extent) -> u64 {
        let (edges, intervals) = (extent.edges(), extent.intervals());
        let shard = extent.indexes.iter().map(|index| index.largest_shard).sum::<u64>().min(edges);
        let others = edges - shard;
        let fits = |edges: u64| edges <= self.neighbors;
        let of_others = if fits(others / intervals.saturating_sub(1).max(1)) { 0 } else { others };
        of_others + if fits(shard) { 0 } else { shard }
    }

    /// Items of all intervals of a program that settles.
    pub(crate) fn items(&self, extent: &Extent) -> u64 {
        extent
            .edges()
            .div_ceil(self.neighbors.max(1))
            .max(extent.vertices.div_ceil(self.targets.max(1)))
    }

    /// Bytes of the arrays on disk.
    pub(crate) fn array_bytes(&self, needs: &GatherNeeds, extent: &Extent) -> u64 {
        if self.resident { 0 } else { arrays(needs, extent) }
    }

    /// Bytes of the spilled edges.
    pub(crate) fn spilled_bytes(&self, extent: &Extent) -> u64 {
        self.spilled_edges(extent) * spill::edge_bytes(extent.weighted)
    }
}
