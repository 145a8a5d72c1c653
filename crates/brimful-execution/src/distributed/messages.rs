//! Signals between the processes of an execution.
//!
//! Each process empties its relays into one batch of limited length for each other process, and all
//! exchange their batches at once. Nearly always one batch for each receiver suffices. Otherwise
//! the senders with more signals for a receiver take turns, in the order of processes: one sends
//! until it is done, while the receiver keeps the batches of later senders unopened. All processes
//! compute the order from the same facts.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use brimful_engine::exchange::{Contribution, Received};
use brimful_store::{Job, Resources};
use brimful_vertices::{Id, VertexStore};

use crate::Execution;
use crate::error::{Error, Failure, Result, catch, element, no_element};
use crate::lists::{IncomingSignals, Mailbox, copy_message, write_message};
use crate::partitioner::Owners;
use crate::process_partitions::{Connected, failed, malformed};
use crate::program::{VertexOf, VertexProgram};
use crate::run::PACKET_BYTES;
use crate::worker::Worker;

/// Signals that leave relays: the vertex whose signals are on the way, and the next one of them.
struct Leaving<P: VertexProgram> {
    partitions: Range<usize>,
    signals: IncomingSignals<P>,
    target: Option<P::Id>,
    next: usize,
}

/// The batches for one process.
struct Outgoing<P: VertexProgram> {
    leaving: Leaving<P>,
    batch: Vec<u8>,
    is_done: bool,
}

/// A process while it passes on signals.
struct Passing<'p, P: VertexProgram, S> {
    program: &'p P,
    workers: &'p mut [Mutex<Worker<P, S>>],
    owners: &'p Owners,
    key: Vec<u8>,
    scratch: Vec<u8>,
    packet: Vec<u8>,
}

/// The senders whose turn it is, and the batches that this process has not opened yet.
struct SendOrder {
    /// This process; `None` in the driver.
    own: Option<usize>,
    /// By receiver: the first sender that is not done.
    current: Vec<usize>,
    /// By receiver and sender.
    done: Vec<Vec<bool>>,
    /// By sender.
    waiting: Vec<Option<Received>>,
    /// Senders whose signals to this process are all opened.
    opened: usize,
    is_first: bool,
}

impl SendOrder {
    fn new(count: usize, own: Option<usize>) -> Self {
        Self {
            own,
            current: vec![0; count],
            done: vec![vec![false; count]; count],
            waiting: (0..count).map(|_| None).collect(),
            opened: 0,
            is_first: true,
        }
    }

    /// True if all processes are done.
    fn is_over(&self) -> bool {
        self.current.iter().all(|sender| *sender == self.current.len())
    }

    /// True if this process sends to process `to` now. At first, all send to all.
    fn sends(&self, to: usize) -> bool {
        self.is_first || self.current.get(to).copied() == self.own
    }

    /// Takes the batches that all processes sent to this one. Flags say to which receivers a sender
    /// has finished.
    fn take(&mut self, all: Vec<Contribution>) -> Result<()> {
        for (sender, one) in all.into_iter().enumerate() {
            let flags = (*one.facts).as_ref();
            if flags.len() != self.current.len() {
                return Err(malformed());
            }
            for (done, flag) in self.done.iter_mut().zip(flags) {
                *element(done, sender, "process")? = *flag == 1;
            }
            if !(*one.signals).as_ref().is_empty() {
                *element(&mut self.waiting, sender, "process")? = Some(one.signals);
            }
        }
        for (sender, done) in self.current.iter_mut().zip(&self.done) {
            *sender += done.iter().skip(*sender).take_while(|is_done| **is_done).count();
        }
        self.is_first = false;
        Ok(())
    }

    /// The senders whose signals to this process may be opened now, in order: those that are done,
    /// and the one whose turn it is.
    fn ready(&mut self, own: usize) -> Range<usize> {
        let current = self.current.get(own).copied().unwrap_or_default();
        let ready = self.opened..self.current.len().min(current + 1);
        self.opened = current;
        ready
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'_, P, S> {
    /// Sends the signals of this process, and receives those for its vertices.
    pub(crate) fn pass_on(&mut self) -> Result<()> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        let (program, resources) = (&self.program, self.resources);
        connected.exchange_ids(program, &resources.job)?;
        let processes = connected.processes.clone();
        let own = processes.communicator.index;
        let outgoing = |to| -> Result<Outgoing<P>> {
            let leaving = Leaving::new(processes.of_process(to), resources)?;
            Ok(Outgoing { leaving, batch: Vec::new(), is_done: Some(to) == own })
        };
        let receivers = if own.is_some() { 0..processes.communicator.count } else { 0..0 };
        let mut outgoing = receivers.map(outgoing).collect::<Result<Vec<_>>>()?;
        let mut passing = Passing {
            program,
            workers: &mut self.workers,
            owners: &self.owners,
            key: Vec::new(),
            scratch: Vec::new(),
            packet: Vec::new(),
        };
        let mut order = SendOrder::new(processes.communicator.count, own);
        while !order.is_over() {
            within(program, || {
                for (to, one) in outgoing.iter_mut().enumerate() {
                    one.batch.clear();
                    if !one.is_done && order.sends(to) {
                        passing.fill(one, connected.batch_bytes)?;
                    }
                }
                Ok(())
            })?;
            order.take(connected.exchange_batches(&outgoing, &resources.job)?)?;
            let Some(own) = own else { continue };
            within(program, || {
                for sender in order.ready(own) {
                    let waiting = element(&mut order.waiting, sender, "process")?.take();
                    match waiting {
                        _ if sender == own => {
                            passing.keep(Leaving::new(processes.own(), resources)?)?;
                        }
                        Some(batch) => passing.open((*batch).as_ref())?,
                        None => {}
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Connected {
    /// Lets all processes know the ids that signals of this superstep name for the first time.
    fn exchange_ids<P: VertexProgram>(&self, program: &P, job: &Job) -> Result<()> {
        let Some(named) = program.new_ids().map_err(failed)? else { return Ok(()) };
        let all = self.all_gather(&named, job)?;
        let all: Vec<&[u8]> = all.iter().map(|one| (*one.facts).as_ref()).collect();
        program.accept_ids(&all).map_err(failed)
    }

    /// Sends batches, and receives those for this process. Flags say to which receivers a sender
    /// has finished.
    fn exchange_batches<P: VertexProgram>(
        &mut self,
        outgoing: &[Outgoing<P>],
        job: &Job,
    ) -> Result<Vec<Contribution>> {
        let over = |length: usize| length.saturating_sub(self.batch_bytes) as u64;
        let sent = outgoing.iter().map(|one| over(one.batch.len())).sum();
        self.excess.take(sent)?;
        let flags: Vec<u8> = outgoing.iter().map(|one| u8::from(one.is_done)).collect();
        let mut parts: Vec<&[u8]> = outgoing.iter().map(|one| one.batch.as_slice()).collect();
        // The driver receives no signals.
        parts.resize(self.processes.communicator.count + 1, &[]);
        let all = self.scatter(&flags, &parts, job)?;
        self.excess.give(sent);
        Ok(all)
    }
}

/// Does `work` with the lock that the program holds for all its calls.
fn within(program: &impl VertexProgram, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let (mut work, mut result) = (Some(work), Ok(()));
    program.within_phase(&mut || {
        if let Some(work) = work.take() {
            result = work();
        }
    });
    result
}

impl<P: VertexProgram> Leaving<P> {
    /// All signals in the relays of `partitions`.
    fn new(partitions: Range<usize>, resources: &Resources) -> Result<Self> {
        let signals = IncomingSignals::new(&resources.budget)?;
        Ok(Self { partitions, signals, target: None, next: 0 })
    }

    /// Writes signals to the vertices of the first of the partitions to `out`, which takes `most`
    /// bytes, and one signal more; false if the partition has no more of them.
    fn write(
        &mut self,
        (program, relay): (&P, &mut Mailbox<P>),
        (key, scratch): (&mut Vec<u8>, &mut Vec<u8>),
        (out, most): (&mut Vec<u8>, usize),
        change: impl Fn(P::Signal) -> Result<P::Signal, Failure>,
    ) -> Result<bool> {
        while out.len() < most {
            let Some(target) = &self.target else {
                self.target = relay.take(program, &mut self.signals)?;
                self.next = 0;
                if self.target.is_none() {
                    return Ok(false);
                }
                continue;
            };
            key.clear();
            program.final_id(target).write_key(key);
            while out.len() < most
                && let Some(signal) = self.signals.signals.get(self.next)
            {
                let changed = catch(|| change(signal.clone())).flatten();
                let signal =
                    changed.map_err(|failure| Error::program(target, "send signals", failure))?;
                let source = self.signals.sources.get(self.next);
                let source = source.map(|(source, parallel)| (source, *parallel));
                write_message::<P>(key, source, &signal, scratch, out);
                self.next += 1;
            }
            if self.next >= self.signals.signals.len() {
                self.target = None;
            }
        }
        Ok(true)
    }
}

/// The length of the head of a section of a batch: the partition, and the bytes that follow.
const HEAD_BYTES: usize = 16;

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Passing<'_, P, S> {
    /// Fills a batch with signals of the relays for a process: a section for each partition.
    fn fill(&mut self, outgoing: &mut Outgoing<P>, most: usize) -> Result<()> {
        let Outgoing { leaving, batch, is_done } = outgoing;
        batch.reserve_exact(most + HEAD_BYTES);
        while batch.len() < most && !leaving.partitions.is_empty() {
            let partition = leaving.partitions.start;
            let begin = batch.len();
            batch.extend_from_slice(&(partition as u64).to_le_bytes());
            batch.extend_from_slice(&[0; HEAD_BYTES / 2]);
            let (worker, slot) = self.owners.mailbox(partition)?;
            let relay = mailbox(self.workers, worker, slot)?;
            let buffers = (&mut self.key, &mut self.scratch);
            let export = |signal| self.program.export(signal);
            let room = most + HEAD_BYTES;
            if !leaving.write((self.program, relay), buffers, (batch, room), export)? {
                leaving.partitions.start += 1;
            }
            let length = (batch.len() - begin - HEAD_BYTES) as u64;
            if length == 0 {
                batch.truncate(begin);
            } else if let Some(head) = batch.get_mut(begin + HEAD_BYTES / 2..begin + HEAD_BYTES) {
                head.copy_from_slice(&length.to_le_bytes());
            }
        }
        *is_done = leaving.partitions.is_empty();
        Ok(())
    }

    /// Puts the signals of a batch from another process into the mailboxes of their targets.
    fn open(&mut self, mut batch: &[u8]) -> Result<()> {
        let delivery = self.program.delivery();
        while let Some((head, rest)) = batch.split_first_chunk::<HEAD_BYTES>() {
            let (words, _) = head.as_chunks();
            let [partition, length] =
                [0, 1].map(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word) as usize));
            let (mut messages, others) = rest.split_at_checked(length).ok_or_else(malformed)?;
            batch = others;
            let (worker, slot) = self.owners.own_slot(partition).map_err(|_| malformed())?;
            let mailbox = mailbox(self.workers, worker, slot)?;
            while !messages.is_empty() {
                self.packet.clear();
                while !messages.is_empty() && self.packet.len() < PACKET_BYTES {
                    let import = |signal| self.program.import(signal);
                    let (scratch, packet) = (&mut self.scratch, &mut self.packet);
                    copy_message::<P>(&mut messages, delivery, import, scratch, packet)?;
                }
                mailbox.deliver(self.program, &self.packet)?;
            }
        }
        if batch.is_empty() { Ok(()) } else { Err(malformed()) }
    }

    /// Puts the signals of this process to its own vertices into their mailboxes.
    fn keep(&mut self, mut leaving: Leaving<P>) -> Result<()> {
        while !leaving.partitions.is_empty() {
            let partition = leaving.partitions.start;
            let (worker, slot) = self.owners.mailbox(partition)?;
            let relay = mailbox(self.workers, worker, slot)?;
            self.packet.clear();
            let (buffers, out) =
                ((&mut self.key, &mut self.scratch), (&mut self.packet, PACKET_BYTES));
            if !leaving.write((self.program, relay), buffers, out, Ok)? {
                leaving.partitions.start += 1;
            }
            let (worker, slot) = self.owners.own_slot(partition)?;
            mailbox(self.workers, worker, slot)?.deliver(self.program, &self.packet)?;
        }
        Ok(())
    }
}

/// The mailbox at a slot of a worker.
fn mailbox<P: VertexProgram, S>(
    workers: &mut [Mutex<Worker<P, S>>],
    worker: usize,
    slot: usize,
) -> Result<&mut Mailbox<P>> {
    let count = workers.len();
    let worker = workers.get_mut(worker).ok_or_else(|| no_element(worker, count, "worker"))?;
    let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
    element(&mut worker.context.mailboxes, slot, "mailbox")
}
