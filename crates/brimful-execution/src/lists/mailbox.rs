//! The to-collect list of a partition: serialized signals by target.
//!
//! Signals are combined on arrival if the program combines them. Signals that exceed memory go to
//! disk as sorted runs, which are merged for collecting. Invariant: every signal is collected once,
//! or combined.

use std::sync::Arc;

use brimful_store::Budget;
use brimful_store::varint::{read_varint, write_varint};
use brimful_vertices::field::take;
use brimful_vertices::{Field, Growth, Id};

use crate::error::{Error, Failure, Result, catch};
use crate::lists::combine_buffer::{CombineBuffer, SignalTo, Taken};
use crate::lists::id_set::read_id;
use crate::lists::memory_table::{HashedKey, WARMED};
use crate::lists::message_table::{MINIMUM_BYTES, MessageTable};
use crate::lists::spill::SpillFile;
use crate::program::{Delivery, VertexProgram};

/// Signals that wait for vertices of one partition.
pub struct Mailbox<P: VertexProgram> {
    table: MessageTable,
    /// Combined signals that are not serialized yet; they follow those of `table`.
    buffer: CombineBuffer<P>,
    /// The signals of a packet.
    batch: Vec<SignalTo<P>>,
    key: Vec<u8>,
    folded: Vec<u8>,
    stats: MailboxStats,
}

/// Counters of a mailbox.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxStats {
    /// Signals that arrived.
    pub received: u64,
    /// Of these, signals combined with an earlier one.
    pub combined: u64,
    /// Spills to disk because memory was full.
    pub spills: u64,
}

/// An edge: its source, and its number among parallel edges.
type EdgeOf<P> = (<P as VertexProgram>::Id, u32);

/// The signals that wait for one vertex.
pub struct IncomingSignals<P: VertexProgram> {
    /// The signals in the order of arrival: one if they are combined, none if only a collect was
    /// requested.
    pub signals: Vec<P::Signal>,
    /// The edge of each signal for [`Delivery::LatestPerEdge`]: its source, and its number among
    /// parallel edges. Empty for other deliveries.
    pub sources: Vec<EdgeOf<P>>,
    growth: Growth,
}

/// Messages that are looked up together before they are added.
const BATCH: usize = WARMED;

/// The memory of up to this many signals stays reserved between vertices.
const FEW: usize = 1 << 12;

impl<P: VertexProgram> IncomingSignals<P> {
    /// No signals; `budget` provides their memory.
    pub fn new(budget: &Arc<Budget>) -> Result<Self> {
        let growth = Growth::new(budget, "for the signals to one vertex")?;
        Ok(Self { signals: Vec::new(), sources: Vec::new(), growth })
    }

    fn clear(&mut self) {
        if self.signals.capacity() > FEW {
            (self.signals, self.sources) = (Vec::new(), Vec::new());
        }
        self.signals.clear();
        self.sources.clear();
        let kept = self.signals.capacity() * size_of::<P::Signal>()
            + self.sources.capacity() * size_of::<(P::Id, u32)>();
        self.growth.give(self.growth.used().saturating_sub(kept as u64));
    }

    /// Replaces the received signals, which have been drained, with `signals`.
    pub fn replace(&mut self, signals: impl Iterator<Item = P::Signal>) -> Result<()> {
        for signal in signals {
            self.push(None, signal)?;
        }
        Ok(())
    }

    fn push(&mut self, source: Option<EdgeOf<P>>, signal: P::Signal) -> Result<()> {
        let heap =
            signal.heap_bytes() + source.as_ref().map_or(0, |(source, _)| source.heap_bytes());
        self.growth.take((heap + reserve_one(&mut self.signals)) as u64)?;
        self.signals.push(signal);
        if let Some(source) = source {
            self.growth.take(reserve_one(&mut self.sources) as u64)?;
            self.sources.push(source);
        }
        Ok(())
    }
}

/// Reserves capacity for one more element and returns the added bytes.
fn reserve_one<T>(list: &mut Vec<T>) -> usize {
    let before = list.capacity();
    list.reserve(1);
    (list.capacity() - before) * size_of::<T>()
}

/// Appends a message to a packet.
///
/// `target` is the [key](Id::write_key) of the target. Only [`Delivery::LatestPerEdge`] needs
/// `source`, with the number of the edge among parallel ones.
pub fn write_message<P: VertexProgram>(
    target: &[u8],
    source: Option<(&P::Id, u32)>,
    signal: &P::Signal,
    scratch: &mut Vec<u8>,
    packet: &mut Vec<u8>,
) {
    scratch.clear();
    if let Some((source, parallel)) = source {
        source.write(scratch);
        write_varint(u64::from(parallel), scratch);
    }
    signal.write(scratch);
    for part in [target, scratch.as_slice()] {
        write_varint(part.len() as u64, packet);
        packet.extend_from_slice(part);
    }
}

/// Copies the first message of `packet` to the end of `out`, with a signal that `change` makes of
/// it. `scratch` is a buffer.
///
/// # Errors
/// Errors of invalid messages and of `change`, with the target.
pub fn copy_message<P: VertexProgram>(
    packet: &mut &[u8],
    delivery: Delivery,
    change: impl FnOnce(P::Signal) -> Result<P::Signal, Failure>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (target, message) = next_message(packet)?;
    let changed = catch(|| {
        let (source, signal) = read_message::<P>(message, delivery)?;
        Ok((source, change(signal)?))
    });
    // Only an error names the target.
    let fail = |failure| match read_id::<P::Id>(target) {
        Ok(id) => Error::program(&id, "receive signals", failure),
        Err(error) => error,
    };
    let (source, signal) = changed.flatten().map_err(fail)?;
    let source = source.as_ref().map(|(source, parallel)| (source, *parallel));
    write_message::<P>(target, source, &signal, scratch, out);
    Ok(())
}

fn read_message<P: VertexProgram>(
    mut message: &[u8],
    delivery: Delivery,
) -> Result<(Option<EdgeOf<P>>, P::Signal), Failure> {
    let source = match delivery {
        Delivery::LatestPerEdge => {
            let source = P::Id::read(&mut message).ok_or(UNREADABLE)?;
            let parallel =
                read_varint(&mut message).and_then(|parallel| u32::try_from(parallel).ok());
            Some((source, parallel.ok_or(UNREADABLE)?))
        }
        Delivery::Each | Delivery::Combined => None,
    };
    Ok((source, read(message)?))
}

const UNREADABLE: &str = "a signal cannot read the bytes that it wrote; correct its `Field::read`";

fn read<T: Field>(mut bytes: &[u8]) -> Result<T, Failure> {
    let value = T::read(&mut bytes).filter(|_| bytes.is_empty());
    value.ok_or_else(|| UNREADABLE.into())
}

#[inline]
fn read_part<'p>(packet: &mut &'p [u8]) -> Option<&'p [u8]> {
    let length = usize::try_from(read_varint(packet)?).ok()?;
    take(packet, length)
}

/// Takes the first message of a packet: the bytes of its target's id, and its own.
#[inline]
fn next_message<'p>(packet: &mut &'p [u8]) -> Result<(&'p [u8], &'p [u8])> {
    let parts = read_part(packet).and_then(|target| Some((target, read_part(packet)?)));
    parts.ok_or_else(|| Error::Internal("a packet of signals ends within a signal".into()))
}

/// Combines two messages to the vertex whose serialized id is `key`.
fn combine_messages<P: VertexProgram>(
    program: &P,
    key: &[u8],
    waiting: &[u8],
    new: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let combined = catch(|| {
        let mut signal: P::Signal = read(waiting)?;
        program.combine(&mut signal, read(new)?)?;
        Ok(signal)
    });
    // Only an error names the target.
    let fail = |failure| match read_id::<P::Id>(key) {
        Ok(id) => Error::program(&id, "combine signals", failure),
        Err(error) => error,
    };
    combined.flatten().map_err(fail)?.write(out);
    Ok(())
}

impl<P: VertexProgram> Mailbox<P> {
    /// A mailbox that takes up to `bytes` of memory, at least [`crate::lists::MINIMUM_BYTES`], and
    /// spills to `file`. An eighth stays free for signals that grow. If signals are combined, the
    /// table has a quarter, at least [`crate::lists::MINIMUM_BYTES`], and the combine buffer the
    /// rest: a vertex takes half as much memory in the buffer, and signals to a vertex in it spill
    /// nothing. Most ids of the partition have numbers from `first` on.
    pub fn new(bytes: u64, delivery: Delivery, first: u64, file: &Arc<SpillFile>) -> Self {
        let (is_combined, bytes) = (delivery == Delivery::Combined, bytes - bytes / 8);
        let table = if is_combined { (bytes / 4).max(MINIMUM_BYTES) } else { bytes };
        let buffer = bytes.saturating_sub(table);
        Self {
            table: MessageTable::new(table, file),
            buffer: CombineBuffer::new(usize::try_from(buffer).unwrap_or(usize::MAX), first),
            batch: Vec::new(),
            key: Vec::new(),
            folded: Vec::new(),
            stats: MailboxStats::default(),
        }
    }

    /// Adds the messages of a packet and returns their number.
    ///
    /// # Errors
    /// Errors of the combiner, of invalid messages, and of spilling.
    pub fn deliver(&mut self, program: &P, mut packet: &[u8]) -> Result<u64> {
        let before = self.stats.received;
        if program.delivery() == Delivery::Combined {
            while !packet.is_empty() {
                self.deliver_combined(program, &mut packet)?;
            }
            return Ok(self.stats.received - before);
        }
        let mut batch = [(HashedKey::default(), [].as_slice()); BATCH];
        while !packet.is_empty() {
            let mut messages = 0;
            for place in &mut batch {
                if packet.is_empty() {
                    break;
                }
                let (target, message) = next_message(&mut packet)?;
                *place = (HashedKey::from(target), message);
                messages += 1;
            }
            let batch = batch.get(..messages).unwrap_or_default();
            self.table.warm(batch.iter().map(|(target, _)| *target));
            for (target, message) in batch {
                self.stats.received += 1;
                self.table.add(*target, Some(message), None)?;
            }
        }
        Ok(self.stats.received - before)
    }

    /// Adds the first messages of a packet.
    fn deliver_combined(&mut self, program: &P, packet: &mut &[u8]) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        while !packet.is_empty() && batch.len() < BATCH {
            let (target, message) = next_message(packet)?;
            let id = read_id::<P::Id>(target)?;
            match catch(|| read(message)).flatten() {
                Ok(signal) => batch.push((id, signal)),
                Err(failure) => return Err(Error::program(&id, "combine signals", failure)),
            }
        }
        self.receive(program, &mut batch)?;
        self.batch = batch;
        Ok(())
    }

    /// Adds signals that are combined; drains `signals`.
    ///
    /// # Errors
    /// Errors of the combiner and of spilling.
    pub fn receive(&mut self, program: &P, signals: &mut Vec<SignalTo<P>>) -> Result<()> {
        self.stats.received += signals.len() as u64;
        if !self.buffer.fits(signals) {
            self.serialize_buffer(program)?;
        }
        if self.buffer.fits(signals) {
            self.stats.combined += self.buffer.add(program, signals)?;
            return Ok(());
        }
        let one = |(id, signal)| (id, Some(signal));
        signals.drain(..).try_for_each(|signal| self.serialize_one(program, &one(signal)))
    }

    /// Serializes the combine buffer into the message table.
    fn serialize_buffer(&mut self, program: &P) -> Result<()> {
        let mut buffer = std::mem::replace(&mut self.buffer, CombineBuffer::new(0, 0));
        let done = buffer.drain().try_for_each(|taken| self.serialize_one(program, &taken));
        self.buffer = buffer;
        done
    }

    fn serialize_one(&mut self, program: &P, (id, signal): &Taken<P>) -> Result<()> {
        let Some(signal) = signal else { return self.request_in_table(id) };
        let (mut key, mut message) =
            (std::mem::take(&mut self.key), std::mem::take(&mut self.folded));
        key.clear();
        message.clear();
        id.write_key(&mut key);
        signal.write(&mut message);
        let combine = |waiting: &[u8], new: &[u8], out: &mut Vec<u8>| {
            combine_messages(program, &key, waiting, new, out)
        };
        let is_new = self.table.add(&key, Some(&message), Some(&combine))?;
        self.stats.combined += u64::from(!is_new);
        (self.key, self.folded) = (key, message);
        Ok(())
    }

    /// Requests a collect of the vertex `id`, with or without signals.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn request(&mut self, program: &P, id: &P::Id) -> Result<()> {
        if program.delivery() == Delivery::Combined && self.buffer.request(id) {
            return Ok(());
        }
        self.request_in_table(id)
    }

    fn request_in_table(&mut self, id: &P::Id) -> Result<()> {
        self.folded.clear();
        id.write_key(&mut self.folded);
        self.table.add(&self.folded, None, None)?;
        Ok(())
    }

    /// Begins a generation whose vertices are taken by ascending ids, unless one is open.
    ///
    /// # Errors
    /// Errors of the combiner and of spilling.
    pub fn begin_in_order(&mut self, program: &P) -> Result<()> {
        if self.table.is_open() || self.buffer.is_open() {
            return Ok(());
        }
        if program.delivery() == Delivery::Combined && self.table.is_empty()? {
            self.buffer.begin_in_order();
            return Ok(());
        }
        self.serialize_buffer(program)?;
        self.table.begin_in_order()
    }

    /// Up to `most` vertices that are taken next, as far as they are known.
    ///
    /// # Errors
    /// Errors of ids that cannot be read.
    pub fn upcoming(&self, most: usize) -> Result<Vec<P::Id>> {
        match self.buffer.is_open() {
            true => Ok(self.buffer.upcoming(most).cloned().collect()),
            false => self.table.upcoming(most).map(read_id).collect(),
        }
    }

    /// Takes the signals for the next vertex; `None` at the end of the generation. A generation
    /// holds the signals that had arrived when its first vertex was taken; later ones belong to the
    /// next.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] if the signals to one vertex exceed the memory that is
    /// left.
    pub fn take(
        &mut self,
        program: &P,
        incoming: &mut IncomingSignals<P>,
    ) -> Result<Option<P::Id>> {
        incoming.clear();
        if self.buffer.is_open() {
            let Some((id, signal)) = self.buffer.next_in_order() else { return Ok(None) };
            if let Some(signal) = signal {
                incoming.push(None, signal)?;
            }
            return Ok(Some(id));
        }
        if !self.table.is_open() {
            self.serialize_buffer(program)?;
        }
        let Some(mut group) = self.table.next_group()? else { return Ok(None) };
        let id = read_id::<P::Id>(group.key())?;
        let delivery = program.delivery();
        while let Some(message) = group.next_message()? {
            let taken = catch(|| {
                let (source, signal) = read_message::<P>(message, delivery)?;
                match incoming.signals.first_mut() {
                    Some(waiting) if delivery == Delivery::Combined => {
                        program.combine(waiting, signal)?
                    }
                    _ => return Ok(Some((source, signal))),
                }
                Ok(None)
            });
            let fail = |failure| Error::program(&id, "combine signals", failure);
            if let Some((source, signal)) = taken.flatten().map_err(fail)? {
                incoming.push(source, signal)?;
            }
        }
        if let Some(signal) = self.buffer.take(&id) {
            match incoming.signals.first_mut() {
                Some(waiting) => {
                    let combined = catch(|| program.combine(waiting, signal)).flatten();
                    combined.map_err(|failure| Error::program(&id, "combine signals", failure))?;
                }
                None => incoming.push(None, signal)?,
            }
        }
        Ok(Some(id))
    }

    /// True if no signal or request waits.
    pub fn is_empty(&mut self) -> Result<bool> {
        Ok(self.buffer.is_empty() && self.table.is_empty()?)
    }

    /// Counters so far.
    pub fn stats(&self) -> MailboxStats {
        MailboxStats { spills: self.table.spills(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brimful_store::{DiskFolder, Job};

    use super::*;
    use crate::lists::texts::Texts;

    fn mailbox(bytes: u64, delivery: Delivery) -> Mailbox<Texts> {
        let folder = tempfile::tempdir().unwrap();
        let file = SpillFile::new(&DiskFolder::new(folder.path()), &Arc::new(Job::new())).unwrap();
        Mailbox::new(bytes, delivery, 0, &Arc::new(file))
    }

    fn send(
        mailbox: &mut Mailbox<Texts>,
        program: &Texts,
        source: u64,
        target: u64,
        signal: &str,
    ) -> Result<()> {
        let (mut id, mut packet) = (Vec::new(), Vec::new());
        target.write_key(&mut id);
        let source = (program.0 == Delivery::LatestPerEdge).then_some((&source, 0));
        write_message::<Texts>(&id, source, &signal.to_owned(), &mut Vec::new(), &mut packet);
        mailbox.deliver(program, &packet).map(|messages| assert_eq!(messages, 1))
    }

    fn incoming() -> IncomingSignals<Texts> {
        IncomingSignals::new(&Budget::new(1 << 20, 0)).unwrap()
    }

    fn drain(
        mailbox: &mut Mailbox<Texts>,
        program: &Texts,
    ) -> BTreeMap<u64, (Vec<u64>, Vec<String>)> {
        let (mut incoming, mut all) = (incoming(), BTreeMap::new());
        while let Some(id) = mailbox.take(program, &mut incoming).unwrap() {
            assert!(
                all.insert(
                    id,
                    (
                        incoming.sources.iter().map(|(source, _)| *source).collect::<Vec<_>>(),
                        incoming.signals.clone()
                    )
                )
                .is_none(),
                "{id} twice"
            );
        }
        all
    }

    #[test]
    fn signals_are_handed_out_by_recipient_in_the_order_in_which_they_came() {
        for delivery in [Delivery::Each, Delivery::LatestPerEdge] {
            let (program, mut mailbox) = (Texts(delivery), mailbox(1 << 20, delivery));
            for (source, target, signal) in [(1, 7, "b"), (2, 8, ""), (1, 7, "a"), (3, 7, "c")] {
                send(&mut mailbox, &program, source, target, signal).unwrap();
            }
            mailbox.request(&program, &9).unwrap();
            mailbox.request(&program, &7).unwrap();
            let all = drain(&mut mailbox, &program);
            assert_eq!(all.len(), 3);
            let sources = if delivery == Delivery::Each { vec![] } else { vec![1, 1, 3] };
            assert_eq!(all[&7], (sources, vec!["b".into(), "a".into(), "c".into()]));
            assert_eq!(all[&8].1, [""]);
            assert_eq!(all[&9], (vec![], vec![]));
            assert!(mailbox.is_empty().unwrap());
            assert_eq!(mailbox.stats().received, 4);
        }
    }

    #[test]
    fn combined_signals_are_one_in_memory_and_from_disk() {
        for bytes in [64 << 20, 0] {
            let (program, mut mailbox) =
                (Texts(Delivery::Combined), mailbox(bytes, Delivery::Combined));
            let text = |number: u64| format!("{:05}", number * 7919 % 100_003);
            for number in 0..100_000 {
                send(&mut mailbox, &program, 0, number % 20_000, &text(number)).unwrap();
            }
            let stats = mailbox.stats();
            assert_eq!((stats.received, stats.spills > 0), (100_000, bytes == 0));
            assert!(bytes == 0 || stats.combined == 80_000, "{stats:?}");
            let all = drain(&mut mailbox, &program);
            for target in 0..20_000 {
                let greatest = (0..5).map(|round| text(target + round * 20_000)).max().unwrap();
                assert_eq!(all[&target].1, [greatest]);
            }
        }
    }

    #[test]
    fn signals_that_come_before_their_vertex_is_taken_out_are_collected_with_the_others() {
        for bytes in [1 << 20, 0] {
            let (program, mut mailbox) =
                (Texts(Delivery::Combined), mailbox(bytes, Delivery::Combined));
            let mut incoming = incoming();
            (0..1000).for_each(|target| send(&mut mailbox, &program, 0, target, "a").unwrap());
            let first = mailbox.take(&program, &mut incoming).unwrap().unwrap();
            for (target, signal) in
                [(first, "late"), (first + 1, "b"), (first + 1, "c"), (2000, "new")]
            {
                send(&mut mailbox, &program, 0, target, signal).unwrap();
            }
            assert!(!mailbox.is_empty().unwrap());
            let (mut left, mut next) = (Vec::new(), BTreeMap::new());
            while let Some(id) = mailbox.take(&program, &mut incoming).unwrap() {
                left.push((id, incoming.signals.clone()));
            }
            // A generation contains the recipients of messages at its beginning.
            assert_eq!(left.len(), 999);
            let of = left.iter().find(|(id, _)| *id == first + 1).unwrap();
            assert_eq!(of.1, ["c"]);
            while let Some(id) = mailbox.take(&program, &mut incoming).unwrap() {
                next.insert(id, incoming.signals.clone());
            }
            assert_eq!(next, [(first, vec!["late".to_owned()]), (2000, vec!["new".into()])].into());
            assert!(mailbox.is_empty().unwrap());
        }
    }

    #[test]
    fn a_failing_combiner_names_the_vertex() {
        let (program, mut mailbox) =
            (Texts(Delivery::Combined), mailbox(1 << 20, Delivery::Combined));
        send(&mut mailbox, &program, 0, 42, "a").unwrap();
        let error = send(&mut mailbox, &program, 0, 42, "poison").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the program failed to combine signals at vertex 42: tastes bad"
        );
    }

    #[test]
    fn signals_to_one_vertex_that_exceed_the_budget_are_refused_by_a_figure() {
        let (program, mut mailbox) = (Texts(Delivery::Each), mailbox(64 << 20, Delivery::Each));
        (0..100_000)
            .for_each(|_| send(&mut mailbox, &program, 0, 1, "a signal of some length").unwrap());
        let error = mailbox.take(&program, &mut incoming()).unwrap_err().to_string();
        assert!(error.contains("too small for the signals to one vertex"), "{error}");
    }

    #[test]
    fn packets_that_are_cut_off_are_refused() {
        let mut packet = Vec::new();
        write_message::<Texts>(&[5], None, &"text".into(), &mut Vec::new(), &mut packet);
        for length in 1..packet.len() {
            let mut mailbox = mailbox(0, Delivery::Each);
            assert!(mailbox.deliver(&Texts(Delivery::Each), &packet[..length]).is_err());
        }
    }
}
