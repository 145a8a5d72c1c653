//! The layout of records in the pages of a bag.
//!
//! A *class page* has slots of one size; a slot begins with the record's id and length. A *span* is
//! a run of pages for one long record. Sizes grow by about a fifth from class to class, so that a
//! record wastes a tenth on average and a growing record moves rarely. Invariant: a slot holds the
//! id of its record, so that readers detect stale positions and damage.

use crate::fields::{put, u16_at, u32_at, u64_at};

/// Bytes of a page before its slots.
pub(super) const PAGE_HEADER: usize = 8;
/// Bytes of a slot before its record.
pub(super) const SLOT_HEADER: usize = 12;
/// Bytes of a span before its record.
pub(super) const SPAN_HEADER: usize = 24;
/// The id in a free slot.
const FREE: u64 = u64::MAX;
/// The end of a chain of free slots.
const NONE: u16 = u16::MAX;
/// The class of a span's first page.
pub(super) const SPAN: u8 = 255;

/// The position of a record: an entry of the index, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordPosition(u64);

const PRESENT: u64 = 1 << 63;
const SPAN_BIT: u64 = 1 << 62;

impl RecordPosition {
    pub(super) fn slot_of(page: u64, slot: u16) -> Self {
        Self(PRESENT | page << 16 | u64::from(slot))
    }

    pub(super) fn span_at(page: u64) -> Self {
        Self(PRESENT | SPAN_BIT | page << 16)
    }

    /// Decodes an entry of the index; 0 means no record.
    pub(super) fn decode(entry: u64) -> Option<Self> {
        (entry & PRESENT != 0).then_some(Self(entry))
    }

    pub(super) fn encode(this: Option<Self>) -> u64 {
        this.map_or(0, |position| position.0)
    }

    pub(super) fn page(self) -> u64 {
        (self.0 & (SPAN_BIT - 1)) >> 16
    }

    pub(super) fn slot(self) -> u16 {
        self.0 as u16
    }

    pub(super) fn is_span(self) -> bool {
        self.0 & SPAN_BIT != 0
    }
}

/// The slot sizes for one page size.
#[derive(Debug)]
pub(super) struct Classes {
    /// Slots per page and bytes per slot, by ascending bytes.
    sizes: Vec<(u16, usize)>,
}

impl Classes {
    pub(super) fn new(page_bytes: usize) -> Self {
        let capacity = page_bytes - PAGE_HEADER;
        let mut sizes = Vec::new();
        let mut count = (capacity / 16).min(usize::from(NONE) - 1);
        while count > 0 {
            sizes.push((count as u16, (capacity / count) & !3));
            count = (count - 1).min(count * 5 / 6);
        }
        Self { sizes }
    }

    /// The class for a record of `len` bytes; `None` if it needs a span.
    pub(super) fn of(&self, len: usize) -> Option<u8> {
        let class = self.sizes.partition_point(|(_, bytes)| *bytes < len + SLOT_HEADER);
        (class < self.sizes.len()).then_some(class as u8)
    }

    pub(super) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Slots per page of this class; 0 for an unknown class.
    pub(super) fn slots(&self, class: u8) -> u16 {
        self.sizes.get(usize::from(class)).map_or(0, |(count, _)| *count)
    }

    /// Bytes per slot of this class.
    pub(super) fn slot_bytes(&self, class: u8) -> usize {
        self.sizes.get(usize::from(class)).map_or(0, |(_, bytes)| *bytes)
    }
}

/// A view of a class page. Works on any bytes; invalid content reads as no record.
#[derive(Clone, Copy)]
pub(super) struct SlotPage<'a> {
    bytes: &'a [u8],
    slot_bytes: usize,
}

impl<'a> SlotPage<'a> {
    pub(super) fn new(bytes: &'a [u8], classes: &Classes) -> Self {
        Self { bytes, slot_bytes: classes.slot_bytes(class_of(bytes)) }
    }

    /// Number of slots used so far, including free ones.
    pub(super) fn used(&self) -> u16 {
        if self.slot_bytes == 0 { 0 } else { u16_at(self.bytes, 4) }
    }

    /// Id and record of a slot, if it is in use.
    pub(super) fn get(&self, slot: u16) -> Option<(u64, &'a [u8])> {
        if slot >= self.used() {
            return None;
        }
        let at = PAGE_HEADER + usize::from(slot) * self.slot_bytes;
        // A damaged page may count more slots than it has.
        let slot = self.bytes.get(at..at + self.slot_bytes)?;
        let (id, len) = (u64_at(slot, 0), u32_at(slot, 8) as usize);
        if id == FREE {
            return None;
        }
        slot.get(SLOT_HEADER..SLOT_HEADER + len).map(|record| (id, record))
    }

    /// The record in a slot, if it belongs to `id`.
    pub(super) fn record(&self, slot: u16, id: u64) -> Option<&'a [u8]> {
        self.get(slot).filter(|(found, _)| *found == id).map(|(_, record)| record)
    }
}

/// Formats a page for a class.
pub(super) fn format(bytes: &mut [u8], class: u8) {
    put(bytes, 0, &(u16::from(class) + 1).to_le_bytes());
    put(bytes, 2, &NONE.to_le_bytes());
    put(bytes, 4, &0u16.to_le_bytes());
    put(bytes, 6, &0u16.to_le_bytes());
}

/// True if the page is formatted for this class.
pub(super) fn is_formatted(bytes: &[u8], class: u8) -> bool {
    u16_at(bytes, 0) == u16::from(class) + 1
}

/// The class of a formatted page; for other pages, a number that no class has.
pub(super) fn class_of(bytes: &[u8]) -> u8 {
    u16_at(bytes, 0).checked_sub(1).map_or(u8::MAX, |class| class.min(255) as u8)
}

/// Writes a record into a free slot of a page; `None` if no slot is free.
pub(super) fn insert(
    bytes: &mut [u8],
    classes: &Classes,
    class: u8,
    id: u64,
    record: &[u8],
) -> Option<u16> {
    let (free, used) = (u16_at(bytes, 2), u16_at(bytes, 4));
    let slot_bytes = classes.slot_bytes(class);
    let slot = if free != NONE && free >= classes.slots(class) {
        // The page is damaged: its first free slot does not exist.
        return None;
    } else if free != NONE {
        let at = PAGE_HEADER + usize::from(free) * slot_bytes;
        let next = u32_at(bytes, at + 8) as u16;
        put(bytes, 2, &next.to_le_bytes());
        free
    } else if used < classes.slots(class) {
        put(bytes, 4, &(used + 1).to_le_bytes());
        used
    } else {
        return None;
    };
    let at = PAGE_HEADER + usize::from(slot) * slot_bytes;
    put(bytes, at, &id.to_le_bytes());
    put(bytes, at + 8, &(record.len() as u32).to_le_bytes());
    put(bytes, at + SLOT_HEADER, record);
    Some(slot)
}

/// Replaces the record in a slot, or appends to it; false if it does not fit.
pub(super) fn rewrite(
    bytes: &mut [u8],
    classes: &Classes,
    slot: u16,
    record: &[u8],
    add: bool,
) -> bool {
    let slot_bytes = classes.slot_bytes(class_of(bytes));
    let at = PAGE_HEADER + usize::from(slot) * slot_bytes;
    let old = if add { u32_at(bytes, at + 8) as usize } else { 0 };
    let len = old + record.len();
    if len + SLOT_HEADER > slot_bytes {
        return false;
    }
    put(bytes, at + 8, &(len as u32).to_le_bytes());
    put(bytes, at + SLOT_HEADER + old, record);
    true
}

/// Frees a slot of a page; false if it does not belong to `id`.
pub(super) fn remove(bytes: &mut [u8], classes: &Classes, slot: u16, id: u64) -> bool {
    if SlotPage::new(bytes, classes).record(slot, id).is_none() {
        return false;
    }
    let at = PAGE_HEADER + usize::from(slot) * classes.slot_bytes(class_of(bytes));
    let next = u32::from(u16_at(bytes, 2));
    put(bytes, at, &FREE.to_le_bytes());
    put(bytes, at + 8, &next.to_le_bytes());
    put(bytes, 2, &slot.to_le_bytes());
    true
}

/// The header of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanHead {
    pub(super) pages: u64,
    pub(super) id: u64,
    pub(super) len: u64,
}

const SPAN_MARK: u16 = 0xFFFE;

impl SpanHead {
    /// Reads the header from a span's first page, if there is one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let head =
            Self { pages: u32_at(bytes, 4).into(), id: u64_at(bytes, 8), len: u64_at(bytes, 16) };
        let fits = head.len
            <= head.pages.saturating_mul(bytes.len() as u64).saturating_sub(SPAN_HEADER as u64);
        (u16_at(bytes, 0) == SPAN_MARK && fits).then_some(head)
    }

    pub(super) fn write(self, bytes: &mut [u8]) {
        put(bytes, 0, &SPAN_MARK.to_le_bytes());
        put(bytes, 2, &0u16.to_le_bytes());
        put(bytes, 4, &(self.pages as u32).to_le_bytes());
        put(bytes, 8, &self.id.to_le_bytes());
        put(bytes, 16, &self.len.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_all_lengths_and_fit_their_pages() {
        for page_bytes in [4096, 16 << 10, 64 << 10] {
            let classes = Classes::new(page_bytes);
            assert!(classes.count() < usize::from(SPAN));
            let mut last = 0;
            for len in 0..=page_bytes - PAGE_HEADER - SLOT_HEADER - 4 {
                let class = classes.of(len).unwrap();
                assert!(class >= last && classes.slot_bytes(class) >= len + SLOT_HEADER);
                let used = usize::from(classes.slots(class)) * classes.slot_bytes(class);
                assert!(used <= page_bytes - PAGE_HEADER);
                last = class;
            }
            assert_eq!(classes.of(page_bytes), None);
        }
    }

    #[test]
    fn slots_are_taken_rewritten_and_given_back() {
        let classes = Classes::new(4096);
        let class = classes.of(100).unwrap();
        let mut page = vec![0; 4096];
        assert!(!is_formatted(&page, class));
        format(&mut page, class);
        let most = classes.slots(class);
        for id in 0..u64::from(most) {
            assert_eq!(insert(&mut page, &classes, class, id, &[id as u8; 100]), Some(id as u16));
        }
        assert_eq!(insert(&mut page, &classes, class, 99, b""), None);
        assert!(remove(&mut page, &classes, 3, 3) && !remove(&mut page, &classes, 3, 3));
        assert!(!remove(&mut page, &classes, 4, 5));
        assert_eq!(insert(&mut page, &classes, class, 77, b"new"), Some(3));
        assert!(rewrite(&mut page, &classes, 3, b" and more", true));
        assert!(!rewrite(&mut page, &classes, 3, &[0; 200], true));
        let seen = SlotPage::new(&page, &classes);
        assert_eq!(seen.record(3, 77), Some(b"new and more".as_slice()));
        assert_eq!((seen.record(3, 3), seen.record(4, 4)), (None, Some([4; 100].as_slice())));
    }

    #[test]
    fn nonsense_is_no_record() {
        let classes = Classes::new(4096);
        let page: Vec<u8> = (0..4096u32).map(|i| ((i * 7919) >> 3) as u8).collect();
        let seen = SlotPage::new(&page, &classes);
        for slot in 0..u16::MAX {
            let _ = seen.get(slot);
        }
        assert_eq!(SpanHead::read(&page), None);
        assert_eq!(SlotPage::new(&[0; 4096], &classes).get(0), None);
    }
}
