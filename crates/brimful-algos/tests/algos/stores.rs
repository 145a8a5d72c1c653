//! Numeric programs: the results of runs on shards, on every store, with one to four workers.

use std::path::Path;
use std::sync::Arc;

use brimful_algos::bfs::{Levels, Parents};
use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::count_paths::ShortestPathCounts;
use brimful_algos::hits::HubsAndAuthorities;
use brimful_algos::kcore::CoreNumbers;
use brimful_algos::pagerank::delta::DeltaPageRank;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::scc::StrongComponents;
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::{Globals, Min, Program, RunOptions, Vertex as Seen};
use brimful_execution::from_graph::StoreOptions;
use brimful_execution::numeric::{NumericOptions, run};
use brimful_execution::{ListLocation, Partitioning, RunMode, Scheduler};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_store::ErrorKind;
use brimful_vertices::{BytesStore, Place, RecordStore, Schemes};

use crate::{LARGE, SMALL, generated, resources, states};

/// A weighted graph; directed ones also have vertices without edges.
fn graph(folder: &Path, undirected: bool) -> Arc<Graph> {
    generated(folder, Kind::Rmat { scale: 8, edge_factor: 4 }, SMALL, undirected)
}

/// The options of a synchronous run on a store.
fn synchronous<'s>(store: &'s str, schemes: &'s Schemes) -> NumericOptions<'s> {
    NumericOptions {
        stores: StoreOptions {
            store,
            schemes,
            cache: None,
            partitioning: Partitioning::default(),
            kept: None,
        },
        serializer: None,
        mode: RunMode::Synchronous,
        lists: ListLocation::Memory,
        run: RunOptions::default(),
    }
}

/// Runs `program` in both ways and compares the states after `value`.
fn compare<P: Program>(
    program: &P,
    graphs: &[&Arc<Graph>],
    options: &RunOptions,
    any_order: bool,
    is_same: impl Fn(&P::State, &P::State) -> bool,
) {
    let folder = tempfile::tempdir().unwrap();
    let schemes = Schemes::default();
    let mut modes = vec![RunMode::Synchronous];
    if any_order {
        modes.extend([Scheduler::Throughput, Scheduler::LowLatency].map(RunMode::Asynchronous));
    }
    for graph in graphs {
        let expected = brimful_engine::run(program, graph, options, &resources(2, LARGE)).unwrap();
        let wanted = states(&expected);
        for (number, kind) in ["memory", "bytes", "file"].into_iter().enumerate() {
            for &mode in &modes {
                for threads in 1..=4 {
                    let place = format!(
                        "{kind}, {mode:?}, {threads} threads, weighted: {}",
                        options.weighted
                    );
                    let path = folder.path().join(format!(
                        "{number}-{threads}-{mode:?}-{}",
                        graph.path().file_name().unwrap().display()
                    ));
                    let store = if kind == "file" {
                        format!("file:{}", path.display())
                    } else {
                        kind.to_owned()
                    };
                    let mut numeric = synchronous(&store, &schemes);
                    numeric.stores.cache = (kind == "file").then(|| "score:90".parse().unwrap());
                    (numeric.mode, numeric.run) = (mode, options.clone());
                    let output = run(program, graph, &numeric, &resources(threads, LARGE)).unwrap();
                    let found = states(&output);
                    assert_eq!(found.len(), wanted.len(), "{place}");
                    for (vertex, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                        assert!(
                            is_same(found, wanted),
                            "{place}: {vertex} is {found:?}, not {wanted:?}",
                            found = bytemuck::bytes_of(found),
                            wanted = bytemuck::bytes_of(wanted)
                        );
                    }
                    if mode == RunMode::Synchronous {
                        assert_eq!(output.stats.supersteps, expected.stats.supersteps, "{place}");
                        assert_eq!(output.stats.reason, expected.stats.reason, "{place}");
                    }
                    let figures = output.stats.store.unwrap();
                    assert_eq!(figures.signals_undelivered, 0, "{place}");
                }
            }
        }
    }
}

fn near(found: f64, wanted: f64) -> bool {
    found == wanted || (found - wanted).abs() <= 1e-9 * wanted.abs()
}

fn bits<T: bytemuck::Pod>(found: &T, wanted: &T) -> bool {
    bytemuck::bytes_of(found) == bytemuck::bytes_of(wanted)
}

/// One directed and one undirected graph.
fn both(folder: &tempfile::TempDir) -> [Arc<Graph>; 2] {
    [false, true].map(|undirected| graph(folder.path(), undirected))
}

#[test]
fn ranks() {
    let folder = tempfile::tempdir().unwrap();
    let [directed, undirected] = both(&folder);
    for variant in [Variant::Normalized, Variant::Unnormalized] {
        for weighted in [false, true] {
            let program = PageRank::<f64>::new(variant, 0.85, 1e-6).unwrap();
            let options = RunOptions { weighted, max_supersteps: 60, ..RunOptions::default() };
            compare(&program, &[&directed, &undirected], &options, false, |a, b| near(*a, *b));
        }
    }
}

#[test]
fn ranks_by_increments() {
    let folder = tempfile::tempdir().unwrap();
    let [directed, undirected] = both(&folder);
    for graph in [&directed, &undirected] {
        let program = DeltaPageRank::<f64>::new(0.85, None, graph.connected()).unwrap();
        let options = RunOptions { signal_threshold: Some(1e-10), ..RunOptions::default() };
        compare(&program, &[graph], &options, false, |a, b| near(a.score, b.score));
        // Without supersteps, the unsignalled residuals differ.
        compare(&program, &[graph], &options, true, |a, b| (a.score - b.score).abs() <= 1e-6);
    }
}

#[test]
fn hubs_and_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let [directed, undirected] = both(&folder);
    for weighted in [false, true] {
        let options = RunOptions { weighted, max_supersteps: 40, ..RunOptions::default() };
        let same = |a: &brimful_algos::hits::Scores, b: &brimful_algos::hits::Scores| {
            near(a.raw, b.raw) && near(a.before, b.before) && near(a.last, b.last)
        };
        compare(
            &HubsAndAuthorities::new(1e-7).unwrap(),
            &[&directed, &undirected],
            &options,
            false,
            same,
        );
    }
}

#[test]
fn searches_and_components() {
    let folder = tempfile::tempdir().unwrap();
    let [directed, undirected] = both(&folder);
    let (graphs, options) = ([&directed, &undirected], RunOptions::default());
    compare(&Levels { sources: 3.into() }, &graphs, &options, false, bits);
    compare(&Parents { sources: 3.into() }, &graphs, &options, false, bits);
    compare(&ShortestPathCounts { sources: 3.into() }, &graphs, &options, false, bits);
    compare(&ConnectedComponents::<u32>::new(), &graphs, &options, true, bits);
    compare(&StrongComponents::<u32>::new(), &graphs, &options, false, bits);
    compare(&ShortestPaths { sources: 3.into() }, &graphs, &options, true, bits);
    let weighted = RunOptions { weighted: true, ..RunOptions::default() };
    compare(&ShortestPaths { sources: 3.into() }, &graphs, &weighted, true, bits);
    compare(&CoreNumbers, &[&undirected], &options, false, bits);
}

#[test]
fn what_counts_on_supersteps_is_refused_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), true);
    let schemes = Schemes::default();
    let options = NumericOptions {
        mode: RunMode::Asynchronous(Scheduler::Throughput),
        ..synchronous("memory", &schemes)
    };
    let error =
        run(&Parents { sources: 0.into() }, &graph, &options, &resources(2, LARGE)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("run it synchronously"), "{error}");
    let options = synchronous("nowhere", &schemes);
    let error =
        run(&Levels { sources: 0.into() }, &graph, &options, &resources(2, LARGE)).err().unwrap();
    assert!(error.to_string().contains("there is no store"), "{error}");
    let left = Schemes::default().with("left", "left", Place::Memory, |_, place| {
        let mut store = BytesStore::new(&place.resources.budget)?;
        store.put(b"key", b"record")?;
        Ok(Box::new(store))
    });
    let options = synchronous("left", &left);
    let error =
        run(&Levels { sources: 0.into() }, &graph, &options, &resources(2, LARGE)).err().unwrap();
    assert!(error.to_string().contains("has 2 vertices of another run"), "{error}");
}

#[test]
fn a_store_on_disk_has_fewer_partitions_than_there_are_workers() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), true);
    let program = Levels { sources: 0.into() };
    let expected =
        brimful_engine::run(&program, &graph, &RunOptions::default(), &resources(2, LARGE));
    let (schemes, store) =
        (Schemes::default(), format!("file:{}", folder.path().join("vertices").display()));
    assert_eq!(schemes.max_partitions(&store).unwrap(), Some(8));
    let options = synchronous(&store, &schemes);
    let output = run(&program, &graph, &options, &resources(9, LARGE)).unwrap();
    assert!(states(&output) == states(&expected.unwrap()));
}

/// Fails at the vertex with this rank.
struct Failing(u64);

impl Program for Failing {
    type State = u64;
    type Combiner = Min<u64>;
    type Aggregate = ();
    const MODE: brimful_engine::Mode = brimful_engine::Mode::Idempotent;

    fn initial(&self, _: Seen, _: &Globals<()>) -> u64 {
        0
    }
    fn signal(&self, _: Seen, state: u64) -> u64 {
        state
    }
    fn collect(&self, vertex: Seen, state: u64, _: u64, _: &Globals<()>) -> u64 {
        assert_ne!(vertex.id, self.0, "not this one");
        state
    }
}

#[test]
fn a_failing_program_ends_the_run_and_names_the_users_vertex() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), false);
    let rank = graph.find(7).unwrap();
    assert_ne!(rank, 7, "a graph whose ranks are not its ids");
    let schemes = Schemes::default();
    let file = format!("file:{}", folder.path().join("vertices").display());
    for store in ["memory", "bytes", &file] {
        let options = synchronous(store, &schemes);
        let error = run(&Failing(rank), &graph, &options, &resources(2, LARGE)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Program, "{store}");
        let text = error.to_string();
        assert!(text.starts_with("the program failed to collect at vertex 7"), "{text}");
        assert!(text.contains("not this one"), "{text}");
    }
}
