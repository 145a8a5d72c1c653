//! Requests whose results are the same rows at any budget and number of threads.

use std::collections::BTreeMap;

use std::path::Path;
use std::sync::Arc;

use brimful_algos::Result;
use brimful_algos::registry::{Parameter, Request, run_request, run_rows_request};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_graph::ids::external::ExternalId;
use brimful_store::Job;

use crate::{SMALL, budgets, resources, reversed, smallest, threads};

/// Requests of algorithms, each weighted if it may be.
fn requests() -> Vec<Request> {
    let request = |algorithm: &str, weighted| Request {
        algorithm: algorithm.into(),
        weighted,
        ..Default::default()
    };
    let samples = [("samples".to_owned(), Parameter::Number(20.0))].into();
    let walks = [("alpha".to_owned(), Parameter::Number(1e-4))].into();
    let propagation: BTreeMap<_, _> =
        [("method".to_owned(), Parameter::Word("propagation".into()))].into();
    vec![
        request("eigenvector", true),
        Request { parameters: walks, ..request("katz", true) },
        request("hits", true),
        Request { narrow: true, ..request("pagerank", false) },
        request("connected_components", false),
        Request { parameters: propagation.clone(), ..request("connected_components", false) },
        request("label_propagation", false),
        request("color", false),
        request("triangles", false),
        request("clustering", false),
        Request { parameters: samples, ..request("betweenness", false) },
        request("closeness", false),
        request("harmonic", false),
        request("bipartite", false),
        Request { parameters: propagation, ..request("bipartite", false) },
        request("maximal_independent_set", false),
        request("louvain", false),
        request("louvain", true),
        request("leiden", true),
        request("spanning_forest", true),
        request("articulation_points", false),
        Request {
            sources: [3, 9, 511].map(ExternalId::Number).into(),
            source_weights: vec![2.0, 0.5, 1.0],
            ..request("pagerank", true)
        },
    ]
}

/// Requests of algorithms whose result is a table of rows.
fn requests_of_rows() -> Vec<Request> {
    let request = |algorithm: &str, parameters: &[(&str, Parameter)]| Request {
        algorithm: algorithm.into(),
        parameters: parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        ..Default::default()
    };
    let word = |word: &str| Parameter::Word(word.into());
    vec![
        request("similarity", &[("k", Parameter::Number(3.0))]),
        request("similarity", &[("measure", word("adamic_adar"))]),
        request("bridges", &[]),
        request("ktruss", &[]),
        request("edge_betweenness", &[("samples", Parameter::Number(20.0))]),
        request("random_walks", &[("length", Parameter::Number(9.0))]),
        Request { weighted: true, ..request("random_walks", &[("p", Parameter::Number(0.25))]) },
        Request { sources: (0..70).map(ExternalId::Number).collect(), ..request("distances", &[]) },
    ]
}

/// Calls `check` with each graph, and a folder for files.
fn for_each_graph(check: impl Fn(&Arc<Graph>, &Path)) {
    for undirected in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind::Rmat { scale: 9, edge_factor: 8 };
        check(&reversed(folder.path(), kind, SMALL, undirected), folder.path());
    }
}

/// Checks that `rows` in any budget are those of one thread in a large budget; returns these.
fn same(name: &str, rows: impl Fn(usize, u64) -> Result<Vec<u8>>, more: u64) -> Vec<u8> {
    let wanted = rows(1, 1 << 28).unwrap();
    for threads in threads(1..=4) {
        let needed = smallest(|budget| rows(threads, budget));
        for budget in budgets(needed).into_iter().chain([needed + more]) {
            let found = rows(threads, budget).unwrap();
            assert!(found == wanted, "{name}: {threads} threads, {budget} bytes");
        }
    }
    wanted
}

#[test]
fn tables_are_the_same_at_any_budget_and_number_of_threads() {
    for_each_graph(|graph, folder| {
        for request in requests_of_rows() {
            let rows = |threads, budget| {
                let finished = run_rows_request(&request, graph, &resources(threads, budget))?;
                let out = folder.join("rows.csv");
                finished.table.write_csv(&out, true, &Job::new()).unwrap();
                Ok(std::fs::read(out).unwrap())
            };
            let found = same(&format!("{request:?}"), rows, 50_000);
            assert!(found.len() > 100, "{request:?} has few rows");
        }
    });
}

#[test]
fn values_are_the_same_at_any_budget_and_number_of_threads() {
    for_each_graph(|graph, folder| {
        for request in requests() {
            let rows = |threads, budget| {
                let finished = run_request(&request, graph, &resources(threads, budget))?;
                let out = folder.join("rows.csv");
                finished.table.write_csv(&out, true, &Job::new()).unwrap();
                Ok(std::fs::read(out).unwrap())
            };
            same(&format!("{request:?}"), rows, 5000);
        }
    });
}
