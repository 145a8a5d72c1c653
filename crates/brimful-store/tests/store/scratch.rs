//! Scratch arrays: resident and paged ones agree; errors of the disk are returned typed.

use std::io::ErrorKind;

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Error, Job};

use crate::{assert_io, eio, mix};

const LEN: usize = 1003;
const WINDOW: usize = 64;

fn windows() -> usize {
    LEN.div_ceil(WINDOW)
}

/// Writes, changes and publishes; returns all observations.
fn exercise(mut array: ScratchArray<u64>) -> Vec<Vec<u64>> {
    let mut seen = Vec::new();
    assert_eq!((array.len(), array.is_empty()), (LEN, false));
    let mut current = HugeArray::zeroed(LEN);
    for round in 0..3 {
        let windows_in_use = array.windows();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let windows_in_use = &windows_in_use;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for index in (thread..windows()).step_by(2) {
                        let fill = |window: &mut [u64]| {
                            for (i, slot) in window.iter_mut().enumerate() {
                                *slot = mix((round << 40 | index << 20 | i) as u64);
                            }
                            window.len()
                        };
                        let len = windows_in_use.overwrite(index, &mut buffer, fill).unwrap();
                        assert_eq!(len, WINDOW.min(LEN - index * WINDOW));
                    }
                });
            }
        });
        let mut buffer = vec![1; 7];
        for index in [0, 5, windows() - 1] {
            let change = |window: &mut [u64]| {
                window[0] += 1;
                window.iter().copied().fold(0, u64::wrapping_add)
            };
            seen.push(vec![windows_in_use.update(index, &mut buffer, change).unwrap()]);
        }
        // Across windows, whose other records stay.
        let records: Vec<u64> = (0..200).map(|at| mix(round as u64 + at)).collect();
        windows_in_use.write(WINDOW - 5, &records).unwrap();
        windows_in_use.write(LEN - 1, &records[..1]).unwrap();
        drop(windows_in_use);
        assert_eq!(array.slice(WINDOW - 5..WINDOW + 195, &mut buffer).unwrap(), records);
        assert_eq!(array.in_memory().is_some(), array.is_resident());
        for (start, len) in [(0, LEN), (LEN, 0), (63, 2), (LEN - 1, 1), (300, 500)] {
            let mut out = vec![0; len];
            array.read(start, &mut out).unwrap();
            seen.push(out);
        }
        array.publish_into(&mut current).unwrap();
        seen.push(current.to_vec());
    }
    seen
}

#[test]
fn resident_and_paged_agree() {
    let resident = ScratchArray::resident(LEN, WINDOW);
    assert!(resident.is_resident());
    let expected = exercise(resident);
    assert!(expected.iter().any(|seen| seen.len() == LEN));
    for plan in [FaultPlan::new(), FaultPlan::new().varying(300, 8)] {
        let (folder, job) = (FaultFolder::new(), Job::new());
        folder.set_plan(plan);
        let paged = ScratchArray::paged(LEN, WINDOW, &folder, &job).unwrap();
        assert!(!paged.is_resident());
        assert_eq!(exercise(paged), expected);
        let bytes = (LEN * 8) as u64;
        assert!(
            job.traffic().bytes_written() > 3 * bytes && job.traffic().bytes_read() > 6 * bytes
        );
        assert_eq!(folder.used_bytes(), 0, "the file went with the array");
    }
}

#[test]
fn publishing_fills_a_vector_of_any_length() {
    let (folder, job) = (FaultFolder::new(), Job::new());
    for mut array in
        [ScratchArray::resident(5, 2), ScratchArray::paged(5, 2, &folder, &job).unwrap()]
    {
        for current_len in [0, 3, 5, 9] {
            for index in 0..3 {
                array
                    .windows()
                    .overwrite(index, &mut Vec::new(), |window| window.fill(7_u32))
                    .unwrap();
            }
            let mut current = HugeArray::zeroed(current_len);
            array.publish_into(&mut current).unwrap();
            assert_eq!(*current, [7; 5]);
        }
    }
}

#[test]
fn a_full_or_failing_disk_is_named() {
    let (folder, job) = (FaultFolder::new(), Job::new());
    folder.set_plan(FaultPlan::new().fail(Operation::Create, 1, Fault::Full));
    let refused = ScratchArray::<u64>::paged(LEN, WINDOW, &folder, &job);
    assert_io(refused, "(memory)", "create a scratch file in", ErrorKind::StorageFull);

    let mut array = ScratchArray::<u64>::paged(LEN, WINDOW, &folder, &job).unwrap();
    folder.set_plan(FaultPlan::new().capacity(WINDOW as u64 * 8 + 1));
    let fill = |window: &mut [u64]| window.fill(3);
    let mut buffer = Vec::new();
    array.windows().overwrite(0, &mut buffer, fill).unwrap();
    let full = array.windows().overwrite(1, &mut buffer, fill);
    assert_io(full, "(scratch)", "write", ErrorKind::StorageFull);
    let mut out = [0; WINDOW];
    array.read(0, &mut out).unwrap();
    assert_eq!(out, [3; WINDOW], "the window before is as it was");

    folder.set_plan(FaultPlan::new().fail(Operation::Read, 1, Fault::Io).fail(
        Operation::Read,
        2,
        Fault::Io,
    ));
    assert_io(array.windows().update(0, &mut buffer, fill), "(scratch)", "read", eio());
    assert_io(array.read(0, &mut out), "(scratch)", "read", eio());
}

#[test]
fn a_window_never_written_is_not_mistaken_for_data() {
    let (folder, job) = (FaultFolder::new(), Job::new());
    let mut array = ScratchArray::<u64>::paged(LEN, WINDOW, &folder, &job).unwrap();
    let result = array.windows().update(0, &mut Vec::new(), |_| ());
    assert!(matches!(result, Err(Error::Corrupt { .. })));
}
