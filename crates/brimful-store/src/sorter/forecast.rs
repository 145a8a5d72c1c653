//! Forecasts the memory and disk space of a sorter, by its own rules, applied to lengths instead of
//! records.

use std::collections::{BTreeMap, VecDeque};

use crate::radix;
use crate::sorter::share::{MAX_RUNS, Share};

/// The input of a forecast.
#[derive(Debug, Clone, Copy)]
pub struct Sorting {
    /// Number of records.
    pub records: u64,
    /// Bytes of a record.
    pub record_bytes: usize,
    /// Memory limit of the sorter, in bytes.
    pub bytes: u64,
    /// Number of workers of the sorter.
    pub workers: usize,
    /// Number of writers, which push equal numbers of records.
    pub writers: usize,
}

/// Forecast bytes of a sorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Greatest memory while records are pushed.
    pub memory: u64,
    /// Memory during the merge.
    pub merging: u64,
    /// Bytes of the scratch file: runs, and the longer runs into which they are merged if there are
    /// too many.
    pub disk: u64,
}

impl Sorting {
    /// Forecasts the bytes.
    pub fn forecast(self) -> Filled {
        let Self { records, record_bytes, bytes, workers, .. } = self;
        let share = Share::new(bytes, workers, record_bytes);
        let (writers, width, shortest) =
            (self.writers as u64, record_bytes as u64, share.run_len(0));
        // The bounds of a run's parts, if the keys are spread evenly.
        let parts = radix::TOP_DIGITS.min(shortest) * (size_of::<u64>() + 2 * record_bytes);
        let bytes_of = |runs: &Runs| runs.records * width + runs.count * parts as u64;
        let (mut in_memory, mut spilled) = (Runs::default(), Runs::default());
        let (mut left, mut most) = (records, 0);
        let make_room = |in_memory: &mut Runs, spilled: &mut Runs, buffers: u64| {
            while bytes_of(in_memory) + buffers > bytes
                && let Some(oldest) = in_memory.take_oldest()
            {
                spilled.push(oldest, 1);
            }
        };
        let held = loop {
            let run = share.run_len(records - left) as u64;
            // The buffers of workers that do not write stay empty, but their memory stays reserved.
            let filled = 2 * writers * run * width;
            let kept = share.buffers(shortest) as u64 * width + filled
                - 2 * writers * shortest as u64 * width;
            make_room(&mut in_memory, &mut spilled, kept);
            most = most.max(bytes_of(&in_memory) + filled.min(2 * left * width));
            // The first runs arise when all buffers are full; at the end the buffers are half full
            // on average.
            let all = writers * run;
            let held = (all / if left == records { 1 } else { 2 }).max(run);
            if left <= held {
                break all.min(records);
            }
            if bytes_of(&in_memory) + run * width + parts as u64 + kept <= bytes {
                in_memory.push(run, 1);
                left -= run;
            } else {
                // All runs of the greatest length spill alike.
                let count =
                    if run == share.longest as u64 { (left - held).div_ceil(run) } else { 1 };
                spilled.push(run, count);
                left -= count * run;
            }
        };
        let (piece, runs) = (share.piece_len(records), spilled.count + in_memory.count + writers);
        let runs = usize::try_from(runs).unwrap_or(usize::MAX);
        make_room(
            &mut in_memory,
            &mut spilled,
            held * width + share.pieces(piece, runs) as u64 * width,
        );
        let written = bytes_of(&spilled);
        let pieces = share.buffers(piece) as u64 * width;
        let merging = bytes_of(&in_memory) + left * width + pieces.min(2 * records * width);
        // The rest of a buffer becomes a run, too.
        in_memory.push(left / writers.max(1), writers);
        Filled {
            memory: most.max(merging),
            merging,
            disk: written + merged(spilled.lens.into_iter().chain(in_memory.lens)) * width,
        }
    }
}

/// Runs: pairs of length and count in order, the number of runs and the sum of their lengths.
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

    /// Removes the oldest run and returns its length.
    fn take_oldest(&mut self) -> Option<u64> {
        let (len, number) = self.lens.front_mut()?;
        let len = *len;
        *number -= 1;
        if *number == 0 {
            self.lens.pop_front();
        }
        self.count -= 1;
        self.records -= len;
        Some(len)
    }
}

/// Records that are written again because there are more runs than one merge can read: the shortest
/// are merged first.
fn merged(runs: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut lens: BTreeMap<u64, u64> = BTreeMap::new();
    runs.for_each(|(len, count)| *lens.entry(len).or_default() += count);
    let (mut count, mut merged, most) = (lens.values().sum::<u64>(), 0, MAX_RUNS as u64);
    while count > most {
        let group = most.min(count - most + 1);
        let (mut missing, mut len) = (group, 0);
        while missing > 0
            && let Some(mut shortest) = lens.first_entry()
        {
            let (each, taken) = (*shortest.key(), missing.min(*shortest.get()));
            missing -= taken;
            len += each * taken;
            *shortest.get_mut() -= taken;
            if *shortest.get() == 0 {
                shortest.remove();
            }
        }
        *lens.entry(len).or_default() += 1;
        count -= group - 1;
        merged += len;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_twice_is_little_however_much_memory_there_is() {
        let sorting =
            Sorting { records: 1 << 37, record_bytes: 16, bytes: 0, workers: 2, writers: 2 };
        let all = sorting.records * 16;
        let mut last = u64::MAX;
        for bits in [26, 30, 34, 36, 38, 40] {
            let Filled { disk, memory, .. } = Sorting { bytes: 1 << bits, ..sorting }.forecast();
            assert!(memory <= 1 << bits);
            // Each record once, plus repeated merges of runs that are short because of small
            // memory.
            assert!(
                disk <= all * if bits < 30 { 4 } else { 2 } + all / 50,
                "{disk} bytes with 2^{bits}"
            );
            assert!(disk <= last, "more memory, more on disk: 2^{bits}");
            last = disk;
        }
    }

    #[test]
    fn any_number_of_workers_comes_to_an_end() {
        for workers in [1, 2, 127, 128, 129, 300, 5_000] {
            for records in [0, 1, 1000, 1 << 20, 1 << 28] {
                for writers in [1, workers] {
                    let bytes = 1 << 28;
                    let sorting = Sorting { records, record_bytes: 8, bytes, workers, writers };
                    let Filled { memory, disk, .. } = sorting.forecast();
                    assert!(disk <= 4 * records * 8, "{sorting:?}: {disk}");
                    assert!(
                        memory <= bytes.max(super::super::minimum_bytes(workers, 8)),
                        "{sorting:?}: {memory}"
                    );
                }
            }
        }
    }
}
