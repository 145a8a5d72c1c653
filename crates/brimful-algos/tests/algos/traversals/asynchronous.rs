//! Runs without a barrier between supersteps.

use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::{Program, RunOptions};
use brimful_graph::build::import::build_reverse;
use brimful_graph::generate::Kind;
use brimful_graph::read::shards::Geometry;
use brimful_store::ErrorKind;

use super::references::levels;
use super::{CASES, Case, case, case_in, cases, column, request};
use crate::{LARGE, outcome, resources, smallest, threads};

fn asynchronous(weighted: bool) -> RunOptions {
    RunOptions { weighted, asynchronous: true, ..Default::default() }
}

/// Runs `program` in both modes; returns the edge visits of both. The visits of an asynchronous run
/// depend on the budget, which decides the order of blocks, but not on the threads.
fn check_modes<P: Program>(program: &P, case: &Case, weighted: bool) -> (u64, u64) {
    let synchronous = RunOptions { weighted, ..Default::default() };
    let (wanted, before) = outcome(program, &case.graph, &synchronous, 2, LARGE).unwrap();
    let options = asynchronous(weighted);
    let mut visits = Vec::new();
    for threads in threads(1..=3) {
        let run = |budget| outcome(program, &case.graph, &options, threads, budget);
        for budget in [smallest(run), LARGE] {
            let (found, stats) = run(budget).unwrap();
            assert!(stats.converged(), "{:?}", stats.reason);
            assert!(found == wanted, "{threads} threads, {budget} bytes");
            if budget == LARGE {
                visits.push(stats.edges_visited);
            }
        }
    }
    assert!(visits.iter().all(|edges| *edges == visits[0]), "{visits:?}");
    (before.edges_visited, visits[0])
}

#[test]
fn asynchronous_runs_reach_the_same_fixpoint() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let source = case.graph.find(7).unwrap();
        check_modes(&ShortestPaths { sources: source.into() }, &case, true);
        check_modes(&ShortestPaths { sources: source.into() }, &case, false);
        check_modes(&ConnectedComponents::<u64>::new(), &case, false);
        let asynchronous = Request { asynchronous: true, ..request("bfs", &[7]) };
        assert_eq!(column(&case, &asynchronous), levels(&case, &[7]));
    }
}

/// Weighted shortest paths improve few vertices at a time for most of a run, and a sweep would
/// visit the whole of the one block each time.
#[test]
fn asynchronous_runs_of_one_block_take_sparse_supersteps() {
    let folder = tempfile::tempdir().unwrap();
    let kind = Kind::Rmat { scale: 14, edge_factor: 6 };
    let case = case_in(folder.path(), kind, false, Geometry::default());
    build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
    let (before, visits) = check_modes(&ShortestPaths { sources: 0.into() }, &case, true);
    assert!(visits < before * 3 / 2, "{visits} edge visits, {before} in supersteps");
}

#[test]
fn asynchronous_runs_visit_fewer_edges() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 14, edge_factor: 8 }, false);
    build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
    let (synchronous, asynchronous_visits) =
        check_modes(&ConnectedComponents::<u64>::new(), &case, false);
    assert!(
        asynchronous_visits < synchronous,
        "components: {asynchronous_visits} of {synchronous}"
    );
    for variant in [Variant::Normalized, Variant::Unnormalized] {
        let program = PageRank::<f64>::new(variant, 0.85, 1e-11).unwrap();
        let ranks = |program: &PageRank<f64>, options: &RunOptions| {
            let (bits, stats) = outcome(program, &case.graph, options, 2, LARGE).unwrap();
            assert!(stats.converged(), "{:?}", stats.reason);
            (bytemuck::pod_collect_to_vec::<u8, f64>(&bits), stats.edges_visited)
        };
        let (wanted, synchronous) = ranks(&program, &RunOptions::default());
        let (found, asynchronous_visits) = ranks(&program.asynchronous(), &asynchronous(false));
        // Each is within d/(1-d) times the tolerance of the limit, in L1.
        let scale = if variant == Variant::Normalized { 1.0 } else { case.out.len() as f64 };
        let apart: f64 = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).sum();
        assert!(apart <= 2.0 * 0.85 / 0.15 * 1e-11 * scale, "{variant:?}: {apart}");
        assert!(
            asynchronous_visits < synchronous,
            "{variant:?}: {asynchronous_visits} visits, synchronously {synchronous}"
        );
    }
}

#[test]
fn what_must_be_synchronous_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 1);
    let word = |name: &str, word: &str| (name.to_owned(), Parameter::Word(word.into()));
    let with = |algorithm: &str, parameters: Vec<(String, Parameter)>| Request {
        algorithm: algorithm.into(),
        asynchronous: true,
        parameters: parameters.into_iter().collect(),
        ..Default::default()
    };
    let parents =
        Request { sources: vec![0_i128.into()], ..with("bfs", vec![word("values", "parent")]) };
    for (request, part) in [
        (with("kcore", vec![]), "--mode does not apply to kcore"),
        (with("label_propagation", vec![]), "--mode does not apply to label_propagation"),
        (
            with("connected_components", vec![word("method", "union_find")]),
            "union_find has no asynchronous mode",
        ),
        (with("pagerank", vec![word("method", "delta")]), "needs synchronous supersteps"),
        (parents, "needs synchronous supersteps"),
    ] {
        let error = run_request(&request, &case.graph, &resources(2, 1 << 28)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    }
}
