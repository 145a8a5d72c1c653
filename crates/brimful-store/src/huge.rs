//! Large arrays on huge pages, where the system has them.
//!
//! Streaming and scattering over many gigabytes in 4 KiB pages spends half its time on address
//! translation (measured on a virtual machine, 2 cores: sequential reads 17 against 32 GB/s; run
//! `python -m bench memory`). Invariant: only the speed differs; the memory is plain zeroed memory.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

/// Size of a huge page on x86-64 and on arm64 with 4 KiB pages.
const HUGE_BYTES: usize = 2 << 20;

/// A fixed number of records, aligned to and advised for huge pages if there are enough of them.
#[derive(Debug)]
pub struct HugeArray<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T> Default for HugeArray<T> {
    fn default() -> Self {
        Self { memory: Vec::new(), start: 0, len: 0 }
    }
}

impl<T: Pod> HugeArray<T> {
    /// An array of `len` zeros. Memory is taken from the system as it is touched.
    pub fn zeroed(len: usize) -> Self {
        if len * size_of::<T>() < HUGE_BYTES {
            return Self { memory: bytemuck::zeroed_vec(len), start: 0, len };
        }
        // The slack before the aligned start and behind the end is never touched, so it costs
        // addresses and no memory.
        let slack = HUGE_BYTES.div_ceil(size_of::<T>());
        let mut memory: Vec<T> = bytemuck::zeroed_vec(len + slack);
        let start = memory.as_ptr().align_offset(HUGE_BYTES).min(slack);
        advise(&mut memory[start..start + len]);
        Self { memory, start, len }
    }
}

impl<T> From<Vec<T>> for HugeArray<T> {
    /// The records where they are.
    fn from(memory: Vec<T>) -> Self {
        Self { start: 0, len: memory.len(), memory }
    }
}

impl<T> Deref for HugeArray<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for HugeArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Advises the spare capacity of a vector that is about to be filled.
pub fn advise_spare<T>(records: &mut Vec<T>) {
    advise(records.spare_capacity_mut());
}

/// Empties `records`, which then have memory for exactly `len`, or for more if they had: without it existing twice for a moment, as
/// it does where memory that is partly on huge pages grows.
pub fn renew<T>(len: usize, records: &mut Vec<T>) {
    records.clear();
    if records.capacity() < len {
        *records = Vec::new();
        records.reserve_exact(len);
    }
    advise_spare(records);
}

/// Asks for huge pages for the whole huge pages inside `memory`.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe madvise")]
fn advise<T>(memory: &mut [T]) {
    let address = memory.as_mut_ptr().cast::<u8>();
    let bytes = size_of_val(memory);
    let skip = address.align_offset(HUGE_BYTES);
    let Some(usable) = bytes.checked_sub(skip).map(|rest| rest / HUGE_BYTES * HUGE_BYTES).filter(|n| *n > 0)
    else {
        return;
    };
    // SAFETY: the range lies within `memory`, which is borrowed for writing; MADV_HUGEPAGE changes how
    // the kernel backs the range and never its contents. A failure leaves ordinary pages.
    let _ = unsafe {
        rustix::mm::madvise(address.wrapping_add(skip).cast(), usable, rustix::mm::Advice::LinuxHugepage)
    };
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &mut [T]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_size_are_zeroed_and_writable_to_the_end() {
        for len in [0, 1, 1000, (2 << 20) / 4 - 1, (2 << 20) / 4, 3_000_001] {
            let mut array = HugeArray::<u32>::zeroed(len);
            assert_eq!(array.len(), len);
            assert!(array.iter().all(|&x| x == 0));
            array.iter_mut().enumerate().for_each(|(i, x)| *x = i as u32);
            assert!(array.iter().enumerate().all(|(i, &x)| x == i as u32));
        }
    }

    #[test]
    fn large_arrays_begin_on_a_huge_page() {
        let array = HugeArray::<f64>::zeroed(1 << 20);
        assert_eq!(array.as_ptr() as usize % HUGE_BYTES, 0);
    }

    #[test]
    fn advising_keeps_what_a_vector_holds() {
        let mut records: Vec<u64> = (0..1000).collect();
        records.reserve_exact(4 << 20);
        advise_spare(&mut records);
        assert!(records.iter().copied().eq(0..1000));
    }
}
