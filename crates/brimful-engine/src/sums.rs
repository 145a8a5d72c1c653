//! Sums of the targets of an interval: buffers that go from hand to hand, and a place in scratch for those that wait.
//!
//! Invariant: what is kept comes back as the same bits, so that a fold goes on as if it had not been interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::huge::HugeArray;
use brimful_store::{Folder, Job, StoreFile};
use bytemuck::Pod;

use crate::combiner::Combiner;
use crate::error::Result;
use crate::schedule::Schedule;

/// Buffers of sums, each for the 2^`interval_bits` targets of an interval, that nobody uses.
pub(crate) struct FreeSums<S> {
    buffers: Mutex<Vec<HugeArray<S>>>,
    interval_bits: u32,
}

impl<S: Pod> FreeSums<S> {
    pub(crate) fn new(interval_bits: u32) -> Self {
        Self { buffers: Mutex::default(), interval_bits }
    }

    /// A buffer of sums of no signals.
    pub(crate) fn take<C: Combiner<Sum = S>>(&self) -> HugeArray<S> {
        let free = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sums = free.unwrap_or_else(|| HugeArray::zeroed(1 << self.interval_bits));
        sums.fill(C::IDENTITY);
        sums
    }

    pub(crate) fn give_back(&self, sums: HugeArray<S>) {
        if !sums.is_empty() {
            self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        }
    }
}

/// The sums of every interval of every item of a schedule, in scratch.
pub(crate) struct KeptSums {
    file: StoreFile,
    /// For each interval the place of the sums of its first turn, and at the end the number of places.
    first_place: Vec<usize>,
    /// For each place, whether sums were kept there since the last superstep.
    is_kept: Vec<AtomicBool>,
}

impl KeptSums {
    /// No sums, to be kept in a nameless file of `folder`.
    pub(crate) fn new(schedule: &Schedule, folder: &dyn Folder, job: &Job) -> brimful_store::Result<Self> {
        let mut first_place = vec![0; schedule.intervals + 1];
        for item in &schedule.items {
            for interval in item.intervals.clone() {
                first_place[interval + 1] = item.turns;
            }
        }
        for interval in 0..schedule.intervals {
            first_place[interval + 1] += first_place[interval];
        }
        let places = first_place[schedule.intervals];
        Ok(Self {
            file: StoreFile::scratch(folder, job.traffic())?,
            first_place,
            is_kept: (0..places).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// Bytes of memory of `places` places of `intervals` intervals.
    pub(crate) fn memory_bytes(intervals: u64, places: u64) -> u64 {
        (intervals + 1) * size_of::<usize>() as u64 + places
    }

    /// Lets `fold` go on with the sums of an interval in a turn; `sums` are those of no signals.
    pub(crate) fn go_on<S: Pod>(
        &self,
        (interval, turn): (usize, usize),
        sums: &mut [S],
        fold: impl FnOnce(&mut [S]) -> Result<()>,
    ) -> Result<()> {
        let place = self.first_place[interval] + turn;
        let offset = (place * size_of_val(sums)) as u64;
        if self.is_kept[place].load(Ordering::Relaxed) {
            self.file.read_exact_at(bytemuck::cast_slice_mut(sums), offset)?;
        }
        fold(sums)?;
        self.file.write_all_at(bytemuck::cast_slice(sums), offset)?;
        self.is_kept[place].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// True if something was kept for an interval.
    pub(crate) fn has(&self, interval: usize) -> bool {
        self.is_kept[self.places(interval)].iter().any(|kept| kept.load(Ordering::Relaxed))
    }

    /// Takes out the sums of an interval, those of its turns merged in order.
    pub(crate) fn take<C: Combiner>(
        &self,
        interval: usize,
        free: &FreeSums<C::Sum>,
    ) -> Result<HugeArray<C::Sum>> {
        let mut total = free.take::<C>();
        for place in self.places(interval) {
            let mut sums = free.take::<C>();
            if self.is_kept[place].swap(false, Ordering::Relaxed) {
                let offset = (place * size_of_val(&*sums)) as u64;
                self.file.read_exact_at(bytemuck::cast_slice_mut(&mut sums), offset)?;
            }
            if place == self.first_place[interval] {
                std::mem::swap(&mut total, &mut sums);
            } else {
                merge::<C>(&mut total, &sums);
            }
            free.give_back(sums);
        }
        Ok(total)
    }

    fn places(&self, interval: usize) -> std::ops::Range<usize> {
        self.first_place[interval]..self.first_place[interval + 1]
    }
}

/// Adds the sums of later sources to those of earlier ones.
pub(crate) fn merge<C: Combiner>(earlier: &mut [C::Sum], later: &[C::Sum]) {
    for (earlier, later) in earlier.iter_mut().zip(later) {
        *earlier = C::merge(*earlier, *later);
    }
}
