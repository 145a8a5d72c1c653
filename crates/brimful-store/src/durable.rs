//! Durable pages: the user's own collections, which appear to change in place.
//!
//! A page file is a set of numbered pages in a few address spaces (*streams*), a page cache of
//! bounded size, and [`PageFile::sync`]. A page that a durable root names is never overwritten: a
//! changed page goes to a fresh slot, and a sync writes the changed parts of the page table and
//! then one checksummed root. Invariant: after a crash the file has the content of the last
//! completed sync, or of the one under way, whatever was evicted since. A page's bytes are returned
//! only after its checksum is verified. `docs/format.md` draws the file, `docs/adr/0010` gives the
//! reasons.
//!
//! Locks are per stripe: a page has one writer at a time. This module does not interpret pages.

mod bulk;
mod commit;
mod frames;
mod root;
mod slots;
mod table;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::budget::Reservation;
use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::{StoreFile, list_names, remove_if_present};
use crate::job::Job;
use crate::traffic::{Content, Traffic};
use crate::wording::counted;

pub use bulk::Scanner;
use commit::Committed;
use frames::{Frame, Stripe};
pub use root::{MAX_META_BYTES, STREAMS, VERSION, valid_page_bytes};
use root::{ROOTS_BYTES, Root};
use slots::Slots;
pub use table::PageId;
use table::{Entry, Table};

/// Default bytes of a page: small enough for random records, and a sequential scan reads many pages
/// at once anyway.
pub const PAGE_BYTES: usize = 16 << 10;
/// The minimum number of pages in a working cache.
const MIN_FRAMES: usize = 32;
const MAX_STRIPES: usize = 64;
/// Writers leave one part in this many of the memory of the table to syncs.
const SYNC_SHARE: u64 = 16;

/// Smallest memory, in bytes, for a page file with pages of `page_bytes`.
pub const fn minimum_bytes(page_bytes: usize) -> u64 {
    (MIN_FRAMES * page_bytes) as u64 + (64 << 10)
}

/// Smallest memory, in bytes, for a page file with `page_count` pages of `page_bytes`, up to 2^60:
/// the page table and the map of slots stay in memory.
pub fn resident_bytes(page_count: u64, page_bytes: usize) -> u64 {
    // The map of slots has one bit a page, and grows by doubling.
    let slots = page_count / 4;
    let table = table::memory_bytes(page_count, page_bytes / table::ENTRY_BYTES);
    let for_syncs = table / SYNC_SHARE;
    [table, for_syncs, slots].into_iter().fold(minimum_bytes(page_bytes), u64::saturating_add)
}

/// The owner's description of a page file.
#[derive(Debug, Clone)]
pub struct Purpose<'a> {
    /// The name of the file in its folder.
    pub name: &'a str,
    /// A number that distinguishes the owners' formats.
    pub kind: u32,
    /// Bytes of a page: a power of two from 4 KiB to 1 GiB.
    pub page_bytes: usize,
}

/// Table and slots, which change together.
#[derive(Debug)]
struct Space {
    table: Table,
    slots: Slots,
}

/// The slot to which a dirty page is about to be written.
#[derive(Debug, Clone, Copy)]
struct Placement {
    before: Entry,
    slot: u64,
    is_new: bool,
}

impl Space {
    /// Chooses the slot for a dirty page. A slot that the durable root may name is never reused.
    fn place(&mut self, page: PageId) -> Placement {
        let before = self.table.get(page);
        match before.slot().filter(|_| before.is_fresh()) {
            Some(slot) => Placement { before, slot, is_new: false },
            None => Placement { before, slot: self.slots.allocate(), is_new: true },
        }
    }

    fn abandon(&mut self, placement: Placement) {
        if placement.is_new {
            self.slots.free(placement.slot);
        }
    }

    /// Records that `page` was written as placed.
    fn record_write(&mut self, page: PageId, placement: Placement, checksum: u64) {
        if self.table.get(page) != placement.before {
            // A sync and an eviction wrote the same content: this copy is not needed.
            return self.abandon(placement);
        }
        self.table.set(page, Entry::fresh(placement.slot, checksum));
        if let Some(old) = placement.before.slot().filter(|_| placement.is_new) {
            self.slots.retire(old);
        }
    }
}

/// A file of durable pages; threads may share it.
pub struct PageFile {
    file: StoreFile,
    kind: u32,
    page_bytes: usize,
    stripes: Box<[Mutex<Stripe>]>,
    /// The maximum number of frames per stripe.
    frames_per_stripe: AtomicUsize,
    space: Mutex<Space>,
    /// The number of entries that the page table has for each stream, or had a moment ago.
    table_pages: [AtomicU64; STREAMS],
    /// Held shared by writers of pages, and exclusively by a sync while it collects them.
    gate: RwLock<()>,
    committed: Mutex<Committed>,
    memory: Reservation,
    /// Bytes of the memory that the owner uses itself.
    owner_bytes: AtomicU64,
    /// Stops a sync before its root is written.
    job: Option<Arc<Job>>,
}

impl std::fmt::Debug for PageFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageFile").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

/// The right to change pages. A sync waits until all holders drop it, so that the changes of one
/// holder become durable together or not at all. A thread must not hold two.
pub struct Writing<'a> {
    _guard: Guard<'a>,
}

enum Guard<'a> {
    Shared(#[expect(dead_code, reason = "held for its lock")] RwLockReadGuard<'a, ()>),
    Exclusive(#[expect(dead_code, reason = "held for its lock")] RwLockWriteGuard<'a, ()>),
}

/// A page under its lock.
pub struct PageMut<'a>(&'a mut Frame);

impl PageMut<'_> {
    /// The bytes of the page.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The bytes of the page, for writing; marks the page as changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.dirty = true;
        &mut self.0.bytes
    }

    /// Marks the page as changed.
    fn mark(&mut self) {
        self.0.dirty = true;
    }
}

impl PageFile {
    /// Makes a new durable page file, empty except for `meta`, the owner's description.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Io`], [`Error::Budget`] below [`minimum_bytes`].
    pub fn create(
        folder: &dyn Folder,
        purpose: &Purpose<'_>,
        meta: &[u8],
        memory: Reservation,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        // The file has another name until it is complete, so that a crash leaves no partial
        // collection.
        let partial = format!("{}.new", purpose.name);
        remove_if_present(folder, &partial)?;
        let path = folder.path().join(purpose.name);
        if list_names(folder)?.iter().any(|name| name == purpose.name) {
            return Err(Error::Exists { path });
        }
        let file = of_pages(StoreFile::create(folder, &partial, traffic)?);
        let pages = Self::new(
            file,
            purpose,
            Table::new(purpose.page_bytes as u64),
            Slots::default(),
            memory,
        )?;
        pages.sync(meta)?;
        let fail = |e| Error::io(&path, "create", e);
        folder.rename(&partial, purpose.name).map_err(fail)?;
        folder.sync().map_err(fail)?;
        // The device stays the same after the rename; only messages need the new name.
        let PageFile { memory, .. } = pages;
        Self::open(folder, purpose, memory, traffic).map(|(pages, _)| pages)
    }

    /// Opens a page file for reading and writing, and returns its owner's description as of the
    /// last sync.
    ///
    /// Reads and verifies the page table; a page is verified on its first use. The caller ensures
    /// that only one process opens the file at a time.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Version`], [`Error::Io`]; [`Error::Budget`] if the memory
    /// cannot hold the page table.
    pub fn open(
        folder: &dyn Folder,
        purpose: &Purpose<'_>,
        memory: Reservation,
        traffic: &Arc<Traffic>,
    ) -> Result<(Self, Vec<u8>)> {
        let file = of_pages(StoreFile::open_to_change(folder, purpose.name, traffic)?);
        let length = file.len()?;
        if length < ROOTS_BYTES / 2 {
            let problem = format!(
                "the file has {}, fewer than its root; it was cut",
                counted(length, "byte")
            );
            return Err(Error::corrupt_pages(file.path(), length, problem));
        }
        let mut copies = vec![0; ROOTS_BYTES as usize];
        // After a crash just after the first sync the second root may be missing.
        let there = copies.len().min(length as usize);
        file.read_exact_at(&mut copies[..there], 0)?;
        let (root, both) = Root::choose(&copies, file.path())?;
        if root.kind != purpose.kind {
            let (found, expected) = (root.kind, purpose.kind);
            return Err(Error::PageKind { path: file.path().into(), found, expected });
        }
        let purpose = Purpose { page_bytes: root.page_bytes as usize, ..purpose.clone() };
        let (table, slots) = commit::read_table(&file, &root, length, &memory)?;
        let mut pages = Self::new(file, &purpose, table, slots, memory)?;
        let meta = root.meta.clone();
        pages.committed = Mutex::new(Committed::opened(&root, both));
        Ok((pages, meta))
    }

    fn new(
        file: StoreFile,
        purpose: &Purpose<'_>,
        table: Table,
        slots: Slots,
        memory: Reservation,
    ) -> Result<Self> {
        assert!(valid_page_bytes(purpose.page_bytes as u64), "a page size is a power of two");
        let frames = memory.bytes() as usize / purpose.page_bytes;
        let stripes = (frames / 16).clamp(1, MAX_STRIPES).next_power_of_two();
        let pages = Self {
            file,
            kind: purpose.kind,
            page_bytes: purpose.page_bytes,
            stripes: (0..stripes).map(|_| Mutex::default()).collect(),
            frames_per_stripe: AtomicUsize::new(0),
            table_pages: table.pages().map(AtomicU64::new),
            space: Mutex::new(Space { table, slots }),
            gate: RwLock::new(()),
            committed: Mutex::new(Committed::default()),
            memory,
            owner_bytes: AtomicU64::new(0),
            job: None,
        };
        pages.share_memory(&pages.space())?;
        Ok(pages)
    }

    /// Lets `job` cancel syncs and compaction: stored data stays, and a later call may sync it.
    pub fn stopped_by(mut self, job: &Arc<Job>) -> Self {
        self.job = Some(Arc::clone(job));
        self
    }

    /// Fails if the job of [`PageFile::stopped_by`] was canceled.
    pub fn check(&self) -> Result<()> {
        self.job.as_ref().map_or(Ok(()), |job| job.check())
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.file.len()
    }

    /// The maximum bytes of pages in memory.
    pub fn cache_bytes(&self) -> usize {
        self.frames_per_stripe.load(Ordering::Relaxed) * self.stripes.len() * self.page_bytes
    }

    /// Sets the bytes of the memory that the owner uses itself; the cache shrinks by as much. The
    /// owner calls this before it takes more.
    ///
    /// # Errors
    /// [`Error::Budget`] if the memory cannot hold them; then the bytes stay as they were.
    pub fn owner_takes(&self, bytes: u64) -> Result<()> {
        let space = self.space();
        let before = self.owner_bytes.load(Ordering::Relaxed);
        let more = bytes.saturating_sub(before);
        if more > 0 && self.least_bytes(&space) + more > self.memory.bytes() {
            return Err(self.without_room(&space, more));
        }
        self.owner_bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Extends the page table to `page`, so that writing it and pages before it takes no memory.
    ///
    /// # Errors
    /// [`Error::Budget`] if the memory cannot hold the table.
    pub fn extend_to(&self, writing: &Writing<'_>, page: PageId) -> Result<()> {
        self.require_entry(writing, page)
    }

    /// Begins to change pages; waits while a sync collects dirty pages.
    pub fn write(&self) -> Writing<'_> {
        Writing { _guard: Guard::Shared(self.gate.read().unwrap_or_else(PoisonError::into_inner)) }
    }

    fn write_alone(&self) -> Writing<'_> {
        Writing {
            _guard: Guard::Exclusive(self.gate.write().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Passes a page to `f`; a page that was never written is zeros.
    ///
    /// # Errors
    /// `Error::Corrupt` if the page fails its checksum.
    #[inline]
    pub fn read<R>(&self, page: PageId, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.with_frame(page, true, |frame| f(&frame.bytes))
    }

    /// Passes a page to `f` to change it. `f` must not use this file.
    #[inline]
    pub fn update<R>(
        &self,
        writing: &Writing<'_>,
        page: PageId,
        f: impl FnOnce(&mut PageMut<'_>) -> R,
    ) -> Result<R> {
        self.require_entry(writing, page)?;
        self.with_frame(page, true, |frame| f(&mut PageMut(frame)))
    }

    /// Passes a page to `f` to overwrite it. The page is not read, and its previous content is
    /// undefined.
    pub fn overwrite<R>(
        &self,
        writing: &Writing<'_>,
        page: PageId,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        self.require_entry(writing, page)?;
        self.with_frame(page, false, |frame| {
            frame.dirty = true;
            f(&mut frame.bytes)
        })
    }

    /// Frees a page's space; the page reads as zeros from now on.
    pub fn discard(&self, _: &Writing<'_>, page: PageId) -> Result<()> {
        self.file.usable()?;
        let mut stripe = self.stripe(page);
        stripe.remove(page);
        let mut space = self.space();
        let entry = space.table.get(page);
        if let Some(slot) = entry.slot() {
            space.table.set(page, Entry::NONE);
            if entry.is_fresh() { space.slots.free(slot) } else { space.slots.retire(slot) }
        }
        Ok(())
    }

    /// Extends the page table to `page`, which is about to change and must then be written.
    ///
    /// # Errors
    /// [`Error::Budget`] if the memory cannot hold the table.
    #[inline]
    fn require_entry(&self, writing: &Writing<'_>, page: PageId) -> Result<()> {
        match self.table_pages.get(page.stream()) {
            Some(pages) if page.number() < pages.load(Ordering::Relaxed) => Ok(()),
            _ => self.extend_table(writing, page),
        }
    }

    #[cold]
    fn extend_table(&self, writing: &Writing<'_>, page: PageId) -> Result<()> {
        let mut space = self.space();
        let taken = self.least_bytes(&space);
        // A sync may use the memory that other calls must leave free, so that all stored data can
        // become durable.
        let free = match writing._guard {
            Guard::Exclusive(_) => u64::MAX,
            Guard::Shared(_) => self.memory.bytes().saturating_sub(taken),
        };
        if let Err(more) = space.table.extend_to(page, free) {
            return Err(self.without_room(&space, more));
        }
        let pages = space.table.pages();
        self.table_pages
            .iter()
            .zip(pages)
            .for_each(|(known, pages)| known.store(pages, Ordering::Relaxed));
        Ok(())
    }

    #[inline]
    fn with_frame<R>(
        &self,
        page: PageId,
        load: bool,
        f: impl FnOnce(&mut Frame) -> R,
    ) -> Result<R> {
        self.file.usable()?;
        let mut stripe = self.stripe(page);
        if let Some(frame) = stripe.find(page) {
            return Ok(f(frame));
        }
        self.fault(&mut stripe, page, load).map(f)
    }

    /// Brings a page into its stripe, whose lock the caller holds.
    #[cold]
    fn fault<'s>(&self, stripe: &'s mut Stripe, page: PageId, load: bool) -> Result<&'s mut Frame> {
        let mut bytes = self.take_frame(stripe)?;
        let entry = if load { self.space().table.get(page) } else { Entry::NONE };
        match entry.slot() {
            Some(slot) => self.read_slot(slot, entry.checksum, &mut bytes)?,
            None => bytes.fill(0),
        }
        let frame = stripe.insert(page, bytes, false);
        frame.ok_or_else(|| Error::Internal("a page that was read has no frame".into()))
    }

    /// Returns memory for one more page in a stripe; evicts a page, after writing it if it is
    /// dirty, if the stripe is full.
    fn take_frame(&self, stripe: &mut Stripe) -> Result<Box<[u8]>> {
        let most = self.share_memory(&self.space())?;
        while !stripe.has_free_frame(most) {
            let Some(frame) = stripe.victim() else {
                break;
            };
            let Some(page) = frame.page else {
                break;
            };
            if frame.dirty {
                self.write_out(page, &frame.bytes)?;
            }
            stripe.remove(page);
        }
        Ok(stripe.take_empty(self.page_bytes, most))
    }

    /// Writes one page to its slot. A failure changes nothing: the frame stays dirty.
    fn write_out(&self, page: PageId, bytes: &[u8]) -> Result<()> {
        let placement = self.space().place(page);
        let result = self.file.write_all_at(bytes, self.offset(placement.slot));
        let mut space = self.space();
        match result {
            Ok(()) => space.record_write(page, placement, crate::checksum(bytes)),
            Err(_) => space.abandon(placement),
        }
        result
    }

    fn read_slot(&self, slot: u64, checksum: u64, bytes: &mut [u8]) -> Result<()> {
        let offset = self.offset(slot);
        self.file.read_exact_at(bytes, offset)?;
        if crate::checksum(bytes) != checksum {
            return Err(Error::corrupt_pages(
                self.file.path(),
                offset,
                "the page fails its checksum",
            ));
        }
        Ok(())
    }

    /// Gives the cache the memory that the page table and the owner do not use; returns the frames
    /// per stripe.
    fn share_memory(&self, space: &Space) -> Result<usize> {
        let resident = self.resident_bytes(space);
        let frames = self.memory.bytes().saturating_sub(resident) as usize / self.page_bytes;
        if frames < MIN_FRAMES - 1 {
            return Err(self.too_small(resident + minimum_bytes(self.page_bytes)));
        }
        let share = (frames / self.stripes.len()).max(1);
        self.frames_per_stripe.store(share, Ordering::Relaxed);
        Ok(share)
    }

    /// The least memory: the smallest possible cache, and the additional memory of a sync. A sync
    /// adds entries for the pages in which the owner describes the other pages, and bits for slots.
    fn least_bytes(&self, space: &Space) -> u64 {
        let cache = ((MIN_FRAMES - 1) * self.page_bytes) as u64;
        self.resident_bytes(space) + cache + space.table.memory_bytes() / SYNC_SHARE
    }

    /// The refusal of `more` bytes for the table or the owner.
    fn without_room(&self, space: &Space, more: u64) -> Error {
        // With memory for the slots of the pages, and for the entries that a sync adds.
        let minimum = minimum_bytes(self.page_bytes);
        let table = space.table.memory_bytes().saturating_add(more);
        let needed = self.resident_bytes(space) + minimum + table / SYNC_SHARE;
        self.too_small(needed.saturating_add(more))
    }

    /// Bytes of the memory that are not for the cache.
    fn resident_bytes(&self, space: &Space) -> u64 {
        let owner = self.owner_bytes.load(Ordering::Relaxed);
        space.table.memory_bytes() + space.slots.memory_bytes() + owner
    }

    fn too_small(&self, needed: u64) -> Error {
        self.memory.too_small(needed, &format!("for the pages of {}", self.file.path().display()))
    }

    fn offset(&self, slot: u64) -> u64 {
        first_byte(self.page_bytes) + slot * self.page_bytes as u64
    }

    fn stripe(&self, page: PageId) -> MutexGuard<'_, Stripe> {
        // Pages of the same number in different streams get different stripes, because an operation
        // on one record locks its page in the index and its page of data.
        let index = (page.number() as usize + page.stream() * 17) & (self.stripes.len() - 1);
        self.stripes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file of pages, with its errors and its share of the traffic.
fn of_pages(file: StoreFile) -> StoreFile {
    file.counted_as(Content::Records).cut_as(Error::corrupt_pages)
}

/// The offset of slot 0: after the roots, at a multiple of the page.
fn first_byte(page_bytes: usize) -> u64 {
    ROOTS_BYTES.next_multiple_of(page_bytes as u64)
}
