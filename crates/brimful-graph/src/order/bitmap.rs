//! The set of the ids that occur, for ids below 2^32, with the counters for the internal order.
//!
//! Each id has two bits (has an edge, is declared) and a saturating counter of sampled edge ends,
//! in pages that are allocated on first use. Many threads fill the set. If an id does not fit, or
//! the pages would exceed the given memory, the set gives up without an error, and the caller
//! handles the ids as sparse ones. Invariant: the content depends on the inserted ids, not on their
//! order or on threads.

pub(crate) mod ranges;
pub(crate) mod ranks;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::edges::EdgeBatch;
use crate::order::bitmap::ranks::IdRanks;
use crate::order::classes::is_counted;

/// Ids per page.
pub(crate) const PAGE_IDS: usize = 1 << 16;
/// Words of 64 ids per page.
pub(crate) const PAGE_WORDS: usize = PAGE_IDS / 64;
/// Number of pages for 32-bit ids.
pub(crate) const PAGES: usize = 1 << 16;

type Bits = [AtomicU64; PAGE_WORDS];

/// The ids of a page that occur.
pub(crate) struct Page {
    /// Ids with edges.
    pub(crate) connected: Bits,
    /// Ids that are declared.
    pub(crate) declared: Bits,
    /// The index of this page's counters.
    counters: usize,
}

/// Number of pages whose counters share an allocation. Allocations of this size return to the
/// system as soon as they are freed.
const SLAB_PAGES: usize = 16;
const SLAB_BYTES: usize = SLAB_PAGES * PAGE_IDS;

type Slab = Box<[AtomicU8]>;

/// Number of ids looked up together.
const AT_ONCE: usize = 128;

/// The ids of a graph.
pub(crate) struct IdBitmap {
    pages: Box<[OnceLock<Box<Page>>]>,
    slabs: Box<[OnceLock<Slab>]>,
    used: AtomicUsize,
    allowed: usize,
    is_incomplete: AtomicBool,
}

impl IdBitmap {
    /// Bytes of the page table.
    pub(crate) const BASE_BYTES: u64 = (PAGES * size_of::<OnceLock<Box<Page>>>()) as u64;
    /// Bytes of a page until its ranks exist: bits, counters, ranks.
    const PAGE_BYTES: usize = size_of::<Page>() + PAGE_IDS + ranks::PAGE_BYTES;

    /// Memory of a set of `ids` consecutive ids, in bytes.
    pub(crate) fn bytes_of(ids: u64) -> u64 {
        Self::BASE_BYTES + ids.div_ceil(PAGE_IDS as u64) * Self::PAGE_BYTES as u64
    }

    /// An empty set that may use `bytes` of memory, including the ranks.
    pub(crate) fn new(bytes: u64) -> Self {
        let bytes = bytes.saturating_sub(2 * Self::BASE_BYTES + SLAB_BYTES as u64);
        let allowed = PAGES.min((bytes / Self::PAGE_BYTES as u64) as usize);
        Self {
            pages: (0..PAGES).map(|_| OnceLock::new()).collect(),
            slabs: (0..allowed.div_ceil(SLAB_PAGES)).map(|_| OnceLock::new()).collect(),
            used: AtomicUsize::new(0),
            allowed,
            is_incomplete: AtomicBool::new(false),
        }
    }

    /// True if an id did not fit: the set is incomplete.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    /// Makes the set incomplete, because ids are missing that other processes have seen.
    pub(crate) fn give_up(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Adds the ends of edges, and counts the sampled ones.
    pub(crate) fn insert_edges(&self, batch: &EdgeBatch) {
        let none = AtomicU64::new(0);
        let mut words = [&none; AT_ONCE];
        for ids in [&batch.sources, &batch.targets].into_iter().flat_map(|ids| ids.chunks(AT_ONCE))
        {
            let words = &mut words[..ids.len()];
            for (word, &id) in words.iter_mut().zip(ids) {
                let Some(page) = self.page(id) else { return };
                *word = &page.connected[(id as usize % PAGE_IDS) / 64];
            }
            // Reads all words first, for the reason given at the counters below.
            std::hint::black_box(
                words.iter().fold(0, |seen, word| seen | word.load(Ordering::Relaxed)),
            );
            for (word, &id) in words.iter().zip(ids) {
                let bit = 1 << (id % 64);
                // Most ids are already in the set; reading first keeps the cache line shared.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
        let mut counted = [0; AT_ONCE];
        let mut len = 0;
        for (&source, &target) in batch.sources.iter().zip(&batch.targets) {
            (counted[len], counted[len + 1]) = (source, target);
            len += if is_counted(source, target) { 2 } else { 0 };
            if len + 2 > AT_ONCE {
                self.count_all(&counted[..len]);
                len = 0;
            }
        }
        self.count_all(&counted[..len]);
    }

    /// Declares the ids of a range.
    pub(crate) fn insert_range(&self, range: Range<u64>) {
        let mut start = range.start;
        while start < range.end {
            let Some(page) = self.page(start) else { return };
            let count = (range.end - start).min(64 - start % 64);
            let bits = u64::MAX >> (64 - count) << (start % 64);
            page.declared[(start as usize % PAGE_IDS) / 64].fetch_or(bits, Ordering::Relaxed);
            start += count;
        }
    }

    /// Declares single ids.
    pub(crate) fn insert_declared(&self, ids: &[u64]) {
        for &id in ids {
            let Some(page) = self.page(id) else { return };
            page.declared[(id as usize % PAGE_IDS) / 64]
                .fetch_or(1 << (id % 64), Ordering::Relaxed);
        }
    }

    /// True if the id is declared.
    #[inline]
    pub(crate) fn is_declared(&self, id: u64) -> bool {
        let slot = usize::try_from(id).ok().and_then(|id| self.pages.get(id / PAGE_IDS));
        slot.and_then(OnceLock::get).is_some_and(|page| {
            page.declared[(id as usize % PAGE_IDS) / 64].load(Ordering::Relaxed) & (1 << (id % 64))
                != 0
        })
    }

    fn count_all(&self, ids: &[u64]) {
        let none = AtomicU8::new(u8::MAX);
        let mut counters = [&none; AT_ONCE];
        let counters = &mut counters[..ids.len()];
        for (counter, &id) in counters.iter_mut().zip(ids) {
            *counter = self.counter(id).unwrap_or(&none);
        }
        // Reading all counters first lets the processor wait for their cache lines together; locked
        // operations wait one by one.
        let seen = counters.iter().fold(0, |seen, counter| seen | counter.load(Ordering::Relaxed));
        std::hint::black_box(seen);
        for counter in counters {
            if counter.load(Ordering::Relaxed) < u8::MAX {
                // The count is exact even if several threads count the same id.
                let more = |count: u8| count.checked_add(1);
                let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
            }
        }
    }

    #[inline]
    fn counter(&self, id: u64) -> Option<&AtomicU8> {
        self.page(id).and_then(|page| self.counters(page)?.get(id as usize % PAGE_IDS))
    }

    /// The counters of the ids of a page.
    pub(crate) fn counters(&self, page: &Page) -> Option<&[AtomicU8]> {
        let slab = self.slabs.get(page.counters / SLAB_PAGES)?;
        let slab = slab.get_or_init(|| (0..SLAB_BYTES).map(|_| AtomicU8::new(0)).collect());
        slab.chunks_exact(PAGE_IDS).nth(page.counters % SLAB_PAGES)
    }

    #[inline]
    fn page(&self, id: u64) -> Option<&Page> {
        let slot = usize::try_from(id).ok().and_then(|id| self.pages.get(id / PAGE_IDS));
        match slot.and_then(OnceLock::get) {
            Some(page) => Some(page),
            None => self.new_page(slot),
        }
    }

    #[cold]
    fn new_page<'p>(&self, slot: Option<&'p OnceLock<Box<Page>>>) -> Option<&'p Page> {
        if self.is_incomplete() {
            return None;
        }
        let page = slot.and_then(|slot| {
            slot.get_or_init(|| {
                let bits = || [const { AtomicU64::new(0) }; PAGE_WORDS];
                let counters = self.used.fetch_add(1, Ordering::Relaxed);
                Box::new(Page { connected: bits(), declared: bits(), counters })
            });
            // The first page beyond the limit stays empty; no page follows it.
            slot.get().filter(|page| page.counters < self.allowed)
        });
        if page.is_none() {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
        page.map(|page| &**page)
    }

    /// The pages by number.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Option<&Page>> {
        self.pages.iter().map(|slot| slot.get().map(|page| &**page))
    }

    /// Turns the set into ranks and frees the counters.
    pub(crate) fn into_ranks(self) -> IdRanks {
        IdRanks::new(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(ids: &[u64]) -> EdgeBatch {
        EdgeBatch { sources: ids.into(), targets: ids.into(), ..EdgeBatch::default() }
    }

    #[test]
    fn it_gives_up_on_wide_ids_and_on_too_many_pages() {
        let wide = IdBitmap::new(1 << 30);
        wide.insert_edges(&edges(&[1 << 32]));
        assert!(wide.is_incomplete());
        let bytes = 2 * IdBitmap::BASE_BYTES + (SLAB_BYTES + 2 * IdBitmap::PAGE_BYTES) as u64;
        let small = IdBitmap::new(bytes);
        small.insert_edges(&edges(&[0, PAGE_IDS as u64]));
        assert!(!small.is_incomplete());
        small.insert_range(5..2 * PAGE_IDS as u64 + 1);
        assert!(small.is_incomplete());
        let none = IdBitmap::new(0);
        none.insert_range(0..1);
        assert!(none.is_incomplete());
    }

    #[test]
    fn counters_saturate_and_are_exact() {
        let bitmap = IdBitmap::new(1 << 30);
        let counted: Vec<u64> = (0..10_000).filter(|&t| is_counted(5, t)).collect();
        let batch = EdgeBatch {
            sources: vec![5; 200],
            targets: counted[..200].to_vec(),
            ..EdgeBatch::default()
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(|| bitmap.insert_edges(&batch));
            });
        });
        let page = bitmap.page(5).unwrap();
        let counters = bitmap.counters(page).unwrap();
        assert_eq!(counters[5].load(Ordering::Relaxed), u8::MAX);
        assert!(counted[1..200].iter().all(|&t| counters[t as usize].load(Ordering::Relaxed) == 4));
    }
}
