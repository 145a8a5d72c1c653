//! The writers of a sorter: full buffers become runs, in memory while there is space.

use super::Sorter;
use super::memory_plan::MIN_BUFFER;
use super::run::{Parts, RunStorage, SortedRun};
use crate::error::Result;
use crate::huge::{advise_spare, renew};
use crate::radix::{self, Record};

/// The writer of one worker to a [`Sorter`]. [`SortWriter::finish`] must be called.
pub struct SortWriter<'s, 'j, R> {
    pub(super) sorter: &'s Sorter<'j, R>,
    /// Records that the buffer may hold before it becomes a run.
    pub(super) run_len: usize,
    pub(super) records: Vec<R>,
    /// Scratch memory that splits the records.
    pub(super) buffer: Vec<R>,
}

impl<R: Record> SortWriter<'_, '_, R> {
    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        if self.records.len() == self.records.capacity() {
            self.make_room()?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Grows the buffer while it is shorter than a run; then turns it into a run.
    #[cold]
    fn make_room(&mut self) -> Result<()> {
        if self.records.len() < self.run_len {
            let more = self.records.len().max(MIN_BUFFER).min(self.run_len - self.records.len());
            self.records.reserve_exact(more);
            advise_spare(&mut self.records);
            return Ok(());
        }
        self.sorter.job.check()?;
        let (parts, shift) = self.split();
        let (len, count) = (self.records.len() as u64, parts.len() as u64);
        let storage = if self.sorter.take_free(parts.bytes_of_run(&self.records)) {
            RunStorage::Memory { records: std::mem::take(&mut self.records), parts }
        } else {
            let storage = self.sorter.append(&self.records, &parts)?;
            self.records.clear();
            storage
        };
        self.sorter.add(SortedRun { storage, len, parts: count, shift });
        let longer = self.sorter.plan.run_len(self.sorter.len()).max(self.run_len);
        let added_bytes = 2 * (longer - self.run_len) * size_of::<R>();
        if self.sorter.take_from_runs(added_bytes as u64)? {
            self.run_len = longer;
        }
        renew(self.run_len, &mut self.records);
        Ok(())
    }

    fn split(&mut self) -> (Parts<R>, u32) {
        let (starts, shift) =
            radix::split(&mut self.records, &mut self.buffer, self.sorter.plan.part_len());
        (Parts::of(&self.records, &starts), shift)
    }

    /// Splits the remaining records into a run that stays in memory.
    pub fn finish(mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let (parts, shift) = self.split();
        let (len, count) = (self.records.len() as u64, parts.len() as u64);
        let storage = RunStorage::Memory { records: std::mem::take(&mut self.records), parts };
        self.sorter.add(SortedRun { storage, len, parts: count, shift });
        Ok(())
    }
}
