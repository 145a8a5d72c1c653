//! The part of one process in a run that several processes make together.
//!
//! Every process runs the same loop of supersteps over a contiguous range of intervals. After each
//! turn of its vertices it passes on their new signals, and the partial results of its intervals.
//! So all processes have the same signals and globals, and each decides for itself how the run
//! continues. Another process, the *driver*, owns no interval: it follows the run by the partial
//! results alone, and receives the states at the end. Invariant: partial results are merged in the
//! order of intervals, whatever process each belongs to, so that states and aggregates are the same
//! bits at any number of processes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use bytemuck::Pod;

use super::ShardRun;
use crate::error::Result;
use crate::exchange::division::{ListWriter, out_of_step, read_list};
use crate::exchange::{Contribution, malformed};
use crate::result::stats::Swept;
use crate::traverse::frontier::{ACTIVITY_BITS, Frontier, block, entries};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program, SignalOf};
use crate::vertex::turn::Partial;

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

/// The result of an exchange. It is the same in every process, except that the driver's map has
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
        let own_vertices = division.own_vertices();
        let mut activity = activity;
        if let (Some(map), Some(list)) = (&mut activity, &list) {
            mark(map, &self.signals, P::Combiner::SILENCE, own_vertices.clone(), Some(list));
        }
        let list = self.listed(own_vertices.clone(), &partials, list);
        let report = SuperstepReport {
            position: [self.globals.superstep, self.globals.round],
            swept: self.swept - self.swept_before,
            form: if list.is_some() { LISTED_SIGNALS } else { ALL_SIGNALS },
            partials,
        };
        let encoded = list.as_ref().map(|list| self.encoded(list));
        let signals =
            encoded.as_deref().unwrap_or(bytemuck::cast_slice(&self.signals[own_vertices]));
        let contributions =
            division.all_gather(&report.to_bytes(), signals, &context.resources.job)?;
        let reports = reports(&contributions, report.position)?;
        // A sparse superstep begins with the list of all vertices that signal, ascending.
        let is_listed =
            self.sparse.is_some() && reports.iter().all(|report| report.form == LISTED_SIGNALS);
        let mut listed = Vec::new();
        // The driver receives no signals.
        for (index, report) in reports.iter().enumerate().filter(|_| !division.is_driver()) {
            let part = if division.is_own(index) {
                list.as_deref().unwrap_or_default().into()
            } else {
                let (vertices, bytes) =
                    (division.vertices(index), (*contributions[index].signals).as_ref());
                let part = take_in(&mut self.signals, vertices.clone(), report.form, bytes)?;
                if let Some(map) = &mut activity {
                    mark(map, &self.signals, P::Combiner::SILENCE, vertices, part.as_deref());
                }
                Cow::from(part.unwrap_or_default())
            };
            if is_listed {
                listed.extend_from_slice(&part);
            }
        }
        for report in &reports {
            self.swept_before += report.swept;
        }
        self.swept = self.swept_before;
        let mut partials = Vec::new();
        for report in reports {
            partials.extend(report.partials.into_iter().map(|(_, partial)| partial));
        }
        Ok(ExchangedSuperstep { partials, activity, list: is_listed.then_some(listed) })
    }

    /// A message of the vertices of `list` and their signals.
    fn encoded(&self, list: &[u64]) -> Vec<u8> {
        let mut writer = ListWriter::new::<SignalOf<P>>(list.len());
        for vertex in list {
            writer.push(*vertex as usize, &self.signals[*vertex as usize]);
        }
        writer.into_bytes()
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
        let signal_bytes = size_of::<SignalOf<P>>() as u64;
        if P::MODE == Mode::Full || count * (8 + signal_bytes) >= own.len() as u64 * signal_bytes {
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

    /// Sends the states of this process to the driver, and the signals too if `signals`.
    pub(super) fn gather(&mut self, signals: bool) -> Result<()> {
        let Some(division) = &self.context.division else { return Ok(()) };
        let job = &self.context.resources.job;
        division.gather(&mut self.states, self.context.program.state_len(), job)?;
        if !signals {
            return Ok(());
        }
        let own = bytemuck::cast_slice(&self.signals[division.own_vertices()]);
        for (index, records) in division.gather_bytes(own, job)? {
            let vertices = division.vertices(index);
            take_in(&mut self.signals, vertices, ALL_SIGNALS, (*records).as_ref())?;
        }
        if let Some(frontier) = self.frontier.as_ref().filter(|_| division.is_driver()) {
            let vertices = self.context.graph.connected() as usize;
            let mut map = Frontier::empty_map(vertices);
            mark(&mut map, &self.signals, P::Combiner::SILENCE, 0..vertices, None);
            self.frontier = Some(Frontier::marked(vertices, map, frontier.count()));
        }
        Ok(())
    }
}

/// The reports of all processes, which are at the same `position`.
fn reports<A: Aggregate>(
    contributions: &[Contribution],
    position: [u64; 2],
) -> Result<Vec<SuperstepReport<A>>> {
    let report = |one: &Contribution| {
        let report = SuperstepReport::<A>::of_bytes((*one.facts).as_ref());
        let report = report.ok_or_else(malformed)?;
        if report.position != position {
            return Err(out_of_step(position[0], report.position[0]));
        }
        Ok(report)
    };
    contributions.iter().map(report).collect()
}

/// Puts the signals of `vertices` in place; returns the vertices if they are listed.
fn take_in<S: Pod>(
    signals: &mut [S],
    vertices: Range<usize>,
    form: u64,
    bytes: &[u8],
) -> Result<Option<Vec<u64>>> {
    if form == ALL_SIGNALS {
        let place: &mut [u8] = bytemuck::cast_slice_mut(&mut signals[vertices]);
        if place.len() != bytes.len() {
            return Err(malformed());
        }
        place.copy_from_slice(bytes);
        return Ok(None);
    }
    let put = |(vertex, signal)| {
        signals[vertex] = signal;
        vertex as u64
    };
    Ok(Some(read_list(bytes, vertices)?.map(put).collect()))
}

/// Marks those of `vertices` that signal; `list` has them if it is known.
///
/// Without a list, the search of a block ends at its first signal: a search of all vertices took 7
/// ns a vertex where half of them signal, see bench/RESULTS.md.
fn mark<S: PartialEq>(
    map: &mut [AtomicBool],
    signals: &[S],
    silence: S,
    vertices: Range<usize>,
    list: Option<&[u64]>,
) {
    let mut mark = |entry: usize| *map[entry].get_mut() = true;
    match list {
        Some(list) => list.iter().for_each(|vertex| mark(*vertex as usize >> ACTIVITY_BITS)),
        None => entries(vertices.start as u64..vertices.end as u64)
            .filter(|entry| signals[block(*entry, &vertices)].iter().any(|one| *one != silence))
            .for_each(mark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_a_signal_are_marked_with_and_without_a_list() {
        let size = 1_usize << ACTIVITY_BITS;
        // The first and the last vertex of a block, and vertices just outside the range.
        let signalling = [3, size + 4, 2 * size - 1, 4 * size, 5 * size + 7, 5 * size + 8];
        let vertices = size + 1..5 * size + 8;
        let mut signals = vec![0_u8; 6 * size + 9];
        signalling.iter().for_each(|vertex| signals[*vertex] = 1);
        let own: Vec<u64> = signalling[1..5].iter().map(|vertex| *vertex as u64).collect();
        for list in [None, Some(&own[..])] {
            let mut map = Frontier::empty_map(signals.len());
            mark(&mut map, &signals, 0, vertices.clone(), list);
            let marks: Vec<bool> = map.into_iter().map(AtomicBool::into_inner).collect();
            assert_eq!(marks, [false, true, false, false, true, true, false]);
        }
    }

    #[test]
    fn reports_round_trip() {
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
