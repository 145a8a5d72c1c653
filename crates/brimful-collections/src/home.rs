//! Where a collection lives: a folder with its pages and its lock.
//!
//! Invariant: one process has a collection open at a time.

use std::path::Path;
use std::sync::Arc;

use brimful_store::durable::{PageFile, Purpose, minimum_bytes};
use brimful_store::external::{FolderLock, make_folder};
use brimful_store::{DiskFolder, Folder, Resources};

use crate::error::Result;

/// The name of the page file in a collection's folder.
pub(crate) const PAGES: &str = "pages";

/// Memory and threads of one collection.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where memory and threads come from.
    pub resources: Arc<Resources>,
    /// Bytes of memory for this collection.
    pub memory_bytes: u64,
    /// Bytes of a page in a collection that is made; a power of two. One that is opened has its own.
    pub page_bytes: usize,
}

impl Options {
    /// All that is free of the budget, and pages of the usual size.
    pub fn new(resources: &Arc<Resources>) -> Self {
        Self {
            resources: Arc::clone(resources),
            memory_bytes: resources.budget.free(),
            page_bytes: brimful_store::durable::PAGE_BYTES,
        }
    }

    /// Bytes of memory for this collection instead.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Bytes that batches in flight may take, beside the pages.
    pub(crate) fn batch_bytes(&self) -> usize {
        (self.memory_bytes / 4).min(256 << 20) as usize
    }
}

/// A place for a collection: a folder of the file system, locked, or any other folder.
#[derive(Debug)]
pub(crate) struct Home<F> {
    pub(crate) folder: F,
    pub(crate) lock: Option<FolderLock>,
}

impl Home<DiskFolder> {
    /// The folder at `path`, made if need be.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        make_folder(path)?;
        let lock = FolderLock::take(path)?;
        Ok(Self { folder: DiskFolder::new(path), lock: Some(lock) })
    }
}

/// Opens the pages in `folder`, or makes them with the description `meta`.
pub(crate) fn open_pages(
    folder: &dyn Folder,
    kind: u32,
    options: &Options,
    meta: &[u8],
) -> Result<(PageFile, Vec<u8>)> {
    let wanted = options.memory_bytes - options.batch_bytes() as u64;
    let names = folder.list().map_err(|e| brimful_store::Error::io(folder.path(), "list", e))?;
    let is_new = !names.iter().any(|name| name == PAGES);
    let memory = options
        .resources
        .budget
        .reserve(wanted.max(minimum_bytes(options.page_bytes)), "for the pages of a collection")?;
    let purpose = Purpose { name: PAGES, kind, page_bytes: options.page_bytes };
    let traffic = options.resources.job.traffic();
    if is_new {
        let pages = PageFile::create(folder, &purpose, meta, memory, traffic)?;
        return Ok((pages.stopped_by(&options.resources.job), meta.to_vec()));
    }
    let (pages, meta) = PageFile::open(folder, &purpose, memory, traffic)?;
    Ok((pages.stopped_by(&options.resources.job), meta))
}

/// A little-endian number at `at`; 0 where the bytes do not reach.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

/// The same of 4 bytes.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u32::from_le_bytes(*field))
}

/// The same of 2 bytes.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u16::from_le_bytes(*field))
}

/// Writes `field` at `at`, as far as the bytes reach.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
