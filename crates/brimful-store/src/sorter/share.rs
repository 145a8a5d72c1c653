//! How the memory of a sorter is shared out between buffers, runs and pieces.
//!
//! Invariant: plain numbers, so that the sorter and its forecast follow the same rules.

/// Largest piece in records: a piece of 8-byte records and the buffer to sort it fit a cache of 2
/// MiB.
const MAX_PIECE: usize = 1 << 17;
/// Most records a buffer may hold: splitting it must not delay a cancellation (.6 s).
const MAX_BUFFER: usize = 1 << 26;
/// Fewest records a buffer may hold.
pub(super) const MIN_BUFFER: usize = 1 << 12;
/// A run is as long as this share of the records before it; a long one as half of it.
pub(super) const SHARE_OF_RECORDS: u64 = 16;
const LONG: usize = 1 << 23;
/// The first runs are no shorter than this share of the longest, or of a long one.
const SHARE_OF_LONGEST: usize = 8;
/// Most runs merged at once; more are first merged into longer ones.
pub(super) const MAX_RUNS: usize = 128;
/// Fewest and most records of a part of a run, in small and in large buffers. A cut divides a part
/// of each run, whose records are read for both its sides.
const PART: (usize, usize) = (1 << 7, 1 << 12);

/// How the memory of a sorter is shared out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) workers: usize,
    /// Most records of a run.
    pub(super) longest: usize,
}

impl Share {
    pub(super) fn new(bytes: u64, workers: usize, record_bytes: usize) -> Self {
        let workers = workers.max(1);
        let per_worker = usize::try_from(bytes).unwrap_or(usize::MAX) / workers;
        let longest = (per_worker / 2 / record_bytes).clamp(MIN_BUFFER, MAX_BUFFER);
        Self { workers, longest }
    }

    /// Records of the next run, and of a buffer, after so many in runs.
    pub(super) fn run_len(&self, in_runs: u64) -> usize {
        let least = (self.longest.min(LONG) / SHARE_OF_LONGEST).max(MIN_BUFFER);
        let share = usize::try_from(in_runs / SHARE_OF_RECORDS).unwrap_or(usize::MAX);
        share.min(LONG).max(share / 2).clamp(least, self.longest)
    }

    /// Most records of a part of a run.
    pub(super) fn part_len(&self) -> usize {
        (self.longest / 2048).clamp(PART.0, PART.1)
    }

    /// Records of a piece where so many are in runs.
    pub(super) fn piece_len(&self, in_runs: u64) -> usize {
        (self.run_len(in_runs) / 2).min(MAX_PIECE)
    }

    /// Records that the buffers of all workers may hold, with the scratch buffers for splitting.
    pub(super) fn buffers(&self, run_len: usize) -> usize {
        self.workers * 2 * run_len
    }

    /// Records that the pieces of all workers may hold, with the buffer to sort them, and with what
    /// is read of `runs` beside a piece: a part of each that its first cut divides, and one that
    /// its last does.
    pub(super) fn pieces(&self, piece_len: usize, runs: usize) -> usize {
        self.workers * 2 * (piece_len + runs.min(MAX_RUNS) * self.part_len())
    }
}
