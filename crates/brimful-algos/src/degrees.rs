//! Degrees.
//!
//! Returns for each vertex its number of outgoing arcs, incoming arcs, or both (`degree`, int64),
//! including parallel ones; a self-loop counts once in each direction. A run takes one superstep
//! over all edges if incoming arcs count, else none.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Globals, Mode, Program, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::Result;
use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::request::{Finished, Request};

const DIRECTION: ParameterInfo = ParameterInfo {
    name: "direction",
    values: Accepts::Words(&["out", "in", "both"]),
    meaning: "which arcs of a vertex count",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "degrees",
    computes: "numbers of outgoing or incoming arcs, with multiplicity",
    column: "degree",
    takes: Takes::PROGRAM,
    parameters: &[DIRECTION],
    run: Run::Vertices(run),
    plan: |planner| {
        let (_, program, supersteps) = chosen(planner.request)?;
        planner.program(&program, Steps::exactly(supersteps))
    },
};

/// Adds incoming to outgoing arcs. State: arcs counted so far; signal: 1.
#[derive(Debug, Clone, Copy)]
pub struct Degrees {
    /// True: the state starts with the number of outgoing arcs; false: with 0.
    pub outgoing: bool,
}

impl Program for Degrees {
    type State = u64;
    type Combiner = Add<u64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Full;

    fn needs_degrees(&self) -> bool {
        true
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> u64 {
        if self.outgoing { vertex.degree } else { 0 }
    }

    fn signal(&self, _: Vertex, _: u64) -> u64 {
        1
    }

    fn collect(&self, _: Vertex, degree: u64, sum: u64, _: &Globals<()>) -> u64 {
        degree + sum
    }
}

/// The requested direction, the program and its number of supersteps.
fn chosen(request: &Request) -> Result<(&'static str, Degrees, u64)> {
    request.refuse_max_supersteps()?;
    let direction = DIRECTION.word(request)?;
    Ok((direction, Degrees { outgoing: direction != "in" }, u64::from(direction != "out")))
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let (direction, program, supersteps) = chosen(request)?;
    let output = request.run_all(&program, supersteps, graph, resources)?;
    let values =
        Values::integers(output.states, |degree: u64| i64::try_from(degree).ok(), |_| Some(0));
    Finished::new(graph, "degree", values.without_nulls(), output.stats, direction)
}
