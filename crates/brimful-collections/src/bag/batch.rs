//! Batches of records, processed in the order of their pages, with large reads, on all threads.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use brimful_store::durable::{PageId, Writing};
use brimful_store::wording::counted;
use rayon::prelude::*;

use super::layout::{self, RecordPosition, SlotPage};
use super::{Change, DATA, ENTRY_BYTES, INDEX, RecordBag};
use crate::WINDOW_PAGES;
use crate::error::{Error, Result};
use crate::fields::{put, u64_at};
use crate::folder::window;
use crate::order::{Ids, MAX_IDS, Order};
use crate::pipeline;

/// Records of a batch, in the order of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    bytes: Vec<u8>,
    positions: Vec<(usize, usize)>,
}

impl Records {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The record of the `index`-th id; `None` if it does not exist.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (at, len) = *self.positions.get(index)?;
        self.bytes.get(at..at + len)
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn set(&mut self, index: usize, record: &[u8]) {
        if let Some(position) = self.positions.get_mut(index) {
            *position = (self.bytes.len(), record.len());
            self.bytes.extend_from_slice(record);
        }
    }

    /// Keeps only the first `len` records.
    fn truncate(&mut self, len: usize) {
        self.positions.truncate(len);
        let mut present: Vec<&mut (usize, usize)> =
            self.positions.iter_mut().filter(|position| position.0 != ABSENT.0).collect();
        present.sort_unstable();
        let mut end = 0;
        for (at, len) in present.into_iter().map(|position| (&mut position.0, position.1)) {
            self.bytes.copy_within(*at..*at + len, end);
            *at = end;
            end += len;
        }
        self.bytes.truncate(end);
    }
}

/// The position of a record that does not exist.
const ABSENT: (usize, usize) = (usize::MAX, 0);

/// The records to fetch in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All records: a removed one is an error.
    All,
    /// The records that exist.
    Present,
    /// The records that exist, and only as many as fit in about this many bytes.
    Some(usize),
}

/// The position of a record, and the index of its id in the batch.
type Located = (Option<RecordPosition>, usize);

impl RecordBag {
    /// Appends records; returns the id of the first.
    ///
    /// # Errors
    /// `Error::RecordBytes` for a record of more than `MAX_RECORD_BYTES`, before any is appended.
    pub fn extend<R: AsRef<[u8]>>(&self, records: &[R]) -> Result<u64> {
        if let Some(longest) = records.iter().map(|record| record.as_ref().len() as u64).max() {
            self.check_bytes(longest)?;
        }
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = self.pages.write();
        let start = self.len();
        let mut positions = vec![0; records.len()];
        let placed = self
            .place_all(&writing, start, records, &mut positions)
            .and_then(|()| self.write_index(&writing, start, &positions));
        if placed.is_err() {
            let found = (start..)
                .zip(positions)
                .filter_map(|(id, entry)| Some((id, RecordPosition::decode(entry)?)));
            self.orphans().extend(found);
            return placed.map(|()| start);
        }
        self.len.store(start + records.len() as u64, Ordering::Release);
        Ok(start)
    }

    /// Writes new records, from id `start` on, and sets `positions`, also before a failure.
    fn place_all<R: AsRef<[u8]>>(
        &self,
        writing: &Writing<'_>,
        start: u64,
        records: &[R],
        positions: &mut [u64],
    ) -> Result<()> {
        let mut by_class: Vec<Vec<usize>> = vec![Vec::new(); self.classes.count() + 1];
        for (index, record) in records.iter().enumerate() {
            let class =
                self.classes.of(record.as_ref().len()).map_or(self.classes.count(), usize::from);
            if let Some(list) = by_class.get_mut(class) {
                list.push(index);
            }
        }
        for (class, indexes) in by_class.iter().enumerate() {
            if class == self.classes.count() {
                for index in indexes {
                    let record = records.get(*index).map(AsRef::as_ref).unwrap_or_default();
                    let position =
                        self.put(writing, start + *index as u64, record, record.len())?;
                    if let Some(entry) = positions.get_mut(*index) {
                        *entry = RecordPosition::encode(Some(position));
                    }
                }
            } else {
                self.fill(writing, start, records, class as u8, indexes, positions)?;
            }
        }
        Ok(())
    }

    /// Writes records of one class into pages, page by page.
    fn fill<R: AsRef<[u8]>>(
        &self,
        writing: &Writing<'_>,
        start: u64,
        records: &[R],
        class: u8,
        indexes: &[usize],
        positions: &mut [u64],
    ) -> Result<()> {
        let mut remaining = indexes;
        while !remaining.is_empty() {
            let (page, count) = self.promise(class, remaining.len())?;
            let (now, later) = remaining.split_at(count.min(remaining.len()));
            let filled = self.pages.update(writing, PageId::new(DATA, page), |page_bytes| {
                let bytes = page_bytes.bytes_mut();
                if !layout::is_formatted(bytes, class) {
                    layout::format(bytes, class);
                }
                for index in now {
                    let record = records.get(*index).map(AsRef::as_ref).unwrap_or_default();
                    let slot =
                        layout::insert(bytes, &self.classes, class, start + *index as u64, record)?;
                    *positions.get_mut(*index)? =
                        RecordPosition::encode(Some(RecordPosition::slot_of(page, slot)));
                }
                Some(())
            });
            match filled {
                Ok(Some(())) => remaining = later,
                Ok(None) => {
                    return Err(self.damaged(
                        start,
                        RecordPosition::slot_of(page, 0),
                        "a page with room has none",
                    ));
                }
                Err(error) => {
                    let mut space = self.space();
                    now.iter().for_each(|_| {
                        space.release(page, &self.classes);
                    });
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn write_index(&self, writing: &Writing<'_>, start: u64, positions: &[u64]) -> Result<()> {
        let mut rest = positions;
        let mut id = start;
        while !rest.is_empty() {
            let (page, at) = self.entry_of(id);
            let capacity = (self.pages.page_bytes() - at) / ENTRY_BYTES;
            let (now, later) = rest.split_at(capacity.min(rest.len()));
            self.pages.update(writing, page, |page| {
                for (position, at) in now.iter().zip((at..).step_by(ENTRY_BYTES)) {
                    put(page.bytes_mut(), at, &position.to_le_bytes());
                }
            })?;
            id += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// The positions of `ids`, sorted by position and then by index.
    fn locate(&self, ids: &[u64]) -> Result<Vec<Located>> {
        let per_page = (self.pages.page_bytes() / ENTRY_BYTES) as u64;
        let mut sorted: Vec<(u64, usize)> = ids.iter().copied().zip(0..).collect();
        if !ids.is_sorted() {
            sorted.sort_unstable();
        }
        let mut located = Vec::with_capacity(ids.len());
        for group in sorted.chunk_by(|a, b| a.0 / per_page == b.0 / per_page) {
            self.pages.check()?;
            let page = PageId::new(INDEX, group.first().map_or(0, |g| g.0 / per_page));
            self.pages.read(page, |bytes| {
                for (id, index) in group {
                    let entry = u64_at(bytes, (id % per_page) as usize * ENTRY_BYTES);
                    located.push((RecordPosition::decode(entry), *index));
                }
            })?;
        }
        located.sort_unstable();
        Ok(located)
    }

    /// The records `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] or [`Error::Removed`] for the first id without a record.
    pub fn fetch_batch(&self, ids: &[u64]) -> Result<Vec<Records>> {
        if let Some(largest) = ids.iter().copied().max() {
            self.check(largest)?;
        }
        let share = ids.len().div_ceil(self.options.resources.workers()).clamp(4096, MAX_IDS);
        if ids.len() <= share {
            return Ok(vec![self.fetch_new(ids, Wanted::All)?]);
        }
        self.options
            .resources
            .pool
            .install(|| ids.par_chunks(share).map(|ids| self.fetch_new(ids, Wanted::All)).collect())
    }

    /// `count` records from `start` on, in order; a removed one is `None` in [`Records::get`], and
    /// [`Records::iter`] skips it.
    ///
    /// # Errors
    /// `Error::OutOfRange` if a record is beyond the end.
    pub fn fetch_range(&self, start: u64, count: usize) -> Result<Records> {
        match start.checked_add(count as u64) {
            Some(end) if end <= self.len() => {
                self.fetch_new(&(start..end).collect::<Vec<_>>(), Wanted::Present)
            }
            _ => Err(Error::OutOfRange {
                path: self.path().into(),
                id: start.max(self.len()),
                len: self.len(),
            }),
        }
    }

    /// The records from `start` on that fit in a batch: at most `most`, and none only if `start` is
    /// the end. Removed records are as in [`RecordBag::fetch_range`].
    pub fn fetch_next(&self, start: u64, most: usize) -> Result<Records> {
        let mut records = Records::default();
        self.fetch_next_into(&mut records, start, most)?;
        Ok(records)
    }

    /// Like [`RecordBag::fetch_next`], into the memory of an earlier batch.
    pub(crate) fn fetch_next_into(
        &self,
        records: &mut Records,
        start: u64,
        most: usize,
    ) -> Result<()> {
        let ids: Vec<u64> = (start..self.len().min(start.saturating_add(most as u64))).collect();
        self.fetch_ids(records, &ids, Wanted::Some(self.share_bytes()))?;
        if let Some(first) = ids.first().filter(|_| records.is_empty()) {
            *records = self.fetch_long(*first)?;
        }
        Ok(())
    }

    /// One record of any length, if it fits in the budget.
    fn fetch_long(&self, id: u64) -> Result<Records> {
        match self.get_within(id) {
            Ok(bytes) => Ok(Records { positions: vec![(0, bytes.len())], bytes }),
            Err(Error::Removed { .. }) => {
                Ok(Records { positions: vec![ABSENT], bytes: Vec::new() })
            }
            Err(error) => Err(error),
        }
    }

    /// The first of the records `ids`: as many as fit in the share of a batch; none if the first is
    /// a span that does not fit.
    pub(crate) fn fetch_share(&self, ids: &[u64]) -> Result<Records> {
        self.fetch_new(ids, Wanted::Some(self.share_bytes()))
    }

    /// The records `ids` in memory of their own.
    fn fetch_new(&self, ids: &[u64], wanted: Wanted) -> Result<Records> {
        let mut records = Records::default();
        self.fetch_ids(&mut records, ids, wanted)?;
        Ok(records)
    }

    /// Replaces `records` by the records `ids`.
    fn fetch_ids(&self, records: &mut Records, ids: &[u64], wanted: Wanted) -> Result<()> {
        records.bytes.clear();
        records.positions.clear();
        records.positions.resize(ids.len(), ABSENT);
        let located = self.locate(ids)?;
        let max_bytes = if let Wanted::Some(bytes) = wanted { bytes } else { usize::MAX };
        let needs_all = wanted == Wanted::All;
        let id_of = |index: usize| ids.get(index).copied().unwrap_or(u64::MAX);
        let mut one_by_one = Vec::new();
        let mut in_slots = Vec::with_capacity(located.len());
        for (position, index) in located {
            match position {
                Some(position) if position.is_span() => one_by_one.push(index),
                Some(position) => in_slots.push((position, index)),
                None if needs_all => return Err(self.removed(id_of(index))),
                None => {}
            }
        }
        let mut groups = in_slots.chunk_by(|a, b| a.0.page() == b.0.page());
        let pages: Vec<u64> =
            groups.clone().filter_map(|g| g.first()).map(|g| g.0.page()).collect();
        let mut scanner = self.pages.scanner();
        let mut done = 0;
        for window in pages.chunks(WINDOW_PAGES) {
            self.options.resources.job.check()?;
            let groups: Vec<_> = groups.by_ref().take(window.len()).collect();
            // Reserves memory for the remaining records by their average length so far, because
            // growth by doubling would copy everything.
            let window_records: usize = groups.iter().map(|group| group.len()).sum();
            if done > 0
                && records.bytes.capacity() - records.bytes.len()
                    < records.bytes.len() / done * window_records * 2
            {
                records
                    .bytes
                    .reserve(records.bytes.len() / done * (in_slots.len() - done) * 17 / 16);
            }
            done += window_records;
            scanner.visit(
                window.iter().map(|number| PageId::new(DATA, *number)),
                |page, bytes| {
                    let group =
                        window.binary_search(&page.number()).ok().and_then(|at| groups.get(at));
                    let slots = SlotPage::new(bytes, &self.classes);
                    for (position, index) in group.copied().unwrap_or_default() {
                        match slots.record(position.slot(), id_of(*index)) {
                            Some(record) => {
                                records.set(*index, record);
                                if records.bytes.len() > max_bytes {
                                    records.truncate((records.len() / 2).max(1));
                                }
                            }
                            // The record has moved.
                            None => one_by_one.push(*index),
                        }
                    }
                    Ok(())
                },
            )?;
        }
        one_by_one.sort_unstable();
        for index in one_by_one {
            if index >= records.len() {
                break;
            }
            self.options.resources.job.check()?;
            if !self.makes_room(records, index, id_of(index), max_bytes)? {
                break;
            }
            match self.fetch(id_of(index), |record| records.set(index, record)) {
                Err(Error::Removed { .. }) if !needs_all => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Shortens `records` until its record of `index`, which is `id` and not yet there, fits in
    /// `max_bytes` bytes. Returns false, with only the records before it, if it never does.
    fn makes_room(
        &self,
        records: &mut Records,
        index: usize,
        id: u64,
        max_bytes: usize,
    ) -> Result<bool> {
        if max_bytes == usize::MAX {
            return Ok(true);
        }
        // A record without pages of its own is short.
        let bytes = self.long_len(id)?.unwrap_or(0);
        while records.bytes.len() as u64 + bytes > max_bytes as u64 {
            if records.len() == index + 1 {
                records.truncate(index);
                return Ok(false);
            }
            records.truncate((records.len() / 2).max(index + 1));
        }
        Ok(true)
    }

    /// Replaces the records `ids`; the last record of a repeated id stays. After a failure or
    /// cancellation, some of the records are replaced; repeating the call is safe.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::RecordBytes`; `Error::Usage` if the numbers of ids and records
    /// differ.
    pub fn store_batch<R: AsRef<[u8]> + Sync>(&self, ids: &[u64], records: &[R]) -> Result<()> {
        self.change_batch(ids, records, Change::Replace)
    }

    /// Appends to the records `ids`, in the order of `ids`. After a failure or cancellation, some
    /// items are appended; repeating the call appends them twice.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`, `Error::RecordBytes`; `Error::Usage` if the numbers
    /// of ids and items differ.
    pub fn append_to_batch<R: AsRef<[u8]> + Sync>(&self, ids: &[u64], items: &[R]) -> Result<()> {
        self.change_batch(ids, items, Change::Add)
    }

    fn change_batch<R: AsRef<[u8]> + Sync>(
        &self,
        ids: &[u64],
        records: &[R],
        change: Change,
    ) -> Result<()> {
        if ids.len() != records.len() {
            return Err(Error::Usage(format!(
                "{} and {} were given",
                counted(ids.len(), "id"),
                counted(records.len(), "record")
            )));
        }
        let Some(largest) = ids.iter().copied().max() else {
            return Ok(());
        };
        self.check(largest)?;
        if let Some(longest) = records.iter().map(|record| record.as_ref().len() as u64).max() {
            self.check_bytes(longest)?;
        }
        for (ids, records) in ids.chunks(MAX_IDS).zip(records.chunks(MAX_IDS)) {
            let located = self.locate(ids)?;
            let window = window(&self.pages, &self.options.resources);
            let page_of = |l: &Located| l.0.map(|position| position.page());
            let groups: Vec<&[Located]> =
                located.chunk_by(|a, b| page_of(a) == page_of(b)).collect();
            let change_index = |writing: &Writing<'_>, index: usize| {
                let (Some(id), Some(record)) = (ids.get(index), records.get(index)) else {
                    return Ok(());
                };
                let _changing = self.id_lock(*id);
                self.change(writing, *id, record.as_ref(), change)
            };
            self.options.resources.pool.install(|| {
                groups.par_chunks(window).try_for_each(|groups| {
                    self.pages.check()?;
                    let pages = groups.iter().filter_map(|g| g.first().and_then(page_of));
                    self.pages.scanner().load(pages.map(|number| PageId::new(DATA, number)))?;
                    // A holder of this right must not wait for the pool, whose threads may be
                    // waiting for it behind a sync.
                    let writing = self.pages.write();
                    let mut located = groups.iter().copied().flatten();
                    located.try_for_each(|(_, index)| change_index(&writing, *index))
                })
            })?;
        }
        self.tidy()
    }

    /// Appends to the records of ascending `ids`, on one thread; records that were empty get
    /// adjacent positions. An error includes the number of records changed; after a cancellation,
    /// or if the budget is too small, no other record was changed.
    pub(crate) fn append_sorted(&self, ids: &[u64], items: &[&[u8]]) -> Result<(), (usize, Error)> {
        let mut done = 0;
        self.append_some(ids, items, &mut done)
            .and_then(|()| self.tidy())
            .map_err(|error| (done, error))
    }

    fn append_some(&self, ids: &[u64], items: &[&[u8]], done: &mut usize) -> Result<()> {
        let window = window(&self.pages, &self.options.resources);
        let mut scanner = self.pages.scanner();
        for (ids, items) in ids.chunks(4096).zip(items.chunks(4096)) {
            let positions = self.locate(ids)?;
            let mut pages: Vec<u64> =
                positions.iter().filter_map(|l| l.0).map(|position| position.page()).collect();
            pages.dedup();
            if pages.len() <= window {
                scanner.load(pages.iter().map(|number| PageId::new(DATA, *number)))?;
            }
            let writing = self.pages.write();
            for (id, item) in ids.iter().zip(items) {
                let _changing = self.id_lock(*id);
                self.change(&writing, *id, item, Change::Add)?;
                *done += 1;
            }
        }
        Ok(())
    }

    /// Passes records to `f` in batches, on all threads, while it reads ahead; writes back the
    /// records that changed. `f` receives an id and its record; removed records are skipped. At
    /// most one record that is longer than the share of a batch is in memory at a time.
    ///
    /// # Errors
    /// Errors of `f`; `Error::OutOfRange` for an id of `order`.
    pub fn process(
        &self,
        order: &Order,
        f: impl Fn(u64, &mut Vec<u8>) -> Result<()> + Sync,
    ) -> Result<()> {
        if let Some(largest) = order.largest() {
            self.check(largest)?;
        }
        order.require_once()?;
        let batches = order.batches(self.len(), self.batch_len());
        let read = |ids: &Ids| {
            let ids: Vec<u64> = ids.iter().collect();
            Ok((self.fetch_share(&ids)?, ids))
        };
        let one_long = Mutex::new(());
        pipeline::stream(&self.options.resources, &batches, read, |_, (mut records, ids)| {
            let mut rest = ids.as_slice();
            loop {
                self.process_some(rest, &records, &f)?;
                rest = rest.get(records.len()..).unwrap_or_default();
                drop(records);
                let Some((next, later)) = rest.split_first() else {
                    return Ok(());
                };
                if self.long_len(*next)?.is_some() {
                    let _one = one_long.lock().unwrap_or_else(PoisonError::into_inner);
                    self.process_some(rest, &self.fetch_long(*next)?, &f)?;
                    rest = later;
                }
                records = self.fetch_share(rest)?;
            }
        })
    }

    /// Passes `records`, which belong to the first of `ids`, to `f`, and stores those that changed.
    fn process_some(
        &self,
        ids: &[u64],
        records: &Records,
        f: &impl Fn(u64, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (mut changed, mut after) = (Vec::new(), Vec::new());
        let mut record = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let Some(before) = records.get(index) else {
                continue;
            };
            record.clear();
            record.extend_from_slice(before);
            f(*id, &mut record)?;
            if record != before {
                changed.push(*id);
                after.push(std::mem::take(&mut record));
            }
        }
        self.store_batch(&changed, &after)
    }

    /// Number of records per batch of a stream: on average, as many fit in the share of a batch.
    pub fn batch_len(&self) -> usize {
        let data = self.space().pages() * self.pages.page_bytes() as u64;
        let average = (data / self.len().max(1)).max(16) as usize;
        (self.share_bytes() / average).clamp(1, 1 << 16)
    }

    /// The share of a batch: its maximum number of bytes in a stream, unless a single record is
    /// longer.
    fn share_bytes(&self) -> usize {
        self.options.batch_bytes() / (2 * pipeline::in_flight(&self.options.resources))
    }
}
