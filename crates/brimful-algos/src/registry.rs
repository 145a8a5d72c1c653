//! Algorithms by name, with their parameters, for the command line and Python.

use std::sync::Arc;

use brimful_engine::plan::forecast::Forecast;
use brimful_graph::Graph;
use brimful_store::Resources;

pub use crate::info::{Accepts, Info, ParameterInfo, Takes};
use crate::planning::{Planner, Subject};
pub use crate::request::{Finished, Parameter, Request, StoreChoice};
use crate::{
    Error, Result, betweenness, bfs, bipartite, closeness, clustering, color, communities,
    connected_components, count_paths, degrees, eigenvector, hits, katz, kcore, label_propagation,
    pagerank, scc, sources, spanning_forest, sssp, topological_order,
};

/// All algorithms. A static, so that the crates which use it do not compile the programs again.
pub static ALGORITHMS: &[Info] = &[
    pagerank::INFO,
    hits::INFO,
    eigenvector::INFO,
    katz::INFO,
    betweenness::INFO,
    closeness::CLOSENESS,
    closeness::HARMONIC,
    connected_components::INFO,
    scc::INFO,
    kcore::INFO,
    bfs::INFO,
    sssp::INFO,
    count_paths::INFO,
    degrees::INFO,
    label_propagation::INFO,
    communities::LOUVAIN,
    communities::LEIDEN,
    color::INFO,
    color::INDEPENDENT,
    bipartite::INFO,
    topological_order::INFO,
    spanning_forest::INFO,
    clustering::CLUSTERING,
    clustering::TRIANGLES,
];

/// Runs the requested algorithm.
///
/// # Errors
/// [`Error::Usage`] for an unknown algorithm or parameter, before any work; else as
/// [`brimful_engine::run()`].
pub fn run_request(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let info = find(request)?;
    let (identity, mut request) = (identity(request, info), request.clone());
    if let Some(checkpoints) = &mut request.checkpoints {
        checkpoints.identity = identity;
    }
    let finished = (info.run)(&request, graph, resources)?;
    finished.stats.log();
    Ok(finished)
}

/// The forecast of a request with `workers` threads and `limit` bytes of memory beyond those of the
/// process; sources may be missing.
///
/// # Errors
/// [`Error::Usage`] as [`run_request`], and for runs without a forecast.
pub fn plan_request(
    request: &Request,
    subject: Subject<'_>,
    workers: usize,
    limit: u64,
) -> Result<Forecast> {
    let info = find(request)?;
    (info.plan)(&Planner::new(request, subject, workers, limit)?)
}

/// The requested algorithm, if it supports the options of the request.
fn find(request: &Request) -> Result<&'static Info> {
    let info = ALGORITHMS.iter().find(|info| info.name == request.algorithm).ok_or_else(|| {
        let names: Vec<&str> = ALGORITHMS.iter().map(|info| info.name).collect();
        Error::Usage(format!(
            "there is no algorithm {:?}; choose from: {}",
            request.algorithm,
            names.join(", ")
        ))
    })?;
    if let Some(unknown) =
        request.parameters.keys().find(|key| !info.parameters.iter().any(|p| p.name == **key))
    {
        let names: Vec<&str> = info.parameters.iter().map(|p| p.name).collect();
        let known = if names.is_empty() {
            "it takes none".into()
        } else {
            format!("it takes: {}", names.join(", "))
        };
        return Err(Error::Usage(format!("{} has no parameter {unknown:?}; {known}", info.name)));
    }
    let given = [
        (!request.sources.is_empty(), info.takes.source, "source", "source"),
        (
            !request.source_weights.is_empty(),
            info.takes.source_weights,
            "weights of sources",
            "source-weight",
        ),
        (request.tolerance.is_some(), info.takes.tolerance.is_some(), "tolerance", "tolerance"),
        (request.narrow, info.takes.precision, "precision", "precision"),
        (request.weighted, info.takes.weights, "weights", "weighted"),
        (request.asynchronous, info.takes.asynchronous, "asynchronous mode", "mode"),
        (request.store.is_some(), info.takes.stores, "store", "store"),
        (request.checkpoints.is_some(), info.takes.checkpoints, "checkpoints", "checkpoint-every"),
    ];
    if let Some((_, _, what, option)) = given.iter().find(|(given, taken, ..)| *given && !taken) {
        let (name, keyword) = (info.name, option.replace('-', "_"));
        let what = format!("{name} takes no {what}; leave --{option} out (Python: {keyword}=)");
        return Err(Error::Usage(what));
    }
    check_store(request)?;
    Ok(info)
}

/// The parts of a request that its result depends on, except for limits and for those in
/// [`brimful_engine::RunOptions`].
fn identity(request: &Request, info: &Info) -> Vec<(String, String)> {
    let item = |name: &str, value: String| (name.to_owned(), value);
    let mut items = vec![item("algorithm", info.name.into())];
    items.extend(info.parameters.iter().map(|parameter| {
        let given = request.parameters.get(parameter.name);
        item(parameter.name, given.map_or_else(|| parameter.default.into(), ToString::to_string))
    }));
    items.extend(
        sources::identity(&request.sources, &request.source_weights)
            .map(|sources| item("source", sources)),
    );
    let tolerance = info.takes.tolerance.map(|usual| request.tolerance.unwrap_or(usual));
    items.extend(tolerance.map(|tolerance| item("tolerance", tolerance.to_string())));
    items.push(item("precision", if request.narrow { "f32" } else { "f64" }.into()));
    items
}

/// Refuses options that a store does not support.
fn check_store(request: &Request) -> Result<()> {
    if request.store.is_some() && request.asynchronous && request.max_supersteps.is_some() {
        let what = "in a store the asynchronous mode has no supersteps to limit; leave --max-supersteps out (Python: max_supersteps=)";
        return Err(Error::Usage(what.into()));
    }
    Ok(())
}
