//! Counts the occurrences of keys.

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

impl FrequencyCounter {
    /// Opens the counter at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, KIND, 2, options)?))
    }

    /// Like [`FrequencyCounter::open`], in any folder; the caller ensures that no other process has
    /// it open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, KIND, 2, options)?))
    }

    /// Number of pending keys: the next query applies them first, which may take long.
    pub fn waiting(&self) -> u64 {
        self.0.waiting()
    }

    /// Number of keys accepted since the counter was opened, including repeats.
    pub fn taken(&self) -> u64 {
        self.0.taken()
    }

    /// The path of the counter.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Counts each of `keys` once more: all of them, or none after a failure. After an I/O error
    /// the counter refuses use until it is opened again, in the state of the last sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        self.0.add_many(keys)
    }

    /// The number of occurrences of `key`.
    pub fn count(&self, key: u64) -> Result<u64> {
        Ok(self.0.get(key)?.unwrap_or(0))
    }

    /// The number of keys per query for callers that copy keys and answers: as many as the budget
    /// has memory for. Other callers should ask for all keys at once, which costs no copy.
    pub fn question_len(&self) -> usize {
        self.0.question_len()
    }

    /// The numbers of occurrences of `keys`, in the order of `keys`.
    pub fn count_many(&self, keys: &[u64]) -> Result<Vec<u64>> {
        self.0.get_many(keys, 0, |count| count)
    }

    /// Number of different keys.
    pub fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// True if no key was counted.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.0.file_bytes()
    }

    /// Passes all keys and counts to `f`, in no particular order; one sequential pass.
    pub fn for_each(&self, f: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.0.for_each(f)
    }

    /// The `most` most frequent keys, with their counts; among equal counts the smaller keys.
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

    /// Reads everything on disk and verifies its checksums and its order. Returns the bytes read.
    ///
    /// # Errors
    /// Corruption, naming the offset.
    pub fn verify(&self) -> Result<u64> {
        self.0.verify()
    }

    /// Makes all counts durable.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
