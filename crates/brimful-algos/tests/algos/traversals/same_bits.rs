//! The same bits by both traversals, at any number of threads and budget.

use brimful_algos::bfs::{Levels, Parents};
use brimful_algos::bipartite::Parities;
use brimful_algos::closeness::HyperBall;
use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::count_paths::ShortestPathCounts;
use brimful_algos::kcore::CoreNumbers;
use brimful_algos::pagerank::delta::DeltaPageRank;
use brimful_algos::scc::StrongComponents;
use brimful_algos::sources::Sources;
use brimful_algos::sssp::ShortestPaths;
use brimful_algos::topological_order;
use brimful_engine::result::stats::Traversal;
use brimful_engine::{Add, Globals, Mode, Program, Reason, RunOptions, TraversalMode, Vertex, run};
use brimful_graph::build::import::build_reverse;
use brimful_graph::generate::Kind;
use brimful_graph::read::shards::Geometry;
use brimful_graph::{Graph, Index};
use brimful_store::ErrorKind;

use super::{CASES, Case, cases};
use crate::{LARGE, budgets, outcome, resources, smallest, threads};

/// Runs `program` by every traversal, with one to four threads, in three budgets.
fn check_traversals<P: Program>(program: &P, case: &Case, weighted: bool) {
    let outcome = |traversal, threads, budget| {
        let options = RunOptions { weighted, traversal, ..Default::default() };
        let (bits, stats) = outcome(program, &case.graph, &options, threads, budget)?;
        assert_eq!(stats.reason, Reason::NoChange);
        let sparse = stats.durations.count(Traversal::Sparse);
        Ok::<_, brimful_engine::Error>((bits, (stats.supersteps, stats.signals), sparse))
    };
    let (wanted, figures, sparse) = outcome(TraversalMode::Dense, 1, LARGE).unwrap();
    assert_eq!(sparse, 0);
    for threads in threads(1..=4) {
        let needed = smallest(|budget| outcome(TraversalMode::Auto, threads, budget));
        for budget in budgets(needed) {
            for traversal in [TraversalMode::Auto, TraversalMode::Dense, TraversalMode::Sparse] {
                let (found, same, sparse) = outcome(traversal, threads, budget).unwrap();
                assert!(found == wanted, "{traversal:?}, {threads} threads, {budget} bytes");
                assert_eq!(same, figures);
                // With memory to spare, all frontiers of small graphs count as small.
                match traversal {
                    TraversalMode::Dense => assert_eq!(sparse, 0),
                    TraversalMode::Sparse if budget == LARGE => assert_eq!(sparse, figures.0),
                    TraversalMode::Sparse | TraversalMode::Auto => {}
                }
            }
        }
    }
}

/// Sums of signals along edges and against them, which depend on their order.
struct BothWays;

impl Program for BothWays {
    /// The sum of all that was received, and the part that is due.
    type State = [f64; 2];
    type Combiner = Add<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Delta;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> [f64; 2] {
        [0.0, 1.0 / (vertex.id as f64 + 3.0)]
    }

    fn signal(&self, vertex: Vertex, [_, due]: [f64; 2]) -> f64 {
        due * if vertex.id.is_multiple_of(5) { 1e-2 } else { 1e-6 }
    }

    fn collect(&self, _: Vertex, [all, due]: [f64; 2], sum: f64, _: &Globals<()>) -> [f64; 2] {
        [all + sum, due + sum]
    }

    fn signalled(&self, [all, _]: [f64; 2]) -> [f64; 2] {
        [all, 0.0]
    }

    fn signal_score(&self, _: [f64; 2], [_, due]: [f64; 2]) -> f64 {
        if due > 1e-9 { 1.0 } else { 0.0 }
    }
}

#[test]
fn traversals_threads_and_budgets_give_the_same_bits() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let connected = case.graph.connected();
        let sources: Sources =
            [7, 0, 131].into_iter().map(|id| case.graph.find(id).unwrap()).collect();
        check_traversals(&Levels { sources: sources.clone() }, &case, false);
        check_traversals(&Parents { sources: sources.clone() }, &case, false);
        check_traversals(&ShortestPaths { sources: sources.clone() }, &case, true);
        check_traversals(&ShortestPathCounts { sources: sources.clone() }, &case, false);
        check_traversals(&ConnectedComponents::<u64>::new(), &case, false);
        check_traversals(&StrongComponents::<u64>::new(), &case, false);
        check_traversals(&CoreNumbers, &case, false);
        check_traversals(&Parities::<u32>::new(), &case, false);
        check_traversals(&topological_order::Levels, &case, false);
        check_traversals(&HyperBall::<64>, &case, false);
        check_traversals(&BothWays, &case, false);
        check_traversals(&DeltaPageRank::<f64>::new(0.85, None, connected).unwrap(), &case, true);
        let scores = DeltaPageRank::<f64>::new(0.85, Some(sources), connected).unwrap();
        check_traversals(&scores, &case, false);
    }
}

#[test]
fn a_run_ends_at_its_limits_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 2);
    let source = case.graph.find(0).unwrap();
    let reason = |options: &RunOptions| {
        let output =
            run(&Levels { sources: source.into() }, &case.graph, options, &resources(2, 1 << 28))
                .unwrap();
        (output.stats.supersteps, output.stats.reason)
    };
    let limited = |max_supersteps, max_seconds| RunOptions {
        max_supersteps,
        max_seconds,
        ..Default::default()
    };
    assert_eq!(reason(&limited(10, None)), (10, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(0, None)), (0, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(u64::MAX, Some(0.0))), (1, Reason::MaxSeconds));
    assert_eq!(reason(&limited(u64::MAX, Some(1e9))).1, Reason::NoChange);
    // The default score of a changed state, 1, does not exceed 1.
    let deaf = RunOptions { signal_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let deaf = RunOptions { collect_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let nonsense = RunOptions { signal_threshold: Some(f64::NAN), ..Default::default() };
    let error =
        run(&Levels { sources: source.into() }, &case.graph, &nonsense, &resources(2, 1 << 28))
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn few_blocks_of_a_unit_on_disk_are_read_alone_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let kind = Kind::Rmat { scale: 16, edge_factor: 16 };
    let graph = crate::generated(folder.path(), kind, Geometry::default(), false);
    let path = graph.path().to_owned();
    let shards = graph.shards(brimful_graph::Index::In).unwrap();
    let unit = shards.file().entries()[0];
    let (file, all) = (shards.file().path().to_owned(), graph.connected());
    let mut degrees = vec![0; all as usize];
    graph.degrees(0, &mut degrees).unwrap();
    let source = degrees.iter().position(|degree| *degree == 1).unwrap() as u64;
    drop(graph);
    let search = |traversal, budget| {
        let resources = resources(1, budget);
        let graph = Graph::open(&path, resources.job.traffic()).unwrap();
        let options = RunOptions { traversal, max_supersteps: 1, ..Default::default() };
        let output = run(&Levels { sources: source.into() }, &graph, &options, &resources)?;
        let mut levels = vec![0; all as usize];
        output.states.read(0, &mut levels).unwrap();
        let read = output.stats.moved.bytes_read();
        Ok::<_, brimful_engine::Error>((
            levels,
            output.stats.durations.count(Traversal::Sparse),
            read,
        ))
    };
    let (wanted, _, read) = search(TraversalMode::Dense, 1 << 28).unwrap();
    assert!(read >= unit.len, "the unit is read whole");
    // From the smallest budget on: the first supersteps are dense, later ones sparse, and then the
    // unit stays in memory.
    let budgets = (1..200).map(|step| step << 17);
    let budget = budgets.into_iter().find(|budget| {
        search(TraversalMode::Sparse, *budget).is_ok_and(|(levels, sparse, read)| {
            assert!(levels == wanted);
            sparse == 1 && read < unit.len / 2
        })
    });
    let budget = budget.expect("a budget in which blocks are read alone");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[unit.offset as usize..][..unit.len as usize].iter_mut().for_each(|byte| *byte ^= 16);
    std::fs::write(&file, bytes).unwrap();
    let error = search(TraversalMode::Sparse, budget).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("a block of edges fails its checksum"), "{error}");
}
