//! The external sorter: records in any order in, one ordered stream out, within a budget.
//!
//! Workers push into buffers of their own; a full buffer is sorted into a *run*, which stays in memory
//! while there is room and else is appended to one scratch file. Merging cuts the key range into pieces small enough for memory, sorts each piece on
//! one of the workers and hands the pieces to a single consumer in ascending order. Invariant: the
//! consumer sees the same sequence whatever the number of workers, runs and pieces.

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

/// Most runs merged at once; more are first merged into longer ones.
const MAX_RUNS: usize = 128;
/// Largest piece in records: a piece is sorted near the cache and must not delay a cancellation.
const MAX_PIECE: usize = 1 << 20;
/// Most records a buffer may hold: sorting it must not delay a cancellation either.
const MAX_BUFFER: usize = 1 << 23;
/// Fewest records a buffer may hold.
const MIN_BUFFER: usize = 1 << 12;

/// Bytes that sorting needs at least with `workers` workers and records of `record_bytes` bytes.
pub fn minimum_bytes(workers: usize, record_bytes: usize) -> u64 {
    // Below this the file would be read in too many too small parts.
    (workers as u64) * 2 * (record_bytes as u64) * (64 << 10)
}

enum Home<R> {
    Memory(Vec<R>),
    File { offset: u64, len: usize },
}

/// A sorted sequence with every `stride`-th record kept as an index.
struct Run<R> {
    home: Home<R>,
    samples: Vec<R>,
}

impl<R: Record> Run<R> {
    fn len(&self) -> usize {
        match &self.home {
            Home::Memory(records) => records.len(),
            Home::File { len, .. } => *len,
        }
    }

    /// A range of positions that covers the records in [low, high); its ends overlap by at most a
    /// stride each.
    fn bracket(&self, low: Option<R>, high: Option<R>, stride: usize) -> (usize, usize) {
        let below = |bound: R| self.samples.partition_point(|s| *s < bound);
        let from = low.map_or(0, |low| below(low).saturating_sub(1) * stride);
        let to = high.map_or(self.len(), |high| (below(high) * stride).min(self.len()));
        (from.min(to), to)
    }

    /// A range of positions known to hold nothing but `value`: between its first and last sample.
    fn repeats(&self, value: R, stride: usize) -> (usize, usize) {
        let first = self.samples.partition_point(|s| *s < value);
        let last = self.samples.partition_point(|s| *s <= value).saturating_sub(1);
        (first * stride, first.max(last) * stride)
    }
}

fn samples_of<R: Record>(sorted: &[R], stride: usize) -> Vec<R> {
    sorted.iter().step_by(stride).copied().collect()
}

/// Sorts more records than fit in memory.
pub struct Sorter<'j, R> {
    file: StoreFile,
    end: AtomicU64,
    runs: Mutex<Vec<Run<R>>>,
    buffer_len: usize,
    /// Bytes that runs may still take in memory.
    room_for_runs: AtomicU64,
    stride: usize,
    job: &'j Job,
}

impl<'j, R: Record> Sorter<'j, R> {
    /// A sorter that uses at most `bytes` of memory with up to `workers` writers at once, and a
    /// scratch file in `folder`. The caller has reserved the bytes.
    ///
    /// Below [`minimum_bytes`] it may use more. On top comes an index, twice while it is cut: one
    /// record in 64 at that minimum, falling to one in 4,096 from 64 times as much on.
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
            stride: (buffer_len / 1024).clamp(64, 4096),
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
        Ok(offset)
    }

    /// Hands all records to `consume`, ascending, in batches. Uses the threads of `pool` to sort;
    /// `consume` runs on one of them at a time, while the others wait for it: it must not use `pool`.
    /// The memory bound holds for a pool of as many threads as there were workers.
    pub fn merge<E: From<Error> + Send>(
        mut self,
        pool: &ThreadPool,
        consume: impl FnMut(&[R]) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        while self.runs().len() > MAX_RUNS {
            self.merge_some_runs(pool)?;
        }
        let runs = std::mem::take(&mut *self.runs());
        self.merge_runs(&runs, pool, consume)
    }

    /// Records pushed so far and sorted into runs.
    pub fn len(&self) -> u64 {
        self.runs().iter().map(|run| run.len() as u64).sum()
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
        let len: usize = group.iter().map(Run::len).sum();
        let offset = self.end.fetch_add((len * size_of::<R>()) as u64, Ordering::Relaxed);
        let (mut written, mut samples) = (0_usize, Vec::new());
        self.merge_runs(&group, pool, |batch| {
            let first = written.next_multiple_of(self.stride) - written;
            samples.extend(batch.iter().skip(first).step_by(self.stride));
            self.file
                .write_all_at(bytemuck::cast_slice(batch), offset + (written * size_of::<R>()) as u64)?;
            written += batch.len();
            Ok::<(), Error>(())
        })?;
        self.runs().push(Run { home: Home::File { offset, len }, samples });
        Ok(())
    }

    fn merge_runs<E: From<Error> + Send>(
        &self,
        runs: &[Run<R>],
        pool: &ThreadPool,
        consume: impl FnMut(&[R]) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let cuts = self.cut(runs);
        let order = InOrder::new(consume);
        let next = AtomicUsize::new(0);
        let results = pool.broadcast(|_| {
            let _wake = order.wake_on_panic();
            let (mut piece, mut room) = (Vec::new(), Vec::new());
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index > cuts.len() {
                    return Ok(());
                }
                let low = index.checked_sub(1).map(|below| cuts[below]);
                let sorted = self
                    .job
                    .check()
                    .and_then(|()| self.read_piece(runs, low, cuts.get(index).copied(), &mut piece))
                    .inspect(|_| sort(&mut piece, &mut room));
                let ours = order.pass(index, |consume| {
                    self.repeat(low, sorted?, consume)?;
                    consume(&piece)
                });
                if !ours? {
                    return Ok(());
                }
            }
        });
        results.into_iter().collect()
    }

    /// Splitters between pieces: piece i holds the records in [cuts[i-1], cuts[i]).
    fn cut(&self, runs: &[Run<R>]) -> Vec<R> {
        let mut samples: Vec<R> = runs.iter().flat_map(|run| run.samples.iter().copied()).collect();
        samples.sort_unstable();
        // In flight: one piece a worker, and its room for sorting, within the writers' room.
        let target = (self.buffer_len / 2).min(MAX_PIECE);
        let overlap = 2 * self.stride * runs.len();
        let per_piece = (target.saturating_sub(overlap).max(target / 4) / self.stride).max(1);
        let mut cuts: Vec<R> = samples.into_iter().step_by(per_piece).skip(1).collect();
        cuts.dedup();
        cuts
    }

    /// Hands `count` copies of `record` to `consume`.
    fn repeat<E: From<Error>>(
        &self,
        record: Option<R>,
        mut count: usize,
        consume: &mut impl FnMut(&[R]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(record) = record.filter(|_| count > 0) else {
            return Ok(());
        };
        let batch = vec![record; count.min(MIN_BUFFER)];
        while count > 0 {
            self.job.check()?;
            let now = count.min(batch.len());
            consume(&batch[..now])?;
            count -= now;
        }
        Ok(())
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
        let mut repeats = 0;
        let parts = runs.iter().map(|run| {
            let (from, to) = run.bracket(low, high, self.stride);
            let (skip, resume) = low.map_or((from, from), |low| run.repeats(low, self.stride));
            if skip < resume { (from..skip, resume..to) } else { (from..to, to..to) }
        });
        let parts: Vec<_> = parts.collect();
        piece.reserve_exact(parts.iter().map(|(a, b)| a.len() + b.len()).sum());
        advise_spare(piece);
        for (run, (before, after)) in runs.iter().zip(parts) {
            let start = piece.len();
            repeats += after.start - before.end;
            for part in [before, after] {
                match &run.home {
                    Home::Memory(records) => piece.extend_from_slice(&records[part]),
                    Home::File { offset, .. } => {
                        let at = piece.len();
                        piece.resize(at + part.len(), R::zeroed());
                        let bytes = bytemuck::cast_slice_mut(&mut piece[at..]);
                        self.file.read_exact_at(bytes, offset + (part.start * size_of::<R>()) as u64)?;
                    }
                }
            }
            let read = &piece[start..];
            let begin = low.map_or(0, |low| read.partition_point(|r| *r < low));
            let end = high.map_or(read.len(), |high| read.partition_point(|r| *r < high));
            piece.truncate(start + end.max(begin));
            piece.drain(start..start + begin);
        }
        Ok(repeats)
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

    /// Grows the buffer while it is small, writes a run once it has its full size.
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
        sort(&mut self.records, &mut self.room);
        let samples = samples_of(&self.records, self.sorter.stride);
        let home = if self.sorter.has_room_for_run() {
            let mut fresh = Vec::with_capacity(full);
            advise_spare(&mut fresh);
            Home::Memory(std::mem::replace(&mut self.records, fresh))
        } else {
            let offset = self.sorter.append(&self.records)?;
            self.records.clear();
            Home::File { offset, len: full }
        };
        self.sorter.runs().push(Run { home, samples });
        Ok(())
    }

    /// Sorts what is left into a run that stays in memory.
    pub fn finish(mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        sort(&mut self.records, &mut self.room);
        let records = std::mem::take(&mut self.records);
        let samples = samples_of(&records, self.sorter.stride);
        self.sorter.runs().push(Run { home: Home::Memory(records), samples });
        Ok(())
    }
}

/// Bits per digit of the first, partitioning pass and of the passes within the cache.
const TOP_BITS: u32 = 10;
const LOW_BITS: u32 = 11;
/// Below this many records a comparison sort is faster.
const SMALL: usize = 1 << 10;

/// Sorts in memory: one partition by the leading digit that varies, then least-significant-digit
/// passes inside each part, which fits the cache. `room` grows to the size of `records`.
pub fn sort<R: Record>(records: &mut [R], room: &mut Vec<R>) {
    if records.len() < SMALL {
        return records.sort_unstable();
    }
    // Exactly: growth by doubling would go beyond the sorter's bound.
    room.reserve_exact(records.len().saturating_sub(room.len()));
    advise_spare(room);
    room.resize(room.len().max(records.len()), R::zeroed());
    let room = &mut room[..records.len()];
    let varying = varying_bits(records);
    let bits = u64::BITS - varying.leading_zeros();
    let shift = bits.saturating_sub(TOP_BITS);
    let digit = |r: &R| (r.radix() >> shift) as usize & ((1 << TOP_BITS) - 1);
    let mut starts = [0_usize; (1 << TOP_BITS) + 1];
    for record in records.iter() {
        starts[digit(record) + 1] += 1;
    }
    for i in 0..1 << TOP_BITS {
        starts[i + 1] += starts[i];
    }
    let mut next = starts;
    for &record in records.iter() {
        let at = &mut next[digit(&record)];
        room[*at] = record;
        *at += 1;
    }
    for part in starts.windows(2) {
        let (from, to) = (part[0], part[1]);
        sort_part(&mut room[from..to], &mut records[from..to], shift);
    }
}

/// Sorts `source` by the low `bits` bits (the higher ones are equal) into `target`.
fn sort_part<R: Record>(source: &mut [R], target: &mut [R], bits: u32) {
    if source.len() < SMALL {
        source.sort_unstable();
        return target.copy_from_slice(source);
    }
    let varying = varying_bits(source) & (1_u64 << bits).wrapping_sub(1);
    let low = varying.trailing_zeros().min(bits);
    let mut in_source = true;
    let mut shift = low;
    while shift < bits {
        let width = LOW_BITS.min(bits - shift);
        if varying >> shift & ((1 << width) - 1) != 0 {
            let (from, to) =
                if in_source { (&mut *source, &mut *target) } else { (&mut *target, &mut *source) };
            scatter(from, to, shift, width);
            in_source = !in_source;
        }
        shift += width;
    }
    if in_source {
        target.copy_from_slice(source);
    }
    if !R::RADIX_IS_WHOLE {
        for equal in target.chunk_by_mut(|a, b| a.radix() == b.radix()) {
            equal.sort_unstable();
        }
    }
}

fn scatter<R: Record>(from: &[R], to: &mut [R], shift: u32, width: u32) {
    let mask = (1_usize << width) - 1;
    let mut next = [0_u32; 1 << LOW_BITS];
    for record in from {
        next[(record.radix() >> shift) as usize & mask] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    for &record in from {
        let slot = &mut next[(record.radix() >> shift) as usize & mask];
        to[*slot as usize] = record;
        *slot += 1;
    }
}

fn varying_bits<R: Record>(records: &[R]) -> u64 {
    let first = records.first().map_or(0, Record::radix);
    records.iter().fold(0, |bits, r| bits | (r.radix() ^ first))
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
