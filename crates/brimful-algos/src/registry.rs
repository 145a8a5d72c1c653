//! Algorithms by name, with their parameters: what the command line and Python call.

use std::sync::Arc;

use brimful_engine::{Error, Layout, Result};
use brimful_graph::Graph;
use brimful_store::Resources;

pub use crate::request::{Finished, Parameter, Request};
use crate::{
    bfs, clustering, color, connected_components, count_paths, degrees, hits, kcore, label_propagation,
    pagerank, scc, sssp,
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
}

/// Which of the options that algorithms share it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// A vertex to begin with.
    pub source: bool,
    /// A tolerance.
    pub tolerance: bool,
    /// A precision.
    pub precision: bool,
    /// Edge weights.
    pub weights: bool,
    /// Signals that are heard within the same sweep.
    pub asynchronous: bool,
    /// Other layouts than shards.
    pub layouts: bool,
}

impl Takes {
    /// None of them.
    pub const NOTHING: Self = Self {
        source: false,
        tolerance: false,
        precision: false,
        weights: false,
        asynchronous: false,
        layouts: false,
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
}

/// All algorithms.
pub const ALGORITHMS: &[Info] = &[
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
pub fn run_request(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
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
        let known =
            if names.is_empty() { "it takes none".into() } else { format!("it takes: {}", names.join(", ")) };
        return Err(Error::Usage(format!("{} has no parameter {unknown:?}; {known}", info.name)));
    }
    let given = [
        (request.source.is_some(), info.takes.source, "source", "source"),
        (request.tolerance.is_some(), info.takes.tolerance, "tolerance", "tolerance"),
        (request.narrow, info.takes.precision, "precision", "precision"),
        (request.weighted, info.takes.weights, "weights", "weighted"),
        (request.asynchronous, info.takes.asynchronous, "asynchronous mode", "mode"),
        (request.layout != Layout::Shards, info.takes.layouts, "layout but shards", "layout"),
    ];
    if let Some((_, _, what, option)) = given.iter().find(|(given, taken, ..)| *given && !taken) {
        let name = info.name;
        let what = format!("{name} takes no {what}; leave --{option} out (Python: {option}=)");
        return Err(Error::Usage(what));
    }
    let finished = (info.run)(request, graph, resources)?;
    finished.stats.log();
    Ok(finished)
}
