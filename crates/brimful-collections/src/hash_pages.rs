//! A hash table in pages: buckets in order of the hash, entries sorted within a bucket.
//!
//! Keys are 64 bits, mixed by a bijection, so that the mixed key *is* the key and equal keys are equal
//! numbers. Bucket b of 2^n holds the mixed keys whose first n bits are b; when the buckets are full
//! their number doubles in one sequential pass. Invariant: entries of a bucket ascend; a bucket is one
//! page. A batch that is sorted visits each page once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use brimful_store::durable::{PageFile, PageId, Writing};
use brimful_store::{Error as StoreError, Job};

use crate::error::Result;
use crate::home::{put, u32_at, u64_at};

const HEADER_BYTES: usize = 8;
/// Pages that a batch brings into memory together.
const WINDOW_PAGES: usize = 64;

/// Mixes a key; [`unmix`] undoes it.
pub(crate) fn mix(key: u64) -> u64 {
    let z = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The key that was mixed.
pub(crate) fn unmix(mixed: u64) -> u64 {
    // A right shift by s is undone by applying it until 64 bits are through.
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
    undo(z, 30).wrapping_sub(0x9E37_79B9_7F4A_7C15)
}

/// What happens to a bucket in a batch.
enum Merged {
    Unchanged,
    Changed {
        new: u64,
    },
    /// The bucket cannot hold the result.
    Full,
}

/// A table of entries of one or two words: the mixed key, and a value.
#[derive(Debug)]
pub(crate) struct HashPages {
    stream: u8,
    words: usize,
    bits: RwLock<u32>,
    len: AtomicU64,
    /// The number of buckets was doubled in part: what is known is what the last sync said.
    broken: AtomicBool,
}

impl HashPages {
    /// The table in address space `stream` as [`HashPages::describe`] said, zeros if it is new; `words` is
    /// 1 for a set and 2 for a map to a number.
    pub(crate) fn restore(stream: u8, words: usize, description: (u64, u64)) -> Self {
        let (bits, len) = description;
        Self {
            stream,
            words,
            bits: RwLock::new(bits.min(48) as u32),
            len: AtomicU64::new(len),
            broken: AtomicBool::new(false),
        }
    }

    /// What must be kept beside the pages.
    pub(crate) fn describe(&self) -> (u64, u64) {
        (u64::from(*self.bits()), self.len())
    }

    /// Entries.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    fn bits(&self) -> RwLockReadGuard<'_, u32> {
        self.bits.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry_bytes(&self) -> usize {
        self.words * 8
    }

    fn capacity(&self, pages: &PageFile) -> usize {
        (pages.page_bytes() - HEADER_BYTES) / self.entry_bytes()
    }

    fn page(&self, bucket: u64) -> PageId {
        PageId::new(self.stream, bucket)
    }

    /// Fails if the buckets are between two numbers; whoever syncs asks first.
    pub(crate) fn usable(&self, pages: &PageFile) -> brimful_store::Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Poisoned { path: pages.path().into() });
        }
        Ok(())
    }

    /// The value of a mixed key (0 in a set), if it is there.
    pub(crate) fn get(&self, pages: &PageFile, mixed: u64) -> Result<Option<u64>> {
        let bits = self.bits();
        self.usable(pages)?;
        Ok(pages.read(self.page(bucket(mixed, *bits)), |bytes| {
            let found = self.find(bytes, mixed).ok()?;
            Some(if self.words > 1 { self.word(bytes, found, 1) } else { 0 })
        })?)
    }

    /// For each of `sorted` (mixed key and whatever belongs to it) that is there, calls `found` with what
    /// belongs to it and the value.
    pub(crate) fn get_sorted(
        &self,
        pages: &PageFile,
        job: &Job,
        sorted: &[(u64, u32)],
        mut found: impl FnMut(u32, u64),
    ) -> Result<()> {
        let bits = self.bits();
        self.usable(pages)?;
        let groups: Vec<&[(u64, u32)]> =
            sorted.chunk_by(|a, b| bucket(a.0, *bits) == bucket(b.0, *bits)).collect();
        let bucket_of = |group: &&[(u64, u32)]| group.first().map_or(0, |g| bucket(g.0, *bits));
        let mut scanner = pages.scanner();
        for window in groups.chunks(WINDOW_PAGES) {
            job.check()?;
            let wanted: Vec<u64> = window.iter().map(bucket_of).collect();
            scanner.visit(wanted.iter().map(|b| self.page(*b)), |page, bytes| {
                let at = wanted.binary_search(&page.number()).ok();
                let mut entry = 0;
                for (mixed, tag) in at.and_then(|at| window.get(at)).copied().unwrap_or_default() {
                    entry = self.find_from(bytes, entry, *mixed);
                    if entry < self.count(bytes) && self.word(bytes, entry, 0) == *mixed {
                        found(*tag, if self.words > 1 { self.word(bytes, entry, 1) } else { 0 });
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Adds ascending mixed keys: to a set, or each to the count that is its value.
    pub(crate) fn add_sorted(&self, pages: &PageFile, keys: &[u64]) -> Result<()> {
        let mut rest = keys;
        while !rest.is_empty() {
            let (left, bits) = self.add_some(pages, rest)?;
            rest = left;
            if !rest.is_empty() {
                self.grow_within(pages, &pages.write(), bits)?;
            }
        }
        Ok(())
    }

    /// Adds keys until a bucket is full; returns those from that bucket on, and how many bits chose it.
    fn add_some<'k>(&self, pages: &PageFile, keys: &'k [u64]) -> Result<(&'k [u64], u32)> {
        // In this order, as whoever doubles the buckets does.
        let writing = pages.write();
        let bits = self.bits();
        self.usable(pages)?;
        if self.is_crowded(pages, *bits) {
            return Ok((keys, *bits));
        }
        let groups: Vec<&[u64]> = keys.chunk_by(|a, b| bucket(*a, *bits) == bucket(*b, *bits)).collect();
        let bucket_of = |group: &&[u64]| group.first().map_or(0, |key| bucket(*key, *bits));
        let mut room = vec![0; pages.page_bytes()];
        let mut done = 0;
        for window in groups.chunks(WINDOW_PAGES.min(pages.cache_bytes() / pages.page_bytes() / 8).max(1)) {
            if window.len() > 1 {
                pages.scanner().load(window.iter().map(|group| self.page(bucket_of(group))))?;
            }
            for group in window {
                let merged = pages.update(&writing, self.page(bucket_of(group)), |page| {
                    let merged = self.merge(page.bytes(), group, &mut room);
                    if matches!(merged, Merged::Changed { .. }) {
                        page.bytes_mut().copy_from_slice(&room);
                    }
                    merged
                })?;
                match merged {
                    Merged::Full => return Ok((keys.get(done..).unwrap_or_default(), *bits)),
                    Merged::Changed { new } => {
                        self.len.fetch_add(new, Ordering::Relaxed);
                    }
                    Merged::Unchanged => {}
                }
                done += group.len();
            }
        }
        Ok((&[], *bits))
    }

    /// Merges many ascending keys into a bucket's entries, one entry after the other: a few nanoseconds
    /// each, where looking for each key would cost ten times that.
    fn merge_many(&self, bytes: &[u8], keys: &[u64], out: &mut [u8]) -> Merged {
        let (count, width) = (self.count(bytes), self.words);
        let capacity = (bytes.len() - HEADER_BYTES) / self.entry_bytes();
        let old = bytes.get(HEADER_BYTES..).unwrap_or_default().as_chunks::<8>().0;
        let old = old.get(..count * width).unwrap_or_default();
        let (header, body) = out.split_at_mut(HEADER_BYTES.min(out.len()));
        let mut room = body.as_chunks_mut::<8>().0.chunks_exact_mut(width);
        let (mut written, mut new) = (0, 0);
        let mut entries = old.chunks_exact(width).map(|entry| (word_of(entry, 0), entry)).peekable();
        for run in keys.chunk_by(|a, b| a == b) {
            let key = run.first().copied().unwrap_or(0);
            while let Some((_, entry)) = entries.next_if(|(old, _)| *old < key) {
                let Some(place) = room.next() else {
                    return Merged::Full;
                };
                place.copy_from_slice(entry);
                written += 1;
            }
            let there = entries.next_if(|(old, _)| *old == key);
            let Some(place) = room.next() else {
                return Merged::Full;
            };
            written += 1;
            new += u64::from(there.is_none());
            if let [first, rest @ ..] = place {
                *first = key.to_le_bytes();
                let value = there.map_or(0, |(_, entry)| word_of(entry, 1)).saturating_add(run.len() as u64);
                rest.iter_mut().for_each(|word| *word = value.to_le_bytes());
            }
        }
        for (_, entry) in entries {
            let Some(place) = room.next() else {
                return Merged::Full;
            };
            place.copy_from_slice(entry);
            written += 1;
        }
        debug_assert!(written <= capacity);
        room.flatten().for_each(|word| *word = [0; 8]);
        let tail = body.len() / 8 * 8;
        body.get_mut(capacity * width * 8..tail).unwrap_or_default().fill(0);
        put(header, 0, &(written as u32).to_le_bytes());
        put(header, 4, &[0; 4]);
        if new > 0 || width > 1 { Merged::Changed { new } } else { Merged::Unchanged }
    }

    /// Merges ascending keys into a bucket's entries; the result is in `out`.
    fn merge(&self, bytes: &[u8], keys: &[u64], out: &mut [u8]) -> Merged {
        let entry_bytes = self.entry_bytes();
        let capacity = (bytes.len() - HEADER_BYTES) / entry_bytes;
        let count = self.count(bytes);
        if keys.len() * 16 >= count {
            return self.merge_many(bytes, keys, out);
        }
        let (mut entry, mut written, mut new, mut changed) = (0, 0, 0, false);
        let place = |index: usize| HEADER_BYTES + index * entry_bytes;
        for run in keys.chunk_by(|a, b| a == b) {
            let key = run.first().copied().unwrap_or(0);
            let next = self.find_from(bytes, entry, key);
            let kept = next - entry;
            if written + kept >= capacity && !(next < count && self.word(bytes, next, 0) == key) {
                return Merged::Full;
            }
            if let Some(old) = bytes.get(place(entry)..place(next)) {
                put(out, place(written), old);
            }
            written += kept;
            entry = next;
            let there = entry < count && self.word(bytes, entry, 0) == key;
            put(out, place(written), &key.to_le_bytes());
            if self.words > 1 {
                let old = if there { self.word(bytes, entry, 1) } else { 0 };
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
                let bits = self.bits();
                self.usable(pages)?;
                let capacity = self.capacity(pages);
                let outcome = pages.update(writing, self.page(bucket(mixed, *bits)), |page| {
                    self.set_in(page.bytes_mut(), mixed, value, capacity)
                })?;
                if let Some(old) = outcome {
                    match (old, value) {
                        (None, Some(_)) => self.len.fetch_add(1, Ordering::Relaxed),
                        (Some(_), None) => self.len.fetch_sub(1, Ordering::Relaxed),
                        _ => 0,
                    };
                    return Ok(old);
                }
                *bits
            };
            self.grow_within(pages, writing, seen)?;
        }
    }

    /// Changes one entry of a bucket; `None` if it is full.
    fn set_in(
        &self,
        bytes: &mut [u8],
        mixed: u64,
        value: Option<u64>,
        capacity: usize,
    ) -> Option<Option<u64>> {
        let (count, entry_bytes) = (self.count(bytes), self.entry_bytes());
        let place = |index: usize| HEADER_BYTES + index * entry_bytes;
        let old_of = |bytes: &[u8], at| if self.words > 1 { self.word(bytes, at, 1) } else { 0 };
        let (found, at) = match self.find(bytes, mixed) {
            Ok(at) => (Some(old_of(bytes, at)), at),
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

    /// Calls `f` with the mixed keys and values of one bucket after the other.
    pub(crate) fn for_each(
        &self,
        pages: &PageFile,
        job: &Job,
        mut f: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let bits = self.bits();
        self.usable(pages)?;
        let mut entries = Vec::new();
        let mut scanner = pages.scanner();
        let (count, step) = (1 << *bits, WINDOW_PAGES as u64);
        for start in (0..count).step_by(WINDOW_PAGES) {
            let window = start..(start + step).min(count);
            job.check()?;
            entries.clear();
            scanner.visit(window.map(|b| self.page(b)), |_, bytes| {
                let value = |at| if self.words > 1 { self.word(bytes, at, 1) } else { 0 };
                entries.extend((0..self.count(bytes)).map(|at| (self.word(bytes, at, 0), value(at))));
                Ok(())
            })?;
            entries.sort_unstable();
            entries.iter().try_for_each(|(mixed, value)| f(*mixed, *value))?;
        }
        Ok(())
    }

    fn is_crowded(&self, pages: &PageFile, bits: u32) -> bool {
        // Evenly spread keys leave room for the few buckets that get more than others.
        self.len() > (self.capacity(pages) as u64 * 7 / 8) << bits
    }

    /// Doubles the buckets, unless somebody else did since `seen` bits chose a bucket.
    fn grow_within(&self, pages: &PageFile, writing: &Writing<'_>, seen: u32) -> Result<()> {
        let mut bits = self.bits.write().unwrap_or_else(PoisonError::into_inner);
        self.usable(pages)?;
        if *bits != seen {
            return Ok(());
        }
        let doubled = self.split_buckets(pages, writing, *bits);
        match doubled {
            Ok(()) => *bits += 1,
            Err(_) => self.broken.store(true, Ordering::Relaxed),
        }
        doubled
    }

    /// From the last to the first: both halves of a bucket go behind it.
    fn split_buckets(&self, pages: &PageFile, writing: &Writing<'_>, bits: u32) -> Result<()> {
        let entry_bytes = self.entry_bytes();
        let mut scanner = pages.scanner();
        for number in (0..1u64 << bits).rev() {
            if number % WINDOW_PAGES as u64 == WINDOW_PAGES as u64 - 1 {
                let window = number + 1 - WINDOW_PAGES as u64..=number;
                scanner.load(window.map(|number| self.page(number)))?;
            }
            let old = pages.read(self.page(number), <[u8]>::to_vec)?;
            let count = self.count(&old);
            let middle = (number * 2 + 1).checked_shl(63 - bits).unwrap_or(0);
            let cut = self.find_from(&old, 0, middle);
            let place = |index: usize| HEADER_BYTES + index * entry_bytes;
            for (half, range) in [(1, cut..count), (0, 0..cut)] {
                let page = self.page(number * 2 + half);
                // Most buckets are empty when a table grows fast: they are not written.
                if range.is_empty() && pages.read(page, |bytes| self.count(bytes) == 0)? {
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
        }
        Ok(())
    }

    #[inline]
    fn count(&self, bytes: &[u8]) -> usize {
        (u32_at(bytes, 0) as usize).min((bytes.len() - HEADER_BYTES) / self.entry_bytes())
    }

    #[inline]
    fn word(&self, bytes: &[u8], entry: usize, word: usize) -> u64 {
        u64_at(bytes, HEADER_BYTES + entry * self.entry_bytes() + word * 8)
    }

    fn find(&self, bytes: &[u8], mixed: u64) -> Result<usize, usize> {
        let at = self.find_from(bytes, 0, mixed);
        if at < self.count(bytes) && self.word(bytes, at, 0) == mixed { Ok(at) } else { Err(at) }
    }

    /// The first entry from `start` on that is not less than `mixed`: by doubling steps, as the next key
    /// of a batch is near.
    #[inline]
    fn find_from(&self, bytes: &[u8], start: usize, mixed: u64) -> usize {
        let count = self.count(bytes);
        let (mut low, mut step) = (start, 1);
        while low + step <= count && self.word(bytes, low + step - 1, 0) < mixed {
            low += step;
            step *= 2;
        }
        let mut high = (low + step - 1).min(count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.word(bytes, middle, 0) < mixed { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[inline]
fn word_of(entry: &[[u8; 8]], word: usize) -> u64 {
    entry.get(word).map_or(0, |word| u64::from_le_bytes(*word))
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
        for key in
            (0..100_000).chain(u64::MAX - 1000..=u64::MAX).map(|i: u64| i.wrapping_mul(0x1234_5678_9ABC_DEF1))
        {
            assert_eq!(unmix(mix(key)), key);
        }
    }
}
