//! Sums of the targets of an interval: a pool of buffers, and a scratch file for spilled sums.
//!
//! Invariant: spilled sums come back as the same bits, so a fold continues as if never interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::huge::HugeArray;
use brimful_store::{Folder, Job, StoreFile};
use bytemuck::Pod;

use crate::error::Result;
use crate::traverse::schedule::Schedule;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Program, SumOf};

/// Unused buffers of sums, each for the targets of an interval.
pub(crate) struct FreeSums<S> {
    buffers: Mutex<Vec<HugeArray<S>>>,
    targets: usize,
}

impl<S: Pod> FreeSums<S> {
    /// Buffers of `targets` sums.
    pub(crate) fn new(targets: usize) -> Self {
        Self { buffers: Mutex::default(), targets }
    }

    /// A buffer of sums of no signals.
    pub(crate) fn take<C: Combiner<Sum = S>>(&self) -> HugeArray<S> {
        let free = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sums = free.unwrap_or_else(|| HugeArray::zeroed(self.targets));
        sums.fill(C::IDENTITY);
        sums
    }

    /// Frees the memory of the unused buffers.
    pub(crate) fn clear(&self) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn give_back(&self, sums: HugeArray<S>) {
        if !sums.is_empty() {
            self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        }
    }
}

/// The sums of every interval of every item of a schedule, in a scratch file.
pub(crate) struct SpilledSums {
    file: StoreFile,
    /// For each interval the slot of its first window, and at the end the number of slots.
    first_slot: Vec<usize>,
    /// For each slot, whether it holds sums of this superstep.
    is_spilled: Vec<AtomicBool>,
}

impl SpilledSums {
    /// No sums yet; their scratch file is in `folder`.
    pub(crate) fn new(
        schedule: &Schedule,
        folder: &dyn Folder,
        job: &Job,
    ) -> brimful_store::Result<Self> {
        let mut first_slot = vec![0; schedule.intervals + 1];
        for item in &schedule.items {
            for interval in item.intervals.clone() {
                first_slot[interval + 1] = item.windows;
            }
        }
        for interval in 0..schedule.intervals {
            first_slot[interval + 1] += first_slot[interval];
        }
        let slots = first_slot[schedule.intervals];
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?,
            first_slot,
            is_spilled: (0..slots).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// Bytes of memory of `slots` slots of `intervals` intervals.
    pub(crate) fn memory_bytes(intervals: u64, slots: u64) -> u64 {
        (intervals + 1) * size_of::<usize>() as u64 + slots
    }

    /// Lets `fold` continue the sums of a window of an interval; `sums` are those of no signals.
    pub(crate) fn update<S: Pod>(
        &self,
        interval: usize,
        window: usize,
        sums: &mut [S],
        fold: impl FnOnce(&mut [S]) -> Result<()>,
    ) -> Result<()> {
        let slot = self.first_slot[interval] + window;
        let offset = (slot * size_of_val(sums)) as u64;
        if self.is_spilled[slot].load(Ordering::Relaxed) {
            self.file.read_exact_at(bytemuck::cast_slice_mut(sums), offset)?;
        }
        fold(sums)?;
        self.file.write_all_at(bytemuck::cast_slice(sums), offset)?;
        self.is_spilled[slot].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// True if an interval has spilled sums.
    pub(crate) fn has(&self, interval: usize) -> bool {
        self.is_spilled[self.slots(interval)].iter().any(|spilled| spilled.load(Ordering::Relaxed))
    }

    /// Takes the sums of an interval, merged over its windows in order.
    pub(crate) fn take<P: Program>(
        &self,
        interval: usize,
        free: &FreeSums<SumOf<P>>,
        program: &P,
    ) -> Result<HugeArray<SumOf<P>>> {
        let mut total = free.take::<P::Combiner>();
        for slot in self.slots(interval) {
            let mut sums = free.take::<P::Combiner>();
            if self.is_spilled[slot].swap(false, Ordering::Relaxed) {
                let offset = (slot * size_of_val(&*sums)) as u64;
                self.file.read_exact_at(bytemuck::cast_slice_mut(&mut sums), offset)?;
            }
            if slot == self.first_slot[interval] {
                std::mem::swap(&mut total, &mut sums);
            } else {
                program.merge(&mut total, &sums)?;
            }
            free.give_back(sums);
        }
        Ok(total)
    }

    fn slots(&self, interval: usize) -> std::ops::Range<usize> {
        self.first_slot[interval]..self.first_slot[interval + 1]
    }
}
