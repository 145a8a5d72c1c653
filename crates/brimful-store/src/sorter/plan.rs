//! Plans the pieces of the merged stream during the merge.
//!
//! The planner walks the parts of all runs once, in ascending order of their least records. At most
//! one window of bounds per run is in memory. Invariant: every record is in exactly one piece, and
//! pieces ascend.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::error::Result;
use crate::file::StoreFile;
use crate::sorter::Record;
use crate::sorter::run::{Parts, RunStorage, SortedRun};

/// Parts per window of a run on disk.
const WINDOW: u64 = 64;

/// The sources of a piece: the records in [low, high) of some ranges.
pub(super) struct Plan<R> {
    pub(super) low: Option<R>,
    pub(super) high: Option<R>,
    /// Occurrences of `low` that are not read: no cut could divide them, and they need no memory.
    pub(super) repeats: usize,
    /// Pairs of a run and a range of its records.
    pub(super) reads: Vec<(usize, Range<u64>)>,
    /// True if the ranges contain records outside [low, high).
    pub(super) needs_filter: bool,
}

impl<R: Record> Plan<R> {
    /// Splits off `count` of the repeats as a plan that precedes this one.
    pub(super) fn split_repeats(&mut self, count: usize) -> Self {
        self.repeats -= count;
        Self {
            low: self.low,
            high: self.low,
            repeats: count,
            reads: Vec::new(),
            needs_filter: false,
        }
    }
}

/// Plans pieces in ascending order.
pub(super) struct Planner<'r, R> {
    walks: Vec<Walk<'r, R>>,
    /// The least record of the next part of each run.
    heads: BinaryHeap<Reverse<(R, usize)>>,
    /// Target number of records per piece.
    target: u64,
    /// The lowest radix bit of the first digit of any run.
    shift: u32,
    /// The least record of the next piece; `None`: the first piece has no bound.
    low: Option<R>,
    finished: bool,
}

impl<'r, R: Record> Planner<'r, R> {
    pub(super) fn new(runs: &'r [SortedRun<R>], target: usize, file: &StoreFile) -> Result<Self> {
        let mut walks: Vec<_> = runs.iter().map(Walk::new).collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (run, walk) in walks.iter_mut().enumerate() {
            heads.extend(walk.next_least(file)?.map(|least| Reverse((least, run))));
        }
        let shift = runs.iter().map(|run| run.shift).max().unwrap_or(0);
        Ok(Self { walks, heads, target: target as u64, shift, low: None, finished: false })
    }

    /// The next piece.
    pub(super) fn next_plan(&mut self, file: &StoreFile) -> Result<Option<Plan<R>>> {
        if self.finished {
            return Ok(None);
        }
        // If an error occurs below, there is no next piece.
        self.finished = true;
        let low = self.low;
        let mut plan = Plan { low, high: None, repeats: 0, reads: Vec::new(), needs_filter: false };
        for (run, walk) in self.walks.iter_mut().enumerate() {
            walk.range = None;
            if let Some(range) = low.and_then(|low| walk.divided_by(low)) {
                plan.needs_filter = true;
                walk.read(run, range, &mut plan.reads);
            }
        }
        // Records to read, and those in parts with the same least record as the last part.
        let (mut records, mut least_repeats, mut last_least) = (0, 0, None);
        while let Some(&Reverse((least, run))) = self.heads.peek() {
            if last_least == Some(least) {
                // A frequent value should begin a piece.
                if least_repeats > self.target / 4 && low != Some(least) {
                    plan.high = Some(least);
                    break;
                }
            } else {
                // A cut at the first part of a digit divides no part of any run. If a digit has
                // more records than a piece, the cut divides parts, which are then read for both
                // sides.
                let new_digit = last_least
                    .is_some_and(|last: R| (last.radix() ^ least.radix()) >> self.shift != 0);
                if records >= self.target || records >= self.target / 2 && new_digit {
                    plan.high = Some(least);
                    break;
                }
                (least_repeats, last_least) = (0, Some(least));
            }
            self.heads.pop();
            let walk = &mut self.walks[run];
            let range = walk.pass();
            let next = walk.next_least(file)?;
            self.heads.extend(next.map(|next| Reverse((next, run))));
            // No record of a part is greater than the first of the next part.
            if low == Some(least) && next == low {
                plan.repeats += (range.end - range.start) as usize;
                continue;
            }
            records += range.end - range.start;
            least_repeats += range.end - range.start;
            walk.read(run, range, &mut plan.reads);
        }
        if let Some(high) = plan.high {
            plan.needs_filter |= self.walks.iter().any(|walk| walk.divided_by(high).is_some());
        }
        self.finished = plan.high.is_none();
        self.low = plan.high;
        Ok(Some(plan))
    }
}

/// The position in the parts of a run.
struct Walk<'r, R> {
    run: &'r SortedRun<R>,
    /// A window of the parts of a run on disk.
    window: Parts<R>,
    /// The first part of the window.
    window_start: u64,
    /// The next part.
    part: u64,
    /// The first record of the next part.
    start: u64,
    last: Option<Passed<R>>,
    /// The index of the last range read for the piece.
    range: Option<usize>,
}

/// The part passed last.
#[derive(Clone, Copy)]
struct Passed<R> {
    least: R,
    greatest: R,
    start: u64,
    /// The start of the first part that contains a record equal to `least`.
    like_least: u64,
}

impl<'r, R: Record> Walk<'r, R> {
    fn new(run: &'r SortedRun<R>) -> Self {
        Self {
            run,
            window: Parts::new(),
            window_start: 0,
            part: 0,
            start: 0,
            last: None,
            range: None,
        }
    }

    /// The parts in memory, and the number of the first.
    fn current_parts(&self) -> (&Parts<R>, u64) {
        match &self.run.storage {
            RunStorage::Memory { parts, .. } => (parts, 0),
            RunStorage::File { .. } => (&self.window, self.window_start),
        }
    }

    /// The least record of the next part, after loading that part's bounds.
    fn next_least(&mut self, file: &StoreFile) -> Result<Option<R>> {
        let SortedRun { storage, parts: count, .. } = self.run;
        if self.part == *count {
            return Ok(None);
        }
        if let RunStorage::File { parts, .. } = storage
            && self.part >= self.window_start + self.window.len() as u64
        {
            self.window_start = self.part;
            self.window.read(file, *parts, *count, self.part..(self.part + WINDOW).min(*count))?;
        }
        let (parts, first) = self.current_parts();
        Ok(Some(parts.least[(self.part - first) as usize]))
    }

    /// Passes the next part, whose bounds are loaded, and returns the range of its records.
    fn pass(&mut self) -> Range<u64> {
        let (parts, first) = self.current_parts();
        let at = (self.part - first) as usize;
        let (least, greatest, start, end) =
            (parts.least[at], parts.greatest[at], self.start, parts.ends[at]);
        let like_least = match self.last {
            Some(last) if last.least == least => last.like_least,
            Some(last) if last.greatest == least => last.start,
            _ => start,
        };
        self.last = Some(Passed { least, greatest, start, like_least });
        (self.part, self.start) = (self.part + 1, end);
        start..end
    }

    /// The range of the passed parts that have records not less than `low`.
    fn divided_by(&self, low: R) -> Option<Range<u64>> {
        let last = self.last.filter(|last| last.greatest >= low)?;
        Some(if last.least == low { last.like_least } else { last.start }..self.start)
    }

    /// Adds a range of this run to `reads`.
    fn read(&mut self, run: usize, range: Range<u64>, reads: &mut Vec<(usize, Range<u64>)>) {
        match self.range.map(|at| &mut reads[at].1) {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => {
                self.range = Some(reads.len());
                reads.push((run, range));
            }
        }
    }
}
