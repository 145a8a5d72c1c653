//! Vertices without edges: no arrays, one state for all of them.
//!
//! They receive no signals, and their signals reach no vertex. So in [`Mode::Full`] they all have
//! the same states, and in the other modes they keep their initial state. Invariant: their part of
//! the aggregate is merged last, at any number of threads.

use brimful_graph::Graph;

use crate::error::Result;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::batch::process_vertices;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Globals, Mode, Program, Vertex};
use crate::vertex::turn::{Thresholds, Turn};

/// The states of vertices without edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Isolated<S> {
    /// All have this state ([`Mode::Full`]).
    Same(S),
    /// Each has its initial state (the other modes), or there are none.
    Initial,
}

/// Sets the shared state, or collects it if it is set; returns its part of the aggregate.
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
        let mut states = [state.unwrap_or_else(bytemuck::Zeroable::zeroed)];
        let arrays = (&mut states[..], &mut [P::Combiner::SILENCE][..]);
        let part = process_vertices(batched, turn, &[vertex], arrays, (globals, thresholds))?;
        *state = Some(states[0]);
        return Ok(part.times(count));
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
