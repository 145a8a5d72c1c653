//! Reads many pages at once: pages that are not in memory come in large reads.
//!
//! A bulk read takes no lock while it reads. It uses a page only if it has the checksum of the page
//! table; a page that moved during the read is read again under its lock. Invariant: every page is
//! seen in the state of some moment between call and return.

use super::table::Entry;
use super::{PageFile, PageId, Writing};
use crate::error::Result;
use crate::sealed::Buffer;

/// The maximum bytes per read.
const RUN_BYTES: usize = 2 << 20;
/// Reading a gap up to this long is cheaper than skipping it.
const GAP_BYTES: u64 = 64 << 10;

/// The bulk reads of one thread, with their buffer.
#[derive(Debug)]
pub struct Scanner<'p> {
    pages: &'p PageFile,
    buffer: Buffer,
    missing: Vec<(u64, PageId, Entry)>,
}

impl PageFile {
    /// A reader of many pages. It uses a buffer of up to 2 MiB besides the cache.
    pub fn scanner(&self) -> Scanner<'_> {
        Scanner { pages: self, buffer: Buffer::new(), missing: Vec::new() }
    }

    /// Replaces a page by `bytes` without reading it. Returns false and does nothing if the page is
    /// in memory or no longer has the checksum `expected`.
    pub fn replace(
        &self,
        _: &Writing<'_>,
        page: PageId,
        expected: u64,
        bytes: &[u8],
    ) -> Result<bool> {
        self.file.usable()?;
        let mut stripe = self.stripe(page);
        if stripe.contains(page) {
            return Ok(false);
        }
        let entry = self.space().table.get(page);
        if entry.slot().is_none() || entry.checksum != expected {
            return Ok(false);
        }
        let mut frame = self.take_frame(&mut stripe)?;
        frame.copy_from_slice(bytes);
        Ok(stripe.insert(page, frame, true).is_some())
    }
}

impl Scanner<'_> {
    /// The page file that this scanner reads.
    pub fn pages(&self) -> &PageFile {
        self.pages
    }

    /// Calls `visit` once for each of `pages`, in no particular order. The pages stay in memory
    /// only if there are free frames.
    pub fn visit(
        &mut self,
        pages: impl IntoIterator<Item = PageId>,
        mut visit: impl FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut pages = pages.into_iter().peekable();
        let most = RUN_BYTES.div_ceil(self.pages.page_bytes);
        while pages.peek().is_some() {
            self.missing.clear();
            self.pages.file.usable()?;
            for page in pages.by_ref().take(most) {
                let mut stripe = self.pages.stripe(page);
                if let Some(frame) = stripe.find(page) {
                    visit(page, &frame.bytes)?;
                    continue;
                }
                let entry = self.pages.space().table.get(page);
                drop(stripe);
                match entry.slot() {
                    Some(slot) => self.missing.push((slot, page, entry)),
                    None => self.pages.read(page, |bytes| visit(page, bytes))??,
                }
            }
            self.read_missing(false, &mut visit)?;
        }
        Ok(())
    }

    /// Brings `pages` into memory, for later changes.
    pub fn load(&mut self, pages: impl IntoIterator<Item = PageId>) -> Result<()> {
        self.missing.clear();
        for page in pages {
            let stripe = self.pages.stripe(page);
            if stripe.contains(page) {
                continue;
            }
            let entry = self.pages.space().table.get(page);
            if let Some(slot) = entry.slot() {
                self.missing.push((slot, page, entry));
            }
        }
        self.read_missing(true, &mut |_, _| Ok(()))
    }

    fn read_missing(
        &mut self,
        admit: bool,
        visit: &mut dyn FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (pages, page_bytes) = (self.pages, self.pages.page_bytes);
        self.missing.sort_unstable_by_key(|(slot, ..)| *slot);
        let gap = GAP_BYTES / page_bytes as u64 + 1;
        let mut rest = self.missing.as_slice();
        while let Some(&(first, ..)) = rest.first() {
            let mut last = first;
            let near = |(slot, ..): &&(u64, PageId, Entry)| {
                let joins =
                    *slot - last <= gap && ((*slot - first + 1) as usize * page_bytes) <= RUN_BYTES;
                if joins || *slot == first {
                    last = *slot;
                    return true;
                }
                false
            };
            let count = rest.iter().take_while(near).count().max(1);
            let (run, others) = rest.split_at(count);
            rest = others;
            self.buffer.resize((last - first + 1) as usize * page_bytes);
            // Since then, pages may have moved and the file may have been cut: then this read
            // fails, and each page is read again below.
            let whole =
                pages.file.read_exact_at(self.buffer.bytes_mut(), pages.offset(first)).is_ok();
            for &(slot, page, entry) in run {
                let at = (slot - first) as usize * page_bytes;
                let bytes = self.buffer.bytes().get(at..at + page_bytes).unwrap_or_default();
                if !whole || crate::checksum(bytes) != entry.checksum {
                    pages.read(page, |bytes| visit(page, bytes))??;
                    continue;
                }
                visit(page, bytes)?;
                pages.admit(page, entry, bytes, admit)?;
            }
        }
        Ok(())
    }
}

impl PageFile {
    /// Keeps a page in memory if its entry is unchanged. Without a free frame, does so only if
    /// `must` is true.
    fn admit(&self, page: PageId, entry: Entry, bytes: &[u8], must: bool) -> Result<()> {
        let most = self.frames_per_stripe.load(std::sync::atomic::Ordering::Relaxed);
        let mut stripe = self.stripe(page);
        if stripe.contains(page) || !(must || stripe.has_free_frame(most)) {
            return Ok(());
        }
        if self.space().table.get(page) == entry {
            let mut frame = self.take_frame(&mut stripe)?;
            frame.copy_from_slice(bytes);
            stripe.insert(page, frame, false);
        }
        Ok(())
    }
}
