//! The to-collect list: the signals themselves, serialized, by the vertex they are for.
//!
//! There is one for each partition. Where signals are combined, it is done when they arrive, and the result written down. What exceeds
//! memory goes to disk as sorted runs and is merged when collected. Beside the signals it may hold what a vertex knows
//! already, so that a signal that is no news to it wakes nobody (*Making Signal/Collect Scale*, section 3.2, suggests it).
//! Invariant: every signal is collected once, or combined, or no news.

use std::sync::Arc;

use brimful_store::Budget;

use crate::error::{Error, Failure, Result, catch};
use crate::field::{Field, read_varint, take, write_varint};
use crate::growth::Growth;
use crate::lists::front::{Front, SignalTo};
use crate::lists::id_set::read_id;
use crate::lists::pile::Pile;
use crate::lists::spill::SpillFile;
use crate::lists::table::{Added, Key, Table, WARMED};
use crate::program::{Delivery, VertexProgram};

/// Signals that wait for vertices of one partition.
pub struct Mailbox<P: VertexProgram> {
    pile: Pile,
    /// Signals that were combined and not written down yet; such a one belongs behind those of `pile`.
    front: Front<P>,
    /// Those of a packet.
    batch: Vec<SignalTo<P>>,
    /// What vertices know already, for as many as there is room for.
    known: Table,
    key: Vec<u8>,
    folded: Vec<u8>,
    stats: MailboxStats,
}

/// What a mailbox did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxStats {
    /// Signals that arrived.
    pub received: u64,
    /// Of these, those combined with one that was there.
    pub combined: u64,
    /// Of these, those that were no news to their vertex.
    pub no_news: u64,
    /// Times that memory was full and signals went to disk.
    pub spills: u64,
}

/// An edge: its source, and which of its parallel edges it is.
type Along<P> = (<P as VertexProgram>::Id, u32);

/// What waits for one vertex.
pub struct Mail<P: VertexProgram> {
    /// The signals, in the order in which they came; one where they are combined, none if only a collect was requested.
    pub signals: Vec<P::Signal>,
    /// The edges that they came along, where the latest of each is kept: source, and which of its parallel edges; else empty.
    pub sources: Vec<Along<P>>,
    growth: Growth,
}

/// Letters that are looked up together before they are added.
const BATCH: usize = WARMED;

/// Signals of which the memory stays reserved between vertices.
const FEW: usize = 1 << 12;

impl<P: VertexProgram> Mail<P> {
    /// No mail; its memory comes from `budget`.
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

    fn push(&mut self, source: Option<Along<P>>, signal: P::Signal) -> Result<()> {
        let heap = signal.heap_bytes() + source.as_ref().map_or(0, |(source, _)| source.heap_bytes());
        self.growth.take((heap + room_for_one(&mut self.signals)) as u64)?;
        self.signals.push(signal);
        if let Some(source) = source {
            self.growth.take(room_for_one(&mut self.sources) as u64)?;
            self.sources.push(source);
        }
        Ok(())
    }
}

/// Makes room for one more element; the bytes that were added.
fn room_for_one<T>(list: &mut Vec<T>) -> usize {
    let before = list.capacity();
    list.reserve(1);
    (list.capacity() - before) * size_of::<T>()
}

/// Appends a letter to a packet: along one of the parallel edges of `source`, if its latest signal is kept, to the vertex whose id has
/// the bytes `target`.
pub fn write_letter<P: VertexProgram>(
    target: &[u8],
    source: Option<(&P::Id, u32)>,
    signal: &P::Signal,
    room: &mut Vec<u8>,
    packet: &mut Vec<u8>,
) {
    room.clear();
    if let Some((source, parallel)) = source {
        source.write(room);
        write_varint(u64::from(parallel), room);
    }
    signal.write(room);
    for part in [target, room.as_slice()] {
        write_varint(part.len() as u64, packet);
        packet.extend_from_slice(part);
    }
}

/// What a letter says.
fn read_letter<P: VertexProgram>(
    mut letter: &[u8],
    delivery: Delivery,
) -> Result<(Option<Along<P>>, P::Signal), Failure> {
    let source = match delivery {
        Delivery::LatestPerEdge => {
            let source = P::Id::read(&mut letter).ok_or(UNREADABLE)?;
            let parallel = read_varint(&mut letter).and_then(|parallel| u32::try_from(parallel).ok());
            Some((source, parallel.ok_or(UNREADABLE)?))
        }
        Delivery::Each | Delivery::Combined => None,
    };
    Ok((source, read(letter)?))
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

/// The id's bytes and the letter that a packet begins with.
#[inline]
fn next_letter<'p>(packet: &mut &'p [u8]) -> Result<(&'p [u8], &'p [u8])> {
    let parts = read_part(packet).and_then(|target| Some((target, read_part(packet)?)));
    parts.ok_or_else(|| Error::Usage("a packet of signals ends within a signal".into()))
}

/// Makes one letter of two to the vertex whose id has the bytes `key`.
fn combine_letters<P: VertexProgram>(
    program: &P,
    key: &[u8],
    held: &[u8],
    new: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let combined = catch(|| {
        let mut signal: P::Signal = read(held)?;
        program.combine(&mut signal, read(new)?)?;
        Ok(signal)
    });
    // Who it is for matters only if it fails.
    let fail = |failure| match read_id::<P::Id>(key) {
        Ok(id) => Error::program(&id, "combine signals", failure),
        Err(error) => error,
    };
    combined.flatten().map_err(fail)?.write(out);
    Ok(())
}

impl<P: VertexProgram> Mailbox<P> {
    /// A mailbox that takes up to `bytes` of memory, but [`crate::lists::MINIMUM_BYTES`] in any case, and the rest to `file`. An eighth is for
    /// what vertices know, if the program says it, and a quarter for signals that are not written down yet, if they are combined.
    pub fn new(bytes: u64, delivery: Delivery, file: &Arc<SpillFile>) -> Self {
        let known = bytes / 8;
        let front = if delivery == Delivery::Combined { bytes / 4 } else { 0 };
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            pile: Pile::new(bytes - known - front, file),
            front: Front::new(size(front)),
            batch: Vec::new(),
            known: Table::new(size(known)),
            key: Vec::new(),
            folded: Vec::new(),
            stats: MailboxStats::default(),
        }
    }

    /// Takes in the letters of a packet; how many there were.
    pub fn deliver(&mut self, program: &P, mut packet: &[u8]) -> Result<u64> {
        let before = self.stats.received;
        if program.delivery() == Delivery::Combined {
            while !packet.is_empty() {
                self.deliver_combined(program, &mut packet)?;
            }
            return Ok(self.stats.received - before);
        }
        let mut batch = [(Key::default(), [].as_slice()); BATCH];
        while !packet.is_empty() {
            let mut letters = 0;
            for place in &mut batch {
                if packet.is_empty() {
                    break;
                }
                let (target, letter) = next_letter(&mut packet)?;
                *place = (Key::from(target), letter);
                letters += 1;
            }
            let batch = batch.get(..letters).unwrap_or_default();
            self.pile.warm(batch.iter().map(|(target, _)| *target));
            for (target, letter) in batch {
                self.stats.received += 1;
                self.pile.add(*target, Some(letter), None)?;
            }
        }
        Ok(self.stats.received - before)
    }

    /// Takes in the first letters of a packet.
    fn deliver_combined(&mut self, program: &P, packet: &mut &[u8]) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        while !packet.is_empty() && batch.len() < BATCH {
            let (target, letter) = next_letter(packet)?;
            let id = read_id::<P::Id>(target)?;
            match catch(|| read(letter)).flatten() {
                Ok(signal) => batch.push((id, signal)),
                Err(failure) => return Err(Error::program(&id, "combine signals", failure)),
            }
        }
        self.receive(program, &mut batch)?;
        self.batch = batch;
        Ok(())
    }

    /// Takes in signals that are combined.
    pub fn receive(&mut self, program: &P, signals: &mut Vec<SignalTo<P>>) -> Result<()> {
        self.stats.received += signals.len() as u64;
        if self.known.len() > 0 {
            let mut is_news = Vec::with_capacity(signals.len());
            for signal in signals.iter() {
                is_news.push(self.is_news(program, signal)?);
            }
            let mut is_news = is_news.into_iter();
            signals.retain(|_| is_news.next() == Some(true));
        }
        if !self.front.has_room_for(signals) {
            self.write_down(program)?;
        }
        if self.front.has_room_for(signals) {
            self.stats.combined += self.front.add(program, signals)?;
            return Ok(());
        }
        signals.drain(..).try_for_each(|signal| self.write_one(program, &signal))
    }

    /// False if a signal changes nothing in what its vertex knows.
    fn is_news(&mut self, program: &P, (id, signal): &SignalTo<P>) -> Result<bool> {
        let (mut key, mut letter) = (Vec::new(), Vec::new());
        id.write(&mut key);
        signal.write(&mut letter);
        let Some(known) = self.known.get(Key::from(&key)) else { return Ok(true) };
        self.folded.clear();
        combine_letters(program, &key, known, &letter, &mut self.folded)?;
        let is_news = self.folded != known;
        self.stats.no_news += u64::from(!is_news);
        Ok(is_news)
    }

    /// Writes down what was combined.
    fn write_down(&mut self, program: &P) -> Result<()> {
        let mut front = std::mem::replace(&mut self.front, Front::new(0));
        let done = front.drain().try_for_each(|signal| self.write_one(program, &signal));
        self.front = front;
        done
    }

    fn write_one(&mut self, program: &P, (id, signal): &SignalTo<P>) -> Result<()> {
        let (mut key, mut letter) = (std::mem::take(&mut self.key), std::mem::take(&mut self.folded));
        key.clear();
        letter.clear();
        id.write(&mut key);
        signal.write(&mut letter);
        let combine =
            |held: &[u8], new: &[u8], out: &mut Vec<u8>| combine_letters(program, &key, held, new, out);
        let is_new = self.pile.add(&key, Some(&letter), Some(&combine))?;
        self.stats.combined += u64::from(!is_new);
        (self.key, self.folded) = (key, letter);
        Ok(())
    }

    /// Asks for a collect of the vertex `id`, be there signals or not.
    pub fn request<I: Field>(&mut self, id: &I) -> Result<()> {
        self.folded.clear();
        id.write(&mut self.folded);
        self.pile.add(&self.folded, None, None)?;
        Ok(())
    }

    /// Remembers what the vertex `id` knows, if there is room: a signal that changes nothing when combined with it
    /// is dropped from now on.
    pub fn hold(&mut self, id: &P::Id, known: &P::Signal) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        id.write(&mut key);
        known.write(&mut value);
        let replace = |_: &[u8], new: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(new);
            Ok(())
        };
        if self.known.add(Key::from(&key), Some(&value), Some(&replace))? == Added::Full {
            // What is forgotten costs a useless fetch, no more.
            self.known.clear();
        }
        Ok(())
    }

    /// Forgets what vertices know: states were changed from outside.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Takes out what waits for the next vertex; `None` at the end of the generation: of the vertices for which something waited when
    /// the first was taken out. What arrived since begins the next one.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] if the signals to one vertex exceed the memory that is left.
    pub fn take(&mut self, program: &P, mail: &mut Mail<P>) -> Result<Option<P::Id>> {
        mail.clear();
        if !self.pile.is_open() {
            self.write_down(program)?;
        }
        let Some(mut group) = self.pile.next_group()? else { return Ok(None) };
        let id = read_id::<P::Id>(group.key())?;
        let delivery = program.delivery();
        while let Some(letter) = group.next_letter()? {
            let taken = catch(|| {
                let (source, signal) = read_letter::<P>(letter, delivery)?;
                match mail.signals.first_mut() {
                    Some(held) if delivery == Delivery::Combined => program.combine(held, signal)?,
                    _ => return Ok(Some((source, signal))),
                }
                Ok(None)
            });
            let fail = |failure| Error::program(&id, "combine signals", failure);
            if let Some((source, signal)) = taken.flatten().map_err(fail)? {
                mail.push(source, signal)?;
            }
        }
        if let Some(signal) = self.front.take(&id) {
            match mail.signals.first_mut() {
                Some(held) => {
                    let combined = catch(|| program.combine(held, signal)).flatten();
                    combined.map_err(|failure| Error::program(&id, "combine signals", failure))?;
                }
                None => mail.push(None, signal)?,
            }
        }
        Ok(Some(id))
    }

    /// True if nothing waits.
    pub fn is_empty(&mut self) -> Result<bool> {
        Ok(self.front.len() == 0 && self.pile.is_empty()?)
    }

    /// Vertices for which something waits in memory; one for which signals were combined since others were written down counts twice.
    pub fn recipients_in_memory(&self) -> usize {
        self.pile.len_in_memory() + self.front.len()
    }

    /// What it did so far.
    pub fn stats(&self) -> MailboxStats {
        MailboxStats { spills: self.pile.spills(), ..self.stats }
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
        let file = SpillFile::new(&DiskFolder::new(folder.path()), &Job::new()).unwrap();
        Mailbox::new(bytes, delivery, &Arc::new(file))
    }

    fn send(
        mailbox: &mut Mailbox<Texts>,
        program: &Texts,
        source: u64,
        target: u64,
        signal: &str,
    ) -> Result<()> {
        let (mut id, mut packet) = (Vec::new(), Vec::new());
        target.write(&mut id);
        let source = (program.0 == Delivery::LatestPerEdge).then_some((&source, 0));
        write_letter::<Texts>(&id, source, &signal.to_owned(), &mut Vec::new(), &mut packet);
        mailbox.deliver(program, &packet).map(|letters| assert_eq!(letters, 1))
    }

    fn mail() -> Mail<Texts> {
        Mail::new(&Budget::new(1 << 20, 0)).unwrap()
    }

    fn drain(mailbox: &mut Mailbox<Texts>, program: &Texts) -> BTreeMap<u64, (Vec<u64>, Vec<String>)> {
        let (mut mail, mut all) = (mail(), BTreeMap::new());
        while let Some(id) = mailbox.take(program, &mut mail).unwrap() {
            assert!(
                all.insert(
                    id,
                    (
                        mail.sources.iter().map(|(source, _)| *source).collect::<Vec<_>>(),
                        mail.signals.clone()
                    )
                )
                .is_none(),
                "{id} twice"
            );
        }
        all
    }

    /// The thesis's fact: the size of the buffer is the number of recipients.
    #[test]
    fn signals_are_handed_out_by_recipient_in_the_order_in_which_they_came() {
        for delivery in [Delivery::Each, Delivery::LatestPerEdge] {
            let (program, mut mailbox) = (Texts(delivery), mailbox(1 << 20, delivery));
            for (source, target, signal) in [(1, 7, "b"), (2, 8, ""), (1, 7, "a"), (3, 7, "c")] {
                send(&mut mailbox, &program, source, target, signal).unwrap();
            }
            mailbox.request(&9_u64).unwrap();
            mailbox.request(&7_u64).unwrap();
            assert_eq!(mailbox.recipients_in_memory(), 3);
            let all = drain(&mut mailbox, &program);
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
            let (program, mut mailbox) = (Texts(Delivery::Combined), mailbox(bytes, Delivery::Combined));
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
            let (program, mut mailbox) = (Texts(Delivery::Combined), mailbox(bytes, Delivery::Combined));
            let mut mail = mail();
            (0..1000).for_each(|target| send(&mut mailbox, &program, 0, target, "a").unwrap());
            let first = mailbox.take(&program, &mut mail).unwrap().unwrap();
            for (target, signal) in [(first, "late"), (first + 1, "b"), (first + 1, "c"), (2000, "new")] {
                send(&mut mailbox, &program, 0, target, signal).unwrap();
            }
            assert!(!mailbox.is_empty().unwrap());
            let (mut left, mut next) = (Vec::new(), BTreeMap::new());
            while let Some(id) = mailbox.take(&program, &mut mail).unwrap() {
                left.push((id, mail.signals.clone()));
            }
            // A generation is that for which something waited at its beginning.
            assert_eq!(left.len(), 999);
            let of = left.iter().find(|(id, _)| *id == first + 1).unwrap();
            assert_eq!(of.1, ["c"]);
            while let Some(id) = mailbox.take(&program, &mut mail).unwrap() {
                next.insert(id, mail.signals.clone());
            }
            assert_eq!(next, [(first, vec!["late".to_owned()]), (2000, vec!["new".into()])].into());
            assert!(mailbox.is_empty().unwrap());
        }
    }

    #[test]
    fn what_a_vertex_knows_already_wakes_nobody() {
        let (program, mut mailbox) = (Texts(Delivery::Combined), mailbox(1 << 20, Delivery::Combined));
        mailbox.hold(&7, &"m".into()).unwrap();
        for (target, signal) in [(7, "a"), (7, "m"), (8, "a")] {
            send(&mut mailbox, &program, 0, target, signal).unwrap();
        }
        assert_eq!(mailbox.stats().no_news, 2);
        assert_eq!(drain(&mut mailbox, &program).into_keys().collect::<Vec<_>>(), [8]);
        send(&mut mailbox, &program, 0, 7, "z").unwrap();
        assert_eq!(drain(&mut mailbox, &program)[&7].1, ["z"]);
        mailbox.forget();
        send(&mut mailbox, &program, 0, 7, "a").unwrap();
        assert_eq!(drain(&mut mailbox, &program)[&7].1, ["a"]);
        // A memory too small forgets and goes on.
        (0..100_000).for_each(|id| mailbox.hold(&id, &"m".into()).unwrap());
        send(&mut mailbox, &program, 0, 99_999, "a").unwrap();
        assert!(mailbox.is_empty().unwrap());
    }

    #[test]
    fn a_failing_combiner_names_the_vertex() {
        let (program, mut mailbox) = (Texts(Delivery::Combined), mailbox(1 << 20, Delivery::Combined));
        send(&mut mailbox, &program, 0, 42, "a").unwrap();
        let error = send(&mut mailbox, &program, 0, 42, "poison").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the program failed at vertex 42 while it was to combine signals: tastes bad"
        );
    }

    #[test]
    fn signals_to_one_vertex_that_exceed_the_budget_are_refused_by_a_figure() {
        let (program, mut mailbox) = (Texts(Delivery::Each), mailbox(64 << 20, Delivery::Each));
        (0..100_000).for_each(|_| send(&mut mailbox, &program, 0, 1, "a signal of some length").unwrap());
        let error = mailbox.take(&program, &mut mail()).unwrap_err().to_string();
        assert!(error.contains("too small for the signals to one vertex"), "{error}");
    }

    #[test]
    fn packets_that_are_cut_off_are_refused() {
        let mut packet = Vec::new();
        write_letter::<Texts>(&[5], None, &"text".into(), &mut Vec::new(), &mut packet);
        for length in 1..packet.len() {
            let mut mailbox = mailbox(0, Delivery::Each);
            assert!(mailbox.deliver(&Texts(Delivery::Each), &packet[..length]).is_err());
        }
    }
}
