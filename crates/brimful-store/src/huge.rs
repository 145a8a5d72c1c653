//! Large arrays on huge pages, where the system has them.
//!
//! Access to many gigabytes in 4 KiB pages, in sequence or at random, spends half its time on
//! address translation (measured on a virtual machine, 2 cores: sequential reads 17 against 32
//! GB/s; run `python -m bench memory`). Invariant: huge pages change only the speed; the memory is
//! plain zeroed memory.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Pod;

/// Size of a huge page on x86-64 and on arm64 with 4 KiB pages.
const HUGE_BYTES: usize = 2 << 20;

/// A fixed number of records, aligned to and advised for huge pages if the array is large enough.
#[derive(Debug)]
pub struct HugeArray<T> {
    memory: Memory<T>,
    start: usize,
    len: usize,
}

#[derive(Debug)]
enum Memory<T> {
    /// From the C library.
    Heap(Vec<T>),
    /// From the system.
    Pages(Pages),
}

impl<T> Default for HugeArray<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod> HugeArray<T> {
    /// An array of `len` zeros. The system provides memory on first access.
    pub fn zeroed(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        if bytes < HUGE_BYTES {
            return Self::from(bytemuck::zeroed_vec(len));
        }
        // The slack before the aligned start and after the end is never accessed, so it costs
        // addresses and no memory.
        let pages = Pages::zeroed(bytes + HUGE_BYTES);
        let start = pages.address().align_offset(HUGE_BYTES).min(HUGE_BYTES);
        let mut array = Self { memory: Memory::Pages(pages), start, len };
        advise(&mut array[..]);
        array
    }
}

impl<T> From<Vec<T>> for HugeArray<T> {
    /// An array that takes over `memory`.
    fn from(memory: Vec<T>) -> Self {
        Self { start: 0, len: memory.len(), memory: Memory::Heap(memory) }
    }
}

impl<T> Deref for HugeArray<T> {
    type Target = [T];

    #[expect(unsafe_code, reason = "pages are bytes of no type")]
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(records) => records,
            // SAFETY: only `zeroed` makes pages, for types that allow any bytes: `len` records from
            // the aligned byte `start` on lie within them, and they live as long as this array,
            // which is borrowed.
            Memory::Pages(pages) => unsafe {
                std::slice::from_raw_parts(
                    pages.address().wrapping_add(self.start).cast(),
                    self.len,
                )
            },
        }
    }
}

impl<T> DerefMut for HugeArray<T> {
    #[expect(unsafe_code, reason = "pages are bytes of no type")]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(records) => records,
            // SAFETY: as in `deref`, and the array is borrowed for writing.
            Memory::Pages(pages) => unsafe {
                std::slice::from_raw_parts_mut(
                    pages.address().wrapping_add(self.start).cast(),
                    self.len,
                )
            },
        }
    }
}

/// Zeroed memory that the system provides and takes back at once. The C library instead keeps freed
/// memory, and writes zeros over all memory that it reuses, including the slack: neither is counted
/// in a budget.
#[derive(Debug)]
struct Pages {
    address: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the value owns its pages, and they are not bound to a thread.
#[expect(unsafe_code, reason = "a pointer that is owned")]
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives an address; the array lends its records as a slice does.
#[expect(unsafe_code, reason = "a pointer that is owned")]
unsafe impl Sync for Pages {}

impl Pages {
    #[expect(unsafe_code, reason = "there is no safe mmap")]
    fn zeroed(bytes: usize) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new private pages, at an address that the system chooses.
        let mapped =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) };
        match mapped.ok().and_then(NonNull::new) {
            Some(address) => Self { address, bytes },
            // A vector does the same without memory.
            None => {
                handle_alloc_error(Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u8>()))
            }
        }
    }

    fn address(&self) -> *mut u8 {
        self.address.as_ptr().cast()
    }
}

impl Drop for Pages {
    #[expect(unsafe_code, reason = "there is no safe munmap")]
    fn drop(&mut self) {
        // SAFETY: these pages were mapped in `zeroed`, and no slice of them outlives the array that
        // owns them.
        let unmapped = unsafe { rustix::mm::munmap(self.address.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "pages that were mapped can be unmapped");
    }
}

/// Advises huge pages for the spare capacity of a vector that is about to be filled.
pub fn advise_spare<T>(records: &mut Vec<T>) {
    advise(records.spare_capacity_mut());
}

/// Empties `records` and ensures a capacity of `len`, exactly unless it is larger already. Frees
/// the old memory first: growing memory that is partly on huge pages would hold both copies for a
/// moment.
pub fn renew<T>(len: usize, records: &mut Vec<T>) {
    records.clear();
    if records.capacity() < len {
        *records = Vec::new();
        records.reserve_exact(len);
    }
    advise_spare(records);
}

/// Advises huge pages for the aligned huge pages inside `memory`.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe madvise")]
fn advise<T>(memory: &mut [T]) {
    let address = memory.as_mut_ptr().cast::<u8>();
    let bytes = size_of_val(memory);
    let skip = address.align_offset(HUGE_BYTES);
    let Some(usable) =
        bytes.checked_sub(skip).map(|rest| rest / HUGE_BYTES * HUGE_BYTES).filter(|n| *n > 0)
    else {
        return;
    };
    // SAFETY: the range lies within `memory`, which is borrowed for writing; MADV_HUGEPAGE changes
    // how the kernel backs the range and never its contents. A failure leaves ordinary pages.
    let _ = unsafe {
        rustix::mm::madvise(
            address.wrapping_add(skip).cast(),
            usable,
            rustix::mm::Advice::LinuxHugepage,
        )
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
    fn arrays_may_be_written_by_other_threads_than_made_them() {
        let mut array = HugeArray::<u64>::zeroed(1 << 20);
        std::thread::scope(|scope| {
            for (index, part) in array.chunks_mut(1 << 18).enumerate() {
                scope.spawn(move || part.fill(index as u64));
            }
        });
        let moved = std::thread::spawn(move || array.iter().sum::<u64>());
        assert_eq!(moved.join().unwrap(), (1 << 18) * (1 + 2 + 3));
    }

    #[test]
    fn advising_keeps_what_a_vector_holds() {
        let mut records: Vec<u64> = (0..1000).collect();
        records.reserve_exact(4 << 20);
        advise_spare(&mut records);
        assert!(records.iter().copied().eq(0..1000));
    }
}
