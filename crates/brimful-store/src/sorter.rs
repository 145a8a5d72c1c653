//! The external sorter: takes records in any order and returns one ordered stream, within a budget.
//!
//! Each worker fills a buffer. A full buffer is split into a *run*: parts in ascending order, each
//! unsorted. Runs stay in memory while there is space; later ones are appended to one scratch file.
//! Runs are short at first and grow with the number of records, so that the sorter writes little
//! more than the records that do not fit in memory; the oldest runs in memory make space for longer
//! buffers. The merge cuts the key range into pieces small enough for memory, sorts each piece on
//! one of the workers and passes the pieces to a single consumer in ascending order. Splitting and
//! then sorting once costs little more than half of sorting twice. Invariant: the consumer sees the
//! same sequence whatever the number of workers, runs and pieces.

mod forecast;
mod memory_plan;
mod merge;
mod plan;
mod run;
mod writer;

pub use forecast::{Filled, Sorting};
pub use merge::Piece;
pub use writer::SortWriter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Folder;
use crate::error::Result;
use crate::file::StoreFile;
use crate::job::Job;
use crate::radix;
pub use crate::radix::Record;
use crate::sorter::memory_plan::MemoryPlan;
use crate::sorter::run::{Parts, RunStorage, SortedRun};

/// Sorts records in memory by radix; `buffer` grows to the size of `records`.
pub fn sort_in_memory<R: Record>(records: &mut Vec<R>, buffer: &mut Vec<R>) {
    radix::sort_many(records, buffer);
}

/// Smallest memory, in bytes, for sorting with `workers` workers and records of `record_bytes`
/// bytes.
pub fn minimum_bytes(workers: usize, record_bytes: usize) -> u64 {
    // With less memory, the file would be read in too many small parts.
    (workers as u64) * 2 * (record_bytes as u64) * (64 << 10)
}

/// Sorts more records than fit in memory.
pub struct Sorter<'j, R> {
    file: StoreFile,
    /// The end of the space reserved in the file.
    file_end: AtomicU64,
    runs: Mutex<Vec<SortedRun<R>>>,
    /// Number of records in runs.
    len: AtomicU64,
    /// Memory limit, in bytes.
    bytes: u64,
    plan: MemoryPlan,
    /// Bytes that neither buffers nor runs in memory use.
    free: AtomicU64,
    job: &'j Job,
}

impl<'j, R: Record> Sorter<'j, R> {
    /// Makes a sorter that uses at most `bytes` of memory with up to `workers` concurrent writers,
    /// and a scratch file in `folder`. The caller has reserved the bytes.
    ///
    /// Below [`minimum_bytes`] it may use more.
    pub fn new(folder: &dyn Folder, bytes: u64, workers: usize, job: &'j Job) -> Result<Self> {
        let plan = MemoryPlan::new(bytes, workers, size_of::<R>());
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?,
            file_end: AtomicU64::new(0),
            runs: Mutex::new(Vec::new()),
            len: AtomicU64::new(0),
            bytes,
            plan,
            free: AtomicU64::new(
                bytes.saturating_sub((plan.buffers(plan.run_len(0)) * size_of::<R>()) as u64),
            ),
            job,
        })
    }

    /// A writer for one worker.
    pub fn writer(&self) -> SortWriter<'_, 'j, R> {
        let run_len = self.plan.run_len(0);
        SortWriter { sorter: self, run_len, records: Vec::new(), buffer: Vec::new() }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<SortedRun<R>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run, whose records are in no other run.
    fn add(&self, run: SortedRun<R>) {
        self.len.fetch_add(run.len, Ordering::Relaxed);
        self.runs().push(run);
    }

    /// Takes `bytes` from the free ones; false if there are too few.
    fn take_free(&self, bytes: u64) -> bool {
        let take = |free: u64| free.checked_sub(bytes);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes `bytes` from the free ones, and writes the oldest runs in memory to disk while there
    /// are too few. False if there are still too few.
    fn take_from_runs(&self, bytes: u64) -> Result<bool> {
        while !self.take_free(bytes) {
            let oldest = {
                let mut runs = self.runs();
                let oldest =
                    runs.iter().position(|run| matches!(run.storage, RunStorage::Memory { .. }));
                oldest.map(|oldest| runs.remove(oldest))
            };
            let Some(mut run) = oldest else {
                return Ok(false);
            };
            if let RunStorage::Memory { records, parts } = &run.storage {
                let freed = parts.bytes_of_run(records);
                run.storage = self.append(records, parts)?;
                self.free.fetch_add(freed, Ordering::Relaxed);
            }
            self.runs().push(run);
        }
        Ok(true)
    }

    /// Reserves space on disk for `len` records and for the bounds of `parts` parts; returns both
    /// offsets.
    fn reserve_on_disk(&self, len: u64, parts: u64) -> (u64, u64) {
        let record_bytes = len * size_of::<R>() as u64;
        let bytes = record_bytes + parts * Parts::<R>::BYTES;
        let offset = self.file_end.fetch_add(bytes, Ordering::Relaxed);
        (offset, offset + record_bytes)
    }

    fn append(&self, records: &[R], parts: &Parts<R>) -> Result<RunStorage<R>> {
        let bytes: &[u8] = bytemuck::cast_slice(records);
        let count = parts.len() as u64;
        let (offset, parts_offset) = self.reserve_on_disk(records.len() as u64, count);
        for (index, part) in bytes.chunks(4 << 20).enumerate() {
            self.job.check()?;
            self.file.write_all_at(part, offset + (index as u64) * (4 << 20))?;
        }
        parts.write(&self.file, parts_offset, count, 0)?;
        tracing::info!(records = records.len(), bytes = bytes.len(), "spill");
        Ok(RunStorage::File { offset, parts: parts_offset })
    }

    /// Records pushed so far and sorted into runs.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// True if no record was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
