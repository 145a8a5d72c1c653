//! Vertices without edges: no arrays, one state for all of them.
//!
//! They get no signals and send none that anybody gets, so in [`Mode::Full`] they go through the
//! same states, and in the other modes they stay as they began. Invariant: their part of the
//! aggregate is added last, whatever the number of threads.

use brimful_graph::Graph;

use crate::aggregate::Aggregate;
use crate::batch::take_turn;
use crate::collect::{Thresholds, Turn};
use crate::combiner::Combiner;
use crate::error::Result;
use crate::program::{Globals, Mode, Program, Vertex};

/// The states of vertices without edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Isolated<S> {
    /// All have this one ([`Mode::Full`]).
    Same(S),
    /// Each has the one that the program gives it first (the other modes), or there is none.
    Initial,
}

/// Sets the state that all share, or collects it if it was set; what they add to the aggregate.
pub(crate) fn evolve<P: Program>(
    program: &P,
    graph: &Graph,
    state: &mut Option<P::State>,
    globals: &Globals<P::Aggregate>,
    thresholds: Thresholds,
) -> Result<P::Aggregate> {
    let count = graph.vertices() - graph.connected();
    if P::MODE != Mode::Full || count == 0 {
        return Ok(P::Aggregate::NOTHING);
    }
    let vertex = Vertex { id: graph.connected(), degree: 0, strength: 0.0, external: 0 };
    if let Some(batched) = program.batched() {
        let turn =
            if state.is_some() { Turn::Collect(&[P::Combiner::IDENTITY][..]) } else { Turn::First };
        let old = state.unwrap_or_else(bytemuck::Zeroable::zeroed);
        let (new, aggregate) = take_turn(batched, turn, vertex, old, (globals, thresholds))?;
        *state = Some(new);
        return Ok(aggregate.times(count));
    }
    let (old, new) = match *state {
        Some(old) => (old, program.collect(vertex, old, P::Combiner::IDENTITY, globals)),
        None => {
            let first = program.initial(vertex, globals);
            (first, first)
        }
    };
    *state = Some(program.signalled(new));
    Ok(program.aggregate(vertex, old, new).times(count))
}
