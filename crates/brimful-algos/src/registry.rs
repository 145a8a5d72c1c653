//! Algorithms by name, with their parameters: what the command line and Python call.

use std::collections::BTreeMap;
use std::sync::Arc;

use brimful_engine::{Error, Isolated, Output, Program, Result, ResultTable, RunOptions, Stats, Values, run};
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::connected_components::{ConnectedComponents, fits_narrow};
use crate::pagerank::{PageRank, Precision, Variant};

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

/// What there is to know of an algorithm before running it.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub computes: &'static str,
    /// Its value column.
    pub column: &'static str,
    /// Its own parameters.
    pub parameters: &'static [ParameterInfo],
}

/// All algorithms.
pub const ALGORITHMS: &[Info] = &[
    Info {
        name: "pagerank",
        computes: "PageRank by power steps; normalized (scores sum to 1) or unnormalized (Signal/Collect's)",
        column: "pagerank",
        parameters: &[
            ParameterInfo {
                name: "damping",
                default: "0.85",
                meaning: "probability of following an edge, 0 to 1",
            },
            ParameterInfo { name: "variant", default: "normalized", meaning: "normalized or unnormalized" },
        ],
    },
    Info {
        name: "connected_components",
        computes: "weakly connected components, each named by its smallest vertex",
        column: "component",
        parameters: &[],
    },
];

/// A parameter as given.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// What the user asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its own parameters.
    pub parameters: BTreeMap<String, Parameter>,
    /// 32-bit signals.
    pub narrow: bool,
    /// Edge weights count.
    pub weighted: bool,
    /// When to stop; `None`: the algorithm's default.
    pub tolerance: Option<f64>,
    /// Most supersteps; `None`: the algorithm's default.
    pub max_supersteps: Option<u64>,
}

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub table: ResultTable,
    /// Figures.
    pub stats: Stats,
    /// Which variant of the algorithm ran.
    pub variant: &'static str,
}

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
    match info.name {
        "pagerank" if request.narrow => pagerank::<f32>(request, graph, resources),
        "pagerank" => pagerank::<f64>(request, graph, resources),
        _ => connected_components(request, graph, resources),
    }
}

fn execute<P: Program>(
    program: &P,
    request: &Request,
    max_supersteps: u64,
    graph: &Graph,
    resources: &Resources,
) -> Result<Output<P::State>> {
    let options = RunOptions {
        max_supersteps: request.max_supersteps.unwrap_or(max_supersteps),
        weighted: request.weighted,
        ..Default::default()
    };
    run(program, graph, &options, resources)
}

fn pagerank<S: Precision>(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let damping = match request.parameters.get("damping") {
        None => 0.85,
        Some(Parameter::Number(damping)) => *damping,
        Some(Parameter::Word(word)) => {
            return Err(Error::Usage(format!("damping must be a number, not {word:?}")));
        }
    };
    let variant = match request.parameters.get("variant") {
        None => Variant::Normalized,
        Some(Parameter::Word(word)) if word == "normalized" => Variant::Normalized,
        Some(Parameter::Word(word)) if word == "unnormalized" => Variant::Unnormalized,
        Some(_) => {
            return Err(Error::Usage("variant must be normalized or unnormalized".into()));
        }
    };
    let tolerance = request.tolerance.unwrap_or(1e-6);
    let program = PageRank::<S>::new(variant, damping, tolerance).map_err(Error::Usage)?;
    let output = execute(&program, request, 100, graph, resources)?;
    // Where there is no isolated vertex, nobody asks for its score.
    let isolated = if let Isolated::Same(score) = output.isolated { score } else { 0.0 };
    let values = Values::Float(output.states, isolated);
    let table = ResultTable::new(Arc::clone(graph), "pagerank", values)?;
    Ok(Finished { table, stats: output.stats, variant: variant.name() })
}

fn connected_components(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    if request.tolerance.is_some() || request.narrow || request.weighted {
        let what = "connected_components is exact: it takes no tolerance, precision or weights";
        return Err(Error::Usage(what.into()));
    }
    let range = graph.key_bounds()?.map_or(0, |(smallest, largest)| largest.saturating_sub(smallest));
    let (values, stats) = if fits_narrow(range) {
        let output = execute(&ConnectedComponents::<u32>::new(), request, u64::MAX, graph, resources)?;
        (Values::Place32(output.states), output.stats)
    } else {
        let output = execute(&ConnectedComponents::<u64>::new(), request, u64::MAX, graph, resources)?;
        (Values::Place64(output.states), output.stats)
    };
    let table = ResultTable::new(Arc::clone(graph), "component", values)?;
    Ok(Finished { table, stats, variant: "weak" })
}
