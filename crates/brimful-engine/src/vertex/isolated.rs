//! Vertices without edges: no arrays, one state for all of them.
//!
//! They receive no signals, and their signals reach no vertex. So in [`Mode::Full`] they all have
//! the same states, and in the other modes they keep their initial state. Invariant: their part of
//! the aggregate is merged last, at any number of threads.

use brimful_graph::Graph;
use bytemuck::Pod;

use crate::error::Result;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::batch::process_vertices;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Globals, Mode, Program, Vertex};
use crate::vertex::turn::{Thresholds, Turn};

/// The states of vertices without edges.
#[derive(Debug, Clone, PartialEq)]
pub enum Isolated<S> {
    /// All have this state ([`Mode::Full`]), of [`Program::state_len`] values.
    Same(Vec<S>),
    /// Each has its initial state (the other modes), or there are none.
    Initial,
}

impl<S: Copy> Isolated<S> {
    /// The first value of the state that all have, if they have the same.
    pub fn value(&self) -> Option<S> {
        match self {
            Self::Same(state) => state.first().copied(),
            Self::Initial => None,
        }
    }
}

impl<S: Pod> Isolated<S> {
    /// The bytes of the state that all have, for a checkpoint.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Same(state) => Some(bytemuck::cast_slice(state).to_vec()),
            Self::Initial => None,
        }
    }

    /// The states of a checkpoint; `None` if the bytes are not a state of `len` values.
    pub fn of_bytes(bytes: Option<&[u8]>, len: usize) -> Option<Self> {
        let Some(bytes) = bytes else { return Some(Self::Initial) };
        (bytes.len() == len * size_of::<S>())
            .then(|| Self::Same(bytemuck::pod_collect_to_vec(bytes)))
    }
}

/// Sets the state that all have, or collects it if it is set; returns its part of the aggregate.
pub(crate) fn evolve<P: Program>(
    program: &P,
    graph: &Graph,
    isolated: &mut Isolated<P::State>,
    globals: &Globals<P::Aggregate>,
    thresholds: Thresholds,
) -> Result<P::Aggregate> {
    let count = graph.vertices() - graph.connected();
    if P::MODE != Mode::Full || count == 0 {
        return Ok(P::Aggregate::NOTHING);
    }
    let vertex = Vertex { id: graph.connected(), degree: 0, strength: 0.0, external: 0 };
    if P::BATCHED {
        let batched = program.batched();
        let (turn, mut state) = match std::mem::replace(isolated, Isolated::Initial) {
            Isolated::Same(state) => (Turn::Collect(&[P::Combiner::IDENTITY][..]), state),
            Isolated::Initial => {
                (Turn::First, vec![bytemuck::Zeroable::zeroed(); batched.state_len()])
            }
        };
        let arrays = (&mut state[..], &mut [P::Combiner::SILENCE][..]);
        let part = process_vertices(batched, turn, &[vertex], arrays, (globals, thresholds))?;
        *isolated = Isolated::Same(state);
        return Ok(part.times(count));
    }
    let (old, new) = match isolated.value() {
        Some(old) => (old, program.collect(vertex, old, P::Combiner::IDENTITY, globals)),
        None => {
            let first = program.initial(vertex, globals);
            (first, first)
        }
    };
    *isolated = Isolated::Same(vec![program.signalled(new)]);
    Ok(program.aggregate(vertex, old, new).times(count))
}
