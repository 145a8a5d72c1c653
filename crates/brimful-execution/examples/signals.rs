//! Counts of signals with and without supersteps, by both schedules, with the same result; prints
//! one JSON object.
//!
//! `signals GRAPH THREADS`: Signal/Collect's PageRank (a vertex stores the latest signal of each
//! edge, and signals when its score has changed by more than 10^-5), on live vertices.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the terminal")]

use std::path::Path;
use std::sync::Arc;

use brimful_execution::from_graph::{StoreOptions, start};
use brimful_execution::{
    Delivery, ExecutionOptions, Failure, Partitioning, RunLimits, RunMode, Scheduler, VertexOf,
    VertexProgram,
};
use brimful_graph::Graph;
use brimful_store::{Budget, Job, Resources};
use brimful_vertices::serializer::Compact;
use brimful_vertices::{Edge, Edges, Loan, Schemes};

struct Ranks;

impl VertexProgram for Ranks {
    type Id = u64;
    type State = f64;
    type Edge = f64;
    type Signal = f64;

    fn delivery(&self) -> Delivery {
        Delivery::LatestPerEdge
    }
    fn initial(&self, _: &u64, _: &Edges<u64, f64>) -> Result<f64, Failure> {
        Ok(0.15)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, u64, f64>,
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

/// Runs in a mode; returns signals, seconds and the sum of all states.
fn measure(graph: &Graph, mode: RunMode, resources: &Resources) -> (u64, f64, f64) {
    let schemes = Schemes::default();
    let stores = StoreOptions {
        store: "memory",
        schemes: &schemes,
        cache: None,
        partitioning: Partitioning::default(),
        kept: None,
    };
    let options = ExecutionOptions { signal_threshold: Some(1e-5), ..ExecutionOptions::default() };
    let serializer = || Ok(Box::new(Compact) as _);
    let mut execution =
        start(Ranks, (graph, false), (&stores, &options), &serializer, None, resources).unwrap();
    execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap();
    let stats = execution.stats().unwrap();
    let mut sum = 0.0;
    let mut add = |vertex: &mut Loan<'_, VertexOf<Ranks>>| {
        sum += vertex.state;
        Ok(())
    };
    execution.for_each(&mut add).unwrap();
    (stats.signals_sent, stats.seconds, sum)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments[1].parse().unwrap();
    let resources =
        Resources::new(Budget::new(1 << 40, 0), Arc::new(Job::new()), Some(threads)).unwrap();
    let graph = Graph::open(Path::new(&arguments[0]), resources.job.traffic()).unwrap();
    let modes = [
        ("sync", RunMode::Synchronous),
        ("throughput", RunMode::Asynchronous(Scheduler::Throughput)),
        ("latency", RunMode::Asynchronous(Scheduler::LowLatency)),
    ];
    let fields = modes.map(|(name, mode)| {
        let (signals, seconds, sum) = measure(&graph, mode, &resources);
        format!(
            "\"{name}_signals\": {signals}, \"{name}_seconds\": {seconds:.4}, \
             \"{name}_sum\": {sum:.3}"
        )
    });
    println!("{{{}}}", fields.join(", "));
}
