//! The external sorter: records in any order in, one ordered stream out, within a budget.
//!
//! Workers push into buffers of their own; a full buffer is split into a *run*: parts in ascending
//! order, unsorted within. A run stays in memory while there is room and else is appended to one
//! scratch file. Merging cuts the key range into pieces small enough for memory, sorts each piece on one
//! of the workers and hands the pieces to a single consumer in ascending order. Splitting and then
//! sorting once costs little more than half of sorting twice. Invariant: the consumer sees the same
//! sequence whatever the number of workers, runs and pieces.

mod run;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use rayon::ThreadPool;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::huge::advise_spare;
use crate::in_order::InOrder;
use crate::job::Job;
use crate::radix;
use crate::sorter::run::{Home, Run, ends_of};

/// A fixed-size record with a total order; records that compare equal are equal in every byte.
pub trait Record: Pod + Ord + Send + Sync {
    /// A number that never decreases along the order: the leading part of the key.
    fn radix(&self) -> u64;
    /// True if equal `radix` means equal records.
    const RADIX_IS_WHOLE: bool;
}

impl Record for u64 {
    const RADIX_IS_WHOLE: bool = true;
    fn radix(&self) -> u64 {
        *self
    }
}

/// Sorts what is in memory by radix; `room` grows to the size of `records`.
pub fn sort_in_memory<R: Record>(records: &mut Vec<R>, room: &mut Vec<R>) {
    radix::sort_many(records, room);
}

/// Most runs merged at once; more are first merged into longer ones.
const MAX_RUNS: usize = 128;
/// Largest piece in records: a piece of 8-byte records and the room to sort it fit a cache of 2 MiB.
const MAX_PIECE: usize = 1 << 17;
/// Most records a buffer may hold: sorting it must not delay a cancellation either.
pub const MAX_BUFFER: usize = 1 << 23;
/// Most records of a part of a run, in small and in large buffers. A cut divides a part of each run, whose
/// records are read for both its sides.
const MIN_PART: usize = 1 << 7;
const MAX_PART: usize = 1 << 12;
/// Fewest records a buffer may hold.
const MIN_BUFFER: usize = 1 << 12;

/// Bytes that sorting needs at least with `workers` workers and records of `record_bytes` bytes.
pub fn minimum_bytes(workers: usize, record_bytes: usize) -> u64 {
    // Below this the file would be read in too many too small parts.
    (workers as u64) * 2 * (record_bytes as u64) * (64 << 10)
}

/// Sorts more records than fit in memory.
pub struct Sorter<'j, R> {
    file: StoreFile,
    end: AtomicU64,
    runs: Mutex<Vec<Run<R>>>,
    buffer_len: usize,
    /// Bytes that runs may still take in memory.
    room_for_runs: AtomicU64,
    /// Most records of a part.
    part_len: usize,
    job: &'j Job,
}

impl<'j, R: Record> Sorter<'j, R> {
    /// A sorter that uses at most `bytes` of memory with up to `workers` writers at once, and a
    /// scratch file in `folder`. The caller has reserved the bytes.
    ///
    /// Below [`minimum_bytes`] it may use more. On top comes an index: two records and 8 bytes for every
    /// part of a run, which has some thousand records where keys are spread evenly.
    pub fn new(folder: &dyn Folder, bytes: u64, workers: usize, job: &'j Job) -> Result<Self> {
        let per_worker = usize::try_from(bytes).unwrap_or(usize::MAX) / workers.max(1);
        // Half of it is the room that sorting, and later merging, needs beside the records.
        let buffer_len = (per_worker / 2 / size_of::<R>()).clamp(MIN_BUFFER, MAX_BUFFER);
        let buffers = (workers.max(1) * 2 * buffer_len * size_of::<R>()) as u64;
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?,
            end: AtomicU64::new(0),
            runs: Mutex::new(Vec::new()),
            buffer_len,
            room_for_runs: AtomicU64::new(bytes.saturating_sub(buffers)),
            part_len: (buffer_len / 2048).clamp(MIN_PART, MAX_PART),
            job,
        })
    }

    /// A writer for one worker.
    pub fn writer(&self) -> SortWriter<'_, 'j, R> {
        SortWriter { sorter: self, records: Vec::new(), room: Vec::new() }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Run<R>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the memory of one full run, if there is any left.
    fn has_room_for_run(&self) -> bool {
        let bytes = (self.buffer_len * size_of::<R>()) as u64;
        let take = |left: u64| left.checked_sub(bytes);
        self.room_for_runs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn append(&self, records: &[R]) -> Result<u64> {
        let bytes: &[u8] = bytemuck::cast_slice(records);
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        for (index, part) in bytes.chunks(4 << 20).enumerate() {
            self.job.check()?;
            self.file.write_all_at(part, offset + (index as u64) * (4 << 20))?;
        }
        tracing::info!(records = records.len(), bytes = bytes.len(), "spill");
        Ok(offset)
    }

    /// Hands all records to `consume`, ascending, in batches. Uses the threads of `pool` to sort;
    /// `consume` runs on one of them at a time, while the others wait for it: it must not use `pool`.
    /// The memory bound holds for a pool of as many threads as there were workers.
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

    /// Like [`Sorter::merge`], in three stages for each piece of the ordered stream: `first` in order,
    /// `middle` at any time and in parallel, with what `first` returned, and `last` in order again.
    /// The first two see the same records; where the key range was cut, and so what a piece is, varies
    /// with workers and memory.
    pub fn merge_in_stages<T: Send, U: Send, E: From<Error> + Send>(
        mut self,
        pool: &ThreadPool,
        first: impl FnMut(Piece<'_, R>) -> Result<T, E> + Send,
        middle: impl Fn(T, &[R]) -> Result<U, E> + Sync,
        last: impl FnMut(U) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        while self.runs().len() > MAX_RUNS {
            self.merge_some_runs(pool)?;
        }
        let runs = std::mem::take(&mut *self.runs());
        self.merge_runs(&runs, pool, first, middle, last)
    }

    /// Records pushed so far and sorted into runs.
    pub fn len(&self) -> u64 {
        self.runs().iter().map(Run::len).sum()
    }

    /// True if no record was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn merge_some_runs(&mut self, pool: &ThreadPool) -> Result<()> {
        let group: Vec<Run<R>> = {
            let mut runs = self.runs();
            // What is on disk already goes first.
            runs.sort_by_key(|run| matches!(run.home, Home::Memory(_)));
            runs.drain(..MAX_RUNS).collect()
        };
        let len: u64 = group.iter().map(Run::len).sum();
        let offset = self.end.fetch_add(len * size_of::<R>() as u64, Ordering::Relaxed);
        let (mut written, mut starts, mut least, mut greatest) = (0, Vec::new(), Vec::new(), Vec::new());
        let mut write = |batch: &[R]| {
            let end = written + batch.len() as u64;
            starts.extend((written..end).step_by(self.part_len));
            let parts = || batch.chunks(self.part_len);
            least.extend(parts().filter_map(|part| part.first()));
            greatest.extend(parts().filter_map(|part| part.last()));
            self.file.write_all_at(bytemuck::cast_slice(batch), offset + written * size_of::<R>() as u64)?;
            written = end;
            Ok::<(), Error>(())
        };
        let first = |piece: Piece<'_, R>| piece.for_each_batch(self.job, &mut write);
        self.merge_runs(&group, pool, first, |(), _| Ok(()), |()| Ok(()))?;
        starts.push(written);
        self.runs().push(Run { home: Home::File { offset }, starts, least, greatest, shift: 0 });
        Ok(())
    }

    fn merge_runs<T: Send, U: Send, E: From<Error> + Send>(
        &self,
        runs: &[Run<R>],
        pool: &ThreadPool,
        first: impl FnMut(Piece<'_, R>) -> Result<T, E> + Send,
        middle: impl Fn(T, &[R]) -> Result<U, E> + Sync,
        last: impl FnMut(U) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let cuts = self.cut(runs);
        let (first, last) = (InOrder::new(first), InOrder::new(last));
        let next = AtomicUsize::new(0);
        let results = pool.broadcast(|_| {
            let _wake = (first.wake_on_panic(), last.wake_on_panic());
            let (mut records, mut room) = (Vec::new(), Vec::new());
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index > cuts.len() {
                    return Ok(());
                }
                let low = index.checked_sub(1).map(|below| cuts[below]);
                let ahead = index + pool.current_num_threads();
                if ahead <= cuts.len() {
                    self.start_reading(runs, Some(cuts[ahead - 1]), cuts.get(ahead).copied());
                }
                let sorted = self
                    .job
                    .check()
                    .and_then(|()| self.read_piece(runs, low, cuts.get(index).copied(), &mut records))
                    .inspect(|_| radix::sort(&mut records, &mut room));
                let mut passed_on = None;
                let ours = first.pass(index, |first| -> Result<(), E> {
                    let count = sorted?;
                    let repeats = low.filter(|_| count > 0).map(|low| (low, count));
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
        });
        results.into_iter().collect()
    }

    /// Splitters between pieces: piece i holds the records in [cuts[i-1], cuts[i]).
    fn cut(&self, runs: &[Run<R>]) -> Vec<R> {
        let parts = |run: &Run<R>| {
            let lengths = run.starts.windows(2).map(|part| part[1] - part[0]);
            run.least.iter().copied().zip(lengths).collect::<Vec<_>>()
        };
        let mut parts: Vec<(R, u64)> = runs.iter().flat_map(parts).collect();
        parts.sort_unstable_by_key(|part| part.0);
        let shift = runs.iter().map(|run| run.shift).max().unwrap_or(0);
        // In flight: one piece a worker, and its room for sorting, within the writers' room.
        let target = (self.buffer_len / 2).min(MAX_PIECE) as u64;
        let (mut cuts, mut records, mut last) = (Vec::new(), 0, None);
        for (record, length) in parts {
            // The first part of a digit is a cut that divides no part of any run. Where a digit has more
            // than a piece any cut must do, and the parts it divides are read for both sides.
            let new_digit = last.is_some_and(|last: R| (last.radix() ^ record.radix()) >> shift != 0);
            if records >= target / 2 && (new_digit || records >= target) {
                cuts.push(record);
                records = 0;
            }
            records += length;
            last = Some(record);
        }
        cuts.dedup();
        cuts
    }

    /// Starts reading what [`Sorter::read_piece`] will.
    fn start_reading(&self, runs: &[Run<R>], low: Option<R>, high: Option<R>) {
        let record = size_of::<R>() as u64;
        for run in runs {
            if let Home::File { offset } = run.home {
                let (from, to, _) = run.bracket(low, high);
                self.file.start_reading(offset + from * record, (to - from) * record);
            }
        }
    }

    /// Reads the records in [low, high), in no order. Long repeats of `low` are not read, as no cut
    /// could divide them and no memory need hold them; their count is returned.
    fn read_piece(
        &self,
        runs: &[Run<R>],
        low: Option<R>,
        high: Option<R>,
        piece: &mut Vec<R>,
    ) -> Result<usize> {
        piece.clear();
        let (mut repeats, mut others) = (0, false);
        let parts = runs.iter().map(|run| {
            let (from, to, more) = run.bracket(low, high);
            others |= more;
            let (skip, resume) = low.map_or((from, from), |low| run.repeats(low));
            if skip < resume { [from..skip, resume..to] } else { [from..to, to..to] }
        });
        let parts: Vec<_> = parts.collect();
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        piece.reserve_exact(parts.iter().flatten().map(length).sum());
        advise_spare(piece);
        for (run, [before, after]) in runs.iter().zip(parts) {
            repeats += (after.start - before.end) as usize;
            for range in [before, after] {
                match &run.home {
                    Home::Memory(records) => {
                        piece.extend_from_slice(&records[range.start as usize..range.end as usize]);
                    }
                    Home::File { offset } => {
                        let at = piece.len();
                        piece.resize(at + length(&range), R::zeroed());
                        let bytes = bytemuck::cast_slice_mut(&mut piece[at..]);
                        self.file.read_exact_at(bytes, offset + range.start * size_of::<R>() as u64)?;
                    }
                }
            }
        }
        if others {
            piece.retain(|r| low.is_none_or(|low| *r >= low) && high.is_none_or(|high| *r < high));
        }
        Ok(repeats)
    }
}

/// A part of the ordered stream.
pub struct Piece<'p, R> {
    /// A record and how often it comes before the others: so many repeats of one are not materialised.
    pub repeats: Option<(R, usize)>,
    /// The records after that, ascending. What is written to them the next stage reads.
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

/// One worker's end of a [`Sorter`]. [`SortWriter::finish`] must be called.
pub struct SortWriter<'s, 'j, R> {
    sorter: &'s Sorter<'j, R>,
    records: Vec<R>,
    room: Vec<R>,
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

    /// Grows the buffer while it is small, makes a run of it once it has its full size.
    #[cold]
    fn make_room(&mut self) -> Result<()> {
        let full = self.sorter.buffer_len;
        if self.records.len() < full {
            let more = self.records.len().max(MIN_BUFFER).min(full - self.records.len());
            self.records.reserve_exact(more);
            advise_spare(&mut self.records);
            return Ok(());
        }
        self.sorter.job.check()?;
        let (starts, shift) = radix::split(&mut self.records, &mut self.room, self.sorter.part_len);
        let (least, greatest) = ends_of(&self.records, &starts);
        let home = if self.sorter.has_room_for_run() {
            let mut fresh = Vec::with_capacity(full);
            advise_spare(&mut fresh);
            Home::Memory(std::mem::replace(&mut self.records, fresh))
        } else {
            let offset = self.sorter.append(&self.records)?;
            self.records.clear();
            Home::File { offset }
        };
        self.sorter.runs().push(Run { home, starts, least, greatest, shift });
        Ok(())
    }

    /// Splits what is left into a run that stays in memory.
    pub fn finish(mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let (starts, shift) = radix::split(&mut self.records, &mut self.room, self.sorter.part_len);
        let (least, greatest) = ends_of(&self.records, &starts);
        let home = Home::Memory(std::mem::take(&mut self.records));
        self.sorter.runs().push(Run { home, starts, least, greatest, shift });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskFolder;

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
    fn the_stream_is_sorted_at_any_worker_count_and_budget() {
        type Shape = fn(u64) -> u64;
        let shapes: [Shape; 5] =
            [mix, |i| mix(i) >> 40, |i| mix(i) % 3, |_| 7, |i| mix(i) & 0xFFFF_0000_0000_00FF];
        for shape in shapes {
            // More than MAX_RUNS runs at the smallest buffer, so that runs are merged twice.
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
