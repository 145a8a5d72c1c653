//! The folder of a collection: its page file and its lock.
//!
//! Invariant: one process has a collection open at a time.

use std::path::Path;

use brimful_store::budget::OwnerMemory;
use brimful_store::durable::{MAX_META_BYTES, PageFile, Purpose, minimum_bytes};
use brimful_store::external::{FolderLock, make_folder};
use brimful_store::file::list_names;
use brimful_store::wording::counted;
use brimful_store::{DiskFolder, Error as StoreError, Folder, Resources};

use crate::WINDOW_PAGES;
use crate::error::{Error, Result};
use crate::options::Options;

/// The name of the page file in a collection's folder.
pub(crate) const PAGES: &str = "pages";

/// The kind of a collection, by its number in the page file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Box = 1,
    /// Maps and lists are bags of their own types of records.
    Bag = 2,
    FrequencyCounter = 3,
    MembershipSet = 4,
    BloomFilter = 5,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Box, Self::Bag, Self::FrequencyCounter, Self::MembershipSet, Self::BloomFilter];

    /// The kind in a sentence.
    fn name(self) -> &'static str {
        match self {
            Self::Box => "a box",
            Self::Bag => "a bag, a map or lists",
            Self::FrequencyCounter => "a frequency counter",
            Self::MembershipSet => "a membership set",
            Self::BloomFilter => "a Bloom filter",
        }
    }
}

/// The folder of a collection's pages.
pub(crate) fn folder_of(pages: &PageFile) -> &Path {
    pages.path().parent().unwrap_or(pages.path())
}

/// Pages that each compute thread may load at once: together a quarter of the cache.
pub(crate) fn window(pages: &PageFile, resources: &Resources) -> usize {
    let frames = pages.cache_bytes() / pages.page_bytes();
    (frames / (4 * resources.workers())).clamp(1, WINDOW_PAGES)
}

/// The folder at `path`, made if it is missing, and its lock.
pub(crate) fn lock_folder(path: &Path) -> Result<(DiskFolder, FolderLock)> {
    make_folder(path)?;
    let lock = FolderLock::take(path)?;
    Ok((DiskFolder::new(path), lock))
}

/// True if `folder` has no collection.
pub(crate) fn is_new(folder: &dyn Folder) -> Result<bool> {
    Ok(!list_names(folder)?.iter().any(|name| name == PAGES))
}

/// Opens the pages in `folder`, or makes them with the description `meta`, whose first
/// `fixed_bytes` are the same for all types of records.
pub(crate) fn open_pages(
    folder: &dyn Folder,
    kind: Kind,
    options: &Options,
    (meta, fixed_bytes): (&[u8], usize),
) -> Result<(PageFile, Vec<u8>)> {
    options.require_page_size()?;
    if meta.len() > MAX_META_BYTES {
        return Err(Error::Usage(format!(
            "the description of the records is {} too long; shorten it",
            counted(meta.len() - MAX_META_BYTES, "byte")
        )));
    }
    let wanted = options.memory_bytes - options.batch_bytes() as u64;
    let memory = options
        .resources
        .budget
        .reserve(wanted.max(minimum_bytes(options.page_bytes)), "for the pages of a collection")?
        .part_of(OwnerMemory {
            bytes: options.memory_bytes,
            size_for_part: Options::memory_for_pages,
            is_named: options.is_share,
        });
    let purpose = Purpose { name: PAGES, kind: kind as u32, page_bytes: options.page_bytes };
    let traffic = options.resources.job.traffic();
    if is_new(folder)? {
        let pages = PageFile::create(folder, &purpose, meta, memory, traffic)?;
        return Ok((pages.stopped_by(&options.resources.job), meta.to_vec()));
    }
    let opened = PageFile::open(folder, &purpose, memory, traffic);
    let (pages, meta) = opened.map_err(|error| match error {
        StoreError::PageKind { found, .. } => Error::RecordType {
            path: folder.path().into(),
            expected: kind.name().into(),
            found: Kind::ALL.into_iter().find(|kind| *kind as u32 == found).map_or_else(
                || format!("pages of the unknown kind {found}"),
                |it| it.name().into(),
            ),
        },
        other => other.into(),
    })?;
    if meta.len() < fixed_bytes {
        let problem =
            format!("expected a description of {fixed_bytes} bytes or more, found {}", meta.len());
        return Err(StoreError::corrupt_pages(pages.path(), 0, problem).into());
    }
    Ok((pages.stopped_by(&options.resources.job), meta))
}
