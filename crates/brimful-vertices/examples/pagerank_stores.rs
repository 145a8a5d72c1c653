//! PageRank on each store, beside the same by hand: seconds to load, bytes a vertex, seconds a superstep.
//!
//! A log-normal graph (mu 4, sigma 1.3, 127 edges a vertex on average) is generated and imported, then `numeric::run` loads it into each store and
//! does some supersteps. *By hand* are the same vertices as live objects in a map of the standard library with a map of sums as the
//! mailbox, and in an array with an array of sums: what a program that knows its ids beforehand would do.
//!
//! `cargo run --release -p brimful-vertices --example pagerank_stores [VERTICES [STORE [SUPERSTEPS [THREADS]]]]`

#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use brimful_algos::pagerank::{PageRank, Variant};
use brimful_engine::RunOptions;
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::import::{ImportOptions, Input, import};
use brimful_graph::segment_reader::SegmentReader;
use brimful_graph::{Graph, Index};
use brimful_store::{Budget, Job, Resources};
use brimful_vertices::numeric::{NumericOptions, run};
use brimful_vertices::{Lists, Mode, Schemes};

const DAMPING: f64 = 0.85;

/// What is measured.
struct Setting {
    only: Option<String>,
    supersteps: u64,
    resources: Arc<Resources>,
}

impl Setting {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

fn print(name: &str, load: f64, bytes: Option<f64>, mut supersteps: Vec<f64>, sum: f64) {
    supersteps.sort_by(f64::total_cmp);
    let median = supersteps.get(supersteps.len() / 2).copied().unwrap_or(f64::NAN);
    let bytes = bytes.map_or(String::new(), |bytes| format!("{bytes:.0}"));
    println!("{name:16} {load:>9.3} {bytes:>9} {median:>11.3} {sum:>12.9}");
}

/// PageRank by the store path.
fn on_store(graph: &Graph, name: &str, url: &str, setting: &Setting) -> Result<(), Box<dyn Error>> {
    if !setting.wants(name) {
        return Ok(());
    }
    let options = NumericOptions {
        store: url,
        schemes: &Schemes::default(),
        cache: None,
        store_bytes: 64 << 20,
        partitions: None,
        mode: Mode::Synchronous,
        lists: Lists::Memory,
        run: RunOptions { max_supersteps: setting.supersteps, ..RunOptions::default() },
    };
    let program = PageRank::<f64>::new(Variant::Unnormalized, DAMPING, 0.0)?;
    let (output, stats) = run(&program, graph, &options, &setting.resources)?;
    let load = output.stats.phases.iter().find(|(phase, _)| *phase == "load").map_or(f64::NAN, |(_, s)| *s);
    let mut states = vec![0.0; output.states.len()];
    output.states.read(0, &mut states)?;
    let bytes = (stats.store_memory_bytes + stats.store_disk_bytes) as f64 / graph.vertices() as f64;
    let seconds = output.stats.durations.first().to_vec();
    print(name, load, Some(bytes), seconds, states.iter().sum::<f64>() / graph.vertices() as f64);
    Ok(())
}

/// A vertex by hand.
struct Page {
    rank: f64,
    targets: Vec<u64>,
}

/// Vertices with their edges, by rank.
fn pages(graph: &Graph) -> Result<Vec<Page>, Box<dyn Error>> {
    let page = || Page { rank: 1.0 - DAMPING, targets: Vec::new() };
    let mut pages: Vec<Page> = (0..graph.vertices()).map(|_| page()).collect();
    let shards = graph.shards(Index::In).ok_or("the graph has no edges along their direction")?;
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

/// What a page says along each of its edges.
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

/// Live objects in a map, sums in another.
fn in_maps(graph: &Graph, setting: &Setting) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut map: HashMap<u64, Page> = (0..).zip(pages(graph)?).collect();
    let load = begin.elapsed().as_secs_f64();
    let mut sums: HashMap<u64, f64> = HashMap::new();
    let seconds = timed(setting.supersteps, || {
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
    print("by hand, maps", load, None, seconds, sum / graph.vertices() as f64);
    Ok(())
}

/// Live objects in an array, sums in another.
fn in_arrays(graph: &Graph, setting: &Setting) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut pages = pages(graph)?;
    let load = begin.elapsed().as_secs_f64();
    let mut sums = vec![0.0; pages.len()];
    let seconds = timed(setting.supersteps, || {
        for page in &pages {
            let signal = signal(page);
            page.targets.iter().for_each(|target| sums[*target as usize] += signal);
        }
        for (page, sum) in pages.iter_mut().zip(&mut sums) {
            page.rank = 1.0 - DAMPING + DAMPING * std::mem::take(sum);
        }
    });
    let sum: f64 = pages.iter().map(|page| page.rank).sum();
    print("by hand, arrays", load, None, seconds, sum / graph.vertices() as f64);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| arguments.get(at).map_or(Ok(usual), |text| text.parse::<u64>());
    let vertices = number(0, 100_000)?;
    let resources = |threads| Resources::new(Budget::new(1 << 40, 0), Arc::new(Job::new()), Some(threads));
    let only = arguments.get(1).filter(|name| *name != "all").cloned();
    let resources = Arc::new(resources(number(3, 1)? as usize)?);
    let setting = Setting { only, supersteps: number(2, 5)?, resources };

    let folder = tempfile::tempdir()?;
    let generator = Generator::new(Kind::LogNormal { vertices, mu: 4.0, sigma: 1.3 }, 1)?;
    let (path, input) = (folder.path().join("graph.brimful"), Input::Numbered(&generator, vertices));
    import(input, &path, &ImportOptions::default(), &setting.resources)?;
    let graph = Graph::open(&path, setting.resources.job.traffic())?;
    println!(
        "{vertices} vertices, {} edges, {} threads",
        graph.description().arcs,
        setting.resources.workers()
    );
    println!("{:16} {:>9} {:>9} {:>11} {:>12}", "store", "load s", "B/vertex", "superstep s", "mean rank");
    if setting.wants("maps") {
        in_maps(&graph, &setting)?;
    }
    if setting.wants("arrays") {
        in_arrays(&graph, &setting)?;
    }
    let file = format!("file:{}", folder.path().join("vertices").display());
    for (name, url) in [("memory", "memory"), ("bytes", "bytes"), ("file", &file)] {
        on_store(&graph, name, url, &setting)?;
    }
    Ok(())
}
