//! Records in a store as workers use them: loaded, read and changed in batches; prints one JSON
//! object of seconds.
//!
//! `records STORE COUNT THREADS MEBIBYTES DRAWN`: COUNT records of 500 bytes in THREADS partitions
//! of the STORE (`bytes`, `file:PATH`, `kv:PATH`), each with its part of the MEBIBYTES. DRAWN of
//! them are read and changed at random, and all in order. The ids of a batch of 1,024 are
//! announced, then used one by one.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use brimful_store::varint::write_varint;
use brimful_store::{Budget, Job, Resources, memory};
use brimful_vertices::bulk::BATCH_RECORDS;
use brimful_vertices::{PartitionOptions, RecordStore, Result, Schemes};

const RECORD_BYTES: usize = 500;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ z >> 31) * u128::from(bound)) >> 64) as u64
    }
}

fn key(id: u64) -> Vec<u8> {
    let mut key = Vec::new();
    write_varint(id, &mut key);
    key
}

/// Calls `work` with batches of `count` keys.
fn batches(
    count: u64,
    mut next: impl FnMut(u64) -> u64,
    mut work: impl FnMut(&[&[u8]]) -> Result<()>,
) -> Result<()> {
    for first in (0..count).step_by(BATCH_RECORDS) {
        let ids = first..count.min(first + BATCH_RECORDS as u64);
        let mut keys: Vec<Vec<u8>> = ids.map(|place| key(next(place))).collect();
        keys.sort_unstable();
        keys.dedup();
        work(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn load(store: &mut dyn RecordStore, count: u64) -> Result<()> {
    let record = [7; RECORD_BYTES];
    batches(
        count,
        |id| id,
        |keys| {
            let pairs: Vec<_> = keys.iter().map(|key| (*key, &record[..])).collect();
            store.insert_many(&pairs).map(|_| ())
        },
    )
}

fn get(store: &mut dyn RecordStore, count: u64, next: impl FnMut(u64) -> u64) -> Result<()> {
    let mut sum = 0;
    batches(count, next, |keys| {
        store.prefetch(keys)?;
        for key in keys {
            store.get(key, &mut |record| {
                sum += record.len();
                Ok(())
            })?;
        }
        Ok(())
    })?;
    std::hint::black_box(sum);
    Ok(())
}

fn change(store: &mut dyn RecordStore, count: u64, next: impl FnMut(u64) -> u64) -> Result<()> {
    let mut changed = Vec::new();
    batches(count, next, |keys| {
        store.prefetch(keys)?;
        for key in keys {
            store.get(key, &mut |record| {
                changed.clear();
                changed.extend_from_slice(record);
                Ok(())
            })?;
            changed.iter_mut().take(8).for_each(|byte| *byte ^= 1);
            store.replace(key, &changed)?;
        }
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, count, threads, mebibytes, drawn] = &arguments[..] else {
        return Err("usage: records STORE COUNT THREADS MEBIBYTES DRAWN".into());
    };
    let (count, threads) = (count.parse::<u64>()?, threads.parse::<u64>()?);
    let memory_bytes = (mebibytes.parse::<u64>()? << 20) / threads;
    let resources =
        Arc::new(Resources::new(Budget::new(1 << 40, 0), Arc::new(Job::new()), Some(1))?);
    let mut stores = Vec::new();
    for partition in 0..threads as usize {
        let resources = Arc::clone(&resources);
        let options = PartitionOptions { partition, resources, memory_bytes, is_kept: false };
        stores.push(Schemes::default().open_records(url, &options)?);
    }
    let (each, some) = (count / threads, drawn.parse::<u64>()? / threads);
    let mut figures = vec![format!("\"count\": {count}, \"drawn\": {drawn}")];
    type Phase<'p> = dyn Fn(u64, &mut dyn RecordStore) -> Result<()> + Sync + 'p;
    let random = |seed: u64| {
        let mut random = Random(seed);
        move |_| random.below(each)
    };
    let phases: [(&str, &Phase<'_>); 6] = [
        ("load", &|_, store| load(store, each)),
        ("get", &|seed, store| get(store, some, random(seed))),
        ("get_again", &|seed, store| get(store, some, random(seed + 9))),
        ("get_in_order", &|_, store| get(store, each, |id| id)),
        ("change", &|seed, store| change(store, some, random(seed + 99))),
        ("change_in_order", &|_, store| change(store, each, |id| id)),
    ];
    for (name, phase) in phases {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..)
                .zip(&mut stores)
                .map(|(seed, store)| scope.spawn(move || phase(seed, store.as_mut())))
                .collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(done) => done.map_err(Into::into),
                Err(_) => Err(Box::<dyn Error>::from("a worker panicked")),
            })
        })?;
        figures.push(format!("\"{name}_seconds\": {:.4}", begin.elapsed().as_secs_f64()));
    }
    let disk: u64 = stores.iter().filter_map(|store| Some(store.bytes().ok()?.1)).sum();
    figures.push(format!("\"disk_bytes\": {disk}"));
    figures.push(format!("\"peak_rss_bytes\": {}", memory::peak_resident_bytes().unwrap_or(0)));
    println!("{{{}}}", figures.join(", "));
    Ok(())
}
