//! A hash table in pages: buckets in order of the hash, entries sorted within a bucket.
//!
//! Keys are 64 bits, mixed by a bijection, so that the mixed key *is* the key and equal keys are
//! equal numbers. Bucket b of 2^n holds the mixed keys whose first n bits are b; when the buckets
//! are full their number doubles in one sequential pass. Invariant: entries of a bucket ascend; a
//! bucket is one page (`bucket`). A sorted batch visits each page once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use brimful_store::durable::{PageFile, PageId, Scanner, Writing};
use brimful_store::splitmix::{GOLDEN, splitmix64};
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, ErrorKind, Job, Resources, Result as StoreResult};

use crate::WINDOW_PAGES;
use crate::bucket::{Entries, HEADER_BYTES, Merged};
use crate::by_range::{Asked, visit_pages};
use crate::error::{Error, Result};
use crate::fields::put;
use crate::folder::window;

/// The limit of 2^48 buckets stays well below the 2^60 page numbers of an address space.
const MAX_BITS: u32 = 48;

/// Mixes a key; [`unmix`] undoes it.
pub(crate) fn mix(key: u64) -> u64 {
    splitmix64(key)
}

/// The inverse of [`mix`].
pub(crate) fn unmix(mixed: u64) -> u64 {
    // Undoes a step `z ^ (z >> by)`: each round restores `by` more of the upper bits.
    let undo = |mut z: u64, by: u32| {
        let shifted = z;
        let mut steps = by;
        while steps < 64 {
            z = shifted ^ (z >> by);
            steps += by;
        }
        z
    };
    let z = undo(mixed, 31).wrapping_mul(0x3196_42B2_D24D_8EC3);
    let z = undo(z, 27).wrapping_mul(0x96DE_1B17_3F11_9089);
    undo(z, 30).wrapping_sub(GOLDEN)
}

/// The number of buckets.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    /// There are 2^`bits` buckets.
    bits: u32,
    /// During a doubling, the number of buckets still to split; these are the first ones.
    unsplit: Option<u64>,
}

/// A table of entries of one or two words: the mixed key, and a value.
#[derive(Debug)]
pub(crate) struct HashPages {
    stream: u8,
    entries: Entries,
    buckets: RwLock<Buckets>,
    len: AtomicU64,
    /// A doubling failed half-way: only the state of the last sync is valid.
    broken: AtomicBool,
}

impl HashPages {
    /// Restores the table in address space `stream` from the result of [`HashPages::describe`], or
    /// from zeros for a new table; `words` is 1 for a set and 2 for a map to a number.
    ///
    /// # Errors
    /// Corruption if these numbers of buckets or entries are impossible.
    pub(crate) fn restore(
        pages: &PageFile,
        stream: u8,
        words: usize,
        (bits, len): (u64, u64),
    ) -> StoreResult<Self> {
        let entries = Entries { words };
        let max_len =
            pages.pages(stream).saturating_mul(entries.capacity(pages.page_bytes()) as u64);
        if bits > u64::from(MAX_BITS) || len > max_len {
            let problem = format!(
                "the counts are impossible: 2^{bits} buckets with {}",
                counted(len, "entry")
            );
            return Err(StoreError::corrupt_pages(pages.path(), 0, problem));
        }
        Ok(Self {
            stream,
            entries,
            buckets: RwLock::new(Buckets { bits: bits as u32, unsplit: None }),
            len: AtomicU64::new(len),
            broken: AtomicBool::new(false),
        })
    }

    /// The bits of bucket numbers, and the number of entries, to store next to the pages.
    pub(crate) fn describe(&self) -> (u64, u64) {
        (u64::from(self.buckets().bits), self.len())
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    fn buckets(&self) -> RwLockReadGuard<'_, Buckets> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes an interrupted doubling, if any, and returns the buckets. A caller that changes
    /// pages passes its right to write; then a cancellation does not interrupt the doubling.
    fn doubled(
        &self,
        pages: &PageFile,
        writing: Option<&Writing<'_>>,
    ) -> StoreResult<RwLockReadGuard<'_, Buckets>> {
        loop {
            let buckets = self.buckets();
            self.usable(pages)?;
            if buckets.unsplit.is_none() {
                return Ok(buckets);
            }
            drop(buckets);
            match writing {
                Some(writing) => self.finish_doubling(pages, writing, false)?,
                None => self.finish_doubling(pages, &pages.write(), true)?,
            }
        }
    }

    fn page(&self, bucket: u64) -> PageId {
        PageId::new(self.stream, bucket)
    }

    /// Fails if a doubling failed half-way.
    fn usable(&self, pages: &PageFile) -> StoreResult<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Poisoned { path: pages.path().into() });
        }
        Ok(())
    }

    /// The value of a mixed key (0 in a set), if it exists.
    pub(crate) fn get(&self, pages: &PageFile, mixed: u64) -> Result<Option<u64>> {
        let buckets = self.doubled(pages, None)?;
        Ok(pages.read(self.page(bucket(mixed, buckets.bits)), |bytes| {
            let found = self.entries.find(bytes, mixed).ok()?;
            Some(self.entries.value(bytes, found))
        })?)
    }

    /// Calls `found` with the index and the value of each of `sorted` that exists.
    pub(crate) fn get_sorted(
        &self,
        scanner: &mut Scanner<'_>,
        job: &Job,
        sorted: &[Asked],
        mut found: impl FnMut(u32, u64),
    ) -> Result<()> {
        let buckets = self.doubled(scanner.pages(), None)?;
        let bits = buckets.bits;
        let page_of = |mixed| self.page(bucket(mixed, bits));
        visit_pages(scanner, job, sorted, page_of, |bytes, group| {
            self.entries.find_sorted(bytes, group.iter(), &mut found);
        })
    }

    /// Adds ascending mixed keys: to a set, or to a map whose values count them. The error includes
    /// the number of keys added so far; a cancellation interrupts a doubling.
    pub(crate) fn add_sorted(
        &self,
        pages: &PageFile,
        resources: &Resources,
        keys: &[u64],
    ) -> Result<(), (usize, Error)> {
        let mut rest = keys;
        loop {
            let added = self.add_some(pages, resources, &mut rest);
            let with_count = |error: StoreError| (keys.len() - rest.len(), error.into());
            let bits = added.map_err(with_count)?;
            if rest.is_empty() {
                return Ok(());
            }
            self.double(pages, &pages.write(), bits, true).map_err(with_count)?;
        }
    }

    /// Adds keys until a bucket is full, and removes those that it added from `keys`, also before a
    /// failure; returns the number of bits that select a bucket.
    fn add_some(
        &self,
        pages: &PageFile,
        resources: &Resources,
        keys: &mut &[u64],
    ) -> StoreResult<u32> {
        drop(self.doubled(pages, None)?);
        // The same lock order as in doubling.
        let writing = pages.write();
        let buckets = self.doubled(pages, Some(&writing))?;
        let bits = buckets.bits;
        if self.is_crowded(pages, bits) {
            return Ok(bits);
        }
        let groups: Vec<&[u64]> =
            keys.chunk_by(|a, b| bucket(*a, bits) == bucket(*b, bits)).collect();
        let bucket_of = |group: &&[u64]| group.first().map_or(0, |key| bucket(*key, bits));
        let mut merged_page = vec![0; pages.page_bytes()];
        for window in groups.chunks(window(pages, resources)) {
            if window.len() > 1 {
                pages.scanner().load(window.iter().map(|group| self.page(bucket_of(group))))?;
            }
            for group in window {
                let merged = pages.update(&writing, self.page(bucket_of(group)), |page| {
                    let merged = self.entries.merge(page.bytes(), group, &mut merged_page);
                    if matches!(merged, Merged::Changed { .. }) {
                        page.bytes_mut().copy_from_slice(&merged_page);
                    }
                    merged
                })?;
                match merged {
                    Merged::Full => return Ok(bits),
                    Merged::Changed { new } => {
                        self.len.fetch_add(new, Ordering::Relaxed);
                    }
                    Merged::Unchanged => {}
                }
                *keys = keys.get(group.len()..).unwrap_or_default();
            }
        }
        Ok(bits)
    }

    /// Sets the value of a mixed key, or removes it; returns the old value.
    pub(crate) fn set(
        &self,
        pages: &PageFile,
        writing: &Writing<'_>,
        mixed: u64,
        value: Option<u64>,
    ) -> Result<Option<u64>> {
        loop {
            let seen = {
                let buckets = self.doubled(pages, Some(writing))?;
                let outcome =
                    pages.update(writing, self.page(bucket(mixed, buckets.bits)), |page| {
                        self.entries.set(page.bytes_mut(), mixed, value)
                    })?;
                if let Some(old) = outcome {
                    match (old, value) {
                        (None, Some(_)) => self.len.fetch_add(1, Ordering::Relaxed),
                        (Some(_), None) => self.len.fetch_sub(1, Ordering::Relaxed),
                        _ => 0,
                    };
                    return Ok(old);
                }
                buckets.bits
            };
            self.double(pages, writing, seen, false)?;
        }
    }

    /// Passes the mixed keys and values to `f`, in ascending order.
    pub(crate) fn for_each(
        &self,
        pages: &PageFile,
        job: &Job,
        f: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let buckets = self.doubled(pages, None)?;
        self.scan(pages, job, buckets.bits, |_, _| Ok(()), f)
    }

    /// Passes every page to `page`, then its entries to `f`, these in ascending order.
    fn scan(
        &self,
        pages: &PageFile,
        job: &Job,
        bits: u32,
        mut page: impl FnMut(PageId, &[u8]) -> StoreResult<()>,
        mut f: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let mut entries = Vec::new();
        let mut scanner = pages.scanner();
        // Buckets after the last page are empty.
        let count = (1 << bits).min(pages.pages(self.stream));
        let step = WINDOW_PAGES as u64;
        for start in (0..count).step_by(WINDOW_PAGES) {
            let window = start..(start + step).min(count);
            job.check()?;
            entries.clear();
            scanner.visit(window.map(|b| self.page(b)), |id, bytes| {
                page(id, bytes)?;
                entries.extend(self.entries.iter(bytes));
                Ok(())
            })?;
            entries.sort_unstable();
            entries.iter().try_for_each(|(mixed, value)| f(*mixed, *value))?;
        }
        Ok(())
    }

    /// Passes every entry to `f`. Fails if an entry is in the wrong bucket, if entries of a bucket
    /// do not ascend, or if the number of entries is wrong.
    pub(crate) fn verify(
        &self,
        pages: &PageFile,
        job: &Job,
        mut f: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let buckets = self.doubled(pages, None)?;
        let bits = buckets.bits;
        let broken = |problem: String| StoreError::corrupt_pages(pages.path(), 0, problem);
        let in_place = |page: PageId, bytes: &[u8]| {
            let mut last = None;
            for (mixed, _) in self.entries.iter(bytes) {
                if bucket(mixed, bits) != page.number() || last.is_some_and(|last| last >= mixed) {
                    let problem =
                        format!("an entry of bucket {} is not in its place", page.number());
                    return Err(broken(problem));
                }
                last = Some(mixed);
            }
            Ok(())
        };
        let mut count = 0;
        self.scan(pages, job, bits, in_place, |mixed, value| {
            count += 1;
            f(mixed, value)
        })?;
        if count == self.len() {
            return Ok(());
        }
        Err(broken(format!("expected {}, found {count}", counted(self.len(), "entry"))).into())
    }

    fn is_crowded(&self, pages: &PageFile, bits: u32) -> bool {
        // At 7/8 of the capacity, evenly spread keys leave space for buckets that receive more than
        // others.
        self.len() > (self.entries.capacity(pages.page_bytes()) as u64 * 7 / 8) << bits
    }

    /// Doubles the buckets if they are nearly full, and completes a doubling that was interrupted.
    pub(crate) fn grow(&self, pages: &PageFile) -> StoreResult<()> {
        loop {
            let bits = self.doubled(pages, None)?.bits;
            if !self.is_crowded(pages, bits) {
                return Ok(());
            }
            self.double(pages, &pages.write(), bits, true)?;
        }
    }

    /// Doubles the buckets, unless another thread has done so since the caller saw `seen` bits.
    fn double(
        &self,
        pages: &PageFile,
        writing: &Writing<'_>,
        seen: u32,
        may_stop: bool,
    ) -> StoreResult<()> {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        if buckets.bits == seen && buckets.unsplit.is_none() {
            // A budget that is too small is refused before a bucket splits.
            pages.extend_to(writing, self.page((2 << seen) - 1))?;
            buckets.unsplit = Some(1 << seen);
        }
        self.split(pages, writing, &mut buckets, may_stop)
    }

    /// Completes a doubling that was interrupted; every sync does so first.
    pub(crate) fn finish_doubling(
        &self,
        pages: &PageFile,
        writing: &Writing<'_>,
        may_stop: bool,
    ) -> StoreResult<()> {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        self.split(pages, writing, &mut buckets, may_stop)
    }

    fn split(
        &self,
        pages: &PageFile,
        writing: &Writing<'_>,
        buckets: &mut Buckets,
        may_stop: bool,
    ) -> StoreResult<()> {
        self.usable(pages)?;
        let Some(unsplit) = &mut buckets.unsplit else {
            return Ok(());
        };
        match self.split_buckets(pages, writing, buckets.bits, unsplit, may_stop) {
            Ok(()) => *buckets = Buckets { bits: buckets.bits + 1, unsplit: None },
            Err(StoreError::Interrupted) => return Err(StoreError::Interrupted),
            Err(error) if error.kind() == ErrorKind::Budget => {
                // Without memory for the new buckets the old ones stay in use. Nothing names the
                // new pages of the last bucket, and the next doubling writes them again.
                if *unsplit == 1 << buckets.bits {
                    buckets.unsplit = None;
                }
                return Err(error);
            }
            Err(error) => {
                self.broken.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Splits from the last to the first bucket, because the halves of bucket b go to 2b and 2b +
    /// 1.
    fn split_buckets(
        &self,
        pages: &PageFile,
        writing: &Writing<'_>,
        bits: u32,
        unsplit: &mut u64,
        may_stop: bool,
    ) -> StoreResult<()> {
        let mut scanner = pages.scanner();
        while let Some(number) = unsplit.checked_sub(1) {
            if number % WINDOW_PAGES as u64 == WINDOW_PAGES as u64 - 1 {
                if may_stop {
                    pages.check()?;
                }
                let window = number + 1 - WINDOW_PAGES as u64..=number;
                scanner.load(window.map(|number| self.page(number)))?;
            }
            let old = pages.read(self.page(number), <[u8]>::to_vec)?;
            let count = self.entries.count(&old);
            let middle = (number * 2 + 1).checked_shl(63 - bits).unwrap_or(0);
            let cut = self.entries.find_from(&old, 0, middle);
            let place = |index: usize| self.entries.place(index);
            for (half, range) in [(1, cut..count), (0, 0..cut)] {
                let page = self.page(number * 2 + half);
                // Most buckets of a fast-growing table are empty and need no write.
                if range.is_empty() && pages.read(page, |bytes| self.entries.count(bytes) == 0)? {
                    continue;
                }
                pages.overwrite(writing, page, |bytes| {
                    bytes.fill(0);
                    put(bytes, 0, &(range.len() as u32).to_le_bytes());
                    put(
                        bytes,
                        HEADER_BYTES,
                        old.get(place(range.start)..place(range.end)).unwrap_or_default(),
                    );
                })?;
            }
            *unsplit = number;
        }
        Ok(())
    }
}

#[inline]
fn bucket(mixed: u64, bits: u32) -> u64 {
    mixed.checked_shr(64 - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_is_undone() {
        for key in (0..100_000)
            .chain(u64::MAX - 1000..=u64::MAX)
            .map(|i: u64| i.wrapping_mul(0x1234_5678_9ABC_DEF1))
        {
            assert_eq!(unmix(mix(key)), key);
        }
    }
}
