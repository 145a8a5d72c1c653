//! Records that are sorted in scratch, and the choice whether the resulting lists fit in memory.

use brimful_engine::scratch::in_scratch;
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::sorter::{self, Record, SortWriter, Sorter};

use crate::Result;

/// A sorter of the records that `push` writes, ready to be merged, in `bytes` of memory.
pub(crate) fn sorted<'r, R: Record>(
    graph: &Graph,
    bytes: u64,
    resources: &'r Resources,
    push: impl FnOnce(&mut SortWriter<'_, 'r, R>) -> Result<()>,
) -> Result<Sorter<'r, R>> {
    let (workers, job) = (resources.workers(), &resources.job);
    let sorter = in_scratch(graph, &|folder| Sorter::new(folder, bytes, workers, job))?;
    let mut writer = sorter.writer();
    push(&mut writer)?;
    writer.finish()?;
    Ok(sorter)
}

/// Like `sorted`, for at most `max_entries` records that become entries of `entry_bytes` bytes
/// each, in `bytes` of memory beyond the minimum. Also returns true if the entries are to be in
/// memory: if `bytes` holds all entries and half of the records that are sorted.
pub(crate) fn sorted_entries<'r, R: Record>(
    graph: &Graph,
    max_entries: u64,
    entry_bytes: u64,
    bytes: u64,
    resources: &'r Resources,
    push: impl FnOnce(&mut SortWriter<'_, 'r, R>) -> Result<()>,
) -> Result<(Sorter<'r, R>, bool)> {
    let is_resident = bytes >= max_entries * (entry_bytes + size_of::<R>() as u64 / 2);
    let least = sorter::minimum_bytes(resources.workers(), size_of::<R>());
    let sorting = least + if is_resident { bytes - max_entries * entry_bytes } else { bytes };
    Ok((sorted(graph, sorting, resources, push)?, is_resident))
}
