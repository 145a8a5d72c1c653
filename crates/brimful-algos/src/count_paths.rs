//! Numbers of paths from one vertex, or from several.
//!
//! Returns for each vertex the number of *shortest* paths from the nearest sources (`paths`,
//! uint64; parallel edges make separate paths), 0 if there is none; with `length` = k, the number
//! of walks of k edges. A number above 2^64 - 2 is an error, and never wraps. Shortest paths: a
//! vertex adds up its first signals and signals the sum once (the forward phase of Brandes 2001);
//! one superstep a level. Walks: k supersteps over all edges.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Count, Globals, Mode, Output, Program, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::request::{Finished, Request};
use crate::sources::Sources;
use crate::{Error, Result};

const LENGTH: ParameterInfo = ParameterInfo {
    name: "length",
    values: Accepts::CountOrNone("shortest paths"),
    meaning: "count walks of this many edges",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "count_paths",
    computes: "number of shortest paths along edges from the nearest sources, or of walks of a \
               given length",
    column: "paths",
    takes: Takes { source: true, ..Takes::PROGRAM },
    parameters: &[LENGTH],
    run: Run::Vertices(run),
    plan: |planner| match LENGTH.count_or_none(planner.request)? {
        Some(length) => planner.program(&WalkCounts { sources: 0.into() }, Steps::exactly(length)),
        None => planner.program(
            &ShortestPathCounts { sources: 0.into() },
            planner.spreading(Steps::about(8, 3.0))?,
        ),
    },
};

/// Counts shortest paths. State and signal: the number of paths; 0: none found yet; all ones: too
/// many.
#[derive(Debug, Clone)]
pub struct ShortestPathCounts {
    /// The vertices at which paths begin.
    pub sources: Sources,
}

impl Program for ShortestPathCounts {
    type State = u64;
    type Combiner = Add<u64>;
    /// Vertices with too many paths.
    type Aggregate = Count;
    const MODE: Mode = Mode::Delta;
    const KEEPS_SILENCE: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<Count>) -> u64 {
        u64::from(self.sources.contains(vertex.id))
    }

    fn signal(&self, _: Vertex, paths: u64) -> u64 {
        paths
    }

    fn collect(&self, _: Vertex, paths: u64, sum: u64, _: &Globals<Count>) -> u64 {
        if paths == 0 { sum } else { paths }
    }

    fn aggregate(&self, _: Vertex, _: u64, new: u64) -> Count {
        Count(u64::from(new == u64::MAX))
    }

    fn converged(&self, globals: &Globals<Count>) -> bool {
        globals.aggregate.0 > 0
    }
}

/// Counts walks: after k supersteps, a state is the number of walks of k edges.
#[derive(Debug, Clone)]
pub struct WalkCounts {
    /// The vertices at which walks begin.
    pub sources: Sources,
}

impl Program for WalkCounts {
    type State = u64;
    type Combiner = Add<u64>;
    /// Vertices with too many walks.
    type Aggregate = Count;
    const MODE: Mode = Mode::Full;

    fn initial(&self, vertex: Vertex, _: &Globals<Count>) -> u64 {
        u64::from(self.sources.contains(vertex.id))
    }

    fn signal(&self, _: Vertex, walks: u64) -> u64 {
        walks
    }

    fn collect(&self, _: Vertex, _: u64, sum: u64, _: &Globals<Count>) -> u64 {
        sum
    }

    fn aggregate(&self, _: Vertex, _: u64, new: u64) -> Count {
        Count(u64::from(new == u64::MAX))
    }

    fn converged(&self, globals: &Globals<Count>) -> bool {
        globals.aggregate.0 > 0
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let sources = request.sources(graph, &resources.job)?;
    let Some(length) = LENGTH.count_or_none(request)? else {
        let program = ShortestPathCounts { sources: sources.clone() };
        let output = checked(request.run(&program, u64::MAX, graph, resources)?)?;
        let own = move |id_offset| Some(u64::from(sources.has_isolated(id_offset)));
        let values = Values::unsigned(output.states, Some, own).without_nulls();
        return Finished::new(graph, "paths", values, output.stats, "shortest");
    };
    if request.max_supersteps.is_some() {
        let problem = "--param length=K and --max-supersteps both set the number of supersteps; \
                       give only one of them";
        return Err(Error::Usage(problem.into()));
    }
    let output = checked(request.run_all(
        &WalkCounts { sources: sources.clone() },
        length,
        graph,
        resources,
    )?)?;
    let own = move |id_offset| Some(u64::from(length == 0 && sources.has_isolated(id_offset)));
    let values = Values::unsigned(output.states, Some, own).without_nulls();
    Finished::new(graph, "paths", values, output.stats, "walks")
}

/// Refuses numbers that overflowed.
fn checked<P: Program<Aggregate = Count>>(output: Output<P>) -> Result<Output<P>> {
    if output.aggregate.0 == 0 {
        return Ok(output);
    }
    let superstep = output.stats.supersteps;
    let problem = format!("more than 2^64 - 2 paths of {superstep} edges lead to one vertex");
    Err(brimful_engine::Error::Program(problem).into())
}
