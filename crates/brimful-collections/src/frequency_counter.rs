//! How often each key occurred.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use brimful_store::Folder;

use crate::error::Result;
use crate::keyed::Keyed;
use crate::options::Options;

const KIND: u32 = 3;

/// Counts of 64-bit keys, larger than memory.
///
/// Keys are put off and counted partition by partition, so that random ones cost no random access.
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

impl FrequencyCounter {
    /// Opens the counter at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, KIND, 2, options)?))
    }

    /// [`FrequencyCounter::open`] in any folder; the caller sees to it that nobody else has it
    /// open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, KIND, 2, options)?))
    }

    /// Keys put off: the next question applies them first, which may take long.
    pub fn waiting(&self) -> u64 {
        self.0.waiting()
    }

    /// Keys taken since the counter was opened, repeats included.
    pub fn taken(&self) -> u64 {
        self.0.taken()
    }

    /// Where the counter is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Counts each of `keys` once more: all of them, or none if it fails. After an I/O error the
    /// counter is refused until it is opened again, and is then what it was at the last sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        self.0.add_many(keys)
    }

    /// How often `key` occurred.
    pub fn count(&self, key: u64) -> Result<u64> {
        Ok(self.0.get(key)?.unwrap_or(0))
    }

    /// Keys that are best asked for at once by a caller who copies them and the answers: as many as
    /// the budget has memory for. Others cost no copy however many they are, and are best asked for
    /// all at once.
    pub fn question_len(&self) -> usize {
        self.0.question_len()
    }

    /// How often each of `keys` occurred, in their order.
    pub fn count_many(&self, keys: &[u64]) -> Result<Vec<u64>> {
        self.0.get_many(keys, 0, |count| count)
    }

    /// Different keys.
    pub fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.0.file_bytes()
    }

    /// Calls `f` with all keys and counts, in no particular order; one sequential pass.
    pub fn for_each(&self, f: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.0.for_each(f)
    }

    /// The `most` keys that occurred most often, with their counts; of equal counts the smaller
    /// keys.
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

    /// Reads everything that stands on disk and compares it with its checksums and its order.
    /// Returns the bytes read.
    ///
    /// # Errors
    /// Corruption that names the offset.
    pub fn verify(&self) -> Result<u64> {
        self.0.verify()
    }

    /// Makes everything counted so far survive a crash.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
