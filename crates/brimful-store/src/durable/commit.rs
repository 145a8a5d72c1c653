//! Makes pages durable, reads the table, and frees space.
//!
//! A sync writes dirty pages, changed pages of the table and the directory to fresh slots, and
//! makes the file durable. Then it writes the first root and makes it durable; the second root
//! follows. Only then does it free the slots that the old root named. Invariant: whatever fails,
//! the durable root stays whole, and the state in memory stays true.

use std::sync::{MutexGuard, PoisonError};

use super::root::{MAX_META_BYTES, ROOT_OFFSETS, Root};
use super::slots::{SlotSet, Slots};
use super::table::{Entry, Table};
use super::{PageFile, PageId, Placement, Writing, first_byte};
use crate::budget::Reservation;
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::wording::counted;

/// The maximum bytes per write.
const RUN_BYTES: usize = 4 << 20;
/// The maximum number of pages that one step of compaction moves, so that readers never wait long.
const STEP_PAGES: usize = 512;

/// The root as it is on disk.
#[derive(Debug, Default)]
pub(super) struct Committed {
    generation: u64,
    /// Slots of the directory.
    directory: Vec<u64>,
    /// The bytes of the second root, if it is not yet written.
    unmirrored: Option<Vec<u8>>,
}

impl Committed {
    pub(super) fn opened(root: &Root, both: bool) -> Self {
        let directory = directory_slots(root, directory_bytes(root));
        let unmirrored = if both { None } else { Some(root.encode()) };
        Self { generation: root.generation, directory, unmirrored }
    }
}

/// A sync between the collection of dirty pages and durability.
struct Collected {
    root: Vec<u8>,
    directory: Vec<u64>,
    retired: SlotSet,
}

impl PageFile {
    /// Makes all stored data and `meta` durable, atomically: a crash before the end keeps the
    /// previous sync. Waits for holders of [`PageFile::write`]; readers continue.
    ///
    /// Compacts the file if more than a third of it is free.
    ///
    /// # Errors
    /// [`Error::Io`]. After a full disk the sync may be called again; after a failed sync of the
    /// device every use is refused until the file is opened again.
    pub fn sync(&self, meta: &[u8]) -> Result<()> {
        self.sync_with(|_| Ok(meta.to_vec()))
    }

    /// Like [`PageFile::sync`]; the owner writes its last pages and returns its description while
    /// no other thread changes pages.
    pub fn sync_with(
        &self,
        mut prepare: impl FnMut(&Writing<'_>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut committed = self.committed();
        self.commit(&mut committed, &mut prepare)?;
        let (used, end) = self.extent();
        if end - used > used / 2 + 64 { self.shrink(&mut committed, &mut prepare) } else { Ok(()) }
    }

    /// Syncs the file; then moves pages from its end into free slots and cuts it, in small steps
    /// with a sync each. `prepare` is called for every sync, as in `sync_with`.
    pub fn compact(&self, mut prepare: impl FnMut(&Writing<'_>) -> Result<Vec<u8>>) -> Result<()> {
        let mut committed = self.committed();
        self.commit(&mut committed, &mut prepare)?;
        self.shrink(&mut committed, &mut prepare)
    }

    fn shrink(
        &self,
        committed: &mut Committed,
        prepare: &mut dyn FnMut(&Writing<'_>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let most = STEP_PAGES.min(self.cache_bytes() / self.page_bytes / 2).max(1);
        loop {
            self.check()?;
            let (used, end) = self.extent();
            self.cut()?;
            if end - used <= used / 8 + 8 {
                return Ok(());
            }
            let pages = {
                let from = (used + (end - used) / 8).max(end.saturating_sub(most as u64));
                self.space().table.beyond(from, most)
            };
            let writing = self.write();
            for page in pages {
                // A page marked dirty moves to the first free slot at the next sync.
                self.update(&writing, page, |page| page.mark())?;
            }
            drop(writing);
            self.commit(committed, prepare)?;
            if self.extent().1 >= end {
                // The end of the file holds the directory, or a page that other threads keep
                // changing.
                return Ok(());
            }
        }
    }

    /// The number of slots in use or retired, and the end of the last one.
    fn extent(&self) -> (u64, u64) {
        let space = self.space();
        (space.slots.taken_count(), space.slots.end())
    }

    fn cut(&self) -> Result<()> {
        // Under the lock, because slots beyond the end must not be allocated at the same time.
        let space = self.space();
        let wanted = self.offset(space.slots.end());
        if self.file.len()? > wanted { self.file.set_len(wanted) } else { Ok(()) }
    }

    pub(super) fn committed(&self) -> MutexGuard<'_, Committed> {
        self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(
        &self,
        committed: &mut Committed,
        prepare: &mut dyn FnMut(&Writing<'_>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        self.file.usable()?;
        if let Some(root) = committed.unmirrored.take() {
            // The older copy must name the last durable root before the newer one is overwritten.
            let result = self.file.write_all_at(&root, ROOT_OFFSETS[1]);
            if result.is_err() {
                committed.unmirrored = Some(root);
                return result;
            }
        }
        let collected = {
            let alone = self.write_alone();
            let meta = prepare(&alone)?;
            if meta.len() > MAX_META_BYTES {
                let problem =
                    format!("a description of {} bytes does not fit into its root", meta.len());
                return Err(Error::Internal(problem));
            }
            self.write_dirty_pages()?;
            self.write_table(committed, meta)?
        };
        let durable = self
            .file
            .sync()
            .and_then(|()| self.file.write_all_at(&collected.root, ROOT_OFFSETS[0]))
            .and_then(|()| self.file.sync());
        let mut space = self.space();
        if durable.is_err() {
            // Either root may be the durable one: the slots that they name stay until the next.
            let named = collected.retired.iter().chain(collected.directory);
            named.for_each(|slot| space.slots.retire(slot));
            return durable;
        }
        collected.retired.iter().for_each(|slot| space.slots.free(slot));
        drop(space);
        committed.generation += 1;
        committed.directory = collected.directory;
        if self.file.write_all_at(&collected.root, ROOT_OFFSETS[1]).is_err() {
            committed.unmirrored = Some(collected.root);
        }
        Ok(())
    }

    /// Writes all dirty pages in page order, with as few writes as possible.
    fn write_dirty_pages(&self) -> Result<()> {
        let mut dirty = Vec::new();
        for stripe in &self.stripes {
            dirty.extend(stripe.lock().unwrap_or_else(PoisonError::into_inner).dirty());
        }
        dirty.sort_unstable();
        let mut run = SlotRun::default();
        for (count, page) in dirty.into_iter().enumerate() {
            if count % STEP_PAGES == 0
                && let Err(stopped) = self.check()
            {
                // The pages of the run already have slots.
                self.write_run(&mut run)?;
                return Err(stopped);
            }
            let mut stripe = self.stripe(page);
            // A reader may have needed the frame, and evicted the page.
            let Some(frame) = stripe.find(page).filter(|frame| frame.dirty) else {
                continue;
            };
            let placement = self.space().place(page);
            if !run.continues_at(placement.slot) || run.bytes.len() >= RUN_BYTES {
                let bytes = frame.bytes.clone();
                drop(stripe);
                if let Err(error) = self.write_run(&mut run) {
                    self.space().abandon(placement);
                    return Err(error);
                }
                run.push(page, placement, &bytes);
            } else {
                run.push(page, placement, &frame.bytes);
            }
        }
        self.write_run(&mut run)
    }

    fn write_run(&self, run: &mut SlotRun) -> Result<()> {
        let Some((_, first, _)) = run.pages.first() else {
            return Ok(());
        };
        let result = self.file.write_all_at(&run.bytes, self.offset(first.slot));
        for (page, placement, checksum) in run.pages.drain(..) {
            if result.is_err() {
                self.space().abandon(placement);
                continue;
            }
            let mut stripe = self.stripe(page);
            self.space().record_write(page, placement, checksum);
            if let Some(frame) = stripe.find(page) {
                frame.dirty = false;
            }
        }
        run.bytes.clear();
        result
    }

    /// Writes the changed pages of the table, and the directory. No thread may change pages
    /// meanwhile.
    fn write_table(&self, committed: &Committed, meta: Vec<u8>) -> Result<Collected> {
        let mut moved = Vec::new();
        let result = self.write_table_pages(&mut moved).and_then(|()| self.write_directory());
        let mut space = self.space();
        match result {
            Ok((directory, checksum)) => {
                let root = Root {
                    kind: self.kind,
                    generation: committed.generation + 1,
                    page_bytes: self.page_bytes as u64,
                    pages: space.table.pages(),
                    directory_slot: directory.first().copied().unwrap_or(0),
                    directory_checksum: checksum,
                    meta,
                };
                space.table.clear_marks();
                let mut retired = space.slots.take_retired();
                let moved = moved.iter().filter_map(|(_, _, old)| *old);
                moved.chain(committed.directory.iter().copied()).for_each(|slot| {
                    retired.insert(slot);
                });
                Ok(Collected { root: root.encode(), directory, retired })
            }
            Err(error) => {
                for (stream, index, old) in moved {
                    let entry = old.map_or(Entry::NONE, |slot| Entry::fresh(slot, 0));
                    if let Some(slot) = space.table.relocate(stream, index, entry) {
                        space.slots.free(slot);
                    }
                }
                Err(error)
            }
        }
    }

    fn write_table_pages(&self, moved: &mut Vec<(usize, usize, Option<u64>)>) -> Result<()> {
        let changed = self.space().table.changed();
        let mut bytes = Vec::new();
        for (stream, index) in changed {
            let slot = {
                let mut space = self.space();
                space.table.encode(stream, index, &mut bytes);
                let slot = space.slots.allocate();
                let entry = Entry::fresh(slot, crate::checksum(&bytes));
                moved.push((stream, index, space.table.relocate(stream, index, entry)));
                slot
            };
            self.file.write_all_at(&bytes, self.offset(slot))?;
        }
        Ok(())
    }

    /// Writes the directory; returns its slots and its checksum.
    fn write_directory(&self) -> Result<(Vec<u64>, u64)> {
        let (bytes, slots): (_, Vec<u64>) = {
            let mut space = self.space();
            let bytes = space.table.encode_directory();
            let count = bytes.len().div_ceil(self.page_bytes) as u64;
            let first = if count == 0 { 0 } else { space.slots.allocate_run(count) };
            (bytes, (first..first + count).collect())
        };
        let offset = self.offset(slots.first().copied().unwrap_or(0));
        let result = self.file.write_all_at(&bytes, offset);
        if result.is_err() {
            let mut space = self.space();
            slots.iter().for_each(|slot| space.slots.free(*slot));
        }
        result.map(|()| (slots, crate::checksum(&bytes)))
    }
}

/// Pages in consecutive slots, for one write.
#[derive(Default)]
struct SlotRun {
    pages: Vec<(PageId, Placement, u64)>,
    bytes: Vec<u8>,
}

impl SlotRun {
    fn continues_at(&self, slot: u64) -> bool {
        self.pages.last().is_none_or(|(_, last, _)| last.slot + 1 == slot)
    }

    fn push(&mut self, page: PageId, placement: Placement, bytes: &[u8]) {
        self.pages.push((page, placement, crate::checksum(bytes)));
        self.bytes.extend_from_slice(bytes);
    }
}

fn directory_bytes(root: &Root) -> u64 {
    let per_page = root.page_bytes / super::table::ENTRY_BYTES as u64;
    let directory_entries =
        root.pages.iter().fold(0u64, |sum, pages| sum.saturating_add(pages.div_ceil(per_page)));
    directory_entries.saturating_mul(super::table::ENTRY_BYTES as u64)
}

fn directory_slots(root: &Root, bytes: u64) -> Vec<u64> {
    let count = bytes.div_ceil(root.page_bytes);
    (root.directory_slot..root.directory_slot.saturating_add(count)).collect()
}

/// Reads and verifies directory and table; claims the slots that they name. `memory` bounds the
/// table.
pub(super) fn read_table(
    file: &StoreFile,
    root: &Root,
    length: u64,
    memory: &Reservation,
) -> Result<(Table, Slots)> {
    let page_bytes = root.page_bytes as usize;
    let first = first_byte(page_bytes);
    let slots_in_file = length.saturating_sub(first).div_ceil(root.page_bytes);
    let bytes = directory_bytes(root);
    // A table that exceeds the file is corrupt; one that exceeds the memory cannot be read.
    let pages = bytes.saturating_mul(root.page_bytes / super::table::ENTRY_BYTES as u64);
    if bytes > length || root.directory_slot > slots_in_file {
        let problem = format!(
            "a directory of {} in slot {} is beyond the end",
            counted(bytes, "byte"),
            root.directory_slot
        );
        return Err(Error::corrupt_pages(file.path(), 0, problem));
    }
    if pages > memory.bytes() {
        let purpose = format!("for the page table of {}", file.path().display());
        let page_count = slots_in_file.max(pages / super::table::ENTRY_BYTES as u64);
        return Err(memory.too_small(super::resident_bytes(page_count, page_bytes), &purpose));
    }
    let (mut table, mut space) = (Table::new(root.page_bytes), Slots::default());
    let offset = |slot: u64| first + slot * root.page_bytes;
    let mut claim = |slot: u64| {
        if slot >= slots_in_file {
            let problem = format!(
                "a page is in slot {slot}, and the file ends before slot {slots_in_file}; it was \
                 cut, or only a part was written"
            );
            return Err(Error::corrupt_pages(file.path(), length, problem));
        }
        if space.claim(slot) {
            return Ok(());
        }
        Err(Error::corrupt_pages(file.path(), offset(slot), "two pages are in the same slot"))
    };
    let mut directory = vec![0; bytes as usize];
    file.read_exact_at(&mut directory, offset(root.directory_slot))?;
    if crate::checksum(&directory) != root.directory_checksum {
        let problem = "the directory of the page table fails its checksum";
        return Err(Error::corrupt_pages(file.path(), offset(root.directory_slot), problem));
    }
    for slot in directory_slots(root, bytes) {
        claim(slot)?;
    }
    let mut page = vec![0; page_bytes];
    for (stream, entry) in table.decode_directory(&directory, &root.pages) {
        let Some(slot) = entry.slot() else {
            return Err(Error::corrupt_pages(
                file.path(),
                offset(root.directory_slot),
                "the directory lacks a part of the table",
            ));
        };
        claim(slot)?;
        file.read_exact_at(&mut page, offset(slot))?;
        if crate::checksum(&page) != entry.checksum {
            return Err(Error::corrupt_pages(
                file.path(),
                offset(slot),
                "a page of the page table fails its checksum",
            ));
        }
        let before = table.pages().get(stream).copied().unwrap_or(0);
        table.decode(stream, &page, root.pages.get(stream).copied().unwrap_or(0));
        for number in before..table.pages().get(stream).copied().unwrap_or(0) {
            if let Some(slot) = table.get(PageId::new(stream as u8, number)).slot() {
                claim(slot)?;
            }
        }
    }
    Ok((table, space))
}
