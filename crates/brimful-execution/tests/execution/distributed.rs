//! Executions divided among several processes, here threads: the same states as one process, and
//! the same order of signals.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_engine::Reason;
use brimful_engine::exchange::Communicator;
use brimful_execution::from_graph::{self, StoreOptions};
use brimful_execution::{
    Delivery, Error, ExecutionOptions, ExecutionStats, Failure, ListLocation, Partitioning,
    RunLimits, RunMode, VertexOf, VertexProgram,
};
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, import};
use brimful_graph::build::weights::Weights;
use brimful_graph::generate::{Generator, Kind};
use brimful_store::{Budget, ErrorKind, Job, Resources};
use brimful_vertices::serializer::Compact;
use brimful_vertices::{Edge, Edges, Field, Loan, Schemes};

use crate::processes::Hub;
use crate::programs::Distances;

/// A state that depends on the order of all signals, and an aggregate: the number of collects.
#[derive(Clone)]
struct Histories {
    delivery: Delivery,
    collected: Arc<AtomicU64>,
    aggregate: Arc<AtomicU64>,
}

impl Histories {
    fn new(delivery: Delivery) -> Self {
        Self { delivery, collected: Arc::default(), aggregate: Arc::default() }
    }
}

fn mixed(before: u64, next: u64) -> u64 {
    (before ^ next).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17)
}

impl VertexProgram for Histories {
    type Id = u64;
    type State = u64;
    type Edge = f64;
    type Signal = u64;

    fn delivery(&self) -> Delivery {
        self.delivery
    }
    fn combine(&self, waiting: &mut u64, signal: u64) -> Result<(), Failure> {
        *waiting = waiting.wrapping_add(signal);
        Ok(())
    }
    fn initial(&self, id: &u64, edges: &Edges<u64, f64>) -> Result<u64, Failure> {
        Ok(mixed(*id, edges.len() as u64))
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, u64, f64>,
    ) -> Result<Option<u64>, Failure> {
        // Some vertices are silent for a while.
        Ok((!source.state.is_multiple_of(5)).then(|| mixed(source.state, edge.data.to_bits())))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[u64],
    ) -> Result<(), Failure> {
        self.collected.fetch_add(1, Ordering::Relaxed);
        vertex.state = signals.iter().fold(vertex.state, |state, signal| mixed(state, *signal));
        Ok(())
    }
    fn contribution(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.collected.swap(0, Ordering::Relaxed).to_le_bytes().to_vec())
    }
    fn merge(&self, of_all: &[&[u8]]) -> Result<(), Failure> {
        for one in of_all {
            let count = u64::from_le_bytes((*one).try_into()?);
            self.aggregate.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn graph(folder: &Path, kind: Kind) -> Graph {
    let path = folder.join("g.brimful");
    let generator = Generator::new(kind, 5).unwrap();
    let options = ImportOptions { weights: Weights::Hash, ..Default::default() };
    let resources = resources(1, 1 << 28);
    import(Input::Numbered(&generator, generator.vertices()), &path, &options, &resources).unwrap();
    Graph::open(&path, resources.job.traffic()).unwrap()
}

fn resources(workers: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(workers)).unwrap()
}

/// The outcome of a run: states and figures, with the reason of its end.
type Outcome<P> = (BTreeMap<u64, <P as VertexProgram>::State>, ExecutionStats, Reason, P);

#[derive(Clone)]
struct Setting<'g> {
    graph: &'g Graph,
    store: &'g str,
    lists: ListLocation,
    budget: u64,
    workers: usize,
    supersteps: u64,
    partitioning: Partitioning,
}

impl<'g> Setting<'g> {
    fn new(graph: &'g Graph, store: &'g str) -> Self {
        Self {
            graph,
            store,
            lists: ListLocation::Memory,
            budget: 1 << 28,
            workers: 1,
            supersteps: 6,
            partitioning: Partitioning::Range,
        }
    }

    /// Runs a program, or the part of it that a process with a communicator makes.
    fn run<P>(&self, program: P, communicator: Option<Communicator>) -> Result<Outcome<P>, Error>
    where
        P: VertexProgram<Id = u64, Edge = f64, State: Field> + Clone + Send + 'static,
    {
        let (schemes, resources) = (Schemes::default(), resources(self.workers, self.budget));
        let stores = StoreOptions {
            store: self.store,
            schemes: &schemes,
            cache: None,
            partitioning: self.partitioning,
            kept: None,
        };
        let is_divided = communicator.is_some();
        let options = ExecutionOptions { lists: self.lists, communicator, ..Default::default() };
        let serializer = || Ok(Box::new(Compact) as _);
        let from = (self.graph, true);
        let mut execution =
            from_graph::start(program, from, (&stores, &options), &serializer, None, &resources)?;
        let limits = RunLimits { max_supersteps: self.supersteps, ..RunLimits::default() };
        let reason = execution.run(RunMode::Synchronous, &limits, |_| Ok(false))?;
        let mut states = BTreeMap::new();
        if is_divided {
            execution.gather(
                &mut |vertex, out| {
                    vertex.id().write(out);
                    vertex.state.write(out);
                    Ok(())
                },
                &mut |_, mut records| {
                    while !records.is_empty() {
                        let id = u64::read(&mut records).unwrap();
                        let state = Field::read(&mut records).unwrap();
                        assert!(states.insert(id, state).is_none());
                    }
                    Ok(())
                },
            )?;
        } else {
            execution.for_each(&mut |vertex| {
                states.insert(*vertex.id(), vertex.state.clone());
                Ok(())
            })?;
        }
        let stats = execution.stats()?;
        Ok((states, stats, reason, execution.program().clone()))
    }

    /// Runs a program in `count` processes and a driver; the outcome of the driver, and the
    /// calls of `scatter`. Process 0 is lost at call `last`.
    fn divided<P>(
        &self,
        program: impl Fn() -> P + Sync,
        count: usize,
        last: u64,
    ) -> Result<(Outcome<P>, u64), Error>
    where
        P: VertexProgram<Id = u64, Edge = f64, State: Field> + Clone + Send + 'static,
    {
        let hub = Arc::new(Hub::default());
        let run = |index: Option<usize>| {
            let communicator = hub.communicator(count, index, false, last);
            let outcome = self.run(program(), Some(communicator));
            if outcome.is_err() {
                hub.fail();
            }
            outcome
        };
        std::thread::scope(|scope| {
            let run = &run;
            let workers: Vec<_> =
                (0..count).map(|index| scope.spawn(move || run(Some(index)).map(|_| ()))).collect();
            let of_driver = run(None);
            for worker in workers {
                let outcome = worker.join().unwrap();
                assert_eq!(outcome.is_ok(), of_driver.is_ok(), "{outcome:?}");
            }
            Ok((of_driver?, hub.scattered.load(Ordering::Relaxed)))
        })
    }
}

const DELIVERIES: [Delivery; 3] = [Delivery::Combined, Delivery::Each, Delivery::LatestPerEdge];

#[test]
fn any_number_of_processes_gives_the_same_states_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), Kind::Rmat { scale: 9, edge_factor: 14 });
    for store in ["memory", "bytes"] {
        for delivery in DELIVERIES {
            let setting = Setting::new(&graph, store);
            let (states, stats, reason, program) =
                setting.run(Histories::new(delivery), None).unwrap();
            let collected = program.collected.load(Ordering::Relaxed);
            for (count, workers) in [(1, 1), (2, 1), (3, 2), (5, 1)] {
                let setting = Setting { workers, ..setting.clone() };
                let (many, _) =
                    setting.divided(|| Histories::new(delivery), count, u64::MAX).unwrap();
                // Packets of several threads arrive in any order.
                if workers == 1 || delivery != Delivery::Each {
                    assert!(many.0 == states, "{store}, {delivery:?}, {count} processes");
                    let counts = |stats: &ExecutionStats| {
                        let received = (stats.signals_received, stats.signals_combined);
                        let vertices = (stats.vertices_signalled, stats.vertices_collected);
                        (stats.signals_sent, stats.edges_visited, received, vertices)
                    };
                    assert_eq!(counts(&many.1), counts(&stats), "{store}, {delivery:?}, {count}");
                    let frontiers = |stats: &ExecutionStats| {
                        let one = stats.by_superstep.iter();
                        one.map(|one| (one.superstep, one.frontier, one.signals))
                            .collect::<Vec<_>>()
                    };
                    assert_eq!(frontiers(&many.1), frontiers(&stats));
                    assert_eq!(many.3.aggregate.load(Ordering::Relaxed), collected);
                }
                assert_eq!((many.1.supersteps, many.2), (stats.supersteps, reason));
            }
        }
    }
}

#[test]
fn runs_end_when_no_process_has_anything_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        Kind::Rmat { scale: 8, edge_factor: 3 },
        Kind::Chain { vertices: 60 },
        Kind::Star { vertices: 40 },
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let graph = graph(&folder, kind);
        let setting = Setting { supersteps: 10_000, ..Setting::new(&graph, "memory") };
        for delivery in DELIVERIES {
            let program = || Distances { source: 0, delivery };
            let one = setting.run(program(), None).unwrap();
            for count in [1, 2, 3, 7] {
                let (many, _) = setting.divided(program, count, u64::MAX).unwrap();
                assert!(many.0 == one.0, "{kind:?}, {delivery:?}, {count} processes");
                assert_eq!((many.2, many.1.supersteps), (Reason::NoChange, one.1.supersteps));
            }
        }
    }
}

/// Batches are small, and lists on disk: the order of signals is the same.
#[test]
fn neither_budget_nor_lists_change_the_order_of_signals() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), Kind::Rmat { scale: 13, edge_factor: 16 });
    let one = Setting { supersteps: 2, ..Setting::new(&graph, "bytes") };
    let (states, ..) = one.run(Histories::new(Delivery::Each), None).unwrap();
    let mut rounds = Vec::new();
    for (budget, lists) in [(1 << 28, ListLocation::Memory), (14 << 20, ListLocation::Disk)] {
        let setting = Setting { budget, lists, ..one.clone() };
        let alone = setting.run(Histories::new(Delivery::Each), None).unwrap();
        assert!(alone.0 == states, "one process, {budget} bytes");
        let (many, scattered) =
            setting.divided(|| Histories::new(Delivery::Each), 3, u64::MAX).unwrap();
        assert!(many.0 == states, "{budget} bytes");
        assert_eq!(many.1.spills > 0, lists == ListLocation::Disk);
        rounds.push(scattered);
    }
    assert!(rounds[1] > rounds[0], "batches were sent in turns: {rounds:?}");
}

#[test]
fn a_lost_process_ends_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), Kind::Rmat { scale: 8, edge_factor: 8 });
    let setting = Setting::new(&graph, "memory");
    for last in [0, 1, 4, 13] {
        let error = setting.divided(|| Histories::new(Delivery::Each), 3, last).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
}

#[test]
fn divisions_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path(), Kind::Chain { vertices: 40 });
    let setting = Setting { partitioning: Partitioning::Hash, ..Setting::new(&graph, "memory") };
    let error = setting.divided(|| Histories::new(Delivery::Each), 2, u64::MAX).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains("needs the partitioner range, not hash"), "{error}");
    let setting = Setting { budget: 3 << 20, ..Setting::new(&graph, "memory") };
    let error = setting.divided(|| Histories::new(Delivery::Each), 40, u64::MAX).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Budget, "{error}");
}
