//! PageRank by power iteration; with the method *delta*, by increments (`crate::pagerank::delta`).
//!
//! Returns one score per vertex. Two variants, never mixed:
//! - *normalized* (LDBC Graphalytics; Brin and Page 1998 with the mass of sinks spread evenly):
//!   scores sum to 1; start 1/|V|; score = (1-d)/|V| + d * (sum of in-signals + mass of sinks /
//!   |V|). Stops at an L1 change of at most the tolerance.
//! - *unnormalized* (Signal/Collect's; *Making Signal/Collect Scale*, section 4): start 1-d; score
//!   = (1-d) + d * sum; sinks keep their score. Stops at an L1 change per vertex of at most the
//!   tolerance.
//!
//! *Personalized* (Page, Brin, Motwani and Winograd 1999, section 6; normalized only): 1/|V| is
//! replaced by 1/k for each of k sources, or by its share of the weights of all sources, and by 0
//! for other vertices, so that both (1-d) and the mass of sinks go to the sources only.
//!
//! State: the score, f64. Signal: score / out-degree (with weights: score / sum of outgoing
//! weights, times the weight of the edge), f64, or f32 for `--precision f32`. Each f32 signal has a
//! relative rounding error of at most 2^-24 (with weights twice that), and so has, to first order,
//! each score; sums and scores stay f64. One pass over the edges a superstep, O(|V| + |E|).

pub mod delta;

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::vertex::combiner::Addend;
use brimful_engine::{Add, Globals, Mode, Program, Sum, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use crate::info::{Info, Run, Takes};
use crate::out_weights::{self, AT_ONCE, Exponents};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{Planner, supersteps_of_a_power};
use crate::request::{Finished, Request, checked_tolerance};
use crate::sources::Sources;
use crate::{Error, Result};
use delta::DeltaPageRank;

/// The default tolerance.
const TOLERANCE: f64 = 1e-6;
/// The default limit of supersteps.
pub(crate) const SUPERSTEPS: u64 = 100;

/// The largest deviation from 1 of the sum of normalized scores. Rounding, even of 32-bit signals,
/// stays far below it.
const SUM_TOLERANCE: f64 = 1e-4;

const DAMPING: ParameterInfo = ParameterInfo {
    name: "damping",
    values: Accepts::Number(0.85),
    meaning: "probability of following an edge, 0 to 1",
};
const VARIANT: ParameterInfo = ParameterInfo {
    name: "variant",
    values: Accepts::Words(&["normalized", "unnormalized"]),
    meaning: "normalized: scores sum to 1; unnormalized: as Signal/Collect",
};
const METHOD: ParameterInfo = ParameterInfo {
    name: "method",
    values: Accepts::Words(&["power", "delta"]),
    meaning: "power: every vertex signals in every superstep; delta: increments above the \
              tolerance",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "pagerank",
    computes: "PageRank: normalized (scores sum to 1), personalized with sources, or unnormalized \
               (Signal/Collect's)",
    column: "pagerank",
    takes: Takes {
        source: true,
        source_weights: true,
        pairs: false,
        tolerance: Some(TOLERANCE),
        precision: true,
        weights: true,
        asynchronous: true,
        stores: true,
        cluster: true,
        checkpoints: true,
    },
    parameters: &[DAMPING, VARIANT, METHOD],
    run: Run::Vertices(|request, graph, resources| match request.narrow {
        true => run::<f32>(request, graph, resources),
        false => run::<f64>(request, graph, resources),
    }),
    plan: |planner| match planner.request.narrow {
        true => plan::<f32>(planner),
        false => plan::<f64>(planner),
    },
};

/// The variant of PageRank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Scores sum to 1.
    Normalized,
    /// Scores sum to at most |V|.
    Unnormalized,
}

impl Variant {
    /// The name of the variant.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normalized => "normalized",
            Self::Unnormalized => "unnormalized",
        }
    }
}

/// The precision of a signal.
pub trait Precision: Addend<Sum = f64> + 'static {
    /// The exponents of signals of this precision.
    const EXPONENTS: Exponents;
    /// Rounds `value` to this precision.
    fn from_f64(value: f64) -> Self;
    /// The same number as an f64.
    fn to_f64(self) -> f64;
}

impl Precision for f64 {
    const EXPONENTS: Exponents =
        Exponents { min_normal: Self::MIN_EXP - 1, max_normal: Self::MAX_EXP - 1, min_scale: -500 };
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

impl Precision for f32 {
    const EXPONENTS: Exponents =
        Exponents { min_normal: Self::MIN_EXP - 1, max_normal: Self::MAX_EXP - 1, min_scale: -40 };
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

/// PageRank with signals of type `S`.
#[derive(Debug, Clone)]
pub struct PageRank<S> {
    variant: Variant,
    damping: f64,
    tolerance: f64,
    asynchronous: bool,
    personal: Option<Personal>,
    /// Powers of two by which signals and sums are multiplied.
    scales: (f64, f64),
    precision: PhantomData<S>,
}

/// The start vector of personalized PageRank.
///
/// Vertices without edges share one state. If some of them are sources, the shared state is that of
/// a source with the mean of their weights. The result gives each of these sources its part of the
/// shared state, and the change counts once for each of them.
#[derive(Debug, Clone)]
struct Personal {
    sources: Sources,
    /// The start score of a source of weight 1.
    share: f64,
    /// Number of vertices with edges.
    connected: u64,
    /// The mean weight of sources without edges, 0 if there are none.
    mean: f64,
    /// The fraction of the vertices without edges that are sources.
    isolated: f64,
}

impl Personal {
    fn new(sources: Sources, graph: &Graph) -> Self {
        let (connected, share) = (graph.connected(), 1.0 / sources.count() as f64);
        let [_, weights] = sources.weights();
        let mean = if sources.isolated() == 0 { 0.0 } else { weights / sources.isolated() as f64 };
        let isolated = sources.isolated() as f64 / (graph.vertices() - connected).max(1) as f64;
        Self { sources, share, connected, mean, isolated }
    }

    /// The start score of a vertex.
    fn begins(&self, vertex: Vertex) -> f64 {
        let weight = match vertex.id < self.connected {
            true => self.sources.weight(vertex.id),
            false => self.mean,
        };
        weight * self.share
    }

    /// The part of the shared state that belongs to the vertex without edges at this offset.
    fn part(&self, id_offset: u64) -> f64 {
        // If the mean is 0, the shared state is 0.
        if self.mean == 0.0 { 0.0 } else { self.sources.isolated_weight(id_offset) / self.mean }
    }
}

/// The parameters of a request.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) variant: Variant,
    pub(crate) damping: f64,
    pub(crate) tolerance: f64,
    pub(crate) sources: Option<Sources>,
}

impl<S: Precision> PageRank<S> {
    /// The program; `damping` is in [0, 1], and `tolerance` is at least 0; 0 disables early
    /// stopping.
    ///
    /// # Errors
    /// A message, if a parameter is out of range.
    pub fn new(variant: Variant, damping: f64, tolerance: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&damping) {
            return Err(format!("damping must be between 0 and 1, not {damping}"));
        }
        Ok(Self {
            variant,
            damping,
            tolerance: checked_tolerance(tolerance)?,
            asynchronous: false,
            personal: None,
            scales: (1.0, 1.0),
            precision: PhantomData,
        })
    }

    /// Personalizes the rank: it starts at `sources` of `graph` only, and the mass of sinks returns
    /// to them. The variant becomes normalized.
    #[must_use]
    pub fn from_sources(self, sources: Sources, graph: &Graph) -> Self {
        let personal = Some(Personal::new(sources, graph));
        Self { variant: Variant::Normalized, personal, ..self }
    }

    /// The program for an asynchronous run.
    #[must_use]
    pub fn asynchronous(self) -> Self {
        Self { asynchronous: true, ..self }
    }

    /// Multiplies signals by `scale`, a power of two; the bits of the scores do not change.
    fn scaled(self, scale: f64) -> Self {
        Self { scales: (scale, 1.0 / scale), ..self }
    }

    /// The factor of all scores of the previous superstep that makes their sum 1, and then the mass
    /// of sinks. In supersteps the sum is 1, so sinks have the rest of the other vertices' sum,
    /// including the loss of 32-bit signals. A sweep changes the sum, and without the factor the
    /// difference would be the last to converge.
    #[inline]
    fn masses(&self, globals: &Globals<Masses>) -> (f64, f64) {
        let (Sum(others), Sum(all), _) = globals.aggregate;
        match self.asynchronous && self.variant == Variant::Normalized && all > 0.0 {
            true => (1.0 / all, 1.0 - others / all),
            false => (1.0, 1.0 - others),
        }
    }
}

/// The mass of vertices with out-edges and that of all vertices, and the L1 change.
type Masses = (Sum, Sum, Sum);

impl<S: Precision> Program for PageRank<S> {
    type State = f64;
    type Combiner = Add<S>;
    type Aggregate = Masses;

    const MODE: Mode = Mode::Full;
    const ASYNCHRONOUS: bool = true;

    fn needs_degrees(&self) -> bool {
        true
    }

    fn initial(&self, vertex: Vertex, globals: &Globals<Masses>) -> f64 {
        if let Some(personal) = &self.personal {
            return personal.begins(vertex);
        }
        match self.variant {
            Variant::Normalized => 1.0 / globals.vertices as f64,
            Variant::Unnormalized => 1.0 - self.damping,
        }
    }

    #[inline]
    fn signal(&self, vertex: Vertex, score: f64) -> S {
        // A sink has no target; the aggregate accounts for its score.
        S::from_f64(if vertex.strength == 0.0 {
            0.0
        } else {
            score * self.scales.0 / vertex.strength
        })
    }

    #[inline]
    fn along(&self, signal: S, weight: f64) -> S {
        S::from_f64(signal.to_f64() * weight)
    }

    #[inline]
    fn collect(&self, vertex: Vertex, _: f64, sum: f64, globals: &Globals<Masses>) -> f64 {
        let (factor, sinks) = self.masses(globals);
        let sum = sum * self.scales.1 * factor;
        if let Some(personal) = &self.personal {
            let begins = personal.begins(vertex);
            return begins * (1.0 - self.damping) + self.damping * (sum + begins * sinks);
        }
        match self.variant {
            Variant::Normalized => {
                let n = globals.vertices as f64;
                (1.0 - self.damping) / n + self.damping * (sum + sinks / n)
            }
            Variant::Unnormalized => (1.0 - self.damping) + self.damping * sum,
        }
    }

    #[inline]
    fn aggregate(&self, vertex: Vertex, old: f64, new: f64) -> Masses {
        // Of the vertices that share a state, some may be sources and have a score.
        let fraction = match &self.personal {
            Some(personal) if vertex.id >= personal.connected => personal.isolated,
            _ => 1.0,
        };
        let others = if vertex.strength == 0.0 { 0.0 } else { new };
        (Sum(others), Sum(new * fraction), Sum((new - old).abs() * fraction))
    }

    fn signal_score(&self, old: f64, new: f64) -> f64 {
        (new - old).abs()
    }

    fn converged(&self, globals: &Globals<Masses>) -> bool {
        let (_, _, Sum(change)) = globals.aggregate;
        let change = match self.variant {
            Variant::Normalized => change,
            Variant::Unnormalized => change / globals.vertices as f64,
        };
        self.tolerance > 0.0 && change <= self.tolerance
    }
}

/// The parameters without sources; and true if the method is by increments.
fn settings<S: Precision>(request: &Request) -> Result<(Settings, bool)> {
    let variant = match VARIANT.word(request)? {
        "normalized" => Variant::Normalized,
        _ => Variant::Unnormalized,
    };
    let (damping, tolerance) = (DAMPING.number(request)?, request.tolerance.unwrap_or(TOLERANCE));
    PageRank::<S>::new(variant, damping, tolerance).map_err(Error::Usage)?;
    if !request.sources.is_empty() && variant == Variant::Unnormalized {
        return Err(Error::Usage(
            "personalized PageRank is normalized: leave out --source or --param variant".into(),
        ));
    }
    let mut by_increments = METHOD.word(request)? == "delta";
    if request.asynchronous && request.store.is_some() && !by_increments {
        if METHOD.is_given(request) {
            return Err(Error::Usage(
                "the method power needs supersteps, which the asynchronous mode on a store lacks; \
                 leave it out"
                    .into(),
            ));
        }
        by_increments = true;
    }
    Ok((Settings { variant, damping, tolerance, sources: None }, by_increments))
}

/// A superstep shrinks the change at least by the damping factor, which bounds the supersteps.
/// Power iteration needs about a third of the bound: R-MAT graphs take 16 to 18 supersteps of 89.
/// The method by increments needs the whole bound, because each increment must become small.
fn plan<S: Precision>(planner: &Planner<'_>) -> Result<Forecast> {
    let (Settings { variant, damping, tolerance, .. }, by_increments) =
        settings::<S>(planner.request)?;
    let most = planner.request.max_supersteps.unwrap_or(SUPERSTEPS);
    let bound = supersteps_of_a_power(damping, tolerance, u64::MAX);
    if by_increments {
        let program = DeltaPageRank::<S>::new(damping, None, 1).map_err(Error::Usage)?;
        let supersteps = bound.min(most);
        return planner.program(&program, Steps::about(supersteps, supersteps as f64));
    }
    let program = PageRank::<S>::new(variant, damping, tolerance).map_err(Error::Usage)?;
    let supersteps = if tolerance == 0.0 { most } else { bound.div_ceil(3).min(most) };
    planner.program(&program, Steps { guessed: tolerance > 0.0, ..Steps::exactly(supersteps) })
}

fn run<S: Precision>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let (settings, by_increments) = settings::<S>(request)?;
    let sources = (!request.sources.is_empty())
        .then(|| request.sources(graph, &resources.job))
        .transpose()?;
    if by_increments {
        if !METHOD.is_given(request) && request.asynchronous && request.store.is_some() {
            resources.job.say(
                "the method power needs supersteps, which the asynchronous mode on a store lacks; \
                 PageRank runs by increments (method=delta)",
            );
        }
        return delta::run_request::<S>(
            request,
            &Settings { sources, ..settings },
            graph,
            resources,
        );
    }
    let Settings { variant, damping, tolerance, .. } = settings;
    let scale = out_weights::scale(request, graph, S::EXPONENTS, &resources.job)?;
    let program =
        PageRank::<S>::new(variant, damping, tolerance).map_err(Error::Usage)?.scaled(scale);
    let program = if request.asynchronous { program.asynchronous() } else { program };
    let program = match &sources {
        Some(sources) => program.from_sources(sources.clone(), graph),
        None => program,
    };
    let output = request.run(&program, SUPERSTEPS, graph, resources)?;
    // If there is no isolated vertex, this score is unused.
    let isolated = output.isolated.value().unwrap_or(0.0);
    let alone = sources.as_ref().map_or(graph.vertices() - graph.connected(), Sources::isolated);
    let elsewhere = alone as f64 * isolated;
    let personal = program.personal;
    let own = move |id_offset| {
        personal.as_ref().map_or(1.0, |personal| personal.part(id_offset)) * isolated
    };
    let whole = sum_of_scores(&output.states, |score: f64| score)? + elsewhere;
    // The scores of asynchronous sweeps sum to 1 only once they have converged.
    let expected = (variant == Variant::Normalized && !request.asynchronous).then_some(1.0);
    check_sum(graph, whole, expected)?;
    let values =
        Values::floats(output.states, Some, move |id_offset| Some(own(id_offset))).without_nulls();
    Finished::new(graph, "pagerank", values, output.stats, variant.name())
}

/// The sum of the scores in `states`, in internal order.
pub(crate) fn sum_of_scores<T: Pod + Send>(
    states: &ScratchArray<T>,
    score: impl Fn(T) -> f64,
) -> Result<f64> {
    let (mut start, mut sum) = (0, 0.0);
    let mut part = vec![T::zeroed(); AT_ONCE.min(states.len())];
    while start < states.len() {
        let count = part.len().min(states.len() - start);
        states.read(start, &mut part[..count])?;
        sum += part[..count].iter().map(|state| score(*state)).sum::<f64>();
        start += count;
    }
    Ok(sum)
}

/// Refuses scores that are not finite, or whose sum is wrong, because extreme weights may overflow.
pub(crate) fn check_sum(graph: &Graph, sum: f64, expected: Option<f64>) -> Result<()> {
    if sum.is_finite() && expected.is_none_or(|expected| (sum - expected).abs() <= SUM_TOLERANCE) {
        return Ok(());
    }
    let expected = expected.map_or("a finite number".to_owned(), |expected| expected.to_string());
    let problem = format!(
        "the scores add up to {sum} instead of {expected}: these weights cannot be ranked in this \
         precision; use weights that lie closer together"
    );
    Err(brimful_graph::Error::input(graph.path(), problem).into())
}
