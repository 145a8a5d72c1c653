//! What a run over neighbour lists needs, worked out before it begins.
//!
//! States, old and new but of programs that settle, and lengths of lists are in memory together, or
//! all on disk; a worker holds the lists of one item at least, and those of its longest. Invariant:
//! the sum of all parts is within the budget.

use brimful_store::Budget;

use super::spill;
use crate::error::Result;
use crate::extent::{Extent, IndexExtent};
use crate::needs::GatherNeeds;

/// What the budget is for, in its errors.
pub(crate) const PURPOSE: &str = "to gather neighbours in this graph";

/// Where everything lives during a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// States and lengths are in memory.
    pub(crate) resident: bool,
    /// Most targets whose lists a worker makes together, and most neighbours of theirs.
    pub(crate) targets: u64,
    pub(crate) neighbours: u64,
    /// Bytes of the lists of all workers, and of their targets.
    pub(crate) list_bytes: u64,
    /// Bytes of packed units that stay in memory.
    pub(crate) pinned_bytes: u64,
}

/// Bytes of memory of the lists that a worker makes together.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// For each neighbour: its id, weight and state, as far as they are listed.
    neighbour: u64,
    /// For each target.
    target: u64,
}

impl Cost {
    fn new(needs: &GatherNeeds, resident: bool, weighted: bool) -> Self {
        let state = needs.state;
        // Where its list ends, its turn, its new state; its old state and the length; degree and
        // strength.
        let windows = if resident { 0 } else { state + 4 };
        let degrees = if needs.degrees { 8 + 8 } else { 0 };
        Self {
            neighbour: 4 + if weighted { 8 } else { 0 } + if resident { 0 } else { state },
            target: 8 + 4 + state + windows + degrees,
        }
    }
}

/// Bytes of states, old and new unless they settle, and lengths of lists.
fn arrays(needs: &GatherNeeds, extent: &Extent) -> u64 {
    let copies = if needs.settles { 1 } else { 2 };
    extent.vertices * (copies * needs.state + 4)
}

/// Bytes of a unit of each file, and of a segment of each unpacked.
fn units(extent: &Extent) -> u64 {
    let of_index = |index: &IndexExtent| {
        index.columns.iter().map(|column| column.largest).sum::<u64>() + index.unpacked
    };
    extent.indexes.iter().map(of_index).sum()
}

/// The fewest bytes of a run.
fn least(needs: &GatherNeeds, extent: &Extent, resident: bool, workers: u64) -> u64 {
    let window = extent.vertices.min(extent.interval());
    let (arrays, sources) =
        if resident { (arrays(needs, extent), 0) } else { (0, window * needs.state) };
    let cost = Cost::new(needs, resident, extent.weighted);
    let lists = extent.longest_list * needs.buffers + least_neighbours(extent) * cost.neighbour;
    arrays
        + workers
            * (units(extent) + spill::read_bytes(extent) + sources + window * cost.target + lists)
}

/// The fewest neighbours that a worker lists together: the longest list, and so many that parts are
/// not too many.
fn least_neighbours(extent: &Extent) -> u64 {
    extent.longest_list.max((extent.edges() / 64).min(1 << 16))
}

impl Plan {
    /// The smallest budget, in bytes beside the process's own, in which a run works.
    pub(crate) fn minimum_bytes(needs: &GatherNeeds, extent: &Extent, workers: u64) -> u64 {
        least(needs, extent, true, workers).min(least(needs, extent, false, workers))
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
        // A quarter of what is left makes lists long enough, and the rest keeps edges in memory.
        // Programs that settle gain more by long lists, of many targets: fewer supersteps.
        let share = if needs.settles { spare - spare / 4 } else { spare / 4 };
        let lists = share.max(spare.saturating_sub(packed)) / workers;
        let cost = Cost::new(needs, resident, extent.weighted);
        let more = if needs.settles { (vertices - window).min(lists / 4 / cost.target) } else { 0 };
        let targets = window + more;
        let neighbours = least_neighbours(extent) + (lists - more * cost.target) / cost.neighbour;
        Ok(Self {
            resident,
            targets,
            neighbours,
            list_bytes: workers * (targets * cost.target + neighbours * cost.neighbour),
            pinned_bytes: packed.min(spare - lists * workers),
        })
    }

    /// Bytes that a run is likely to fill: lists of a worker are as long as the edges of an item,
    /// and units that are read as many as are not in memory.
    pub(crate) fn likely_bytes(&self, needs: &GatherNeeds, extent: &Extent, workers: u64) -> u64 {
        let cost = Cost::new(needs, self.resident, extent.weighted);
        let shard: u64 = extent.indexes.iter().map(|index| index.largest_shard).sum();
        let item = if needs.settles { extent.edges() } else { shard };
        let sources =
            if self.resident { 0 } else { extent.vertices.min(extent.interval()) * needs.state };
        let streamed = extent.packed() - self.pinned_bytes.min(extent.packed());
        let of_worker = sources + self.targets * cost.target;
        let lists = (workers * self.neighbours.min(item)).min(extent.edges());
        let arrays = if self.resident { arrays(needs, extent) } else { 0 };
        arrays
            + workers * of_worker
            + lists * cost.neighbour
            + (workers * units(extent)).min(streamed)
            + self.pinned_bytes
    }

    /// Edges of intervals that are taken apart, as their lists do not fit together.
    pub(crate) fn spilled_edges(&self, extent: &Extent) -> u64 {
        let (edges, intervals) = (extent.edges(), extent.intervals());
        let shard = extent.indexes.iter().map(|index| index.largest_shard).sum::<u64>().min(edges);
        let others = edges - shard;
        let fits = |edges: u64| edges <= self.neighbours;
        let of_others = if fits(others / intervals.saturating_sub(1).max(1)) { 0 } else { others };
        of_others + if fits(shard) { 0 } else { shard }
    }

    /// Items of all intervals of a program that settles.
    pub(crate) fn items(&self, extent: &Extent) -> u64 {
        extent
            .edges()
            .div_ceil(self.neighbours.max(1))
            .max(extent.vertices.div_ceil(self.targets.max(1)))
    }

    /// Bytes that a run has in scratch.
    pub(crate) fn scratch_bytes(&self, needs: &GatherNeeds, extent: &Extent) -> u64 {
        let arrays = if self.resident { 0 } else { arrays(needs, extent) };
        arrays + self.spilled_bytes(extent)
    }

    /// Bytes of the edges that are taken apart.
    pub(crate) fn spilled_bytes(&self, extent: &Extent) -> u64 {
        self.spilled_edges(extent) * spill::edge_bytes(extent.weighted)
    }
}
