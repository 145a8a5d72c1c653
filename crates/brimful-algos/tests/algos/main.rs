//! Algorithms, kernels and checkpoints on small graphs: compared with different algorithms, and the
//! same bits at any number of threads and budget. One binary, so that each program is compiled
//! once.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

mod algorithms;
mod budgets;
mod checkpoints;
mod cluster;
mod kernels;
#[path = "../../../brimful-engine/tests/support/processes.rs"]
mod processes;
mod stores;
mod traversals;
mod windows;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use brimful_algos::Error;
use brimful_engine::{Isolated, Output, Program, RunOptions, Stats, run};
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, build_reverse, import};
use brimful_graph::build::weights::Weights;
use brimful_graph::edges::{EdgeBatch, EdgeSource};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::read::shards::Geometry;
use brimful_store::{Budget, Error as StoreError, Job, Resources};

/// Several windows in a shard, several segments in a window, several blocks in a segment.
const SMALL: Geometry =
    Geometry { interval_bits: 5, window_edges: 700, segment_edges: 600, unit_bytes: 900 };
/// More intervals, windows, segments and blocks.
const TINY: Geometry =
    Geometry { interval_bits: 4, window_edges: 50, segment_edges: 16, unit_bytes: 200 };
/// A budget that holds everything.
const LARGE: u64 = 1 << 28;
/// The seed of generated graphs.
const SEED: u64 = 5;

fn resources(threads: usize, budget: u64) -> Arc<Resources> {
    Arc::new(Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap())
}

fn imported(path: &Path, input: Input<'_>, options: &ImportOptions) -> Arc<Graph> {
    let resources = resources(2, LARGE);
    import(input, path, options, &resources).unwrap();
    Arc::new(Graph::open(path, resources.job.traffic()).unwrap())
}

/// A graph with hashed weights; ids are 0 to n - 1.
fn generated(folder: &Path, kind: Kind, geometry: Geometry, undirected: bool) -> Arc<Graph> {
    let generator = Generator::new(kind, SEED).unwrap();
    let options =
        ImportOptions { geometry, undirected, weights: Weights::Hash, ..Default::default() };
    let path = folder.join(if undirected { "u.brimful" } else { "d.brimful" });
    imported(&path, Input::Numbered(&generator, generator.vertices()), &options)
}

/// [`generated`], with a reverse index.
fn reversed(folder: &Path, kind: Kind, geometry: Geometry, undirected: bool) -> Arc<Graph> {
    let graph = generated(folder, kind, geometry, undirected);
    build_reverse(&graph, &resources(2, LARGE)).unwrap();
    graph
}

/// The edges of a generated graph.
fn edges(kind: Kind) -> Vec<(usize, usize)> {
    let generator = Generator::new(kind, SEED).unwrap();
    let (mut batch, mut edges) = (EdgeBatch::default(), Vec::new());
    for part in 0..generator.parts() {
        generator.read_part(part, &mut batch).unwrap();
        let ends = batch.sources.iter().zip(&batch.targets);
        edges.extend(ends.map(|(&source, &target)| (source as usize, target as usize)));
    }
    edges
}

/// The states of the vertices with edges, then the state of all isolated vertices if they share it.
fn states<P: Program>(output: &Output<P>) -> Vec<P::State> {
    let mut states = bytemuck::zeroed_vec(output.states.len());
    output.states.read(0, &mut states).unwrap();
    if let Isolated::Same(state) = &output.isolated {
        states.extend_from_slice(state);
    }
    states
}

/// The bits of [`states`], and figures.
type Outcome = (Vec<u8>, Stats);

fn outcome<P: Program>(
    program: &P,
    graph: &Graph,
    options: &RunOptions,
    threads: usize,
    budget: u64,
) -> brimful_engine::Result<Outcome> {
    let resources = resources(threads, budget);
    let output = run(program, graph, options, &resources)?;
    assert!(resources.budget.peak() <= budget);
    Ok((bytemuck::cast_slice(&states(&output)).to_vec(), output.stats))
}

/// True in `make nightly`.
fn is_whole_matrix() -> bool {
    std::env::var("BRIMFUL_MATRIX").is_ok_and(|matrix| matrix == "all")
}

/// Numbers of threads: all of them in the whole matrix, else the first and the last.
fn threads(all: RangeInclusive<usize>) -> Vec<usize> {
    match is_whole_matrix() {
        true => all.collect(),
        false => vec![*all.start(), *all.end()],
    }
}

/// Budgets from the smallest that works: three in the whole matrix, else two.
fn budgets(smallest: u64) -> Vec<u64> {
    match is_whole_matrix() {
        true => vec![smallest, smallest + smallest / 2, LARGE],
        false => vec![smallest, LARGE],
    }
}

/// The smallest budget with which `attempt` works, as named by its errors.
fn smallest<T, E: Into<Error>>(attempt: impl Fn(u64) -> Result<T, E>) -> u64 {
    let mut needed = 1;
    while let Err(error) = attempt(needed) {
        let error = error.into();
        let Error::Store(StoreError::Budget { needed: more, .. }) = error else {
            panic!("{error}")
        };
        assert!(more > needed);
        needed = more;
    }
    needed
}
