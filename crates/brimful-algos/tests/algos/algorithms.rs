//! Algorithms compared with different algorithms: dense arithmetic for PageRank, union-find for
//! components; and the same bits at any budget, thread count and geometry.

use std::path::Path;
use std::sync::Arc;

use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::hits::HubsAndAuthorities;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_engine::result::table::{Column, Value};
use brimful_engine::{Isolated, Output, Program, Reason, RunOptions, run};
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, import};
use brimful_graph::edges::{EdgeBatch, EdgeSource};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::read::external_order::ExternalOrder;
use brimful_graph::read::shards::Geometry;
use brimful_graph::read::verify;
use brimful_store::ErrorKind;

use crate::{resources, smallest, threads};

const SMALL: Geometry =
    Geometry { interval_bits: 4, window_edges: 50, segment_edges: 16, unit_bytes: 200 };

/// Edges of a generator, in memory.
fn edges_of(source: &dyn EdgeSource) -> Vec<(usize, usize)> {
    let (mut batch, mut out) = (EdgeBatch::default(), Vec::new());
    for part in 0..source.parts() {
        source.read_part(part, &mut batch).unwrap();
        out.extend(
            batch.sources.iter().zip(&batch.targets).map(|(&s, &t)| (s as usize, t as usize)),
        );
    }
    out
}

fn graph(folder: &Path, kind: Kind, undirected: bool) -> (Graph, Vec<(usize, usize)>) {
    let generator = Generator::new(kind, 9).unwrap();
    let options = ImportOptions { geometry: SMALL, undirected, ..Default::default() };
    let out = folder.join("g.brimful");
    let resources = resources(2, 1 << 28);
    import(Input::Numbered(&generator, generator.vertices()), &out, &options, &resources).unwrap();
    (Graph::open(&out, resources.job.traffic()).unwrap(), edges_of(&generator))
}

fn options(max_supersteps: u64) -> RunOptions {
    RunOptions { max_supersteps, ..Default::default() }
}

/// States of the vertices with edges, in internal order.
fn raw_states<P: Program>(output: &Output<P>) -> Vec<P::State> {
    let mut out = bytemuck::zeroed_vec(output.states.len());
    output.states.read(0, &mut out).unwrap();
    out
}

/// States of all vertices by external id; `own` gives the state of an isolated vertex if they
/// differ.
fn states<P: Program>(
    graph: &Graph,
    output: &Output<P>,
    own: impl Fn(u64) -> P::State,
) -> Vec<P::State> {
    let raw = raw_states::<P>(output);
    assert_eq!(raw.len() as u64, graph.connected());
    let (mut vertices, mut ids) = (Vec::new(), Vec::new());
    ExternalOrder::new(graph).next_batch(usize::MAX, &mut vertices, &mut ids).unwrap();
    assert!(ids.iter().copied().eq(0..graph.vertices()));
    let state = |(vertex, id): (u64, u64)| match (raw.get(vertex as usize), output.isolated) {
        (Some(state), _) => *state,
        (None, Isolated::Same(state)) => state,
        (None, Isolated::Initial) => own(id),
    };
    vertices.into_iter().zip(ids).map(state).collect()
}

fn scores<P: Program<State = f64>>(graph: &Graph, output: &Output<P>) -> Vec<f64> {
    states::<P>(graph, output, |_| f64::NAN)
}

/// PageRank, computed from its definition.
fn reference(
    n: usize,
    edges: &[(usize, usize)],
    variant: Variant,
    damping: f64,
    supersteps: u64,
) -> Vec<f64> {
    let mut degree = vec![0.0; n];
    edges.iter().for_each(|&(s, _)| degree[s] += 1.0);
    let unit = if variant == Variant::Normalized { 1.0 / n as f64 } else { 1.0 };
    let mut rank = vec![if variant == Variant::Normalized { unit } else { 1.0 - damping }; n];
    for _ in 0..supersteps {
        let sinks: f64 = (0..n).filter(|&v| degree[v] == 0.0).map(|v| rank[v]).sum();
        let spread = if variant == Variant::Normalized { damping * sinks * unit } else { 0.0 };
        let mut next = vec![(1.0 - damping) * unit + spread; n];
        edges.iter().for_each(|&(s, t)| next[t] += damping * rank[s] / degree[s]);
        rank = next;
    }
    rank
}

fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64) {
    for (vertex, (a, b)) in found.iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs(), "vertex {vertex}: found {a}, expected {b}");
    }
}

#[test]
fn pagerank_agrees_with_its_definition() {
    for kind in [
        Kind::Rmat { scale: 8, edge_factor: 5 },
        Kind::Chain { vertices: 50 },
        Kind::Star { vertices: 40 },
    ] {
        for variant in [Variant::Normalized, Variant::Unnormalized] {
            let folder = tempfile::tempdir().unwrap();
            let (graph, edges) = graph(folder.path(), kind, false);
            let n = graph.vertices() as usize;
            let wanted = reference(n, &edges, variant, 0.85, 12);
            let resources = resources(2, 1 << 28);
            let program = PageRank::<f64>::new(variant, 0.85, 0.0).unwrap();
            let output = run(&program, &graph, &options(12), &resources).unwrap();
            assert_eq!((output.stats.supersteps, output.stats.reason), (12, Reason::MaxSupersteps));
            assert_eq!(output.stats.signals, 12 * edges.len() as u64);
            assert_close(&scores::<PageRank<f64>>(&graph, &output), &wanted, 1e-12);
            let program = PageRank::<f32>::new(variant, 0.85, 0.0).unwrap();
            let output = run(&program, &graph, &options(12), &resources).unwrap();
            assert_close(&scores::<PageRank<f32>>(&graph, &output), &wanted, 1e-6);
        }
    }
}

#[test]
fn pagerank_of_the_known_cases() {
    let ranks = |kind, undirected| {
        let folder = tempfile::tempdir().unwrap();
        let (graph, _) = graph(folder.path(), kind, undirected);
        let program = PageRank::<f64>::new(Variant::Unnormalized, 0.85, 1e-12).unwrap();
        let output = run(&program, &graph, &options(1000), &resources(2, 1 << 28)).unwrap();
        assert_eq!(output.stats.reason, Reason::Converged);
        scores::<PageRank<f64>>(&graph, &output)
    };
    assert_close(&ranks(Kind::Ring { vertices: 5 }, false), &[1.0; 5], 1e-9);
    assert_close(&ranks(Kind::Star { vertices: 5 }, false), &[0.66, 0.15, 0.15, 0.15, 0.15], 1e-9);
    assert_close(&ranks(Kind::Grid { rows: 2, columns: 2, torus: false }, true), &[1.0; 4], 1e-9);
    assert_close(&ranks(Kind::Grid { rows: 5, columns: 5, torus: true }, true), &[1.0; 25], 1e-9);
    assert_close(
        &ranks(Kind::Chain { vertices: 3 }, true),
        &[0.770_270_3, 1.459_459_5, 0.770_270_3],
        1e-6,
    );
}

/// Smallest vertex of each component, by union-find.
fn components(n: usize, edges: &[(usize, usize)]) -> Vec<u32> {
    fn root(parent: &mut [usize], mut v: usize) -> usize {
        while parent[v] != v {
            parent[v] = parent[parent[v]];
            v = parent[v];
        }
        v
    }
    let mut parent: Vec<usize> = (0..n).collect();
    for &(s, t) in edges {
        let (a, b) = (root(&mut parent, s), root(&mut parent, t));
        parent[a.max(b)] = a.min(b);
    }
    (0..n).map(|v| root(&mut parent, v) as u32).collect()
}

#[test]
fn components_agree_with_union_find() {
    let kinds = [
        (Kind::Rmat { scale: 9, edge_factor: 1 }, false),
        (Kind::Rmat { scale: 9, edge_factor: 1 }, true),
        (Kind::Chain { vertices: 70 }, false),
        (Kind::Star { vertices: 70 }, false),
    ];
    for (kind, undirected) in kinds {
        let folder = tempfile::tempdir().unwrap();
        let (graph, edges) = graph(folder.path(), kind, undirected);
        let output = run(
            &ConnectedComponents::<u32>::new(),
            &graph,
            &options(u64::MAX),
            &resources(2, 1 << 28),
        )
        .unwrap();
        assert_eq!(
            states::<ConnectedComponents<u32>>(&graph, &output, |id| id as u32),
            components(graph.vertices() as usize, &edges)
        );
        assert_eq!(output.stats.reason, Reason::NoChange);
        assert_eq!(output.stats.index_seconds > 0.0, !undirected);
    }
}

#[test]
fn results_are_the_same_bits_at_any_budget_and_thread_count() {
    let folder = tempfile::tempdir().unwrap();
    // Shards of many windows and segments, and intervals without edges.
    let (graph, _) = graph(folder.path(), Kind::Rmat { scale: 8, edge_factor: 40 }, false);
    let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 1e-9).unwrap();
    let narrow = PageRank::<f32>::new(Variant::Normalized, 0.85, 1e-9).unwrap();
    let personal = program.clone().from_sources(graph.find(3).unwrap().into(), &graph);
    let hits = HubsAndAuthorities::new(0.0).unwrap();
    let labels = ConnectedComponents::<u32>::new();
    brimful_graph::build::import::build_reverse(&graph, &resources(2, 1 << 28)).unwrap();
    let graph = Graph::open(graph.path(), resources(2, 1 << 28).job.traffic()).unwrap();
    let all = |threads, budget: u64| {
        let resources = resources(threads, budget);
        let scores = run(&program, &graph, &options(30), &resources).unwrap();
        let rough = run(&narrow, &graph, &options(30), &resources).unwrap();
        let personal = run(&personal, &graph, &options(30), &resources).unwrap();
        let scores =
            raw_states::<PageRank<f64>>(&scores).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let rough =
            raw_states::<PageRank<f32>>(&rough).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let personal = raw_states::<PageRank<f64>>(&personal)
            .into_iter()
            .map(f64::to_bits)
            .collect::<Vec<_>>();
        (scores, rough, personal)
    };
    let hubs = |threads, budget: u64| {
        let output = run(&hits, &graph, &options(15), &resources(threads, budget))?;
        let states = raw_states::<HubsAndAuthorities>(&output);
        Ok::<_, brimful_engine::Error>(bytemuck::cast_slice::<_, u64>(&states).to_vec())
    };
    let wanted = all(1, 1 << 28);
    let wanted_hubs = hubs(1, 1 << 28).unwrap();
    for threads in threads(1..=4) {
        let needed =
            smallest(|budget| run(&program, &graph, &options(1), &resources(threads, budget)));
        for budget in [needed, needed + 700, needed + 5000, needed + 20_000, 1 << 28] {
            assert!(all(threads, budget) == wanted, "{threads} threads, {budget} bytes");
        }
        let needed = smallest(|budget| hubs(threads, budget));
        for budget in [needed, needed + 5000, 1 << 28] {
            assert!(
                hubs(threads, budget).unwrap() == wanted_hubs,
                "{threads} threads, {budget} bytes"
            );
        }
    }
    let resources = resources(2, 1 << 28);
    let wanted = raw_states::<ConnectedComponents<u32>>(
        &run(&labels, &graph, &options(99), &resources).unwrap(),
    );
    let graph = Graph::open(graph.path(), resources.job.traffic()).unwrap();
    for threads in threads(1..=4) {
        let needed = smallest(|budget| {
            run(&labels, &graph, &options(1), &crate::resources(threads, budget))
        });
        let output =
            run(&labels, &graph, &options(99), &crate::resources(threads, needed)).unwrap();
        assert_eq!(raw_states::<ConnectedComponents<u32>>(&output), wanted);
    }
}

#[test]
fn results_come_in_external_order_in_the_smallest_budget_and_cover_isolated_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, edges) = graph(folder.path(), Kind::Rmat { scale: 11, edge_factor: 12 }, false);
    let graph = Arc::new(graph);
    let n = graph.vertices() as usize;
    assert!(graph.connected() < graph.vertices() && graph.runs().count() > 3);
    let request = |algorithm: &str, variant: Option<&str>| Request {
        algorithm: algorithm.into(),
        parameters: variant
            .map(|v| ("variant".to_owned(), Parameter::Word(v.into())))
            .into_iter()
            .collect(),
        tolerance: variant.map(|_| 0.0),
        max_supersteps: variant.map(|_| 8),
        ..Default::default()
    };
    let pagerank = |variant: Variant| {
        let wanted = reference(n, &edges, variant, 0.85, 8);
        (request("pagerank", Some(variant.name())), wanted)
    };
    let labels = components(n, &edges).into_iter().map(f64::from).collect();
    let cases = [
        pagerank(Variant::Normalized),
        pagerank(Variant::Unnormalized),
        (request("connected_components", None), labels),
    ];
    brimful_graph::build::import::build_reverse(&graph, &resources(2, 1 << 28)).unwrap();
    for (request, wanted) in cases {
        let needed = smallest(|budget| run_request(&request, &graph, &resources(2, budget)));
        let table = run_request(&request, &graph, &resources(2, needed)).unwrap().table;
        let mut rows = table.rows();
        let mut found = Vec::new();
        while let Some((vertices, column)) = rows.next_batch(77).unwrap() {
            assert!(
                vertices.into_iter().eq(found.len() as u64..(found.len() + column.len()) as u64)
            );
            match column {
                Column::Float(values) => found.extend(values.into_iter().map(Option::unwrap)),
                Column::Ids(ids) => found.extend(ids.into_iter().map(|id| id.unwrap() as f64)),
                other => panic!("unexpected {other:?}"),
            }
        }
        assert_eq!(found.len(), n);
        assert_close(&found, &wanted, 1e-12);
        let number = |value| match value {
            Value::Float(number) => number,
            Value::Id(id) => id as f64,
            other => panic!("unexpected {other:?}"),
        };
        for (vertex, value) in (0..).zip(&found) {
            assert_eq!(number(table.value(vertex).unwrap()).to_bits(), value.to_bits());
        }
        let mut best: Vec<usize> = (0..n).collect();
        best.sort_by(|a, b| found[*b].total_cmp(&found[*a]).then(a.cmp(b)));
        for count in [0, 1, 10, n / 2, n, n + 5] {
            let top = table.top(count as u64).unwrap();
            assert!(top.iter().map(|(id, _)| *id as usize).eq(best.iter().copied().take(count)));
            assert!(top.iter().all(|(id, value)| number(*value) == found[*id as usize]));
        }
    }
}

#[test]
fn components_of_ids_far_apart_and_of_isolated_vertices_alone() {
    let import_as = |text: &str, vertices| {
        let folder = tempfile::tempdir().unwrap();
        let (input, out) = (folder.path().join("e.txt"), folder.path().join("g.brimful"));
        std::fs::write(&input, text).unwrap();
        let options = ImportOptions { vertices, ..Default::default() };
        let resources = resources(2, 1 << 28);
        import(Input::EdgeList(vec![input]), &out, &options, &resources).unwrap();
        (Arc::new(Graph::open(&out, resources.job.traffic()).unwrap()), folder)
    };
    let labels = |graph: &Arc<Graph>| {
        let request = Request { algorithm: "connected_components".into(), ..Default::default() };
        let finished = run_request(&request, graph, &resources(2, 1 << 28)).unwrap();
        let rows = finished.table.rows().next_batch(100).unwrap();
        let Some((ids, Column::Ids(labels))) = rows else { panic!("labels are ids") };
        let number = |id| graph.id_type().number(id);
        ids.into_iter()
            .map(number)
            .zip(labels.into_iter().map(|label| number(label.unwrap())))
            .collect::<Vec<_>>()
    };
    let (graph, _folder) =
        import_as("-9000000000000000000 5\n7 9000000000000000000\n8 7\n", Some(3));
    let (low, high) = (-9_000_000_000_000_000_000, 9_000_000_000_000_000_000);
    let wanted = [(low, low), (0, 0), (1, 1), (2, 2), (5, low), (7, 7), (8, 7), (high, 7)];
    assert_eq!(labels(&graph), wanted);
    let (graph, _folder) = import_as("", Some(3));
    assert_eq!(labels(&graph), [(0, 0), (1, 1), (2, 2)]);
    let request = Request { algorithm: "pagerank".into(), ..Default::default() };
    let finished = run_request(&request, &graph, &resources(2, 1 << 28)).unwrap();
    assert_eq!(finished.stats.reason, Reason::Converged);
    assert_eq!(finished.table.top(2).unwrap(), [0, 1].map(|id| (id, Value::Float(1.0 / 3.0))));
}

#[test]
fn weighted_pagerank_follows_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("e.txt");
    std::fs::write(&input, "u v w\n0 1 3\n0 2 1\n1 0 2.5\n2 0 0.1\n3 0 0\n").unwrap();
    let out = folder.path().join("g.brimful");
    let resources = resources(2, 1 << 28);
    import(Input::EdgeList(vec![input]), &out, &ImportOptions::default(), &resources).unwrap();
    let graph = Arc::new(Graph::open(&out, resources.job.traffic()).unwrap());
    for budget in [1 << 28, 1 << 23] {
        let request = Request {
            algorithm: "pagerank".into(),
            parameters: [("variant".to_owned(), Parameter::Word("unnormalized".into()))].into(),
            weighted: true,
            tolerance: Some(1e-14),
            max_supersteps: Some(500),
            ..Default::default()
        };
        let finished = run_request(&request, &graph, &crate::resources(2, budget)).unwrap();
        let rows = finished.table.rows().next_batch(4).unwrap();
        let Some((_, Column::Float(rank))) = rows else { panic!("scores are numbers") };
        let rank: Vec<f64> = rank.into_iter().map(Option::unwrap).collect();
        // Vertex 3 has only an edge of weight 0: a sink.
        assert!((rank[1] - (0.15 + 0.85 * rank[0] * 0.75)).abs() < 1e-9, "{rank:?}");
        assert!((rank[2] - (0.15 + 0.85 * rank[0] * 0.25)).abs() < 1e-9);
        assert!((rank[0] - (0.15 + 0.85 * (rank[1] + rank[2]))).abs() < 1e-9);
        assert!((rank[3] - 0.15).abs() < 1e-9);
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_before_work() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, _) = graph(folder.path(), Kind::Ring { vertices: 9 }, false);
    let graph = Arc::new(graph);
    let word = |w: &str| Parameter::Word(w.into());
    let cases = [
        ("nothing", None, "there is no algorithm \"nothing\""),
        ("pagerank", Some(("dampign", Parameter::Number(0.5))), "no parameter \"dampign\""),
        ("pagerank", Some(("damping", Parameter::Number(1.5))), "damping must be between 0 and 1"),
        ("pagerank", Some(("damping", word("x"))), "damping must be a number"),
        ("pagerank", Some(("variant", word("best"))), "variant must be normalized or unnormalized"),
    ];
    for (algorithm, parameter, message) in cases {
        let parameters = parameter.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let request = Request { algorithm: algorithm.into(), parameters, ..Default::default() };
        let error = run_request(&request, &graph, &resources(1, 1 << 28)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(message), "{error}");
    }
    let request = Request { algorithm: "pagerank".into(), weighted: true, ..Default::default() };
    let error = run_request(&request, &graph, &resources(1, 1 << 28)).unwrap_err();
    assert!(error.to_string().contains("no edge weights"), "{error}");
}

#[test]
fn a_flipped_bit_ends_a_run_with_corruption_and_never_with_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, _) = graph(folder.path(), Kind::Rmat { scale: 7, edge_factor: 8 }, false);
    let file = graph.path().join("in.shards");
    let path = graph.path().to_path_buf();
    let bytes = std::fs::read(&file).unwrap();
    let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
    let wanted = raw_states::<PageRank<f64>>(
        &run(&program, &graph, &options(2), &resources(3, 1 << 28)).unwrap(),
    );
    for at in (64..bytes.len()).step_by(97) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        std::fs::write(&file, flipped).unwrap();
        let resources = resources(3, 1 << 28);
        let opened =
            Graph::open(&path, resources.job.traffic()).map_err(brimful_engine::Error::from);
        let found = match opened.and_then(|graph| {
            let output = run(&program, &graph, &options(2), &resources)?;
            // A run does not read padding between blocks; verification does.
            assert_eq!(raw_states::<PageRank<f64>>(&output), wanted, "flip at byte {at}");
            Ok(verify::verify(&graph, &resources.job)?)
        }) {
            Ok(found) => panic!("flip at byte {at} not found: {found:?}"),
            Err(error) => error,
        };
        assert_eq!(found.kind(), ErrorKind::Corrupt, "flip at byte {at}");
    }
}

#[test]
fn cancelling_stops_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, _) = graph(folder.path(), Kind::Rmat { scale: 8, edge_factor: 8 }, false);
    let resources = resources(2, 1 << 28);
    let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
    let job = Arc::clone(&resources.job);
    let canceller = std::thread::spawn(move || {
        while !job.progress().phase.starts_with("superstep") {
            std::thread::yield_now();
        }
        job.cancel();
    });
    let result = run(&program, &graph, &options(u64::MAX), &resources);
    canceller.join().unwrap();
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Interrupted);
}

#[test]
fn components_are_the_same_by_union_find_and_by_propagation() {
    let kinds = [
        (Kind::Rmat { scale: 10, edge_factor: 2 }, false),
        (Kind::Rmat { scale: 9, edge_factor: 1 }, true),
        (Kind::Chain { vertices: 500 }, false),
        (Kind::Star { vertices: 70 }, false),
    ];
    for (kind, undirected) in kinds {
        let folder = tempfile::tempdir().unwrap();
        let (graph, edges) = graph(folder.path(), kind, undirected);
        let graph = Arc::new(graph);
        let wanted = components(graph.vertices() as usize, &edges);
        for method in ["auto", "union_find", "propagation"] {
            for threads in threads(1..=4) {
                let parameters = [("method".to_owned(), Parameter::Word(method.into()))].into();
                let request = Request {
                    algorithm: "connected_components".into(),
                    parameters,
                    ..Default::default()
                };
                let finished = run_request(&request, &graph, &resources(threads, 1 << 28)).unwrap();
                assert_eq!(finished.variant == "propagation", method == "propagation");
                let rows = finished.table.rows().next_batch(usize::MAX).unwrap();
                let Some((_, Column::Ids(labels))) = rows else { panic!("labels are ids") };
                let labels = labels.into_iter().map(|label| label.unwrap() as u32);
                assert!(labels.eq(wanted.iter().copied()), "{method}, {threads} threads");
            }
        }
        // If the arrays of union-find do not fit, the smallest budget is that of propagation.
        let request = Request { algorithm: "connected_components".into(), ..Default::default() };
        let needed = smallest(|budget| run_request(&request, &graph, &resources(2, budget)));
        assert!(run_request(&request, &graph, &resources(2, needed)).is_ok());
    }
}
