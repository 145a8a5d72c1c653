//! Measures the collections in Rust; prints one JSON object. `bench/collections.py` runs it.
//!
//! `measure FOLDER BUDGET_BYTES [bag|box|keys|counter|set|bloom|mesh|spill]...` uses the sizes of
//! the issue.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]
#![allow(dropping_copy_types, clippy::drop_non_drop, reason = "what is measured is of no use")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use brimful_collections::{
    BloomFilter, DiskBox, DiskLists, FrequencyCounter, MembershipSet, Options, Order, RecordBag,
    SpillingMap,
};
use brimful_store::{Budget, Job, Resources};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

struct Measures(Vec<String>);

impl Measures {
    /// Times `f` and records the rate of `count` things a second.
    fn time<R>(&mut self, name: &str, count: u64, f: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = f();
        self.note(name, count, begin.elapsed().as_secs_f64());
        result
    }

    fn note(&mut self, name: &str, count: u64, seconds: f64) {
        self.0.push(format!(
            "\"{name}_seconds\": {seconds:.6}, \"{name}_per_second\": {:.0}",
            count as f64 / seconds
        ));
        eprintln!(
            "{name}: {seconds:.3} s, {:.3} M/s, {:.0} ns each",
            count as f64 / seconds / 1e6,
            seconds * 1e9 / count as f64
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(&arguments[0]);
    let budget: u64 = arguments[1].parse().unwrap();
    let mut measures = Measures(Vec::new());
    for name in &arguments[2..] {
        let path = folder.join(name);
        let resources =
            Arc::new(Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), None).unwrap());
        let options = Options::new(&resources);
        match name.as_str() {
            "bag" => bag(&path, options, &mut measures),
            "box" => boxes(&path, options, &mut measures),
            "keys" | "counter" | "set" | "bloom" => {
                keys(folder, &resources, budget, name, &mut measures)
            }
            "mesh" => mesh(&path, options, &mut measures),
            "spill" => spill(&path, options, &mut measures),
            other => panic!("there is no measure {other}"),
        }
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
    }
    println!("{{{}}}", measures.0.join(", "));
}

/// 1 M records of 500 bytes.
fn bag(path: &Path, options: Options, measures: &mut Measures) {
    const COUNT: u64 = 1_000_000;
    let bag = RecordBag::open(path, b"bytes", options).unwrap();
    let record = vec![7u8; 500];
    measures.time("bag_load", COUNT, || {
        let batch: Vec<&[u8]> = vec![&record; 10_000];
        (0..COUNT / 10_000).for_each(|_| assert_eq!(bag.extend(&batch).unwrap() % 10_000, 0));
    });
    measures.time("bag_load_sync", COUNT, || bag.sync().unwrap());
    let mut random = Random(1);
    let ids: Vec<u64> = (0..COUNT).map(|_| random.next() % COUNT).collect();
    let mut bytes = 0;
    measures.time("bag_get_batch", COUNT, || {
        for ids in ids.chunks(100_000) {
            bytes += bag
                .fetch_batch(ids)
                .unwrap()
                .iter()
                .flat_map(|r| r.iter())
                .map(<[u8]>::len)
                .sum::<usize>();
        }
    });
    assert_eq!(bytes, 500 * COUNT as usize);
    measures.time("bag_get_one", 200_000, || {
        ids.iter().take(200_000).for_each(|id| bytes += bag.fetch(*id, <[u8]>::len).unwrap());
    });
    measures.time("bag_update_batch", COUNT, || {
        let batch: Vec<&[u8]> = vec![&record; 100_000];
        ids.chunks(100_000).for_each(|ids| bag.store_batch(ids, &batch).unwrap());
    });
    measures.time("bag_update_one", 100_000, || {
        ids.iter().take(100_000).for_each(|id| bag.store(*id, &record).unwrap());
    });
    measures.time("bag_update_sync", COUNT, || bag.sync().unwrap());
}

/// 1 GiB of 8-byte records.
fn boxes(path: &Path, options: Options, measures: &mut Measures) {
    const COUNT: u64 = 128 << 20;
    let disk = DiskBox::<u64>::open(path, options).unwrap();
    measures.time("box_extend_bytes", COUNT * 8, || {
        let batch: Vec<u64> = (0..1 << 20).collect();
        (0..COUNT >> 20).for_each(|_| assert_eq!(disk.extend(&batch).unwrap() % (1 << 20), 0));
        disk.sync().unwrap();
    });
    let file = std::fs::File::open(path.join("pages")).unwrap();
    let drop_cache = || {
        drop(
            std::process::Command::new("dd")
                .args(["of=/dev/null", "count=0", "iflag=nocache"])
                .arg(format!("if={}", path.join("pages").display()))
                .output(),
        )
    };
    drop_cache();
    measures.time("flat_read_bytes", COUNT * 8, || {
        use std::os::unix::fs::FileExt;
        let mut buffer = vec![0u8; 4 << 20];
        let (mut at, mut sum) = (0, 0u64);
        while let Ok(read @ 1..) = file.read_at(&mut buffer, at) {
            sum = sum.wrapping_add(u64::from(buffer[read / 2]));
            at += read as u64;
        }
        std::hint::black_box(sum);
    });
    drop_cache();
    measures.time("box_process_bytes", COUNT * 8, || {
        disk.process(&Order::Ascending, |_, records| {
            std::hint::black_box(records.iter().fold(0u64, |sum, r| sum.wrapping_add(*r)));
            Ok(())
        })
        .unwrap();
    });
    let mut random = Random(1);
    let ids: Vec<u64> = (0..1_000_000).map(|_| random.next() % COUNT).collect();
    measures.time("box_fetch_batch", ids.len() as u64, || {
        std::hint::black_box(disk.fetch_batch(&ids).unwrap())
    });
    measures.time("box_fetch_one", 100_000, || {
        ids.iter()
            .take(100_000)
            .for_each(|id| drop(std::hint::black_box(disk.fetch(*id).unwrap())));
    });
    measures.time("box_fetch_cached", 10_000_000, || {
        (0..10_000_000u64)
            .for_each(|i| drop(std::hint::black_box(disk.fetch(i * 7919 % 100_000).unwrap())));
    });
}

/// Counter, set and filter of at least four times the budget each; the random keys of a batch are
/// generated outside the measured time.
fn keys(
    folder: &Path,
    resources: &Arc<Resources>,
    budget: u64,
    which: &str,
    measures: &mut Measures,
) {
    const BATCH: u64 = 8_000_000;
    let options = || Options::new(resources);
    let wanted = |name: &str| which == "keys" || which == name;
    let mut batch = vec![0; BATCH as usize];
    let mut fill = {
        let mut random = Random(1);
        move |batch: &mut [u64], most: u64| {
            batch.iter_mut().for_each(|key| *key = random.next() % most)
        }
    };
    // Tables double: with this many entries, the last doubling is at least five eighths full.
    let pages = (budget * 4 / (16 << 10)).next_power_of_two();
    if wanted("counter") {
        let (rounds, distinct) = (25, pages * 1023 * 5 / 8);
        let counter = FrequencyCounter::open(&folder.join("counter"), options()).unwrap();
        let seconds: f64 = (0..rounds)
            .map(|_| {
                fill(&mut batch, distinct);
                let begin = Instant::now();
                counter.add_many(&batch).unwrap();
                begin.elapsed().as_secs_f64()
            })
            .sum();
        let begin = Instant::now();
        counter.sync().unwrap();
        measures.note("counter_add", rounds * BATCH, seconds + begin.elapsed().as_secs_f64());
        eprintln!(
            "counter: {} keys, {} MiB",
            counter.len().unwrap(),
            counter.file_bytes().unwrap() >> 20
        );
        drop(counter);
        std::fs::remove_dir_all(folder.join("counter")).unwrap();
    }
    if wanted("set") {
        let distinct = pages * 2047 * 5 / 8;
        let set = MembershipSet::open(&folder.join("set"), options()).unwrap();
        let mut seconds = 0.0;
        for start in (0..distinct).step_by(BATCH as usize) {
            let some = (distinct - start).min(BATCH);
            // Every second number, so that half of the keys queried are absent.
            batch.iter_mut().zip(start..start + some).for_each(|(key, number)| *key = number * 2);
            let begin = Instant::now();
            set.add_many(batch.get(..some as usize).unwrap()).unwrap();
            seconds += begin.elapsed().as_secs_f64();
        }
        let begin = Instant::now();
        set.sync().unwrap();
        measures.note("set_add", distinct, seconds + begin.elapsed().as_secs_f64());
        for (name, len) in [("set_contains", BATCH), ("set_contains_1m", 1_000_000)] {
            let mut seconds = 0.0;
            for _ in 0..3 {
                let batch = batch.get_mut(..len as usize).unwrap();
                fill(batch, distinct * 2);
                let begin = Instant::now();
                let found = set.contains_many(batch).unwrap();
                seconds += begin.elapsed().as_secs_f64();
                assert!(found.iter().zip(batch).all(|(found, key)| *found == (*key % 2 == 0)));
            }
            measures.note(name, 3 * len, seconds);
        }
        eprintln!("set: {} MiB", set.file_bytes().unwrap() >> 20);
        drop(set);
        std::fs::remove_dir_all(folder.join("set")).unwrap();
    }
    if wanted("bloom") {
        let (rounds, keys) = (25, budget * 4 * 8 / 10);
        let filter = BloomFilter::open(&folder.join("bloom"), keys, 0.01, options()).unwrap();
        let mut seconds = 0.0;
        for _ in 0..rounds {
            fill(&mut batch, keys);
            let begin = Instant::now();
            filter.add_many(&batch).unwrap();
            seconds += begin.elapsed().as_secs_f64();
        }
        let begin = Instant::now();
        filter.sync().unwrap();
        measures.note("bloom_add", rounds * BATCH, seconds + begin.elapsed().as_secs_f64());
        let mut seconds = 0.0;
        for _ in 0..3 {
            fill(&mut batch, keys);
            let begin = Instant::now();
            drop(filter.contains_many(&batch).unwrap());
            seconds += begin.elapsed().as_secs_f64();
        }
        measures.note("bloom_contains", 3 * BATCH, seconds);
        eprintln!("bloom: {} MiB", filter.bytes() >> 20);
        drop(filter);
        std::fs::remove_dir_all(folder.join("bloom")).unwrap();
    }
}

/// 7.5 M vertices, each joined to up to 80 earlier ones, in both directions.
fn mesh(path: &Path, options: Options, measures: &mut Measures) {
    const VERTICES: u64 = 7_500_000;
    let mut random = Random(1);
    let mut edges = 0;
    measures.time("mesh", VERTICES, || {
        let lists = DiskLists::open(path, VERTICES, options).unwrap();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for vertex in 1..VERTICES {
            for _ in 0..random.next() % 80 {
                let other = ((u128::from(random.next()) * u128::from(vertex)) >> 64) as u32;
                from.extend([vertex as u32, other]);
                to.extend([other, vertex as u32]);
            }
            if from.len() > 4 << 20 {
                lists.append_many(&from, &to).unwrap();
                edges += from.len() / 2;
                from.clear();
                to.clear();
            }
        }
        lists.append_many(&from, &to).unwrap();
        edges += from.len() / 2;
        eprintln!("mesh: generated");
        lists.apply().unwrap();
        eprintln!("mesh: {edges} edges, {} MiB", lists.file_bytes().unwrap() >> 20);
    });
}

/// A map of 1 M values of 100 bytes, three quarters of it live.
fn spill(path: &Path, options: Options, measures: &mut Measures) {
    const COUNT: u64 = 1_000_000;
    let value = |key: u64| vec![key as u8; 100];
    let mut plain: HashMap<u64, Vec<u8>> = (0..COUNT).map(|key| (key, value(key))).collect();
    let mut map =
        SpillingMap::<u64, Vec<u8>>::create(path, 75_000_000, |_, v| v.len(), options).unwrap();
    measures.time("spill_load", COUNT, || {
        (0..COUNT).for_each(|key| map.insert(key, value(key)).unwrap())
    });
    let mut random = Random(1);
    let keys: Vec<u64> = (0..2_000_000).map(|_| COUNT / 2 + random.next() % (COUNT / 2)).collect();
    keys.iter().for_each(|key| drop(map.get(key).unwrap()));
    measures.time("spill_plain_get", keys.len() as u64, || {
        keys.iter().for_each(|key| drop(std::hint::black_box(plain.get_mut(key).map(|v| v[0]))));
    });
    measures.time("spill_get_live", keys.len() as u64, || {
        keys.iter().for_each(|key| drop(std::hint::black_box(map.view(key, |v| v[0]).unwrap())));
    });
    let all: Vec<u64> = (0..1_000_000).map(|_| random.next() % COUNT).collect();
    measures.time("spill_get_all", all.len() as u64, || {
        all.iter().for_each(|key| drop(std::hint::black_box(map.view(key, |v| v[0]).unwrap())));
    });
}
