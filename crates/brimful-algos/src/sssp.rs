//! Shortest paths from one vertex, or from the nearest of several.
//!
//! Returns for each vertex the least sum of weights of a path from a source (`distance`, float64),
//! or null if there is no path. Without weights each edge counts 1. Weights must not be negative. A
//! vertex that is reached only by paths longer than the largest f64, about 1.8e308, is an error,
//! because it would appear unreachable. State, signal and sum: the distance found so far, f64.
//! Label correcting (Bellman 1958, Ford 1956): a vertex signals when its distance shrinks. The
//! number of supersteps is about the number of edges of the longest shortest path. Exact except for
//! rounding: a distance is the sum of the weights in the order of the path.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Globals, Min, Mode, Program, Values, Vertex};
use brimful_graph::Graph;
use brimful_graph::codec::WeightType;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::Result;
use crate::info::{Info, Run, Takes};
use crate::out_weights::AT_ONCE;
use crate::request::{Finished, Request, shown};
use crate::sources::Sources;

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "sssp",
    computes: "shortest paths along edges from the nearest source: the least sum of weights, or \
               the fewest edges",
    column: "distance",
    takes: Takes { source: true, weights: true, asynchronous: true, ..Takes::PROGRAM },
    parameters: &[],
    run: Run::Vertices(run),
    // A weighted search takes 1.5 times the supersteps of an unweighted one, and twice the passes.
    plan: |planner| {
        let steps =
            if planner.request.weighted { Steps::about(12, 6.0) } else { Steps::about(8, 3.0) };
        planner.program(&ShortestPaths { sources: 0.into() }, planner.spreading(steps)?)
    },
};

/// The program: label correcting from several sources.
#[derive(Debug, Clone)]
pub struct ShortestPaths {
    /// The vertices at distance 0.
    pub sources: Sources,
}

impl Program for ShortestPaths {
    type State = f64;
    type Combiner = Min<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const ASYNCHRONOUS: bool = true;
    const KEEPS_SILENCE: bool = true;
    const ORDERED: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> f64 {
        if self.sources.contains(vertex.id) { 0.0 } else { f64::INFINITY }
    }

    fn signal(&self, _: Vertex, distance: f64) -> f64 {
        distance
    }

    #[inline]
    fn along(&self, distance: f64, weight: f64) -> f64 {
        distance + weight
    }

    #[inline]
    fn collect(&self, _: Vertex, distance: f64, least: f64, _: &Globals<()>) -> f64 {
        if least < distance { least } else { distance }
    }

    #[inline]
    fn before(&self, one: f64, other: f64) -> bool {
        one < other
    }

    /// Near vertices first: their distances are more likely to be final.
    fn urgency(&self, distance: f64) -> f64 {
        1.0 / (1.0 + distance)
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    request.refuse_negative_weights(graph, &resources.job)?;
    let sources = request.sources(graph, &resources.job)?;
    let output =
        request.run(&ShortestPaths { sources: sources.clone() }, u64::MAX, graph, resources)?;
    if request.weighted {
        refuse_overflow(graph, &output.states, resources)?;
    }
    let distance = |distance: f64| distance.is_finite().then_some(distance);
    let values = Values::floats(output.states, distance, move |id_offset| {
        sources.has_isolated(id_offset).then_some(0.0)
    });
    Finished::new(
        graph,
        "distance",
        values,
        output.stats,
        if request.weighted { "weighted" } else { "unit" },
    )
}

/// Refuses infinite distances of reachable vertices: an infinite target of an edge whose source has
/// a finite distance.
fn refuse_overflow(
    graph: &Graph,
    distances: &ScratchArray<f64>,
    resources: &Resources,
) -> Result<()> {
    let heaviest = graph.description().weights.map_or(0.0, |range| range.max);
    if (heaviest * graph.connected() as f64).is_finite() {
        return Ok(());
    }
    let (mut farthest, mut part) = (0.0_f64, vec![0.0; AT_ONCE.min(distances.len())]);
    for start in (0..distances.len()).step_by(AT_ONCE) {
        let count = part.len().min(distances.len() - start);
        distances.read(start, &mut part[..count])?;
        farthest = part[..count].iter().copied().filter(|d| d.is_finite()).fold(farthest, f64::max);
    }
    let distance = |vertex: u64| -> brimful_graph::Result<f64> {
        let mut one = [0.0];
        distances.read(vertex as usize, &mut one)?;
        Ok(one[0])
    };
    // Weights of narrower types are too small to change a distance near the largest f64.
    let found = graph.find_edge(&[WeightType::F64], &resources.job, |source, target, weight| {
        if (farthest + weight).is_finite() {
            return Ok(false);
        }
        let reached = distance(source)?;
        Ok(reached.is_finite()
            && (reached + weight).is_infinite()
            && distance(target)?.is_infinite())
    })?;
    let Some((source, target, weight)) = found else { return Ok(()) };
    let (source, target) = (shown(graph, source)?, shown(graph, target)?);
    let problem = format!(
        "the distance of vertex {target} is more than {:e}, the largest 64-bit float: the edge \
         from {source} adds {weight:e}; divide all weights by the same number and import them \
         again",
        f64::MAX
    );
    Err(brimful_graph::Error::input(graph.path(), problem).into())
}
