//! The ready-made collections against those of the standard library, with more data than memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use brimful_collections::{
    BloomFilter, Codec, DiskLists, DiskMap, Error, FrequencyCounter, MembershipSet, Options,
    RecordBag, RecordBox, SpillingMap,
};
use brimful_store::Error as StoreError;
use brimful_store::fault::{FaultFolder, FaultPlan, Operation};

use crate::{Random, options};

const MEMORY: u64 = 20 << 20;

#[test]
fn counts_agree_with_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    let (mut random, mut model) = (Random(1), BTreeMap::<u64, u64>::new());
    for round in 0..3 {
        let counter = FrequencyCounter::open(&path, options(MEMORY)).unwrap();
        for _ in 0..3 {
            let most = if round == 0 { 1000 } else { u64::MAX };
            let keys: Vec<u64> =
                (0..100_000).map(|_| random.below(most) >> random.below(50)).collect();
            counter.add_many(&keys).unwrap();
            keys.iter().for_each(|key| *model.entry(*key).or_default() += 1);
            let asked: Vec<u64> =
                keys.iter().map(|key| key + random.below(2)).take(30_000).collect();
            let expected: Vec<u64> =
                asked.iter().map(|key| model.get(key).copied().unwrap_or(0)).collect();
            assert_eq!(counter.count_many(&asked).unwrap(), expected);
            assert_eq!(counter.count(keys[0]).unwrap(), model[&keys[0]]);
        }
        assert_eq!(counter.len().unwrap(), model.len() as u64);
        let mut all = BTreeMap::new();
        counter.for_each(|key, count| Ok(assert_eq!(all.insert(key, count), None))).unwrap();
        assert_eq!(all, model);
        let mut top: Vec<(u64, u64)> = model.iter().map(|(key, count)| (*key, *count)).collect();
        top.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
        assert_eq!(counter.top(50).unwrap(), top[..50]);
        counter.sync().unwrap();
    }
}

#[test]
fn members_agree_with_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let (mut random, mut model) = (Random(2), BTreeSet::new());
    for _ in 0..3 {
        let set = MembershipSet::open(&path, options(MEMORY)).unwrap();
        let keys: Vec<u64> = (0..400_000).map(|_| random.below(1 << 22)).collect();
        set.add_many(&keys).unwrap();
        model.extend(&keys);
        for key in keys.iter().take(500) {
            assert_eq!(set.remove(*key).unwrap(), model.remove(key));
        }
        let asked: Vec<u64> = (0..200_000).map(|_| random.below(1 << 22)).collect();
        let expected: Vec<bool> = asked.iter().map(|key| model.contains(key)).collect();
        assert_eq!(set.contains_many(&asked).unwrap(), expected);
        assert!(
            asked
                .iter()
                .zip(&expected)
                .take(1000)
                .all(|(key, is)| set.contains(*key).unwrap() == *is)
        );
        assert_eq!(set.len().unwrap(), model.len() as u64);
        let mut all = BTreeSet::new();
        set.for_each(|key| Ok(assert!(all.insert(key)))).unwrap();
        assert_eq!(all, model);
        set.sync().unwrap();
    }
}

#[test]
fn a_crash_leaves_counts_as_they_were_at_a_sync() {
    let run = |folder: &FaultFolder| {
        let counter = FrequencyCounter::open_in(folder, options(MEMORY)).unwrap();
        let mut random = Random(3);
        let mut syncs = Vec::new();
        for _ in 0..4 {
            counter
                .add_many(&(0..20_000).map(|_| random.below(30_000)).collect::<Vec<_>>())
                .unwrap();
            let before = folder.count(Operation::Sync);
            counter.sync().unwrap();
            syncs.push((before, folder.count(Operation::Sync)));
        }
        syncs
    };
    let folder = FaultFolder::new();
    run(&folder);
    for at in 4..=folder.count(Operation::Sync) {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(at));
        let syncs = run(&folder);
        let counter = FrequencyCounter::open_in(&folder.crash(), options(MEMORY)).unwrap();
        let mut sum = 0;
        counter.for_each(|_, count| Ok(sum += count)).unwrap();
        // The root is written after the first sync of the device; compaction may follow.
        let least = syncs.iter().filter(|(_, after)| *after < at).count() as u64;
        let most = syncs.iter().filter(|(before, _)| before + 2 <= at).count() as u64;
        assert!(
            sum % 20_000 == 0 && (least..=most).contains(&(sum / 20_000)),
            "sync {at}: {sum}, {syncs:?}"
        );
    }
}

#[test]
fn a_failed_write_makes_a_counter_refuse_what_it_no_longer_knows() {
    let folder = FaultFolder::new();
    let counter = FrequencyCounter::open_in(&folder, options(MEMORY)).unwrap();
    counter.add_many(&[1, 2, 3]).unwrap();
    counter.sync().unwrap();
    folder.set_plan(FaultPlan::new().capacity(folder.used_bytes()));
    let keys: Vec<u64> = (0..3_000_000).collect();
    let failed = counter.add_many(&keys).and_then(|()| counter.sync()).unwrap_err();
    assert!(failed.to_string().contains("the disk is full"), "{failed}");
    // With free space it still refuses: its state in memory is not the state that it would write.
    folder.set_plan(FaultPlan::new());
    for refused in [counter.add_many(&[9]), counter.sync(), counter.count_many(&[1]).map(drop)] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("is not used after a failed write"), "{refused}");
    }
    drop(counter);
    let counter = FrequencyCounter::open_in(&folder.crash(), options(MEMORY)).unwrap();
    assert_eq!(counter.count_many(&[1, 2, 3, 4]).unwrap(), [1, 1, 1, 0]);
}

/// Adds batches while another thread cancels the calls all the time; canceled calls are repeated.
fn add_though_stopped(
    options: &Options,
    batches: u64,
    add: impl Fn(u64) -> Result<(), Error>,
    apply: impl Fn() -> Result<(), Error>,
) {
    let (job, done) = (&options.resources.job, AtomicBool::new(false));
    let mut stopped = 0;
    let mut again = |call: &dyn Fn() -> Result<(), Error>| {
        loop {
            match call() {
                Ok(()) => return,
                Err(Error::Store(StoreError::Interrupted)) => stopped += 1,
                Err(error) => panic!("{error}"),
            }
            // As the Python package does after a call.
            job.resume();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(3));
                job.cancel();
            }
        });
        for batch in 0..batches {
            again(&|| add(batch));
            again(&apply);
        }
        done.store(true, Ordering::Relaxed);
    });
    job.resume();
    assert!(stopped > 3, "only {stopped} calls were stopped");
}

#[test]
fn a_counter_that_is_stopped_counts_each_batch_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(MEMORY);
    let counter = FrequencyCounter::open(&folder.path().join("counter"), options.clone()).unwrap();
    let keys = |batch: u64| -> Vec<u64> { (batch * 50_000..(batch + 4) * 50_000).collect() };
    let (add, apply) = (|batch| counter.add_many(&keys(batch)), || counter.sync());
    add_though_stopped(&options, 12, add, apply);
    let mut model = BTreeMap::<u64, u64>::new();
    (0..12).flat_map(keys).for_each(|key| *model.entry(key).or_default() += 1);
    let mut all = BTreeMap::new();
    counter.for_each(|key, count| Ok(assert_eq!(all.insert(key, count), None))).unwrap();
    assert!(all == model);
    assert_eq!((counter.len().unwrap(), counter.accepted()), (model.len() as u64, 12 * 200_000));
}

#[test]
fn lists_that_are_stopped_have_each_item_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(MEMORY);
    let lists = DiskLists::open(&folder.path().join("lists"), 20_000, options.clone()).unwrap();
    let targets: Vec<u32> = (0..100_000).map(|item| item % 20_000).collect();
    let items = |batch: u64| -> Vec<u32> {
        (0..100_000).map(|item| item / 20_000 + batch as u32 * 5).collect()
    };
    add_though_stopped(
        &options,
        8,
        |batch| lists.append_many(&targets, &items(batch)),
        || lists.apply(),
    );
    let expected: Vec<u32> = (0..40).collect();
    (0..20_000).for_each(|list| {
        let mut found = lists.get(list).unwrap();
        // Items applied in two steps are sorted within each.
        found.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn a_filter_finds_what_was_added_and_little_else() {
    for rate in [0.1, 0.01, 0.001] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        let keys = 500_000;
        let filter = BloomFilter::open(&path, keys, rate, options(MEMORY)).unwrap();
        filter.add_many(&(0..keys).collect::<Vec<_>>()).unwrap();
        filter.sync().unwrap();
        drop(filter);
        let filter = BloomFilter::open(&path, keys, rate, options(MEMORY)).unwrap();
        assert_eq!(filter.added(), keys);
        assert!(
            filter
                .contains_many(&(0..keys).collect::<Vec<_>>())
                .unwrap()
                .iter()
                .all(|found| *found)
        );
        let others = filter.contains_many(&(keys..keys * 2).collect::<Vec<_>>()).unwrap();
        let found = others.iter().filter(|found| **found).count() as f64 / keys as f64;
        assert!(found < rate * 1.15 && found > rate * 0.7, "{found} for {rate}");
        assert!((0..1000).all(|i| filter.contains(keys + i).unwrap() == others[i as usize]));
        let bits = -(keys as f64) * rate.ln() / std::f64::consts::LN_2.powi(2);
        assert!((filter.bytes() * 8) as f64 / bits < 1.1);
        drop(filter);
        assert!(matches!(
            BloomFilter::open(&path, keys + 1, rate, options(MEMORY)),
            Err(Error::RecordType { .. })
        ));
    }
    let folder = FaultFolder::new();
    for (keys, rate) in [(0, 0.1), (10, 0.0), (10, 1.0), (10, f64::NAN)] {
        assert!(matches!(
            BloomFilter::open_in(&folder, keys, rate, options(MEMORY)),
            Err(Error::Usage(_))
        ));
    }
}

#[test]
fn a_map_with_chains_agrees_with_a_map_of_lists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let (mut random, mut model) = (Random(4), HashMap::<Vec<u8>, Vec<Vec<u8>>>::new());
    for _ in 0..3 {
        let map = DiskMap::open(&path, options(1 << 20)).unwrap();
        for _ in 0..6000 {
            let key = random.below(3000).to_string().into_bytes();
            let value = vec![random.next() as u8; random.below(200) as usize];
            match random.below(8) {
                0 => assert_eq!(map.remove(&key).unwrap(), model.remove(&key).is_some()),
                1 | 2 => {
                    map.insert(&key, &value).unwrap();
                    model.insert(key, vec![value]);
                }
                3 | 4 => {
                    map.chain(&key, &value).unwrap();
                    model.entry(key).or_default().push(value);
                }
                5 => assert_eq!(
                    map.get_all(&key).unwrap(),
                    model.get(&key).cloned().unwrap_or_default()
                ),
                _ => assert_eq!(
                    map.get(&key).unwrap(),
                    model.get(&key).map(|values| values[0].clone())
                ),
            }
        }
        assert_eq!(map.len(), model.len() as u64);
        let mut all = HashMap::<Vec<u8>, Vec<Vec<u8>>>::new();
        map.for_each(|key, value| Ok(all.entry(key.to_vec()).or_default().push(value.to_vec())))
            .unwrap();
        assert_eq!(all, model);
        map.compact().unwrap();
    }
}

#[test]
fn lists_agree_with_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists");
    let lists = DiskLists::open(&path, 5000, options(MEMORY)).unwrap();
    let (mut random, mut model) = (Random(5), vec![Vec::<u32>::new(); 5000]);
    for _ in 0..4 {
        let to: Vec<u32> =
            (0..200_000).map(|_| (random.below(5000).pow(2) / 5000) as u32).collect();
        let items: Vec<u32> = to.iter().map(|_| random.next() as u32).collect();
        lists.append_many(&to, &items).unwrap();
        to.iter().zip(&items).for_each(|(list, item)| model[*list as usize].push(*item));
        lists.sync().unwrap();
    }
    drop(lists);
    let lists = DiskLists::open(&path, 5000, options(MEMORY)).unwrap();
    model.iter_mut().for_each(|list| list.sort_unstable());
    let sorted = |mut list: Vec<u32>| {
        list.sort_unstable();
        list
    };
    (0..5000).for_each(|list| assert_eq!(sorted(lists.get(list).unwrap()), model[list as usize]));
    let (counts, all) = lists.get_many(&[4999, 0]).unwrap();
    assert_eq!(counts, [model[4999].len() as u64, model[0].len() as u64]);
    assert_eq!(sorted(all[..counts[0] as usize].to_vec()), model[4999]);
    assert!(matches!(lists.append_many(&[5000], &[1]), Err(Error::OutOfRange { id: 5000, .. })));
    assert!(matches!(lists.get_many(&[0, 5000, 1]), Err(Error::OutOfRange { id: 5000, .. })));
    assert!(matches!(lists.get(u64::MAX), Err(Error::OutOfRange { id: u64::MAX, .. })));
    assert!(matches!(lists.append_many(&[1], &[]), Err(Error::Usage(_))));
    drop(lists);
    assert!(matches!(DiskLists::open(&path, 5001, options(MEMORY)), Err(Error::RecordType { .. })));
}

#[test]
fn a_spilling_map_agrees_with_a_map_and_keeps_to_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 20_000;
    let weigh = |_: &u64, value: &String| value.len() + 16;
    let mut map = SpillingMap::<u64, String>::create(
        &folder.path().join("spill"),
        limit,
        weigh,
        options(1 << 20),
    )
    .unwrap();
    let (mut random, mut model) = (Random(6), HashMap::new());
    for _ in 0..40_000 {
        let key = random.below(1000).pow(2) / 1000;
        match random.below(8) {
            0 => assert_eq!(map.remove(&key), model.remove(&key).is_some()),
            1 | 2 => {
                let value = "x".repeat(random.below(100) as usize);
                map.insert(key, value.clone()).unwrap();
                model.insert(key, value);
            }
            3 => {
                let changed = map.update(&key, |value| value.push('y')).unwrap();
                assert_eq!(changed, model.get_mut(&key).map(|value: &mut String| value.push('y')));
            }
            _ => assert_eq!(map.get(&key).unwrap(), model.get(&key)),
        }
        assert_eq!(map.len(), model.len());
        assert!(map.weight() <= limit + 200, "{} bytes live", map.weight());
    }
    assert!(map.live() < map.len());
    for (key, value) in &model {
        assert_eq!(map.get(key).unwrap(), Some(value));
    }
}

#[test]
fn a_map_refuses_a_value_that_it_could_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, value) = (folder.path().join("map"), vec![7; 1 << 20]);
    let map = DiskMap::open(&path, options(1 << 20)).unwrap();
    map.insert(b"key", b"old").unwrap();
    let refused = [map.insert(b"key", &value), map.chain(b"key", &value)];
    let needed = refused.map(|refused| match refused {
        Err(Error::Store(StoreError::Budget { needed, .. })) => needed,
        other => panic!("{other:?}"),
    });
    assert_eq!(map.get_all(b"key").unwrap(), [b"old".to_vec()]);
    drop(map);
    let map = DiskMap::open(&path, options(needed[0])).unwrap();
    map.insert(b"key", &value).unwrap();
    assert_eq!(map.get(b"key").unwrap().as_deref(), Some(&value[..]));
}

#[test]
fn a_large_value_spills_as_many_others_as_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let (limit, path) = (100_000, folder.path().join("spill"));
    let weigh = |_: &u64, value: &String| value.len() + 16;
    let mut map =
        SpillingMap::<u64, String>::create(&path, limit, weigh, options(1 << 20)).unwrap();
    (0..4000).for_each(|key| map.insert(key, key.to_string()).unwrap());
    assert_eq!(map.live(), 4000);
    map.insert(4000, "x".repeat(90_000)).unwrap();
    assert!(map.weight() <= limit, "{} bytes live", map.weight());
    assert_eq!((map.len(), map.get(&7).unwrap()), (4001, Some(&"7".to_string())));
}

#[test]
fn a_value_that_is_read_stays_until_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let weigh = |_: &u64, _: &String| 60;
    let path = folder.path().join("spill");
    let mut map = SpillingMap::<u64, String>::create(&path, 100, weigh, options(1 << 20)).unwrap();
    map.insert(1, "one".into()).unwrap();
    assert!(map.remove(&1));
    map.insert(1, "one".into()).unwrap();
    map.insert(2, "two".into()).unwrap();
    assert_eq!(map.get(&2).unwrap().unwrap(), "two");
    assert_eq!(map.get(&1).unwrap().unwrap(), "one");
    assert_eq!(map.update(&2, |value| value.push('!')).unwrap(), Some(()));
    assert_eq!(map.get(&2).unwrap().unwrap(), "two!");
}

/// Refuses to encode one word.
#[derive(Debug)]
struct Picky;

impl Codec<String> for Picky {
    const NAME: &'static str = "picky";

    fn encode(value: &String, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(value.as_bytes());
        if value == "refused" { Err("no".into()) } else { Ok(()) }
    }

    fn decode(bytes: &[u8]) -> Result<String, String> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[test]
fn a_value_that_cannot_be_spilled_loses_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let weigh = |_: &u64, value: &String| value.len();
    let mut map = SpillingMap::<u64, String, Picky>::create(
        &folder.path().join("spill"),
        100,
        weigh,
        options(1 << 20),
    )
    .unwrap();
    let word = |key: u64| if key == 5 { "refused".to_owned() } else { format!("word {key}") };
    let refused = (0..100).filter(|key| map.insert(*key, word(*key)).is_err()).count();
    assert!(refused > 0);
    assert_eq!(map.len(), 100);
    for key in (0..100).rev() {
        // A value that comes back may push out the one that is refused.
        if let Ok(found) = map.get(&key) {
            assert_eq!(found, Some(&word(key)));
        }
        assert_eq!(map.len(), 100);
    }
    assert!(map.remove(&5));
    (0..100).filter(|key| *key != 5).for_each(|key| {
        assert_eq!(map.get(&key).unwrap(), Some(&word(key)));
    });
}

#[test]
fn a_map_that_fills_its_budget_keeps_what_it_has_taken() {
    let folder = FaultFolder::new();
    let map = DiskMap::open_in(&folder, options(400 << 10)).unwrap();
    let pairs = |round: u64| -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..100).map(|n| ((round * 100 + n).to_le_bytes().to_vec(), vec![n as u8; 1000])).collect()
    };
    let full = (0..1 << 14).find(|round| map.insert_many(&pairs(*round)).is_err()).unwrap();
    assert!(full > 20, "{full}");
    map.sync().unwrap();
    for map in [map, DiskMap::open_in(&folder.crash(), options(400 << 10)).unwrap()] {
        for (key, value) in (0..full).flat_map(pairs) {
            assert_eq!(map.get(&key).unwrap(), Some(value));
        }
        map.verify().unwrap();
    }
}

/// An opened collection of any kind, or the error of opening it.
type Opened = Result<Box<dyn std::any::Any>, Error>;
/// A function that opens a collection.
type Open = fn(&Path, Options) -> Opened;

#[test]
fn pending_keys_count_in_the_budget() {
    fn opened<T: 'static>(opened: Result<T, Error>) -> Opened {
        opened.map(|it| Box::new(it) as Box<dyn std::any::Any>)
    }
    let folder = tempfile::tempdir().unwrap();
    let buffer_bytes = DiskMap::KEY_BYTES;
    let kinds: [(&str, Open); 4] = [
        ("lists", |path, options| opened(DiskLists::open(path, 10, options))),
        ("filter", |path, options| opened(BloomFilter::open(path, 1000, 0.01, options))),
        ("set", |path, options| opened(MembershipSet::open(path, options))),
        ("counter", |path, options| opened(FrequencyCounter::open(path, options))),
    ];
    for (name, open) in kinds {
        let path = folder.path().join(name);
        let refused = open(&path, options(1 << 20));
        let Err(Error::Store(StoreError::Budget { budget: 0x10_0000, needed, .. })) = refused
        else {
            panic!("{name}: {:?}", refused.map(drop));
        };
        let options = options(needed);
        let refused = open(&path, options.clone().memory(needed - 1));
        assert!(refused.is_err(), "{name} with less memory than the budget");
        let _open = open(&path, options.clone()).unwrap();
        let used = needed - options.resources.budget.free();
        assert!(used > buffer_bytes && used < needed, "{name}: {used} of {needed}");
    }
}

#[test]
fn a_filter_whose_page_table_exceeds_the_budget_is_not_made() {
    let folder = FaultFolder::new();
    let keys = 3_000_000_000;
    let open = |bytes: u64| BloomFilter::open_in(&folder, keys, 0.01, options(bytes));
    let needed = match open(MEMORY) {
        Err(Error::Store(StoreError::Budget { budget: MEMORY, needed, .. })) => needed,
        other => panic!("{other:?}"),
    };
    assert!(open(needed - 1).is_err());
    assert_eq!(folder.used_bytes(), 0);
    // Keys all over the filter.
    let filter = open(needed).unwrap();
    filter.add_many(&(0..3000).collect::<Vec<_>>()).unwrap();
    assert!(filter.contains(2999).unwrap());
    filter.sync().unwrap();
    assert!(filter.contains(0).unwrap());
}

#[test]
fn a_page_size_out_of_range_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for page_bytes in [0, 1, 8, 1000, 2048, 5000, 1 << 31, usize::MAX] {
        let options = || Options { page_bytes, ..options(MEMORY) };
        let path = |name: &str| folder.path().join(name);
        let opened = [
            RecordBox::open(&path("box"), 8, b"", options()).map(drop),
            RecordBag::open(&path("bag"), b"", options()).map(drop),
            DiskMap::open(&path("map"), options()).map(drop),
            DiskLists::open(&path("lists"), 3, options()).map(drop),
            MembershipSet::open(&path("set"), options()).map(drop),
            BloomFilter::open(&path("filter"), 10, 0.1, options()).map(drop),
        ];
        for opened in opened {
            let refused = opened.unwrap_err();
            assert!(matches!(refused, Error::Usage(_)), "{refused}");
            assert!(refused.to_string().ends_with(&format!("bytes, not {page_bytes}")));
        }
    }
}

#[test]
fn a_filter_is_made_only_for_a_rate_that_its_pages_can_have() {
    let folder = FaultFolder::new();
    let open = |rate: f64, page_bytes: usize| {
        BloomFilter::open_in(&folder, 1000, rate, Options { page_bytes, ..options(MEMORY) })
    };
    for (rate, page_bytes) in [(9e-6, 16 << 10), (3.9e-5, 4 << 10), (1e-6, 64 << 10)] {
        let refused = open(rate, page_bytes).unwrap_err();
        assert!(matches!(refused, Error::Usage(_)), "{refused}");
        let least = 1e-5 * 16384.0 / page_bytes as f64;
        assert!(refused.to_string().contains(&format!("at least {least:e} in")), "{refused}");
    }
    assert_eq!(folder.used_bytes(), 0);
    drop(open(3e-6, 64 << 10).unwrap());
    // An existing filter has its own pages.
    open(3e-6, 4 << 10).unwrap();
    BloomFilter::open_in(&FaultFolder::new(), 1000, 1e-5, {
        Options { page_bytes: 16 << 10, ..options(MEMORY) }
    })
    .unwrap();
}

#[test]
fn a_value_stays_if_its_change_panics() {
    let folder = tempfile::tempdir().unwrap();
    let weigh = |_: &u64, value: &String| value.len();
    let path = folder.path().join("spill");
    let mut map = SpillingMap::<u64, String>::create(&path, 100, weigh, options(1 << 20)).unwrap();
    (0..10).for_each(|key| map.insert(key, "x".repeat(30)).unwrap());
    let change = |value: &mut String| {
        value.push_str("yy");
        panic!("by the caller");
    };
    let changed = catch_unwind(AssertUnwindSafe(|| map.update(&9, change).map(drop)));
    assert_eq!(changed.unwrap_err().downcast_ref(), Some(&"by the caller"));
    assert_eq!(map.len(), 10);
    // The copy on disk, if there is one, is not used again.
    (0..9).for_each(|key| assert_eq!(map.get(&key).unwrap(), Some(&"x".repeat(30))));
    assert_eq!(map.get(&9).unwrap(), Some(&("x".repeat(30) + "yy")));
    (0..10).for_each(|key| assert!(map.remove(&key)));
    assert_eq!((map.len(), map.weight()), (0, 0));
}
