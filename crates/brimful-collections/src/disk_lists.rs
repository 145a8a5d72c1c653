//! A fixed number of growing lists: the neighbors of each vertex.
//!
//! New items stay pending and are appended list by list later, so that items for random lists cost
//! no random access. Invariant: pending items are in their lists before a query or a sync.

use std::cell::RefCell;
use std::path::Path;

use brimful_store::DiskFolder;
use brimful_store::wording::counted;

use crate::bag::RecordBag;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::order::Order;
use crate::partition_log::PartitionLog;

const SCHEMA: &[u8] = b"lists of u32";
/// Bytes of an item.
const ITEM_BYTES: usize = 4;
/// Empty lists made per step.
const STEP: u64 = 1 << 20;
/// Items appended per batch; the numbers of their lists and their bytes are in memory together.
const BATCH: usize = 1 << 14;

/// Lists of 32-bit items, larger than memory.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{DiskLists, Options};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(64 << 20, 0), Arc::new(Job::new()), None)?);
/// let neighbors = DiskLists::open(&folder.path().join("mesh"), 4, Options::new(&resources))?;
/// neighbors.append_many(&[0, 3, 0], &[3, 0, 2])?;
/// assert_eq!(neighbors.get(0)?, [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskLists {
    bag: RecordBag,
    log: PartitionLog,
    options: Options,
    /// Number of bits of the greatest list number.
    bits: u32,
}

impl DiskLists {
    /// Opens the lists at `path`, or makes `count` empty lists, from 1 to 2^32.
    ///
    /// # Errors
    /// [`Error::RecordType`] if the lists were made with another `count`; `Error::Usage` for a
    /// `count` out of range; otherwise as [`RecordBag::open`].
    pub fn open(path: &Path, count: u64, options: Options) -> Result<Self> {
        let (memory, options) = PartitionLog::reserve(options)?;
        let bag = RecordBag::open(path, SCHEMA, options.clone())?;
        if count == 0 || count > 1 << 32 {
            let most = 1u64 << 32;
            let problem = format!("the number of lists must be from 1 to {most}, not {count}");
            return Err(Error::Usage(problem));
        }
        if bag.is_empty() {
            let empty = vec![[0u8; 0]; STEP.min(count) as usize];
            for start in (0..count).step_by(STEP as usize) {
                options.resources.job.check()?;
                bag.extend(empty.get(..(count - start).min(STEP) as usize).unwrap_or_default())?;
            }
        } else if bag.len() != count {
            let name = |count: u64| counted(count, "list");
            return Err(Error::RecordType {
                path: bag.path().into(),
                expected: name(count),
                found: name(bag.len()),
            });
        }
        let log = PartitionLog::new(&DiskFolder::new(path), &options, memory)?;
        let bits = (64 - (count - 1).leading_zeros()).max(1);
        Ok(Self { bag, log, options, bits })
    }

    /// Number of pending items: the next query applies them first, which may take long.
    pub fn pending(&self) -> u64 {
        self.log.len()
    }

    /// Number of items accepted since the lists were opened.
    pub fn accepted(&self) -> u64 {
        self.log.accepted()
    }

    /// The path of the lists.
    pub fn path(&self) -> &Path {
        self.bag.path()
    }

    /// Number of lists.
    pub fn len(&self) -> u64 {
        self.bag.len()
    }

    /// Always false: there is at least one list.
    pub fn is_empty(&self) -> bool {
        self.bag.is_empty()
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.bag.file_bytes()
    }

    /// Appends `items[i]` to list `lists[i]`. The items of a list form ascending runs; a run
    /// consists of items that were in memory together. After a failure no item was appended.
    ///
    /// # Errors
    /// `Error::OutOfRange` for a list; `Error::Usage` if the numbers of lists and items differ.
    pub fn append_many(&self, lists: &[u32], items: &[u32]) -> Result<()> {
        if lists.len() != items.len() {
            return Err(Error::Usage(format!(
                "{} and {} were given",
                counted(lists.len(), "list"),
                counted(items.len(), "item")
            )));
        }
        self.check(lists.iter().copied().max().map(u64::from))?;
        let shift = 32 - self.bits;
        let keys: Vec<u64> = lists
            .iter()
            .zip(items)
            .map(|(list, item)| (u64::from(*list) << 32 | u64::from(*item)) << shift)
            .collect();
        // Applies before it accepts these items, because a cancellation may interrupt `apply`.
        if self.log.is_full() {
            self.apply()?;
        }
        self.log.push(&keys, |key| key, &self.options)
    }

    fn check(&self, largest: Option<u64>) -> Result<()> {
        match largest.filter(|list| *list >= self.len()) {
            Some(id) => Err(Error::OutOfRange { path: self.path().into(), id, len: self.len() }),
            None => Ok(()),
        }
    }

    /// Appends the pending items.
    pub fn apply(&self) -> Result<()> {
        let shift = 32 - self.bits;
        self.log.drain(
            &self.options,
            |key| key,
            |key| key,
            |keys| {
                let mut done = 0;
                for keys in keys.chunks(BATCH) {
                    self.append_sorted(keys, shift)
                        .map_err(|(items, error)| (done + items, error))?;
                    done += keys.len();
                }
                Ok(())
            },
        )
    }

    /// Appends the items of ascending keys; an error includes the number of items appended.
    fn append_sorted(&self, keys: &[u64], shift: u32) -> Result<(), (usize, Error)> {
        let list_of = |key: &u64| (key >> shift) >> 32;
        let (mut ids, mut ends, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for part in keys.chunk_by(|a, b| list_of(a) == list_of(b)) {
            ids.extend(part.first().map(list_of));
            part.iter()
                .for_each(|key| bytes.extend_from_slice(&((key >> shift) as u32).to_le_bytes()));
            ends.push(bytes.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let items: Vec<&[u8]> = starts
            .zip(&ends)
            .map(|(start, end)| bytes.get(start..*end).unwrap_or_default())
            .collect();
        self.bag.append_sorted(&ids, &items).map_err(|(lists, error)| {
            let end = lists.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
            (end / ITEM_BYTES, error)
        })
    }

    /// The items of a list.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn get(&self, list: u64) -> Result<Vec<u32>> {
        Ok(self.get_many(&[list])?.1)
    }

    /// Number of items of a list.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn count(&self, list: u64) -> Result<u64> {
        self.apply()?;
        Ok(self.bag.record_len(list)? / ITEM_BYTES as u64)
    }

    /// Reads the items of a list as little-endian bytes into `out`, without other memory, and
    /// returns the number of bytes of the list. If this number differs from the length of `out`,
    /// the content of `out` is undefined.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn read_into(&self, list: u64, out: &mut [u8]) -> Result<u64> {
        self.apply()?;
        self.bag.read_into(list, out)
    }

    /// The number of items of each of `lists`, and all their items, one list after the other.
    /// Besides the result, only lists that share a page with others are in memory, one batch at a
    /// time.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn get_many(&self, lists: &[u64]) -> Result<(Vec<u64>, Vec<u32>)> {
        self.check(lists.iter().copied().max())?;
        self.apply()?;
        let (mut counts, mut all) = (Vec::with_capacity(lists.len()), Vec::new());
        for some in lists.chunks(BATCH) {
            let mut rest = some;
            while !rest.is_empty() {
                let records = self.bag.fetch_share(rest)?;
                for record in records.iter() {
                    counts.push((record.len() / ITEM_BYTES) as u64);
                    all.extend(items(record));
                }
                rest = rest.get(records.len()..).unwrap_or_default();
                if let Some((long, later)) = rest.split_first() {
                    let start = all.len();
                    let parts = RefCell::new(&mut all);
                    self.bag.visit(
                        *long,
                        |len| parts.borrow_mut().reserve_exact(len as usize / ITEM_BYTES),
                        |bytes| parts.borrow_mut().extend(items(bytes)),
                    )?;
                    counts.push((all.len() - start) as u64);
                    rest = later;
                }
            }
        }
        Ok((counts, all))
    }

    /// Passes all lists to `f`, on all threads.
    ///
    /// # Errors
    /// Errors of `f`.
    pub fn for_each(&self, f: impl Fn(u64, &[u32]) -> Result<()> + Sync) -> Result<()> {
        self.apply()?;
        self.bag.process(&Order::Ascending, |list, bytes| f(list, &items(bytes)))
    }

    /// Like [`RecordBag::verify`], after appending the pending items.
    pub fn verify(&self) -> Result<u64> {
        self.apply()?;
        self.bag.verify()
    }

    /// Makes all appended items durable.
    pub fn sync(&self) -> Result<()> {
        self.apply()?;
        self.bag.sync()
    }
}

fn items(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<ITEM_BYTES>().0.iter().map(|item| u32::from_le_bytes(*item)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use brimful_store::ErrorKind;
    use brimful_store::durable::PageId;

    use super::*;

    #[test]
    fn items_that_find_too_little_memory_are_neither_lost_nor_appended_twice() {
        let folder = tempfile::tempdir().unwrap();
        let lists = DiskLists::open(folder.path(), 500, Options::of_test(24 << 20)).unwrap();
        // A page table of an address space that lists do not use takes the memory, but for that of
        // some pages.
        let (pages, mut entries) = (lists.bag.pages(), 0);
        let extend = |entries| pages.extend_to(&pages.write(), PageId::new(3, entries));
        for more in (8..24).rev().map(|bit| 1 << bit) {
            entries += if extend(entries + more).is_ok() { more } else { 0 };
        }
        let to: Vec<u32> = (0..200_000).map(|item| item % 500).collect();
        let items: Vec<u32> = (0..200_000).map(|item| item / 500).collect();
        lists.append_many(&to, &items).unwrap();
        for _ in 0..2 {
            assert_eq!(lists.apply().unwrap_err().kind(), ErrorKind::Budget);
        }
        let mut found: Vec<Vec<u32>> = Vec::new();
        for list in 0..500 {
            found.push(self::items(&lists.bag.get(list).unwrap()));
        }
        assert!(found.iter().any(|items| !items.is_empty()), "none was appended");
        let waiting = Mutex::new(Vec::new());
        let shift = 32 - lists.bits;
        let drained = lists.log.drain(
            &lists.options,
            |key| key,
            |key| key,
            |keys| {
                waiting.lock().unwrap().extend_from_slice(keys);
                Ok(())
            },
        );
        drained.unwrap();
        for key in waiting.into_inner().unwrap() {
            let key = key >> shift;
            found[(key >> 32) as usize].push(key as u32);
        }
        let expected: Vec<u32> = (0..400).collect();
        for mut items in found {
            items.sort_unstable();
            assert_eq!(items, expected);
        }
    }
}
