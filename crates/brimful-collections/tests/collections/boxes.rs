//! `DiskBox` against a vector.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use brimful_collections::{DiskBox, Error, FrequencyCounter, Ids, Order, RecordBox};
use brimful_store::fault::{FaultFolder, FaultPlan, Operation};
use brimful_store::{Error as StoreError, Folder};

use crate::{Random, in_a_minute, options};

const MEMORY: u64 = 400 << 10;

type Record = [u32; 3];

fn record(random: &mut Random) -> Record {
    [random.next() as u32, random.next() as u32, random.next() as u32]
}

/// One random operation on both.
fn step(random: &mut Random, disk: &DiskBox<Record>, model: &mut Vec<Record>) {
    let len = model.len() as u64;
    match random.below(10) {
        0 | 1 => {
            let more: Vec<Record> = (0..random.below(2000)).map(|_| record(random)).collect();
            assert_eq!(disk.extend(&more).unwrap(), len);
            model.extend(more);
        }
        2 => {
            let one = record(random);
            assert_eq!(disk.append(&one).unwrap(), len);
            model.push(one);
        }
        3 if random.below(4) == 0 => {
            let to = random.below(len * 2);
            disk.resize(to).unwrap();
            model.resize(to as usize, [0; 3]);
        }
        4 if len > 0 => {
            let ids: Vec<u64> = (0..random.below(3000)).map(|_| random.below(len)).collect();
            let records: Vec<Record> = ids.iter().map(|_| record(random)).collect();
            disk.store_batch(&ids, &records).unwrap();
            ids.iter().zip(records).for_each(|(id, record)| model[*id as usize] = record);
        }
        5 if len > 0 => {
            let ids: Vec<u64> = (0..random.below(3000)).map(|_| random.below(len)).collect();
            let expected: Vec<Record> = ids.iter().map(|id| model[*id as usize]).collect();
            assert_eq!(disk.fetch_batch(&ids).unwrap(), expected);
        }
        6 => {
            let start = random.below(len + 1);
            let count = random.below(len - start + 1) as usize;
            assert_eq!(disk.fetch_range(start, count).unwrap(), model[start as usize..][..count]);
        }
        7 if len > 0 => {
            let start = random.below(len);
            let records: Vec<Record> =
                (0..random.below(len - start)).map(|_| record(random)).collect();
            disk.store_range(start, &records).unwrap();
            model[start as usize..][..records.len()].copy_from_slice(&records);
        }
        8 if len > 0 => {
            let order = match random.below(4) {
                0 => Order::Ascending,
                1 => Order::Descending,
                2 => Order::Ranges(vec![random.below(len)..len]),
                _ => Order::Ids((0..len).filter(|_| random.below(3) == 0).collect()),
            };
            let change = |id: u64, record: &mut Record| {
                if id % 3 != 1 {
                    record[1] = record[1].wrapping_add(id as u32);
                }
            };
            disk.process(&order, |ids, records| {
                ids.iter().zip(records).for_each(|(id, record)| change(id, record));
                Ok(())
            })
            .unwrap();
            let ids: Vec<u64> = match order {
                Order::Ranges(ranges) => ranges.into_iter().flatten().collect(),
                Order::Ids(ids) => ids,
                _ => (0..len).collect(),
            };
            ids.iter().for_each(|id| change(*id, &mut model[*id as usize]));
        }
        _ if len > 0 => {
            let id = random.below(len);
            assert_eq!(disk.fetch(id).unwrap(), model[id as usize]);
            let one = record(random);
            disk.store(id, &one).unwrap();
            model[id as usize] = one;
        }
        _ => {}
    }
}

#[test]
fn a_box_agrees_with_a_vector() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box");
        let (mut random, mut model) = (Random(seed), Vec::new());
        for _ in 0..4 {
            let disk = DiskBox::<Record>::open(&path, options(MEMORY)).unwrap();
            assert_eq!(disk.len(), model.len() as u64);
            for _ in 0..40 {
                step(&mut random, &disk, &mut model);
            }
            assert_eq!(disk.fetch_range(0, model.len()).unwrap(), model);
            assert!(disk.iter().map(Result::unwrap).eq(model.iter().copied()));
            if random.below(2) == 0 { disk.sync().unwrap() } else { disk.compact().unwrap() }
        }
        assert!(model.len() > 1000);
    }
}

#[test]
fn a_crash_leaves_the_box_as_it_was_at_a_sync() {
    let run = |folder: &FaultFolder| {
        let disk = DiskBox::<Record>::open_in(folder, options(MEMORY)).unwrap();
        let (mut random, mut model, mut synced) = (Random(3), Vec::new(), vec![Vec::new()]);
        for round in 0..24 {
            step(&mut random, &disk, &mut model);
            if round % 6 == 5 {
                synced.push(model.clone());
                disk.sync().unwrap();
            }
        }
        synced
    };
    let folder = FaultFolder::new();
    run(&folder);
    for at in 4..=folder.count(Operation::Sync) {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(at));
        let synced = run(&folder);
        let disk = DiskBox::<Record>::open_in(&folder.crash(), options(MEMORY)).unwrap();
        let found = disk.fetch_range(0, disk.len() as usize).unwrap();
        assert!(
            synced.contains(&found),
            "sync {at}: {} records are none of the states",
            found.len()
        );
    }
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    let disk = DiskBox::<u64>::open(&path, options(MEMORY)).unwrap();
    disk.extend(&[1, 2, 3]).unwrap();
    assert!(matches!(disk.fetch(3), Err(Error::OutOfRange { id: 3, len: 3, .. })));
    assert!(matches!(disk.fetch_range(2, 2), Err(Error::OutOfRange { len: 3, .. })));
    assert!(matches!(disk.fetch_range(u64::MAX, 2), Err(Error::OutOfRange { .. })));
    assert!(matches!(disk.fetch_batch(&[0, 9, 1]), Err(Error::OutOfRange { id: 9, .. })));
    assert!(matches!(disk.store(7, &0), Err(Error::OutOfRange { id: 7, .. })));
    assert!(matches!(disk.store_batch(&[1, 3], &[0, 0]), Err(Error::OutOfRange { id: 3, .. })));
    assert!(matches!(
        disk.store_batch(&[1], &[0, 0]),
        Err(Error::RecordBytes { expected: 8, found: 16, .. })
    ));
    assert!(matches!(
        disk.process(&Order::Ids(vec![5]), |_, _| Ok(())),
        Err(Error::OutOfRange { id: 5, .. })
    ));
    assert!(matches!(
        disk.records().append(&[0; 9]),
        Err(Error::RecordBytes { expected: 8, found: 9, .. })
    ));
    assert_eq!(disk.fetch_range(0, 3).unwrap(), [1, 2, 3]);
    let busy = DiskBox::<u64>::open(&path, options(MEMORY)).unwrap_err();
    assert!(busy.to_string().contains("this process has it open already"), "{busy}");
    disk.sync().unwrap();
    drop(disk);
    let wrong = DiskBox::<u32>::open(&path, options(MEMORY)).unwrap_err();
    assert!(matches!(wrong, Error::RecordType { .. }), "{wrong}");
    let schema = RecordBox::open(&path, 8, b"<f8", options(MEMORY)).unwrap_err();
    assert!(schema.to_string().contains("<f8"), "{schema}");
    let small = DiskBox::<u64>::open(&path, options(1000)).unwrap_err();
    assert!(matches!(small, Error::Store(StoreError::Budget { .. })), "{small}");
    assert!(matches!(RecordBox::open(&path, 0, b"", options(MEMORY)), Err(Error::Usage(_))));
    assert_eq!(
        DiskBox::<u64>::open(&path, options(MEMORY)).unwrap().fetch_batch(&[2, 0]).unwrap(),
        [3, 1]
    );
}

#[test]
fn an_error_in_the_update_ends_the_stream_and_comes_back() {
    let folder = FaultFolder::new();
    let disk = DiskBox::<u64>::open_in(&folder, options(MEMORY)).unwrap();
    disk.extend(&(0..200_000).collect::<Vec<_>>()).unwrap();
    let failed =
        disk.process(&Order::Ascending, |ids, _| match ids.iter().any(|id| id == 100_000) {
            true => Err(Error::Usage("on purpose".into())),
            false => Ok(()),
        });
    assert!(matches!(failed, Err(Error::Usage(_))));
}

#[test]
fn long_records_get_long_pages() {
    let folder = FaultFolder::new();
    let disk = RecordBox::open_in(&folder, 100_001, b"", options(16 << 20)).unwrap();
    let records: Vec<u8> = (0..10 * 100_001u32).map(|i| (i % 251) as u8).collect();
    disk.extend(&records).unwrap();
    disk.sync().unwrap();
    drop(disk);
    let disk = RecordBox::open_in(&folder, 100_001, b"", options(16 << 20)).unwrap();
    disk.fetch(7, |record| assert_eq!(record, &records[7 * 100_001..][..100_001])).unwrap();
}

#[test]
fn a_budget_that_a_refusal_names_is_enough() {
    let refusal = |refused: Result<(), Error>, given: u64| match refused {
        Err(Error::Store(StoreError::Budget { budget, needed, .. })) => {
            assert_eq!(budget, given);
            needed
        }
        other => panic!("{other:?}"),
    };
    let folder = FaultFolder::new();
    let open = |bytes: u64| DiskBox::<[u64; 512]>::open_in(&folder, options(bytes));
    // A page for each record, and 16 bytes of the page table.
    let last = 20_000;
    let store = |bytes: u64| {
        let records = open(bytes)?;
        records.resize(last + 1)?;
        records.store(last, &[7; 512])?;
        records.sync()
    };
    let given = 400_000;
    let needed = refusal(store(given), given);
    store(needed).unwrap();
    // To read the table, and then to keep it next to some pages.
    for given in [262_144, given] {
        let needed = refusal(open(given).map(drop), given);
        assert_eq!(open(needed).unwrap().fetch(last).unwrap(), [7; 512]);
        let shared = options(needed + 1000);
        let refused = DiskBox::<[u64; 512]>::open_in(&folder, shared.clone().memory(given));
        refusal(refused.map(drop), needed + 1000);
    }
}

#[test]
fn a_description_that_is_too_long_is_refused_before_the_box_is_made() {
    let folder = FaultFolder::new();
    let open = |bytes: usize| RecordBox::open_in(&folder, 8, &vec![b'x'; bytes], options(MEMORY));
    let refused = open(4001 - 16).unwrap_err();
    assert!(matches!(refused, Error::Usage(_)), "{refused}");
    assert!(refused.to_string().contains("is 1 byte too long"), "{refused}");
    assert_eq!(folder.list().unwrap().len(), 0);
    open(4000 - 16).unwrap();
}

#[test]
fn a_range_beyond_a_box_takes_no_memory() {
    let disk = DiskBox::<Record>::open_in(&FaultFolder::new(), options(MEMORY)).unwrap();
    disk.extend(&[[1; 3]; 10]).unwrap();
    for (start, count) in [(0, 1 << 58), (0, usize::MAX), (3, 8), (u64::MAX, 1)] {
        let refused = disk.fetch_range(start, count);
        assert!(matches!(refused, Err(Error::OutOfRange { len: 10, .. })), "{start}, {count}");
    }
    assert_eq!(disk.fetch_range(3, 7).unwrap(), [[1; 3]; 7]);
}

#[test]
fn ids_up_to_the_largest_number_are_read() {
    let disk = DiskBox::<Record>::open_in(&FaultFolder::new(), options(MEMORY)).unwrap();
    disk.resize(u64::MAX).unwrap();
    let start = u64::MAX - 200_000;
    assert_eq!(disk.fetch_range(u64::MAX - 3, 3).unwrap(), [[0; 3]; 3]);
    assert!(disk.fetch_range(start, 200_000).unwrap().iter().all(|record| *record == [0; 3]));
    let seen = AtomicU64::new(0);
    disk.process(&Order::Ranges(vec![start..u64::MAX, Range { start: 7, end: 3 }]), |ids, _| {
        seen.fetch_add(ids.len() as u64, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    assert_eq!(seen.into_inner(), 200_000);
    assert_eq!(Ids::Range(Range { start: 7, end: 3 }).len(), 0);
}

#[test]
fn records_are_counted_while_they_are_processed() {
    let options = options(MEMORY + (40 << 20));
    let disk =
        DiskBox::<u64>::open_in(&FaultFolder::new(), options.clone().memory(MEMORY)).unwrap();
    disk.extend(&(0..300_000).map(|id| id % 1000).collect::<Vec<_>>()).unwrap();
    in_a_minute(move || {
        let folder = tempfile::tempdir().unwrap();
        let counter = FrequencyCounter::open(folder.path(), options.memory(40 << 20)).unwrap();
        let (is_done, more) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    counter.add_many(&[7; 200_000]).unwrap();
                    assert!(counter.len().unwrap() <= 1000);
                    more.fetch_add(200_000, Ordering::Relaxed);
                }
            });
            let processed = disk.process(&Order::Ascending, |_, records| {
                counter.add_many(records)?;
                assert!(counter.len()? <= 1000);
                Ok(())
            });
            is_done.store(true, Ordering::Relaxed);
            processed.unwrap();
        });
        assert_eq!(counter.len().unwrap(), 1000);
        assert_eq!(counter.count(8).unwrap(), 300);
        assert_eq!(counter.count(7).unwrap(), 300 + more.into_inner());
    });
}

#[test]
fn a_box_is_processed_changed_and_synced_at_the_same_time() {
    let disk = DiskBox::<u64>::open_in(&FaultFolder::new(), options(MEMORY)).unwrap();
    disk.extend(&vec![0; 100_000]).unwrap();
    in_a_minute(move || {
        let is_done = AtomicBool::new(false);
        let ids: Vec<u64> = (0..100_000).step_by(1000).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    disk.sync().unwrap();
                }
            });
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    disk.store_batch(&ids, &vec![1; ids.len()]).unwrap();
                }
            });
            for _ in 0..20 {
                disk.process(&Order::Ascending, |_, records| {
                    std::thread::sleep(Duration::from_micros(100));
                    records.iter_mut().for_each(|record| *record += 1);
                    Ok(())
                })
                .unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(disk.fetch(1).unwrap(), 20);
    });
}
