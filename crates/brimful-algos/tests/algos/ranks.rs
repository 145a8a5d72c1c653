//! Scores of vertices compared with dense arithmetic: HITS, personalized PageRank, PageRank by
//! increments.

use std::path::Path;
use std::sync::Arc;

use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_engine::Stats;
use brimful_engine::result::table::Column;
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, import};
use brimful_graph::build::weights::{Weights, hash};
use brimful_graph::edges::{EdgeBatch, EdgeSource};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::ids::external::ExternalId;
use brimful_graph::read::shards::Geometry;
use brimful_store::ErrorKind;

use crate::resources;

const SMALL: Geometry =
    Geometry { interval_bits: 4, window_edges: 50, segment_edges: 16, unit_bytes: 200 };

/// A graph with its stored arcs and their weights; ids are 0 to n - 1.
struct Case {
    graph: Arc<Graph>,
    arcs: Vec<(usize, usize, f64)>,
    n: usize,
}

fn case(folder: &Path, kind: Kind, undirected: bool) -> Case {
    let generator = Generator::new(kind, 9).unwrap();
    let weights = Weights::Hash;
    let options = ImportOptions { geometry: SMALL, undirected, weights, ..Default::default() };
    let path = folder.join("g.brimful");
    let resources = resources(2, 1 << 28);
    import(Input::Numbered(&generator, generator.vertices()), &path, &options, &resources).unwrap();
    let graph = Arc::new(Graph::open(&path, resources.job.traffic()).unwrap());
    let (mut batch, mut arcs) = (EdgeBatch::default(), Vec::new());
    for part in 0..generator.parts() {
        generator.read_part(part, &mut batch).unwrap();
        for (&source, &target) in batch.sources.iter().zip(&batch.targets) {
            let (a, b, weight) = (source as usize, target as usize, hash(source, target));
            arcs.push((a, b, weight));
            if undirected && a != b {
                arcs.push((b, a, weight));
            }
        }
    }
    Case { n: graph.vertices() as usize, graph, arcs }
}

/// Kinds, whether undirected; all but the last two have isolated vertices or sinks.
const KINDS: [(Kind, bool); 5] = [
    (Kind::Rmat { scale: 8, edge_factor: 5 }, false),
    (Kind::Rmat { scale: 8, edge_factor: 1 }, true),
    (Kind::Chain { vertices: 50 }, false),
    (Kind::Star { vertices: 40 }, true),
    (Kind::Ring { vertices: 30 }, false),
];

fn words<const N: usize>(
    words: [(&str, &str); N],
) -> std::collections::BTreeMap<String, Parameter> {
    words.into_iter().map(|(name, word)| (name.to_owned(), Parameter::Word(word.into()))).collect()
}

/// Scores by id, and figures.
fn ranked(case: &Case, request: &Request) -> (Vec<f64>, Stats) {
    let finished = run_request(request, &case.graph, &resources(2, 1 << 28)).unwrap();
    let (ids, column) = finished.table.rows().next_batch(usize::MAX).unwrap().unwrap();
    assert!(ids.into_iter().eq(0..case.n as u64));
    let Column::Float(scores) = column else { panic!("scores are numbers") };
    (scores.into_iter().map(Option::unwrap).collect(), finished.stats)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Hubs and authorities after so many supersteps.
fn dense_hits(case: &Case, supersteps: u64, weighted: bool) -> (Vec<f64>, Vec<f64>) {
    let (mut hubs, mut authorities) = (vec![1.0 / case.n as f64; case.n], vec![0.0; case.n]);
    for superstep in 0..supersteps {
        let mut next = vec![0.0; case.n];
        for &(source, target, weight) in &case.arcs {
            let weight = if weighted { weight } else { 1.0 };
            match superstep % 2 {
                0 => next[target] += hubs[source] * weight,
                _ => next[source] += authorities[target] * weight,
            }
        }
        let sum: f64 = next.iter().sum();
        next.iter_mut().for_each(|score| *score /= if sum == 0.0 { 1.0 } else { sum });
        if superstep.is_multiple_of(2) { authorities = next } else { hubs = next }
    }
    (hubs, authorities)
}

#[test]
fn hubs_and_authorities_agree_with_their_definition() {
    for (kind, undirected) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), kind, undirected);
        for weighted in [false, true] {
            let request = |values, supersteps| Request {
                algorithm: "hits".into(),
                parameters: words([("values", values)]),
                tolerance: Some(0.0),
                max_supersteps: Some(supersteps),
                weighted,
                ..Default::default()
            };
            for supersteps in [1, 2, 7, 8] {
                let (hubs, authorities) = dense_hits(&case, supersteps, weighted);
                let (found, stats) = ranked(&case, &request("hub", supersteps));
                assert!(
                    distance(&found, &hubs) < 1e-12,
                    "{kind:?}, {supersteps}: {found:?}, {hubs:?}"
                );
                assert_eq!(stats.supersteps, supersteps);
                let (found, _) = ranked(&case, &request("authority", supersteps));
                assert!(distance(&found, &authorities) < 1e-12, "{kind:?}, {supersteps}");
                assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn hits_stops_at_its_tolerance_and_no_edges_have_no_score() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 8, edge_factor: 5 }, false);
    let request = Request { algorithm: "hits".into(), tolerance: Some(1e-4), ..Default::default() };
    let (_, stats) = ranked(&case, &request);
    assert!(stats.converged());
    // Superstep s reads the scores of superstep s - 1.
    let moved = |superstep: u64| {
        let (hubs, authorities) = dense_hits(&case, superstep - 1, false);
        let (hubs_before, authorities_before) = dense_hits(&case, superstep - 3, false);
        if superstep.is_multiple_of(2) {
            distance(&authorities, &authorities_before)
        } else {
            distance(&hubs, &hubs_before)
        }
    };
    assert!(moved(stats.supersteps) <= 1e-4 && moved(stats.supersteps - 1) > 1e-4);

    let input = folder.path().join("none.txt");
    std::fs::write(&input, "").unwrap();
    let path = folder.path().join("none.brimful");
    let options = ImportOptions { vertices: Some(3), ..Default::default() };
    let resources = resources(1, 1 << 28);
    import(Input::EdgeList(vec![input]), &path, &options, &resources).unwrap();
    let graph = Arc::new(Graph::open(&path, resources.job.traffic()).unwrap());
    let none = Case { graph, arcs: Vec::new(), n: 3 };
    let (scores, stats) = ranked(&none, &request);
    assert_eq!((scores, stats.converged()), (vec![0.0; 3], true));
}

/// Normalized PageRank that starts at `sources`, or everywhere.
fn dense_pagerank(case: &Case, sources: &[usize], damping: f64, supersteps: u64) -> Vec<f64> {
    let mut begin = vec![1.0 / case.n as f64; case.n];
    if !sources.is_empty() {
        begin.fill(0.0);
        sources.iter().for_each(|source| begin[*source] = 1.0 / sources.len() as f64);
    }
    let mut degree = vec![0.0; case.n];
    case.arcs.iter().for_each(|(source, ..)| degree[*source] += 1.0);
    let mut rank = begin.clone();
    for _ in 0..supersteps {
        let sinks: f64 = (0..case.n).filter(|v| degree[*v] == 0.0).map(|v| rank[v]).sum();
        let mut next: Vec<f64> =
            begin.iter().map(|begin| begin * (1.0 - damping + damping * sinks)).collect();
        case.arcs.iter().for_each(|&(s, t, _)| next[t] += damping * rank[s] / degree[s]);
        rank = next;
    }
    rank
}

fn pagerank(method: &str, variant: &str, sources: &[usize], tolerance: f64) -> Request {
    Request {
        algorithm: "pagerank".into(),
        parameters: words([("method", method), ("variant", variant)]),
        sources: sources.iter().map(|source| ExternalId::Number(*source as i128)).collect(),
        tolerance: Some(tolerance),
        max_supersteps: Some(2000),
        ..Default::default()
    }
}

#[test]
fn personalised_pagerank_agrees_with_its_definition() {
    for (kind, undirected) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), kind, undirected);
        let few = [0, 1, case.n / 2, case.n - 1];
        for sources in
            few.map(|source| vec![source]).into_iter().chain([few.to_vec(), (0..case.n).collect()])
        {
            let request = Request {
                max_supersteps: Some(9),
                ..pagerank("power", "normalized", &sources, 0.0)
            };
            let (found, _) = ranked(&case, &request);
            let wanted = dense_pagerank(&case, &sources, 0.85, 9);
            assert!(distance(&found, &wanted) < 1e-12, "{kind:?} from {sources:?}");
        }
    }
}

#[test]
fn an_isolated_source_keeps_all_rank() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 8, edge_factor: 1 }, false);
    let isolated =
        (0..case.n).find(|v| case.arcs.iter().all(|(s, t, _)| s != v && t != v)).unwrap();
    let mut wanted = vec![0.0; case.n];
    wanted[isolated] = 1.0;
    for method in ["power", "delta"] {
        assert_eq!(ranked(&case, &pagerank(method, "normalized", &[isolated], 1e-9)).0, wanted);
    }
}

#[test]
fn isolated_sources_share_the_rank_of_sinks() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 8, edge_factor: 1 }, false);
    let is_isolated = |v: &usize| case.arcs.iter().all(|(s, t, _)| s != v && t != v);
    let isolated: Vec<usize> = (0..case.n).filter(is_isolated).collect();
    assert!(isolated.len() > 4);
    let hub = case.arcs[0].0;
    for sources in [isolated[..2].to_vec(), vec![isolated[0], isolated[3], hub], isolated.clone()] {
        let exact = dense_pagerank(&case, &sources, 0.85, 400);
        for method in ["power", "delta"] {
            let (found, stats) = ranked(&case, &pagerank(method, "normalized", &sources, 1e-12));
            assert!(stats.converged());
            assert!(distance(&found, &exact) < 1e-11, "{method} from {sources:?}");
        }
        let nine =
            Request { max_supersteps: Some(9), ..pagerank("power", "normalized", &sources, 0.0) };
        assert!(
            distance(&ranked(&case, &nine).0, &dense_pagerank(&case, &sources, 0.85, 9)) < 1e-12
        );
    }
}

#[test]
fn increments_reach_the_accuracy_they_promise() {
    for (kind, undirected) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), kind, undirected);
        for sources in [vec![], vec![0], vec![case.n - 1], vec![0, 3, case.n - 1]] {
            let exact = dense_pagerank(&case, &sources, 0.85, 400);
            for tolerance in [1e-3, 1e-6, 1e-10] {
                let (found, stats) =
                    ranked(&case, &pagerank("delta", "normalized", &sources, tolerance));
                let error = distance(&found, &exact);
                assert!(stats.converged());
                assert!(
                    error <= tolerance * 0.85 / 0.15 + 1e-13,
                    "{kind:?} from {sources:?}: {error}"
                );
                assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
        let (exact, _) = ranked(&case, &pagerank("power", "unnormalized", &[], 1e-14));
        for tolerance in [1e-3, 1e-6, 1e-10] {
            let (found, _) = ranked(&case, &pagerank("delta", "unnormalized", &[], tolerance));
            assert!(distance(&found, &exact) <= case.n as f64 * (tolerance * 0.85 / 0.15 + 1e-13));
        }
    }
}

#[test]
fn increments_send_fewer_signals_than_power_steps_of_the_same_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 10, edge_factor: 8 }, false);
    let (exact, _) = ranked(&case, &pagerank("power", "unnormalized", &[], 1e-15));
    for tolerance in [1e-2, 1e-4, 1e-7] {
        let (found, delta) = ranked(&case, &pagerank("delta", "unnormalized", &[], tolerance));
        let error = distance(&found, &exact);
        let after = |steps| Request {
            max_supersteps: Some(steps),
            ..pagerank("power", "unnormalized", &[], 0.0)
        };
        let worse = |steps: &u64| distance(&ranked(&case, &after(*steps)).0, &exact) > error;
        let power = (1..200).take_while(worse).count() as u64 * case.arcs.len() as u64;
        assert!(delta.signals < power, "{} signals, {power} by power steps", delta.signals);
    }
}

#[test]
fn without_a_tolerance_increments_go_on_to_the_last_bits() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 8, edge_factor: 5 }, false);
    let exact = dense_pagerank(&case, &[], 0.85, 400);
    let limited = |supersteps| Request {
        max_supersteps: Some(supersteps),
        ..pagerank("delta", "normalized", &[], 0.0)
    };
    assert!(distance(&ranked(&case, &limited(400)).0, &exact) < 1e-14);
    for supersteps in [0, 1, 2] {
        let (found, stats) = ranked(&case, &limited(supersteps));
        assert_eq!((stats.supersteps, stats.converged()), (supersteps, false));
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn increments_follow_weights_and_may_be_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 8, edge_factor: 5 }, false);
    let weighted =
        |method| Request { weighted: true, ..pagerank(method, "normalized", &[], 1e-12) };
    let (exact, _) = ranked(&case, &weighted("power"));
    assert!(distance(&ranked(&case, &weighted("delta")).0, &exact) < 1e-11);
    let narrow = Request { narrow: true, ..weighted("delta") };
    let error = distance(&ranked(&case, &narrow).0, &exact);
    assert!(error > 1e-11 && error < 1e-6, "{error}");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Ring { vertices: 9 }, false);
    let damped = |mut request: Request| {
        request.parameters.insert("damping".into(), Parameter::Number(1.0));
        request
    };
    let hits = |values, tolerance| Request {
        algorithm: "hits".into(),
        parameters: words([("values", values)]),
        tolerance: Some(tolerance),
        ..Default::default()
    };
    let cases = [
        (pagerank("power", "unnormalized", &[1], 0.1), "personalized PageRank is normalized"),
        (pagerank("guess", "normalized", &[], 0.1), "method must be power or delta"),
        (damped(pagerank("delta", "normalized", &[], 0.1)), "below 1 for the method delta"),
        (hits("both", 0.1), "values must be authority or hub"),
        (hits("hub", -0.1), "tolerance must be at least 0"),
        (
            Request { sources: vec![ExternalId::Number(1)], ..hits("hub", 0.1) },
            "hits takes no source",
        ),
    ];
    for (request, message) in cases {
        let error = run_request(&request, &case.graph, &resources(1, 1 << 28)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(message), "{error}");
    }
}
