//! PageRank on a store, or by hand: seconds to load, bytes a vertex, seconds a superstep; prints
//! one JSON object.
//!
//! `pagerank_stores GRAPH STORE SERIALIZER|- SUPERSTEPS THREADS`: `numeric::run` loads the graph
//! into the store and runs some supersteps. The STOREs `maps` and `arrays` are by hand, on one
//! thread: the same vertices as live objects in a standard map with a map of sums as the mailbox,
//! and in an array with an array of sums, as in a program that knows its ids beforehand.

#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use brimful_algos::pagerank::{PageRank, Variant};
use brimful_engine::RunOptions;
use brimful_execution::from_graph::StoreOptions;
use brimful_execution::numeric::{NumericOptions, run};
use brimful_execution::{ListLocation, Partitioning, RunMode};
use brimful_graph::Graph;
use brimful_graph::read::segment_reader::SegmentReader;
use brimful_store::{Budget, Job, Resources};
use brimful_vertices::Schemes;

const DAMPING: f64 = 0.85;

fn print(load: f64, bytes: Option<f64>, mut supersteps: Vec<f64>, mean: f64) {
    supersteps.sort_by(f64::total_cmp);
    let median = supersteps.get(supersteps.len() / 2).copied().unwrap_or(f64::NAN);
    let bytes = bytes.map_or("null".into(), |bytes| format!("{bytes:.1}"));
    println!(
        "{{\"load_seconds\": {load:.4}, \"bytes_per_vertex\": {bytes}, \
         \"superstep_seconds\": {median:.4}, \"mean_rank\": {mean:.9}}}"
    );
}

/// PageRank by the store path.
fn on_store(
    graph: &Graph,
    (store, serializer): (&str, Option<&str>),
    supersteps: u64,
    resources: &Resources,
) -> Result<(), Box<dyn Error>> {
    let options = NumericOptions {
        stores: StoreOptions {
            store,
            schemes: &Schemes::default(),
            cache: None,
            partitioning: Partitioning::default(),
            kept: None,
        },
        serializer,
        mode: RunMode::Synchronous,
        lists: ListLocation::Memory,
        run: RunOptions { max_supersteps: supersteps, ..RunOptions::default() },
    };
    let program = PageRank::<f64>::new(Variant::Unnormalized, DAMPING, 0.0)?;
    let output = run(&program, graph, &options, resources)?;
    let stats = output.stats.store.clone().unwrap_or_default();
    let load = output
        .stats
        .phases
        .iter()
        .find(|(phase, _)| *phase == "load")
        .map_or(f64::NAN, |(_, s)| *s);
    let mut states = vec![0.0; output.states.len()];
    output.states.read(0, &mut states)?;
    let bytes =
        if stats.store_disk_bytes > 0 { stats.store_disk_bytes } else { stats.store_memory_bytes };
    let bytes = bytes as f64 / graph.vertices() as f64;
    let seconds = output.stats.durations.seconds();
    print(load, Some(bytes), seconds, states.iter().sum::<f64>() / graph.vertices() as f64);
    Ok(())
}

/// A vertex of the programs by hand.
struct Page {
    rank: f64,
    targets: Vec<u64>,
}

/// Vertices with their edges, by rank.
fn pages(graph: &Graph) -> Result<Vec<Page>, Box<dyn Error>> {
    let page = || Page { rank: 1.0 - DAMPING, targets: Vec::new() };
    let mut pages: Vec<Page> = (0..graph.vertices()).map(|_| page()).collect();
    let shards = graph.forward();
    let mut reader = SegmentReader::default();
    for segment in 0..shards.segments().len() {
        reader.for_each_edge(shards, segment, |source, target, _| {
            if let Some(page) = pages.get_mut(source as usize) {
                page.targets.push(target);
            }
        })?;
    }
    Ok(pages)
}

/// The signal of a page along each of its edges.
fn signal(page: &Page) -> f64 {
    page.rank / page.targets.len() as f64
}

fn timed(times: u64, mut superstep: impl FnMut()) -> Vec<f64> {
    let seconds = |()| {
        let begin = Instant::now();
        superstep();
        begin.elapsed().as_secs_f64()
    };
    (0..times).map(|_| ()).map(seconds).collect()
}

/// Live objects in a map, sums in another map.
fn in_maps(graph: &Graph, supersteps: u64) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut map: HashMap<u64, Page> = (0..).zip(pages(graph)?).collect();
    let load = begin.elapsed().as_secs_f64();
    let mut sums: HashMap<u64, f64> = HashMap::new();
    let seconds = timed(supersteps, || {
        for page in map.values() {
            let signal = signal(page);
            page.targets.iter().for_each(|target| *sums.entry(*target).or_insert(0.0) += signal);
        }
        for (id, page) in &mut map {
            page.rank = 1.0 - DAMPING + DAMPING * sums.get(id).copied().unwrap_or(0.0);
        }
        sums.clear();
    });
    let sum: f64 = map.values().map(|page| page.rank).sum();
    print(load, None, seconds, sum / graph.vertices() as f64);
    Ok(())
}

/// Live objects in an array, sums in another array.
fn in_arrays(graph: &Graph, supersteps: u64) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut pages = pages(graph)?;
    let load = begin.elapsed().as_secs_f64();
    let mut sums = vec![0.0; pages.len()];
    let seconds = timed(supersteps, || {
        for page in &pages {
            let signal = signal(page);
            page.targets.iter().for_each(|target| sums[*target as usize] += signal);
        }
        for (page, sum) in pages.iter_mut().zip(&mut sums) {
            page.rank = 1.0 - DAMPING + DAMPING * std::mem::take(sum);
        }
    });
    let sum: f64 = pages.iter().map(|page| page.rank).sum();
    print(load, None, seconds, sum / graph.vertices() as f64);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, store, serializer, supersteps, threads] = &arguments[..] else {
        return Err("usage: pagerank_stores GRAPH STORE SERIALIZER|- SUPERSTEPS THREADS".into());
    };
    // A store on disk uses a part of the budget for its cache.
    let budget = if store.starts_with("file:") { 1 << 30 } else { 1 << 40 };
    let resources =
        Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads.parse()?))?;
    let graph = Graph::open(Path::new(path), resources.job.traffic())?;
    let supersteps = supersteps.parse()?;
    match store.as_str() {
        "maps" => in_maps(&graph, supersteps),
        "arrays" => in_arrays(&graph, supersteps),
        url => {
            let serializer = Some(serializer.as_str()).filter(|name| *name != "-");
            on_store(&graph, (url, serializer), supersteps, &resources)
        }
    }
}
