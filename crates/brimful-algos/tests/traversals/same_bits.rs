//! The same bits by both traversals, in all layouts, at any number of threads and budget.

use brimful_algos::bfs::{Levels, Parents};
use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::count_paths::ShortestPathCounts;
use brimful_algos::degrees::Degrees;
use brimful_algos::delta_pagerank::DeltaPageRank;
use brimful_algos::hits::HubsAndAuthorities;
use brimful_algos::kcore::CoreNumbers;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_algos::scc::StrongComponents;
use brimful_algos::sources::Sources;
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::stats::Traversal;
use brimful_engine::{Layout, Program, Reason, RunOptions, TraversalMode, run};
use brimful_graph::Graph;
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::import::{ImportOptions, Input, build_reverse, import};
use brimful_store::ErrorKind;

use crate::{CASES, Case, cases, resources, smallest};

/// Bits of the states, supersteps, signals, and the supersteps that were sparse.
type Outcome = (Vec<u8>, u64, u64, u64);

fn outcome<P: Program>(
    program: &P,
    case: &Case,
    options: &RunOptions,
    threads: usize,
    budget: u64,
) -> brimful_engine::Result<Outcome> {
    let output = run(program, &case.graph, options, &resources(threads, budget))?;
    let mut states = bytemuck::zeroed_vec::<P::State>(output.states.len());
    output.states.read(0, &mut states).unwrap();
    let stats = output.stats;
    assert_eq!(stats.reason == Reason::NoChange, options.max_supersteps == u64::MAX);
    Ok((
        bytemuck::cast_slice(&states).to_vec(),
        stats.supersteps,
        stats.signals,
        stats.durations.count(Traversal::Sparse),
    ))
}

/// Runs `program` by every traversal, with one to four threads, in three budgets.
fn check_traversals<P: Program>(program: &P, case: &Case, weighted: bool) {
    let options = |traversal| RunOptions { weighted, traversal, ..Default::default() };
    let wanted = outcome(program, case, &options(TraversalMode::Dense), 1, 1 << 28).unwrap();
    assert_eq!(wanted.3, 0);
    for threads in 1..=4 {
        let needed =
            smallest(|budget| outcome(program, case, &options(TraversalMode::Auto), threads, budget));
        for budget in [needed, needed + needed / 2, 1 << 28] {
            for traversal in [TraversalMode::Auto, TraversalMode::Dense, TraversalMode::Sparse] {
                let found = outcome(program, case, &options(traversal), threads, budget).unwrap();
                assert!(found.0 == wanted.0, "{traversal:?}, {threads} threads, {budget} bytes");
                assert_eq!((found.1, found.2), (wanted.1, wanted.2));
                // With room to spare, frontiers of small graphs are all small.
                match traversal {
                    TraversalMode::Dense => assert_eq!(found.3, 0),
                    TraversalMode::Sparse if budget == 1 << 28 => assert_eq!(found.3, wanted.1),
                    TraversalMode::Sparse | TraversalMode::Auto => {}
                }
            }
        }
    }
}

#[test]
fn traversals_threads_and_budgets_give_the_same_bits() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let connected = case.graph.connected();
        let sources: Sources = [7, 0, 131].into_iter().map(|id| case.graph.find(id).unwrap()).collect();
        check_traversals(&Levels { sources: sources.clone() }, &case, false);
        check_traversals(&Parents { sources: sources.clone() }, &case, false);
        check_traversals(&ShortestPaths { sources: sources.clone() }, &case, true);
        check_traversals(&ShortestPathCounts { sources: sources.clone() }, &case, false);
        check_traversals(&ConnectedComponents::<u32>::new(), &case, false);
        check_traversals(&StrongComponents::<u32>::new(), &case, false);
        check_traversals(&StrongComponents::<u64>::new(), &case, false);
        check_traversals(&CoreNumbers, &case, false);
        check_traversals(&DeltaPageRank::<f64>::new(0.85, None, connected).unwrap(), &case, true);
        check_traversals(&DeltaPageRank::<f32>::new(0.85, Some(sources), connected).unwrap(), &case, false);
    }
}

/// Runs `program` in every layout, with one to three threads, in three budgets.
fn check_layouts<P: Program>(program: &P, case: &Case, weighted: bool, max_supersteps: u64) {
    let options = |layout| RunOptions { weighted, layout, max_supersteps, ..Default::default() };
    let wanted = outcome(program, case, &options(Layout::Shards), 1, 1 << 28).unwrap();
    for layout in [Layout::Decoupled, Layout::Coupled] {
        for threads in 1..=3 {
            let run = |budget| outcome(program, case, &options(layout), threads, budget);
            let needed = smallest(run);
            for budget in [needed, needed + needed / 8, 1 << 28] {
                let found = run(budget).unwrap();
                assert!(found.0 == wanted.0, "{layout:?}, {threads} threads, {budget} bytes");
                assert_eq!((found.1, found.2, found.3), (wanted.1, wanted.2, 0));
            }
        }
    }
}

#[test]
fn layouts_threads_and_budgets_give_the_same_bits() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let connected = case.graph.connected();
        let sources: Sources = [7, 0, 131].into_iter().map(|id| case.graph.find(id).unwrap()).collect();
        check_layouts(&Levels { sources: sources.clone() }, &case, false, u64::MAX);
        check_layouts(&Parents { sources: sources.clone() }, &case, false, u64::MAX);
        check_layouts(&ShortestPaths { sources: sources.clone() }, &case, true, u64::MAX);
        check_layouts(&ShortestPathCounts { sources: sources.clone() }, &case, false, u64::MAX);
        check_layouts(&ConnectedComponents::<u32>::new(), &case, false, u64::MAX);
        check_layouts(&StrongComponents::<u64>::new(), &case, false, u64::MAX);
        check_layouts(&CoreNumbers, &case, false, u64::MAX);
        let delta = DeltaPageRank::<f64>::new(0.85, None, connected).unwrap();
        check_layouts(&delta, &case, true, u64::MAX);
        for weighted in [false, true] {
            let ranks = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
            check_layouts(&ranks, &case, weighted, 9);
            check_layouts(&HubsAndAuthorities::new(0.0).unwrap(), &case, weighted, 9);
        }
        check_layouts(&PageRank::<f32>::new(Variant::Unnormalized, 0.85, 0.0).unwrap(), &case, false, 9);
        check_layouts(&Degrees { outgoing: true }, &case, false, 1);
    }
}

#[test]
fn a_coupled_record_is_read_and_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 0);
    let (arcs, vertices) = (case.graph.description().arcs, case.graph.connected());
    let moved = |layout, supersteps| {
        let options = RunOptions { layout, max_supersteps: supersteps, ..Default::default() };
        let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
        let stats = run(&program, &case.graph, &options, &resources(2, 1 << 28)).unwrap().stats;
        (stats.moved.bytes_read(), stats.moved.bytes_written())
    };
    let per_superstep = |layout| {
        let (few, many) = (moved(layout, 3), moved(layout, 5));
        ((many.0 - few.0) / 2, (many.1 - few.1) / 2)
    };
    assert_eq!(per_superstep(Layout::Shards), (0, 0));
    let (read, written) = per_superstep(Layout::Decoupled);
    // The number of edges for each part of each vertex, and 4 bytes an edge; all else is in memory.
    assert!(read >= 4 * (arcs + vertices) && written == 0, "{read} {written}");
    assert_eq!(per_superstep(Layout::Coupled), (read + 8 * vertices, read + 8 * vertices));
}

#[test]
fn what_has_no_choice_of_layout_refuses_one() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 1);
    let ask = |algorithm: &str, method: Option<&str>| {
        let parameters =
            method.map(|m| ("method".to_owned(), Parameter::Word(m.into()))).into_iter().collect();
        let request = Request {
            algorithm: algorithm.into(),
            layout: Layout::Coupled,
            parameters,
            ..Default::default()
        };
        run_request(&request, &case.graph, &resources(2, 1 << 28)).map(|finished| finished.variant)
    };
    for algorithm in ["color", "label_propagation", "clustering", "triangles"] {
        let error = ask(algorithm, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let part = format!("{algorithm} takes no layout but shards");
        assert!(error.to_string().starts_with(&part), "{error}");
    }
    assert_eq!(ask("connected_components", Some("union_find")).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(ask("connected_components", None).unwrap(), "propagation");
}

#[test]
fn a_run_ends_at_its_limits_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 2);
    let source = case.graph.find(0).unwrap();
    let reason = |options: &RunOptions| {
        let output =
            run(&Levels { sources: source.into() }, &case.graph, options, &resources(2, 1 << 28)).unwrap();
        (output.stats.supersteps, output.stats.reason)
    };
    let limited =
        |max_supersteps, max_seconds| RunOptions { max_supersteps, max_seconds, ..Default::default() };
    assert_eq!(reason(&limited(10, None)), (10, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(0, None)), (0, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(u64::MAX, Some(0.0))), (1, Reason::MaxSeconds));
    assert_eq!(reason(&limited(u64::MAX, Some(1e9))).1, Reason::NoChange);
    // A score of 1, the default where a state changed, does not exceed 1.
    let deaf = RunOptions { signal_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let deaf = RunOptions { collect_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let nonsense = RunOptions { signal_threshold: Some(f64::NAN), ..Default::default() };
    let error =
        run(&Levels { sources: source.into() }, &case.graph, &nonsense, &resources(2, 1 << 28)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn few_blocks_of_a_unit_on_disk_are_read_alone_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.brimful");
    let generator = Generator::new(Kind::Rmat { scale: 16, edge_factor: 16 }, 5).unwrap();
    let vertices = generator.vertices();
    let wide = resources(2, 1 << 28);
    import(Input::Numbered(&generator, vertices), &path, &ImportOptions::default(), &wide).unwrap();
    let graph = Graph::open(&path, wide.job.traffic()).unwrap();
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
        Ok::<_, brimful_engine::Error>((levels, output.stats.durations.count(Traversal::Sparse), read))
    };
    let (wanted, _, read) = search(TraversalMode::Dense, 1 << 28).unwrap();
    assert!(read >= unit.len, "the unit is read whole");
    // From the smallest budget on: first supersteps are dense, then sparse, then the unit stays in memory.
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
