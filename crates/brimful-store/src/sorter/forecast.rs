//! What a sorter will hold in memory and write to disk: its own rules, with lengths instead of records.

use std::collections::VecDeque;

use super::{MAX_PIECE, MAX_RUNS, Share};
use crate::radix;

/// Bytes that a sorter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// In memory at most, while records come.
    pub memory: u64,
    /// In memory while they are merged.
    pub merging: u64,
    /// In its scratch file: runs, and those that were made of too many.
    pub disk: u64,
}

/// What a sorter of `bytes` will take for so many records, of which every worker pushes as many.
pub fn forecast(records: u64, record_bytes: usize, bytes: u64, workers: usize) -> Filled {
    let share = Share::new(bytes, workers, record_bytes);
    let width = record_bytes as u64;
    // What tells of the parts of a run, if the keys are spread evenly.
    let parts = radix::TOP_DIGITS.min(share.run_len(0)) * (size_of::<u64>() + 2 * record_bytes);
    let bytes_of = |runs: &Runs| runs.records * width + (runs.lens.len() * parts) as u64;
    let (mut in_memory, mut spilled) = (Runs::default(), Runs::default());
    let (mut left, mut most) = (records, 0);
    loop {
        let run = share.run_len(records - left) as u64;
        let buffers = share.buffers(run as usize) as u64 * width;
        while bytes_of(&in_memory) + buffers > bytes
            && let Some(oldest) = in_memory.take()
        {
            spilled.push(oldest);
        }
        most = most.max(bytes_of(&in_memory) + buffers.min(2 * left * width));
        // The first runs are made when all buffers are full; what is left in the end fills half of them on average.
        let held = share.workers as u64 * run / if left == records { 1 } else { 2 };
        if left <= held.max(run) {
            break;
        }
        left -= run;
        let fits = bytes_of(&in_memory) + run * width + parts as u64 + buffers <= bytes;
        if fits {
            in_memory.push(run)
        } else {
            spilled.push(run)
        };
    }
    let written = bytes_of(&spilled);
    let piece = MAX_PIECE.min(share.run_len(records) / 2);
    let pieces = share.buffers(piece) as u64 * width;
    let merging = bytes_of(&in_memory) + left * width + pieces.min(2 * records * width);
    Filled {
        memory: most.max(merging),
        merging,
        disk: written + merged(spilled, in_memory, share.workers) * width,
    }
}

/// Lengths of runs, and their sum.
#[derive(Default)]
struct Runs {
    lens: VecDeque<u64>,
    records: u64,
}

impl Runs {
    fn push(&mut self, len: u64) {
        self.lens.push_back(len);
        self.records += len;
    }

    fn take(&mut self) -> Option<u64> {
        let oldest = self.lens.pop_front()?;
        self.records -= oldest;
        Some(oldest)
    }
}

/// Records that are written again, as there are too many runs to be merged at once with those of so many buffers.
fn merged(mut spilled: Runs, mut in_memory: Runs, buffers: usize) -> u64 {
    let mut merged = 0;
    loop {
        let runs = spilled.lens.len() + in_memory.lens.len() + buffers;
        if runs <= MAX_RUNS {
            return merged;
        }
        let group = MAX_RUNS.min(runs - MAX_RUNS + 1);
        let len = (0..group).map_while(|_| spilled.take().or_else(|| in_memory.take())).sum();
        spilled.push(len);
        merged += len;
    }
}
