//! Numeric programs on stores: workers, refused options, and failures. `tests/test_stores.py`
//! compares the results of all algorithms with those of runs on shards.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_algos::sssp::ShortestPaths;
use brimful_engine::{Globals, Min, Program, RunOptions, Vertex as Seen};
use brimful_execution::from_graph::StoreOptions;
use brimful_execution::numeric::{NumericOptions, run};
use brimful_execution::{ListLocation, Partitioning, RunMode, Scheduler};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_store::ErrorKind;
use brimful_vertices::{BytesStore, RecordStore, Schemes, StoreKind};

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

#[test]
fn any_number_of_workers_delivers_all_signals() {
    let folder = tempfile::tempdir().unwrap();
    let program = ShortestPaths { sources: 3.into() };
    let schemes = Schemes::default();
    for undirected in [false, true] {
        let graph = graph(folder.path(), undirected);
        let shards =
            brimful_engine::run(&program, &graph, &RunOptions::default(), &resources(2, LARGE));
        let (shards, mut number) = (shards.unwrap(), 0);
        let modes = [Scheduler::Throughput, Scheduler::LowLatency].map(RunMode::Asynchronous);
        for mode in [RunMode::Synchronous].into_iter().chain(modes) {
            for threads in 1..=4 {
                number += 1;
                let path = folder.path().join(format!("{undirected}-{number}"));
                for store in ["memory", "bytes", &format!("file:{}", path.display())] {
                    let mut options = NumericOptions { mode, ..synchronous(store, &schemes) };
                    options.stores.cache =
                        store.starts_with("file").then(|| "score:90".parse().unwrap());
                    let found = run(&program, &graph, &options, &resources(threads, LARGE));
                    let (found, way) = (found.unwrap(), format!("{store}, {mode:?}, {threads}"));
                    assert!(states(&found) == states(&shards), "{way}");
                    assert_eq!(found.stats.store.unwrap().signals_undelivered, 0, "{way}");
                    if mode == RunMode::Synchronous {
                        assert_eq!(found.stats.supersteps, shards.stats.supersteps, "{way}");
                        assert_eq!(found.stats.reason, shards.stats.reason, "{way}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_store_with_vertices_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), true);
    let left = Schemes::default().with("left", "left", StoreKind::Memory, |_, place| {
        let mut store = BytesStore::new(&place.resources.budget)?;
        store.put(b"key", b"record")?;
        Ok(Box::new(store))
    });
    let options = synchronous("left", &left);
    let program = ShortestPaths { sources: 0.into() };
    let error = run(&program, &graph, &options, &resources(2, LARGE)).err().unwrap();
    assert!(error.to_string().contains("has 2 vertices of another run"), "{error}");
}

#[test]
fn a_store_on_disk_has_fewer_partitions_than_there_are_workers() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), true);
    let program = ShortestPaths { sources: 0.into() };
    let expected =
        brimful_engine::run(&program, &graph, &RunOptions::default(), &resources(2, LARGE));
    let (schemes, store) =
        (Schemes::default(), format!("file:{}", folder.path().join("vertices").display()));
    assert_eq!(schemes.max_partitions(&store).unwrap(), Some(8));
    let options = synchronous(&store, &schemes);
    let output = run(&program, &graph, &options, &resources(9, LARGE)).unwrap();
    assert!(states(&output) == states(&expected.unwrap()));
}

/// Counts the signals that it computes.
struct Counting(AtomicU64);

impl Program for Counting {
    type State = u64;
    type Combiner = Min<u64>;
    type Aggregate = ();
    const MODE: brimful_engine::Mode = brimful_engine::Mode::Full;

    fn initial(&self, vertex: Seen, _: &Globals<()>) -> u64 {
        vertex.id
    }
    fn signal(&self, _: Seen, state: u64) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        state
    }
    fn collect(&self, _: Seen, state: u64, least: u64, _: &Globals<()>) -> u64 {
        state.min(least)
    }
}

#[test]
fn a_vertex_computes_its_signal_once_for_all_edges_of_one_weight() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), true);
    let schemes = Schemes::default();
    for weighted in [false, true] {
        let program = Counting(AtomicU64::new(0));
        let limits = RunOptions { max_supersteps: 1, weighted, ..RunOptions::default() };
        let options = NumericOptions { run: limits, ..synchronous("memory", &schemes) };
        let stats = run(&program, &graph, &options, &resources(2, LARGE)).unwrap().stats;
        let expected = if weighted { stats.signals } else { graph.connected() };
        assert_eq!(program.0.into_inner(), expected, "{weighted}");
    }
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
