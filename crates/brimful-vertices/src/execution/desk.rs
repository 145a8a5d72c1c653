//! All of a worker but its stores: the lists of its partitions, and what it sends and receives.
//!
//! Signals gather in a packet for each partition. Those to other workers leave when it has so many bytes, those to own partitions
//! go into the mailbox when it has, and when their source has said all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brimful_store::Job;

use crate::error::{Error, Result};
use crate::execution::exchange::{Event, Exchange, Packet};
use crate::execution::partitioner::Partitioner;
use crate::field::Field;
use crate::id::Id;
use crate::lists::{IdSet, Mailbox, SignalTo, write_letter};
use crate::program::{Delivery, VertexOf, VertexProgram};
use crate::store::Loan;

/// Scores above which vertices act.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    pub(super) signal: f64,
    pub(super) collect: f64,
}

/// What all workers of a phase share.
pub(super) struct Phase<'e, P: VertexProgram> {
    pub(super) program: &'e P,
    pub(super) partitioner: &'e Partitioner<P::Id>,
    /// The worker of each partition, and its place there.
    pub(super) owners: &'e [(usize, usize)],
    pub(super) exchange: &'e Exchange,
    pub(super) packet_bytes: usize,
    pub(super) thresholds: Thresholds,
    pub(super) job: &'e Job,
    /// Stops the phase; what is left stays in the lists.
    pub(super) pause: Option<&'e AtomicBool>,
    /// The same, at a moment.
    pub(super) deadline: Option<Instant>,
}

/// What a worker did.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) signalled: u64,
    pub(super) collected: u64,
    /// Signals to vertices that there are not.
    pub(super) undelivered: u64,
}

/// Signals that are combined at a time.
const TOGETHER: usize = 64;
/// Vertices between two looks at the queue and the clock.
const LOOK_EVERY: u32 = 64;
/// Of the time of its own longest generation, how much a worker with little to do waits for more.
const PATIENCE: u32 = 2;

/// The lists of a worker's partitions, each by its place, and what leaves.
pub(super) struct Desk<P: VertexProgram> {
    pub(super) me: usize,
    pub(super) to_signal: Vec<IdSet<P::Id>>,
    pub(super) mailboxes: Vec<Mailbox<P>>,
    pub(super) counts: Counts,
    /// A packet for each partition.
    outboxes: Vec<Vec<u8>>,
    /// What goes into each own mailbox where signals are combined; nobody need write it down before.
    own: Vec<Vec<SignalTo<P>>>,
    until_look: u32,
    /// When the last generation began, how long the longest took since nobody worked, and until when the next may wait.
    began: Instant,
    longest: Duration,
    patient_until: Instant,
    /// Signals that had arrived when the last generation began.
    received: u64,
    /// Signals of a generation that is not little.
    usual: u64,
    target: Vec<u8>,
    room: Vec<u8>,
}

/// Counts the parallel edges of a vertex as it signals along one after the other.
#[derive(Default)]
enum Parallels<'v, I> {
    #[default]
    Unknown,
    /// Targets ascend: parallel edges lie side by side.
    Ascending(u32),
    /// How many edges led to each target.
    Any(HashMap<&'v I, u32>),
}

impl<'v, I: Id> Parallels<'v, I> {
    /// Which of the parallel edges to its target the edge at `place` is.
    fn next(&mut self, targets: &'v [I], place: usize) -> u32 {
        if matches!(self, Self::Unknown) {
            *self = if targets.is_sorted() { Self::Ascending(0) } else { Self::Any(HashMap::new()) };
        }
        let Some(target) = targets.get(place) else { return 0 };
        match self {
            Self::Any(counts) => {
                let count = counts.entry(target).or_insert(0);
                *count += 1;
                *count - 1
            }
            Self::Ascending(count) => {
                let is_parallel = place.checked_sub(1).and_then(|before| targets.get(before)) == Some(target);
                *count = if is_parallel { *count + 1 } else { 0 };
                *count
            }
            Self::Unknown => 0,
        }
    }
}

/// What comes after waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Something arrived.
    Arrived,
    /// Nobody else works: what there is, is to be done.
    Turn,
    /// The same, as it waited long enough.
    Enough,
    /// Nobody has anything left to do, or somebody stopped the phase.
    End,
}

impl<P: VertexProgram> Desk<P> {
    /// The desk of worker `me` where there are `partitions`, with the lists of his own.
    pub(super) fn new(
        me: usize,
        partitions: usize,
        to_signal: Vec<IdSet<P::Id>>,
        mailboxes: Vec<Mailbox<P>>,
    ) -> Self {
        Self {
            me,
            to_signal,
            own: mailboxes.iter().map(|_| Vec::new()).collect(),
            mailboxes,
            counts: Counts::default(),
            outboxes: vec![Vec::new(); partitions],
            until_look: LOOK_EVERY,
            began: Instant::now(),
            longest: Duration::ZERO,
            patient_until: Instant::now(),
            received: 0,
            usual: 0,
            target: Vec::new(),
            room: Vec::new(),
        }
    }

    /// Lets a vertex signal along all its edges.
    pub(super) fn signal(&mut self, phase: &Phase<'_, P>, vertex: &mut Loan<'_, VertexOf<P>>) -> Result<()> {
        let program = phase.program;
        let delivery = program.delivery();
        let mut parallels = Parallels::default();
        for (place, edge) in vertex.edges().iter().enumerate() {
            let target = edge.target;
            let source = match delivery {
                Delivery::LatestPerEdge => {
                    Some((vertex.id(), parallels.next(vertex.edges().targets(), place)))
                }
                Delivery::Each | Delivery::Combined => None,
            };
            let signal = program.signal(vertex, edge);
            if let Some(signal) = signal.map_err(|failure| Error::program(vertex.id(), "signal", failure))? {
                self.send(phase, delivery, source, target, signal)?;
            }
        }
        self.keep_own(phase)?;
        self.counts.signalled += 1;
        let mut state = vertex.state.clone();
        program.signalled(&mut state);
        if state != vertex.state {
            vertex.state = state.clone();
        }
        if !program.is_full() && vertex.signalled.as_ref() != Some(&state) {
            vertex.signalled = Some(state);
        }
        Ok(())
    }

    /// Signals sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.counts.sent
    }

    /// Puts a vertex of the partition at `place` into its to-signal list.
    pub(super) fn mark(&mut self, place: usize, id: &P::Id, score: Option<f64>) -> Result<()> {
        match (self.to_signal.get_mut(place), score) {
            (Some(list), Some(score)) => list.insert_scored(id, score),
            (Some(list), None) => list.insert(id),
            (None, _) => Ok(()),
        }
    }

    /// Takes a vertex out of it, with its score; `None` at the end of the generation.
    pub(super) fn take_due(&mut self, place: usize) -> Result<Option<(P::Id, Option<f64>)>> {
        self.to_signal.get_mut(place).map_or(Ok(None), IdSet::take)
    }

    /// True if a score is not below the average of those in it.
    pub(super) fn is_average(&self, place: usize, score: f64) -> bool {
        self.to_signal.get(place).is_none_or(|list| list.is_average(score))
    }

    /// True if something waits in the mailbox of the partition at `place`.
    pub(super) fn has_mail(&mut self, place: usize) -> Result<bool> {
        Ok(!self.mailboxes.get_mut(place).map_or(Ok(true), Mailbox::is_empty)?)
    }

    /// True if something waits in any mailbox.
    pub(super) fn has_any_mail(&mut self) -> Result<bool> {
        for mailbox in &mut self.mailboxes {
            if !mailbox.is_empty()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if any vertex is in a to-signal list.
    pub(super) fn is_any_due(&mut self) -> Result<bool> {
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
        let partition = phase.partitioner.partition(target, &mut self.target, phase.owners.len())?;
        let (owner, place) = phase.owners.get(partition).copied().unwrap_or_default();
        self.counts.sent += 1;
        if delivery == Delivery::Combined
            && owner == self.me
            && let Some(own) = self.own.get_mut(place)
        {
            own.push((target.clone(), signal));
            return if own.len() < TOGETHER { Ok(()) } else { self.combine_own(phase, place) };
        }
        let Some(packet) = self.outboxes.get_mut(partition) else { return Ok(()) };
        self.target.clear();
        target.write(&mut self.target);
        write_letter::<P>(&self.target, source, &signal, &mut self.room, packet);
        match packet.len() < phase.packet_bytes {
            true => Ok(()),
            false if owner == self.me => self.keep(phase, partition),
            false => self.ship(phase, partition),
        }
    }

    /// Combines what has gathered for the own partition at `place`.
    fn combine_own(&mut self, phase: &Phase<'_, P>, place: usize) -> Result<()> {
        match self.mailboxes.get_mut(place).zip(self.own.get_mut(place)) {
            Some((mailbox, own)) if !own.is_empty() => mailbox.receive(phase.program, own),
            _ => Ok(()),
        }
    }

    /// Puts what has gathered for own partitions into their mailboxes.
    fn keep_own(&mut self, phase: &Phase<'_, P>) -> Result<()> {
        if phase.program.delivery() == Delivery::Combined {
            return (0..self.own.len()).try_for_each(|place| self.combine_own(phase, place));
        }
        for (partition, (owner, _)) in phase.owners.iter().enumerate() {
            if *owner == self.me {
                self.keep(phase, partition)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, phase: &Phase<'_, P>, partition: usize) -> Result<()> {
        let place = phase.owners.get(partition).map(|(_, place)| *place);
        let mailbox = place.and_then(|place| self.mailboxes.get_mut(place));
        if let Some((mailbox, packet)) = mailbox.zip(self.outboxes.get_mut(partition)) {
            mailbox.deliver(phase.program, packet)?;
            packet.clear();
        }
        Ok(())
    }

    /// Sends what has gathered for a partition.
    fn ship(&mut self, phase: &Phase<'_, P>, partition: usize) -> Result<()> {
        let letters = self.outboxes.get_mut(partition).map(std::mem::take).unwrap_or_default();
        let (owner, _) = phase.owners.get(partition).copied().unwrap_or_default();
        let mut packet = Packet { partition, letters };
        while let Err(back) = phase.exchange.post(owner, packet) {
            packet = back;
            if phase.exchange.is_stopped() {
                // For whoever goes on after the stop.
                if let Some(outbox) = self.outboxes.get_mut(partition) {
                    *outbox = packet.letters;
                }
                return Ok(());
            }
            if !self.take_in(phase)? {
                phase.exchange.wait_for_room(self.me, owner);
            }
        }
        Ok(())
    }

    /// Sends all that has gathered; false if a stop kept some of it here.
    pub(super) fn flush(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        for partition in 0..self.outboxes.len() {
            if self.outboxes.get(partition).is_some_and(|packet| !packet.is_empty()) {
                self.ship(phase, partition)?;
            }
        }
        Ok(self.outboxes.iter().all(Vec::is_empty))
    }

    /// Takes in all packets that wait; true if there was one.
    pub(super) fn take_in(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        let mut is_any = false;
        while let Some(packet) = phase.exchange.take(self.me) {
            self.open(phase, &packet)?;
            is_any = true;
        }
        Ok(is_any)
    }

    fn open(&mut self, phase: &Phase<'_, P>, packet: &Packet) -> Result<()> {
        let place = phase.owners.get(packet.partition).map(|(_, place)| *place);
        if let Some(mailbox) = place.and_then(|place| self.mailboxes.get_mut(place)) {
            mailbox.deliver(phase.program, &packet.letters)?;
        }
        Ok(())
    }

    /// Waits for one packet, or, with little to do, until nobody else works, but no longer than [`PATIENCE`] allows.
    pub(super) fn wait(&mut self, phase: &Phase<'_, P>, with_work: bool) -> Result<Next> {
        if !self.flush(phase)? {
            return Ok(Next::End);
        }
        match phase.exchange.wait(self.me, with_work.then_some(self.patient_until)) {
            Event::Packet(packet) => self.open(phase, &packet).map(|()| Next::Arrived),
            Event::Turn => Ok(Next::Turn),
            Event::Enough => Ok(Next::Enough),
            Event::Settled | Event::Stopped => Ok(Next::End),
        }
    }

    /// Signals that arrived in all mailboxes since the generation began that was collected last.
    fn arrived(&self) -> u64 {
        self.mailboxes.iter().map(|mailbox| mailbox.stats().received).sum::<u64>() - self.received
    }

    /// True if fewer signals arrived than there were when nobody worked the last time: whoever collects them now signals what others are
    /// about to change.
    pub(super) fn got_little(&self) -> bool {
        self.arrived() < self.usual
    }

    /// A generation of all lists begins; nobody works if it `is_turn`.
    pub(super) fn begin_generation(&mut self, is_turn: bool) {
        let arrived = self.arrived();
        self.usual = if is_turn { arrived } else { self.usual.max(arrived) };
        self.received += arrived;
        self.began = Instant::now();
        if is_turn {
            self.longest = Duration::ZERO;
        }
    }

    /// It ended: the next may wait from now on.
    pub(super) fn end_generation(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.began);
        self.patient_until = now + PATIENCE * self.longest;
    }

    /// After each vertex: now and then takes in packets and looks at the clock. True if the phase was stopped.
    #[inline]
    pub(super) fn look(&mut self, phase: &Phase<'_, P>) -> Result<bool> {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            phase.job.check()?;
            self.take_in(phase)?;
            let is_late = phase.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late || phase.pause.is_some_and(|pause| pause.load(Ordering::Relaxed)) {
                phase.exchange.stop();
            }
        }
        Ok(phase.exchange.is_stopped())
    }
}
