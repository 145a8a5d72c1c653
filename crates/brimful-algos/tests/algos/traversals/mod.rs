//! Programs with small frontiers: compared with different algorithms, and the same bits by dense
//! and sparse traversal, at one to four threads and three budgets.

mod against;
mod asynchronous;
mod lists;
mod references;
mod same_bits;

use brimful_algos::registry::{Request, run_request};
use brimful_engine::result::table::Column;
use brimful_graph::Graph;
use brimful_graph::build::weights::hash;
use brimful_graph::generate::Kind;
use brimful_graph::read::shards::Geometry;
use std::path::Path;
use std::sync::Arc;

use crate::{SMALL, edges, generated, resources};

/// A graph with its original edges; ids are 0 to n - 1, weights are hashed.
struct Case {
    graph: Arc<Graph>,
    /// For each vertex its targets and weights.
    out: Vec<Vec<(usize, f64)>>,
}

fn case(folder: &Path, kind: Kind, undirected: bool) -> Case {
    case_in(folder, kind, undirected, SMALL)
}

fn case_in(folder: &Path, kind: Kind, undirected: bool, geometry: Geometry) -> Case {
    let graph = generated(folder, kind, geometry, undirected);
    let mut out = vec![Vec::new(); graph.vertices() as usize];
    for (source, target) in edges(kind) {
        let weight = hash(source as u64, target as u64);
        out[source].push((target, weight));
        if undirected && source != target {
            out[target].push((source, weight));
        }
    }
    Case { graph, out }
}

/// One case, by number.
fn cases(folder: &Path, number: usize) -> Case {
    let cases = [
        (Kind::Rmat { scale: 9, edge_factor: 14 }, false),
        (Kind::Rmat { scale: 8, edge_factor: 3 }, true),
        (Kind::Chain { vertices: 150 }, false),
        (Kind::Grid { rows: 14, columns: 11, torus: false }, true),
        (Kind::Star { vertices: 400 }, true),
    ];
    let (kind, undirected) = cases[number];
    case(folder, kind, undirected)
}

const CASES: usize = 5;

/// The value column of a request, by external id; `None` for null.
fn column(case: &Case, request: &Request) -> Vec<Option<u64>> {
    let finished = run_request(request, &case.graph, &resources(2, 1 << 28)).unwrap();
    let (ids, column) = finished.table.rows().next_batch(usize::MAX).unwrap().unwrap();
    assert!(ids.into_iter().eq(0..case.out.len() as u64));
    match column {
        Column::Float(values) => {
            values.into_iter().map(|value| value.map(|value| value as u64)).collect()
        }
        Column::Integer(values) => {
            values.into_iter().map(|value| value.map(i64::cast_unsigned)).collect()
        }
        Column::Unsigned(values) | Column::Ids(values) => values,
        Column::Lists(..) => panic!("a value is not a list"),
    }
}

fn request(algorithm: &str, sources: &[usize]) -> Request {
    let sources = sources.iter().map(|source| (*source as i128).into()).collect();
    Request { algorithm: algorithm.into(), sources, ..Default::default() }
}
