//! Programs and graphs for the tests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use brimful_execution::{
    Delivery, Execution, ExecutionOptions, Failure, Loading, Partitioner, RunMode, Scheduler,
    VertexOf, VertexProgram,
};
use brimful_store::{Budget, Job, Resources};
use brimful_vertices::cache::Choice;
use brimful_vertices::serializer::Compact;
use brimful_vertices::{
    BytesStore, CacheMemory, Edge, Edges, Field, Loan, MemoryStore, Serialized, VertexStore,
};

pub(crate) const MODES: [RunMode; 3] = [
    RunMode::Synchronous,
    RunMode::Asynchronous(Scheduler::Throughput),
    RunMode::Asynchronous(Scheduler::LowLatency),
];

/// Shortest paths from a vertex, as in the thesis, with a combiner that keeps only the least
/// distance.
#[derive(Clone)]
pub(crate) struct Distances {
    pub(crate) source: u64,
    pub(crate) delivery: Delivery,
}

impl VertexProgram for Distances {
    type Id = u64;
    type State = f64;
    type Edge = f64;
    type Signal = f64;

    fn delivery(&self) -> Delivery {
        self.delivery
    }
    fn combine(&self, waiting: &mut f64, signal: f64) -> Result<(), Failure> {
        *waiting = waiting.min(signal);
        Ok(())
    }
    fn initial(&self, id: &u64, _: &Edges<u64, f64>) -> Result<f64, Failure> {
        Ok(if *id == self.source { 0.0 } else { f64::INFINITY })
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, u64, f64>,
    ) -> Result<Option<f64>, Failure> {
        Ok(source.state.is_finite().then(|| source.state + edge.data))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[f64],
    ) -> Result<(), Failure> {
        let least = signals.iter().fold(vertex.state, |least, signal| least.min(*signal));
        if least < vertex.state {
            vertex.state = least;
        }
        Ok(())
    }
    fn signal_score(&self, vertex: &VertexOf<Self>) -> Result<f64, Failure> {
        // Near vertices first: their distances are more likely to be final.
        Ok(match vertex.signalled == Some(vertex.state) {
            true => 0.0,
            false => 1.0 + 1.0 / (1.0 + vertex.state),
        })
    }
}

/// Signal/Collect's PageRank: a vertex stores the latest signal of each edge, and its score is the
/// change.
pub(crate) struct Ranks;

impl VertexProgram for Ranks {
    type Id = String;
    type State = f64;
    type Edge = ();
    type Signal = f64;

    fn delivery(&self) -> Delivery {
        Delivery::LatestPerEdge
    }
    fn initial(&self, _: &String, _: &Edges<String, ()>) -> Result<f64, Failure> {
        Ok(0.15)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, String, ()>,
    ) -> Result<Option<f64>, Failure> {
        Ok(Some(source.state / source.edges().len() as f64))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[f64],
    ) -> Result<(), Failure> {
        vertex.state = 0.15 + 0.85 * signals.iter().sum::<f64>();
        Ok(())
    }
    fn signal_score(&self, vertex: &VertexOf<Self>) -> Result<f64, Failure> {
        Ok(vertex.signalled.map_or(f64::INFINITY, |signalled| (vertex.state - signalled).abs()))
    }
}

pub(crate) fn resources(workers: usize) -> Resources {
    Resources::new(Budget::new(1 << 28, 0), Arc::new(Job::new()), Some(workers)).unwrap()
}

pub(crate) type AnyStore<P> = Box<dyn VertexStore<VertexOf<P>>>;

/// A store of each kind.
pub(crate) fn store<P>(kind: &str, resources: &Resources) -> AnyStore<P>
where
    P: VertexProgram<State: Field, Edge: Field> + 'static,
{
    match kind {
        "memory" => Box::new(MemoryStore::new(&resources.budget).unwrap()),
        "bytes" => Box::new(Serialized::new(BytesStore::new(&resources.budget).unwrap(), Compact)),
        cache => {
            let cache: Choice = cache.parse().unwrap();
            let memory =
                CacheMemory { budget: &resources.budget, partitions: 1, is_of_store: true };
            cache.over(store::<P>("bytes", resources), None, memory).unwrap()
        }
    }
}

pub(crate) const STORES: [&str; 3] = ["memory", "bytes", "lru:40"];

/// A vertex with its targets and edge data.
pub(crate) type Assembled<I, E> = (I, Vec<(I, E)>);

/// An execution on `partitions` stores of a kind.
pub(crate) fn start<'r, P>(
    program: P,
    vertices: &[Assembled<P::Id, P::Edge>],
    (kind, partitions): (&str, usize),
    resources: &'r Resources,
    options: &ExecutionOptions,
) -> Execution<'r, P, AnyStore<P>>
where
    P: VertexProgram<State: Field, Edge: Field> + 'static,
{
    let stores = (0..partitions).map(|_| store::<P>(kind, resources)).collect();
    let mut loading = Loading::new(program, Partitioner::Hash, stores, resources).unwrap();
    for (id, edges) in vertices {
        loading.add(id.clone(), edges.iter().cloned().collect()).unwrap();
    }
    Execution::start(loading, options).unwrap()
}

/// The states by id.
pub(crate) fn states<P: VertexProgram<Id: Ord>>(
    execution: &mut Execution<'_, P, AnyStore<P>>,
) -> BTreeMap<P::Id, P::State> {
    let mut states = BTreeMap::new();
    let each = &mut |vertex: &mut Loan<'_, VertexOf<P>>| {
        assert!(states.insert(vertex.id().clone(), vertex.state.clone()).is_none());
        Ok(())
    };
    execution.for_each(each).unwrap();
    states
}

/// Vertices 0 to `count` - 1 with edges drawn from a seed, and integer weights.
pub(crate) fn random_graph(count: u64, degree: u64, seed: u64) -> Vec<(u64, Vec<(u64, f64)>)> {
    let mut random = seed;
    let mut draw = move |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let vertex = |id| {
        // Unordered, some with the same target.
        let targets = (0..draw(2 * degree + 1)).map(|_| (draw(count), (1 + draw(20)) as f64));
        (id, targets.collect())
    };
    (0..count).map(vertex).collect()
}

/// Least distances, by relaxing all edges as often as there are vertices (Bellman and Ford).
pub(crate) fn distances(graph: &[(u64, Vec<(u64, f64)>)], source: u64) -> BTreeMap<u64, f64> {
    let mut distances: BTreeMap<u64, f64> =
        graph.iter().map(|(id, _)| (*id, f64::INFINITY)).collect();
    distances.insert(source, 0.0);
    loop {
        let before = distances.clone();
        for (id, edges) in graph {
            for (target, weight) in edges {
                let through = distances[id] + weight;
                if through < distances[target] {
                    distances.insert(*target, through);
                }
            }
        }
        if distances == before {
            return distances;
        }
    }
}

pub(crate) fn assert_near<K: Debug + Ord>(
    found: &BTreeMap<K, f64>,
    expected: &BTreeMap<K, f64>,
    tolerance: f64,
) {
    assert!(found.keys().eq(expected.keys()));
    for (id, value) in found {
        let wanted = expected[id];
        assert!(
            (value - wanted).abs() <= tolerance * wanted.abs(),
            "{id:?}: {value}, expected {wanted}"
        );
    }
}
