//! Measures how fast this machine reads memory and disk.
//!
//! The figures serve forecasts: a short measurement tells one disk from another, but does not show
//! the speed under load.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::device::{DiskFolder, Folder};
use crate::error::Result;
use crate::file::StoreFile;
use crate::huge::HugeArray;
use crate::resources::Resources;

/// The minimum and the maximum bytes of memory that each thread reads.
const MIN_MEMORY_BYTES: usize = 64 << 10;
const MAX_MEMORY_BYTES: usize = 32 << 20;
/// Bytes that each thread reads in a pass: enough that waking the threads hardly counts.
const PASS_BYTES: usize = 256 << 20;
/// Bytes of the file that is read.
const FILE_BYTES: usize = 16 << 20;
/// Bytes per read of the file.
const PART_BYTES: usize = 4 << 20;
/// The least number of passes, and the time after which no other begins. The fastest pass counts,
/// because other processes may slow the others.
const PASSES: usize = 4;
const PASSING: Duration = Duration::from_millis(200);

/// Bandwidth of memory in bytes a second, read by all threads. Uses at most half of the free
/// budget, but at least 64 KiB per thread.
pub fn memory_bandwidth(resources: &Resources) -> f64 {
    let share = resources.budget.free() as usize / 2 / resources.workers();
    let bytes = share.clamp(MIN_MEMORY_BYTES, MAX_MEMORY_BYTES);
    let arrays: Vec<Mutex<HugeArray<u64>>> =
        (0..resources.workers()).map(|_| Mutex::new(HugeArray::zeroed(bytes / 8))).collect();
    let array = |worker: usize| arrays[worker].lock().unwrap_or_else(PoisonError::into_inner);
    // Pages that were never written all map to the same page of zeros.
    resources.broadcast(|worker| array(worker).fill(1));
    let repeats = PASS_BYTES / bytes;
    let pass = || {
        let begin = Instant::now();
        resources.broadcast(|worker| {
            let array = array(worker);
            for _ in 0..repeats {
                // Keeps the compiler from removing the additions, or all but the first.
                let numbers = black_box(&*array).iter();
                black_box(numbers.fold(0_u64, |sum, number| sum.wrapping_add(*number)));
            }
        });
        begin.elapsed().as_secs_f64()
    };
    let (begin, mut seconds, mut passes) = (Instant::now(), f64::INFINITY, 0);
    while passes < PASSES || begin.elapsed() < PASSING {
        seconds = seconds.min(pass());
        passes += 1;
    }
    (resources.workers() * repeats * bytes) as f64 / seconds.max(1e-9)
}

/// Bandwidth of the disk of `folder` in bytes a second, in sequential reads of a nameless file
/// whose pages were dropped from the cache.
///
/// # Errors
/// [`crate::Error::Io`] if the folder accepts no file.
pub fn disk_bandwidth(folder: &Path) -> Result<f64> {
    let folder: Arc<dyn Folder> = DiskFolder::new(folder).shared();
    let file = StoreFile::scratch(&*folder, &Arc::default())?;
    let mut part = vec![1; PART_BYTES];
    for start in (0..FILE_BYTES).step_by(PART_BYTES) {
        file.write_all_at(&part, start as u64)?;
    }
    file.sync()?;
    // The pages are clean after the sync, so this call drops them from the page cache.
    file.start_writing(0, FILE_BYTES as u64);
    let begin = Instant::now();
    for start in (0..FILE_BYTES).step_by(PART_BYTES) {
        file.read_exact_at(&mut part, start as u64)?;
    }
    Ok(FILE_BYTES as f64 / begin.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, Job};

    #[test]
    fn bandwidths_are_those_of_a_machine() {
        let resources =
            Resources::new(Budget::new(1 << 30, 0), Arc::new(Job::new()), Some(2)).unwrap();
        let memory = memory_bandwidth(&resources);
        assert!((1e8..1e13).contains(&memory), "{memory}");
        let folder = tempfile::tempdir().unwrap();
        let disk = disk_bandwidth(folder.path()).unwrap();
        assert!((1e6..1e12).contains(&disk), "{disk}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        assert!(disk_bandwidth(&folder.path().join("missing")).is_err());
    }
}
