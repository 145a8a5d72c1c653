//! Levels of a directed graph without cycles.
//!
//! Returns for each vertex the number of edges of the longest path that leads to it (`level`,
//! int64): 0 without incoming edges. Every edge leads to a greater level, so ascending levels are a
//! topological order. Exact. A cycle, such as a self-loop, is an error that names a vertex on the
//! cycle or reachable from it.
//!
//! Method: Kahn 1962, all vertices of a level at once. The first superstep counts incoming arcs;
//! then a vertex without remaining arcs is *done*: it signals along its edges, and its targets
//! count one arc less. State: the number of remaining arcs, or the level once done, in one u64.
//! Signal: 1, in a byte; an arc carries two signals, one of them in the first superstep. There is
//! one superstep more than there are levels; each reads only segments with vertices of the level
//! before.

use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Add, Globals, Mode, Program, Reason, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::Result;
use crate::info::{Info, Run, Takes};
use crate::out_weights::AT_ONCE;
use crate::request::{Finished, Request, shown};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "topological_order",
    computes: "levels of a graph without cycles: the number of edges on the longest path to a \
               vertex; a cycle is an error",
    column: "level",
    takes: Takes::PROGRAM,
    parameters: &[],
    run: Run::Vertices(run),
    // The number of levels is unknown.
    plan: |planner| planner.program(&Levels, planner.spreading(Steps::about(30, 3.0))?),
};

/// The vertex is done; its level is in the lower bits.
const DONE: u64 = 1 << 63;
/// The vertex must signal, at the start or when it is done.
const DUE: u64 = 1 << 62;
const NUMBER: u64 = DUE - 1;

/// Longest paths from vertices without incoming edges.
#[derive(Debug, Clone, Copy)]
pub struct Levels;

/// The level of a vertex that is done.
fn level(state: u64) -> Option<i64> {
    (state & DONE != 0).then_some((state & NUMBER) as i64)
}

impl Program for Levels {
    type State = u64;
    type Combiner = Add<u8>;
    type Aggregate = ();
    const MODE: Mode = Mode::Delta;
    const KEEPS_SILENCE: bool = true;

    fn initial(&self, _: Vertex, _: &Globals<()>) -> u64 {
        DUE
    }

    fn signal(&self, _: Vertex, state: u64) -> u8 {
        u8::from(state & DUE != 0)
    }

    fn signalled(&self, state: u64) -> u64 {
        state & !DUE
    }

    fn signal_score(&self, _: u64, new: u64) -> f64 {
        f64::from(u8::from(new & DUE != 0))
    }

    #[inline]
    fn collect(&self, _: Vertex, state: u64, sum: u64, globals: &Globals<()>) -> u64 {
        if sum == 0 {
            return state;
        }
        if globals.round == 0 {
            return state + sum;
        }
        // Level 0 signals in superstep 1.
        let left = state - sum;
        if left == 0 { DONE | DUE | globals.superstep } else { left }
    }

    fn finished(&self, state: u64) -> bool {
        state & (DONE | DUE) == DONE
    }

    fn another_round(&self, globals: &Globals<()>) -> bool {
        globals.round == 0
    }

    fn begin_round(&self, _: Vertex, state: u64, _: &Globals<()>) -> u64 {
        if state == 0 { DONE | DUE } else { state }
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let output = request.run(&Levels, u64::MAX, graph, resources)?;
    // Only a run that reached a limit may leave vertices out.
    let is_complete = output.stats.reason == Reason::NoChange;
    if is_complete && let Some(vertex) = first_left(&output.states)? {
        let problem = format!(
            "the graph has a cycle: vertex {} is on one, or a path leads to it from one; a \
             topological order needs a graph without cycles; the components of scc with more than \
             one vertex contain the cycles",
            shown(graph, vertex)?
        );
        return Err(brimful_graph::Error::input(graph.path(), problem).into());
    }
    let values = Values::integers(output.states, level, |_| Some(0));
    let values = if is_complete { values.without_nulls() } else { values };
    Finished::new(graph, "level", values, output.stats, "longest_path")
}

/// The first vertex that is not done.
fn first_left(states: &ScratchArray<u64>) -> Result<Option<u64>> {
    let (mut start, mut part) = (0, vec![0; AT_ONCE.min(states.len())]);
    while start < states.len() {
        let count = part.len().min(states.len() - start);
        states.read(start, &mut part[..count])?;
        if let Some(at) = part[..count].iter().position(|state| state & DONE == 0) {
            return Ok(Some((start + at) as u64));
        }
        start += count;
    }
    Ok(None)
}
