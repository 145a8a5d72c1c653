//! Records of any length as bytes, by id: the untyped half of [`crate::DiskBag`].
//!
//! An index of 8 bytes a record holds its position, so a record of up to a page costs at most two
//! reads. A changed record stays in place if it fits; otherwise it moves, the index follows, and
//! its old position becomes free. Invariant: the new record is complete before the index names it,
//! and the old one is removed afterwards; a reader that finds the old position empty looks the
//! position up again.
//!
//! Ids share locks, which order the changes of one record; pages have their own locks. Lock order:
//! the lock of growth, the right to write, the lock of the id, the lock of the space, the lock of
//! the page.

mod batch;
mod compact;
mod layout;
mod placement;
mod space;
mod verify;

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brimful_store::durable::{PageFile, PageId, Writing};
use brimful_store::external::FolderLock;
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Folder};

pub use batch::Records;
use layout::{Classes, RecordPosition, SlotPage};
use space::Space;

use crate::error::{Error, Result};
use crate::fields::{put, u64_at};
use crate::folder::{Kind, folder_of, lock_folder, open_pages};
use crate::hash_pages::HashPages;
use crate::options::Options;

/// The address spaces of the file.
const INDEX: u8 = 0;
const DATA: u8 = 1;
const INFOS: u8 = 2;
const KEYS: u8 = 3;

const ENTRY_BYTES: usize = 8;
/// Number of locks that ids share.
const ID_LOCKS: usize = 64;
/// Longest record in bytes.
pub const MAX_RECORD_BYTES: u64 = 1 << 32;

/// The kind of a change of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The bytes become the record.
    Replace,
    /// The bytes are appended to the record.
    Add,
}

/// A disk-resident sequence of records of any length.
#[derive(Debug)]
pub struct RecordBag {
    pages: PageFile,
    classes: Classes,
    space: Mutex<Space>,
    ids: Vec<Mutex<()>>,
    /// Number of ids assigned.
    len: AtomicU64,
    /// Number of ids whose record was removed.
    removed: AtomicU64,
    growing: Mutex<()>,
    /// Records that a failed change left at positions that the index does not name. The next sync
    /// frees them.
    orphans: Mutex<Vec<(u64, RecordPosition)>>,
    schema: Vec<u8>,
    options: Options,
    /// The maximum number of bytes of a record that is read whole.
    longest_bytes: u64,
    /// Keys of the records of a [`crate::DiskMap`]; empty in other bags.
    keys: HashPages,
    /// `None` for a folder that is not of the file system.
    _lock: Option<FolderLock>,
}

impl RecordBag {
    /// Opens the bag at `path`, or makes it. `schema` describes the records and must be the same on
    /// every opening.
    ///
    /// # Errors
    /// [`Error::RecordType`] if the bag was made for other records; [`Error::Store`] if another
    /// process uses the bag, if it is damaged, or if the budget is too small.
    pub fn open(path: &Path, schema: &[u8], options: Options) -> Result<Self> {
        let (folder, lock) = lock_folder(path)?;
        let mut opened = Self::open_in(&folder, schema, options)?;
        opened._lock = Some(lock);
        Ok(opened)
    }

    /// Like [`RecordBag::open`], in any folder; the caller ensures that no other process has it
    /// open.
    pub fn open_in(folder: &dyn Folder, schema: &[u8], options: Options) -> Result<Self> {
        let (pages, meta) =
            open_pages(folder, Kind::Bag, &options, (&describe([0; 5], schema), 40))?;
        let found = meta.get(40..).unwrap_or_default();
        if found != schema {
            let name = |schema: &[u8]| format!("records of {}", String::from_utf8_lossy(schema));
            let (expected, found) = (name(schema), name(found));
            return Err(Error::RecordType { path: folder.path().into(), expected, found });
        }
        let classes = Classes::new(pages.page_bytes());
        let mut space = Space::new(pages.page_bytes(), &classes);
        let (len, removed, data_pages) = (u64_at(&meta, 0), u64_at(&meta, 8), u64_at(&meta, 16));
        let parts = data_pages.div_ceil((pages.page_bytes() / space::INFO_BYTES) as u64);
        // Every sync writes the whole index and all page information.
        let index = len.div_ceil((pages.page_bytes() / ENTRY_BYTES) as u64);
        if parts > pages.pages(INFOS) || index > pages.pages(INDEX) || removed > len {
            let problem = format!(
                "the counts are impossible: {}, {removed} of them removed, in {}",
                counted(len, "id"),
                counted(data_pages, "page")
            );
            return Err(StoreError::corrupt_pages(pages.path(), 0, problem).into());
        }
        space.reserve(data_pages as usize, |bytes| pages.owner_takes(bytes))?;
        for part in 0..parts {
            pages.read(PageId::new(INFOS, part), |bytes| {
                space.decode(bytes, data_pages, &classes)
            })?;
        }
        let keys = HashPages::restore(&pages, KEYS, 2, (u64_at(&meta, 24), u64_at(&meta, 32)))?;
        Ok(Self {
            pages,
            classes,
            space: Mutex::new(space),
            ids: (0..ID_LOCKS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(len),
            removed: AtomicU64::new(removed),
            growing: Mutex::default(),
            orphans: Mutex::default(),
            schema: schema.to_vec(),
            longest_bytes: options.memory_bytes / 4,
            options,
            keys,
            _lock: None,
        })
    }

    /// Lifts the limit on the length of records that are read whole, for an owner that has reserved
    /// memory for the longest record.
    pub(crate) fn with_any_record(mut self) -> Self {
        self.longest_bytes = u64::MAX;
        self
    }

    /// The path of the bag.
    pub fn path(&self) -> &Path {
        folder_of(&self.pages)
    }

    /// Number of ids assigned, including those of removed records: the id of the next record.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// True if no id was assigned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of records that exist.
    pub fn count(&self) -> u64 {
        self.len() - self.removed.load(Ordering::Relaxed)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.pages.file_bytes()?)
    }

    /// The description of the records, given when the bag was made.
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    pub(crate) fn pages(&self) -> &PageFile {
        &self.pages
    }

    pub(crate) fn keys(&self) -> &HashPages {
        &self.keys
    }

    fn check(&self, id: u64) -> Result<()> {
        let len = self.len();
        if id < len { Ok(()) } else { Err(Error::OutOfRange { path: self.path().into(), id, len }) }
    }

    fn check_bytes(&self, found: u64) -> Result<()> {
        if found <= MAX_RECORD_BYTES {
            return Ok(());
        }
        Err(Error::RecordBytes { path: self.path().into(), expected: MAX_RECORD_BYTES, found })
    }

    fn removed(&self, id: u64) -> Error {
        Error::Removed { path: self.path().into(), id }
    }

    fn entry_of(&self, id: u64) -> (PageId, usize) {
        let per_page = (self.pages.page_bytes() / ENTRY_BYTES) as u64;
        (PageId::new(INDEX, id / per_page), (id % per_page) as usize * ENTRY_BYTES)
    }

    fn position(&self, id: u64) -> Result<Option<RecordPosition>> {
        let (page, at) = self.entry_of(id);
        Ok(self.pages.read(page, |bytes| RecordPosition::decode(u64_at(bytes, at)))?)
    }

    fn set_position(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: Option<RecordPosition>,
    ) -> Result<()> {
        let (page, at) = self.entry_of(id);
        let entry = RecordPosition::encode(position).to_le_bytes();
        Ok(self.pages.update(writing, page, |page| put(page.bytes_mut(), at, &entry))?)
    }

    /// Makes the index name `position`, and counts it as an orphan if that fails.
    fn set_new_position(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: RecordPosition,
    ) -> Result<()> {
        let set = self.set_position(writing, id, Some(position));
        if set.is_err() {
            self.orphans().push((id, position));
        }
        set
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<(u64, RecordPosition)>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the positions of all orphans.
    fn release_orphans(&self, writing: &Writing<'_>) -> brimful_store::Result<()> {
        let orphans = std::mem::take(&mut *self.orphans());
        // A failure makes an orphan of its record again, so all are tried.
        let released =
            orphans.into_iter().map(|(id, position)| self.release(writing, id, position));
        released.fold(Ok(()), Result::and).map_err(|error| match error {
            Error::Store(error) => error,
            other => StoreError::corrupt_pages(self.pages.path(), 0, other.to_string()),
        })
    }

    fn id_lock(&self, id: u64) -> MutexGuard<'_, ()> {
        // Neighbors share no lock, because threads often work on consecutive ids.
        self.ids[id as usize % ID_LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes record `id` to `f`: at most two reads for a record of up to a page.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Removed`].
    pub fn fetch<R>(&self, id: u64, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.check(id)?;
        let mut f = Some(f);
        // The first attempts take no lock; a record that keeps moving is then read under its lock.
        for _ in 0..3 {
            let Some(position) = self.position(id)? else {
                return Err(self.removed(id));
            };
            if position.is_span() {
                break;
            }
            let seen = self.pages.read(PageId::new(DATA, position.page()), |bytes| {
                let record = SlotPage::new(bytes, &self.classes).record(position.slot(), id)?;
                f.take().map(|f| f(record))
            })?;
            if let Some(seen) = seen {
                return Ok(seen);
            }
        }
        let _changing = self.id_lock(id);
        let Some(position) = self.position(id)? else {
            return Err(self.removed(id));
        };
        self.require(id, position)?;
        let record = self.read_at(id, position)?;
        match f.take() {
            Some(f) => Ok(f(&record)),
            None => Err(StoreError::Internal(format!("record {id} was read twice")).into()),
        }
    }

    /// Returns record `id`. The budget does not count the memory of the result.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`.
    pub fn get(&self, id: u64) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        // Reserves the exact length, because growth by doubling would take twice the memory.
        let parts: RefCell<&mut Vec<u8>> = RefCell::new(&mut record);
        self.visit(
            id,
            |len| parts.borrow_mut().reserve_exact(len as usize),
            |piece| parts.borrow_mut().extend_from_slice(piece),
        )?;
        Ok(record)
    }

    /// Like [`RecordBag::get`], but refuses a record that is too long for the budget.
    ///
    /// # Errors
    /// [`Error::Store`], which names a sufficient budget, if the record is too long.
    pub(crate) fn get_within(&self, id: u64) -> Result<Vec<u8>> {
        self.check(id)?;
        let _changing = self.id_lock(id);
        let position = self.position(id)?.ok_or_else(|| self.removed(id))?;
        self.require(id, position)?;
        self.read_at(id, position)
    }

    /// Passes the length of record `id` to `begin`, and its bytes to `f`, piece by piece: a record
    /// may be longer than memory. The lock of the id is held, so neither function may use the bag.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Removed`].
    pub fn visit(&self, id: u64, begin: impl FnOnce(u64), f: impl FnMut(&[u8])) -> Result<()> {
        self.check(id)?;
        let _changing = self.id_lock(id);
        let position = self.position(id)?.ok_or_else(|| self.removed(id))?;
        if position.is_span() {
            let head = self.span_head(id, position)?;
            begin(head.len);
            return self.visit_span(position, &head, f);
        }
        let (record, mut f) = (self.read_at(id, position)?, f);
        begin(record.len() as u64);
        f(&record);
        Ok(())
    }

    /// Reads record `id` into `out` and returns the length of the record. If it differs from the
    /// length of `out`, the content of `out` is undefined.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`.
    pub fn read_into(&self, id: u64, out: &mut [u8]) -> Result<u64> {
        let (mut len, mut at) = (0, 0);
        self.visit(
            id,
            |found| len = found,
            |piece| {
                let capacity = out.get_mut(at..).unwrap_or_default();
                let count = piece.len().min(capacity.len());
                crate::fields::put(capacity, 0, piece.get(..count).unwrap_or_default());
                at += piece.len();
            },
        )?;
        Ok(len)
    }

    /// The length in bytes of record `id` if it has pages of its own; `None` if it shares a page or
    /// does not exist.
    pub fn long_len(&self, id: u64) -> Result<Option<u64>> {
        if id >= self.len() || !self.position(id)?.is_some_and(RecordPosition::is_span) {
            return Ok(None);
        }
        let _changing = self.id_lock(id);
        match self.position(id)?.filter(|position| position.is_span()) {
            Some(position) => Ok(Some(self.span_head(id, position)?.len)),
            None => Ok(None),
        }
    }

    /// Refuses a record that is too long to be read whole.
    fn require(&self, id: u64, position: RecordPosition) -> Result<()> {
        if !position.is_span() {
            return Ok(());
        }
        self.require_bytes(self.span_head(id, position)?.len, || format!("record {id}"))
    }

    /// Refuses `record` if its `len` bytes are too many to be in memory at once.
    pub(crate) fn require_bytes(&self, len: u64, record: impl FnOnce() -> String) -> Result<()> {
        if len <= self.longest_bytes {
            return Ok(());
        }
        let (budget, memory) = (self.options.resources.budget.total(), self.options.memory_bytes);
        let needed = budget.saturating_sub(memory).saturating_add(len.saturating_mul(4));
        let purpose =
            format!("to hold {} of {}, which has {len} bytes", record(), self.path().display());
        Err(StoreError::too_small(budget, needed, purpose).into())
    }

    /// True if record `id` exists.
    pub fn contains(&self, id: u64) -> Result<bool> {
        Ok(id < self.len() && self.position(id)?.is_some())
    }

    /// The length of record `id` in bytes.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`.
    pub fn record_len(&self, id: u64) -> Result<u64> {
        match self.long_len(id)? {
            Some(len) => Ok(len),
            None => self.fetch(id, |record| record.len() as u64),
        }
    }

    /// Replaces record `id`, in place if the new record fits. A removed record exists again.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` for more than `MAX_RECORD_BYTES`.
    pub fn store(&self, id: u64, record: &[u8]) -> Result<()> {
        self.check(id)?;
        self.check_bytes(record.len() as u64)?;
        {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            self.change(&writing, id, record, Change::Replace)?;
        }
        self.tidy()
    }

    /// Appends `bytes` to record `id`: amortized O(1), because a growing record gets spare space.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`; `Error::RecordBytes` if the record would exceed
    /// `MAX_RECORD_BYTES`.
    pub fn append_to(&self, id: u64, bytes: &[u8]) -> Result<()> {
        self.check(id)?;
        {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            self.change(&writing, id, bytes, Change::Add)?;
        }
        self.tidy()
    }

    /// Removes record `id`; its id is not assigned again.
    ///
    /// # Errors
    /// `Error::OutOfRange`, `Error::Removed`.
    pub fn remove(&self, id: u64) -> Result<()> {
        self.check(id)?;
        {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            let Some(position) = self.position(id)? else {
                return Err(self.removed(id));
            };
            self.take_out(&writing, id, position)?;
        }
        self.tidy()
    }

    /// Appends one record; returns its id.
    ///
    /// # Errors
    /// `Error::RecordBytes` for more than `MAX_RECORD_BYTES`.
    pub fn append(&self, record: &[u8]) -> Result<u64> {
        self.extend(&[record])
    }

    /// Appends records in their order, and sets the keys that refer to them in the page order of
    /// the table; all become durable together.
    pub(crate) fn append_linked(
        &self,
        records: impl IntoIterator<Item = (u64, Vec<u8>)>,
    ) -> Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = self.pages.write();
        let mut keys = Vec::new();
        for (mixed, record) in records {
            self.check_bytes(record.len() as u64)?;
            let id = self.len();
            let position = self.put(&writing, id, &record, record.len())?;
            self.set_new_position(&writing, id, position)?;
            self.len.store(id + 1, Ordering::Release);
            keys.push((mixed, id));
        }
        keys.sort_unstable();
        for (at, (mixed, id)) in keys.iter().enumerate() {
            if let Err(error) = self.keys.set(&self.pages, &writing, *mixed, Some(*id)) {
                // Without their keys these records are unreachable.
                for (_, id) in keys.iter().skip(at) {
                    let position = self.position(*id)?.ok_or_else(|| self.removed(*id))?;
                    self.take_out(&writing, *id, position)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes a record and the key that refers to it; both become durable together.
    pub(crate) fn unlink(&self, mixed: u64, id: u64) -> Result<()> {
        let writing = self.pages.write();
        let _changing = self.id_lock(id);
        let position = self.position(id)?.ok_or_else(|| self.removed(id))?;
        self.keys.set(&self.pages, &writing, mixed, None)?;
        self.take_out(&writing, id, position)
    }

    /// Removes the record at `position`; the caller holds the lock of the id.
    fn take_out(&self, writing: &Writing<'_>, id: u64, position: RecordPosition) -> Result<()> {
        self.set_position(writing, id, None)?;
        self.removed.fetch_add(1, Ordering::Relaxed);
        self.release(writing, id, position)
    }

    /// The options given on opening.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Makes all stored data durable.
    pub fn sync(&self) -> Result<()> {
        Ok(self.pages.sync_with(|writing| self.describe(writing))?)
    }

    /// Writes state that is only in memory to pages; returns the description for the root.
    fn describe(&self, writing: &Writing<'_>) -> brimful_store::Result<Vec<u8>> {
        self.release_orphans(writing)?;
        self.keys.finish_doubling(&self.pages, writing, true)?;
        self.write_infos(writing)?;
        let (len, removed) = (self.len(), self.removed.load(Ordering::Relaxed));
        let (bits, keys) = self.keys.describe();
        Ok(describe([len, removed, self.space().pages(), bits, keys], &self.schema))
    }

    fn write_infos(&self, writing: &Writing<'_>) -> brimful_store::Result<()> {
        let parts = self.space().take_changed();
        let mut parts = parts.into_iter();
        while let Some((part, bytes)) = parts.next() {
            let written = self
                .pages
                .update(writing, PageId::new(INFOS, part), |page| put(page.bytes_mut(), 0, &bytes));
            if written.is_err() {
                let mut space = self.space();
                std::iter::once(part)
                    .chain(parts.map(|(part, _)| part))
                    .for_each(|part| space.mark_changed(part));
                return written;
            }
        }
        Ok(())
    }
}

/// The description in the root: ids assigned, records removed, data pages, bits and entries of the
/// table of keys.
fn describe(fields: [u64; 5], schema: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    out.extend_from_slice(schema);
    out
}
