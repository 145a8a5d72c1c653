//! Forecasts the memory and disk space of a sorter, by its own rules, applied to lengths instead of
//! records.

use std::collections::{BTreeMap, VecDeque};

use crate::radix;
use crate::sorter::memory_plan::{MAX_RUNS, MemoryPlan};

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
        let plan = MemoryPlan::new(bytes, workers, record_bytes);
        let (writers, width, shortest) =
            (self.writers as u64, record_bytes as u64, plan.run_len(0));
        // The bounds of a run's parts, if the keys are spread evenly.
        let bounds = radix::TOP_DIGITS.min(shortest) * (size_of::<u64>() + 2 * record_bytes);
        let bytes_of_runs = |runs: &Runs| runs.records * width + runs.count * bounds as u64;
        let (mut in_memory, mut spilled) = (Runs::default(), Runs::default());
        let (mut unsorted, mut max_memory) = (records, 0);
        let spill_oldest = |in_memory: &mut Runs, spilled: &mut Runs, needed: u64| {
            while bytes_of_runs(in_memory) + needed > bytes
                && let Some(oldest) = in_memory.take_oldest()
            {
                spilled.push(oldest, 1);
            }
        };
        let buffered = loop {
            let run_len = plan.run_len(records - unsorted) as u64;
            // The buffers of workers that do not write stay empty, but their memory stays reserved.
            let filled = 2 * writers * run_len * width;
            let reserved = plan.buffers(shortest) as u64 * width + filled
                - 2 * writers * shortest as u64 * width;
            spill_oldest(&mut in_memory, &mut spilled, reserved);
            max_memory =
                max_memory.max(bytes_of_runs(&in_memory) + filled.min(2 * unsorted * width));
            // The first runs arise when all buffers are full; at the end the buffers are half full
            // on average.
            let capacity = writers * run_len;
            let buffered = (capacity / if unsorted == records { 1 } else { 2 }).max(run_len);
            if unsorted <= buffered {
                break capacity.min(records);
            }
            if bytes_of_runs(&in_memory) + run_len * width + bounds as u64 + reserved <= bytes {
                in_memory.push(run_len, 1);
                unsorted -= run_len;
            } else {
                // All runs of the greatest length spill alike.
                let count = if run_len == plan.longest as u64 {
                    (unsorted - buffered).div_ceil(run_len)
                } else {
                    1
                };
                spilled.push(run_len, count);
                unsorted -= count * run_len;
            }
        };
        let (piece_len, run_count) =
            (plan.piece_len(records), spilled.count + in_memory.count + writers);
        let run_count = usize::try_from(run_count).unwrap_or(usize::MAX);
        spill_oldest(
            &mut in_memory,
            &mut spilled,
            buffered * width + plan.pieces(piece_len, run_count) as u64 * width,
        );
        let written = bytes_of_runs(&spilled);
        let pieces = plan.buffers(piece_len) as u64 * width;
        let merging =
            bytes_of_runs(&in_memory) + unsorted * width + pieces.min(2 * records * width);
        // The rest of a buffer becomes a run, too.
        in_memory.push(unsorted / writers.max(1), writers);
        Filled {
            memory: max_memory.max(merging),
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
            Some((last_len, runs)) if *last_len == len => *runs += count,
            _ => self.lens.push_back((len, count)),
        }
        self.count += count;
        self.records += len * count;
    }

    /// Removes the oldest run and returns its length.
    fn take_oldest(&mut self) -> Option<u64> {
        let (len, runs) = self.lens.front_mut()?;
        let len = *len;
        *runs -= 1;
        if *runs == 0 {
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
    let (mut count, mut merged, max_runs) = (lens.values().sum::<u64>(), 0, MAX_RUNS as u64);
    while count > max_runs {
        let group = max_runs.min(count - max_runs + 1);
        let (mut missing, mut merged_len) = (group, 0);
        while missing > 0
            && let Some(mut shortest) = lens.first_entry()
        {
            let (run_len, merged_runs) = (*shortest.key(), missing.min(*shortest.get()));
            missing -= merged_runs;
            merged_len += run_len * merged_runs;
            *shortest.get_mut() -= merged_runs;
            if *shortest.get() == 0 {
                shortest.remove();
            }
        }
        *lens.entry(merged_len).or_default() += 1;
        count -= group - 1;
        merged += merged_len;
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
