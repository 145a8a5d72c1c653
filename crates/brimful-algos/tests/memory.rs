//! Algorithms take no more memory than they reserve. A binary of its own, because its allocator
//! counts the heap of the whole process.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_algos::registry::{Parameter, Request, run_request, run_rows_request};
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
