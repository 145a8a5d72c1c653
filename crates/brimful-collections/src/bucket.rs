//! A bucket of a hash table: a page of ascending entries.
//!
//! An entry is a mixed key, and in a map also a value. Invariant: the bytes after the last entry
//! are zero, so that equal buckets have equal bytes.

use crate::by_range::Asked;
use crate::fields::{put, u32_at, u64_at};

pub(crate) const HEADER_BYTES: usize = 8;
/// The maximum number of entries that are counted at the end of a search.
const COUNTED: usize = 8;

/// The outcome of merging a batch into a bucket.
pub(crate) enum Merged {
    Unchanged,
    Changed {
        new: u64,
    },
    /// The bucket cannot hold the result.
    Full,
}

/// The layout of entries in a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries {
    /// 1 in a set, 2 in a map to a number.
    pub(crate) words: usize,
}

impl Entries {
    fn entry_bytes(self) -> usize {
        self.words * 8
    }

    /// The maximum number of entries per page.
    pub(crate) fn capacity(self, page_bytes: usize) -> usize {
        (page_bytes - HEADER_BYTES) / self.entry_bytes()
    }

    /// The offset of an entry in the page, in bytes.
    pub(crate) fn place(self, entry: usize) -> usize {
        HEADER_BYTES + entry * self.entry_bytes()
    }

    #[inline]
    pub(crate) fn count(self, bytes: &[u8]) -> usize {
        (u32_at(bytes, 0) as usize).min(self.capacity(bytes.len()))
    }

    #[inline]
    fn key(self, bytes: &[u8], entry: usize) -> u64 {
        u64_at(bytes, self.place(entry))
    }

    /// The value of an entry; 0 in a set.
    pub(crate) fn value(self, bytes: &[u8], entry: usize) -> u64 {
        if self.words > 1 { u64_at(bytes, self.place(entry) + 8) } else { 0 }
    }

    /// All entries, as keys and values.
    pub(crate) fn iter(self, bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count(bytes)).map(move |entry| (self.key(bytes, entry), self.value(bytes, entry)))
    }

    /// The index of a mixed key; as an error, the index at which to insert it.
    pub(crate) fn find(self, bytes: &[u8], mixed: u64) -> Result<usize, usize> {
        let at = self.find_from(bytes, 0, mixed);
        if at < self.count(bytes) && self.key(bytes, at) == mixed { Ok(at) } else { Err(at) }
    }

    /// Calls `found` with the index and the value of each of `sorted` that exists.
    pub(crate) fn find_sorted<'a>(
        self,
        bytes: &[u8],
        sorted: impl Iterator<Item = &'a Asked>,
        mut found: impl FnMut(u32, u64),
    ) {
        let (count, mut entry) = (self.count(bytes), 0);
        for asked in sorted {
            entry = self.find_from(bytes, entry, asked.mixed);
            if entry < count && self.key(bytes, entry) == asked.mixed {
                found(asked.index, self.value(bytes, entry));
            }
        }
    }

    /// The first entry from `start` on that is not less than `mixed`. Searches in doubling steps,
    /// because the next key of a batch is near. At the end, it counts the smaller entries among the
    /// last few, without branches that can be mispredicted.
    #[inline]
    pub(crate) fn find_from(self, bytes: &[u8], start: usize, mixed: u64) -> usize {
        let count = self.count(bytes);
        let (mut low, mut step) = (start, COUNTED);
        while low + step <= count && self.key(bytes, low + step - 1) < mixed {
            low += step;
            step *= 2;
        }
        let mut high = (low + step - 1).min(count);
        while high - low > COUNTED {
            let middle = low + (high - low) / 2;
            if self.key(bytes, middle) < mixed { low = middle + 1 } else { high = middle }
        }
        let last =
            bytes.get(self.place(low)..self.place(high)).unwrap_or_default().as_chunks::<8>().0;
        low + last
            .iter()
            .step_by(self.words)
            .map(|key| usize::from(u64::from_le_bytes(*key) < mixed))
            .sum::<usize>()
    }

    /// Merges many ascending keys into a bucket by a scan of its entries: a few nanoseconds per
    /// entry, where a search for each key would cost ten times that.
    fn merge_many(self, bytes: &[u8], keys: &[u64], out: &mut [u8]) -> Merged {
        let (count, width) = (self.count(bytes), self.words);
        let capacity = self.capacity(bytes.len());
        let old = bytes.get(HEADER_BYTES..).unwrap_or_default().as_chunks::<8>().0;
        let old = old.get(..count * width).unwrap_or_default();
        let (header, body) = out.split_at_mut(HEADER_BYTES.min(out.len()));
        let mut slots = body.as_chunks_mut::<8>().0.chunks_exact_mut(width);
        let (mut written, mut new) = (0, 0);
        let mut entries =
            old.chunks_exact(width).map(|entry| (word_of(entry, 0), entry)).peekable();
        for run in keys.chunk_by(|a, b| a == b) {
            let key = run.first().copied().unwrap_or(0);
            while let Some((_, entry)) = entries.next_if(|(old, _)| *old < key) {
                let Some(place) = slots.next() else {
                    return Merged::Full;
                };
                place.copy_from_slice(entry);
                written += 1;
            }
            let there = entries.next_if(|(old, _)| *old == key);
            let Some(place) = slots.next() else {
                return Merged::Full;
            };
            written += 1;
            new += u64::from(there.is_none());
            if let [first, rest @ ..] = place {
                *first = key.to_le_bytes();
                let value = there
                    .map_or(0, |(_, entry)| word_of(entry, 1))
                    .saturating_add(run.len() as u64);
                rest.iter_mut().for_each(|word| *word = value.to_le_bytes());
            }
        }
        for (_, entry) in entries {
            let Some(place) = slots.next() else {
                return Merged::Full;
            };
            place.copy_from_slice(entry);
            written += 1;
        }
        debug_assert!(written <= capacity);
        slots.flatten().for_each(|word| *word = [0; 8]);
        let tail = body.len() / 8 * 8;
        body.get_mut(capacity * width * 8..tail).unwrap_or_default().fill(0);
        put(header, 0, &(written as u32).to_le_bytes());
        put(header, 4, &[0; 4]);
        if new > 0 || width > 1 { Merged::Changed { new } } else { Merged::Unchanged }
    }

    /// Merges ascending keys into a bucket's entries; writes the result to `out`. In a map, the
    /// value of a key grows by the number of its repeats.
    pub(crate) fn merge(self, bytes: &[u8], keys: &[u64], out: &mut [u8]) -> Merged {
        let capacity = self.capacity(bytes.len());
        let count = self.count(bytes);
        if keys.len() * 16 >= count {
            return self.merge_many(bytes, keys, out);
        }
        let (mut entry, mut written, mut new, mut changed) = (0, 0, 0, false);
        let place = |entry| self.place(entry);
        for run in keys.chunk_by(|a, b| a == b) {
            let key = run.first().copied().unwrap_or(0);
            let next = self.find_from(bytes, entry, key);
            let kept = next - entry;
            if written + kept >= capacity && !(next < count && self.key(bytes, next) == key) {
                return Merged::Full;
            }
            if let Some(old) = bytes.get(place(entry)..place(next)) {
                put(out, place(written), old);
            }
            written += kept;
            entry = next;
            let there = entry < count && self.key(bytes, entry) == key;
            put(out, place(written), &key.to_le_bytes());
            if self.words > 1 {
                let old = if there { self.value(bytes, entry) } else { 0 };
                let value = old.saturating_add(run.len() as u64);
                put(out, place(written) + 8, &value.to_le_bytes());
            }
            changed |= !there || self.words > 1;
            new += u64::from(!there);
            entry += usize::from(there);
            written += 1;
        }
        if written + count - entry > capacity {
            return Merged::Full;
        }
        if let Some(old) = bytes.get(place(entry)..place(count)) {
            put(out, place(written), old);
        }
        written += count - entry;
        put(out, 0, &(written as u32).to_le_bytes());
        put(out, 4, &[0; 4]);
        out.get_mut(place(written)..).unwrap_or_default().fill(0);
        if changed { Merged::Changed { new } } else { Merged::Unchanged }
    }

    /// Sets the value of one key, or removes the key if `value` is `None`. Returns the old value;
    /// the outer option is `None` if the bucket is full.
    pub(crate) fn set(
        self,
        bytes: &mut [u8],
        mixed: u64,
        value: Option<u64>,
    ) -> Option<Option<u64>> {
        let (count, capacity) = (self.count(bytes), self.capacity(bytes.len()));
        let place = |entry| self.place(entry);
        let (found, at) = match self.find(bytes, mixed) {
            Ok(at) => (Some(self.value(bytes, at)), at),
            Err(at) => (None, at),
        };
        match (found, value) {
            (None, None) => {}
            (None, Some(_)) if count >= capacity => return None,
            (None, Some(_)) => {
                bytes.copy_within(place(at)..place(count), place(at + 1));
                put(bytes, 0, &(count as u32 + 1).to_le_bytes());
                put(bytes, place(at), &mixed.to_le_bytes());
            }
            (Some(_), None) => {
                bytes.copy_within(place(at + 1)..place(count), place(at));
                bytes.get_mut(place(count - 1)..place(count)).unwrap_or_default().fill(0);
                put(bytes, 0, &(count as u32 - 1).to_le_bytes());
            }
            (Some(_), Some(_)) => {}
        }
        if let Some(value) = value.filter(|_| self.words > 1) {
            put(bytes, place(at) + 8, &value.to_le_bytes());
        }
        Some(found)
    }
}

#[inline]
fn word_of(entry: &[[u8; 8]], word: usize) -> u64 {
    entry.get(word).map_or(0, |word| u64::from_le_bytes(*word))
}
