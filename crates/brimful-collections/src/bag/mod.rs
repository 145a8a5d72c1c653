//! Records of any length as bytes, by id: the untyped half of [`crate::DiskBag`].
//!
//! An index of 8 bytes a record says where each is, so that a record costs at most two reads. A
//! change happens in place where it fits; else the record moves, the index follows, and the old
//! place is free for others. Invariant: the new record is whole before the index names it, and the
//! old one goes after; a reader that comes between looks again.
//!
//! Changes of one record are ordered by a lock that some ids share; pages have their own locks
//! below. Order of locks: the right to write, an id's, the space's, a page's.

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
use brimful_store::{Error as StoreError, Folder};

pub use batch::Records;
use layout::{Classes, RecordPosition, SlotPage};
use space::Space;

use crate::error::{Error, Result};
use crate::fields::{put, u64_at};
use crate::folder::{CollectionFolder, open_pages};
use crate::hash_pages::HashPages;
use crate::options::Options;

/// The number of a bag's format in its root.
const KIND: u32 = 2;
/// The address spaces of a bag's file.
const INDEX: u8 = 0;
const DATA: u8 = 1;
const INFOS: u8 = 2;
const KEYS: u8 = 3;

const ENTRY_BYTES: usize = 8;
/// Pages that a batch brings into memory together.
const WINDOW_PAGES: usize = 64;
/// Locks that ids share.
const ID_LOCKS: usize = 64;
/// Longest record in bytes.
pub const MAX_RECORD_BYTES: u64 = 1 << 32;

/// What kind of change a record gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The bytes are the record.
    Replace,
    /// The bytes go to its end.
    Add,
}

/// A disk-resident sequence of records of any length.
#[derive(Debug)]
pub struct RecordBag {
    pages: PageFile,
    classes: Classes,
    space: Mutex<Space>,
    ids: Vec<Mutex<()>>,
    /// Ids given out.
    len: AtomicU64,
    /// Ids whose record was removed.
    removed: AtomicU64,
    growing: Mutex<()>,
    schema: Vec<u8>,
    options: Options,
    /// Bytes of a record that is held whole, at most.
    longest_bytes: u64,
    /// For whoever finds records by a key of their own; empty otherwise.
    keys: HashPages,
    _lock: Option<FolderLock>,
}

impl RecordBag {
    /// Opens the bag at `path`, or makes it. `schema` says what the records are and must be the
    /// same whenever the bag is opened.
    ///
    /// # Errors
    /// [`Error::RecordType`] if it was made for other records; [`Error::Store`] if it is in use by
    /// another process, damaged, or the budget is too small.
    pub fn open(path: &Path, schema: &[u8], options: Options) -> Result<Self> {
        let locked = CollectionFolder::at(path)?;
        let mut opened = Self::open_in(&locked.folder, schema, options)?;
        opened._lock = locked.lock;
        Ok(opened)
    }

    /// [`RecordBag::open`] in any folder; the caller sees to it that nobody else has it open.
    pub fn open_in(folder: &dyn Folder, schema: &[u8], options: Options) -> Result<Self> {
        let (pages, meta) = open_pages(folder, KIND, &options, (&describe([0; 5], schema), 40))?;
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
        // Every sync writes the whole index and all information of pages.
        let index = len.div_ceil((pages.page_bytes() / ENTRY_BYTES) as u64);
        if parts > pages.pages(INFOS) || index > pages.pages(INDEX) || removed > len {
            let what =
                format!("{len} ids, {removed} of them removed, in {data_pages} pages cannot be");
            return Err(StoreError::corrupt_pages(pages.path(), 0, what).into());
        }
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
            growing: Mutex::new(()),
            schema: schema.to_vec(),
            longest_bytes: options.memory_bytes / 4,
            options,
            keys,
            _lock: None,
        })
    }

    /// The same bag for an owner that has set memory aside for its longest records: none is refused
    /// for its length.
    pub(crate) fn with_any_record(mut self) -> Self {
        self.longest_bytes = u64::MAX;
        self
    }

    /// Where the bag is.
    pub fn path(&self) -> &Path {
        self.pages.path().parent().unwrap_or(self.pages.path())
    }

    /// Ids given out, removed records included: the next record gets this id.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// True if no id was given out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that are there.
    pub fn count(&self) -> u64 {
        self.len() - self.removed.load(Ordering::Relaxed)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.pages.file_bytes()?)
    }

    /// What the records are, as said when the bag was made.
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

    fn set_place(
        &self,
        writing: &Writing<'_>,
        id: u64,
        position: Option<RecordPosition>,
    ) -> Result<()> {
        let (page, at) = self.entry_of(id);
        let entry = RecordPosition::encode(position).to_le_bytes();
        Ok(self.pages.update(writing, page, |page| put(page.bytes_mut(), at, &entry))?)
    }

    fn id_lock(&self, id: u64) -> MutexGuard<'_, ()> {
        // Neighbours share no lock: threads often work on consecutive ids.
        self.ids[id as usize % ID_LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `f` see record `id`: two reads at most, if it is no longer than a page.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Removed`].
    pub fn fetch<R>(&self, id: u64, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.check(id)?;
        let mut f = Some(f);
        // A record that others move all the time is met sooner or later; under its lock at once.
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
            None => Err(self.damaged(id, position, "it was seen twice")),
        }
    }

    /// Record `id`; the memory is the caller's, whatever the budget is.
    pub fn get(&self, id: u64) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        // Exactly: growth by doubling would take twice the memory.
        let parts: RefCell<&mut Vec<u8>> = RefCell::new(&mut record);
        self.visit(
            id,
            |len| parts.borrow_mut().reserve_exact(len as usize),
            |piece| parts.borrow_mut().extend_from_slice(piece),
        )?;
        Ok(record)
    }

    /// [`RecordBag::get`] within the budget.
    ///
    /// # Errors
    /// [`Error::Store`] with the budget that works, if the record is too long for this one.
    pub(crate) fn get_within(&self, id: u64) -> Result<Vec<u8>> {
        self.check(id)?;
        let _changing = self.id_lock(id);
        let position = self.position(id)?.ok_or_else(|| self.removed(id))?;
        self.require(id, position)?;
        self.read_at(id, position)
    }

    /// Lets `begin` see how long record `id` is, and `f` its bytes, piece by piece: a record may be
    /// longer than memory. Neither may use the bag.
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

    /// Reads record `id` into `out`; returns how long it is. Where that is not the length of `out`,
    /// what is in `out` is of no use.
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

    /// Bytes of record `id` if it takes pages of its own; `None` if it shares one, or is not there.
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

    /// Refuses a record that is too long to be held whole.
    fn require(&self, id: u64, position: RecordPosition) -> Result<()> {
        if !position.is_span() {
            return Ok(());
        }
        let (len, memory) = (self.span_head(id, position)?.len, self.options.memory_bytes);
        if len <= self.longest_bytes {
            return Ok(());
        }
        let budget = self.options.resources.budget.total();
        Err(StoreError::Budget {
            budget,
            needed: budget.saturating_sub(memory).saturating_add(len.saturating_mul(4)),
            purpose: format!(
                "to hold record {id} of {}, which has {len} bytes",
                self.path().display()
            ),
        }
        .into())
    }

    /// True if there is a record `id`.
    pub fn contains(&self, id: u64) -> Result<bool> {
        Ok(id < self.len() && self.position(id)?.is_some())
    }

    /// Bytes of record `id`.
    pub fn record_len(&self, id: u64) -> Result<u64> {
        match self.long_len(id)? {
            Some(len) => Ok(len),
            None => self.fetch(id, |record| record.len() as u64),
        }
    }

    /// Replaces record `id`, in place where it fits. A record that was removed is there again.
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

    /// Adds `bytes` to the end of record `id`: amortised O(1), as a record that grows gets room to
    /// spare.
    pub fn append_to(&self, id: u64, bytes: &[u8]) -> Result<()> {
        self.check(id)?;
        {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            self.change(&writing, id, bytes, Change::Add)?;
        }
        self.tidy()
    }

    /// Removes record `id`; its id is not given out again.
    pub fn remove(&self, id: u64) -> Result<()> {
        self.check(id)?;
        {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            let Some(position) = self.position(id)? else {
                return Err(self.removed(id));
            };
            self.set_place(&writing, id, None)?;
            self.release(&writing, id, position)?;
            self.removed.fetch_add(1, Ordering::Relaxed);
        }
        self.tidy()
    }

    /// Appends one record; returns its id.
    pub fn append(&self, record: &[u8]) -> Result<u64> {
        self.extend(&[record])
    }

    /// Appends a record that a key names; both become durable together.
    pub(crate) fn append_linked(&self, mixed: u64, record: &[u8]) -> Result<()> {
        self.check_bytes(record.len() as u64)?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = self.pages.write();
        let id = self.len();
        let position = self.put(&writing, id, record, record.len())?;
        self.set_place(&writing, id, Some(position))?;
        self.len.store(id + 1, Ordering::Release);
        self.keys.set(&self.pages, &writing, mixed, Some(id))?;
        Ok(())
    }

    /// Removes a record and the key that names it; both become durable together.
    pub(crate) fn unlink(&self, mixed: u64, id: u64) -> Result<()> {
        let writing = self.pages.write();
        self.keys.set(&self.pages, &writing, mixed, None)?;
        let _changing = self.id_lock(id);
        let Some(position) = self.position(id)? else {
            return Err(self.removed(id));
        };
        self.set_place(&writing, id, None)?;
        self.removed.fetch_add(1, Ordering::Relaxed);
        self.release(&writing, id, position)
    }

    /// What its owner was given.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Makes everything stored so far survive a crash.
    pub fn sync(&self) -> Result<()> {
        Ok(self.pages.sync_with(|writing| self.describe(writing))?)
    }

    /// Writes what only memory knows; returns the description for the root.
    fn describe(&self, writing: &Writing<'_>) -> brimful_store::Result<Vec<u8>> {
        self.keys.settle(&self.pages, writing, true)?;
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

/// A bag's description in its root: ids given out, records removed, data pages, bits and entries of
/// the table of keys.
fn describe(fields: [u64; 5], schema: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    out.extend_from_slice(schema);
    out
}
