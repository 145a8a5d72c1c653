//! The merge of sorted runs: pieces of the key range, sorted on all threads, passed on in order.
//!
//! Invariant: a worker has at most one piece and the buffer that sorts it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;

use super::Sorter;
use super::memory_plan::{MAX_RUNS, MIN_BUFFER};
use super::plan::{Plan, Planner};
use super::run::{Parts, PartsWriter, RunStorage, SortedRun};
use crate::error::{Error, Result};
use crate::huge::advise_spare;
use crate::in_order::InOrder;
use crate::job::Job;
use crate::memory::release_free_memory;
use crate::radix::{self, Record};
use crate::resources::broadcast;

impl<R: Record> Sorter<'_, R> {
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
        let merged = self.merge_runs(&runs, piece_len, pool, first, middle, last);
        drop(runs);
        // Runs and pieces of a small sorter are too small for blocks of their own.
        release_free_memory();
        merged
    }

    /// Records per piece: as many as memory allows, once the buffers are free.
    pub(super) fn piece_len(&mut self) -> Result<usize> {
        let in_memory = |run: &SortedRun<R>| match &run.storage {
            // The whole capacity of a writer's last buffer is resident.
            RunStorage::Memory { records, parts } => {
                (records.capacity() * size_of::<R>()) as u64
                    + parts.len() as u64 * Parts::<R>::BYTES
            }
            RunStorage::File { .. } => 0,
        };
        let in_use: u64 = self.runs().iter().map(in_memory).sum();
        *self.free.get_mut() = self.bytes.saturating_sub(in_use);
        let len = self.plan.piece_len(self.len());
        let pieces = self.plan.pieces(len, self.runs().len());
        let fits = self.take_from_runs((pieces * size_of::<R>()) as u64)?;
        Ok(if fits { len } else { self.plan.piece_len(0) })
    }

    /// Merges just enough runs into a longer one to keep to [`MAX_RUNS`].
    fn merge_some_runs(&mut self, piece_len: usize, pool: &ThreadPool) -> Result<()> {
        let group: Vec<SortedRun<R>> = {
            let mut runs = self.runs();
            // Takes the shortest runs, so that few records are merged twice; among equals, those on
            // disk.
            runs.sort_by_key(|run| (run.len, matches!(run.storage, RunStorage::Memory { .. })));
            let excess = runs.len() - MAX_RUNS;
            runs.drain(..MAX_RUNS.min(excess + 1)).collect()
        };
        let len: u64 = group.iter().map(|run| run.len).sum();
        let part_len = self.plan.part_len();
        let count = len.div_ceil(part_len as u64);
        let (offset, parts_offset) = self.reserve_on_disk(len, count);
        let (mut end, mut parts) = (offset, PartsWriter::new(len, part_len, parts_offset));
        let mut write = |batch: &[R]| {
            let bytes: &[u8] = bytemuck::cast_slice(batch);
            self.file.write_all_at(bytes, end)?;
            end += bytes.len() as u64;
            parts.add(batch, &self.file)
        };
        let first = |piece: Piece<'_, R>| piece.for_each_batch(self.job, &mut write);
        self.merge_runs(&group, piece_len, pool, first, |(), _| Ok(()), |()| Ok(()))?;
        self.runs().push(SortedRun {
            storage: RunStorage::File { offset, parts: parts_offset },
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
            waiting: VecDeque::new(),
            next: 0,
            max_repeats: piece_len,
        });
        let (first, last) = (InOrder::new(first), InOrder::new(last));
        let results = broadcast(pool, |_| {
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
        while plans.waiting.len() <= workers
            && let Some(plan) = plans.planner.next_plan(&self.file).transpose()
        {
            if let Ok(plan) = &plan {
                self.start_reading(runs, plan);
            }
            plans.waiting.push_back(plan);
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
        if plan.needs_filter {
            let (low, high) = (plan.low, plan.high);
            piece.retain(|r| low.is_none_or(|low| *r >= low) && high.is_none_or(|high| *r < high));
        }
        Ok(())
    }
}

/// The pieces of a merge.
struct Plans<'r, R> {
    planner: Planner<'r, R>,
    /// Plans that no worker has taken.
    waiting: VecDeque<Result<Plan<R>>>,
    /// The number of the next piece that a worker takes.
    next: usize,
    /// The maximum number of repeats per piece, because the results of the stages take memory, too.
    max_repeats: usize,
}

impl<R: Record> Plans<'_, R> {
    /// The first plan, or as many of its repeats as one piece may have.
    fn pop(&mut self) -> Option<Result<Plan<R>>> {
        if let Some(Ok(plan)) = self.waiting.front_mut()
            && plan.repeats > self.max_repeats
        {
            return Some(Ok(plan.split_repeats(self.max_repeats)));
        }
        self.waiting.pop_front()
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
