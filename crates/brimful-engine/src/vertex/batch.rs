//! Programs that are called for many edges or vertices at a time.
//!
//! A [`Program`] is compiled into the loops of the engine. A program that is unknown at compile
//! time (see [`crate::vertex::kernel`]) gets decoded edges and vertices in batches that fit the
//! cache instead. Invariant: edges and vertices come in the order of calls to the methods of
//! [`Program`], and only those that would reach [`Combiner::combine`]. So a program that processes
//! each batch in order computes the same bits.

use std::ops::Range;

use crate::error::Result;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{
    BATCH, Batched, Globals, Mode, Program, SignalOf, SumOf, Vertex, Vertices,
};
use crate::vertex::turn::{Partial, Thresholds, Turn};

/// Calls the program for the vertices of `states` and `signals`, a batch at a time; `list` appends
/// the vertices of a range.
pub(crate) fn process_in_batches<P: Program>(
    batched: &dyn Batched<P>,
    turn: Turn<'_, SumOf<P>>,
    states: &mut [P::State],
    signals: &mut [SignalOf<P>],
    list: &impl Fn(Range<usize>, &mut Vec<Vertex>),
    globals: &Globals<P::Aggregate>,
    thresholds: Thresholds,
    partial: &mut Partial<P::Aggregate>,
) -> Result<()> {
    let state_len = batched.state_len();
    let mut vertices = Vec::with_capacity(BATCH.min(signals.len()));
    for (index, (states, signals)) in
        states.chunks_mut(BATCH * state_len).zip(signals.chunks_mut(BATCH)).enumerate()
    {
        let range = index * BATCH..index * BATCH + signals.len();
        let is_idle = |sums: &[SumOf<P>]| sums.iter().all(|sum| *sum == P::Combiner::IDENTITY);
        if let Turn::Collect(sums) = turn
            && P::MODE != Mode::Full
            && is_idle(&sums[range.clone()])
        {
            // Collecting the sum of no signals changes nothing.
            signals.fill(P::Combiner::SILENCE);
            continue;
        }
        vertices.clear();
        list(range.clone(), &mut vertices);
        batched.vertices(Vertices {
            turn: match turn {
                Turn::Collect(sums) => Turn::Collect(&sums[range]),
                Turn::First | Turn::Round => turn,
            },
            vertices: &vertices,
            states,
            signals,
            globals,
            thresholds,
            aggregate: &mut partial.aggregate,
            score: &mut partial.score,
        })?;
    }
    Ok(())
}

/// Lets the targets of `target_sums`, positions in `signals`, collect their sums.
pub(crate) fn collect_target_sums<P: Program>(
    batched: &dyn Batched<P>,
    target_sums: &[(u32, SumOf<P>)],
    states: &mut [P::State],
    signals: &mut [SignalOf<P>],
    vertex: impl Fn(u32) -> Vertex,
    globals: &Globals<P::Aggregate>,
    thresholds: Thresholds,
    partial: &mut Partial<P::Aggregate>,
) -> Result<()> {
    let state_len = batched.state_len();
    for target_sums in target_sums.chunks(BATCH) {
        let state = |at: u32| at as usize * state_len..(at as usize + 1) * state_len;
        let mut target_states = Vec::with_capacity(target_sums.len() * state_len);
        for (at, _) in target_sums {
            target_states.extend_from_slice(&states[state(*at)]);
        }
        let sums: Vec<SumOf<P>> = target_sums.iter().map(|(_, sum)| *sum).collect();
        let mut new_signals = vec![P::Combiner::SILENCE; target_sums.len()];
        let list = |range: Range<usize>, vertices: &mut Vec<Vertex>| {
            vertices.extend(target_sums[range].iter().map(|(at, _)| vertex(*at)));
        };
        process_in_batches(
            batched,
            Turn::Collect(&sums),
            &mut target_states,
            &mut new_signals,
            &list,
            globals,
            thresholds,
            partial,
        )?;
        let new_states = target_states.chunks_exact(state_len);
        for ((at, _), (new_state, signal)) in target_sums.iter().zip(new_states.zip(new_signals)) {
            states[state(*at)].copy_from_slice(new_state);
            signals[*at as usize] = signal;
        }
    }
    Ok(())
}

/// Calls `vertices` with `turn`, which sets their states and signals ([`Combiner::SILENCE`] for
/// none). Returns their part of the aggregate.
///
/// # Errors
/// Errors of [`Batched::vertices`].
pub fn process_vertices<P: Program>(
    batched: &dyn Batched<P>,
    turn: Turn<'_, SumOf<P>>,
    vertices: &[Vertex],
    (states, signals): (&mut [P::State], &mut [SignalOf<P>]),
    (globals, thresholds): (&Globals<P::Aggregate>, Thresholds),
) -> Result<P::Aggregate> {
    let mut partial = Partial::default();
    let list = |range: Range<usize>, out: &mut Vec<Vertex>| out.extend(&vertices[range]);
    process_in_batches(batched, turn, states, signals, &list, globals, thresholds, &mut partial)?;
    Ok(partial.aggregate)
}
