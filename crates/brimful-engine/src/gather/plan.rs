//! What a run over neighbour lists needs, worked out before it begins.
//!
//! States, old and new, and lengths of lists are in memory together, or all on disk; a worker holds the lists of one
//! item at least, and those of its longest. Invariant: the sum of all parts is within the budget.

use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::shards::ShardFile;
use brimful_store::Budget;

use super::Gather;
use crate::error::Result;
use crate::residency::{columns, unit_bytes};

/// What the budget is for, in its errors.
pub(super) const PURPOSE: &str = "to gather neighbours in this graph";

/// Where everything lives during a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// States and lengths are in memory.
    pub(super) resident: bool,
    /// Most targets whose lists a worker makes together, and most neighbours of theirs.
    pub(super) targets: u64,
    pub(super) neighbours: u64,
    /// Bytes of packed units that stay in memory.
    pub(super) pinned_bytes: u64,
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
    fn new<G: Gather>(resident: bool, weighted: bool) -> Self {
        let state = size_of::<G::State>() as u64;
        // Where its list ends, its turn, its new state; its old state and the length; degree and strength.
        let windows = if resident { 0 } else { state + 4 };
        let degrees = if G::NEEDS_DEGREES { 8 + 8 } else { 0 };
        Self {
            neighbour: 4 + if weighted { 8 } else { 0 } + if resident { 0 } else { state },
            target: 8 + 4 + state + windows + degrees,
        }
    }
}

impl Plan {
    /// Plans a run of `G` over `shards` whose longest list is known to have `longest` neighbours.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub(super) fn new<G: Gather>(
        graph: &Graph,
        shards: &[Arc<ShardFile>],
        weighted: bool,
        longest: u64,
        workers: u64,
        budget: &Budget,
    ) -> Result<Self> {
        let (vertices, state) = (graph.connected(), size_of::<G::State>() as u64);
        let window = vertices.min(1 << graph.description().interval_bits);
        let units = |file: &Arc<ShardFile>| -> u64 {
            columns(file, weighted).map(|column| unit_bytes(file, column).max().unwrap_or(0)).sum()
        };
        let units: u64 = shards.iter().map(|file| units(file) + file.largest_unpacked()).sum();
        let minimum = |resident: bool| {
            let (arrays, sources) =
                if resident { (vertices * (2 * state + 4), 0) } else { (0, window * state) };
            let cost = Cost::new::<G>(resident, weighted);
            arrays + workers * (units + sources + window * cost.target + longest * cost.neighbour)
        };
        let resident = minimum(true) <= budget.limit() || minimum(true) <= minimum(false);
        budget.require(minimum(resident), PURPOSE)?;
        let spare = budget.limit() - minimum(resident);
        let packed = shards.iter().flat_map(|file| columns(file, weighted).flat_map(|c| unit_bytes(file, c)));
        let packed: u64 = packed.sum();
        // A quarter of what is left makes lists long enough, and the rest keeps edges in memory. Programs that settle gain more
        // by long lists, of many targets: fewer supersteps.
        let share = if G::SETTLES { spare - spare / 4 } else { spare / 4 };
        let lists = share.max(spare.saturating_sub(packed)) / workers;
        let cost = Cost::new::<G>(resident, weighted);
        let more = if G::SETTLES { (vertices - window).min(lists / 4 / cost.target) } else { 0 };
        Ok(Self {
            resident,
            targets: window + more,
            neighbours: longest + (lists - more * cost.target) / cost.neighbour,
            pinned_bytes: packed.min(spare - lists * workers),
        })
    }
}
