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

/// A vertex, and its signal unless only a collect was requested.
type Waiting<P> = (<P as VertexProgram>::Id, Option<<P as VertexProgram>::Signal>);

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Worker<P, S> {
    /// Takes the signals for the next vertices of a partition, up to a batch of the program, and
    /// lets them collect; those that are due get into the to-signal list. False at the end of the
    /// generation.
    pub(crate) fn collect_together(&mut self, phase: &Phase<'_, P>, slot: usize) -> Result<bool> {
        let waiting = self.take_batch(phase, slot)?;
        if waiting.is_empty() {
            return Ok(false);
        }
        let mut batch = self.copy_states(phase, slot, waiting)?;
        if let Some(first) = batch.first() {
            let first = first.id.clone();
            let collected = catch(|| phase.program.collect_together(&mut batch)).flatten();
            collected.map_err(|failure| of_batch(first, "collect", failure))?;
        }
        self.context.counts.collected += batch.len() as u64;
        self.write_states(phase, slot, batch)?;
        Ok(true)
    }

    /// Takes up to a batch of vertices and their signals out of a mailbox.
    fn take_batch(&mut self, phase: &Phase<'_, P>, slot: usize) -> Result<Vec<Waiting<P>>> {
        let store = element(&mut self.stores, slot, "store")?;
        let most = match store.lookahead() {
            0 => phase.program.batch(),
            lookahead => phase.program.batch().min(lookahead),
        };
        let mailbox = element(&mut self.context.mailboxes, slot, "mailbox")?;
        let mut waiting = Vec::with_capacity(most);
        while waiting.len() < most
            && let Some(id) = mailbox.take(phase.program, &mut self.incoming)?
        {
            waiting.push((id, self.incoming.signals.pop()));
        }
        Ok(waiting)
    }

    /// Copies the states of the vertices that collect.
    fn copy_states(
        &mut self,
        phase: &Phase<'_, P>,
        slot: usize,
        waiting: Vec<Waiting<P>>,
    ) -> Result<Vec<Collecting<P>>> {
        let (program, is_full) = (phase.program, phase.program.is_full());
        let store = element(&mut self.stores, slot, "store")?;
        if store.lookahead() > 0 {
            prefetch(store, waiting.iter().map(|(id, _)| id))?;
        }
        let mut batch = Vec::with_capacity(waiting.len());
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
                None => self.context.counts.undelivered += u64::from(signal.is_some()),
            }
        }
        Ok(batch)
    }

    /// Writes the new states, and puts the vertices that are due into the to-signal list.
    fn write_states(
        &mut self,
        phase: &Phase<'_, P>,
        slot: usize,
        batch: Vec<Collecting<P>>,
    ) -> Result<()> {
        let is_full = phase.program.is_full();
        let store = element(&mut self.stores, slot, "store")?;
        if store.lookahead() > 0 {
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
                self.context.mark(slot, &id, None)?;
            }
        }
        Ok(())
    }
}
