//! Letters by key in memory that was set aside for them.
//!
//! Everything lies in one arena in the order in which it came: entries, chained, each with its key, and
//! letters, those to one key chained. With a fold each key has one letter. Invariant: all of it, a growing index
//! too, stays within the limit, and what does not fit is refused, not half taken.

use brimful_store::checksum;
use hashbrown::HashTable;

use crate::error::Result;

/// Nowhere in the arena.
const NONE: u32 = u32::MAX;
/// An entry: where the next one is, its first and its last letter, the length of its key; then the key.
const ENTRY_BYTES: usize = 16;
/// A letter: where the next one to the same key is, its length; then its bytes.
const LETTER_BYTES: usize = 8;
/// Fields of an entry; a letter has the first.
const NEXT: usize = 0;
const FIRST: usize = 4;
const LAST: usize = 8;
/// The place of an entry in a sorted list.
const PLACE_BYTES: usize = 4;

/// A key and its hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Key<'k> {
    pub(super) bytes: &'k [u8],
    hash: u64,
}

impl<'k, B: AsRef<[u8]> + ?Sized> From<&'k B> for Key<'k> {
    #[inline]
    fn from(bytes: &'k B) -> Self {
        Self { bytes: bytes.as_ref(), hash: checksum(bytes.as_ref()) }
    }
}

/// Makes one letter of two: the one there was, the new one, and where the result goes.
pub(super) type Fold<'f> = &'f dyn Fn(&[u8], &[u8], &mut Vec<u8>) -> Result<()>;

/// What became of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It is the first to its key.
    New,
    /// There were others to its key.
    Known,
    /// It does not fit.
    Full,
}

/// Letters by key.
#[derive(Debug)]
pub(super) struct Table {
    limit: usize,
    arena: Vec<u8>,
    len: usize,
    /// The last entry.
    last: u32,
    index: HashTable<u32>,
    folded: Vec<u8>,
}

impl Table {
    /// A table that takes up to `limit` bytes, of memory that the caller has reserved.
    pub(super) fn new(limit: usize) -> Self {
        // Places are of 32 bits, and the last one is none.
        let limit = limit.min(NONE as usize);
        Self { limit, arena: vec![], len: 0, last: NONE, index: HashTable::new(), folded: vec![] }
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that keys, letters and their index take.
    pub(super) fn bytes(&self) -> usize {
        self.arena.len() + self.len * PLACE_BYTES + self.index.allocation_size()
    }

    /// Adds `letter`, or only the key, to what waits for `key`.
    pub(super) fn add(
        &mut self,
        key: Key<'_>,
        letter: Option<&[u8]>,
        fold: Option<Fold<'_>>,
    ) -> Result<Added> {
        if let Some(entry) = self.find(key) {
            return Ok(if self.extend(entry, letter, fold)? { Added::Known } else { Added::Full });
        }
        // A growing index exists twice for a moment, once with double the room.
        let is_full = self.index.len() == self.index.capacity();
        let growth = if is_full { 2 * self.index.allocation_size() + 64 } else { 0 };
        let letter_bytes = letter.map_or(0, |letter| LETTER_BYTES + letter.len());
        let Key { bytes: key, hash } = key;
        if !self.fits(ENTRY_BYTES + key.len() + PLACE_BYTES + letter_bytes + growth) {
            return Ok(Added::Full);
        }
        if self.arena.capacity() == 0 {
            // The system gives it page by page when it is used. To grow instead would need the double for a moment.
            self.arena.reserve_exact(self.limit);
        }
        let entry = self.arena.len() as u32;
        for field in [NONE, NONE, NONE, key.len() as u32] {
            self.arena.extend_from_slice(&field.to_le_bytes());
        }
        self.arena.extend_from_slice(key);
        let before = std::mem::replace(&mut self.last, entry);
        self.set(before, NEXT, entry);
        self.len += 1;
        let Self { index, arena, .. } = self;
        index.insert_unique(hash, entry, |&other| checksum(key_of(arena, other)));
        if let Some(letter) = letter {
            self.append(entry, letter);
        }
        Ok(Added::New)
    }

    /// True if `key` waits at `from` or behind it.
    #[inline]
    pub(super) fn waits(&self, key: Key<'_>, from: Option<u32>) -> bool {
        let Some(from) = from.filter(|_| self.len > 0) else { return false };
        self.find(key).is_some_and(|entry| entry >= from)
    }

    /// The first letter to `key`.
    #[inline]
    pub(super) fn get(&self, key: Key<'_>) -> Option<&[u8]> {
        let entry = if self.len > 0 { self.find(key)? } else { return None };
        self.letters(entry).next()
    }

    /// Reads what adding letters to `keys` will read. No look-up depends on the one before, so that the waits for memory overlap,
    /// which are most of the time that adding takes.
    pub(super) fn warm<'k>(&self, keys: impl Iterator<Item = Key<'k>>) {
        if self.len > 0 {
            std::hint::black_box(
                keys.filter_map(|key| self.letters(self.find(key)?).next()?.first()).count(),
            );
        }
    }

    #[inline]
    fn find(&self, key: Key<'_>) -> Option<u32> {
        self.index.find(key.hash, |&entry| is_same(key_of(&self.arena, entry), key.bytes)).copied()
    }

    fn fits(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= self.limit
    }

    fn extend(&mut self, entry: u32, letter: Option<&[u8]>, fold: Option<Fold<'_>>) -> Result<bool> {
        let Some(letter) = letter else { return Ok(true) };
        let there = u32_at(&self.arena, entry, FIRST);
        let Some(fold) = fold.filter(|_| there != NONE) else {
            return Ok(self.append(entry, letter));
        };
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        fold(letter_of(&self.arena, there), letter, &mut folded)?;
        let start = there as usize + LETTER_BYTES;
        let is_as_long = letter_of(&self.arena, there).len() == folded.len();
        let place = self.arena.get_mut(start..start + folded.len()).filter(|_| is_as_long);
        let is_taken = if let Some(place) = place {
            place.copy_from_slice(&folded);
            true
        } else if self.fits(LETTER_BYTES + folded.len()) {
            // What it takes the place of is garbage until the table is cleared.
            self.set(entry, FIRST, NONE);
            self.append(entry, &folded)
        } else {
            false
        };
        self.folded = folded;
        Ok(is_taken)
    }

    /// Chains a letter to the others of an entry, if it fits.
    fn append(&mut self, entry: u32, letter: &[u8]) -> bool {
        if !self.fits(LETTER_BYTES + letter.len()) {
            return false;
        }
        let at = self.arena.len() as u32;
        self.arena.extend_from_slice(&NONE.to_le_bytes());
        self.arena.extend_from_slice(&(letter.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(letter);
        if u32_at(&self.arena, entry, FIRST) == NONE {
            self.set(entry, FIRST, at);
        } else {
            self.set(u32_at(&self.arena, entry, LAST), NEXT, at);
        }
        self.set(entry, LAST, at);
        true
    }

    fn set(&mut self, at: u32, field: usize, value: u32) {
        let start = at as usize + field;
        if let Some(place) = self.arena.get_mut(start..start + 4) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// The entry that came first.
    pub(super) fn first(&self) -> Option<u32> {
        (self.len > 0).then_some(0)
    }

    /// The entry that came after `entry`.
    pub(super) fn after(&self, entry: u32) -> Option<u32> {
        Some(u32_at(&self.arena, entry, NEXT)).filter(|&next| next != NONE)
    }

    /// The key of an entry.
    pub(super) fn key(&self, entry: u32) -> &[u8] {
        key_of(&self.arena, entry)
    }

    /// The letters of an entry, in the order in which they came.
    pub(super) fn letters(&self, entry: u32) -> TableLetters<'_> {
        TableLetters { arena: &self.arena, next: u32_at(&self.arena, entry, FIRST) }
    }

    /// All entries by ascending keys.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut entries = Vec::with_capacity(self.len);
        entries.extend(std::iter::successors(self.first(), |entry| self.after(*entry)));
        entries.sort_unstable_by(|&left, &right| self.key(left).cmp(self.key(right)));
        entries
    }

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        // To wipe a large index for a few entries would cost more than all that was done with them.
        if self.len < self.index.capacity() / 64 {
            let mut next = self.first();
            while let Some(entry) = next {
                if let Ok(found) = self.index.find_entry(checksum(self.key(entry)), |&other| other == entry) {
                    found.remove();
                }
                next = self.after(entry);
            }
        } else {
            self.index.clear();
        }
        self.arena.clear();
        (self.len, self.last) = (0, NONE);
    }

    /// Forgets all and gives the memory back.
    pub(super) fn release(&mut self) {
        *self = Self::new(self.limit);
    }
}

/// Letters of one key.
#[derive(Debug, Clone)]
pub(super) struct TableLetters<'t> {
    arena: &'t [u8],
    next: u32,
}

impl<'t> Iterator for TableLetters<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let at = Some(self.next).filter(|&at| at != NONE)?;
        self.next = u32_at(self.arena, at, NEXT);
        Some(letter_of(self.arena, at))
    }
}

/// Keys are short: to compare them byte by byte costs less than a call.
#[inline]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}

#[inline]
fn key_of(arena: &[u8], entry: u32) -> &[u8] {
    let start = entry as usize + ENTRY_BYTES;
    arena.get(start..start + u32_at(arena, entry, ENTRY_BYTES - 4) as usize).unwrap_or_default()
}

#[inline]
fn letter_of(arena: &[u8], at: u32) -> &[u8] {
    let start = at as usize + LETTER_BYTES;
    arena.get(start..start + u32_at(arena, at, LETTER_BYTES - 4) as usize).unwrap_or_default()
}

#[inline]
fn u32_at(arena: &[u8], at: u32, field: usize) -> u32 {
    let bytes = arena.get(at as usize + field..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(NONE, |bytes| u32::from_le_bytes(*bytes))
}
