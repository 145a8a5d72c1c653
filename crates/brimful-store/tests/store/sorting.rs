//! The external sorter on a disk that fails, fills up or moves a few bytes at a time.

use std::cmp::Ordering;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::sorter::{Record, Sorter, Sorting};
use brimful_store::{Error, Job, Result};
use bytemuck::{Pod, Zeroable};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{assert_io, eio, mix};

/// A record whose radix is only the leading part of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Pair {
    major: u32,
    minor: u32,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor).cmp(&(other.major, other.minor))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Record for Pair {
    const RADIX_IS_WHOLE: bool = false;
    fn radix(&self) -> u64 {
        u64::from(self.major)
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Pushes with one writer per thread; returns the first error.
fn fill<'j, R: Record>(
    folder: &FaultFolder,
    records: &[R],
    bytes: u64,
    pool: &ThreadPool,
    job: &'j Job,
) -> Result<Sorter<'j, R>> {
    let workers = pool.current_num_threads();
    let sorter = Sorter::new(folder, bytes, workers, job)?;
    let results = pool.broadcast(|worker| {
        let mut writer = sorter.writer();
        let mine = records.iter().skip(worker.index()).step_by(workers);
        mine.copied().try_for_each(|record| writer.push(record))?;
        writer.finish()
    });
    results.into_iter().collect::<Result<()>>()?;
    Ok(sorter)
}

fn sort<R: Record>(
    folder: &FaultFolder,
    records: &[R],
    bytes: u64,
    workers: usize,
) -> Result<Vec<R>> {
    let (job, pool) = (Job::new(), pool(workers));
    let mut out = Vec::new();
    fill(folder, records, bytes, &pool, &job)?.merge(&pool, |batch| {
        out.extend_from_slice(batch);
        Ok::<(), Error>(())
    })?;
    Ok(out)
}

fn expected<R: Record>(records: &[R]) -> Vec<R> {
    let mut expected = records.to_vec();
    expected.sort_unstable();
    expected
}

fn values(count: u64) -> Vec<u64> {
    (0..count).map(mix).collect()
}

#[test]
fn keys_longer_than_their_radix_are_sorted_whole() {
    let shapes: [fn(u64) -> Pair; 3] = [
        |i| Pair { major: mix(i) as u32, minor: i as u32 },
        |i| Pair { major: (mix(i) % 5) as u32, minor: mix(i + 1) as u32 },
        |i| Pair { major: 9, minor: (mix(i) % 2) as u32 },
    ];
    for shape in shapes {
        let records: Vec<Pair> = (0..100_000).map(shape).collect();
        for workers in [1, 2] {
            let sorted = sort(&FaultFolder::new(), &records, 1, workers).unwrap();
            assert!(sorted == expected(&records), "{workers} workers");
        }
    }
}

#[test]
fn short_transfers_change_nothing() {
    let records = values(20_000);
    for plan in [FaultPlan::new().at_most(1000), FaultPlan::new().varying(5000, 6)] {
        let folder = FaultFolder::new();
        folder.set_plan(plan);
        assert!(sort(&folder, &records, 1, 2).unwrap() == expected(&records));
        assert!(folder.count(Operation::Write) > 30);
        assert_eq!(folder.used_bytes(), 0, "the scratch file is gone");
    }
}

#[test]
fn every_failing_operation_comes_back_typed() {
    let records = values(20_000);
    let counted = FaultFolder::new();
    sort(&counted, &records, 1, 1).unwrap();
    for (class, verb) in [(Operation::Read, "read"), (Operation::Write, "write")] {
        assert!(counted.count(class) >= 4);
        for number in 1..=counted.count(class) {
            let folder = FaultFolder::new();
            folder.set_plan(FaultPlan::new().fail(class, number, Fault::Io));
            assert_io(sort(&folder, &records, 1, 1), "(scratch)", verb, eio());
            assert_eq!(folder.open_files(), 0);
        }
    }
    let folder = FaultFolder::new();
    folder.set_plan(FaultPlan::new().fail(Operation::Create, 1, Fault::Full));
    let refused = sort(&folder, &records, 1, 1);
    assert_io(refused, "(memory)", "create a scratch file in", ErrorKind::StorageFull);
}

#[test]
fn a_full_disk_comes_back_typed_from_runs_and_from_merged_runs() {
    // 4,096 records per run: more than 128 runs, so that 20 of them are first merged into a longer
    // one.
    let records = values(600_000);
    let folder = FaultFolder::new();
    let (job, one) = (Job::new(), pool(1));
    let sorter = fill(&folder, &records, 1, &one, &job).unwrap();
    assert_eq!((sorter.len(), sorter.is_empty()), (600_000, false));
    let runs = folder.used_bytes();
    assert!(runs / (4096 * 8) > 128, "{runs} bytes of runs");
    drop(sorter);
    for capacity in [0, 1, runs / 2, runs - 1, runs, runs + 4096 * 8 * 10] {
        for workers in [1, 2] {
            let folder = FaultFolder::new();
            folder.set_plan(FaultPlan::new().capacity(capacity));
            let full = sort(&folder, &records, 1, workers);
            assert_io(full, "(scratch)", "write", ErrorKind::StorageFull);
            assert_eq!(folder.open_files(), 0);
        }
    }
    let folder = FaultFolder::new();
    folder.set_plan(FaultPlan::new().capacity(2 * runs));
    assert!(sort(&folder, &records, 1, 1).unwrap() == expected(&records));
    // The forecast includes the bytes that merging writes again; the bounds of its parts are a few
    // hundredths of them.
    let sorting = Sorting { records: 600_000, record_bytes: 8, bytes: 1, workers: 1, writers: 1 };
    let merged = sorting.forecast().disk - runs;
    for (capacity, suffices) in [(merged * 9 / 10, false), (merged * 11 / 10, true)] {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().capacity(runs + capacity));
        assert_eq!(sort(&folder, &records, 1, 1).is_ok(), suffices);
    }
}

#[test]
fn repeated_records_do_not_outgrow_the_batches() {
    let shapes: [fn(u64) -> u64; 4] = [
        |_| 7,
        |i| if i % 3 == 0 { mix(i) } else { 1 << 60 },
        |i| mix(i) % 2,
        |i| if i < 300_000 { 0 } else { u64::MAX },
    ];
    for shape in shapes {
        let records: Vec<u64> = (0..600_000).map(shape).collect();
        for workers in [1, 2] {
            let (job, pool) = (Job::new(), pool(workers));
            let (mut out, mut longest) = (Vec::new(), 0);
            let sorter = fill(&FaultFolder::new(), &records, 1, &pool, &job).unwrap();
            sorter
                .merge(&pool, |batch| {
                    longest = longest.max(batch.len());
                    out.extend_from_slice(batch);
                    Ok::<(), Error>(())
                })
                .unwrap();
            assert!(out == expected(&records));
            // A piece, its overlap with 147 runs, and the strides next to a cut.
            assert!(longest <= 40_000, "a batch of {longest} records");
        }
    }
}

#[test]
fn a_panic_in_the_consumer_is_passed_on_and_not_waited_for() {
    let records = values(100_000);
    let (job, pool) = (Job::new(), pool(3));
    let sorter = fill(&FaultFolder::new(), &records, 1, &pool, &job).unwrap();
    let mut calls = 0;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        sorter.merge(&pool, |_| {
            calls += 1;
            assert!(calls < 3, "on purpose");
            Ok::<(), Error>(())
        })
    }));
    assert!(caught.is_err());
    assert_eq!(calls, 3);
}

#[test]
fn cancelling_stops_writers_and_merges() {
    let records = values(100_000);
    let (job, pool) = (Job::new(), pool(2));
    let folder = FaultFolder::new();
    let sorter = fill(&folder, &records, 1, &pool, &job).unwrap();
    let mut batches = 0;
    let merged = sorter.merge(&pool, |_| {
        batches += 1;
        job.cancel();
        Ok(())
    });
    assert!(matches!(merged, Err(Error::Interrupted)));
    // Each worker may have had its piece ready.
    assert!((1..=3).contains(&batches), "{batches} batches after the stop");
    assert!(matches!(fill(&folder, &records, 1, &pool, &job).map(drop), Err(Error::Interrupted)));
}
