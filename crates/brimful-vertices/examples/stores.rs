//! Loads the same vertices into each store: bytes per vertex, seconds to load, to scan, to lend in
//! random order and to change.
//!
//! The thesis's tables 4.1 to 4.5 for the stores of this crate: a log-normal graph (mu 4, sigma
//! 1.3, 127 edges a vertex on average), whose vertices are created beforehand with all their edges.
//! Bytes per vertex of live objects are those that the store counts (arrays and objects, without
//! the overhead of the allocator) and the growth of the process.
//!
//! `cargo run --release -p brimful-vertices --example stores [VERTICES [STORE]]`

#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use brimful_collections::Options;
use brimful_store::{Budget, Job, Resources, memory};
use brimful_vertices::serializer::{Compact, Compressing, Generic, Method, Native};
use brimful_vertices::{
    BytesStore, Edges, FileStore, MemoryStore, Serialized, Serializer, Vertex, VertexStore,
};

type Page = Vertex<u64, f64>;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn gaussian(&mut self) -> f64 {
        let unit = |bits: u64| ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (-2.0 * unit(self.next()).ln()).sqrt() * (std::f64::consts::TAU * unit(self.next())).cos()
    }
}

fn pages(vertices: u64) -> Vec<Page> {
    let mut random = Random(1);
    let mut page = |id| {
        let degree =
            (4.0 + 1.3 * random.gaussian()).exp().round().min(vertices as f64 / 2.0) as usize;
        let mut targets: Vec<u64> = (0..degree).map(|_| random.below(vertices)).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.shrink_to_fit();
        Page::new(id, 0.15, targets.into_iter().map(|target| (target, ())).collect::<Edges<_, _>>())
    };
    (0..vertices).map(&mut page).collect()
}

/// Resident bytes of the process, without free memory of the previous store.
fn resident() -> u64 {
    memory::release_free_memory();
    memory::resident_bytes().unwrap_or(0)
}

/// True if this store should be measured.
fn is_asked_for(name: &str) -> bool {
    std::env::args().nth(2).is_none_or(|only| name == only)
}

fn measure<T: VertexStore<Page>>(name: &str, pages: &[Page], store: brimful_vertices::Result<T>) {
    if !is_asked_for(name) {
        return;
    }
    let Ok(mut store) = store else {
        println!("{name:16} cannot be opened");
        return;
    };
    let count = pages.len() as f64;
    let before = resident();
    let begin = Instant::now();
    let loaded = store.load(&mut pages.iter().cloned());
    let load = begin.elapsed().as_secs_f64();
    if let Err(error) = loaded {
        println!("{name:16} {error}");
        return;
    }
    let more = memory::resident_bytes().unwrap_or(0).saturating_sub(before);
    let mut edges = 0_usize;
    let mut timed = |work: &mut dyn FnMut(&mut T) -> brimful_vertices::Result<()>| {
        let begin = Instant::now();
        match work(&mut store) {
            Ok(()) => begin.elapsed().as_secs_f64(),
            Err(error) => {
                println!("{name:16} {error}");
                f64::NAN
            }
        }
    };
    let scan = timed(&mut |store| {
        store.for_each(&mut |page| {
            edges += page.edges().iter().filter(|edge| *edge.target < u64::MAX).count();
            Ok(())
        })
    });
    let mut random = Random(2);
    let lend = timed(&mut |store| {
        (0..pages.len()).try_for_each(|_| {
            let id = random.below(pages.len() as u64);
            store.lend(&id, &mut |page| {
                edges += page.edges().len();
                Ok(())
            })?;
            Ok(())
        })
    });
    let change = timed(&mut |store| {
        store.for_each(&mut |page| {
            page.state *= 0.85;
            Ok(())
        })
    });
    std::hint::black_box(edges);
    let stats = store.stats().unwrap_or_default();
    println!(
        "{name:16} {:>9.0} {:>9.0} {:>9.0} {load:>9.3} {scan:>9.3} {lend:>9.3} {change:>9.3}",
        stats.memory_bytes as f64 / count,
        more as f64 / count,
        stats.disk_bytes as f64 / count,
    );
}

/// The yardstick for `memory`: the same in a standard map and a loop.
fn by_hand(pages: &[Page]) {
    if !is_asked_for("by hand") {
        return;
    }
    let count = pages.len() as f64;
    let before = resident();
    let timed = |work: &mut dyn FnMut()| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_secs_f64()
    };
    let mut map = HashMap::new();
    let load = timed(&mut || map.extend(pages.iter().cloned().map(|page| (*page.id(), page))));
    let more = memory::resident_bytes().unwrap_or(0).saturating_sub(before) as f64 / count;
    let mut edges = 0;
    let scan = timed(&mut || {
        for page in map.values() {
            edges += page.edges().iter().filter(|edge| *edge.target < u64::MAX).count();
        }
    });
    let mut random = Random(2);
    let lend = timed(&mut || {
        for _ in 0..pages.len() {
            edges +=
                map.get(&random.below(pages.len() as u64)).map_or(0, |page| page.edges().len());
        }
    });
    let change = timed(&mut || map.values_mut().for_each(|page| page.state *= 0.85));
    std::hint::black_box(edges);
    println!(
        "{:16} {:>9} {more:>9.0} {:>9} {load:>9.3} {scan:>9.3} {lend:>9.3} {change:>9.3}",
        "by hand", "", ""
    );
}

fn records<S: Serializer<Page>>(name: &str, pages: &[Page], budget: &Arc<Budget>, serializer: S) {
    let store = BytesStore::new(budget).map(|records| Serialized::new(records, serializer));
    measure(name, pages, store);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vertices = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse::<u64>())?;
    let pages = pages(vertices);
    let edges: usize = pages.iter().map(|page| page.edges().len()).sum();
    println!("{vertices} vertices, {edges} edges, {:.1} each", edges as f64 / vertices as f64);
    println!(
        "{:16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "store", "B/vertex", "resident", "on disk", "load s", "scan s", "lend s", "change s"
    );
    let budget = Budget::new(1 << 40, 0);
    by_hand(&pages);
    measure("memory", &pages, MemoryStore::new(&budget));
    records("bytes compact", &pages, &budget, Compact);
    records("bytes native", &pages, &budget, Native);
    records("bytes generic", &pages, &budget, Generic);
    for (name, method) in Method::ALL {
        records(&format!("bytes c+{name}"), &pages, &budget, Compressing::new(Compact, method)?);
    }
    let folder = tempfile::tempdir()?;
    let resources =
        Arc::new(Resources::new(Budget::new(1 << 40, 0), Arc::new(Job::new()), Some(1))?);
    let options = Options::new(&resources).memory(64 << 20);
    let store = FileStore::open(&folder.path().join("vertices"), options);
    measure("file, 64 MiB", &pages, store.map(|records| Serialized::new(records, Compact)));
    Ok(())
}
