//! Hubs and authorities.
//!
//! Returns for each vertex its authority, or its hub score (`authority` or `hub`, float64). With A
//! the matrix of arcs from rows to columns, with multiplicity or weights, the scores are the limits
//! of a = A^T h and h = A a, each divided by its sum after every step, from h = 1/|V| (Kleinberg,
//! *Authoritative Sources in a Hyperlinked Environment*, 1999, section 3). Scores of either kind
//! sum to 1; without a weight above 0 all are 0. If several vectors belong to the greatest singular
//! value of A, the limit is the one nearest to the start. Weights must not be negative.
//!
//! Supersteps alternate: odd ones compute authorities, along edges; even ones compute hubs, against
//! them. The run stops when the scores that a superstep reads, hubs or authorities, have an L1
//! distance of at most the tolerance from the scores of two supersteps before. State: the new
//! score, not yet divided by the sum over all vertices, which the aggregate supplies; and the last
//! two scores. Signal: the new score, f64. A superstep reads one of the two indexes, so all edges
//! in one direction; convergence is linear in the square of the ratio of the two greatest singular
//! values.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Globals, Mode, Program, Sum, Values, Vertex};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::pagerank::{check_sum, sum_of_scores};
use crate::parameter::{Accepts, ParameterInfo};
use crate::request::{Finished, Request, checked_tolerance};
use crate::{Result, out_weights};

/// The default tolerance.
const TOLERANCE: f64 = 1e-8;
/// The default limit of supersteps.
const SUPERSTEPS: u64 = 200;

const VALUES: ParameterInfo = ParameterInfo {
    name: "values",
    values: Accepts::Words(&["authority", "hub"]),
    meaning: "the score that the result contains",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "hits",
    computes: "hubs and authorities: good hubs lead to good authorities; each kind sums to 1",
    column: "authority",
    takes: Takes { tolerance: Some(TOLERANCE), ..Takes::ITERATION },
    parameters: &[VALUES],
    run: Run::Vertices(run),
    plan: |planner| {
        let tolerance = planner.request.tolerance.unwrap_or(TOLERANCE);
        let program = HubsAndAuthorities::new(tolerance).map_err(brimful_engine::Error::Usage)?;
        // On R-MAT graphs, two supersteps shrink the change by at least a tenth. Each superstep
        // reads one of two indexes.
        let supersteps = if tolerance > 0.0 { SUPERSTEPS.min(30) } else { SUPERSTEPS };
        let supersteps = planner
            .request
            .max_supersteps
            .map_or(supersteps, |most| if tolerance > 0.0 { supersteps.min(most) } else { most });
        let steps = Steps::about(supersteps, supersteps as f64 / 2.0);
        planner.program(&program, Steps { guessed: tolerance > 0.0, ..steps })
    },
};

/// Scores of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Scores {
    /// Computed in this superstep, not yet divided by the sum.
    pub raw: f64,
    /// The score of the other kind, of the previous superstep.
    pub before: f64,
    /// The score of the kind of `raw`, of two supersteps before.
    pub last: f64,
}

/// Hubs and authorities.
#[derive(Debug, Clone, Copy)]
pub struct HubsAndAuthorities {
    tolerance: f64,
    /// The factor of weights: a power of two, so that their sums neither overflow nor vanish.
    scale: f64,
}

impl HubsAndAuthorities {
    /// The program; `tolerance` is at least 0, and 0 disables early stopping.
    ///
    /// # Errors
    /// A message, if the tolerance is out of range.
    pub fn new(tolerance: f64) -> Result<Self, String> {
        Ok(Self { tolerance: checked_tolerance(tolerance)?, scale: 1.0 })
    }

    /// The same scores for weights of at most `greatest`: only ratios of weights matter.
    #[must_use]
    pub fn for_weights_to(self, greatest: f64) -> Self {
        Self { scale: out_weights::scale_below(greatest), ..self }
    }
}

/// Divides by a sum, which is 0 only if all parts are 0; then the share is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

impl Program for HubsAndAuthorities {
    type State = Scores;
    type Combiner = Add<f64>;
    /// The sum of raw scores, and the L1 distance of the scores read in this superstep from the
    /// last of their kind.
    type Aggregate = (Sum, Sum);
    const MODE: Mode = Mode::Full;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn walks(&self, index: Index, globals: &Globals<(Sum, Sum)>) -> bool {
        index == if globals.superstep.is_multiple_of(2) { Index::In } else { Index::Reverse }
    }

    fn initial(&self, _: Vertex, globals: &Globals<(Sum, Sum)>) -> Scores {
        Scores { raw: 1.0 / globals.vertices as f64, before: 0.0, last: 0.0 }
    }

    fn signal(&self, _: Vertex, scores: Scores) -> f64 {
        scores.raw
    }

    #[inline]
    fn along(&self, signal: f64, weight: f64) -> f64 {
        signal * (weight * self.scale)
    }

    #[inline]
    fn collect(&self, _: Vertex, old: Scores, sum: f64, globals: &Globals<(Sum, Sum)>) -> Scores {
        let (Sum(whole), _) = globals.aggregate;
        Scores { raw: share(sum, whole), before: share(old.raw, whole), last: old.before }
    }

    #[inline]
    fn aggregate(&self, _: Vertex, old: Scores, new: Scores) -> (Sum, Sum) {
        (Sum(new.raw), Sum((new.before - old.last).abs()))
    }

    fn converged(&self, globals: &Globals<(Sum, Sum)>) -> bool {
        self.tolerance > 0.0 && globals.superstep > 2 && globals.aggregate.1.0 <= self.tolerance
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let name = VALUES.word(request)?;
    request.refuse_negative_weights(graph, &resources.job)?;
    let program = HubsAndAuthorities::new(request.tolerance.unwrap_or(TOLERANCE))
        .map_err(brimful_engine::Error::Usage)?;
    let greatest = graph.description().weights.filter(|_| request.weighted).map(|range| range.max);
    let program = greatest.map_or(program, |greatest| program.for_weights_to(greatest));
    let output = request.run(&program, SUPERSTEPS, graph, resources)?;
    let (Sum(whole), _) = output.aggregate;
    let made_last = if output.stats.supersteps % 2 == 1 { "authority" } else { "hub" };
    let score = move |scores: Scores| {
        if name == made_last { share(scores.raw, whole) } else { scores.before }
    };
    // If there is no isolated vertex, this score is unused.
    let isolated = output.isolated.value().map_or(0.0, score);
    let without_edges = (graph.vertices() - graph.connected()) as f64;
    let sum = sum_of_scores(&output.states, score)? + without_edges * isolated;
    // Without edges, or if all weights are 0, all scores are 0.
    check_sum(graph, sum, Some(if sum == 0.0 { 0.0 } else { 1.0 }))?;
    let values =
        Values::floats(output.states, move |scores| Some(score(scores)), move |_| Some(isolated));
    Finished::new(graph, name, values.without_nulls(), output.stats, "sum")
}
