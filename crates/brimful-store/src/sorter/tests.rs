//! The sorter against sorting in memory, at several budgets and numbers of workers.

use super::memory_plan::SHARE_OF_RECORDS;
use super::*;
use crate::{DiskFolder, Error};

fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn sorted_through_disk(values: &[u64], workers: usize, bytes: u64) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
    let sorter = Sorter::new(&DiskFolder::new(folder.path()), bytes, workers, &job).unwrap();
    pool.broadcast(|worker| {
        let mut writer = sorter.writer();
        for value in values.iter().skip(worker.index()).step_by(workers) {
            writer.push(*value).unwrap();
        }
        writer.finish().unwrap();
    });
    let mut out = Vec::new();
    sorter
        .merge(&pool, |batch| {
            out.extend_from_slice(batch);
            Ok::<(), Error>(())
        })
        .unwrap();
    out
}

#[test]
fn no_piece_has_more_repeats_than_a_piece_may_have_records() {
    let folder = tempfile::tempdir().unwrap();
    let (job, bytes) = (Job::new(), 1 << 20);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let mut sorter = Sorter::new(&DiskFolder::new(folder.path()), bytes, 2, &job).unwrap();
    let mut writer = sorter.writer();
    let values = [vec![3; 10], vec![7; 1 << 20], vec![9; 10]].concat();
    values.iter().for_each(|value| writer.push(*value).unwrap());
    writer.finish().unwrap();
    let most = sorter.piece_len().unwrap();
    let (mut merged, mut pieces) = (Vec::new(), 0);
    let first = |piece: Piece<'_, u64>| {
        let (value, count) = piece.repeats.unwrap_or((0, 0));
        assert!(count <= most, "{count} repeats where a piece has at most {most} records");
        pieces += usize::from(count > 0);
        merged.extend(std::iter::repeat_n(value, count));
        merged.extend_from_slice(piece.records);
        Ok::<_, Error>(())
    };
    sorter.merge_in_stages(&pool, first, |(), _| Ok(()), |()| Ok(())).unwrap();
    assert!(merged == values);
    assert!(pieces > 4, "{pieces}");
}

#[test]
fn the_stream_is_sorted_at_any_worker_count_and_budget() {
    type Shape = fn(u64) -> u64;
    let shapes: [Shape; 5] =
        [mix, |i| mix(i) >> 40, |i| mix(i) % 3, |_| 7, |i| mix(i) & 0xFFFF_0000_0000_00FF];
    for shape in shapes {
        // More than MAX_RUNS runs with the smallest buffer, so that some runs are merged twice.
        let values: Vec<u64> = (0..700_000).map(shape).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        for (workers, bytes) in [(1, 1), (2, 1), (3, 1 << 20), (2, 1 << 30)] {
            assert!(
                sorted_through_disk(&values, workers, bytes) == expected,
                "{workers} workers, {bytes} bytes"
            );
        }
    }
}

fn sorting(records: u64, bytes: u64, workers: usize) -> Sorting {
    Sorting { records, record_bytes: 8, bytes, workers, writers: workers }
}

#[test]
fn what_is_written_is_foreseen_and_little_more_than_what_does_not_fit() {
    for (records, bytes, workers) in [
        (200_000_u64, 1 << 30, 2),
        (1 << 20, 12 << 20, 1),
        (1 << 20, 9 << 20, 2),
        (1 << 20, 6 << 20, 2),
        (3 << 20, 4 << 20, 2),
    ] {
        let (folder, job) = (tempfile::tempdir().unwrap(), Job::new());
        let sorter =
            Sorter::<u64>::new(&DiskFolder::new(folder.path()), bytes, workers, &job).unwrap();
        let mut writers: Vec<_> = (0..workers).map(|_| sorter.writer()).collect();
        for i in 0..records {
            writers[i as usize % workers].push(mix(i)).unwrap();
        }
        writers.into_iter().for_each(|writer| writer.finish().unwrap());
        let (all, written) = (records * 8, sorter.file_end.load(Ordering::Relaxed));
        let foreseen = sorting(records, bytes, workers).forecast().disk;
        let off = written.abs_diff(foreseen);
        assert!(
            off <= foreseen / 20 + all / SHARE_OF_RECORDS,
            "{written} bytes, {foreseen} foreseen"
        );
        let is_on_disk = |run: &&SortedRun<u64>| matches!(run.storage, RunStorage::File { .. });
        let on_disk = sorter.runs().iter().filter(is_on_disk).map(|run| run.len * 8).sum::<u64>();
        let buffers =
            2 * workers as u64 * (all / SHARE_OF_RECORDS).min(sorter.plan.longest as u64 * 8);
        let too_many = (all + buffers).saturating_sub(bytes);
        assert!(on_disk <= too_many + all / 10, "{on_disk} bytes on disk, {too_many} did not fit");
    }
}

#[test]
fn an_error_in_the_consumer_stops_the_merge_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let sorter = Sorter::<u64>::new(&DiskFolder::new(folder.path()), 1, 1, &job).unwrap();
    let mut writer = sorter.writer();
    (0..100_000).for_each(|i| writer.push(mix(i)).unwrap());
    writer.finish().unwrap();
    let mut calls = 0;
    let result = sorter.merge(&pool, |_| {
        calls += 1;
        if calls == 3 { Err(Error::corrupt("here", 0, "on purpose")) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Error::Corrupt { .. })));
    assert_eq!(calls, 3);
}

#[test]
fn cancelling_ends_the_merge() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let sorter = Sorter::<u64>::new(&DiskFolder::new(folder.path()), 1, 1, &job).unwrap();
    let mut writer = sorter.writer();
    writer.push(1).unwrap();
    writer.finish().unwrap();
    job.cancel();
    assert!(matches!(sorter.merge(&pool, |_| Ok(())), Err(Error::Interrupted)));
}
