//! What a sorter will hold in memory and write to disk: its own rules, with lengths instead of records.

use std::collections::VecDeque;

use super::MAX_RUNS;
use crate::radix;
use crate::sorter::share::Share;

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
    let bytes_of = |runs: &Runs| runs.records * width + runs.count * parts as u64;
    let (mut in_memory, mut spilled) = (Runs::default(), Runs::default());
    let (mut left, mut most) = (records, 0);
    let make_room = |in_memory: &mut Runs, spilled: &mut Runs, beside: u64| {
        while bytes_of(in_memory) + beside > bytes
            && let (oldest, 1..) = in_memory.take(1)
        {
            spilled.push(oldest, 1);
        }
    };
    let held = loop {
        let run = share.run_len(records - left) as u64;
        let buffers = share.buffers(run as usize) as u64 * width;
        make_room(&mut in_memory, &mut spilled, buffers);
        most = most.max(bytes_of(&in_memory) + buffers.min(2 * left * width));
        // The first runs are made when all buffers are full; what is left in the end fills half of them on average.
        let all = share.workers as u64 * run;
        let held = (all / if left == records { 1 } else { 2 }).max(run);
        if left <= held {
            break all.min(records);
        }
        if bytes_of(&in_memory) + run * width + parts as u64 + buffers <= bytes {
            in_memory.push(run, 1);
            left -= run;
        } else {
            // The longest runs all go the same way.
            let count = if run == share.longest as u64 { (left - held).div_ceil(run) } else { 1 };
            spilled.push(run, count);
            left -= count * run;
        }
    };
    let pieces = share.buffers(share.piece_len(records)) as u64 * width;
    make_room(&mut in_memory, &mut spilled, held * width + pieces);
    let written = bytes_of(&spilled);
    let merging = bytes_of(&in_memory) + left * width + pieces.min(2 * records * width);
    Filled {
        memory: most.max(merging),
        merging,
        disk: written + merged(spilled, in_memory, share.workers as u64) * width,
    }
}

/// Runs: lengths and how many of each come one after another, their number and the sum of their lengths.
#[derive(Default)]
struct Runs {
    lens: VecDeque<(u64, u64)>,
    count: u64,
    records: u64,
}

impl Runs {
    fn push(&mut self, len: u64, count: u64) {
        match self.lens.back_mut() {
            Some((last, number)) if *last == len => *number += count,
            _ => self.lens.push_back((len, count)),
        }
        self.count += count;
        self.records += len * count;
    }

    /// Takes out the oldest, at most `most` of one length; their length and number.
    fn take(&mut self, most: u64) -> (u64, u64) {
        let Some((len, number)) = self.lens.front_mut() else {
            return (0, 0);
        };
        let (len, taken) = (*len, most.min(*number));
        *number -= taken;
        if *number == 0 {
            self.lens.pop_front();
        }
        self.count -= taken;
        self.records -= len * taken;
        (len, taken)
    }
}

/// Records that are written again, as there are too many runs to be merged at once with those of so many buffers.
fn merged(mut spilled: Runs, mut in_memory: Runs, buffers: u64) -> u64 {
    let (mut merged, most) = (0, MAX_RUNS as u64);
    loop {
        let runs = spilled.count + in_memory.count + buffers;
        if runs <= most {
            return merged;
        }
        let (mut group, mut len) = (most.min(runs - most + 1), 0);
        for runs in [&mut spilled, &mut in_memory] {
            while group > 0
                && let (each, taken @ 1..) = runs.take(group)
            {
                group -= taken;
                len += each * taken;
            }
        }
        spilled.push(len, 1);
        merged += len;
    }
}
