//! Counts the occurrences of keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::path::Path;

use brimful_store::Folder;

use crate::error::Result;
use crate::folder::Kind;
use crate::keyed::Keyed;
use crate::options::Options;

/// Counts of 64-bit keys, larger than memory.
///
/// New keys stay pending and are counted partition by partition, so that random keys cost no random
/// access.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{FrequencyCounter, Options};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(64 << 20, 0), Arc::new(Job::new()), None)?);
/// let counter = FrequencyCounter::open(&folder.path().join("counts"), Options::new(&resources))?;
/// counter.add_many(&[7, 7, 1 << 60])?;
/// assert_eq!(counter.count_many(&[7, 8, 1 << 60])?, [2, 0, 1]);
/// assert_eq!(counter.top(1)?, [(7, 2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FrequencyCounter(Keyed);

impl Deref for FrequencyCounter {
    type Target = Keyed;

    fn deref(&self) -> &Keyed {
        &self.0
    }
}

impl FrequencyCounter {
    /// Opens the counter at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, Kind::FrequencyCounter, 2, options)?))
    }

    /// Like [`FrequencyCounter::open`], in any folder; the caller ensures that no other process has
    /// it open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, Kind::FrequencyCounter, 2, options)?))
    }

    /// The number of occurrences of `key`.
    pub fn count(&self, key: u64) -> Result<u64> {
        Ok(self.0.get(key)?.unwrap_or(0))
    }

    /// The numbers of occurrences of `keys`, in the order of `keys`.
    pub fn count_many(&self, keys: &[u64]) -> Result<Vec<u64>> {
        self.0.get_many(keys, 0, |count| count)
    }

    /// Passes all keys and counts to `f`, in no particular order; one sequential pass.
    pub fn for_each(&self, f: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.0.for_each(f)
    }

    /// The `most` most frequent keys with their counts, most frequent first; among equal counts,
    /// smaller keys first. One sequential pass.
    pub fn top(&self, most: usize) -> Result<Vec<(u64, u64)>> {
        let mut heap = BinaryHeap::new();
        self.for_each(|key, count| {
            heap.push(Reverse((count, Reverse(key))));
            if heap.len() > most {
                heap.pop();
            }
            Ok(())
        })?;
        Ok(heap
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse((count, Reverse(key)))| (key, count))
            .collect())
    }
}
