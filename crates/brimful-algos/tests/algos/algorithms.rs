//! Algorithms compared with different algorithms: dense arithmetic for PageRank, union-find for
//! components.

use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_engine::result::table::{Column, Value};
use brimful_engine::{Isolated, Output, Program, Reason, RunOptions, run};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_graph::read::external_order::ExternalOrder;

use crate::{TINY, edges, generated, resources, reversed, smallest, threads};

fn options(max_supersteps: u64) -> RunOptions {
    RunOptions { max_supersteps, ..Default::default() }
}

/// A request with at most `max_supersteps`; ranks in this variant, without a tolerance.
fn request(algorithm: &str, variant: Option<Variant>, max_supersteps: u64) -> Request {
    let word = |variant: Variant| ("variant".to_owned(), Parameter::Word(variant.name().into()));
    Request {
        algorithm: algorithm.into(),
        parameters: variant.map(word).into_iter().collect(),
        tolerance: variant.map(|_| 0.0),
        max_supersteps: Some(max_supersteps),
        ..Default::default()
    }
}

/// States of all vertices by external id; `own` gives the state of an isolated vertex if they
/// differ.
fn states<P: Program>(
    graph: &Graph,
    output: &Output<P>,
    own: impl Fn(u64) -> P::State,
) -> Vec<P::State> {
    let (raw, connected) = (crate::states::<P>(output), graph.connected());
    let (mut vertices, mut ids) = (Vec::new(), Vec::new());
    ExternalOrder::new(graph).next_batch(usize::MAX, &mut vertices, &mut ids).unwrap();
    assert!(ids.iter().copied().eq(0..graph.vertices()));
    let state = |(vertex, id): (u64, u64)| match output.isolated {
        Isolated::Initial if vertex >= connected => own(id),
        _ => raw[vertex.min(connected) as usize],
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
            let (graph, edges) = (generated(folder.path(), kind, TINY, false), edges(kind));
            let n = graph.vertices() as usize;
            let wanted = reference(n, &edges, variant, 0.85, 12);
            let resources = resources(2, 1 << 28);
            let program = PageRank::<f64>::new(variant, 0.85, 0.0).unwrap();
            let output = run(&program, &graph, &options(12), &resources).unwrap();
            assert_eq!((output.stats.supersteps, output.stats.reason), (12, Reason::MaxSupersteps));
            assert_eq!(output.stats.signals, 12 * edges.len() as u64);
            assert_close(&scores::<PageRank<f64>>(&graph, &output), &wanted, 1e-12);
            let request = Request { narrow: true, ..request("pagerank", Some(variant), 12) };
            let table = run_request(&request, &graph, &resources).unwrap().table;
            let (_, column) = table.rows().next_batch(usize::MAX).unwrap().unwrap();
            let Column::Float(found) = column else { panic!("scores are numbers") };
            let found: Vec<f64> = found.into_iter().map(Option::unwrap).collect();
            assert_close(&found, &wanted, 1e-6);
        }
    }
}

/// Smallest vertex of each component, by union-find.
fn components(n: usize, edges: &[(usize, usize)]) -> Vec<u64> {
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
    (0..n).map(|v| root(&mut parent, v) as u64).collect()
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
        let (graph, edges) = (generated(folder.path(), kind, TINY, undirected), edges(kind));
        let output = run(
            &ConnectedComponents::<u64>::new(),
            &graph,
            &options(u64::MAX),
            &resources(2, 1 << 28),
        )
        .unwrap();
        assert_eq!(
            states::<ConnectedComponents<u64>>(&graph, &output, |id| id),
            components(graph.vertices() as usize, &edges)
        );
        assert_eq!(output.stats.reason, Reason::NoChange);
        assert_eq!(output.stats.index_seconds > 0.0, !undirected);
    }
}

#[test]
fn results_come_in_external_order_in_the_smallest_budget_and_cover_isolated_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let kind = Kind::Rmat { scale: 11, edge_factor: 12 };
    let (graph, edges) = (reversed(folder.path(), kind, TINY, false), edges(kind));
    let n = graph.vertices() as usize;
    assert!(graph.connected() < graph.vertices() && graph.runs().count() > 3);
    let pagerank = |variant: Variant| {
        let wanted = reference(n, &edges, variant, 0.85, 8);
        (request("pagerank", Some(variant), 8), wanted)
    };
    let labels = components(n, &edges).into_iter().map(|label| label as f64).collect();
    let cases = [
        pagerank(Variant::Normalized),
        pagerank(Variant::Unnormalized),
        (request("connected_components", None, u64::MAX), labels),
    ];
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
fn components_are_the_same_by_union_find_and_by_propagation() {
    let kinds = [
        (Kind::Rmat { scale: 10, edge_factor: 2 }, false),
        (Kind::Rmat { scale: 9, edge_factor: 1 }, true),
        (Kind::Chain { vertices: 500 }, false),
        (Kind::Star { vertices: 70 }, false),
    ];
    for (kind, undirected) in kinds {
        let folder = tempfile::tempdir().unwrap();
        let (graph, edges) = (generated(folder.path(), kind, TINY, undirected), edges(kind));
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
                let labels = labels.into_iter().map(Option::unwrap);
                assert!(labels.eq(wanted.iter().copied()), "{method}, {threads} threads");
            }
        }
        // If the arrays of union-find do not fit, the smallest budget is that of propagation.
        let request = Request { algorithm: "connected_components".into(), ..Default::default() };
        let needed = smallest(|budget| run_request(&request, &graph, &resources(2, budget)));
        assert!(run_request(&request, &graph, &resources(2, needed)).is_ok());
    }
}
