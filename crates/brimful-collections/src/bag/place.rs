//! Putting a record somewhere, moving it, and giving its place back. The caller holds the id's lock.

use std::sync::atomic::Ordering;

use brimful_store::durable::{PageId, Writing};

use super::layout::{self, Place, SPAN_HEADER, SlotPage, SpanHead};
use super::{Change, DATA, RecordBag, WINDOW_PAGES};
use crate::error::{Error, Result};

impl RecordBag {
    /// Replaces a record, or adds to it.
    pub(super) fn change(&self, writing: &Writing<'_>, id: u64, bytes: &[u8], change: Change) -> Result<()> {
        let Some(place) = self.place(id)? else {
            if change == Change::Add {
                return Err(self.removed(id));
            }
            let new = self.put(writing, id, bytes, bytes.len())?;
            self.set_place(writing, id, Some(new))?;
            self.removed.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        };
        if self.change_in_place(writing, id, place, bytes, change)? {
            return Ok(());
        }
        let new = match change {
            Change::Replace => self.put(writing, id, bytes, bytes.len())?,
            Change::Add if place.is_span() => self.grow_span(writing, id, place, bytes)?,
            Change::Add => {
                let mut record = self.read_at(id, place)?;
                record.extend_from_slice(bytes);
                self.check_bytes(record.len() as u64)?;
                // Room to grow by a half: moving costs O(1) a byte in all. What was empty may be whole now.
                let spare = if record.len() == bytes.len() { 0 } else { record.len() / 2 };
                self.put(writing, id, &record, record.len() + spare)?
            }
        };
        self.set_place(writing, id, Some(new))?;
        self.release(writing, id, place)
    }

    /// Changes a record where it is; false if there is no room.
    pub(super) fn change_in_place(
        &self,
        writing: &Writing<'_>,
        id: u64,
        place: Place,
        bytes: &[u8],
        change: Change,
    ) -> Result<bool> {
        if place.is_span() {
            return self.change_span(writing, id, place, bytes, change);
        }
        let changed = self.pages.update(writing, PageId::new(DATA, place.page()), |page| {
            SlotPage::new(page.bytes(), &self.classes).record(place.slot(), id)?;
            let class = self.classes.of(bytes.len());
            let add = change == Change::Add;
            // One that shrank much moves to a smaller slot, or the bag would keep its old size.
            let shrunk = !add
                && class.is_some_and(|class| {
                    let now = layout::class_of(page.bytes());
                    self.classes.slot_bytes(class) * 2 < self.classes.slot_bytes(now)
                });
            Some(!shrunk && layout::rewrite(page.bytes_mut(), &self.classes, place.slot(), bytes, add))
        })?;
        changed.ok_or_else(|| self.damaged(id, place, "the record is not where the index says"))
    }

    fn change_span(
        &self,
        writing: &Writing<'_>,
        id: u64,
        place: Place,
        bytes: &[u8],
        change: Change,
    ) -> Result<bool> {
        let head = self.span_head(id, place)?;
        let old = if change == Change::Add { head.len } else { 0 };
        let len = old + bytes.len() as u64;
        let capacity = head.pages * self.pages.page_bytes() as u64 - SPAN_HEADER as u64;
        let fits = len <= capacity && (change == Change::Add || len * 2 >= capacity);
        if fits {
            self.check_bytes(len)?;
            self.write_span(writing, place.page(), old, bytes)?;
            let head = SpanHead { len, ..head };
            self.pages
                .update(writing, PageId::new(DATA, place.page()), |page| head.write(page.bytes_mut()))?;
        }
        Ok(fits)
    }

    /// Puts a record where there is room for `capacity` bytes; the index does not know it yet.
    pub(super) fn put(
        &self,
        writing: &Writing<'_>,
        id: u64,
        record: &[u8],
        capacity: usize,
    ) -> Result<Place> {
        let Some(class) = self.classes.of(capacity).or_else(|| self.classes.of(record.len())) else {
            return self.put_span(writing, id, record.len() as u64, capacity as u64, |first| {
                self.write_span(writing, first, 0, record)
            });
        };
        let (page, _) = self.space().promise(class, 1, &self.classes);
        let slot = self.pages.update(writing, PageId::new(DATA, page), |page| {
            let bytes = page.bytes_mut();
            if !layout::is_formatted(bytes, class) {
                layout::format(bytes, class);
            }
            layout::insert(bytes, &self.classes, class, id, record)
        });
        match slot {
            Ok(Some(slot)) => Ok(Place::slot_of(page, slot)),
            Ok(None) => Err(self.damaged(id, Place::slot_of(page, 0), "a page with room has none")),
            Err(error) => {
                self.space().release(page, &self.classes);
                Err(error.into())
            }
        }
    }

    /// Makes a span of `len` bytes with room for `capacity`; `fill` writes them, given its first page.
    fn put_span(
        &self,
        writing: &Writing<'_>,
        id: u64,
        len: u64,
        capacity: u64,
        fill: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Place> {
        let pages = (SPAN_HEADER as u64 + capacity).div_ceil(self.pages.page_bytes() as u64);
        let first = self.space().allocate_span(pages);
        let head = SpanHead { pages, id, len };
        let written = fill(first).and_then(|()| {
            Ok(self.pages.update(writing, PageId::new(DATA, first), |page| head.write(page.bytes_mut()))?)
        });
        if written.is_err() {
            self.discard_span(writing, first, pages)?;
        }
        written.map(|()| Place::span_at(first))
    }

    /// Copies a span into a larger one, page by page, and adds to its end: a record may be longer than memory.
    fn grow_span(&self, writing: &Writing<'_>, id: u64, place: Place, bytes: &[u8]) -> Result<Place> {
        let head = self.span_head(id, place)?;
        let len = head.len + bytes.len() as u64;
        self.check_bytes(len)?;
        self.put_span(writing, id, len, len + len / 2, |first| {
            for number in 0..self.used_pages(&head) {
                let from = PageId::new(DATA, place.page() + number);
                let copy = self.pages.read(from, <[u8]>::to_vec)?;
                let to = PageId::new(DATA, first + number);
                self.pages.overwrite(writing, to, |bytes| crate::fields::put(bytes, 0, &copy))?;
            }
            self.write_span(writing, first, head.len, bytes)
        })
    }

    /// Pages of a span that its record reaches into.
    fn used_pages(&self, head: &SpanHead) -> u64 {
        (head.len + SPAN_HEADER as u64).div_ceil(self.pages.page_bytes() as u64)
    }

    /// Writes bytes into a span, from byte `at` of its record on.
    fn write_span(&self, writing: &Writing<'_>, first: u64, at: u64, bytes: &[u8]) -> Result<()> {
        let page_bytes = self.pages.page_bytes();
        let mut at = at + SPAN_HEADER as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, offset) = (first + at / page_bytes as u64, (at % page_bytes as u64) as usize);
            let (now, later) = rest.split_at(rest.len().min(page_bytes - offset));
            let page = PageId::new(DATA, number);
            let put = |bytes: &mut [u8]| crate::fields::put(bytes, offset, now);
            if now.len() == page_bytes {
                self.pages.overwrite(writing, page, put)?;
            } else {
                self.pages.update(writing, page, |page| put(page.bytes_mut()))?;
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    pub(super) fn span_head(&self, id: u64, place: Place) -> Result<SpanHead> {
        let head = self.pages.read(PageId::new(DATA, place.page()), SpanHead::read)?;
        let known = self.space().pages();
        head.filter(|head| head.id == id && place.page() + head.pages <= known)
            .ok_or_else(|| self.damaged(id, place, "the record is not where the index says"))
    }

    /// The record at `place`.
    pub(super) fn read_at(&self, id: u64, place: Place) -> Result<Vec<u8>> {
        if !place.is_span() {
            let record = self.pages.read(PageId::new(DATA, place.page()), |bytes| {
                SlotPage::new(bytes, &self.classes).record(place.slot(), id).map(<[u8]>::to_vec)
            })?;
            return record.ok_or_else(|| self.damaged(id, place, "the record is not where the index says"));
        }
        let head = self.span_head(id, place)?;
        let mut record = Vec::with_capacity(head.len as usize);
        self.visit_span(place, &head, |piece| record.extend_from_slice(piece))?;
        Ok(record)
    }

    /// Lets `f` see the record of a span, a page at a time.
    pub(super) fn visit_span(&self, place: Place, head: &SpanHead, mut f: impl FnMut(&[u8])) -> Result<()> {
        let window = (self.pages.cache_bytes() / self.pages.page_bytes() / 8).clamp(1, WINDOW_PAGES);
        let pages: Vec<PageId> =
            (0..self.used_pages(head)).map(|number| PageId::new(DATA, place.page() + number)).collect();
        let mut scanner = self.pages.scanner();
        let (mut skip, mut left) = (SPAN_HEADER, head.len as usize);
        for window in pages.chunks(window) {
            self.pages.check()?;
            scanner.load(window.iter().copied())?;
            for page in window {
                self.pages.read(*page, |bytes| {
                    let piece = bytes.get(skip..).unwrap_or_default();
                    let piece = piece.get(..left).unwrap_or(piece);
                    f(piece);
                    (skip, left) = (0, left - piece.len());
                })?;
            }
        }
        Ok(())
    }

    /// Gives the place of a record back; the index names it no more.
    pub(super) fn release(&self, writing: &Writing<'_>, id: u64, place: Place) -> Result<()> {
        if place.is_span() {
            let head = self.span_head(id, place)?;
            return self.discard_span(writing, place.page(), head.pages);
        }
        let page = PageId::new(DATA, place.page());
        let removed = self.pages.update(writing, page, |page| {
            layout::remove(page.bytes_mut(), &self.classes, place.slot(), id)
        })?;
        if !removed {
            return Err(self.damaged(id, place, "the record is not where the index says"));
        }
        // The space stays locked until the page is gone, or somebody could be promised room on it.
        let mut space = self.space();
        if space.release(place.page(), &self.classes) {
            self.pages.discard(writing, page)?;
        }
        Ok(())
    }

    fn discard_span(&self, writing: &Writing<'_>, first: u64, pages: u64) -> Result<()> {
        for number in first..first + pages {
            self.pages.discard(writing, PageId::new(DATA, number))?;
        }
        self.space().release_span(first, pages);
        Ok(())
    }

    pub(super) fn damaged(&self, id: u64, place: Place, what: &str) -> Error {
        let what = format!("record {id} in page {}: {what}", place.page());
        brimful_store::Error::corrupt(self.pages.path(), 0, what).into()
    }
}
