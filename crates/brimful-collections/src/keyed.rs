//! The common part of a set and a counter of 64-bit keys: a table, and pending keys.
//!
//! Invariant: pending keys are applied before a query or a sync.

use std::path::Path;

use brimful_store::Folder;
use brimful_store::durable::PageFile;
use brimful_store::external::FolderLock;

use crate::by_range::{by_range, question_len};
use crate::error::Result;
use crate::fields::u64_at;
use crate::folder::{Kind, folder_of, lock_folder, open_pages};
use crate::hash_pages::{HashPages, mix, unmix};
use crate::options::Options;
use crate::partition_log::PartitionLog;

/// Keys, or keys with counts, larger than memory: the methods that a
/// [`MembershipSet`](crate::MembershipSet) and a [`FrequencyCounter`](crate::FrequencyCounter)
/// share.
#[derive(Debug)]
pub struct Keyed {
    pages: PageFile,
    table: HashPages,
    log: PartitionLog,
    options: Options,
    /// `None` for a folder that is not of the file system.
    _lock: Option<FolderLock>,
}

impl Keyed {
    pub(crate) fn open(path: &Path, kind: Kind, words: usize, options: Options) -> Result<Self> {
        let (folder, lock) = lock_folder(path)?;
        let mut opened = Self::open_in(&folder, kind, words, options)?;
        opened._lock = Some(lock);
        Ok(opened)
    }

    pub(crate) fn open_in(
        folder: &dyn Folder,
        kind: Kind,
        words: usize,
        options: Options,
    ) -> Result<Self> {
        let (memory, options) = PartitionLog::reserve(options)?;
        let (pages, meta) = open_pages(folder, kind, &options, (&[0; 16], 16))?;
        let table = HashPages::restore(&pages, 0, words, (u64_at(&meta, 0), u64_at(&meta, 8)))?;
        let log = PartitionLog::new(folder, &options, memory)?;
        Ok(Self { pages, table, log, options, _lock: None })
    }

    /// The path of the collection.
    pub fn path(&self) -> &Path {
        folder_of(&self.pages)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.pages.file_bytes()?)
    }

    /// Number of pending keys: the next query applies them first, which may take long.
    pub fn pending(&self) -> u64 {
        self.log.len()
    }

    /// Number of keys accepted since the collection was opened, including repeats.
    pub fn accepted(&self) -> u64 {
        self.log.accepted()
    }

    /// Adds all keys, or none after a failure; a counter adds 1 to the count of each. After an I/O
    /// error, the collection refuses use until it is opened again, in the state of the last sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        // Applies before it accepts these keys, because a cancellation may interrupt `apply`.
        if self.log.is_full() {
            self.apply()?;
        }
        self.log.push(keys, mix, &self.options)
    }

    /// Applies the pending keys.
    pub(crate) fn apply(&self) -> Result<()> {
        let resources = &self.options.resources;
        self.log.drain(&self.options, mix, unmix, |keys| {
            self.table.add_sorted(&self.pages, resources, keys)
        })
    }

    /// Number of different keys.
    pub fn len(&self) -> Result<u64> {
        self.apply()?;
        Ok(self.table.len())
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub(crate) fn get(&self, key: u64) -> Result<Option<u64>> {
        self.apply()?;
        self.table.get(&self.pages, mix(key))
    }

    pub(crate) fn remove(&self, key: u64) -> Result<bool> {
        self.apply()?;
        Ok(self.table.set(&self.pages, &self.pages.write(), mix(key), None)?.is_some())
    }

    /// The number of keys per query for callers that copy keys and answers: as many as the budget
    /// has memory for. Other callers should ask for all keys at once, which costs no copy.
    pub fn question_len(&self) -> usize {
        question_len(&self.options)
    }

    /// The result of `f` for each key's value, in the order of `keys`; `absent` for missing keys.
    pub(crate) fn get_many<R: Copy + Send + Sync>(
        &self,
        keys: &[u64],
        absent: R,
        f: impl Fn(u64) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.apply()?;
        by_range(&self.options, keys, absent, mix, || {
            let mut scanner = self.pages.scanner();
            let f = &f;
            move |sorted, found| {
                let job = &self.options.resources.job;
                self.table.get_sorted(&mut scanner, job, sorted, |index, value| {
                    found.push((index, f(value)))
                })
            }
        })
    }

    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.apply()?;
        self.table.for_each(&self.pages, &self.options.resources.job, |mixed, value| {
            f(unmix(mixed), value)
        })
    }

    /// Reads everything on disk and verifies checksums, order and number of keys. Returns the
    /// number of bytes read.
    ///
    /// # Errors
    /// Corruption; the error names the offset.
    pub fn verify(&self) -> Result<u64> {
        self.apply()?;
        let job = &self.options.resources.job;
        let read = self.pages.verify(job)?;
        self.table.verify(&self.pages, job, |_, _| Ok(()))?;
        Ok(read)
    }

    /// Makes all keys durable.
    pub fn sync(&self) -> Result<()> {
        self.apply()?;
        Ok(self.pages.sync_with(|writing| {
            self.table.finish_doubling(&self.pages, writing, true)?;
            let (bits, len) = self.table.describe();
            Ok([bits.to_le_bytes(), len.to_le_bytes()].concat())
        })?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test ends at the first surprise")]

    use brimful_store::ErrorKind;
    use brimful_store::durable::PageId;

    use super::*;
    use crate::bucket::HEADER_BYTES;
    use crate::fields::u32_at;

    const KEY_BYTES: usize = size_of::<u64>();

    #[test]
    fn keys_that_find_too_little_memory_stay_pending() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::of_test(64 << 20);
        let counter = Keyed::open(folder.path(), Kind::FrequencyCounter, 2, options).unwrap();
        let keys: Vec<u64> = (0..60_000).collect();
        counter.add_many(&keys).unwrap();
        assert_eq!(counter.len().unwrap(), 60_000);
        counter.add_many(&keys).unwrap();
        counter.add_many(&(60_000..150_000).collect::<Vec<_>>()).unwrap();
        // Three quarters of the budget without the log are for pages, 31 of which stay in memory.
        let pages_bytes = (64 - 8) * (1 << 20) / 4 * 3 - 31 * 4096;
        let mut refused = 0;
        for spare in (0..).step_by(256) {
            if counter.pages.owner_takes(pages_bytes - spare).is_err() {
                continue;
            }
            let Err(error) = counter.len() else {
                break;
            };
            assert_eq!(error.kind(), ErrorKind::Budget, "{error}");
            refused += 1;
        }
        assert_eq!(counter.len().unwrap(), 150_000);
        assert!(refused > 2, "{refused} refused");
        let mut sum = 0;
        counter
            .for_each(|key, count| {
                assert_eq!(count, 1 + u64::from(key < 60_000), "key {key}");
                sum += count;
                Ok(())
            })
            .unwrap();
        assert_eq!(sum, 210_000);
    }

    /// A set of 100,000 keys in many buckets, after `damage` has changed its first bucket.
    fn verified(damage: impl FnOnce(&mut [u8])) -> Result<u64> {
        let folder = tempfile::tempdir().unwrap();
        let set = Keyed::open(folder.path(), Kind::MembershipSet, 1, Options::of_test(64 << 20))?;
        set.add_many(&(0..100_000).collect::<Vec<u64>>())?;
        set.sync()?;
        set.pages.update(&set.pages.write(), PageId::new(0, 0), |page| damage(page.bytes_mut()))?;
        set.sync()?;
        set.verify()
    }

    #[test]
    fn verification_finds_keys_out_of_order_and_in_the_wrong_bucket() {
        assert!(verified(|_| ()).is_ok());
        let swapped = verified(|bytes| {
            let (first, second) = bytes[HEADER_BYTES..].split_at_mut(KEY_BYTES);
            first.swap_with_slice(&mut second[..KEY_BYTES]);
        });
        assert!(swapped.unwrap_err().to_string().contains("bucket 0 is not in its place"));
        let moved = verified(|bytes| {
            let last = HEADER_BYTES + (u32_at(bytes, 0) as usize - 1) * KEY_BYTES;
            // The least key of bucket 4 of 64 or more, in a window with bucket 0.
            bytes[last..][..KEY_BYTES].copy_from_slice(&(1u64 << 60).to_le_bytes());
        });
        assert!(moved.unwrap_err().to_string().contains("bucket 0 is not in its place"));
    }
}
