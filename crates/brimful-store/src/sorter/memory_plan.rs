//! Divides the memory of a sorter among buffers, runs and pieces.
//!
//! Invariant: plain numbers, so that the sorter and its forecast follow the same rules.

/// The maximum number of records in a piece: a piece of 8-byte records and the buffer that sorts it
/// fit in a cache of 2 MiB.
const MAX_PIECE: usize = 1 << 17;
/// The maximum number of records in a buffer: splitting it must not delay a cancellation (0.6 s).
const MAX_BUFFER: usize = 1 << 26;
/// The minimum number of records in a buffer.
pub(super) const MIN_BUFFER: usize = 1 << 12;
/// The length of a run is the number of records before it divided by this; of a run longer than
/// `LONG`, half of that.
pub(super) const SHARE_OF_RECORDS: u64 = 16;
const LONG: usize = 1 << 23;
/// The minimum length of a run is that of the longest run or `LONG`, whichever is shorter, divided
/// by this.
const SHARE_OF_LONGEST: usize = 8;
/// The maximum number of runs in one merge; excess runs are first merged into longer ones.
pub(super) const MAX_RUNS: usize = 128;
/// The minimum and the maximum number of records in a part of a run; larger buffers have larger
/// parts. A cut divides a part of each run, whose records are then read for both sides.
const MIN_PART: usize = 1 << 7;
const MAX_PART: usize = 1 << 12;

/// The division of a sorter's memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryPlan {
    pub(super) workers: usize,
    /// The maximum number of records in a run.
    pub(super) longest: usize,
}

impl MemoryPlan {
    pub(super) fn new(bytes: u64, workers: usize, record_bytes: usize) -> Self {
        let workers = workers.max(1);
        let per_worker = usize::try_from(bytes).unwrap_or(usize::MAX) / workers;
        let longest = (per_worker / 2 / record_bytes).clamp(MIN_BUFFER, MAX_BUFFER);
        Self { workers, longest }
    }

    /// Records of the next run, and of a buffer, once `in_runs` records are in runs.
    pub(super) fn run_len(&self, in_runs: u64) -> usize {
        let shortest = (self.longest.min(LONG) / SHARE_OF_LONGEST).max(MIN_BUFFER);
        let share = usize::try_from(in_runs / SHARE_OF_RECORDS).unwrap_or(usize::MAX);
        share.min(LONG).max(share / 2).clamp(shortest, self.longest)
    }

    /// The maximum number of records in a part of a run.
    pub(super) fn part_len(&self) -> usize {
        (self.longest / 2048).clamp(MIN_PART, MAX_PART)
    }

    /// Records per piece if `in_runs` records are in runs.
    pub(super) fn piece_len(&self, in_runs: u64) -> usize {
        (self.run_len(in_runs) / 2).min(MAX_PIECE)
    }

    /// Records in the buffers of all workers, including the scratch buffers that split them.
    pub(super) fn buffers(&self, run_len: usize) -> usize {
        self.workers * 2 * run_len
    }

    /// Records in the pieces of all workers, including the buffers that sort them and the records
    /// read besides a piece: in each of `runs`, a part that the first cut divides and one that the
    /// last cut divides.
    pub(super) fn pieces(&self, piece_len: usize, runs: usize) -> usize {
        self.workers * 2 * (piece_len + runs.min(MAX_RUNS) * self.part_len())
    }
}
