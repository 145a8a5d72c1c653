//! Records of one size as bytes, at an address computed from the id: the untyped half of
//! [`crate::DiskBox`], and the base of bindings to other languages.
//!
//! Record `id` is in page `id / per_page`; no record crosses pages. Invariant: bytes after the last
//! record of a page, and records beyond the length, are zero or are never read.

mod stream;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::durable::{PageFile, PageId, Writing};
use brimful_store::external::FolderLock;
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Folder};
use rayon::prelude::*;

use crate::WINDOW_PAGES;
use crate::error::{Error, Result};
use crate::fields::u64_at;
use crate::folder::{Kind, folder_of, lock_folder, open_pages, window};
use crate::options::Options;
use crate::order::MAX_IDS;
use crate::pipeline;

/// The maximum number of bytes of a record: a page must hold a record, and the cache several pages.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// A disk-resident array of records of one size.
#[derive(Debug)]
pub struct RecordBox {
    pages: PageFile,
    record_bytes: usize,
    per_page: usize,
    schema: Vec<u8>,
    len: AtomicU64,
    /// Held during changes of the length.
    growing: Mutex<()>,
    options: Options,
    /// `None` for a folder that is not of the file system.
    _lock: Option<FolderLock>,
}

impl RecordBox {
    /// Opens the box at `path`, or makes it, for records of `record_bytes` bytes; `schema`
    /// describes their type and must be the same on every opening.
    ///
    /// # Errors
    /// [`Error::RecordType`] if the box was made for other records; [`Error::Usage`] for records of
    /// 0 bytes or more than [`MAX_RECORD_BYTES`]; [`Error::Store`] if another process uses the box,
    /// if it is damaged, or if the budget is too small.
    pub fn open(path: &Path, record_bytes: usize, schema: &[u8], options: Options) -> Result<Self> {
        let (folder, lock) = lock_folder(path)?;
        let mut opened = Self::open_in(&folder, record_bytes, schema, options)?;
        opened._lock = Some(lock);
        Ok(opened)
    }

    /// Like [`RecordBox::open`], in any folder; the caller ensures that no other process has it
    /// open.
    pub fn open_in(
        folder: &dyn Folder,
        record_bytes: usize,
        schema: &[u8],
        mut options: Options,
    ) -> Result<Self> {
        if !(1..=MAX_RECORD_BYTES).contains(&record_bytes) {
            return Err(Error::Usage(format!(
                "a record must have 1 to {MAX_RECORD_BYTES} bytes, not {record_bytes}; put larger \
                 ones into a Bag"
            )));
        }
        options.require_page_size()?;
        options.page_bytes = options.page_bytes.max(record_bytes.next_power_of_two());
        let (pages, meta) =
            open_pages(folder, Kind::Box, &options, (&describe(record_bytes, 0, schema), 16))?;
        let (found_bytes, len) = (u64_at(&meta, 0), u64_at(&meta, 8));
        let found = meta.get(16..).unwrap_or_default();
        if found_bytes != record_bytes as u64 || found != schema {
            let name = |bytes: u64, schema: &[u8]| {
                let records = format!("records of {}", counted(bytes, "byte"));
                match schema.is_empty() {
                    true => records,
                    false => format!("{records}, {}", String::from_utf8_lossy(schema)),
                }
            };
            return Err(Error::RecordType {
                path: folder.path().into(),
                expected: name(record_bytes as u64, schema),
                found: name(found_bytes, found),
            });
        }
        let per_page = pages.page_bytes() / record_bytes;
        if per_page == 0 {
            let problem =
                format!("a page of {} bytes holds no record of {record_bytes}", pages.page_bytes());
            return Err(StoreError::corrupt_pages(pages.path(), 0, problem).into());
        }
        let schema = schema.to_vec();
        Ok(Self {
            pages,
            record_bytes,
            per_page,
            schema,
            len: AtomicU64::new(len),
            growing: Mutex::new(()),
            options,
            _lock: None,
        })
    }

    /// The path of the box.
    pub fn path(&self) -> &Path {
        folder_of(&self.pages)
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// The description of the records, given when the box was made.
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.pages.file_bytes()?)
    }

    /// Number of records per batch of a stream; they fill whole pages.
    pub fn batch_len(&self) -> usize {
        // Half of the bytes, because each batch in flight has a copy of the original bytes, to
        // detect changes.
        let bytes = self.options.batch_bytes() / (2 * pipeline::in_flight(&self.options.resources));
        (bytes / self.pages.page_bytes()).clamp(1, 256) * self.per_page
    }

    fn place(&self, id: u64) -> (PageId, usize) {
        let (page, index) = (id / self.per_page as u64, id as usize % self.per_page);
        (PageId::new(0, page), index * self.record_bytes)
    }

    fn check(&self, id: u64) -> Result<()> {
        let len = self.len();
        if id < len { Ok(()) } else { Err(Error::OutOfRange { path: self.path().into(), id, len }) }
    }

    /// Refuses a range that has ids of no records.
    pub(crate) fn check_range(&self, start: u64, count: u64) -> Result<()> {
        match start.checked_add(count) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(Error::OutOfRange {
                path: self.path().into(),
                id: start.max(self.len()),
                len: self.len(),
            }),
        }
    }

    fn check_bytes(&self, found: usize, records: usize) -> Result<()> {
        if self.record_bytes.checked_mul(records) == Some(found) {
            return Ok(());
        }
        let expected = (self.record_bytes as u64).saturating_mul(records as u64);
        Err(Error::RecordBytes { path: self.path().into(), expected, found: found as u64 })
    }

    /// Passes record `id` to `f`: at most one read.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    #[inline]
    pub fn fetch<R>(&self, id: u64, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.check(id)?;
        let (page, at) = self.place(id);
        Ok(self
            .pages
            .read(page, |bytes| f(bytes.get(at..at + self.record_bytes).unwrap_or_default()))?)
    }

    /// Fills `out` with the records from `start` on, in large reads.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if `out` does not hold whole records.
    pub fn fetch_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() / self.record_bytes;
        self.check_bytes(out.len(), count)?;
        self.check_range(start, count as u64)?;
        // The first piece ends with a page, so that the others begin with a page.
        let head = (self.per_page - start as usize % self.per_page).min(count);
        let (first, rest) = out.split_at_mut(head * self.record_bytes);
        self.fetch_pages(start, first)?;
        let piece = WINDOW_PAGES * 4 * self.per_page;
        let pieces = || (start + head as u64..start + count as u64).step_by(piece);
        let bytes = piece * self.record_bytes;
        if rest.len() <= bytes {
            return self.fetch_pages(start + head as u64, rest);
        }
        self.options.resources.pool.install(|| {
            let starts: Vec<u64> = pieces().take(rest.len().div_ceil(bytes)).collect();
            rest.par_chunks_mut(bytes)
                .zip(starts)
                .try_for_each(|(out, start)| self.fetch_pages(start, out))
        })
    }

    /// Fills `out` on one thread.
    fn fetch_pages(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let count = out.len() / self.record_bytes;
        if count == 0 {
            return Ok(());
        }
        let copy = |page: PageId, bytes: &[u8], out: &mut [u8]| {
            let first = page.number() * self.per_page as u64;
            let from = start.max(first);
            let to = (start + count as u64).min(first.saturating_add(self.per_page as u64));
            let source = (from - first) as usize * self.record_bytes
                ..(to - first) as usize * self.record_bytes;
            let target = (from - start) as usize * self.record_bytes
                ..(to - start) as usize * self.record_bytes;
            if let (Some(target), Some(source)) = (out.get_mut(target), bytes.get(source)) {
                target.copy_from_slice(source);
            }
        };
        let first = start / self.per_page as u64;
        let last = (start + count as u64 - 1) / self.per_page as u64;
        if last - first < 2 {
            for number in first..=last {
                let page = PageId::new(0, number);
                self.pages.read(page, |bytes| copy(page, bytes, out))?;
            }
            return Ok(());
        }
        let pages = (first..=last).map(|number| PageId::new(0, number));
        Ok(self.pages.scanner().visit(pages, |page, bytes| {
            copy(page, bytes, out);
            self.pages.check()
        })?)
    }

    /// Fills `out` with the records `ids`, in the order of `ids`. Reads pages in page order, and
    /// each page at most once per part of the batch.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if the length of `out` does not fit `ids`.
    pub fn fetch_batch(&self, ids: &[u64], out: &mut [u8]) -> Result<()> {
        self.check_bytes(out.len(), ids.len())?;
        if let Some(largest) = ids.iter().copied().max() {
            self.check(largest)?;
        }
        let workers = self.options.resources.workers();
        let share = ids.len().div_ceil(workers).clamp(4096, MAX_IDS);
        if ids.len() <= share {
            return self.fetch_ids(ids, out);
        }
        self.options.resources.pool.install(|| {
            let parts = ids.par_chunks(share).zip(out.par_chunks_mut(share * self.record_bytes));
            parts.try_for_each(|(ids, out)| self.fetch_ids(ids, out))
        })
    }

    fn fetch_ids(&self, ids: &[u64], out: &mut [u8]) -> Result<()> {
        if ids.len() < 16 {
            for (id, out) in ids.iter().zip(out.chunks_exact_mut(self.record_bytes)) {
                self.fetch(*id, |bytes| out.copy_from_slice(bytes))?;
            }
            return Ok(());
        }
        let sorted = self.by_page(ids);
        let mut groups = sorted.chunk_by(|a, b| a.0 == b.0);
        let pages: Vec<PageId> =
            groups.clone().filter_map(|g| g.first()).map(|g| PageId::new(0, g.0)).collect();
        let mut scanner = self.pages.scanner();
        // A scanner visits the pages of a window in any order, so each visit looks up its group.
        for window in pages.chunks(WINDOW_PAGES) {
            self.pages.check()?;
            let groups: Vec<_> = groups.by_ref().take(window.len()).collect();
            scanner.visit(window.iter().copied(), |page, bytes| {
                let group =
                    groups.binary_search_by_key(&page.number(), |g| g.first().map_or(0, |g| g.0));
                for (_, index) in
                    group.ok().and_then(|at| groups.get(at)).copied().unwrap_or_default()
                {
                    let index = *index as usize;
                    let at = self.place(ids.get(index).copied().unwrap_or(0)).1;
                    let to = index * self.record_bytes;
                    let target = out.get_mut(to..to + self.record_bytes);
                    if let (Some(target), Some(source)) =
                        (target, bytes.get(at..at + self.record_bytes))
                    {
                        target.copy_from_slice(source);
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Pairs (page, index into `ids`), ascending.
    fn by_page(&self, ids: &[u64]) -> Vec<(u64, u32)> {
        let pages = ids.iter().zip(0..).map(|(id, index)| (id / self.per_page as u64, index));
        let mut sorted: Vec<(u64, u32)> = pages.collect();
        sorted.sort_unstable();
        sorted
    }

    /// Replaces record `id`.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if the length of `record` is wrong.
    pub fn store(&self, id: u64, record: &[u8]) -> Result<()> {
        self.check(id)?;
        self.check_bytes(record.len(), 1)?;
        let (page, at) = self.place(id);
        let writing = self.pages.write();
        Ok(self.pages.update(&writing, page, |page| {
            if let Some(place) = page.bytes_mut().get_mut(at..at + record.len()) {
                place.copy_from_slice(record);
            }
        })?)
    }

    /// Replaces the records from `start` on. After a failure or cancellation, some of the records
    /// are replaced.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if `records` are not whole records.
    pub fn store_range(&self, start: u64, records: &[u8]) -> Result<()> {
        let count = records.len() / self.record_bytes;
        self.check_bytes(records.len(), count)?;
        self.check_range(start, count as u64)?;
        self.write_range(&self.pages.write(), start, records)
    }

    fn write_range(&self, writing: &Writing<'_>, start: u64, records: &[u8]) -> Result<()> {
        let mut rest = records;
        let mut id = start;
        while !rest.is_empty() {
            self.pages.check()?;
            let (page, at) = self.place(id);
            let count =
                (self.per_page - id as usize % self.per_page).min(rest.len() / self.record_bytes);
            let (now, later) = rest.split_at(count * self.record_bytes);
            let put = |bytes: &mut [u8]| {
                if let Some(place) = bytes.get_mut(at..at + now.len()) {
                    place.copy_from_slice(now);
                }
            };
            if count == self.per_page {
                self.pages.overwrite(writing, page, |bytes| {
                    put(bytes);
                    bytes.get_mut(now.len()..).unwrap_or_default().fill(0);
                })?;
            } else {
                self.pages.update(writing, page, |page| put(page.bytes_mut()))?;
            }
            (rest, id) = (later, id + count as u64);
        }
        Ok(())
    }

    /// Replaces the records `ids`; the last record of a repeated id stays. After a failure or
    /// cancellation, some of the records are replaced.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if the length of `records` does not fit `ids`.
    pub fn store_batch(&self, ids: &[u64], records: &[u8]) -> Result<()> {
        self.check_bytes(records.len(), ids.len())?;
        self.update_batch(ids, |index, place| {
            let at = index * self.record_bytes;
            if let Some(record) = records.get(at..at + self.record_bytes) {
                place.copy_from_slice(record);
            }
        })
    }

    /// Passes the records `ids` to `f` to change them, each with its index into `ids`. Records of
    /// one page are changed together, in the order of `ids`; the threads of the pool share the
    /// pages.
    ///
    /// # Errors
    /// `Error::OutOfRange`, before any record changes.
    pub fn update_batch(&self, ids: &[u64], f: impl Fn(usize, &mut [u8]) + Sync) -> Result<()> {
        let Some(largest) = ids.iter().copied().max() else {
            return Ok(());
        };
        self.check(largest)?;
        if ids.len() < 16 {
            let writing = self.pages.write();
            for (index, id) in ids.iter().enumerate() {
                let (page, at) = self.place(*id);
                self.pages.update(&writing, page, |page| {
                    f(
                        index,
                        page.bytes_mut().get_mut(at..at + self.record_bytes).unwrap_or_default(),
                    );
                })?;
            }
            return Ok(());
        }
        ids.chunks(MAX_IDS).zip((0..).step_by(MAX_IDS)).try_for_each(|(ids, start)| {
            self.update_many(ids, |index, record| f(start + index, record))
        })
    }

    fn update_many(&self, ids: &[u64], f: impl Fn(usize, &mut [u8]) + Sync) -> Result<()> {
        let window = window(&self.pages, &self.options.resources);
        self.options.resources.pool.install(|| {
            let pages = ids
                .par_iter()
                .enumerate()
                .map(|(index, id)| (id / self.per_page as u64, index as u32));
            let mut sorted: Vec<(u64, u32)> = pages.collect();
            sorted.par_sort_unstable();
            let groups: Vec<&[(u64, u32)]> = sorted.chunk_by(|a, b| a.0 == b.0).collect();
            groups.par_chunks(window).try_for_each(|groups| {
                self.pages.check()?;
                // A holder of this right must not wait for the pool, whose threads may be waiting
                // for it behind a sync.
                let writing = self.pages.write();
                let page_of =
                    |group: &&[(u64, u32)]| PageId::new(0, group.first().map_or(0, |g| g.0));
                if groups.len() > 1 {
                    self.pages.scanner().load(groups.iter().map(page_of))?;
                }
                for group in groups {
                    self.pages.update(&writing, page_of(group), |page| {
                        let bytes = page.bytes_mut();
                        for (_, index) in *group {
                            let id = ids.get(*index as usize).copied().unwrap_or(0);
                            let at = self.place(id).1;
                            f(
                                *index as usize,
                                bytes.get_mut(at..at + self.record_bytes).unwrap_or_default(),
                            );
                        }
                    })?;
                }
                Ok(())
            })
        })
    }

    /// Appends one record; returns its id.
    ///
    /// # Errors
    /// `Error::RecordBytes` if the length of `record` is wrong.
    pub fn append(&self, record: &[u8]) -> Result<u64> {
        self.check_bytes(record.len(), 1)?;
        self.extend(record)
    }

    /// Appends all records, or none after a failure or cancellation; returns the id of the first.
    ///
    /// # Errors
    /// `Error::RecordBytes` if `records` are not whole records.
    pub fn extend(&self, records: &[u8]) -> Result<u64> {
        let count = records.len() / self.record_bytes;
        self.check_bytes(records.len(), count)?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = self.pages.write();
        let start = self.len();
        self.write_range(&writing, start, records)?;
        self.len.store(start + count as u64, Ordering::Release);
        Ok(start)
    }

    /// Sets the length to `len` records: new records are zero, and records beyond the new length
    /// are removed.
    pub fn resize(&self, len: u64) -> Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = self.pages.write();
        let old = self.len();
        self.len.store(len.min(old), Ordering::Release);
        if len < old {
            // The rest of the page becomes zero, for later records at these ids. Pages that were
            // never written are zero.
            let (page, at) = self.place(len);
            let (keep, end) = (at > 0, old.div_ceil(self.per_page as u64).min(self.pages.pages(0)));
            if keep && page.number() < end {
                self.pages.update(&writing, page, |page| {
                    page.bytes_mut().get_mut(at..).unwrap_or_default().fill(0)
                })?;
            }
            for number in page.number() + u64::from(keep)..end {
                self.pages.discard(&writing, PageId::new(0, number))?;
            }
        }
        self.len.store(len, Ordering::Release);
        Ok(())
    }

    /// Reads everything on disk and verifies its checksums. Returns the number of bytes read.
    ///
    /// # Errors
    /// Corruption; the error names the offset.
    pub fn verify(&self) -> Result<u64> {
        Ok(self.pages.verify(&self.options.resources.job)?)
    }

    /// Makes all stored data durable.
    pub fn sync(&self) -> Result<()> {
        Ok(self.pages.sync_with(|_| Ok(describe(self.record_bytes, self.len(), &self.schema)))?)
    }

    /// Frees unused space of the file and makes everything durable.
    pub fn compact(&self) -> Result<()> {
        Ok(self.pages.compact(|_| Ok(describe(self.record_bytes, self.len(), &self.schema)))?)
    }
}

/// The description in the root.
fn describe(record_bytes: usize, len: u64, schema: &[u8]) -> Vec<u8> {
    let mut out = (record_bytes as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(schema);
    out
}
