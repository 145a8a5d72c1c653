//! The processes of the budget of a run on stores, and the error if it is too small.

use brimful_store::durable::{PAGE_BYTES, minimum_bytes as min_pages};
use brimful_store::{Error as StoreError, Resources, sorter};

use crate::error::{Error, Result};
use crate::from_graph::shards::edge_bytes;
use crate::process_partitions::ProcessPartitions;
use crate::{loading, run};

/// Bytes that a run needs in addition to the contents of its stores: memory that is reserved
/// already; memory for the lists or, before there are lists, for sorting and loading; and a few
/// pages or steps of growth for each partition.
pub(super) fn shared(resources: &Resources, partitions: usize, edge_bytes: usize) -> u64 {
    let taken = resources.budget.limit() - resources.budget.free();
    taken + LoadingShares::least(resources.workers(), partitions, edge_bytes)
}

/// Bytes of free memory for loading.
pub(crate) struct LoadingShares {
    /// For sorting edges, and for gathered vertices.
    pub(crate) sorting: u64,
    pub(crate) gathering: u64,
}

/// Maximum bytes for sorting.
const MAX_SORTED: u64 = 256 << 20;

impl LoadingShares {
    /// The processes of `free` bytes; an edge takes `edge_bytes` while it is sorted.
    pub(crate) fn new(free: u64, workers: usize, edge_bytes: usize) -> Self {
        let least = sorter::minimum_bytes(workers, edge_bytes);
        Self {
            sorting: (free / 8).clamp(least, MAX_SORTED.max(least)),
            gathering: loading::gathered_bytes(free),
        }
    }

    /// The minimum bytes of any run, in addition to its stores.
    pub(crate) fn least(workers: usize, partitions: usize, edge_bytes: usize) -> u64 {
        let loading = sorter::minimum_bytes(workers, edge_bytes) + loading::MIN_GATHERED;
        let lists = run::minimum_bytes(workers, partitions);
        loading.max(lists) + partitions as u64 * 2 * min_pages(PAGE_BYTES)
    }
}

/// Bytes that each of several processes needs in addition: for lists of signals to the partitions
/// of all, and for batches.
pub(crate) fn memory_of_processes(
    processes: &ProcessPartitions,
    workers: usize,
    is_weighted: bool,
) -> u64 {
    let least = |lists| LoadingShares::least(workers, lists, edge_bytes(is_weighted));
    let each = processes.of_process(0).len();
    least(each + processes.partitions()) - least(each) + processes.minimum_bytes()
}

/// The contents of full stores: their bytes, and the numbers of loaded and of all vertices and
/// edges.
pub(super) struct FilledStores {
    pub(super) bytes: u64,
    pub(super) vertices: (u64, u64),
    pub(super) edges: (u64, u64),
}

/// The error of a budget that was exhausted during loading. It names the needs of all vertices,
/// extrapolated from those that were loaded.
pub(super) fn too_small(
    error: Error,
    resources: &Resources,
    shared: u64,
    filled: &FilledStores,
) -> Error {
    if !matches!(error, Error::Store(StoreError::Budget { .. })) || filled.vertices.0 == 0 {
        return error;
    }
    // Approximate memory of a vertex without edges, and of an edge.
    let weight = |vertices: u64, edges: u64| (64 * vertices + 8 * edges).max(1);
    let (loaded, all) =
        (weight(filled.vertices.0, filled.edges.0), weight(filled.vertices.1, filled.edges.1));
    let stores = (filled.bytes as f64 * (all as f64 / loaded as f64)) as u64;
    // Sorting and loading hold three sixteenths of the budget, records grow when they have
    // signalled, and a growing array exists twice for a moment.
    let needed = shared.saturating_add(stores).saturating_add(stores / 8 * 5);
    let limit = resources.budget.limit();
    // An estimate that proved too small must not be named.
    let needed = if needed <= limit { limit + limit / 8 } else { needed };
    match resources.budget.require(needed, "to keep the vertices of this graph in memory") {
        Err(refused) => refused.estimated().into(),
        Ok(()) => error,
    }
}

/// Refuses a budget below the needs of every run; returns the bytes of memory for each store with a
/// fixed share.
pub(super) fn of_each_store(resources: &Resources, partitions: usize, shared: u64) -> Result<u64> {
    resources.budget.require(shared, "to keep vertices in a store")?;
    Ok((resources.budget.limit() - shared) / 2 / partitions as u64)
}
