//! The benchmark of GIRAPH-417: vertices as objects, compared with vertices as bytes; prints one
//! JSON object.
//!
//! `giraph LAYOUT VERTICES EDGES combined|each [SUPERSTEPS]`. As in Giraph's `PageRankBenchmark`, a
//! vertex has a 64-bit id, a 64-bit float and EDGES edges to random vertices, each with a 32-bit
//! float; there is one in each of as many ranges of ids, so that they ascend as those of a graph.
//! Messages are 64-bit floats and go through mailboxes as bytes in all layouts, combined on arrival
//! or separate. Layouts: `boxed` (an object for every id, number and edge, as on the JVM; loaded
//! only), `objects` (live vertices of Rust), `native` and `compact` (bytes, by the two
//! serializers). Drawing edges is part of loading, as in Giraph, and is also measured separately.
//! One thread.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use brimful_execution::{
    Delivery, Execution, ExecutionOptions, Failure, Loading, Partitioner, RunLimits, RunMode,
    VertexOf, VertexProgram,
};
use brimful_store::{Budget, Job, Resources, memory};
use brimful_vertices::serializer::{Compact, Native};
use brimful_vertices::{BytesStore, Edge, Edges, Loan, MemoryStore, Serialized, VertexStore};

/// Giraph's PageRank without dangling vertices: every vertex takes part in every superstep.
struct Ranks {
    vertices: u64,
    delivery: Delivery,
}

impl VertexProgram for Ranks {
    type Id = u64;
    type State = f64;
    type Edge = f32;
    type Signal = f64;

    fn delivery(&self) -> Delivery {
        self.delivery
    }
    fn combine(&self, waiting: &mut f64, signal: f64) -> Result<(), Failure> {
        *waiting += signal;
        Ok(())
    }
    fn is_full(&self) -> bool {
        true
    }
    fn initial(&self, _: &u64, _: &Edges<u64, f32>) -> Result<f64, Failure> {
        Ok(1.0 / self.vertices as f64)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, u64, f32>,
    ) -> Result<Option<f64>, Failure> {
        Ok(Some(source.state / source.edges().len() as f64))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[f64],
    ) -> Result<(), Failure> {
        vertex.state = 0.15 / self.vertices as f64 + 0.85 * signals.iter().sum::<f64>();
        Ok(())
    }
}

/// A vertex with an object for each part, as in `EdgeListVertex`.
#[allow(clippy::vec_box, dead_code, reason = "one object for each edge is what is measured")]
struct Boxed {
    id: Box<u64>,
    value: Box<f64>,
    edges: Vec<Box<(Box<u64>, Box<f32>)>>,
}

/// The edges of vertex `id`, drawn by SplitMix64 with a seed from the id.
fn edges(id: u64, vertices: u64, count: u64) -> impl Iterator<Item = (u64, f32)> {
    let mut seed = id.wrapping_mul(0xD134_2543_DE82_EF95);
    (0..count).map(move |edge| {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bits = z ^ z >> 31;
        let (first, end) = (edge * vertices / count, (edge + 1) * vertices / count);
        let target = first + ((u128::from(bits) * u128::from(end - first)) >> 64) as u64;
        (target, (bits & 0xFFFF) as f32)
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<u64>().unwrap();
    let (vertices, degree) = (number(1), number(2));
    let delivery = match arguments[3].as_str() {
        "combined" => Delivery::Combined,
        "each" => Delivery::Each,
        other => panic!("{other:?} is neither combined nor each"),
    };
    let supersteps = arguments.get(4).map_or(3, |text| text.parse().unwrap());
    let begin = Instant::now();
    let drawn: u64 =
        (0..vertices).flat_map(|id| edges(id, vertices, degree)).map(|(target, _)| target).sum();
    std::hint::black_box(drawn);
    let drawing = begin.elapsed().as_secs_f64();

    let resources = Resources::new(Budget::new(1 << 40, 0), Arc::new(Job::new()), Some(1)).unwrap();
    let program = Ranks { vertices, delivery };
    let budget = &resources.budget;
    let before = memory::resident_bytes().unwrap();
    let figures = match arguments[0].as_str() {
        "boxed" => {
            let begin = Instant::now();
            let boxed = |id: u64| Boxed {
                id: Box::new(id),
                value: Box::new(1.0 / vertices as f64),
                edges: edges(id, vertices, degree)
                    .map(|(target, value)| Box::new((Box::new(target), Box::new(value))))
                    .collect(),
            };
            let map: HashMap<u64, Boxed> = (0..vertices).map(|id| (id, boxed(id))).collect();
            let loading = begin.elapsed().as_secs_f64();
            let bytes = memory::resident_bytes().unwrap() - before;
            std::hint::black_box(map.len());
            format!("\"load_seconds\": {loading:.4}, \"bytes_per_vertex\": {}", bytes / vertices)
        }
        "objects" => {
            measure(program, MemoryStore::new(budget).unwrap(), degree, supersteps, &resources)
        }
        "native" => {
            let store = Serialized::new(BytesStore::new(budget).unwrap(), Native);
            measure(program, store, degree, supersteps, &resources)
        }
        "compact" => {
            let store = Serialized::new(BytesStore::new(budget).unwrap(), Compact);
            measure(program, store, degree, supersteps, &resources)
        }
        other => panic!("{other:?} is not a layout: boxed, objects, native or compact"),
    };
    let peak = memory::peak_resident_bytes().unwrap();
    println!(
        "{{\"vertices\": {vertices}, \"draw_seconds\": {drawing:.4}, {figures}, \
         \"peak_rss_bytes\": {peak}}}"
    );
}

/// Loads and runs; returns the figures as fields of JSON.
fn measure<S: VertexStore<VertexOf<Ranks>>>(
    program: Ranks,
    store: S,
    degree: u64,
    supersteps: u64,
    resources: &Resources,
) -> String {
    let vertices = program.vertices;
    let begin = Instant::now();
    let mut loading = Loading::new(program, Partitioner::Hash, vec![store], resources).unwrap();
    for id in 0..vertices {
        loading.add(id, edges(id, vertices, degree).collect()).unwrap();
    }
    let mut execution = Execution::start(loading, &ExecutionOptions::default()).unwrap();
    let loaded = begin.elapsed().as_secs_f64();
    let bytes = execution.stats().unwrap().store_memory_bytes / vertices;

    let begin = Instant::now();
    let limits = RunLimits { max_supersteps: supersteps, ..RunLimits::default() };
    execution.run(RunMode::Synchronous, &limits, |_| Ok(false)).unwrap();
    let superstep = begin.elapsed().as_secs_f64() / supersteps as f64;
    let stats = execution.stats().unwrap();
    assert_eq!(stats.signals_sent, vertices * degree * supersteps, "signals sent");
    let (mut sum, mut count) = (0.0, 0_u64);
    execution
        .for_each(&mut |vertex| {
            sum += vertex.state;
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, vertices, "vertices");
    assert!((sum - 1.0).abs() < 1e-6, "scores sum to {sum}");
    format!(
        "\"load_seconds\": {loaded:.4}, \"bytes_per_vertex\": {bytes}, \
         \"superstep_seconds\": {superstep:.4}, \"messages\": {}, \"combined\": {}, \
         \"spilled_bytes\": {}",
        stats.signals_sent, stats.signals_combined, stats.spilled_bytes
    )
}
