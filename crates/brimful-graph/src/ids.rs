//! External ids: the user's 64-bit integers, and their ranks.
//!
//! An external id travels as its 64 bits; [`IdType`] says how to read them. Invariant: the internal
//! id of a vertex is the rank of its external id among all ids of the graph, numerically.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

/// How the 64 bits of an external id are read, and the type results come back in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdType {
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    UInt64,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    UInt32,
}

impl IdType {
    /// Its name, as Arrow spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
        }
    }

    /// True if ids are read as two's complement.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int64 | Self::Int32)
    }

    /// A number that orders ids numerically, from their bits.
    pub fn order_key(self, bits: u64) -> u64 {
        bits ^ (u64::from(self.is_signed()) << 63)
    }

    /// The bits of the id with order key `key`.
    pub fn from_order_key(self, key: u64) -> u64 {
        self.order_key(key)
    }

    /// The number that the bits stand for.
    pub fn number(self, bits: u64) -> i128 {
        if self.is_signed() { i128::from(bits.cast_signed()) } else { i128::from(bits) }
    }

    /// The bits of a number, if this type can hold it.
    pub fn bits(self, number: i128) -> Option<u64> {
        match self {
            Self::Int64 | Self::Int32 => i64::try_from(number).ok().map(i64::cast_unsigned),
            Self::UInt64 | Self::UInt32 => u64::try_from(number).ok(),
        }
    }
}

/// Ids per page of a bitmap.
const PAGE_IDS: u64 = 1 << 16;
const PAGE_WORDS: usize = (PAGE_IDS / 64) as usize;
const PAGES: usize = 1 << 16;

type Page = [AtomicU64; PAGE_WORDS];

/// The set of ids that occur, for ids below 2^32: one bit each, in pages made when first needed.
///
/// Filled by many threads. It gives up, without failing, when an id does not fit or the pages would
/// exceed the memory given; the caller then takes the path for sparse ids.
pub struct IdBitmap {
    pages: Box<[OnceLock<Box<Page>>]>,
    used: AtomicUsize,
    allowed: usize,
    gave_up: AtomicBool,
}

impl IdBitmap {
    /// Bytes of the page table alone.
    pub const BASE_BYTES: u64 = (PAGES * size_of::<OnceLock<Box<Page>>>()) as u64;

    /// An empty set that may use `bytes` of memory, ranks included.
    pub fn new(bytes: u64) -> Self {
        let allowed = bytes.saturating_sub(2 * Self::BASE_BYTES) / size_of::<RankPage>() as u64;
        Self {
            pages: (0..PAGES).map(|_| OnceLock::new()).collect(),
            used: AtomicUsize::new(0),
            allowed: allowed as usize,
            gave_up: AtomicBool::new(false),
        }
    }

    /// True once an id did not fit.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Adds ids given by their bits.
    pub fn insert_all(&self, ids: &[u64]) {
        if self.gave_up() {
            return;
        }
        for &id in ids {
            let Some(page) = self.page(id) else {
                self.gave_up.store(true, Ordering::Relaxed);
                return;
            };
            let word = &page[(id % PAGE_IDS / 64) as usize];
            let bit = 1 << (id % 64);
            // Most ids were seen before: reading keeps the cache line shared.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Adds the ids 0 to `count` - 1.
    pub fn insert_range(&self, count: u64) {
        let mut batch = Vec::new();
        for start in (0..count).step_by(PAGE_IDS as usize) {
            if self.gave_up() {
                return;
            }
            batch.clear();
            batch.extend(start..count.min(start + PAGE_IDS));
            self.insert_all(&batch);
        }
    }

    #[inline]
    fn page(&self, id: u64) -> Option<&Page> {
        let slot = self.pages.get(usize::try_from(id / PAGE_IDS).ok()?)?;
        match slot.get() {
            Some(page) => Some(page),
            None => self.new_page(slot),
        }
    }

    #[cold]
    fn new_page<'p>(&self, slot: &'p OnceLock<Box<Page>>) -> Option<&'p Page> {
        if self.used.fetch_add(1, Ordering::Relaxed) >= self.allowed {
            return None;
        }
        Some(slot.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE_WORDS])))
    }

    /// Turns the set into ranks.
    pub fn into_ranks(self) -> IdRanks {
        let mut count = 0;
        let pages = self.pages.into_iter().map(|slot| {
            slot.into_inner().map(|page| {
                let mut ranks =
                    Box::new(RankPage { base: count, words: [0; PAGE_WORDS], before: [0; PAGE_WORDS] });
                for (index, word) in page.iter().enumerate() {
                    ranks.words[index] = word.load(Ordering::Relaxed);
                    ranks.before[index] = (count - ranks.base) as u16;
                    count += u64::from(ranks.words[index].count_ones());
                }
                ranks
            })
        });
        IdRanks { pages: pages.collect(), count }
    }
}

struct RankPage {
    base: u64,
    words: [u64; PAGE_WORDS],
    /// Ids of this page before each word. The last can be 2^16 - 64 at most.
    before: [u16; PAGE_WORDS],
}

/// Ranks of the ids of an [`IdBitmap`], in two memory reads each.
pub struct IdRanks {
    pages: Box<[Option<Box<RankPage>>]>,
    count: u64,
}

impl IdRanks {
    /// How many ids there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if there is no id.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        let pages = self.pages.iter().flatten().count() * size_of::<RankPage>();
        (pages + self.pages.len() * size_of::<Option<Box<RankPage>>>()) as u64
    }

    /// The rank of an id of the set; `None` for any other.
    #[inline]
    pub fn rank(&self, id: u64) -> Option<u64> {
        let page = self.pages.get(usize::try_from(id / PAGE_IDS).ok()?)?.as_ref()?;
        let word = (id % PAGE_IDS / 64) as usize;
        let bit = 1_u64 << (id % 64);
        let bits = page.words[word];
        let below = u64::from((bits & (bit - 1)).count_ones());
        (bits & bit != 0).then_some(page.base + u64::from(page.before[word]) + below)
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages
            .iter()
            .enumerate()
            .filter_map(|(number, page)| page.as_ref().map(|page| (number, page)))
            .flat_map(|(number, page)| {
                page.words.iter().enumerate().flat_map(move |(index, &word)| {
                    let start = number as u64 * PAGE_IDS + index as u64 * 64;
                    (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| start + bit)
                })
            })
    }

    /// The first id, if the ids are consecutive.
    pub fn consecutive_from(&self) -> Option<u64> {
        let first = self.iter().next()?;
        let last = first.checked_add(self.count - 1)?;
        (self.rank(last) == Some(self.count - 1)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_positions_in_ascending_order() {
        let bitmap = IdBitmap::new(1 << 30);
        let mut ids: Vec<u64> = (0..5000_u64).map(|i| i * i * 37 % 4_000_000_007 % (1 << 32)).collect();
        ids.extend([0, 63, 64, 65_535, 65_536, (1 << 32) - 1]);
        bitmap.insert_all(&ids);
        assert!(!bitmap.gave_up());
        ids.sort_unstable();
        ids.dedup();
        let ranks = bitmap.into_ranks();
        assert_eq!(ranks.len(), ids.len() as u64);
        assert!(ranks.iter().eq(ids.iter().copied()));
        for (rank, &id) in ids.iter().enumerate() {
            assert_eq!(ranks.rank(id), Some(rank as u64));
        }
        assert_eq!(ranks.rank(1), None);
        assert_eq!(ranks.consecutive_from(), None);
    }

    #[test]
    fn a_full_page_ranks_correctly() {
        let bitmap = IdBitmap::new(1 << 30);
        bitmap.insert_range(200_000);
        let ranks = bitmap.into_ranks();
        assert!((0..200_000).all(|id| ranks.rank(id) == Some(id)));
        assert_eq!(ranks.consecutive_from(), Some(0));
    }

    #[test]
    fn the_bitmap_gives_up_on_wide_ids_and_on_too_many_pages() {
        let wide = IdBitmap::new(1 << 30);
        wide.insert_all(&[1 << 32]);
        assert!(wide.gave_up());
        let small = IdBitmap::new(2 * IdBitmap::BASE_BYTES + 2 * size_of::<RankPage>() as u64);
        small.insert_all(&[0, PAGE_IDS]);
        assert!(!small.gave_up());
        small.insert_all(&[2 * PAGE_IDS]);
        assert!(small.gave_up());
    }

    #[test]
    fn order_keys_follow_the_numbers() {
        let ids = [i64::MIN, -1, 0, 1, i64::MAX];
        let keys: Vec<u64> = ids.iter().map(|id| IdType::Int64.order_key(id.cast_unsigned())).collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().zip(ids).all(|(&k, id)| IdType::Int64.from_order_key(k) == id.cast_unsigned()));
        assert_eq!(IdType::UInt64.bits(-1), None);
        assert_eq!(IdType::UInt64.number(u64::MAX), 18_446_744_073_709_551_615);
    }
}
