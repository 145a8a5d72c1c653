use brimful_store::ErrorKind;

use super::*;
use crate::Field;
use crate::conformance::{check_id_types, check_records, check_vertices};
use crate::serializer::Compact;
use crate::{Buffered, Serialized};

fn made(path: &Path, memory_bytes: u64) -> Result<KvStore> {
    KvStore::create(path, memory_bytes, &Budget::new(1 << 30, 0))
}

#[test]
fn it_conforms_with_little_memory() {
    let (folder, budget) = (tempfile::tempdir().unwrap(), Budget::new(1 << 30, 0));
    let mut number = 0;
    let mut make = || {
        number += 1;
        let store = KvStore::create(&folder.path().join(number.to_string()), 1 << 16, &budget)?;
        Buffered::new(store, 1 << 20, &budget)
    };
    check_records(&mut make).unwrap();
    check_vertices(&mut || Ok(Serialized::new(make()?, Compact))).unwrap();
    check_id_types(Serialized::new(make().unwrap(), Compact)).unwrap();
}

#[test]
fn keys_of_any_length_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 1 << 20).unwrap();
    let keys: Vec<Vec<u8>> =
        [0, 1, 9, 509, 510, 511, 512, 5000, 70_000].iter().map(|len| vec![7; *len]).collect();
    let pairs: Vec<Pair<'_>> = keys.iter().map(|key| (key.as_slice(), &key[..])).collect();
    assert_eq!(store.load(&pairs).unwrap(), 0);
    assert_eq!(store.load(&pairs).unwrap(), keys.len() as u64);
    let mut seen = 0;
    let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    store
        .get_many(&wanted, &mut |place, record| {
            assert_eq!(record, wanted[place]);
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, keys.len());
    let mut scanned = Vec::new();
    store.begin_scan().unwrap();
    while store
        .next_batch(&mut |key, record| scanned.push((key.to_vec(), record.to_vec())))
        .unwrap()
    {}
    scanned.sort_by_key(|(key, _)| key.len());
    assert_eq!(scanned, keys.iter().cloned().zip(keys.clone()).collect::<Vec<_>>());
    store.remove_many(&wanted[3..]).unwrap();
    assert_eq!(store.count().unwrap(), 3);
}

#[test]
fn ids_are_scanned_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 1 << 20).unwrap();
    let ids: Vec<u64> = (0..3000).chain([1 << 20, 1 << 40, u64::MAX]).collect();
    let key = |id: &u64| {
        let mut key = Vec::new();
        id.write(&mut key);
        key
    };
    let keys: Vec<Vec<u8>> = ids.iter().rev().map(key).collect();
    let pairs: Vec<Pair<'_>> = keys.iter().map(|key| (key.as_slice(), &[][..])).collect();
    store.load(&pairs).unwrap();
    let mut scanned = Vec::new();
    store.begin_scan().unwrap();
    while store.next_batch(&mut |mut key, _| scanned.extend(u64::read(&mut key))).unwrap() {}
    assert_eq!(scanned, ids);
}

#[test]
fn records_of_an_older_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path(), 1 << 20).unwrap();
    let mut txn = store.env.write_txn().unwrap();
    store.tree.put(&mut txn, &[REVERSED, 7], b"record").unwrap();
    txn.commit().unwrap();
    drop(store);
    let refused = KvStore::open(folder.path(), 1 << 20, &Budget::new(1 << 30, 0)).unwrap_err();
    assert!(refused.to_string().contains("records of an older version"), "{refused}");
}

#[test]
fn a_checksum_of_another_key_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 1 << 20).unwrap();
    let (one, other) = (vec![1; 600], vec![2; 600]);
    let mut buffer = Vec::new();
    let mut own = Vec::new();
    write_key(&one, &mut own);
    let mut txn = store.env.write_txn().unwrap();
    store.tree.put(&mut txn, &own, stored(&other, b"r", &mut buffer)).unwrap();
    txn.commit().unwrap();
    for refused in [
        store.get_many(&[&one], &mut |_, _| Ok(())).unwrap_err(),
        store.put_many(&[(&one, b"x")]).unwrap_err(),
        store.load(&[(&one, b"x")]).unwrap_err(),
        store.remove_many(&[&one]).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Usage);
    }
}

#[test]
fn a_record_that_ends_within_its_key_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 1 << 20).unwrap();
    let key = vec![1; 600];
    store.put_many(&[(&key, b"record")]).unwrap();
    let mut own = Vec::new();
    write_key(&key, &mut own);
    let mut txn = store.env.write_txn().unwrap();
    store.tree.put(&mut txn, &own, &[88, 2, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    txn.commit().unwrap();
    store.begin_scan().unwrap();
    for refused in [
        store.get_many(&[&key], &mut |_, _| Ok(())).unwrap_err(),
        store.put_many(&[(&key, b"x")]).unwrap_err(),
        store.next_batch(&mut |_, _| panic!("there is no whole record")).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn neighboring_records_map_their_windows_once() {
    let bytes = vec![0; 4 * MAPPED_BYTES];
    let mut mapped = Mapped::default();
    let windows = |mapped: &Mapped| mapped.bytes / MAPPED_BYTES;
    bytes.chunks(100).for_each(|record| mapped.add(record));
    // Five windows at most, each with the page above it, and records across their bounds.
    assert!(windows(&mapped) <= 4 * 5, "{mapped:?}");
    let before = windows(&mapped);
    mapped.add(&bytes[..100]);
    mapped.add(&bytes[200..300]);
    assert!((2..=3).contains(&(windows(&mapped) - before)), "{mapped:?}");
    let before = windows(&mapped);
    mapped.add(&bytes);
    assert!(windows(&mapped) >= before + 4, "{mapped:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn pages_of_the_file_are_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 4 << 20).unwrap();
    let record = [5; 500];
    let keys: Vec<Vec<u8>> = (0..80_000_u64)
        .map(|id| {
            let mut key = Vec::new();
            brimful_store::varint::write_varint(id, &mut key);
            key
        })
        .collect();
    // Tests beside this one free memory, which the pages would take. So the ceiling is set again
    // before each call, and a call reads too few records for two checks of the memory.
    let call_records = 8;
    let max_mapped = |store: &mut KvStore, ceiling_bytes| {
        let mut most = 0;
        for part in keys.chunks(BATCH_RECORDS) {
            store.ceiling_bytes.set(ceiling_bytes);
            let pairs: Vec<Pair<'_>> =
                part.iter().map(|key| (key.as_slice(), &record[..])).collect();
            store.put_many(&pairs).unwrap();
            for wanted in part.chunks(call_records) {
                store.ceiling_bytes.set(ceiling_bytes);
                let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
                store.get_many(&wanted, &mut |_, _| Ok(())).unwrap();
            }
            most = most.max(mapped_kib(&store.path));
        }
        most
    };
    assert!(2 * call_records * MAPPED_BYTES < store.max_unchecked());
    assert!(max_mapped(&mut store, u64::MAX) > 35 << 10, "the file is not mapped");
    store.min_ceiling_bytes = 0;
    let limited = max_mapped(&mut store, 0);
    assert!(limited < 4 << 10, "{limited} KiB of the file were in memory");
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_others_fill_does_not_release_the_pages_of_each_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 512 << 20).unwrap();
    let record = vec![7; 1000];
    (0..200u64).for_each(|id| store.put_many(&[(&id.to_be_bytes(), &record)]).unwrap());
    // The process has more memory than the budget of the store foresees.
    (store.min_ceiling_bytes, store.ceiling_bytes) = (0, Cell::new(0));
    store.give_back();
    store.get_many(&[&[0; 8]], &mut |_, _| Ok(())).unwrap();
    let before = mapped_kib(folder.path());
    store.put_many(&[(&[0; 8], &record)]).unwrap();
    assert!(before > 0 && mapped_kib(folder.path()) >= before);
}

/// Memory of this process that pages of the store in `folder` take, in KiB.
#[cfg(target_os = "linux")]
fn mapped_kib(folder: &Path) -> u64 {
    let file = folder.join("data.mdb");
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines();
    let mut sum = 0;
    while let Some(line) = lines.next() {
        if line.ends_with(file.to_str().unwrap()) {
            let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            sum += resident.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap();
        }
    }
    sum
}

#[test]
fn records_of_another_run_and_a_budget_that_is_too_small_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = made(folder.path(), 1 << 20).unwrap();
    store.put_many(&[(b"a", b"1")]).unwrap();
    drop(store);
    assert_eq!(made(folder.path(), 1 << 20).unwrap_err().kind(), ErrorKind::Usage);
    let budget = Budget::new(1 << 20, 0);
    let refused = KvStore::create(&folder.path().join("x"), 1 << 24, &budget).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Budget);
}
