//! A worker: the partitions that it owns, and the signalling and collecting of their vertices.
//!
//! Invariant: only its worker touches a partition. A program that fails or panics does so within a
//! loan; the loan ends with an error, and the store stays intact.

use brimful_vertices::{Edges, Field, Loan, Stored, Vertex, VertexStore};

use crate::context::{Phase, WorkerContext};
use crate::error::{Error, Result, catch, element};
use crate::lists::IncomingSignals;
use crate::program::{Delivery, VertexOf, VertexProgram};

/// The partitions of a worker.
pub(crate) struct Worker<P: VertexProgram, S> {
    pub(crate) stores: Vec<S>,
    pub(crate) context: WorkerContext<P>,
    pub(crate) incoming: IncomingSignals<P>,
    /// The announcements to the stores of the vertices to be lent next.
    pub(crate) announced: Announced,
    /// True if the vertices have not yet decided whether they signal.
    pub(crate) is_fresh: bool,
}

/// The state of a vertex after it collected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum After {
    Nothing,
    /// The vertex signalled at once.
    Signalled,
    /// The vertex is due to signal, with this score.
    Due(f64),
}

/// For each store, the number of announced vertices that are still to be lent. A store reads
/// announced vertices together. Vertices that collect and vertices that signal come from different
/// lists, so they are counted apart.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    collecting: Vec<usize>,
    signalling: Vec<usize>,
}

impl Announced {
    /// Announces to `store` the vertex `id` and those that follow it, unless an earlier call did.
    fn announce<V: Stored, S: VertexStore<V>>(
        left: &mut Vec<usize>,
        (store, slot): (&mut S, usize),
        id: &V::Id,
        upcoming: impl FnOnce(usize) -> Result<Vec<V::Id>>,
    ) -> Result<()> {
        let most = store.lookahead();
        if most == 0 {
            return Ok(());
        }
        if left.len() <= slot {
            left.resize(slot + 1, 0);
        }
        let left = element(left, slot, "store")?;
        if *left > 0 {
            *left -= 1;
            return Ok(());
        }
        let upcoming = upcoming(most - 1)?;
        *left = upcoming.len();
        prefetch(store, std::iter::once(id).chain(&upcoming))
    }
}

/// Announces vertices to a store that reads ahead.
pub(crate) fn prefetch<'i, V: Stored, S: VertexStore<V>>(
    store: &mut S,
    ids: impl Iterator<Item = &'i V::Id>,
) -> Result<()> {
    let key = |id: &V::Id| {
        let mut key = Vec::new();
        id.write(&mut key);
        key
    };
    let keys: Vec<Vec<u8>> = ids.map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    Ok(store.prefetch(&keys)?)
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Worker<P, S> {
    /// Lets every vertex signal whose score exceeds the threshold. If all vertices take part in
    /// every superstep, they also request their collect, so that they collect in the order of the
    /// store. After a stop, the remaining vertices are put into the to-signal list.
    pub(crate) fn signal_all(&mut self, phase: &Phase<'_, P>) -> Result<()> {
        self.is_fresh = false;
        let Self { stores, context, .. } = self;
        let is_full = phase.program.is_full();
        for (slot, store) in stores.iter_mut().enumerate() {
            store.for_each(&mut |vertex| {
                if is_full {
                    element(&mut context.mailboxes, slot, "mailbox")?
                        .request(phase.program, vertex.id())?;
                }
                let is_stopped = context.poll(phase)?;
                guard("signal", vertex, |vertex| {
                    if is_full {
                        return context.signal(phase, vertex);
                    }
                    let score = signal_score(phase, vertex)?;
                    match score > phase.thresholds.signal {
                        true if is_stopped => context.mark(slot, vertex.id(), Some(score)),
                        true => context.signal(phase, vertex),
                        false => Ok(()),
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Lets a vertex signal, if its score still exceeds the threshold.
    pub(crate) fn signal(&mut self, phase: &Phase<'_, P>, slot: usize, id: &P::Id) -> Result<()> {
        let Self { stores, context, announced, .. } = self;
        let store = element(stores, slot, "store")?;
        let upcoming = |most| context.next_due(slot, most);
        let signalling = &mut announced.signalling;
        Announced::announce::<VertexOf<P>, _>(signalling, (store, slot), id, upcoming)?;
        // A removed vertex does not signal.
        store.lend(id, &mut |vertex| {
            guard("signal", vertex, |vertex| {
                if signal_score(phase, vertex)? > phase.thresholds.signal {
                    context.signal(phase, vertex)?;
                }
                Ok(())
            })
        })?;
        Ok(())
    }

    /// Takes the signals for the next vertex of a partition and lets it collect, and signal if
    /// `at_once`. `None` at the end of the generation.
    pub(crate) fn collect(
        &mut self,
        phase: &Phase<'_, P>,
        slot: usize,
        at_once: bool,
    ) -> Result<Option<(P::Id, After)>> {
        let Self { stores, context, incoming, announced, .. } = self;
        if at_once {
            // Signals of the vertex before.
            context.deliver_own(phase)?;
        }
        let mailbox = element(&mut context.mailboxes, slot, "mailbox")?;
        let Some(id) = mailbox.take(phase.program, incoming)? else { return Ok(None) };
        let has_signals = !incoming.signals.is_empty();
        let store = element(stores, slot, "store")?;
        let upcoming = |most| mailbox.upcoming(most);
        let collecting = &mut announced.collecting;
        Announced::announce::<VertexOf<P>, _>(collecting, (store, slot), &id, upcoming)?;
        let mut after = After::Nothing;
        let mut collect = |vertex: &mut Loan<'_, VertexOf<P>>| {
            after = guard("collect", vertex, |vertex| {
                receive(phase, vertex, incoming)?;
                let program = phase.program;
                let collects = program.is_full() || {
                    let score = program.collect_score(vertex, &incoming.signals);
                    score.map_err(|failure| Error::program(vertex.id(), "score", failure))?
                        > phase.thresholds.collect
                };
                if collects {
                    let collected = program.collect(vertex, &incoming.signals);
                    collected.map_err(|failure| Error::program(vertex.id(), "collect", failure))?;
                    context.counts.collected += 1;
                }
                let score = signal_score(phase, vertex)?;
                let is_due = !program.is_full() && score > phase.thresholds.signal;
                Ok(if is_due { After::Due(score) } else { After::Nothing })
            })?;
            if at_once && matches!(after, After::Due(_)) {
                guard("signal", vertex, |vertex| context.signal(phase, vertex))?;
                after = After::Signalled;
            }
            Ok(())
        };
        let is_there = match at_once || phase.program.collects_edges() {
            true => store.lend(&id, &mut collect),
            false => store.lend_without_edges(&id, &mut collect),
        }?;
        // A request to collect creates no vertex.
        if !is_there && has_signals {
            let created = phase.program.create(&id);
            match created.map_err(|failure| Error::program(&id, "create", failure))? {
                Some(state) => {
                    store.insert(Vertex::new(id.clone(), state, Edges::default()))?;
                    store.lend(&id, &mut collect)?;
                }
                None => context.counts.undelivered += incoming.signals.len() as u64,
            }
        }
        Ok(Some((id, after)))
    }
}

/// The signal score of a vertex.
#[inline]
pub(crate) fn signal_score<P: VertexProgram>(
    phase: &Phase<'_, P>,
    vertex: &Loan<'_, VertexOf<P>>,
) -> Result<f64> {
    let score = phase.program.signal_score(vertex);
    score.map_err(|failure| Error::program(vertex.id(), "score", failure))
}

/// For [`Delivery::LatestPerEdge`]: stores the new signals in the vertex, and replaces them by the
/// latest signals of all its edges.
fn receive<P: VertexProgram>(
    phase: &Phase<'_, P>,
    vertex: &mut Loan<'_, VertexOf<P>>,
    incoming: &mut IncomingSignals<P>,
) -> Result<()> {
    if phase.program.delivery() != Delivery::LatestPerEdge {
        return Ok(());
    }
    let mut received = Vec::with_capacity(incoming.signals.len());
    for (source, signal) in incoming.sources.drain(..).zip(incoming.signals.drain(..)) {
        let signal = phase.program.received(signal);
        let signal = signal.map_err(|failure| Error::program(vertex.id(), "receive", failure))?;
        received.push((source, signal));
    }
    vertex.receive_all(received);
    incoming.replace(vertex.latest().iter().map(|(_, signal)| signal.clone()))
}

/// Calls the user's program; a panic becomes an error that names the vertex.
pub(crate) fn guard<V: Stored, R>(
    doing: &'static str,
    vertex: &mut Loan<'_, V>,
    call: impl FnOnce(&mut Loan<'_, V>) -> Result<R>,
) -> brimful_vertices::Result<R> {
    let done = catch(|| call(vertex));
    Ok(done.unwrap_or_else(|failure| Err(Error::program(vertex.id(), doing, failure)))?)
}
