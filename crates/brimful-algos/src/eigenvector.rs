//! Eigenvector centrality by power iteration.
//!
//! Returns for each vertex its entry in the eigenvector of the greatest eigenvalue of A^T
//! (`eigenvector`, float64), where A is the matrix of arcs from rows to columns, with multiplicity
//! or weights: a vertex is central if central vertices lead to it (Bonacich 1987). Entries are at
//! least 0, and their squares sum to 1. If several vectors belong to that eigenvalue, this is the
//! one that the start leads to. Weights must not be negative.
//!
//! Method, as NetworkX: x = (A^T + I) x, divided by its norm, from equal entries. The eigenvectors
//! of A^T + I are those of A^T, but no other eigenvalue is as great in magnitude, so that bipartite
//! graphs converge too. Weights are multiplied by a power of two if all are below 1, because I
//! would hide A^T otherwise, or if their squares may overflow. The run stops when the L1 change of
//! x, divided by the number of vertices, is at most the tolerance. State: x, not yet divided by the
//! norm, which the aggregate supplies; and x of the superstep before. Signal: the undivided x, f64.
//! One pass over the edges a superstep, O(|V| + |E|); 16 bytes a vertex and two signals.
//! Convergence is linear in the ratio of the two greatest eigenvalues of A^T + I.

use std::ops::RangeInclusive;
use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Globals, Mode, Program, Sum, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::out_weights::scale_below;
use crate::pagerank::{check_sum, sum_of_scores};
use crate::request::{Finished, Request, checked_tolerance};
use crate::{Error, Result};

/// The default tolerance.
const TOLERANCE: f64 = 1e-6;
/// The default limit of supersteps.
const SUPERSTEPS: u64 = 100;

/// The greatest weights of graphs whose weights are taken as they are.
const USUAL: RangeInclusive<f64> = 1.0..=1e100;
/// Below this greatest weight no power of two is large enough.
const LEAST: f64 = 1e-300;

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "eigenvector",
    computes: "eigenvector centrality: edges from central vertices count more; squares sum to 1",
    column: "eigenvector",
    takes: Takes { tolerance: Some(TOLERANCE), ..Takes::ITERATION },
    parameters: &[],
    run: Run::Vertices(run),
    plan: |planner| {
        let program = program(planner.request)?;
        let most = planner.request.max_supersteps.unwrap_or(SUPERSTEPS);
        // R-MAT graphs take about 10 supersteps at the default tolerance.
        let supersteps = if program.tolerance > 0.0 { most.min(10) } else { most };
        let guessed = program.tolerance > 0.0;
        planner.program(&program, Steps { guessed, ..Steps::exactly(supersteps) })
    },
};

/// The entry of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The entry of this superstep, not yet divided by the norm.
    pub raw: f64,
    /// The entry of the superstep before, divided by the norm.
    pub before: f64,
}

/// Eigenvector centrality.
#[derive(Debug, Clone, Copy)]
pub struct Eigenvector {
    tolerance: f64,
    /// The factor of weights, which does not change the vector.
    scale: f64,
}

impl Eigenvector {
    /// The program; `tolerance` is at least 0, and 0 disables early stopping.
    ///
    /// # Errors
    /// A message, if the tolerance is out of range.
    pub fn new(tolerance: f64) -> Result<Self, String> {
        Ok(Self { tolerance: checked_tolerance(tolerance)?, scale: 1.0 })
    }

    /// The same entries for weights of at most `greatest`.
    #[must_use]
    pub fn for_weights_to(self, greatest: f64) -> Self {
        let scale = if USUAL.contains(&greatest) { 1.0 } else { scale_below(greatest) };
        Self { scale, ..self }
    }
}

impl Program for Eigenvector {
    type State = Entry;
    type Combiner = Add<f64>;
    /// The sum of the squares of raw entries, and the L1 distance of the entries read in this
    /// superstep from those of the superstep before.
    type Aggregate = (Sum, Sum);
    const MODE: Mode = Mode::Full;

    fn initial(&self, _: Vertex, globals: &Globals<(Sum, Sum)>) -> Entry {
        Entry { raw: 1.0 / globals.vertices as f64, before: 0.0 }
    }

    fn signal(&self, _: Vertex, entry: Entry) -> f64 {
        entry.raw
    }

    #[inline]
    fn along(&self, signal: f64, weight: f64) -> f64 {
        signal * (weight * self.scale)
    }

    #[inline]
    fn collect(&self, _: Vertex, old: Entry, sum: f64, globals: &Globals<(Sum, Sum)>) -> Entry {
        let norm = globals.aggregate.0.0.sqrt();
        Entry { raw: (old.raw + sum) / norm, before: old.raw / norm }
    }

    #[inline]
    fn aggregate(&self, _: Vertex, old: Entry, new: Entry) -> (Sum, Sum) {
        (Sum(new.raw * new.raw), Sum((new.before - old.before).abs()))
    }

    fn converged(&self, globals: &Globals<(Sum, Sum)>) -> bool {
        let change = globals.aggregate.1.0 / globals.vertices as f64;
        self.tolerance > 0.0 && globals.superstep > 1 && change <= self.tolerance
    }
}

fn program(request: &Request) -> Result<Eigenvector> {
    Eigenvector::new(request.tolerance.unwrap_or(TOLERANCE)).map_err(Error::Usage)
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    request.refuse_negative_weights(graph, &resources.job)?;
    let program = match graph.description().weights.filter(|_| request.weighted) {
        Some(range) if range.max > 0.0 && range.max < LEAST => {
            let problem = format!(
                "its largest weight is {:e}, too small for eigenvector; multiply all weights by \
                 the same number, which changes no score",
                range.max
            );
            return Err(brimful_graph::Error::input(graph.path(), problem).into());
        }
        Some(range) => program(request)?.for_weights_to(range.max),
        None => program(request)?,
    };
    let output = request.run(&program, SUPERSTEPS, graph, resources)?;
    let norm = output.aggregate.0.0.sqrt();
    let entry = move |entry: Entry| entry.raw / norm;
    // If there is no isolated vertex, this entry is unused.
    let isolated = output.isolated.value().map_or(0.0, entry);
    check_sum(graph, sum_of_scores(&output.states, entry)? + isolated, None)?;
    let values =
        Values::floats(output.states, move |state| Some(entry(state)), move |_| Some(isolated));
    Finished::new(graph, "eigenvector", values.without_nulls(), output.stats, "norm")
}
