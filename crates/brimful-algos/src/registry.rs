//! Algorithms by name, with their parameters, for the command line and Python.

use std::sync::Arc;

use brimful_engine::plan::forecast::Forecast;
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::info::Run;
pub use crate::info::{Info, Takes};
pub use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{Planner, Subject};
use crate::request::inapplicable;
pub use crate::request::{Finished, FinishedRows, Pairs, Parameter, Request, StoreChoice};
use crate::{
    Error, Result, betweenness, bfs, bipartite, blocks, closeness, clustering, color, communities,
    connected_components, count_paths, degrees, distances, eigenvector, fastrp, hits, katz, kcore,
    ktruss, label_propagation, pagerank, random_walks, scc, similarity, sources, spanning_forest,
    sssp, topological_order,
};

/// Algorithms of one purpose.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its algorithms.
    pub algorithms: &'static [Info],
}

/// All algorithms. A static, so that crates that use it do not compile the programs again.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "centrality",
        algorithms: &[
            pagerank::INFO,
            hits::INFO,
            eigenvector::INFO,
            katz::INFO,
            betweenness::INFO,
            betweenness::edges::INFO,
            closeness::CLOSENESS,
            closeness::HARMONIC,
            degrees::INFO,
        ],
    },
    Family {
        name: "components and communities",
        algorithms: &[
            connected_components::INFO,
            scc::INFO,
            label_propagation::INFO,
            communities::LOUVAIN,
            communities::LEIDEN,
            communities::hierarchy::LOUVAIN,
            communities::hierarchy::LEIDEN,
        ],
    },
    Family {
        name: "paths",
        algorithms: &[
            bfs::INFO,
            sssp::INFO,
            count_paths::INFO,
            distances::DISTANCES,
            distances::ECCENTRICITY,
            distances::diameter::INFO,
            closeness::effective_diameter::INFO,
        ],
    },
    Family {
        name: "structure",
        algorithms: &[
            kcore::INFO,
            ktruss::INFO,
            clustering::CLUSTERING,
            clustering::TRIANGLES,
            color::INFO,
            color::INDEPENDENT,
            bipartite::INFO,
            topological_order::INFO,
            spanning_forest::INFO,
            blocks::BRIDGES,
            blocks::ARTICULATION,
        ],
    },
    Family { name: "similarity", algorithms: &[similarity::INFO] },
    Family { name: "samples and embeddings", algorithms: &[random_walks::INFO, fastrp::INFO] },
];

/// All algorithms.
pub fn algorithms() -> impl Iterator<Item = &'static Info> {
    FAMILIES.iter().flat_map(|family| family.algorithms)
}

/// Runs the requested algorithm, which gives each vertex a value.
///
/// # Errors
/// [`Error::Usage`] for an unknown algorithm, option or parameter, and for an algorithm with rows,
/// before any work; otherwise as [`brimful_engine::run()`].
pub fn run_request(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let info = find(request)?;
    let Run::Vertices(run) = info.run else {
        let problem = format!("{} gives rows, not a value for each vertex", info.name);
        return Err(Error::Usage(problem));
    };
    logged(run(&identified(request, info), graph, resources)?)
}

/// Runs the requested algorithm, whose result is a table of rows.
///
/// # Errors
/// As [`run_request`], and for an algorithm with a value for each vertex.
pub fn run_rows_request(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<FinishedRows> {
    let info = find(request)?;
    let Run::Rows(_, run) = info.run else {
        let problem = format!("{} gives a value for each vertex, not rows", info.name);
        return Err(Error::Usage(problem));
    };
    logged(run(&identified(request, info), graph, resources)?)
}

/// The request, with the identity of its checkpoints.
fn identified(request: &Request, info: &Info) -> Request {
    let (identity, mut request) = (identity(request, info), request.clone());
    if let Some(checkpoints) = &mut request.checkpoints {
        checkpoints.identity = identity;
    }
    request
}

fn logged<T>(finished: Finished<T>) -> Result<Finished<T>> {
    finished.stats.log();
    Ok(finished)
}

/// The forecast of a request with `workers` threads and `limit` bytes of memory, besides the memory
/// of the process itself. The request may lack sources.
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

/// Refuses a request for an unknown algorithm, or with options that the algorithm does not support.
///
/// # Errors
/// [`Error::Usage`] with the reason.
pub fn check_request(request: &Request) -> Result<()> {
    find(request).map(|_| ())
}

/// The requested algorithm, if it supports the options of the request.
fn find(request: &Request) -> Result<&'static Info> {
    let info = algorithms().find(|info| info.name == request.algorithm).ok_or_else(|| {
        let names: Vec<&str> = algorithms().map(|info| info.name).collect();
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
        let parameters = if names.is_empty() {
            "it takes none".into()
        } else {
            format!("it takes: {}", names.join(", "))
        };
        return Err(Error::Usage(format!(
            "{} has no parameter {unknown:?}; {parameters}",
            info.name
        )));
    }
    let mut options = given(request).options().into_iter().zip(info.takes.options());
    if let Some(((option, _), _)) =
        options.find(|((_, is_given), (_, is_taken))| *is_given && !is_taken)
    {
        return Err(inapplicable(option, info.name));
    }
    check_store(request)?;
    if request.is_divided() {
        request.options(0).check_divided()?;
    }
    Ok(info)
}

/// The shared options of a request.
fn given(request: &Request) -> Takes {
    Takes {
        source: !request.sources.is_empty(),
        source_weights: !request.source_weights.is_empty(),
        pairs: request.pairs.is_some(),
        tolerance: request.tolerance,
        precision: request.narrow,
        weights: request.weighted,
        asynchronous: request.asynchronous,
        stores: request.store.is_some(),
        cluster: request.is_divided(),
        checkpoints: request.checkpoints.is_some(),
    }
}

/// The parts of a request that its result depends on, except for limits and for those in
/// [`brimful_engine::RunOptions`].
fn identity(request: &Request, info: &Info) -> Vec<(String, String)> {
    let item = |name: &str, value: String| (name.to_owned(), value);
    let mut items = vec![item("algorithm", info.name.into())];
    items.extend(
        info.parameters.iter().map(|parameter| item(parameter.name, parameter.text(request))),
    );
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
    if request.store.is_some() && request.is_divided() {
        let problem = "algorithms run on shards on a cluster, not in a store; leave --store or \
                       --cluster out";
        return Err(Error::Usage(problem.into()));
    }
    if request.store.is_some() && request.asynchronous && request.max_supersteps.is_some() {
        let problem = "in a store the asynchronous mode has no supersteps to limit; leave \
                       --max-supersteps out";
        return Err(Error::Usage(problem.into()));
    }
    Ok(())
}
