//! Algorithms by name, with their parameters: what the command line and Python call.

use std::sync::Arc;

use brimful_engine::forecast::Forecast;
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::planning::{Planner, Subject};
pub use crate::request::{Finished, Parameter, Request, StoreChoice};
use crate::{
    Error, Result, bfs, clustering, color, connected_components, count_paths, degrees, hits, kcore,
    label_propagation, pagerank, scc, sources, sssp,
};

/// A parameter that an algorithm takes.
#[derive(Debug, Clone, Copy)]
pub struct ParameterInfo {
    /// Its name.
    pub name: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Which values it takes.
    pub values: Accepts,
}

/// Values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accepts {
    /// A number.
    Number,
    /// A whole number from 0 on.
    Count,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// Which of the options that algorithms share it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Takes {
    /// Vertices to begin at.
    pub source: bool,
    /// A tolerance: its default.
    pub tolerance: Option<f64>,
    /// A precision.
    pub precision: bool,
    /// Edge weights.
    pub weights: bool,
    /// Signals that are heard within the same sweep.
    pub asynchronous: bool,
    /// Vertices in a store.
    pub stores: bool,
    /// Checkpoints: it has supersteps.
    pub checkpoints: bool,
}

impl Takes {
    /// None of them.
    pub const NOTHING: Self = Self {
        source: false,
        tolerance: None,
        precision: false,
        weights: false,
        asynchronous: false,
        stores: false,
        checkpoints: false,
    };
}

/// What there is to know of an algorithm before running it.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub computes: &'static str,
    /// Its value column.
    pub column: &'static str,
    /// Options that not all take.
    pub takes: Takes,
    /// Its own parameters.
    pub parameters: &'static [ParameterInfo],
    /// Computes it.
    pub(crate) run: fn(&Request, &Arc<Graph>, &Resources) -> Result<Finished>,
    /// What computing it will take.
    pub(crate) plan: fn(&Planner<'_>) -> Result<Forecast>,
}

/// All algorithms. A static, so that whoever looks at it does not compile the programs again.
pub static ALGORITHMS: &[Info] = &[
    pagerank::INFO,
    hits::INFO,
    connected_components::INFO,
    scc::INFO,
    kcore::INFO,
    bfs::INFO,
    sssp::INFO,
    count_paths::INFO,
    degrees::INFO,
    label_propagation::INFO,
    color::INFO,
    clustering::CLUSTERING,
    clustering::TRIANGLES,
];

/// Runs the algorithm asked for.
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

/// What the request would take of `workers` threads and `limit` bytes of memory beside the process;
/// sources need not be given.
///
/// # Errors
/// [`Error::Usage`] as [`run_request`], and for what there is no forecast of.
pub fn plan_request(
    request: &Request,
    subject: Subject<'_>,
    workers: usize,
    limit: u64,
) -> Result<Forecast> {
    let info = find(request)?;
    (info.plan)(&Planner::new(request, subject, workers, limit)?)
}

/// The algorithm asked for, if it takes what is given.
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

/// What of a request its result depends on, but for what [`brimful_engine::RunOptions`] have of it
/// and for its limits.
fn identity(request: &Request, info: &Info) -> Vec<(String, String)> {
    let item = |name: &str, value: String| (name.to_owned(), value);
    let mut items = vec![item("algorithm", info.name.into())];
    items.extend(info.parameters.iter().map(|parameter| {
        let given = request.parameters.get(parameter.name);
        item(parameter.name, given.map_or_else(|| parameter.default.into(), ToString::to_string))
    }));
    items.extend(sources::identity(&request.sources).map(|sources| item("source", sources)));
    let tolerance = info.takes.tolerance.map(|usual| request.tolerance.unwrap_or(usual));
    items.extend(tolerance.map(|tolerance| item("tolerance", tolerance.to_string())));
    items.push(item("precision", if request.narrow { "f32" } else { "f64" }.into()));
    items
}

/// Refuses what a store makes nothing of.
fn check_store(request: &Request) -> Result<()> {
    if request.store.is_some() && request.asynchronous && request.max_supersteps.is_some() {
        let what = "in a store the asynchronous mode has no supersteps to limit; leave --max-supersteps out (Python: max_supersteps=)";
        return Err(Error::Usage(what.into()));
    }
    Ok(())
}
