//! Sorts more records than fit in memory, by means of the store's sorter.

use std::path::Path;

use brimful_store::DiskFolder;
use brimful_store::sorter::{Record, Sorter, minimum_bytes};

use crate::error::Result;
use crate::options::Options;

/// Passes the records that `feed` pushes to `consume`, ascending, in batches. Records that do not
/// fit in memory spill to a nameless file in `folder`.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{Options, sort};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(16 << 20, 0), Arc::new(Job::new()), None)?);
/// let mut sorted = Vec::new();
/// sort(
///     folder.path(),
///     &Options::new(&resources),
///     |push| (0..500_000u64).rev().try_for_each(push),
///     |batch| Ok(sorted.extend_from_slice(batch)),
/// )?;
/// assert!(sorted.into_iter().eq(0..500_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of `feed` and `consume`; [`crate::Error::Store`] if the budget is too small or the
/// disk fails.
pub fn sort<R: Record>(
    folder: &Path,
    options: &Options,
    feed: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
    consume: impl FnMut(&[R]) -> Result<()> + Send,
) -> Result<()> {
    let resources = &options.resources;
    let workers = resources.workers();
    let bytes = options.memory_bytes.max(minimum_bytes(workers, size_of::<R>()));
    let _memory = resources.budget.reserve(bytes, "to sort")?;
    let sorter = Sorter::new(&DiskFolder::new(folder), bytes, workers, &resources.job)?;
    let mut writer = sorter.writer();
    feed(&mut |record| Ok(writer.push(record)?))?;
    writer.finish()?;
    sorter.merge(&resources.pool, consume)
}
