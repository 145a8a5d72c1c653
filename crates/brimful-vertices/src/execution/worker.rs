//! A worker: the partitions that it owns, and the two things that vertices do there.
//!
//! Invariant: only its worker touches a partition. A program that fails or panics does so within a loan, which then ends
//! with an error: the store below stays whole.

use crate::error::{Error, Result, catch};
use crate::execution::desk::{Desk, Phase};
use crate::lists::Mail;
use crate::program::{Delivery, VertexOf, VertexProgram};
use crate::store::{Loan, VertexStore};
use crate::vertex::Stored;

/// The partitions of a worker.
pub(super) struct Worker<P: VertexProgram, S> {
    pub(super) stores: Vec<S>,
    pub(super) desk: Desk<P>,
    pub(super) mail: Mail<P>,
    /// Nobody here was asked yet whether he has something to signal.
    pub(super) is_fresh: bool,
}

/// What a vertex has to signal after it collected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum After {
    Nothing,
    /// It did at once.
    Signalled,
    /// It will, with this score.
    Due(f64),
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Worker<P, S> {
    /// Lets every vertex signal that has something to. Where all vertices take part in every superstep they also ask for their
    /// collect, so that they collect in the order in which the store hands them out. After a stop the others are put into the list.
    pub(super) fn signal_all(&mut self, phase: &Phase<'_, P>) -> Result<()> {
        self.is_fresh = false;
        let Self { stores, desk, .. } = self;
        let is_full = phase.program.is_full();
        for (place, store) in stores.iter_mut().enumerate() {
            store.for_each(&mut |vertex| {
                if is_full && let Some(mailbox) = desk.mailboxes.get_mut(place) {
                    mailbox.request(vertex.id())?;
                }
                let is_stopped = desk.look(phase)?;
                guard("signal", vertex, |vertex| {
                    if is_full {
                        return desk.signal(phase, vertex);
                    }
                    let score = phase.program.signal_score(vertex);
                    match score > phase.thresholds.signal {
                        true if is_stopped => desk.mark(place, vertex.id(), Some(score)),
                        true => desk.signal(phase, vertex),
                        false => Ok(()),
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Lets a vertex signal, if it still has something to.
    pub(super) fn signal(&mut self, phase: &Phase<'_, P>, place: usize, id: &P::Id) -> Result<()> {
        let Self { stores, desk, .. } = self;
        let Some(store) = stores.get_mut(place) else { return Ok(()) };
        // A vertex that was removed meanwhile has nothing to say.
        store.lend(id, &mut |vertex| {
            guard("signal", vertex, |vertex| {
                if phase.program.signal_score(vertex) > phase.thresholds.signal {
                    desk.signal(phase, vertex)?;
                }
                Ok(())
            })
        })?;
        Ok(())
    }

    /// Takes the next mail of a partition and lets its vertex collect, and signal if it is to do that `at_once`. `None` at the end
    /// of the generation.
    pub(super) fn collect(
        &mut self,
        phase: &Phase<'_, P>,
        place: usize,
        at_once: bool,
    ) -> Result<Option<(P::Id, After)>> {
        let Self { stores, desk, mail, .. } = self;
        let taken = match desk.mailboxes.get_mut(place) {
            Some(mailbox) => mailbox.take(phase.program, mail)?,
            None => None,
        };
        let (Some(id), Some(store)) = (taken, stores.get_mut(place)) else { return Ok(None) };
        let (mut after, mut known) = (After::Nothing, None);
        let mut collect = |vertex: &mut Loan<'_, VertexOf<P>>| {
            (after, known) = guard("collect", vertex, |vertex| {
                receive(phase, vertex, mail)?;
                let program = phase.program;
                if program.is_full()
                    || program.collect_score(vertex, &mail.signals) > phase.thresholds.collect
                {
                    let collected = program.collect(vertex, &mail.signals);
                    collected.map_err(|failure| Error::program(vertex.id(), "collect", failure))?;
                    desk.counts.collected += 1;
                }
                let known = match program.delivery() {
                    Delivery::Combined => program.known(vertex),
                    Delivery::Each | Delivery::LatestPerEdge => None,
                };
                let score = program.signal_score(vertex);
                let is_due = !program.is_full() && score > phase.thresholds.signal;
                Ok((if is_due { After::Due(score) } else { After::Nothing }, known))
            })?;
            if at_once && matches!(after, After::Due(_)) {
                guard("signal", vertex, |vertex| desk.signal(phase, vertex))?;
                after = After::Signalled;
            }
            Ok(())
        };
        let is_there = match at_once || phase.program.collects_edges() {
            true => store.lend(&id, &mut collect),
            false => store.lend_without_edges(&id, &mut collect),
        }?;
        if !is_there {
            desk.counts.undelivered += mail.signals.len() as u64;
        }
        if let Some((known, mailbox)) = known.zip(desk.mailboxes.get_mut(place)) {
            mailbox.hold(&id, &known)?;
        }
        Ok(Some((id, after)))
    }
}

/// Where the latest signal of each edge is kept: puts those that came into the vertex, and all of it into the mail.
fn receive<P: VertexProgram>(
    phase: &Phase<'_, P>,
    vertex: &mut Loan<'_, VertexOf<P>>,
    mail: &mut Mail<P>,
) -> Result<()> {
    if phase.program.delivery() != Delivery::LatestPerEdge {
        return Ok(());
    }
    vertex.receive_all(mail.sources.drain(..).zip(mail.signals.drain(..)).collect());
    mail.signals.extend(vertex.latest().iter().map(|(_, signal)| signal.clone()));
    Ok(())
}

/// Calls the user's program; a panic becomes an error that names the vertex.
fn guard<V: Stored, R>(
    doing: &'static str,
    vertex: &mut Loan<'_, V>,
    call: impl FnOnce(&mut Loan<'_, V>) -> Result<R>,
) -> Result<R> {
    catch(|| call(vertex)).unwrap_or_else(|failure| Err(Error::program(vertex.id(), doing, failure)))
}
