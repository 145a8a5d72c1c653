//! The share of one process in a run that several processes make together.
//!
//! Every process runs the same loop of supersteps over a contiguous range of intervals. After each
//! turn of its vertices it passes on their new signals, and the partial results of its intervals.
//! So all processes have the same signals and globals, and each decides for itself how the run
//! continues. Another process, the *observer*, owns no interval: it follows the run by the partial
//! results alone, and receives the states at the end. Invariant: partial results are merged in the
//! order of intervals, whatever process each belongs to, so that states and aggregates are the same
//! bits at any number of processes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use super::ShardRun;
use crate::error::{Error, Result};
use crate::exchange::Share;
use crate::plan::dealing::deal_out;
use crate::plan::exchange::slot_bytes;
use crate::result::stats::Swept;
use crate::traverse::frontier::{ACTIVITY_BITS, Frontier};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program, SignalOf};
use crate::vertex::turn::Partial;

/// The division of the intervals of a graph among processes.
pub(super) struct Division<'a> {
    share: &'a Share,
    /// The intervals of each process.
    parts: Vec<Range<usize>>,
    /// Vertices, and vertices of an interval.
    vertices: usize,
    window: usize,
}

impl<'a> Division<'a> {
    pub(super) fn new(share: &'a Share, graph: &Graph, indexes: &[&Arc<ShardFile>]) -> Self {
        let window = 1 << graph.description().interval_bits;
        let vertices = graph.connected() as usize;
        Self { share, parts: deal_out(graph, indexes, share.count), vertices, window }
    }

    /// The intervals of this process.
    pub(super) fn owned(&self) -> Range<usize> {
        self.share.index.map_or(0..0, |index| self.parts[index].clone())
    }

    /// Bytes of the memory through which a process sends its signals, equal in all processes; 0 if
    /// they cannot share memory, or if no other process reads it.
    pub(super) fn exchange_bytes(&self, signal: u64) -> u64 {
        let shared = self.share.shares_memory && self.share.count > 1;
        if shared { slot_bytes(self.max_vertices(), signal) } else { 0 }
    }

    /// Begins to send signals through shared memory, which is reserved already.
    pub(super) fn share_memory(&self, signal: u64) -> Result<()> {
        if self.observes() {
            return Ok(());
        }
        self.share.exchange.share_memory(self.max_vertices() * signal)
    }

    /// The most vertices of a process.
    fn max_vertices(&self) -> u64 {
        (0..self.parts.len()).map(|index| self.vertices(index).len() as u64).max().unwrap_or(0)
    }

    /// True if this process is the observer.
    pub(super) fn observes(&self) -> bool {
        self.share.observes()
    }

    /// The vertices of process `index`.
    fn vertices(&self, index: usize) -> Range<usize> {
        let Range { start, end } = self.parts[index];
        self.vertices.min(start * self.window)..self.vertices.min(end * self.window)
    }

    /// The vertices of this process.
    fn own_vertices(&self) -> Range<usize> {
        self.share.index.map_or(0..0, |index| self.vertices(index))
    }

    /// The vertices of the processes whose signals this one takes in, with their positions.
    fn others(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let others =
            (0..self.parts.len()).filter(|index| self.share.index.is_some_and(|own| own != *index));
        others.map(|index| (index, self.vertices(index)))
    }
}

/// The encodings of signals in an exchange.
const ALL_SIGNALS: u64 = 0;
const LISTED_SIGNALS: u64 = 1;

/// The report of a process on a superstep.
struct SuperstepReport<A> {
    /// Supersteps and rounds done.
    position: [u64; 2],
    swept: Swept,
    form: u64,
    /// The partial results of the intervals that took a turn, ascending.
    partials: Vec<(usize, Partial<A>)>,
}

impl<A: Aggregate> SuperstepReport<A> {
    fn to_bytes(&self) -> Vec<u8> {
        let [superstep, round] = self.position;
        let mut words = vec![superstep, round, self.swept.signals, self.swept.edges, self.form];
        for (interval, partial) in &self.partials {
            words.extend([*interval as u64, partial.signalling, partial.open]);
            partial.aggregate.save(&mut words);
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// `None` if the bytes are not those of a report.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).peekable();
        let mut next = || words.next();
        let position = [next()?, next()?];
        let swept = Swept { signals: next()?, edges: next()? };
        let form = next()?;
        let mut partials = Vec::new();
        while words.peek().is_some() {
            let (interval, signalling, open) = (words.next()?, words.next()?, words.next()?);
            let aggregate = A::restore(&mut words)?;
            partials.push((interval as usize, Partial { aggregate, signalling, score: 0.0, open }));
        }
        rest.is_empty().then_some(Self { position, swept, form, partials })
    }
}

/// The result of an exchange. It is the same in every process, except that the observer's map has
/// no marks.
pub(super) struct ExchangedSuperstep<A> {
    /// The partial results of all intervals that took a turn, ascending.
    pub(super) partials: Vec<Partial<A>>,
    /// The map of the next frontier, in the modes that have one.
    pub(super) activity: Option<Vec<AtomicBool>>,
    /// The next frontier, if all processes listed their parts of it.
    pub(super) list: Option<Vec<u64>>,
}

impl<P: Program> ShardRun<'_, P> {
    /// Sends the new signals of this process, which are in place, and receives those of the others.
    /// `activity` marks the vertices of this process that signal; `list` lists them if it is known.
    /// In modes with a frontier, the signals of all other vertices must be silent before the call.
    pub(super) fn exchange(
        &mut self,
        partials: Vec<(usize, Partial<P::Aggregate>)>,
        activity: Option<Vec<AtomicBool>>,
        list: Option<Vec<u64>>,
    ) -> Result<ExchangedSuperstep<P::Aggregate>> {
        let context = &self.context;
        let Some(division) = &context.division else {
            let partials = partials.into_iter().map(|(_, partial)| partial).collect();
            return Ok(ExchangedSuperstep { partials, activity, list });
        };
        let own = division.own_vertices();
        let mut activity = activity;
        if let (Some(map), Some(list)) = (&mut activity, &list) {
            mark::<P>(map, &self.signals, own.clone(), Some(list));
        }
        let list = self.listed(own.clone(), &partials, list);
        let facts = SuperstepReport {
            position: [self.globals.superstep, self.globals.round],
            swept: self.swept - self.swept_before,
            form: if list.is_some() { LISTED_SIGNALS } else { ALL_SIGNALS },
            partials,
        };
        let packed: Vec<u8>;
        let signals: &[u8] = match &list {
            Some(list) => {
                let own_signals = list.iter().flat_map(|vertex| {
                    bytemuck::bytes_of(&self.signals[*vertex as usize]).iter().copied()
                });
                packed = list.iter().flat_map(|id| id.to_le_bytes()).chain(own_signals).collect();
                &packed
            }
            None => bytemuck::cast_slice(&self.signals[own]),
        };
        let exchange = &division.share.exchange;
        let contributions =
            exchange.all_gather(&facts.to_bytes(), signals, &context.resources.job)?;
        let mut all = Vec::with_capacity(contributions.len());
        for one in &contributions {
            let theirs = SuperstepReport::<P::Aggregate>::of_bytes((*one.facts).as_ref())
                .ok_or_else(malformed_message)?;
            if theirs.position != facts.position {
                return Err(out_of_step(facts.position[0], theirs.position[0]));
            }
            all.push(theirs);
        }
        if all.len() != division.share.count {
            return Err(malformed_message());
        }
        // A sparse superstep begins with the list of all vertices that signal, ascending.
        let is_listed = self.sparse.is_some() && all.iter().all(|one| one.form == LISTED_SIGNALS);
        let mut listed = Vec::new();
        // The observer receives no signals.
        for (index, one) in all.iter().enumerate().filter(|_| !division.observes()) {
            let part = if division.share.index == Some(index) {
                list.as_deref().unwrap_or_default().into()
            } else {
                let (vertices, bytes) =
                    (division.vertices(index), (*contributions[index].signals).as_ref());
                let part = take_in::<P>(&mut self.signals, vertices.clone(), one.form, bytes)?;
                if let Some(map) = &mut activity {
                    mark::<P>(map, &self.signals, vertices, part.as_deref());
                }
                Cow::from(part.unwrap_or_default())
            };
            if is_listed {
                listed.extend_from_slice(&part);
            }
        }
        self.swept = all.iter().fold(self.swept_before, |mut swept, theirs| {
            swept += theirs.swept;
            swept
        });
        self.swept_before = self.swept;
        Ok(ExchangedSuperstep {
            partials: all.into_iter().flat_map(|one| one.partials).map(|(_, one)| one).collect(),
            activity,
            list: is_listed.then_some(listed),
        })
    }

    /// The vertices of this process that signal, if a list of them takes fewer bytes than all
    /// signals.
    fn listed(
        &self,
        own: Range<usize>,
        partials: &[(usize, Partial<P::Aggregate>)],
        list: Option<Vec<u64>>,
    ) -> Option<Vec<u64>> {
        let count: u64 = partials.iter().map(|(_, partial)| partial.signalling).sum();
        let of_signal = size_of::<SignalOf<P>>() as u64;
        if P::MODE == Mode::Full || count * (8 + of_signal) >= own.len() as u64 * of_signal {
            return None;
        }
        list.or_else(|| {
            let signals_now = |vertex: &usize| self.signals[*vertex] != P::Combiner::SILENCE;
            Some(own.filter(signals_now).map(|vertex| vertex as u64).collect())
        })
    }

    /// Publishes the signals that this process made in a dense superstep, and silences those of the
    /// others, which come with the exchange.
    pub(super) fn publish_own(&mut self) -> Result<()> {
        let Some(division) = &self.context.division else { return Ok(()) };
        match self.next.is_resident() {
            true => self.next.publish_into(&mut self.signals)?,
            // Other windows were never written.
            false => {
                let own = division.own_vertices();
                self.next.read(own.start, &mut self.signals[own])?;
            }
        }
        if P::MODE != Mode::Full {
            for (_, vertices) in division.others() {
                self.signals[vertices].fill(P::Combiner::SILENCE);
            }
        }
        Ok(())
    }

    /// Sends the states of this process to the observer, and the signals too if `signals`.
    pub(super) fn gather(&mut self, signals: bool) -> Result<()> {
        let Some(division) = &self.context.division else { return Ok(()) };
        let (exchange, job) = (&division.share.exchange, &self.context.resources.job);
        let own = division.own_vertices();
        let mut buffer = Vec::new();
        let states = self.states.slice(own.clone(), &mut buffer)?;
        for (index, records) in
            exchange.gather(bytemuck::cast_slice(states), job)?.into_iter().enumerate()
        {
            store(&mut self.states, division.vertices(index), (*records).as_ref())?;
        }
        if !signals {
            return Ok(());
        }
        for (index, records) in
            exchange.gather(bytemuck::cast_slice(&self.signals[own]), job)?.into_iter().enumerate()
        {
            let vertices = division.vertices(index);
            take_in::<P>(&mut self.signals, vertices, ALL_SIGNALS, (*records).as_ref())?;
        }
        if let Some(frontier) = self.frontier.as_ref().filter(|_| division.observes()) {
            let mut map = Frontier::empty_map(division.vertices);
            mark::<P>(&mut map, &self.signals, 0..division.vertices, None);
            self.frontier = Some(Frontier::marked(division.vertices, map, frontier.count()));
        }
        Ok(())
    }
}

/// Puts the signals of `vertices` in place; returns the vertices if they are listed.
fn take_in<P: Program>(
    signals: &mut [SignalOf<P>],
    vertices: Range<usize>,
    form: u64,
    bytes: &[u8],
) -> Result<Option<Vec<u64>>> {
    if form == ALL_SIGNALS {
        let place: &mut [u8] = bytemuck::cast_slice_mut(&mut signals[vertices]);
        if place.len() != bytes.len() {
            return Err(malformed_message());
        }
        place.copy_from_slice(bytes);
        return Ok(None);
    }
    let of_signal = size_of::<SignalOf<P>>();
    let count = bytes.len() / (8 + of_signal);
    let (ids, listed) = bytes.split_at(count * 8);
    let (ids, _) = ids.as_chunks();
    let list: Vec<u64> = ids.iter().map(|id| u64::from_le_bytes(*id)).collect();
    if listed.len() != count * of_signal
        || !list.iter().all(|vertex| vertices.contains(&(*vertex as usize)))
    {
        return Err(malformed_message());
    }
    for (vertex, signal) in list.iter().zip(listed.chunks_exact(of_signal)) {
        signals[*vertex as usize] = bytemuck::pod_read_unaligned(signal);
    }
    Ok(Some(list))
}

/// Marks those of `vertices` that signal; `list` has them if it is known.
fn mark<P: Program>(
    map: &mut [AtomicBool],
    signals: &[SignalOf<P>],
    vertices: Range<usize>,
    list: Option<&[u64]>,
) {
    let mut mark = |vertex: usize| map[vertex >> ACTIVITY_BITS].store(true, Ordering::Relaxed);
    match list {
        Some(list) => list.iter().for_each(|vertex| mark(*vertex as usize)),
        None => {
            vertices.filter(|vertex| signals[*vertex] != P::Combiner::SILENCE).for_each(&mut mark)
        }
    }
}

/// Writes records of `vertices`, some at a time.
fn store<T: Pod + Send>(
    array: &mut ScratchArray<T>,
    vertices: Range<usize>,
    bytes: &[u8],
) -> Result<()> {
    if bytes.len() != vertices.len() * size_of::<T>() {
        return Err(malformed_message());
    }
    let (windows, mut records) = (array.windows(), Vec::new());
    for (index, part) in bytes.chunks(size_of::<T>() << ACTIVITY_BITS).enumerate() {
        records.clear();
        records.extend(part.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        windows.write(vertices.start + (index << ACTIVITY_BITS), &records)?;
    }
    Ok(())
}

fn malformed_message() -> Error {
    Error::Exchange("a worker sent bytes of another run; please report it".into())
}

fn out_of_step(own: u64, theirs: u64) -> Error {
    Error::Exchange(
        format!(
            "a worker is after superstep {theirs} and another one after {own}; --checkpoint-dir (Python: checkpoint_dir=) \
             must be a folder that all nodes share"
        )
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_survive_the_way() {
        let partial = Partial { aggregate: crate::Sum(-0.0), signalling: 3, score: 0.0, open: 4 };
        let swept = Swept { signals: 5, edges: 6 };
        let facts =
            SuperstepReport { position: [1, 2], swept, form: 1, partials: vec![(7, partial)] };
        let bytes = facts.to_bytes();
        let back = SuperstepReport::<crate::Sum>::of_bytes(&bytes).unwrap();
        assert_eq!((back.position, back.swept, back.form), ([1, 2], swept, 1));
        assert_eq!((back.partials[0].0, back.partials[0].1.open), (7, 4));
        assert!(back.partials[0].1.aggregate.0.is_sign_negative());
        assert!(SuperstepReport::<crate::Sum>::of_bytes(&bytes[..bytes.len() - 8]).is_none());
    }
}
