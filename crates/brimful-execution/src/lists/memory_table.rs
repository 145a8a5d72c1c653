//! The part of a message table in memory, within a fixed limit.
//!
//! One arena holds entries and message blocks. Entries are chained in the order of arrival, and
//! each contains its key. The blocks of one key are chained, each twice as large as the one before,
//! so that few blocks hold many messages. With a fold each key has one message. Invariant: the
//! arena and the index, even while it grows, stay within the limit. A message that does not fit is
//! refused as a whole.

use std::ops::Range;

use brimful_store::checksum;
use brimful_store::varint::read_varint;
use hashbrown::HashTable;

use crate::error::Result;

/// The offset that means no entry or no block.
const NONE: u32 = u32::MAX;
/// An entry: offsets of the next entry, of its first message and of the end of its last; free bytes
/// and size of the last block; the length of its key; then the key.
const ENTRY_BYTES: usize = 20;
const NEXT: usize = 0;
const FIRST: usize = 4;
const TAIL: usize = 8;
const FREE: usize = 12;
const SIZE: usize = 14;
const KEY_LENGTH: usize = 16;
/// The end of a block: a zero, and the offset of the next block. A message is its length plus one,
/// then its bytes.
const JUMP_BYTES: usize = 5;
/// Keys that [`MemoryTable::warm`] looks up together.
pub(super) const WARMED: usize = 64;
/// Maximum bytes of a block of several messages.
const MAX_BLOCK: usize = 512;
/// The offset of an entry in a sorted list.
const PLACE_BYTES: usize = 4;

/// A key and its hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HashedKey<'k> {
    pub(super) bytes: &'k [u8],
    hash: u64,
}

impl<'k, B: AsRef<[u8]> + ?Sized> From<&'k B> for HashedKey<'k> {
    #[inline]
    fn from(bytes: &'k B) -> Self {
        Self { bytes: bytes.as_ref(), hash: checksum(bytes.as_ref()) }
    }
}

/// Folds an old message and a new one into the message that the buffer receives.
pub(super) type Fold<'f> = &'f dyn Fn(&[u8], &[u8], &mut Vec<u8>) -> Result<()>;

/// The outcome of adding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The key is new.
    New,
    /// The key existed.
    Existing,
    /// The message does not fit.
    Full,
}

/// Messages by key, in memory.
#[derive(Debug)]
pub(super) struct MemoryTable {
    limit: usize,
    arena: Vec<u8>,
    len: usize,
    /// The last entry.
    last: u32,
    index: HashTable<u32>,
    folded: Vec<u8>,
}

impl MemoryTable {
    /// A table that takes up to `limit` bytes, of memory that the caller has reserved.
    pub(super) fn new(limit: usize) -> Self {
        // Offsets have 32 bits, and the largest means none.
        let limit = limit.min(NONE as usize);
        Self { limit, arena: vec![], len: 0, last: NONE, index: HashTable::new(), folded: vec![] }
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of keys, messages and index.
    pub(super) fn bytes(&self) -> usize {
        self.arena.len() + self.len * PLACE_BYTES + self.index.allocation_size()
    }

    /// Adds `message`, or the key alone, to the messages for `key`.
    pub(super) fn add(
        &mut self,
        key: HashedKey<'_>,
        message: Option<&[u8]>,
        fold: Option<Fold<'_>>,
    ) -> Result<Added> {
        if let Some(entry) = self.find(key) {
            return Ok(if self.extend(entry, message, fold)? {
                Added::Existing
            } else {
                Added::Full
            });
        }
        // While it grows, the index exists twice, once with double the capacity.
        let is_full = self.index.len() == self.index.capacity();
        let growth = if is_full { 2 * self.index.allocation_size() + 64 } else { 0 };
        let message_bytes = message.map_or(0, |message| message_bytes(message) + JUMP_BYTES);
        let HashedKey { bytes: key, hash } = key;
        if !self.fits(ENTRY_BYTES + key.len() + PLACE_BYTES + message_bytes + growth) {
            return Ok(Added::Full);
        }
        if self.arena.capacity() == 0 {
            // The system provides pages at first use. A growing vector would exist twice for a
            // moment.
            self.arena.reserve_exact(self.limit);
        }
        let entry = self.arena.len() as u32;
        for field in [NONE, NONE, NONE, 0, key.len() as u32] {
            self.arena.extend_from_slice(&field.to_le_bytes());
        }
        self.arena.extend_from_slice(key);
        let before = std::mem::replace(&mut self.last, entry);
        self.set(before, NEXT, entry);
        self.len += 1;
        let Self { index, arena, .. } = self;
        index.insert_unique(hash, entry, |&other| checksum(key_of(arena, other)));
        if let Some(message) = message {
            self.append(entry, message);
        }
        Ok(Added::New)
    }

    /// True if the entry of `key` is `from` or a later one.
    #[inline]
    pub(super) fn waits(&self, key: HashedKey<'_>, from: Option<u32>) -> bool {
        let Some(from) = from.filter(|_| self.len > 0) else { return false };
        self.find(key).is_some_and(|entry| entry >= from)
    }

    /// Brings the entries of `keys` into the processor's cache. The look-ups are independent, so
    /// their waits for memory, most of the time of adding, overlap.
    pub(super) fn warm<'k>(&self, keys: impl Iterator<Item = HashedKey<'k>>) {
        if self.len > 0 {
            // Each step for all keys before the next step: the processor overlaps few look-ups
            // only.
            let mut places = [NONE; WARMED];
            for (place, key) in places.iter_mut().zip(keys) {
                // The first candidate of the hash, which is the entry nearly always.
                *place = self.index.find(key.hash, |_| true).copied().unwrap_or(NONE);
            }
            for place in &mut places {
                *place = u32_at(&self.arena, *place, TAIL);
            }
            let last = |tail: &u32| self.arena.get((*tail as usize).checked_sub(1)?);
            std::hint::black_box(places.iter().filter_map(last).fold(0, |seen, byte| seen | byte));
        }
    }

    #[inline]
    fn find(&self, key: HashedKey<'_>) -> Option<u32> {
        self.index.find(key.hash, |&entry| is_same(key_of(&self.arena, entry), key.bytes)).copied()
    }

    fn fits(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= self.limit
    }

    fn extend(
        &mut self,
        entry: u32,
        message: Option<&[u8]>,
        fold: Option<Fold<'_>>,
    ) -> Result<bool> {
        let Some(message) = message else { return Ok(true) };
        let there = u32_at(&self.arena, entry, FIRST);
        let Some(fold) = fold.filter(|_| there != NONE) else {
            return Ok(self.append(entry, message));
        };
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        let range = message_at(&self.arena, there).unwrap_or_default();
        fold(self.arena.get(range.clone()).unwrap_or_default(), message, &mut folded)?;
        let place = self.arena.get_mut(range).filter(|range| range.len() == folded.len());
        let is_taken = if let Some(place) = place {
            place.copy_from_slice(&folded);
            true
        } else if self.fits(message_bytes(&folded) + JUMP_BYTES) {
            // The old message is garbage until the table is cleared.
            self.set(entry, FIRST, NONE);
            self.set_block(entry, 0, 0);
            self.append(entry, &folded)
        } else {
            false
        };
        self.folded = folded;
        Ok(is_taken)
    }

    /// Adds a message to the others of an entry, if it fits.
    fn append(&mut self, entry: u32, message: &[u8]) -> bool {
        let needed = message_bytes(message);
        let (mut free, mut size) =
            (usize::from(self.u16_at(entry, FREE)), usize::from(self.u16_at(entry, SIZE)));
        if free < needed {
            let larger =
                if needed > MAX_BLOCK / 4 { needed } else { needed.max((2 * size).min(MAX_BLOCK)) };
            if !self.fits(larger + JUMP_BYTES) {
                return false;
            }
            let block = self.arena.len();
            self.arena.resize(block + larger + JUMP_BYTES, 0);
            if u32_at(&self.arena, entry, FIRST) == NONE {
                self.set(entry, FIRST, block as u32);
            } else {
                // A zero precedes the offset.
                self.set(u32_at(&self.arena, entry, TAIL), 1, block as u32);
            }
            self.set(entry, TAIL, block as u32);
            (free, size) = (larger, larger.min(MAX_BLOCK));
        }
        let tail = u32_at(&self.arena, entry, TAIL);
        let mut place = &mut self.arena[tail as usize..tail as usize + needed];
        let mut length = message.len() + 1;
        while place.len() > message.len() {
            let more = if length >= 128 { 128 } else { 0 };
            place[0] = length as u8 & 127 | more;
            length >>= 7;
            place = &mut place[1..];
        }
        place.copy_from_slice(message);
        self.set(entry, TAIL, tail + needed as u32);
        self.set_block(entry, free - needed, size);
        true
    }

    fn u16_at(&self, at: u32, field: usize) -> u16 {
        let bytes = self.arena.get(at as usize + field..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    /// Sets free bytes and size of the last block; both are less than 2^16.
    fn set_block(&mut self, entry: u32, free: usize, size: usize) {
        self.set(entry, FREE, free as u32 | (size as u32) << 16);
    }

    fn set(&mut self, at: u32, field: usize, value: u32) {
        let start = at as usize + field;
        if let Some(place) = self.arena.get_mut(start..start + 4) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// The entry that arrived first.
    pub(super) fn first(&self) -> Option<u32> {
        (self.len > 0).then_some(0)
    }

    /// The entry that arrived after `entry`.
    pub(super) fn after(&self, entry: u32) -> Option<u32> {
        Some(u32_at(&self.arena, entry, NEXT)).filter(|&next| next != NONE)
    }

    pub(super) fn key(&self, entry: u32) -> &[u8] {
        key_of(&self.arena, entry)
    }

    /// The messages of an entry, in the order of arrival.
    pub(super) fn messages(&self, entry: u32) -> MemoryMessages<'_> {
        let (at, tail) = (u32_at(&self.arena, entry, FIRST), u32_at(&self.arena, entry, TAIL));
        MemoryMessages { arena: &self.arena, at, tail }
    }

    /// All entries by ascending keys.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut entries = Vec::with_capacity(self.len);
        entries.extend(std::iter::successors(self.first(), |entry| self.after(*entry)));
        entries.sort_unstable_by(|&left, &right| self.key(left).cmp(self.key(right)));
        entries
    }

    /// Removes all entries, and keeps the memory.
    pub(super) fn clear(&mut self) {
        // For a few entries in a large index, removing them one by one costs less than wiping it.
        if self.len < self.index.capacity() / 64 {
            let mut next = self.first();
            while let Some(entry) = next {
                if let Ok(slot) =
                    self.index.find_entry(checksum(self.key(entry)), |&other| other == entry)
                {
                    slot.remove();
                }
                next = self.after(entry);
            }
        } else {
            self.index.clear();
        }
        self.arena.clear();
        (self.len, self.last) = (0, NONE);
    }

    /// Removes all entries, and releases the memory.
    pub(super) fn release(&mut self) {
        *self = Self::new(self.limit);
    }
}

/// Messages of one key.
#[derive(Debug, Clone)]
pub(super) struct MemoryMessages<'t> {
    arena: &'t [u8],
    /// Offsets of the next message, or of the end of its block, and of the end of all.
    at: u32,
    tail: u32,
}

impl<'t> Iterator for MemoryMessages<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        while self.at != self.tail && self.at != NONE {
            let Some(message) = message_at(self.arena, self.at) else {
                self.at = u32_at(self.arena, self.at, 1);
                continue;
            };
            self.at = message.end as u32;
            return self.arena.get(message);
        }
        None
    }
}

/// Keys are short: comparing them byte by byte costs less than a call.
#[inline]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}

#[inline]
fn key_of(arena: &[u8], entry: u32) -> &[u8] {
    let start = entry as usize + ENTRY_BYTES;
    arena.get(start..start + u32_at(arena, entry, KEY_LENGTH) as usize).unwrap_or_default()
}

/// The range of the message at `at`; `None` at the end of a block.
#[inline]
fn message_at(arena: &[u8], at: u32) -> Option<Range<usize>> {
    let mut rest = arena.get(at as usize..)?;
    let length = read_varint(&mut rest)?.checked_sub(1)? as usize;
    let start = arena.len() - rest.len();
    Some(start..start + length)
}

/// Bytes of a message in a block.
#[inline]
fn message_bytes(message: &[u8]) -> usize {
    let bits = usize::BITS - (message.len() + 1).leading_zeros();
    bits.div_ceil(7) as usize + message.len()
}

#[inline]
fn u32_at(arena: &[u8], at: u32, field: usize) -> u32 {
    let bytes = arena.get(at as usize + field..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(NONE, |bytes| u32::from_le_bytes(*bytes))
}
