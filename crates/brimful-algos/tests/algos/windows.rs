//! Runs whose signals do not fit the budget: source window after source window, the same bits as
//! with all signals in memory.

use std::path::Path;
use std::sync::Arc;

use brimful_algos::bfs::Levels;
use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::hits::HubsAndAuthorities;
use brimful_algos::kcore::CoreNumbers;
use brimful_algos::pagerank::delta::DeltaPageRank;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::scc::StrongComponents;
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::memory::Plan;
use brimful_engine::plan::needs::Needs;
use brimful_engine::{Program, RunOptions};
use brimful_graph::build::import::{ImportOptions, Input, build_reverse};
use brimful_graph::generate::Kind;
use brimful_graph::{Graph, Index};
use brimful_store::{Budget, Error as StoreError};

use crate::{LARGE, SMALL, imported, outcome, resources, reversed, smallest, threads};

/// The graph of an edge list.
fn listed(folder: &Path, edges: &str, vertices: u64) -> Arc<Graph> {
    let (input, path) = (folder.join("e.txt"), folder.join("g.brimful"));
    std::fs::write(&input, edges).unwrap();
    let options = ImportOptions { geometry: SMALL, vertices: Some(vertices), ..Default::default() };
    let graph = imported(&path, Input::EdgeList(vec![input]), &options);
    build_reverse(&graph, &resources(2, LARGE)).unwrap();
    graph
}

/// Number of source windows of a run with this budget; 0: all signals are in memory.
fn windows<P: Program>(
    program: &P,
    graph: &Graph,
    options: &RunOptions,
    threads: usize,
    budget: u64,
) -> usize {
    let extent = Extent::of(graph, program.indexes(), options.weighted);
    let budget_of_run = Budget::new(budget, 0);
    let plan =
        Plan::new(&Needs::of(program), &extent, options.asynchronous, threads, &budget_of_run)
            .unwrap();
    assert!(plan.total_bytes <= budget);
    plan.source_window.map_or(0, |window| (graph.connected() as usize).div_ceil(window))
}

/// Runs `program` with one to four threads, in budgets from the smallest to slightly more than
/// signals need; returns the numbers of windows.
fn check<P: Program>(
    program: &P,
    graph: &Graph,
    weighted: bool,
    max_supersteps: u64,
) -> Vec<usize> {
    let options = RunOptions { weighted, max_supersteps, ..Default::default() };
    let found = |threads, budget| {
        let (bits, stats) = outcome(program, graph, &options, threads, budget)?;
        Ok::<_, brimful_engine::Error>((bits, stats.supersteps, stats.signals))
    };
    let wanted = found(1, LARGE).unwrap();
    assert_eq!(windows(program, graph, &options, 1, LARGE), 0);
    let mut seen = Vec::new();
    for threads in threads(1..=4) {
        let needed = smallest(|budget| found(threads, budget));
        assert!(found(threads, needed - 1).is_err());
        let mut budgets: Vec<u64> = Vec::new();
        // One budget for each number of windows, from the most to none.
        for budget in (needed..).step_by(97) {
            let count = windows(program, graph, &options, threads, budget);
            // All of them with one thread; with more threads, the most windows, two, one and none.
            let wanted = threads == 1 || budgets.is_empty() || count < 3;
            if wanted && (budgets.is_empty() || seen.last() != Some(&count)) {
                seen.push(count);
                budgets.push(budget);
            }
            if count == 0 {
                break;
            }
        }
        for budget in budgets {
            assert!(found(threads, budget).unwrap() == wanted, "{threads} threads, {budget} bytes");
        }
    }
    seen
}

#[test]
fn windows_of_sources_give_the_same_bits() {
    let kinds = [
        (Kind::Rmat { scale: 9, edge_factor: 14 }, false),
        (Kind::Rmat { scale: 8, edge_factor: 5 }, true),
        (Kind::Grid { rows: 20, columns: 17, torus: false }, true),
        (Kind::Star { vertices: 400 }, true),
    ];
    for (kind, undirected) in kinds {
        let folder = tempfile::tempdir().unwrap();
        let graph = reversed(folder.path(), kind, SMALL, undirected);
        let (source, connected) = (graph.find(7).unwrap(), graph.connected());
        for weighted in [false, true] {
            let ranks = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
            let seen = check(&ranks, &graph, weighted, 5);
            for count in [0, 1, 2, 3] {
                assert!(seen.contains(&count), "{kind:?}: windows {seen:?}");
            }
            check(&HubsAndAuthorities::new(0.0).unwrap(), &graph, weighted, 5);
        }
        check(&ShortestPaths { sources: source.into() }, &graph, true, u64::MAX);
        check(&Levels { sources: source.into() }, &graph, false, u64::MAX);
        check(&ConnectedComponents::<u64>::new(), &graph, false, u64::MAX);
        check(&StrongComponents::<u64>::new(), &graph, false, u64::MAX);
        check(&CoreNumbers, &graph, false, u64::MAX);
        check(&DeltaPageRank::<f64>::new(0.85, None, connected).unwrap(), &graph, true, u64::MAX);
    }
}

#[test]
fn there_are_intervals_of_several_turns() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Rmat { scale: 9, edge_factor: 14 }, SMALL, false);
    let segments = graph.shards(Index::In).unwrap().segments();
    assert!(segments.iter().any(|segment| segment.window > 2), "the tests here need them");
}

#[test]
fn graphs_of_nothing_and_of_one_vertex_have_the_least_window() {
    for (edges, vertices) in [("", 3), ("0 0\n", 1), ("0 0\n0 0\n", 4)] {
        let folder = tempfile::tempdir().unwrap();
        let graph = listed(folder.path(), edges, vertices);
        check(&PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap(), &graph, false, 4);
        check(&ConnectedComponents::<u64>::new(), &graph, false, u64::MAX);
        check(&CoreNumbers, &graph, false, u64::MAX);
    }
}

#[test]
fn windows_in_which_nobody_speaks_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Chain { vertices: 40_000 }, SMALL, false);
    let source = graph.find(3).unwrap().into();
    // Of the programs with a frontier, those that use degrees do without sparse supersteps.
    let program = DeltaPageRank::<f64>::new(0.85, Some(source), graph.connected()).unwrap();
    let supersteps = 5;
    let options = RunOptions { max_supersteps: supersteps, ..Default::default() };
    let budget = smallest(|budget| outcome(&program, &graph, &options, 2, budget));
    let count = windows(&program, &graph, &options, 2, budget) as u64;
    assert!(count > 1000);
    let (found, stats) = outcome(&program, &graph, &options, 2, budget).unwrap();
    let (wanted, whole) = outcome(&program, &graph, &options, 2, LARGE).unwrap();
    assert!(found == wanted);
    assert_eq!((stats.supersteps, stats.signals), (whole.supersteps, whole.signals));
    // A window of 2^5 sources may reach every segment, but few windows contain any of the marked
    // blocks of 2^12 vertices.
    let all = supersteps * count * 40_000;
    let visited = stats.edges_visited;
    assert!(visited < all / 8, "{visited} edges of {all}");
}

#[test]
fn what_needs_all_signals_in_memory_names_the_budget_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Rmat { scale: 10, edge_factor: 4 }, SMALL, false);
    let program = ConnectedComponents::<u64>::new();
    let asynchronous = RunOptions { asynchronous: true, ..Default::default() };
    let named = smallest(|budget| outcome(&program, &graph, &asynchronous, 2, budget));
    match outcome(&program, &graph, &asynchronous, 2, named - 1) {
        Err(brimful_engine::Error::Store(StoreError::Budget { needed, .. })) => {
            assert_eq!(needed, named)
        }
        other => panic!("signals do not fit: {other:?}"),
    }
}
