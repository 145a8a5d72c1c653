//! Writes records, moves them, and frees their positions. The caller holds the lock of the id.

use std::sync::atomic::Ordering;

use brimful_store::ErrorKind;
use brimful_store::durable::{PageId, Writing};

use super::layout::{self, RecordPosition, SPAN_HEADER, SlotPage, SpanHead};
use super::{Change, DATA, RecordBag};
use crate::error::{Error, Result};
use crate::folder::window;

impl RecordBag {
    /// Replaces a record, or appends to it.
    pub(super) fn change(
        &self,
        writing: &Writing<'_>,
        id: u64,
        bytes: &[u8],
        change: Change,
    ) -> Result<()> {
        let Some(position) = self.position(id)? else {
            if change == Change::Add {
                return Err(self.removed(id));
            }
            let new = self.put(writing, id, bytes, bytes.len())?;
            self.set_new_position(writing, id, new)?;
            self.removed.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        };
        if self.change_in_place(writing, id, position, bytes, change)? {
            return Ok(());
        }
        let new = match change {
            Change::Replace => self.put(writing, id, bytes, bytes.len())?,
            Change::Add if position.is_span() => self.grow_span(writing, id, position, bytes)?,
            Change::Add => {
                let mut record = self.read_at(id, position)?;
                record.extend_from_slice(bytes);
                self.check_bytes(record.len() as u64)?;
                // Adds spare space of half the length, so that moves cost amortized O(1) per byte.
                // A record that was empty may be complete now, so it gets none.
                let spare = if record.len() == bytes.len() { 0 } else { record.len() / 2 };
                self.put(writing, id, &record, record.len() + spare)?
            }
        };
        self.set_new_position(writing, id, new)?;
        match self.release(writing, id, position) {
            // The record has changed. Its old position is an orphan, which the next sync frees.
            Err(error) if error.kind() == ErrorKind::Budget => Ok(()),
            released => released,
        }
    }

    /// Changes a record in its present position; false if it does not fit.
    pub(super) fn change_in_place(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: RecordPosition,
        bytes: &[u8],
        change: Change,
    ) -> Result<bool> {
        if position.is_span() {
            return self.change_span(writing, id, position, bytes, change);
        }
        let changed = self.pages.update(writing, PageId::new(DATA, position.page()), |page| {
            SlotPage::new(page.bytes(), &self.classes).record(position.slot(), id)?;
            let class = self.classes.of(bytes.len());
            let add = change == Change::Add;
            // A record that shrinks much moves to a smaller slot; otherwise the bag would keep its
            // size.
            let shrunk = !add
                && class.is_some_and(|class| {
                    let now = layout::class_of(page.bytes());
                    self.classes.slot_bytes(class) * 2 < self.classes.slot_bytes(now)
                });
            Some(
                !shrunk
                    && layout::rewrite(
                        page.bytes_mut(),
                        &self.classes,
                        position.slot(),
                        bytes,
                        add,
                    ),
            )
        })?;
        changed.ok_or_else(|| self.damaged(id, position, "the record is not where the index says"))
    }

    fn change_span(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: RecordPosition,
        bytes: &[u8],
        change: Change,
    ) -> Result<bool> {
        let head = self.span_head(id, position)?;
        let old = if change == Change::Add { head.len } else { 0 };
        let len = old + bytes.len() as u64;
        let capacity = head.pages * self.pages.page_bytes() as u64 - SPAN_HEADER as u64;
        let fits = len <= capacity && (change == Change::Add || len * 2 >= capacity);
        if fits {
            self.check_bytes(len)?;
            self.write_span(writing, position.page(), old, bytes)?;
            let head = SpanHead { len, ..head };
            self.pages.update(writing, PageId::new(DATA, position.page()), |page| {
                head.write(page.bytes_mut())
            })?;
        }
        Ok(fits)
    }

    /// Writes a record to a new position with space for `capacity` bytes, or at least for the
    /// record; the caller updates the index.
    pub(super) fn put(
        &self,
        writing: &Writing<'_>,
        id: u64,
        record: &[u8],
        capacity: usize,
    ) -> Result<RecordPosition> {
        let Some(class) = self.classes.of(capacity).or_else(|| self.classes.of(record.len()))
        else {
            return self.put_span(writing, id, record.len() as u64, capacity as u64, |first| {
                self.write_span(writing, first, 0, record)
            });
        };
        let (page, _) = self.promise(class, 1)?;
        let slot = self.pages.update(writing, PageId::new(DATA, page), |page| {
            let bytes = page.bytes_mut();
            if !layout::is_formatted(bytes, class) {
                layout::format(bytes, class);
            }
            layout::insert(bytes, &self.classes, class, id, record)
        });
        match slot {
            Ok(Some(slot)) => Ok(RecordPosition::slot_of(page, slot)),
            Ok(None) => {
                Err(self.damaged(id, RecordPosition::slot_of(page, 0), "a page with room has none"))
            }
            Err(error) => {
                self.space().release(page, &self.classes);
                Err(error.into())
            }
        }
    }

    /// Reserves up to `want` slots of a class on one page; returns the page and the number of
    /// slots.
    pub(super) fn promise(&self, class: u8, want: usize) -> Result<(u64, usize)> {
        let mut space = self.space();
        Ok(space.promise(class, want, &self.classes, |bytes| self.pages.owner_takes(bytes))?)
    }

    /// Makes a span of `len` bytes with space for `capacity`; `fill` receives the number of its
    /// first page and writes the bytes.
    fn put_span(
        &self,
        writing: &Writing<'_>,
        id: u64,
        len: u64,
        capacity: u64,
        fill: impl FnOnce(u64) -> Result<()>,
    ) -> Result<RecordPosition> {
        let pages = (SPAN_HEADER as u64 + capacity).div_ceil(self.pages.page_bytes() as u64);
        let first = self.space().allocate_span(pages, |bytes| self.pages.owner_takes(bytes))?;
        let head = SpanHead { pages, id, len };
        let written = fill(first).and_then(|()| {
            Ok(self
                .pages
                .update(writing, PageId::new(DATA, first), |page| head.write(page.bytes_mut()))?)
        });
        if written.is_err() {
            self.discard_span(writing, first, pages)?;
        }
        written.map(|()| RecordPosition::span_at(first))
    }

    /// Copies a span into a larger one, page by page, because a record may be longer than memory,
    /// and appends to it.
    fn grow_span(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: RecordPosition,
        bytes: &[u8],
    ) -> Result<RecordPosition> {
        let head = self.span_head(id, position)?;
        let len = head.len + bytes.len() as u64;
        self.check_bytes(len)?;
        self.put_span(writing, id, len, len + len / 2, |first| {
            for number in 0..self.used_pages(&head) {
                let from = PageId::new(DATA, position.page() + number);
                let copy = self.pages.read(from, <[u8]>::to_vec)?;
                let to = PageId::new(DATA, first + number);
                self.pages.overwrite(writing, to, |bytes| crate::fields::put(bytes, 0, &copy))?;
            }
            self.write_span(writing, first, head.len, bytes)
        })
    }

    /// Number of pages of a span that contain bytes of its record.
    fn used_pages(&self, head: &SpanHead) -> u64 {
        (head.len + SPAN_HEADER as u64).div_ceil(self.pages.page_bytes() as u64)
    }

    /// Writes bytes into a span, from byte `at` of its record on.
    fn write_span(&self, writing: &Writing<'_>, first: u64, at: u64, bytes: &[u8]) -> Result<()> {
        let page_bytes = self.pages.page_bytes();
        let mut at = at + SPAN_HEADER as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, offset) =
                (first + at / page_bytes as u64, (at % page_bytes as u64) as usize);
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

    pub(super) fn span_head(&self, id: u64, position: RecordPosition) -> Result<SpanHead> {
        let head = self.pages.read(PageId::new(DATA, position.page()), SpanHead::read)?;
        let pages = self.space().pages();
        head.filter(|head| head.id == id && position.page() + head.pages <= pages)
            .ok_or_else(|| self.damaged(id, position, "the record is not where the index says"))
    }

    /// The record at `position`.
    pub(super) fn read_at(&self, id: u64, position: RecordPosition) -> Result<Vec<u8>> {
        if !position.is_span() {
            let record = self.pages.read(PageId::new(DATA, position.page()), |bytes| {
                SlotPage::new(bytes, &self.classes).record(position.slot(), id).map(<[u8]>::to_vec)
            })?;
            return record.ok_or_else(|| {
                self.damaged(id, position, "the record is not where the index says")
            });
        }
        let head = self.span_head(id, position)?;
        let mut record = Vec::with_capacity(head.len as usize);
        self.visit_span(position, &head, |piece| record.extend_from_slice(piece))?;
        Ok(record)
    }

    /// Passes the record of a span to `f`, page by page.
    pub(super) fn visit_span(
        &self,
        position: RecordPosition,
        head: &SpanHead,
        mut f: impl FnMut(&[u8]),
    ) -> Result<()> {
        let window = window(&self.pages, &self.options.resources);
        let pages: Vec<PageId> = (0..self.used_pages(head))
            .map(|number| PageId::new(DATA, position.page() + number))
            .collect();
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

    /// Frees the position of a record that the index no longer names. After a failure other than
    /// damage the record is an orphan.
    pub(super) fn release(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: RecordPosition,
    ) -> Result<()> {
        let released = self.free(writing, id, position);
        if released.as_ref().is_err_and(|error| error.kind() != ErrorKind::Corrupt) {
            self.orphans().push((id, position));
        }
        released
    }

    fn free(&self, writing: &Writing<'_>, id: u64, position: RecordPosition) -> Result<()> {
        if position.is_span() {
            let head = self.span_head(id, position)?;
            return self.discard_span(writing, position.page(), head.pages);
        }
        let page = PageId::new(DATA, position.page());
        let removed = self.pages.update(writing, page, |page| {
            layout::remove(page.bytes_mut(), &self.classes, position.slot(), id)
        })?;
        if !removed {
            return Err(self.damaged(id, position, "the record is not where the index says"));
        }
        // The space stays locked until the page is discarded, so that no thread reserves slots on
        // it meanwhile.
        let mut space = self.space();
        if space.release(position.page(), &self.classes) {
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

    pub(super) fn damaged(&self, id: u64, position: RecordPosition, problem: &str) -> Error {
        let problem = format!("record {id} in page {}: {problem}", position.page());
        brimful_store::Error::corrupt_pages(self.pages.path(), 0, problem).into()
    }
}
