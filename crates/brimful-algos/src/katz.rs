//! Katz centrality by power iteration.
//!
//! Returns for each vertex its entry in the solution of x = alpha A^T x + beta (`katz`, float64),
//! where A is the matrix of arcs from rows to columns, with multiplicity or weights: beta times the
//! number of walks of any length that lead to the vertex, where a walk of k edges counts alpha^k
//! (Katz 1953; Newman 2010, section 7.3). *Normalized*, the squares of all entries sum to 1.
//!
//! Method, as NetworkX: starting from x = 0, the equation is applied until the L1 change of x,
//! divided by the number of vertices, is at most the tolerance. It converges if alpha is below 1 /
//! the largest eigenvalue of A, linearly in the product of alpha and this eigenvalue. State and
//! signal: x, f64. One pass over the edges a superstep, O(|V| + |E|); 8 bytes a vertex and two
//! signals.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Globals, Mode, Program, Sum, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::info::{Info, Run, Takes};
use crate::pagerank::sum_of_scores;
use crate::parameter::{Accepts, ParameterInfo};
use crate::request::{Finished, Request, checked_tolerance};
use crate::{Error, Result};

/// The default tolerance.
const TOLERANCE: f64 = 1e-6;
/// The default limit of supersteps.
const SUPERSTEPS: u64 = 1000;

const ALPHA: ParameterInfo = ParameterInfo {
    name: "alpha",
    values: Accepts::Number(0.1),
    meaning: "attenuation factor, below 1 / the largest eigenvalue",
};
const BETA: ParameterInfo = ParameterInfo {
    name: "beta",
    values: Accepts::Number(1.0),
    meaning: "value of a vertex without incoming edges",
};
const VARIANT: ParameterInfo = ParameterInfo {
    name: "variant",
    values: Accepts::Words(&["normalized", "unnormalized"]),
    meaning: "normalized: the squares sum to 1; unnormalized: weighted numbers of walks",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "katz",
    computes: "Katz centrality: walks to a vertex, each walk of k edges weighted by alpha^k",
    column: "katz",
    takes: Takes { tolerance: Some(TOLERANCE), ..Takes::ITERATION },
    parameters: &[ALPHA, BETA, VARIANT],
    run: Run::Vertices(run),
    plan: |planner| {
        let program = program(planner.request)?;
        let most = planner.request.max_supersteps.unwrap_or(SUPERSTEPS);
        // The eigenvalue is unknown; if alpha is half of its inverse, each superstep halves the
        // change.
        let supersteps = if program.tolerance > 0.0 { most.min(20) } else { most };
        let guessed = program.tolerance > 0.0;
        planner.program(&program, Steps { guessed, ..Steps::exactly(supersteps) })
    },
};

/// Katz centrality.
#[derive(Debug, Clone, Copy)]
pub struct Katz {
    alpha: f64,
    beta: f64,
    tolerance: f64,
}

impl Katz {
    /// The program; `tolerance` is at least 0, and 0 disables early stopping.
    ///
    /// # Errors
    /// A message, if the tolerance is out of range.
    pub fn new(alpha: f64, beta: f64, tolerance: f64) -> Result<Self, String> {
        Ok(Self { alpha, beta, tolerance: checked_tolerance(tolerance)? })
    }
}

impl Program for Katz {
    type State = f64;
    type Combiner = Add<f64>;
    /// The L1 change of all entries.
    type Aggregate = Sum;
    const MODE: Mode = Mode::Full;

    fn initial(&self, _: Vertex, _: &Globals<Sum>) -> f64 {
        0.0
    }

    fn signal(&self, _: Vertex, entry: f64) -> f64 {
        entry
    }

    #[inline]
    fn along(&self, signal: f64, weight: f64) -> f64 {
        signal * weight
    }

    #[inline]
    fn collect(&self, _: Vertex, _: f64, sum: f64, _: &Globals<Sum>) -> f64 {
        self.alpha * sum + self.beta
    }

    #[inline]
    fn aggregate(&self, _: Vertex, old: f64, new: f64) -> Sum {
        Sum((new - old).abs())
    }

    fn converged(&self, globals: &Globals<Sum>) -> bool {
        let change = globals.aggregate.0 / globals.vertices as f64;
        self.tolerance > 0.0 && globals.superstep > 0 && change <= self.tolerance
    }
}

fn program(request: &Request) -> Result<Katz> {
    let (alpha, beta) = (ALPHA.number(request)?, BETA.number(request)?);
    Katz::new(alpha, beta, request.tolerance.unwrap_or(TOLERANCE)).map_err(Error::Usage)
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let variant = VARIANT.word(request)?;
    let program = program(request)?;
    let output = request.run(&program, SUPERSTEPS, graph, resources)?;
    // If there is no isolated vertex, this entry is unused.
    let isolated = output.isolated.value().unwrap_or(0.0);
    let alone = (graph.vertices() - graph.connected()) as f64;
    let squares = sum_of_scores(&output.states, |entry: f64| entry * entry)?;
    let norm = (squares + alone * isolated * isolated).sqrt();
    if !norm.is_finite() {
        let problem = format!(
            "the sums over walks exceed a 64-bit float with alpha {} and beta {}: alpha must be \
             below 1 / the largest eigenvalue of the graph; use a smaller alpha or beta",
            program.alpha, program.beta
        );
        return Err(Error::Usage(problem));
    }
    // If beta is 0, all entries are 0.
    let whole = if variant == "normalized" && norm > 0.0 { norm } else { 1.0 };
    let values = Values::floats(
        output.states,
        move |entry: f64| Some(entry / whole),
        move |_| Some(isolated / whole),
    );
    Finished::new(graph, "katz", values.without_nulls(), output.stats, variant)
}
