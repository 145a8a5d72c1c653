//! Compaction: records of sparse pages move to fuller ones, in small steps.
//!
//! Invariant: a step moves a bounded number of pages, and readers and writers of other records
//! continue meanwhile.

use brimful_store::durable::PageId;

use super::layout::{RecordPosition, SlotPage};
use super::{DATA, RecordBag};
use crate::error::Result;

/// Pages emptied per step.
const STEP_PAGES: usize = 64;

impl RecordBag {
    /// Moves records until no page is sparse, and returns the free pages to the file system. Makes
    /// everything durable.
    pub fn compact(&self) -> Result<()> {
        while self.compact_step(STEP_PAGES)? > 0 {
            self.pages.check()?;
        }
        Ok(self.pages.compact(|writing| self.describe(writing))?)
    }

    /// Compacts by one step if the bag is sparse; every change calls it.
    pub(super) fn tidy(&self) -> Result<()> {
        let is_sparse = self.space().is_sparse();
        if is_sparse {
            self.compact_step(STEP_PAGES)?;
        }
        Ok(())
    }

    /// Empties up to `most` sparse pages; returns the number of records moved.
    fn compact_step(&self, most: usize) -> Result<u64> {
        let pages = self.space().sparse_pages(most, &self.classes);
        let mut moved = 0;
        let mut result = Ok(());
        for page in &pages {
            if result.is_ok() {
                result = self.empty_page(*page).map(|count| moved += count);
            }
            self.space().end_draining(*page);
        }
        result.map(|()| moved)
    }

    fn empty_page(&self, number: u64) -> Result<u64> {
        let records: Vec<(u16, u64)> = self.pages.read(PageId::new(DATA, number), |bytes| {
            let slots = SlotPage::new(bytes, &self.classes);
            (0..slots.used()).filter_map(|slot| slots.get(slot).map(|(id, _)| (slot, id))).collect()
        })?;
        let mut moved = 0;
        for (slot, id) in records {
            let writing = self.pages.write();
            let _changing = self.id_lock(id);
            let position = RecordPosition::slot_of(number, slot);
            // Otherwise, the record has moved or was removed.
            if id < self.len() && self.position(id)? == Some(position) {
                let record = self.read_at(id, position)?;
                let new = self.put(&writing, id, &record, record.len())?;
                self.set_new_position(&writing, id, new)?;
                self.release(&writing, id, position)?;
                moved += 1;
            }
        }
        Ok(moved)
    }
}
