//! The external sorter: takes records in any order and returns one ordered stream, within a budget.
//!
//! Each worker fills a buffer. A full buffer is split into a *run*: parts in ascending order, each
//! unsorted. Runs stay in memory while there is space; later ones are appended to one scratch file.
//! Runs are short at first and grow with the number of records, so that the sorter writes little
//! more than what does not fit; the oldest runs in memory make space for longer buffers. The merge
//! cuts the key range into pieces small enough for memory, sorts each piece on one of the workers
//! and passes the pieces to a single consumer in ascending order. Splitting and then sorting once
//! costs little more than half of sorting twice. Invariant: the consumer sees the same sequence
//! whatever the number of workers, runs and pieces.

mod forecast;
mod plan;
mod run;
mod share;

pub use forecast::{Filled, Sorting};

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::ThreadPool;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::huge::{advise_spare, renew};
use crate::in_order::InOrder;
use crate::job::Job;
use crate::radix;
pub use crate::radix::Record;
use crate::sorter::plan::{Plan, Planner};
use crate::sorter::run::{Parts, PartsWriter, RunStorage, SortedRun};
use crate::sorter::share::{MAX_RUNS, MIN_BUFFER, Share};

/// Sorts records in memory by radix; `buffer` grows to the size of `records`.
pub fn sort_in_memory<R: Record>(records: &mut Vec<R>, buffer: &mut Vec<R>) {
    radix::sort_many(records, buffer);
}

/// Smallest memory, in bytes, for sorting with `workers` workers and records of `record_bytes`
/// bytes.
pub fn minimum_bytes(workers: usize, record_bytes: usize) -> u64 {
    // With less, the file would be read in too many small parts.
    (workers as u64) * 2 * (record_bytes as u64) * (64 << 10)
}

/// Sorts more records than fit in memory.
pub struct Sorter<'j, R> {
    file: StoreFile,
    end: AtomicU64,
    runs: Mutex<Vec<SortedRun<R>>>,
    /// Number of records in runs.
    len: AtomicU64,
    bytes: u64,
    share: Share,
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
        let share = Share::new(bytes, workers, size_of::<R>());
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?,
            end: AtomicU64::new(0),
            runs: Mutex::new(Vec::new()),
            len: AtomicU64::new(0),
            bytes,
            share,
            free: AtomicU64::new(
                bytes.saturating_sub((share.buffers(share.run_len(0)) * size_of::<R>()) as u64),
            ),
            job,
        })
    }

    /// A writer for one worker.
    pub fn writer(&self) -> SortWriter<'_, 'j, R> {
        let run_len = self.share.run_len(0);
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
    fn take(&self, bytes: u64) -> bool {
        let take = |free: u64| free.checked_sub(bytes);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes `bytes` from the free ones, and writes the oldest runs in memory to disk while there
    /// are too few. False if there are still too few.
    fn take_from_runs(&self, bytes: u64) -> Result<bool> {
        while !self.take(bytes) {
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
    fn place(&self, len: u64, parts: u64) -> (u64, u64) {
        let records = len * size_of::<R>() as u64;
        let offset = self.end.fetch_add(records + parts * Parts::<R>::BYTES, Ordering::Relaxed);
        (offset, offset + records)
    }

    fn append(&self, records: &[R], parts: &Parts<R>) -> Result<RunStorage<R>> {
        let bytes: &[u8] = bytemuck::cast_slice(records);
        let count = parts.len() as u64;
        let (offset, place) = self.place(records.len() as u64, count);
        for (index, part) in bytes.chunks(4 << 20).enumerate() {
            self.job.check()?;
            self.file.write_all_at(part, offset + (index as u64) * (4 << 20))?;
        }
        parts.write(&self.file, place, count, 0)?;
        tracing::info!(records = records.len(), bytes = bytes.len(), "spill");
        Ok(RunStorage::File { offset, parts: place })
    }

    /// Passes all records to `consume`, ascending, in batches. Sorts on the threads of `pool`;
    /// `consume` runs on one of them at a time, while the others may wait for it, so it must not
    /// use `pool`. The memory bound holds if the pool has as many threads as there were workers.
    pub fn merge<E: From<Error> + Send>(
        self,
        pool: &ThreadPool,
        mut consume: impl FnMut(&[R]) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let job = self.job;
        self.merge_in_stages(
            pool,
            |piece| piece.for_each_batch(job, &mut consume),
            |(), _| Ok(()),
            |()| Ok(()),
        )
    }

    /// Like [`Sorter::merge`], in three stages for each piece of the ordered stream: `first` runs
    /// in order; `middle` runs in parallel, at any time, with the result of `first`; `last` runs in
    /// order again. The first two stages see the same records. The cuts between pieces vary with
    /// workers and memory.
    pub fn merge_in_stages<T: Send, U: Send, E: From<Error> + Send>(
        mut self,
        pool: &ThreadPool,
        first: impl FnMut(Piece<'_, R>) -> Result<T, E> + Send,
        middle: impl Fn(T, &[R]) -> Result<U, E> + Sync,
        last: impl FnMut(U) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let piece_len = self.piece_len()?;
        while self.runs().len() > MAX_RUNS {
            self.merge_some_runs(piece_len, pool)?;
        }
        let runs = std::mem::take(&mut *self.runs());
        self.merge_runs(&runs, piece_len, pool, first, middle, last)
    }

    /// Records per piece: as many as memory allows, once the buffers are free.
    fn piece_len(&mut self) -> Result<usize> {
        let in_memory = |run: &SortedRun<R>| match &run.storage {
            // The whole capacity of a writer's last buffer is resident.
            RunStorage::Memory { records, parts } => {
                (records.capacity() * size_of::<R>()) as u64
                    + parts.len() as u64 * Parts::<R>::BYTES
            }
            RunStorage::File { .. } => 0,
        };
        let taken: u64 = self.runs().iter().map(in_memory).sum();
        *self.free.get_mut() = self.bytes.saturating_sub(taken);
        let len = self.share.piece_len(self.len());
        let pieces = self.share.pieces(len, self.runs().len());
        let fits = self.take_from_runs((pieces * size_of::<R>()) as u64)?;
        Ok(if fits { len } else { self.share.piece_len(0) })
    }

    /// Records pushed so far and sorted into runs.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// True if no record was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Merges just enough runs into a longer one to keep to [`MAX_RUNS`].
    fn merge_some_runs(&mut self, piece_len: usize, pool: &ThreadPool) -> Result<()> {
        let group: Vec<SortedRun<R>> = {
            let mut runs = self.runs();
            // The shortest runs, so that few records are merged twice; among equals, those on disk.
            runs.sort_by_key(|run| (run.len, matches!(run.storage, RunStorage::Memory { .. })));
            let more = runs.len() - MAX_RUNS;
            runs.drain(..MAX_RUNS.min(more + 1)).collect()
        };
        let len: u64 = group.iter().map(|run| run.len).sum();
        let part_len = self.share.part_len();
        let count = len.div_ceil(part_len as u64);
        let (offset, place) = self.place(len, count);
        let (mut end, mut parts) = (offset, PartsWriter::new(len, part_len, place));
        let mut write = |batch: &[R]| {
            let bytes: &[u8] = bytemuck::cast_slice(batch);
            self.file.write_all_at(bytes, end)?;
            end += bytes.len() as u64;
            parts.add(batch, &self.file)
        };
        let first = |piece: Piece<'_, R>| piece.for_each_batch(self.job, &mut write);
        self.merge_runs(&group, piece_len, pool, first, |(), _| Ok(()), |()| Ok(()))?;
        self.runs().push(SortedRun {
            storage: RunStorage::File { offset, parts: place },
            len,
            parts: count,
            shift: 0,
        });
        Ok(())
    }

    fn merge_runs<T: Send, U: Send, E: From<Error> + Send>(
        &self,
        runs: &[SortedRun<R>],
        piece_len: usize,
        pool: &ThreadPool,
        first: impl FnMut(Piece<'_, R>) -> Result<T, E> + Send,
        middle: impl Fn(T, &[R]) -> Result<U, E> + Sync,
        last: impl FnMut(U) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        // In flight: one piece per worker, and the buffer that sorts it.
        let plans = Mutex::new(Plans {
            planner: Planner::new(runs, piece_len, &self.file)?,
            ahead: VecDeque::new(),
            next: 0,
            most_repeats: piece_len,
        });
        let (first, last) = (InOrder::new(first), InOrder::new(last));
        let results = pool.broadcast(|_| {
            let _wake = (first.wake_on_panic(), last.wake_on_panic());
            let (mut records, mut buffer) = (Vec::new(), Vec::new());
            while let Some((index, plan)) = self.next_plan(&plans, runs, pool.current_num_threads())
            {
                let sorted = plan.and_then(|plan| {
                    self.job.check()?;
                    self.read_piece(runs, &plan, &mut records)?;
                    radix::sort(&mut records, &mut buffer);
                    Ok(plan)
                });
                let mut passed_on = None;
                let ours = first.pass(index, |first| -> Result<(), E> {
                    let Plan { low, repeats, .. } = sorted?;
                    let repeats = low.filter(|_| repeats > 0).map(|low| (low, repeats));
                    passed_on = Some(first(Piece { repeats, records: &mut records })?);
                    Ok(())
                });
                if !ours? {
                    return Ok(());
                }
                let result = passed_on.map(|passed_on| middle(passed_on, &records));
                if !last.pass(index, |last| result.map_or(Ok(()), |result| last(result?)))? {
                    return Ok(());
                }
            }
            Ok(())
        });
        results.into_iter().collect()
    }

    /// The next piece and its number. Also starts reading ahead the data of the following pieces,
    /// one per worker.
    fn next_plan(
        &self,
        plans: &Mutex<Plans<'_, R>>,
        runs: &[SortedRun<R>],
        workers: usize,
    ) -> Option<(usize, Result<Plan<R>>)> {
        let mut plans = plans.lock().unwrap_or_else(PoisonError::into_inner);
        while plans.ahead.len() <= workers
            && let Some(plan) = plans.planner.plan(&self.file).transpose()
        {
            if let Ok(plan) = &plan {
                self.start_reading(runs, plan);
            }
            plans.ahead.push_back(plan);
        }
        let plan = plans.pop()?;
        plans.next += 1;
        Some((plans.next - 1, plan))
    }

    /// Starts reading the data that [`Sorter::read_piece`] needs.
    fn start_reading(&self, runs: &[SortedRun<R>], plan: &Plan<R>) {
        let record = size_of::<R>() as u64;
        for (run, range) in &plan.reads {
            if let RunStorage::File { offset, .. } = runs[*run].storage {
                self.file.start_reading(
                    offset + range.start * record,
                    (range.end - range.start) * record,
                );
            }
        }
    }

    /// Reads the records of a piece, in no order.
    fn read_piece(&self, runs: &[SortedRun<R>], plan: &Plan<R>, piece: &mut Vec<R>) -> Result<()> {
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        piece.clear();
        piece.reserve_exact(plan.reads.iter().map(|(_, range)| length(range)).sum());
        advise_spare(piece);
        for (run, range) in &plan.reads {
            match &runs[*run].storage {
                RunStorage::Memory { records, .. } => {
                    piece.extend_from_slice(&records[range.start as usize..range.end as usize]);
                }
                RunStorage::File { offset, .. } => {
                    let at = piece.len();
                    piece.resize(at + length(range), R::zeroed());
                    let bytes = bytemuck::cast_slice_mut(&mut piece[at..]);
                    self.file.read_exact_at(bytes, offset + range.start * size_of::<R>() as u64)?;
                }
            }
        }
        if plan.others {
            let (low, high) = (plan.low, plan.high);
            piece.retain(|r| low.is_none_or(|low| *r >= low) && high.is_none_or(|high| *r < high));
        }
        Ok(())
    }
}

/// The pieces of a merge.
struct Plans<'r, R> {
    planner: Planner<'r, R>,
    /// Plans that no worker has taken, and the number of the first.
    ahead: VecDeque<Result<Plan<R>>>,
    next: usize,
    /// Limit of repeats per piece, because the results of the stages take memory, too.
    most_repeats: usize,
}

impl<R: Record> Plans<'_, R> {
    /// The first plan, or as many of its repeats as one piece may have.
    fn pop(&mut self) -> Option<Result<Plan<R>>> {
        if let Some(Ok(plan)) = self.ahead.front_mut()
            && plan.repeats > self.most_repeats
        {
            return Some(Ok(plan.split_repeats(self.most_repeats)));
        }
        self.ahead.pop_front()
    }
}

/// A part of the ordered stream.
pub struct Piece<'p, R> {
    /// A record, and the number of its repeats before `records`: at most the records of a piece.
    pub repeats: Option<(R, usize)>,
    /// The records after the repeats, ascending. The next stage sees the changes that a stage
    /// makes.
    pub records: &'p mut [R],
}

impl<R: Record> Piece<'_, R> {
    fn for_each_batch<E: From<Error>>(
        &self,
        job: &Job,
        consume: &mut impl FnMut(&[R]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some((record, mut count)) = self.repeats {
            let batch = vec![record; count.min(MIN_BUFFER)];
            while count > 0 {
                job.check()?;
                let now = count.min(batch.len());
                consume(&batch[..now])?;
                count -= now;
            }
        }
        consume(self.records)
    }
}

/// The writer of one worker to a [`Sorter`]. [`SortWriter::finish`] must be called.
pub struct SortWriter<'s, 'j, R> {
    sorter: &'s Sorter<'j, R>,
    /// Records that the buffer may hold before it becomes a run.
    run_len: usize,
    records: Vec<R>,
    buffer: Vec<R>,
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
        let storage = if self.sorter.take(parts.bytes_of_run(&self.records)) {
            RunStorage::Memory { records: std::mem::take(&mut self.records), parts }
        } else {
            let storage = self.sorter.append(&self.records, &parts)?;
            self.records.clear();
            storage
        };
        self.sorter.add(SortedRun { storage, len, parts: count, shift });
        let longer = self.sorter.share.run_len(self.sorter.len()).max(self.run_len);
        let more = 2 * (longer - self.run_len) * size_of::<R>();
        if self.sorter.take_from_runs(more as u64)? {
            self.run_len = longer;
        }
        renew(self.run_len, &mut self.records);
        Ok(())
    }

    fn split(&mut self) -> (Parts<R>, u32) {
        let (starts, shift) =
            radix::split(&mut self.records, &mut self.buffer, self.sorter.share.part_len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskFolder;
    use crate::sorter::share::SHARE_OF_RECORDS;

    fn mix(seed: u64) -> u64 {
        let z = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn sorted_through_disk(values: &[u64], workers: usize, bytes: u64) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
        let sorter = Sorter::new(&DiskFolder::new(folder.path()), bytes, workers, &job).unwrap();
        pool.broadcast(|worker| {
            let mut writer = sorter.writer();
            for value in values.iter().skip(worker.index()).step_by(workers) {
                writer.push(*value).unwrap();
            }
            writer.finish().unwrap();
        });
        let mut out = Vec::new();
        sorter
            .merge(&pool, |batch| {
                out.extend_from_slice(batch);
                Ok::<(), Error>(())
            })
            .unwrap();
        out
    }

    #[test]
    fn no_piece_has_more_repeats_than_a_piece_may_have_records() {
        let folder = tempfile::tempdir().unwrap();
        let (job, bytes) = (Job::new(), 1 << 20);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let mut sorter = Sorter::new(&DiskFolder::new(folder.path()), bytes, 2, &job).unwrap();
        let mut writer = sorter.writer();
        let values = [vec![3; 10], vec![7; 1 << 20], vec![9; 10]].concat();
        values.iter().for_each(|value| writer.push(*value).unwrap());
        writer.finish().unwrap();
        let most = sorter.piece_len().unwrap();
        let (mut merged, mut pieces) = (Vec::new(), 0);
        let first = |piece: Piece<'_, u64>| {
            let (value, count) = piece.repeats.unwrap_or((0, 0));
            assert!(count <= most, "{count} repeats where a piece has at most {most} records");
            pieces += usize::from(count > 0);
            merged.extend(std::iter::repeat_n(value, count));
            merged.extend_from_slice(piece.records);
            Ok::<_, Error>(())
        };
        sorter.merge_in_stages(&pool, first, |(), _| Ok(()), |()| Ok(())).unwrap();
        assert!(merged == values);
        assert!(pieces > 4, "{pieces}");
    }

    #[test]
    fn the_stream_is_sorted_at_any_worker_count_and_budget() {
        type Shape = fn(u64) -> u64;
        let shapes: [Shape; 5] =
            [mix, |i| mix(i) >> 40, |i| mix(i) % 3, |_| 7, |i| mix(i) & 0xFFFF_0000_0000_00FF];
        for shape in shapes {
            // More than MAX_RUNS runs with the smallest buffer, so that some runs are merged twice.
            let values: Vec<u64> = (0..700_000).map(shape).collect();
            let mut expected = values.clone();
            expected.sort_unstable();
            for (workers, bytes) in [(1, 1), (2, 1), (3, 1 << 20), (2, 1 << 30)] {
                assert!(
                    sorted_through_disk(&values, workers, bytes) == expected,
                    "{workers} workers, {bytes} bytes"
                );
            }
        }
    }

    fn sorting(records: u64, bytes: u64, workers: usize) -> Sorting {
        Sorting { records, record_bytes: 8, bytes, workers, writers: workers }
    }

    #[test]
    fn what_is_written_is_foreseen_and_little_more_than_what_does_not_fit() {
        for (records, bytes, workers) in [
            (200_000_u64, 1 << 30, 2),
            (1 << 20, 12 << 20, 1),
            (1 << 20, 9 << 20, 2),
            (1 << 20, 6 << 20, 2),
            (3 << 20, 4 << 20, 2),
        ] {
            let (folder, job) = (tempfile::tempdir().unwrap(), Job::new());
            let sorter =
                Sorter::<u64>::new(&DiskFolder::new(folder.path()), bytes, workers, &job).unwrap();
            let mut writers: Vec<_> = (0..workers).map(|_| sorter.writer()).collect();
            for i in 0..records {
                writers[i as usize % workers].push(mix(i)).unwrap();
            }
            writers.into_iter().for_each(|writer| writer.finish().unwrap());
            let (all, written) = (records * 8, sorter.end.load(Ordering::Relaxed));
            let foreseen = sorting(records, bytes, workers).forecast().disk;
            let off = written.abs_diff(foreseen);
            assert!(
                off <= foreseen / 20 + all / SHARE_OF_RECORDS,
                "{written} bytes, {foreseen} foreseen"
            );
            let is_on_disk = |run: &&SortedRun<u64>| matches!(run.storage, RunStorage::File { .. });
            let on_disk =
                sorter.runs().iter().filter(is_on_disk).map(|run| run.len * 8).sum::<u64>();
            let buffers =
                2 * workers as u64 * (all / SHARE_OF_RECORDS).min(sorter.share.longest as u64 * 8);
            let too_many = (all + buffers).saturating_sub(bytes);
            assert!(
                on_disk <= too_many + all / 10,
                "{on_disk} bytes on disk, {too_many} did not fit"
            );
        }
    }

    #[test]
    fn an_error_in_the_consumer_stops_the_merge_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let sorter = Sorter::<u64>::new(&DiskFolder::new(folder.path()), 1, 1, &job).unwrap();
        let mut writer = sorter.writer();
        (0..100_000).for_each(|i| writer.push(mix(i)).unwrap());
        writer.finish().unwrap();
        let mut calls = 0;
        let result = sorter.merge(&pool, |_| {
            calls += 1;
            if calls == 3 { Err(Error::corrupt("here", 0, "on purpose")) } else { Ok(()) }
        });
        assert!(matches!(result, Err(Error::Corrupt { .. })));
        assert_eq!(calls, 3);
    }

    #[test]
    fn cancelling_ends_the_merge() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let sorter = Sorter::<u64>::new(&DiskFolder::new(folder.path()), 1, 1, &job).unwrap();
        let mut writer = sorter.writer();
        writer.push(1).unwrap();
        writer.finish().unwrap();
        job.cancel();
        assert!(matches!(sorter.merge(&pool, |_| Ok(())), Err(Error::Interrupted)));
    }
}
