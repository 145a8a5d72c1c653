//! The worker context: the lists of a worker's partitions, and the signals that it sends and
//! receives.
//!
//! Signals gather in one outbox per partition: as values if they combine, else serialized. A full
//! outbox is sent to the other worker as a packet, or goes into the mailbox if the partition is the
//! worker's own. Invariant: a mailbox returns signals only after it has received those of its
//! outbox.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use brimful_engine::Thresholds;
use brimful_engine::result::stats::Swept;
use brimful_store::Job;
use brimful_vertices::{Id, Loan};

use crate::error::{Error, Result, element};
use crate::exchange::{Event, Packet, PacketQueues};
use crate::lists::{IdSet, Mailbox};
use crate::outbox::{MessageBuffers, Outbox};
use crate::partitioner::{Owners, Partitioner};
use crate::program::{Delivery, VertexOf, VertexProgram};

/// The data that all workers of a phase share.
pub(crate) struct Phase<'e, P: VertexProgram> {
    pub(crate) program: &'e P,
    pub(crate) partitioner: &'e Partitioner<P::Id>,
    pub(crate) owners: &'e Owners,
    pub(crate) exchange: &'e PacketQueues<Outbox<P>>,
    pub(crate) packet_bytes: usize,
    pub(crate) thresholds: Thresholds,
    pub(crate) job: &'e Job,
    /// Stops the phase at this time; the remaining work stays in the lists.
    pub(crate) deadline: Option<Instant>,
}

/// Counters of a worker.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WorkerCounts {
    pub(crate) sent: u64,
    pub(crate) signalled: u64,
    /// Edges of the vertices that signalled.
    pub(crate) edges: u64,
    pub(crate) collected: u64,
    /// Signals to vertices that do not exist.
    pub(crate) undelivered: u64,
}

/// Vertices between two checks of the queue and the clock.
const POLL_EVERY: u32 = 64;
/// The idle back-off of an under-loaded worker lasts at most this multiple of its longest
/// generation.
const BACK_OFF_FACTOR: u32 = 2;

/// The lists of a worker's partitions, by index, and the packets that it sends.
pub(crate) struct WorkerContext<P: VertexProgram> {
    pub(crate) me: usize,
    pub(crate) to_signal: Vec<IdSet<P::Id>>,
    /// The mailboxes of the worker's partitions, then its relays.
    pub(crate) mailboxes: Vec<Mailbox<P>>,
    pub(crate) counts: WorkerCounts,
    /// By partition.
    outboxes: Vec<Outbox<P>>,
    until_poll: u32,
    /// Start of the last generation.
    began: Instant,
    /// The longest generation since all workers were idle.
    longest: Duration,
    /// End of the idle back-off.
    idle_until: Instant,
    /// Signals that had arrived when the last generation began.
    received: u64,
    /// A worker with fewer signals than this in a generation is under-loaded.
    usual: u64,
    /// A buffer of the partitioner.
    id: Vec<u8>,
    buffers: MessageBuffers,
}

/// Numbers the parallel edges of a vertex while it signals.
struct Parallels<'v, I> {
    /// The number of edges that were counted: an edge without a signal counts, too.
    places: usize,
    counts: Counts<'v, I>,
}

enum Counts<'v, I> {
    Unknown,
    /// Targets ascend: parallel edges are adjacent.
    Ascending(u32),
    /// Edges to each target so far.
    Any(HashMap<&'v I, u32>),
}

impl<'v, I: Id> Parallels<'v, I> {
    fn new() -> Self {
        Self { places: 0, counts: Counts::Unknown }
    }

    /// The number of the edge at `place` among the parallel edges to its target. Places ascend.
    fn number(&mut self, targets: &'v [I], place: usize) -> u32 {
        if matches!(self.counts, Counts::Unknown) {
            let ascends = targets.is_sorted();
            self.counts = if ascends { Counts::Ascending(0) } else { Counts::Any(HashMap::new()) };
        }
        let mut number = 0;
        for (at, target) in targets.iter().enumerate().take(place + 1).skip(self.places) {
            number = match &mut self.counts {
                Counts::Any(counts) => {
                    let count = counts.entry(target).or_insert(0);
                    *count += 1;
                    *count - 1
                }
                Counts::Ascending(count) => {
                    let before = at.checked_sub(1).and_then(|before| targets.get(before));
                    *count = if before == Some(target) { *count + 1 } else { 0 };
                    *count
                }
                Counts::Unknown => 0,
            };
        }
        self.places = place + 1;
        number
    }
}

/// The outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet arrived.
    Arrived,
    /// No other worker is busy: do the remaining work.
    AllIdle,
    /// The idle back-off is over: do the remaining work.
    BackOffEnded,
    /// No worker has any work left, or the phase was stopped.
    End,
}

impl<P: VertexProgram> WorkerContext<P> {
    /// The context of worker `me` of an execution with `partitions`; it has the lists of its own
    /// ones.
    pub(crate) fn new(
        me: usize,
        partitions: usize,
        to_signal: Vec<IdSet<P::Id>>,
        mailboxes: Vec<Mailbox<P>>,
    ) -> Self {
        Self {
            me,
            to_signal,
            mailboxes,
            counts: WorkerCounts::default(),
            outboxes: (0..partitions).map(|_| Outbox::default()).collect(),
            until_poll: POLL_EVERY,
            began: Instant::now(),
            longest: Duration::ZERO,
            idle_until: Instant::now(),
            received: 0,
            usual: 0,
            id: Vec::new(),
            buffers: MessageBuffers::default(),
        }
    }

    /// Lets a vertex signal along all its edges, or to the targets that it chooses.
    pub(crate) fn signal(
        &mut self,
        phase: &Phase<'_, P>,
        vertex: &mut Loan<'_, VertexOf<P>>,
    ) -> Result<()> {
        let program = phase.program;
        match program.addresses() {
            true => self.send_all(phase, vertex)?,
            false => self.signal_along_edges(phase, vertex)?,
        }
        self.counts.signalled += 1;
        self.counts.edges += vertex.edges().len() as u64;
        let mut state = vertex.state.clone();
        let sent = program.signalled(&mut state);
        sent.map_err(|failure| Error::program(vertex.id(), "signal", failure))?;
        if state != vertex.state {
            vertex.state = state.clone();
        }
        if !program.is_full() && vertex.signalled.as_ref() != Some(&state) {
            vertex.signalled = Some(state);
        }
        Ok(())
    }

    /// Sends the signals of a vertex that chooses their targets, and requests its collect if it
    /// collects even without signals.
    fn send_all(&mut self, phase: &Phase<'_, P>, vertex: &VertexOf<P>) -> Result<()> {
        let (program, delivery) = (phase.program, phase.program.delivery());
        let mut sent = Ok(());
        let collects = program.send(vertex, &mut |target, signal| {
            sent = self.send(phase, delivery, None, target, signal);
            sent.is_ok()
        });
        sent?;
        if collects.map_err(|failure| Error::program(vertex.id(), "signal", failure))? {
            let partitions = phase.owners.count();
            let partition = phase.partitioner.partition(vertex.id(), &mut self.id, partitions);
            let (_, slot) = phase.owners.own_slot(partition)?;
            element(&mut self.mailboxes, slot, "mailbox")?.request(program, vertex.id())?;
        }
        Ok(())
    }

    fn signal_along_edges(&mut self, phase: &Phase<'_, P>, vertex: &VertexOf<P>) -> Result<()> {
        let (program, delivery) = (phase.program, phase.program.delivery());
        let (mut parallels, mut sent) = (Parallels::new(), Ok(()));
        let targets = vertex.edges().targets();
        let signalled = program.signal_all(vertex, |place, target, signal| {
            let source = match delivery {
                Delivery::LatestPerEdge => Some((vertex.id(), parallels.number(targets, place))),
                Delivery::Each | Delivery::Combined => None,
            };
            sent = self.send(phase, delivery, source, target, signal);
            sent.is_ok()
        });
        sent?;
        signalled.map_err(|failure| Error::program(vertex.id(), "signal", failure))
    }

    /// Signals sent and edges visited so far.
    pub(crate) fn swept(&self) -> Swept {
        Swept { signals: self.counts.sent, edges: self.counts.edges }
    }

    /// Puts a vertex of the partition at `slot` into its to-signal list.
    pub(crate) fn mark(&mut self, slot: usize, id: &P::Id, score: Option<f64>) -> Result<()> {
        let list = element(&mut self.to_signal, slot, "to-signal list")?;
        match score {
            Some(score) => list.insert_scored(id, score),
            None => list.insert(id),
        }
    }

    /// Takes a vertex and its score out of the to-signal list at `slot`; `None` at the end of the
    /// generation.
    pub(crate) fn take_due(&mut self, slot: usize) -> Result<Option<(P::Id, Option<f64>)>> {
        element(&mut self.to_signal, slot, "to-signal list")?.take()
    }

    /// Up to `most` vertices that are next in the to-signal list at `slot`.
    pub(crate) fn next_due(&self, slot: usize, most: usize) -> Result<Vec<P::Id>> {
        self.to_signal.get(slot).map_or(Ok(Vec::new()), |list| list.upcoming(most))
    }

    /// True if a score is not below the average of the to-signal list at `slot`.
    pub(crate) fn is_average(&self, slot: usize, score: f64) -> bool {
        self.to_signal.get(slot).is_none_or(|list| list.is_average(score))
    }

    /// True if signals wait in the mailbox of the partition at `slot`.
    pub(crate) fn has_messages(&mut self, phase: &Phase<'_, P>, slot: usize) -> Result<bool> {
        self.deliver_own(phase)?;
        Ok(!element(&mut self.mailboxes, slot, "mailbox")?.is_empty()?)
    }

    /// Lets the vertices of the partition at `slot` collect by ascending ids.
    pub(crate) fn begin_in_order(&mut self, phase: &Phase<'_, P>, slot: usize) -> Result<()> {
        element(&mut self.mailboxes, slot, "mailbox")?.begin_in_order(phase.program)
    }

    /// True if signals wait in any mailbox.
    pub(crate) fn has_any_messages(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        self.deliver_own(phase)?;
        for mailbox in &mut self.mailboxes {
            if !mailbox.is_empty()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if any vertex is in a to-signal list.
    pub(crate) fn is_any_due(&mut self) -> Result<bool> {
        for list in &mut self.to_signal {
            if !list.is_empty()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn send(
        &mut self,
        phase: &Phase<'_, P>,
        delivery: Delivery,
        source: Option<(&P::Id, u32)>,
        target: &P::Id,
        signal: P::Signal,
    ) -> Result<()> {
        let partition = phase.partitioner.partition(target, &mut self.id, phase.owners.count());
        self.counts.sent += 1;
        let outbox = element(&mut self.outboxes, partition, "outbox")?;
        outbox.push(delivery, source, (target, signal), &mut self.buffers);
        if outbox.bytes() < phase.packet_bytes {
            return Ok(());
        }
        let (owner, _) = phase.owners.mailbox(partition)?;
        match owner == self.me {
            true => self.deliver(phase, partition),
            false => self.send_packet(phase, partition),
        }
    }

    /// Puts the signals that gathered for this worker's partitions into their mailboxes.
    pub(crate) fn deliver_own(&mut self, phase: &Phase<'_, P>) -> Result<()> {
        for (partition, (owner, _)) in phase.owners.mailboxes().iter().enumerate() {
            if *owner == self.me {
                self.deliver(phase, partition)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, phase: &Phase<'_, P>, partition: usize) -> Result<()> {
        let (_, slot) = phase.owners.mailbox(partition)?;
        let mailbox = element(&mut self.mailboxes, slot, "mailbox")?;
        let outbox = element(&mut self.outboxes, partition, "outbox")?;
        outbox.deliver(phase.program, mailbox)
    }

    /// Sends the packet for a partition.
    fn send_packet(&mut self, phase: &Phase<'_, P>, partition: usize) -> Result<()> {
        let messages = std::mem::take(element(&mut self.outboxes, partition, "outbox")?);
        let (owner, _) = phase.owners.mailbox(partition)?;
        let bytes = messages.bytes();
        let mut packet = Packet { partition, messages, bytes };
        while let Err(back) = phase.exchange.post(owner, packet) {
            packet = back;
            if phase.exchange.is_stopped() {
                // The next run sends the packet.
                *element(&mut self.outboxes, partition, "outbox")? = packet.messages;
                return Ok(());
            }
            if !self.take_in(phase)? {
                phase.exchange.wait_for_space(self.me, owner);
            }
        }
        Ok(())
    }

    /// Delivers or sends all signals; false if a stop held some back.
    pub(crate) fn flush(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        self.deliver_own(phase)?;
        for partition in 0..self.outboxes.len() {
            if self.outboxes.get(partition).is_some_and(|outbox| !outbox.is_empty()) {
                self.send_packet(phase, partition)?;
            }
        }
        Ok(self.outboxes.iter().all(Outbox::is_empty))
    }

    /// Receives all waiting packets; true if there was one.
    pub(crate) fn take_in(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        let mut is_any = false;
        while let Some(packet) = phase.exchange.take(self.me) {
            self.open(phase, packet)?;
            is_any = true;
        }
        Ok(is_any)
    }

    fn open(&mut self, phase: &Phase<'_, P>, mut packet: Packet<Outbox<P>>) -> Result<()> {
        let (_, slot) = phase.owners.mailbox(packet.partition)?;
        let mailbox = element(&mut self.mailboxes, slot, "mailbox")?;
        packet.messages.deliver(phase.program, mailbox)
    }

    /// Waits for a packet. A worker that still has work waits until no other worker is busy, at
    /// most as long as [`BACK_OFF_FACTOR`] allows.
    pub(crate) fn wait(&mut self, phase: &Phase<'_, P>, with_work: bool) -> Result<Next> {
        if !self.flush(phase)? {
            return Ok(Next::End);
        }
        match phase.exchange.wait(self.me, with_work.then_some(self.idle_until)) {
            Event::Packet(packet) => self.open(phase, packet).map(|()| Next::Arrived),
            Event::AllIdle => Ok(Next::AllIdle),
            Event::BackOffEnded => Ok(Next::BackOffEnded),
            Event::Finished | Event::Stopped => Ok(Next::End),
        }
    }

    /// Signals that arrived in all mailboxes since the last generation began.
    fn arrived(&self) -> u64 {
        self.mailboxes.iter().map(|mailbox| mailbox.stats().received).sum::<u64>() - self.received
    }

    /// True if fewer signals arrived than when all workers were idle the last time. A worker that
    /// collected them now would signal values that others are about to change.
    pub(crate) fn is_under_loaded(&self) -> bool {
        self.arrived() < self.usual
    }

    /// Begins a generation of all lists; `are_others_idle` is true if no other worker was busy.
    pub(crate) fn begin_generation(&mut self, are_others_idle: bool) {
        let arrived = self.arrived();
        self.usual = if are_others_idle { arrived } else { self.usual.max(arrived) };
        self.received += arrived;
        self.began = Instant::now();
        if are_others_idle {
            self.longest = Duration::ZERO;
        }
    }

    /// Ends the generation; the idle back-off of the next begins now.
    pub(crate) fn end_generation(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.began);
        self.idle_until = now + BACK_OFF_FACTOR * self.longest;
    }

    /// Called after each vertex: stops if the run is canceled, and receives packets and checks the
    /// clock at intervals. True if the phase was stopped.
    #[inline]
    pub(crate) fn poll(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        // Methods in Python may take seconds.
        phase.job.check()?;
        self.until_poll -= 1;
        if self.until_poll == 0 {
            self.until_poll = POLL_EVERY;
            self.take_in(phase)?;
            if phase.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                phase.exchange.stop();
            }
        }
        Ok(phase.exchange.is_stopped())
    }
}
