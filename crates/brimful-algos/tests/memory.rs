//! Algorithms take no more memory than they reserve, and about as much scratch as their forecasts
//! say. A binary of its own, because its allocator counts the heap of the whole process.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_algos::planning::Subject;
use brimful_algos::registry::{Parameter, Request, plan_request, run_request, run_rows_request};
use brimful_algos::{Error, Result};
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, import};
use brimful_graph::generate::{Generator, Kind};
use brimful_store::{Budget, Error as StoreError, Job, Resources};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Memory that a run may take beyond its budget: the pool of threads, and tables of a few entries.
const SLACK_BYTES: u64 = 1 << 20;

/// The heap is counted for the whole process: one test at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn resources(budget: u64) -> Arc<Resources> {
    Arc::new(Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(2)).unwrap())
}

fn generated(folder: &Path, kind: Kind) -> Arc<Graph> {
    let (generator, resources) = (Generator::new(kind, 5).unwrap(), resources(1 << 30));
    let (path, options) = (folder.join("g.brimful"), ImportOptions::default());
    import(Input::Numbered(&generator, generator.vertices()), &path, &options, &resources).unwrap();
    Arc::new(Graph::open(&path, resources.job.traffic()).unwrap())
}

fn request(algorithm: &str) -> Request {
    Request { algorithm: algorithm.into(), ..Default::default() }
}

/// The smallest budget in which `run` works, as named by its errors, and the result.
fn in_smallest<T>(run: impl Fn(&Resources) -> Result<T>) -> (u64, T) {
    let mut budget = 1;
    loop {
        match run(&resources(budget)) {
            Ok(result) => return (budget, result),
            Err(Error::Store(StoreError::Budget { needed, .. })) if needed > budget => {
                budget = needed;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that a run in the smallest budget takes no more than this budget.
fn keeps_to_budget<T>(name: &str, run: impl Fn(&Resources) -> Result<T>) {
    let (budget, taken) = in_smallest(|resources| {
        HEAP.reset_peak_usage();
        let before = HEAP.current_usage();
        run(resources)?;
        Ok((HEAP.peak_usage() - before) as u64)
    });
    assert!(taken <= budget + SLACK_BYTES, "{name}: {taken} of {budget} bytes");
}

/// Checks that an algorithm keeps to its budget on a chain.
fn keeps_to_budget_on_a_chain(algorithm: &str) {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    // A vector that doubles as it grows to the number of edges has nearly twice the capacity.
    let graph = generated(folder.path(), Kind::Chain { vertices: (1 << 20) + 100 });
    let request = request(algorithm);
    keeps_to_budget(algorithm, |resources| match algorithm {
        "articulation_points" => run_request(&request, &graph, resources).map(drop),
        _ => run_rows_request(&request, &graph, resources).map(drop),
    });
}

#[test]
fn bridges_keep_to_their_budget() {
    keeps_to_budget_on_a_chain("bridges");
}

#[test]
fn articulation_points_keep_to_their_budget() {
    keeps_to_budget_on_a_chain("articulation_points");
}

#[test]
fn truss_numbers_keep_to_their_budget() {
    keeps_to_budget_on_a_chain("ktruss");
}

#[test]
fn all_partners_keep_to_their_budget() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let graph = generated(folder.path(), Kind::Rmat { scale: 10, edge_factor: 32 });
    let parameters = [("k".to_owned(), Parameter::Number(1e6))].into();
    let request = Request { parameters, ..request("similarity") };
    keeps_to_budget("similarity", |resources| {
        run_rows_request(&request, &graph, resources).map(drop)
    });
}

/// Checks that the forecast of scratch is near that of a run.
fn scratch_is_forecast(request: &Request, kind: Kind, budget: u64) {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let (graph, resources) = (generated(folder.path(), kind), resources(budget));
    run_rows_request(request, &graph, &resources).unwrap();
    let scratch = resources.job.traffic().max_scratch();
    let forecast = plan_request(request, Subject::Graph(&graph), 2, budget).unwrap().scratch_bytes;
    let near = scratch / 2..=2 * scratch;
    assert!(near.contains(&forecast), "{}: {forecast}, not {scratch}", request.algorithm);
}

#[test]
fn forecasts_count_rows_of_partners() {
    let parameters = [("k".to_owned(), Parameter::Number(200.0))].into();
    let request = Request { parameters, ..request("similarity") };
    scratch_is_forecast(&request, Kind::Rmat { scale: 13, edge_factor: 8 }, 16 << 20);
}

#[test]
fn forecasts_count_rows_of_levels() {
    // Lists of neighbors are in memory.
    let kind = Kind::Rmat { scale: 16, edge_factor: 2 };
    scratch_is_forecast(&request("leiden_hierarchy"), kind, 1 << 28);
}
