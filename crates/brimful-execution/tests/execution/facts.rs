//! Known results, on every store, with one to four workers, in every mode and every delivery.

use std::collections::BTreeMap;

use brimful_engine::Reason;
use brimful_execution::{
    Delivery, ExecutionOptions, Failure, ListLocation, RunLimits, VertexOf, VertexProgram,
};
use brimful_vertices::{Edge, Edges, Field, Loan};

use crate::programs::{
    Distances, MODES, Ranks, STORES, assert_near, distances, random_graph, resources, start, states,
};

const DELIVERIES: [Delivery; 3] = [Delivery::Combined, Delivery::Each, Delivery::LatestPerEdge];

fn all_distances(
    graph: &[(u64, Vec<(u64, f64)>)],
    source: u64,
    workers: &[usize],
    options: &ExecutionOptions,
) {
    let expected = distances(graph, source);
    for kind in STORES {
        for mode in MODES {
            for delivery in DELIVERIES {
                for &workers in workers {
                    let resources = resources(workers);
                    let program = Distances { source, delivery };
                    let mut execution = start(program, graph, (kind, 5), &resources, options);
                    let reason = execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
                    assert_eq!(reason, Reason::NoChange);
                    let stats = execution.stats().unwrap();
                    assert_eq!(stats.signals_sent, stats.signals_received, "{stats:?}");
                    assert!(
                        states(&mut execution) == expected,
                        "{kind}, {mode:?}, {delivery:?}, {workers} workers"
                    );
                }
            }
        }
    }
}

#[test]
fn distances_of_the_thesis_and_of_giraph() {
    let cycle: Vec<_> = (0..4).map(|id| (id, vec![((id + 1) % 4, 1.0)])).collect();
    assert_eq!(distances(&cycle, 0).into_values().collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0]);
    all_distances(&cycle, 0, &[1, 2], &ExecutionOptions::default());
    let giraph = vec![
        (1, vec![(2, 1.0), (3, 3.0)]),
        (2, vec![(3, 1.0), (4, 10.0)]),
        (3, vec![(4, 2.0)]),
        (4, vec![]),
    ];
    assert_eq!(distances(&giraph, 1).into_values().collect::<Vec<_>>(), [0.0, 1.0, 2.0, 4.0]);
    all_distances(&giraph, 1, &[1, 2], &ExecutionOptions::default());
}

#[test]
fn distances_of_random_graphs() {
    for seed in 0..2 {
        let graph = random_graph(300, 4, seed);
        all_distances(&graph, 0, &[1, 3, 4], &ExecutionOptions::default());
    }
}

#[test]
fn lists_on_disk_change_no_answer() {
    let graph = random_graph(16_000, 6, 9);
    let expected = distances(&graph, 0);
    let options = ExecutionOptions { lists: ListLocation::Disk, ..ExecutionOptions::default() };
    for mode in MODES {
        let resources = resources(2);
        let program = Distances { source: 0, delivery: Delivery::Each };
        let mut execution = start(program, &graph, ("memory", 2), &resources, &options);
        execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
        let stats = execution.stats().unwrap();
        assert!(mode != MODES[0] || stats.spills > 0, "{stats:?}");
        assert!(states(&mut execution) == expected, "{mode:?}");
    }
}

/// Facts of the unnormalized PageRank: names of vertices, edges, and the ranks.
fn rank_facts() -> Vec<Vec<(&'static str, Vec<&'static str>, f64)>> {
    vec![
        vec![
            ("a", vec!["b"], 1.0),
            ("b", vec!["c"], 1.0),
            ("c", vec!["d"], 1.0),
            ("d", vec!["e"], 1.0),
            ("e", vec!["a"], 1.0),
        ],
        vec![
            ("center", vec![], 0.66),
            ("a", vec!["center"], 0.15),
            ("b", vec!["center"], 0.15),
            ("c", vec!["center"], 0.15),
            ("d", vec!["center"], 0.15),
        ],
        vec![
            ("nw", vec!["ne", "sw"], 1.0),
            ("ne", vec!["nw", "se"], 1.0),
            ("sw", vec!["nw", "se"], 1.0),
            ("se", vec!["ne", "sw"], 1.0),
        ],
        vec![
            ("1", vec!["2"], 0.770_27),
            ("2", vec!["1", "3"], 1.459_46),
            ("3", vec!["2"], 0.770_27),
        ],
    ]
}

#[test]
fn ranks_of_small_graphs_in_every_mode() {
    for graph in rank_facts() {
        let expected: BTreeMap<String, f64> =
            graph.iter().map(|(id, _, rank)| ((*id).to_owned(), *rank)).collect();
        let vertices: Vec<_> = graph
            .iter()
            .map(|(id, targets, _)| {
                (
                    (*id).to_owned(),
                    targets.iter().map(|target| ((*target).to_owned(), ())).collect(),
                )
            })
            .collect();
        for kind in STORES {
            for mode in MODES {
                for workers in 1..=4 {
                    let resources = resources(workers);
                    let options = ExecutionOptions {
                        signal_threshold: Some(1e-9),
                        ..ExecutionOptions::default()
                    };
                    let mut execution = start(Ranks, &vertices, (kind, 3), &resources, &options);
                    let reason = execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
                    assert_eq!(reason, Reason::NoChange);
                    assert_near(&states(&mut execution), &expected, 1e-5);
                }
            }
        }
    }
}

#[test]
fn without_supersteps_fewer_signals_are_sent() {
    let graph = random_graph(1000, 5, 4);
    let options = ExecutionOptions { signal_threshold: Some(1e-4), ..ExecutionOptions::default() };
    // With one worker: the number of signals of several depends on the system's scheduling.
    let resources = resources(1);
    let distances = MODES.map(|mode| {
        let program = Distances { source: 0, delivery: Delivery::Combined };
        let mut execution = start(program, &graph, ("memory", 1), &resources, &options);
        execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
        execution.stats().unwrap().signals_sent
    });
    let named: Vec<_> = graph
        .iter()
        .map(|(id, edges)| {
            (id.to_string(), edges.iter().map(|(target, _)| (target.to_string(), ())).collect())
        })
        .collect();
    let ranks = MODES.map(|mode| {
        let mut execution = start(Ranks, &named, ("memory", 1), &resources, &options);
        execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
        execution.stats().unwrap().signals_sent
    });
    println!("signals of distances {distances:?}, of ranks {ranks:?}, by mode {MODES:?}");
    for sent in [distances, ranks] {
        assert!(sent[1] < sent[0] && sent[2] < sent[0], "{distances:?}, {ranks:?}");
    }
}

#[test]
fn signals_to_nobody_are_counted_and_a_vertex_that_comes_twice_is_too() {
    let graph = vec![(1, vec![(2, 1.0), (77, 1.0)]), (2, vec![]), (1, vec![])];
    let resources = resources(2);
    let program = Distances { source: 1, delivery: Delivery::Each };
    let mut execution =
        start(program, &graph, ("bytes", 2), &resources, &ExecutionOptions::default());
    assert_eq!(execution.duplicates(), 1);
    execution.run(MODES[0], &RunLimits::default(), |_| Ok(false)).unwrap();
    let stats = execution.stats().unwrap();
    assert_eq!((stats.signals_sent, stats.signals_undelivered), (2, 1));
    assert_eq!(states(&mut execution)[&2], 1.0);
}

#[test]
fn figures_say_how_often_caches_helped() {
    let graph = random_graph(500, 4, 1);
    let resources = resources(2);
    let program = Distances { source: 0, delivery: Delivery::Combined };
    let options = ExecutionOptions::default();
    let mut execution = start(program, &graph, ("lru:40", 4), &resources, &options);
    execution.run(MODES[0], &RunLimits::default(), |_| Ok(false)).unwrap();
    let stats = execution.stats().unwrap();
    let [cache] = stats.caches[..] else { panic!("{stats:?}") };
    assert!(cache.hits > 0 && cache.misses > 0 && cache.hit_ratio() < 1.0, "{cache:?}");
    assert!(stats.store_memory_bytes > 0);
}

/// A signal that must not be serialized.
#[derive(Clone)]
struct Unwritten(u64);

impl Field for Unwritten {
    fn write(&self, _: &mut Vec<u8>) {
        panic!("a signal was serialized");
    }
    fn read(_: &mut &[u8]) -> Option<Self> {
        None
    }
}

/// Every vertex counts its edges once, and signals to each target once.
struct Counts;

impl VertexProgram for Counts {
    type Id = u64;
    type State = u64;
    type Edge = f64;
    type Signal = Unwritten;

    fn delivery(&self) -> Delivery {
        Delivery::Combined
    }
    fn combine(&self, waiting: &mut Unwritten, signal: Unwritten) -> Result<(), Failure> {
        waiting.0 += signal.0;
        Ok(())
    }
    fn initial(&self, _: &u64, _: &Edges<u64, f64>) -> Result<u64, Failure> {
        Ok(0)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, u64, f64>,
    ) -> Result<Option<Unwritten>, Failure> {
        Ok((source.state == 0).then_some(Unwritten(1)))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[Unwritten],
    ) -> Result<(), Failure> {
        vertex.state += signals.iter().map(|signal| signal.0).sum::<u64>();
        Ok(())
    }
}

#[test]
fn signals_that_combine_in_memory_are_never_serialized() {
    let graph = random_graph(3000, 6, 5);
    let mut expected: BTreeMap<u64, u64> = graph.iter().map(|(id, _)| (*id, 0)).collect();
    for (target, _) in graph.iter().flat_map(|(_, edges)| edges) {
        *expected.get_mut(target).unwrap() += 1;
    }
    for workers in [1, 2, 3] {
        let resources = resources(workers);
        let options = ExecutionOptions::default();
        let mut execution = start(Counts, &graph, ("memory", 4), &resources, &options);
        execution.superstep().unwrap();
        let stats = execution.stats().unwrap();
        assert_eq!(stats.signals_sent, stats.signals_received, "{stats:?}");
        assert!(states(&mut execution) == expected, "{workers} workers");
    }
}
