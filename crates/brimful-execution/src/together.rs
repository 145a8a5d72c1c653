//! Vertices that collect together, for programs that are called for a batch of vertices at a time.
//!
//! Stores lend one vertex at a time. So the states of a batch are copied in one round of loans, and
//! written in another. Invariant: between the two rounds only this worker uses its partitions, so
//! no state changes.

use brimful_vertices::{Loan, VertexStore};

use crate::context::Phase;
use crate::error::{Error, Result, catch, element, of_batch};
use crate::program::{Collecting, VertexOf, VertexProgram};
use crate::worker::{Worker, guard, prefetch, signal_score};

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Worker<P, S> {
    /// Takes the signals for the next vertices of a partition, up to a batch of the program, and
    /// lets them collect; those that are due get into the to-signal list. False at the end of the
    /// generation.
    pub(crate) fn collect_together(&mut self, phase: &Phase<'_, P>, place: usize) -> Result<bool> {
        let (program, is_full) = (phase.program, phase.program.is_full());
        let Self { stores, context, incoming, .. } = self;
        let store = element(stores, place, "store")?;
        let most = match store.lookahead() {
            0 => program.batch(),
            lookahead => program.batch().min(lookahead),
        };
        let mut waiting = Vec::with_capacity(most);
        while waiting.len() < most {
            let mailbox = element(&mut context.mailboxes, place, "mailbox")?;
            let Some(id) = mailbox.take(program, incoming)? else { break };
            waiting.push((id, incoming.signals.pop()));
        }
        if waiting.is_empty() {
            return Ok(false);
        }
        let reads_ahead = store.lookahead() > 0;
        if reads_ahead {
            prefetch(store, waiting.iter().map(|(id, _)| id))?;
        }
        let mut batch: Vec<Collecting<P>> = Vec::with_capacity(waiting.len());
        for (id, signal) in waiting {
            let mut state = None;
            let signals = signal.as_slice();
            let is_there = store.lend_without_edges(&id, &mut |vertex| {
                guard("collect", vertex, |vertex| {
                    let collects = is_full || {
                        let score = program.collect_score(vertex, signals);
                        score.map_err(|failure| Error::program(vertex.id(), "score", failure))?
                            > phase.thresholds.collect
                    };
                    state = collects.then(|| vertex.state.clone());
                    Ok(())
                })
            })?;
            match state {
                Some(state) => batch.push(Collecting { id, state, signal, is_due: false }),
                None if is_there => {}
                None => context.counts.undelivered += u64::from(signal.is_some()),
            }
        }
        if let Some(first) = batch.first() {
            let first = first.id.clone();
            let collected = catch(|| program.collect_together(&mut batch)).flatten();
            collected.map_err(|failure| of_batch(first, "collect", failure))?;
        }
        context.counts.collected += batch.len() as u64;
        if reads_ahead {
            prefetch(store, batch.iter().map(|one| &one.id))?;
        }
        for Collecting { id, state, is_due, .. } in batch {
            let mut is_marked = false;
            let mut write = |vertex: &mut Loan<'_, VertexOf<P>>| {
                // An unchanged vertex must not be written.
                if vertex.state != state {
                    vertex.state = state.clone();
                }
                // A vertex that was due stays due.
                if is_due && vertex.signalled.is_some() {
                    vertex.signalled = None;
                }
                is_marked = !is_full && signal_score(phase, vertex)? > phase.thresholds.signal;
                Ok(())
            };
            store.lend_without_edges(&id, &mut |vertex| guard("collect", vertex, &mut write))?;
            if is_marked {
                context.mark(place, &id, None)?;
            }
        }
        Ok(true)
    }
}
