//! `RecordBag` and `DiskBag` against a `BTreeMap`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use brimful_collections::{DiskBag, Error, Order, RecordBag};
use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};

use crate::{Random, in_a_minute, options};

const MEMORY: u64 = 400 << 10;

type Model = BTreeMap<u64, Vec<u8>>;

/// A record: mostly short, sometimes longer than some pages.
fn record(random: &mut Random) -> Vec<u8> {
    let len = match random.below(40) {
        0 => random.below(30_000),
        1..=4 => random.below(5000),
        _ => random.below(300),
    };
    let fill = random.next() as u8;
    (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
}

struct Both {
    bag: RecordBag,
    model: Model,
    len: u64,
    random: Random,
}

impl Both {
    fn new(bag: RecordBag, seed: u64) -> Self {
        Self { bag, model: Model::new(), len: 0, random: Random(seed) }
    }

    fn present(&mut self, most: u64) -> Vec<u64> {
        let ids: Vec<u64> = self.model.keys().copied().collect();
        let count = if ids.is_empty() { 0 } else { self.random.below(most) };
        (0..count).map(|_| ids[self.random.below(ids.len() as u64) as usize]).collect()
    }

    /// One random operation on both.
    fn step(&mut self) {
        match self.random.below(11) {
            0 | 1 => {
                let more: Vec<Vec<u8>> =
                    (0..self.random.below(300)).map(|_| record(&mut self.random)).collect();
                assert_eq!(self.bag.extend(&more).unwrap(), self.len);
                self.model.extend((self.len..).zip(more.iter().cloned()));
                self.len += more.len() as u64;
            }
            2 => {
                let one = record(&mut self.random);
                assert_eq!(self.bag.append(&one).unwrap(), self.len);
                self.model.insert(self.len, one);
                self.len += 1;
            }
            3 => {
                for id in self.present(20) {
                    match self.model.remove(&id) {
                        Some(_) => self.bag.remove(id).unwrap(),
                        None => assert!(matches!(self.bag.remove(id), Err(Error::Removed { .. }))),
                    }
                }
            }
            4 | 5 => {
                let ids = self.present(400);
                let records: Vec<Vec<u8>> = ids.iter().map(|_| record(&mut self.random)).collect();
                self.bag.store_batch(&ids, &records).unwrap();
                self.model.extend(ids.into_iter().zip(records));
            }
            6 => {
                let ids = self.present(400);
                let items: Vec<Vec<u8>> =
                    ids.iter().map(|id| vec![*id as u8; self.random.below(40) as usize]).collect();
                self.bag.append_to_batch(&ids, &items).unwrap();
                for (id, item) in ids.iter().zip(items) {
                    self.model.get_mut(id).unwrap().extend(item);
                }
            }
            7 => {
                let ids = self.present(400);
                let batches = self.bag.fetch_batch(&ids).unwrap();
                let found = batches.iter().flat_map(|records| records.iter());
                assert!(found.eq(ids.iter().map(|id| self.model[id].as_slice())));
            }
            8 => {
                let change = |id: u64, record: &mut Vec<u8>| match id % 4 {
                    0 => record.push(7),
                    1 => record.truncate(record.len() / 2),
                    _ => {}
                };
                self.bag
                    .process(&Order::Descending, |id, record| {
                        change(id, record);
                        Ok(())
                    })
                    .unwrap();
                self.model.iter_mut().for_each(|(id, record)| change(*id, record));
            }
            9 => {
                let Some(id) = self.len.checked_sub(1).map(|most| self.random.below(most + 1))
                else {
                    return;
                };
                let one = record(&mut self.random);
                self.bag.store(id, &one).unwrap();
                self.model.insert(id, one);
            }
            _ => {
                for id in self.present(10) {
                    self.bag.append_to(id, b"more").unwrap();
                    self.model.get_mut(&id).unwrap().extend(b"more");
                    assert_eq!(self.bag.get(id).unwrap(), self.model[&id]);
                }
            }
        }
    }

    fn assert_equal(&self) {
        assert_eq!(self.bag.len(), self.len);
        assert_eq!(self.bag.count(), self.model.len() as u64);
        for id in 0..self.len {
            match self.model.get(&id) {
                Some(record) => assert_eq!(&self.bag.get(id).unwrap(), record, "record {id}"),
                None => assert!(matches!(self.bag.get(id), Err(Error::Removed { .. }))),
            }
            assert_eq!(self.bag.contains(id).unwrap(), self.model.contains_key(&id));
        }
        assert_eq!(all(&self.bag), self.model);
    }
}

fn all(bag: &RecordBag) -> Model {
    let records = bag.fetch_range(0, bag.len() as usize).unwrap();
    (0..bag.len())
        .filter_map(|id| records.get(id as usize).map(|record| (id, record.to_vec())))
        .collect()
}

#[test]
fn a_bag_agrees_with_a_map() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bag");
        let mut both = Both::new(RecordBag::open(&path, b"bytes", options(MEMORY)).unwrap(), seed);
        for round in 0..4 {
            for _ in 0..40 {
                both.step();
            }
            both.assert_equal();
            if round % 2 == 0 {
                both.bag.sync().unwrap()
            } else {
                both.bag.compact().unwrap()
            }
            both.assert_equal();
            let Both { bag, model, len, random } = both;
            drop(bag);
            let bag = RecordBag::open(&path, b"bytes", options(MEMORY)).unwrap();
            both = Both { bag, model, len, random };
            both.assert_equal();
        }
        assert!(both.model.len() > 500);
    }
}

#[test]
fn a_crash_leaves_the_bag_as_it_was_at_a_sync() {
    let run = |folder: &FaultFolder| {
        let bag = RecordBag::open_in(folder, b"bytes", options(MEMORY)).unwrap();
        let (mut both, mut synced) = (Both::new(bag, 11), vec![Model::new()]);
        for round in 0..32 {
            both.step();
            if round % 8 == 7 {
                synced.push(both.model.clone());
                if round % 16 == 7 { both.bag.sync().unwrap() } else { both.bag.compact().unwrap() }
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
        let bag = RecordBag::open_in(&folder.crash(), b"bytes", options(MEMORY)).unwrap();
        let found = all(&bag);
        assert!(
            synced.contains(&found),
            "sync {at}: {} records are none of the states",
            found.len()
        );
        // The bag remains usable.
        let mut both = Both { len: bag.len(), model: found, bag, random: Random(at) };
        (0..10).for_each(|_| both.step());
        both.assert_equal();
    }
}

#[test]
fn a_full_disk_leaves_records_whole() {
    for room in [0, 5, 20, 40, 80, 200] {
        let folder = FaultFolder::new();
        let bag = RecordBag::open_in(&folder, b"bytes", options(MEMORY)).unwrap();
        bag.extend(&(0..2000).map(|id| vec![id as u8; 400]).collect::<Vec<_>>()).unwrap();
        bag.sync().unwrap();
        folder.set_plan(FaultPlan::new().capacity(folder.used_bytes() + room * 4096));
        let mut failed = None;
        for round in 1..40u64 {
            let ids: Vec<u64> = (0..2000).collect();
            let records: Vec<Vec<u8>> =
                ids.iter().map(|id| vec![*id as u8; 400 + (round as usize * 37) % 300]).collect();
            if let Err(error) = bag.store_batch(&ids, &records).and_then(|()| bag.sync()) {
                failed = Some(error);
                break;
            }
        }
        let error = failed.unwrap();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let len = bag.len();
        let more: Vec<Vec<u8>> = (0..400).map(|at| vec![1; 40 * at % 3000]).collect();
        while bag.extend(&more).and_then(|_| bag.sync()).is_ok() {}
        while (0..len).try_for_each(|id| bag.append_to(id, &[id as u8; 900])).is_ok() {}
        folder.set_plan(FaultPlan::new());
        for (id, record) in all(&bag).into_iter().take(len as usize) {
            assert!(record.len() >= 400 && record.iter().all(|b| *b == id as u8), "record {id}");
        }
        bag.sync().unwrap();
        bag.verify().unwrap();
        assert_eq!(
            all(&RecordBag::open_in(&folder.crash(), b"bytes", options(MEMORY)).unwrap()),
            all(&bag)
        );
    }
}

#[test]
fn random_rewriting_amplifies_space_by_less_than_two() {
    for (shortest, longest, synced) in
        [(20, 980, true), (20, 980, false), (500, 501, true), (100, 6000, true)]
    {
        let folder = FaultFolder::new();
        let bag = RecordBag::open_in(&folder, b"bytes", options(4 << 20)).unwrap();
        let mut random = Random(5);
        let count = 8_000_000 / u64::from(shortest as u32 + longest as u32);
        let length = |random: &mut Random| (shortest + random.below(longest - shortest)) as usize;
        let records: Vec<Vec<u8>> = (0..count).map(|_| vec![1; length(&mut random)]).collect();
        bag.extend(&records).unwrap();
        bag.sync().unwrap();
        let mut lengths: Vec<usize> = records.iter().map(Vec::len).collect();
        for round in 0..10u8 {
            let ids: Vec<u64> = (0..count).map(|_| random.below(count)).collect();
            let records: Vec<Vec<u8>> =
                ids.iter().map(|_| vec![round; length(&mut random)]).collect();
            for (ids, records) in ids.chunks(1000).zip(records.chunks(1000)) {
                bag.store_batch(ids, records).unwrap();
            }
            ids.iter().zip(&records).for_each(|(id, record)| lengths[*id as usize] = record.len());
            if synced {
                bag.sync().unwrap();
            }
        }
        bag.sync().unwrap();
        let (live, file) = (lengths.iter().sum::<usize>() as f64, bag.file_bytes().unwrap() as f64);
        assert!(file / live < 2.0, "{shortest}..{longest}: {file} bytes for {live}");
        bag.compact().unwrap();
        let file = bag.file_bytes().unwrap() as f64;
        assert!(file / live < 1.7, "{shortest}..{longest} compacted: {file} bytes for {live}");
    }
}

#[test]
fn records_with_pages_of_their_own_share_batches() {
    let bag = RecordBag::open_in(&FaultFolder::new(), b"bytes", options(16 << 20)).unwrap();
    // A share is about 340 KiB: a record in the middle exceeds it, and all others fill about eight.
    let length = |id: u64| match id {
        1000 => 400_000,
        _ if id % 20 == 3 => 20_000,
        _ => 200,
    };
    let records: Vec<Vec<u8>> = (0..2000).map(|id| vec![id as u8; length(id)]).collect();
    bag.extend(&records).unwrap();
    let (mut batches, mut start) = (0, 0);
    loop {
        let batch = bag.fetch_next(start, bag.batch_len()).unwrap();
        if batch.is_empty() {
            break;
        }
        for (at, id) in (0..batch.len()).zip(start..) {
            assert_eq!(batch.get(at), Some(&records[id as usize][..]), "record {id}");
        }
        (batches, start) = (batches + 1, start + batch.len() as u64);
    }
    assert_eq!(start, 2000);
    assert!(batches < 25, "{batches} batches");
}

#[test]
fn a_bag_that_shrinks_gives_space_back() {
    let folder = FaultFolder::new();
    let bag = RecordBag::open_in(&folder, b"bytes", options(2 << 20)).unwrap();
    bag.extend(&(0..20_000).map(|_| vec![1; 500]).collect::<Vec<_>>()).unwrap();
    bag.append(&vec![2; 3_000_000]).unwrap();
    bag.sync().unwrap();
    let full = bag.file_bytes().unwrap();
    (0..20_000).filter(|id| id % 20 != 0).for_each(|id| bag.remove(id).unwrap());
    bag.store(20_000, b"short").unwrap();
    bag.compact().unwrap();
    let bytes = bag.file_bytes().unwrap();
    assert!(bytes < full / 8, "{bytes} of {full}");
    (0..20_000).step_by(20).for_each(|id| assert_eq!(bag.get(id).unwrap(), [1; 500]));
    assert_eq!(bag.get(20_000).unwrap(), b"short");
}

#[test]
fn a_growing_record_costs_a_constant_amount_a_byte() {
    let folder = FaultFolder::new();
    let bag = RecordBag::open_in(&folder, b"bytes", options(2 << 20)).unwrap();
    let id = bag.append(b"").unwrap();
    let mut expected = Vec::new();
    for piece in 0..20_000u32 {
        bag.append_to(id, &piece.to_le_bytes()).unwrap();
        expected.extend(piece.to_le_bytes());
    }
    assert_eq!(bag.get(id).unwrap(), expected);
    bag.compact().unwrap();
    assert!(bag.file_bytes().unwrap() < 3 * expected.len() as u64, "{}", bag.file_bytes().unwrap());
}

#[test]
fn many_threads_change_records_while_others_read_and_the_bag_compacts() {
    let folder = tempfile::tempdir().unwrap();
    let bag = RecordBag::open(&folder.path().join("bag"), b"bytes", options(MEMORY)).unwrap();
    bag.extend(&(0..1200).map(|_| vec![0; 64]).collect::<Vec<_>>()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let bag = &bag;
            scope.spawn(move || {
                let mut random = Random(thread);
                for round in 1..=20u8 {
                    for id in (thread..1200).step_by(3) {
                        bag.store(id, &vec![round; random.below(900) as usize + 1]).unwrap();
                    }
                    for id in (thread..1200).step_by(3) {
                        bag.fetch(id, |record| assert!(record.iter().all(|b| *b == round)))
                            .unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..10 {
                bag.compact().unwrap();
                let ids: Vec<u64> = (0..1200).collect();
                for records in bag.fetch_batch(&ids).unwrap() {
                    for record in records.iter() {
                        assert!(record.iter().all(|b| *b == record[0]), "a record is of one piece");
                    }
                }
            }
        });
    });
    (0..1200).for_each(|id| assert!(bag.get(id).unwrap().iter().all(|b| *b == 20)));
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag");
    let bag = RecordBag::open(&path, b"bytes", options(MEMORY)).unwrap();
    bag.extend(&[b"a", b"b"]).unwrap();
    assert!(matches!(bag.get(2), Err(Error::OutOfRange { id: 2, len: 2, .. })));
    assert!(matches!(bag.store(2, b""), Err(Error::OutOfRange { .. })));
    assert!(matches!(bag.append_to(5, b""), Err(Error::OutOfRange { .. })));
    assert!(matches!(bag.fetch_batch(&[1, 2]), Err(Error::OutOfRange { id: 2, .. })));
    assert!(matches!(bag.fetch_range(1, 2), Err(Error::OutOfRange { .. })));
    assert!(matches!(bag.store_batch(&[0], &[b"x", b"y"]), Err(Error::Usage(_))));
    bag.remove(0).unwrap();
    assert!(matches!(bag.get(0), Err(Error::Removed { id: 0, .. })));
    assert!(matches!(bag.fetch_batch(&[0]), Err(Error::Removed { id: 0, .. })));
    assert!(matches!(bag.append_to(0, b""), Err(Error::Removed { .. })));
    bag.sync().unwrap();
    drop(bag);
    assert!(matches!(
        RecordBag::open(&path, b"str", options(MEMORY)),
        Err(Error::RecordType { .. })
    ));
    let values = DiskBag::<u64>::open(&path, options(MEMORY)).unwrap_err();
    assert!(values.to_string().contains("postcard"), "{values}");
}

#[test]
fn values_of_a_type_go_through_their_codec() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag");
    let bag = DiskBag::<(String, Vec<u32>)>::open(&path, options(MEMORY)).unwrap();
    let values: Vec<(String, Vec<u32>)> =
        (0..2000).map(|i| (format!("name {i}"), (0..i % 50).collect())).collect();
    bag.extend(&values).unwrap();
    bag.remove(17).unwrap();
    bag.process(&Order::Ascending, |_, (_, list)| {
        list.push(1);
        Ok(())
    })
    .unwrap();
    let (name, list) = bag.fetch(1999).unwrap();
    assert_eq!((name.as_str(), list.len()), ("name 1999", 50));
    assert_eq!(bag.fetch_batch(&[5, 3]).unwrap()[1].0, "name 3");
    assert_eq!(bag.iter().map(Result::unwrap).count(), 1999);
    bag.records().store(4, &[0xFF; 3]).unwrap();
    assert!(matches!(bag.fetch(4), Err(Error::Codec { id: 4, .. })));
}

#[test]
fn a_failed_read_or_write_is_an_error_and_the_bag_goes_on() {
    for operation in [Operation::Read, Operation::Write] {
        for number in (1..200).step_by(7) {
            let folder = FaultFolder::new();
            let bag = RecordBag::open_in(&folder, b"bytes", options(MEMORY)).unwrap();
            bag.extend(&(0..3000).map(|_| vec![1; 300]).collect::<Vec<_>>()).unwrap();
            folder.set_plan(FaultPlan::new().fail(operation, number, Fault::Io));
            let ids: Vec<u64> = (0..3000).rev().collect();
            let records: Vec<Vec<u8>> = ids.iter().map(|_| vec![2; 450]).collect();
            let failed = bag.store_batch(&ids, &records);
            // A failed bulk read is repeated page by page.
            let may_succeed = operation == Operation::Read || folder.count(operation) < number;
            assert!(failed.is_err() || may_succeed);
            // Threads share the work: the fault may not have occurred yet.
            folder.set_plan(FaultPlan::new());
            for (id, record) in all(&bag) {
                assert!(
                    record == [1; 300] || record == [2; 450],
                    "record {id}: {} bytes",
                    record.len()
                );
            }
            bag.sync().unwrap();
            assert_eq!(
                all(&RecordBag::open_in(&folder.crash(), b"bytes", options(MEMORY)).unwrap()),
                all(&bag)
            );
        }
    }
}

#[test]
fn a_bag_that_fills_its_budget_is_synced_and_opened_again() {
    let folder = FaultFolder::new();
    let bag = RecordBag::open_in(&folder, b"bytes", options(MEMORY)).unwrap();
    // Each record takes a page.
    let record = |id: u64| vec![id as u8; 3000];
    let mut ids = 0..1 << 20;
    let full = ids.find(|id| bag.append(&record(*id)).is_err()).unwrap();
    assert!(full > 2000, "{full}");
    // Changes of records that there are need no more memory.
    (0..full).step_by(3).for_each(|id| bag.store(id, &vec![1; 2900]).unwrap());
    (1..full).step_by(3).for_each(|id| bag.remove(id).unwrap());
    bag.sync().unwrap();
    let expected = all(&bag);
    drop(bag);
    let bag = RecordBag::open_in(&folder.crash(), b"bytes", options(MEMORY)).unwrap();
    assert_eq!(all(&bag), expected);
    // Freed pages take records.
    let again = bag.append(&record(full)).unwrap();
    bag.store(0, &record(0)).unwrap();
    bag.compact().unwrap();
    assert_eq!(bag.get(again).unwrap(), record(full));
}

#[test]
fn a_bag_is_processed_changed_and_synced_at_the_same_time() {
    let bag = RecordBag::open_in(&FaultFolder::new(), b"bytes", options(MEMORY)).unwrap();
    bag.extend(&vec![[0; 8]; 20_000]).unwrap();
    in_a_minute(move || {
        let is_done = AtomicBool::new(false);
        let ids: Vec<u64> = (0..20_000).step_by(200).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    bag.sync().unwrap();
                }
            });
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    bag.store_batch(&ids, &vec![[1; 8]; ids.len()]).unwrap();
                }
            });
            for _ in 0..20 {
                bag.process(&Order::Ascending, |_, record| {
                    record.iter_mut().for_each(|byte| *byte += 1);
                    Ok(())
                })
                .unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(bag.get(1).unwrap(), [20; 8]);
    });
}
