//! The page table: the slot and checksum of each page.
//!
//! Resident: 16 bytes a page (a terabyte in pages of 64 KiB: 256 MiB), counted in the budget. On
//! disk the table is made of pages, too; a sync writes those that changed. Invariant: an entry is
//! *fresh* iff no durable root names its slot, and only fresh slots are written in place.

use super::root::{STREAMS, le};

/// A page of one of the file's address spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(u64);

const STREAM_SHIFT: u32 = 60;

impl PageId {
    /// Page `number` of address space `stream` (below [`super::STREAMS`]).
    pub const fn new(stream: u8, number: u64) -> Self {
        Self((stream as u64) << STREAM_SHIFT | number & ((1 << STREAM_SHIFT) - 1))
    }

    /// The address space.
    pub const fn stream(self) -> usize {
        (self.0 >> STREAM_SHIFT) as usize
    }

    /// The number within the address space.
    pub const fn number(self) -> u64 {
        self.0 & ((1 << STREAM_SHIFT) - 1)
    }

    pub(super) const fn packed(self) -> u64 {
        self.0
    }
}

/// Bytes of an entry on disk and in memory.
pub(super) const ENTRY_BYTES: usize = 16;
const FRESH: u64 = 1 << 63;
const NOWHERE: u64 = FRESH - 1;

/// The slot of a page, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The slot, or `NOWHERE`; the highest bit is set while the durable root does not name it.
    slot_and_flag: u64,
    pub(super) checksum: u64,
}

impl Entry {
    /// A page that was never written, or was discarded: it reads as zeros.
    pub(super) const NONE: Self = Self { slot_and_flag: NOWHERE, checksum: 0 };

    pub(super) fn fresh(slot: u64, checksum: u64) -> Self {
        Self { slot_and_flag: slot | FRESH, checksum }
    }

    pub(super) fn slot(self) -> Option<u64> {
        let slot = self.slot_and_flag & !FRESH;
        (slot != NOWHERE).then_some(slot)
    }

    pub(super) fn is_fresh(self) -> bool {
        self.slot_and_flag & FRESH != 0
    }

    fn without_mark(self) -> Self {
        Self { slot_and_flag: self.slot_and_flag & !FRESH, ..self }
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.slot_and_flag & !FRESH).to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        Self { slot_and_flag: le(bytes, 0, 8) & !FRESH, checksum: le(bytes, 8, 8) }
    }
}

/// Bytes of memory for `entries` entries. For each page of the table, which has `per_page` of them,
/// there is one entry in the directory, and a mark.
pub(super) fn memory_bytes(entries: u64, per_page: usize) -> u64 {
    (entries + entries.div_ceil(per_page as u64)).saturating_mul(ENTRY_BYTES as u64)
}

#[derive(Debug, Default)]
struct Stream {
    entries: Vec<Entry>,
    /// The entries of the table's own pages; `Entry::NONE` for a page never written.
    directory: Vec<Entry>,
    changed: Vec<bool>,
}

/// The table of all streams.
#[derive(Debug)]
pub(super) struct Table {
    streams: [Stream; STREAMS],
    per_page: usize,
}

impl Table {
    pub(super) fn new(page_bytes: u64) -> Self {
        Self { streams: Default::default(), per_page: page_bytes as usize / ENTRY_BYTES }
    }

    /// Pages of each stream.
    pub(super) fn pages(&self) -> [u64; STREAMS] {
        let mut pages = [0; STREAMS];
        pages
            .iter_mut()
            .zip(&self.streams)
            .for_each(|(count, stream)| *count = stream.entries.len() as u64);
        pages
    }

    pub(super) fn get(&self, page: PageId) -> Entry {
        let stream = self.streams.get(page.stream());
        stream.and_then(|s| s.entries.get(page.number() as usize)).copied().unwrap_or(Entry::NONE)
    }

    /// Extends the stream of `page` to it, if that takes at most `free` bytes more; otherwise
    /// returns the bytes that it takes.
    pub(super) fn extend_to(&mut self, page: PageId, free: u64) -> Result<(), u64> {
        let per_page = self.per_page;
        let stream = &mut self.streams[page.stream()];
        let (len, capacity) = (page.number() as usize + 1, stream.entries.capacity());
        if len <= stream.entries.len() {
            return Ok(());
        }
        let bytes =
            |entries: usize| memory_bytes(entries.saturating_sub(capacity) as u64, per_page);
        if bytes(len) > free {
            return Err(bytes(len));
        }
        if len > capacity {
            // Grows by half, so that the cost for an entry is constant, but takes at most a part of
            // the free memory in advance.
            let spare = (capacity / 2).min(free as usize / ENTRY_BYTES / 8);
            stream.entries.reserve_exact(len.max(capacity + spare) - stream.entries.len());
        }
        // Bytes of the last page of the table beyond its entries are zeros, which are no entries.
        if let Some(changed) = stream.changed.get_mut(stream.entries.len() / per_page) {
            *changed = true;
        }
        stream.entries.resize(len, Entry::NONE);
        stream.directory.resize(len.div_ceil(per_page), Entry::NONE);
        stream.changed.resize(stream.directory.len(), true);
        Ok(())
    }

    /// Sets an entry of the table.
    pub(super) fn set(&mut self, page: PageId, entry: Entry) {
        let stream = &mut self.streams[page.stream()];
        let index = page.number() as usize;
        stream.entries[index] = entry;
        stream.changed[index / self.per_page] = true;
    }

    /// The pages of the table that changed, as (stream, index).
    pub(super) fn changed(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (number, stream) in self.streams.iter().enumerate() {
            found.extend(
                stream.changed.iter().enumerate().filter(|(_, c)| **c).map(|(i, _)| (number, i)),
            );
        }
        found
    }

    /// Encodes one of the table's pages into `out`.
    pub(super) fn encode(&self, stream: usize, index: usize, out: &mut Vec<u8>) {
        out.clear();
        let entries =
            self.streams.get(stream).and_then(|s| s.entries.chunks(self.per_page).nth(index));
        entries.unwrap_or_default().iter().for_each(|entry| entry.encode(out));
        out.resize(self.per_page * ENTRY_BYTES, 0);
    }

    /// Decodes one of the table's pages; the stream has `pages` pages in total.
    pub(super) fn decode(&mut self, stream: usize, bytes: &[u8], pages: u64) {
        if let Some(stream) = self.streams.get_mut(stream) {
            let left = (pages as usize).saturating_sub(stream.entries.len());
            // All at once, because growth by doubling would exceed the memory that was checked.
            stream.entries.reserve_exact(left);
            stream.entries.extend(bytes.chunks_exact(ENTRY_BYTES).take(left).map(Entry::decode));
        }
    }

    /// Encodes the directory: the entries of the table's own pages.
    pub(super) fn encode_directory(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.streams.iter().flat_map(|s| &s.directory).for_each(|entry| entry.encode(&mut out));
        out
    }

    /// Decodes the directory for streams with these numbers of pages; returns its entries with
    /// their streams.
    pub(super) fn decode_directory(
        &mut self,
        bytes: &[u8],
        pages: &[u64; STREAMS],
    ) -> Vec<(usize, Entry)> {
        let mut directory = bytes.chunks_exact(ENTRY_BYTES).map(Entry::decode);
        let mut found = Vec::new();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let count =
                pages.get(number).map_or(0, |pages| pages.div_ceil(self.per_page as u64)) as usize;
            stream.directory = directory.by_ref().take(count).collect();
            stream.changed = vec![false; stream.directory.len()];
            found.extend(stream.directory.iter().map(|entry| (number, *entry)));
        }
        found
    }

    /// Sets the entry of one of the table's pages; returns the old slot.
    pub(super) fn relocate(&mut self, stream: usize, index: usize, entry: Entry) -> Option<u64> {
        let old = self.streams.get_mut(stream)?.directory.get_mut(index)?;
        std::mem::replace(old, entry.without_mark()).slot()
    }

    /// Clears the fresh and changed marks, after a root that names everything was written.
    pub(super) fn clear_marks(&mut self) {
        let per_page = self.per_page;
        for stream in &mut self.streams {
            let pages = stream.entries.chunks_mut(per_page).zip(&mut stream.changed);
            for (entries, changed) in pages.filter(|(_, changed)| **changed) {
                entries.iter_mut().for_each(|entry| *entry = entry.without_mark());
                *changed = false;
            }
        }
    }

    /// Up to `most` pages in slots from `from` on. Marks the table's own pages there as changed, so
    /// that the next sync moves them.
    pub(super) fn beyond(&mut self, from: u64, most: usize) -> Vec<PageId> {
        let mut found = Vec::new();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let high = |entry: &Entry| entry.slot().is_some_and(|slot| slot >= from);
            let pages = stream.entries.iter().enumerate().filter(|(_, entry)| high(entry));
            found.extend(
                pages.take(most - found.len()).map(|(i, _)| PageId::new(number as u8, i as u64)),
            );
            let directory = stream.directory.iter().zip(&mut stream.changed);
            directory.filter(|(entry, _)| high(entry)).for_each(|(_, changed)| *changed = true);
        }
        found
    }

    /// Bytes of memory used.
    pub(super) fn memory_bytes(&self) -> u64 {
        let of = |s: &Stream| {
            (s.entries.capacity() + s.directory.capacity()) * ENTRY_BYTES + s.changed.capacity()
        };
        self.streams.iter().map(of).sum::<usize>() as u64
    }
}
