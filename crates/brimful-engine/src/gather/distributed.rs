//! The part of one process in a run over neighbor lists that several processes make together.
//!
//! Every process has the states of all vertices, and gathers the vertices of its own intervals.
//! After a superstep it passes on their new states and its figures. The driver gathers nothing,
//! and receives the states at checkpoints and at the end. Invariant: aggregates are merged in the
//! order of intervals, so that they are the same bits at any number of processes.

use std::ops::Range;

use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use super::run::GatherRun;
use super::step::{GatherFigures, differ};
use crate::error::Result;
use crate::exchange::division::{Division, ListWriter, out_of_step, read_list, store};
use crate::exchange::malformed;
use crate::result::stats::Swept;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::gather::Gather;

/// The encodings of states in an exchange.
const ALL_STATES: u64 = 0;
const CHANGED_STATES: u64 = 1;

/// The report of a process on a superstep.
struct SuperstepReport<A> {
    /// Supersteps done before.
    superstep: u64,
    form: u64,
    figures: GatherFigures,
    /// The aggregates of its intervals, ascending.
    aggregates: Vec<A>,
}

impl<A: Aggregate> SuperstepReport<A> {
    fn to_bytes(&self) -> Vec<u8> {
        let GatherFigures { swept, gathered, changed, open } = self.figures;
        let mut words =
            vec![self.superstep, self.form, swept.signals, swept.edges, gathered, changed, open];
        words.push(self.aggregates.len() as u64);
        self.aggregates.iter().for_each(|aggregate| aggregate.save(&mut words));
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// `None` if the bytes are not those of a report.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (superstep, form) = (next()?, next()?);
        let swept = Swept { signals: next()?, edges: next()? };
        let figures = GatherFigures { swept, gathered: next()?, changed: next()?, open: next()? };
        let count = next()?;
        let aggregates = (0..count).map(|_| A::restore(&mut words)).collect::<Option<_>>()?;
        let is_whole = rest.is_empty() && words.next().is_none();
        is_whole.then_some(Self { superstep, form, figures, aggregates })
    }
}

impl<G: Gather> GatherRun<'_, G> {
    /// Sends the new states of this process, and puts those of the others in place. Returns the
    /// figures of all processes, and the aggregate over all intervals.
    pub(super) fn exchange(
        &mut self,
        figures: GatherFigures,
        aggregates: Vec<G::Aggregate>,
    ) -> Result<(GatherFigures, G::Aggregate)> {
        let context = &self.context;
        let Some(division) = &context.division else { return Ok((figures, merged(aggregates))) };
        let own_vertices = division.own_vertices();
        let state_bytes = size_of::<G::State>() as u64;
        // Programs that settle have no old states to compare with.
        let lists_changed = self.next.is_some()
            && figures.changed * (8 + state_bytes) < own_vertices.len() as u64 * state_bytes;
        let form = if lists_changed { CHANGED_STATES } else { ALL_STATES };
        let superstep = self.current.globals.superstep;
        let report = SuperstepReport { superstep, form, figures, aggregates };
        let old = &self.current.states;
        let new = self.next.as_ref().unwrap_or(old);
        let (encoded, mut buffer);
        let states: &[u8] = if division.is_alone() {
            &[]
        } else if lists_changed {
            encoded = changed_states(old, new, figures.changed, division.windows(own_vertices))?;
            &encoded
        } else {
            buffer = Vec::new();
            bytemuck::cast_slice(new.slice(own_vertices, &mut buffer)?)
        };
        let contributions =
            division.all_gather(&report.to_bytes(), states, &context.resources.job)?;
        let (mut figures, mut aggregates) = (GatherFigures::default(), Vec::new());
        for (index, contribution) in contributions.iter().enumerate() {
            let received =
                SuperstepReport::<G::Aggregate>::of_bytes((*contribution.facts).as_ref())
                    .ok_or_else(malformed)?;
            if received.superstep != superstep {
                return Err(out_of_step(superstep, received.superstep));
            }
            figures += received.figures;
            aggregates.extend(received.aggregates);
            // The driver receives no states.
            if division.is_own(index) || division.is_driver() {
                continue;
            }
            let (vertices, bytes) = (division.vertices(index), (*contribution.signals).as_ref());
            match (&mut self.next, received.form) {
                (Some(next), CHANGED_STATES) => {
                    apply_changes(&self.current.states, next, vertices, division, bytes)?;
                }
                (Some(next), ALL_STATES) => store(next, vertices, bytes)?,
                (None, ALL_STATES) => store(&mut self.current.states, vertices, bytes)?,
                _ => return Err(malformed()),
            }
        }
        Ok((figures, merged(aggregates)))
    }

    /// Sends the states of this process to the driver.
    pub(super) fn gather_states(&mut self) -> Result<()> {
        let Some(division) = &self.context.division else { return Ok(()) };
        division.gather(&mut self.current.states, 1, &self.context.resources.job)
    }
}

/// The aggregate over all intervals.
pub(super) fn merged<A: Aggregate>(aggregates: Vec<A>) -> A {
    aggregates.into_iter().fold(A::NOTHING, A::merge)
}

/// A message of the `count` vertices whose states changed and their new states, over consecutive
/// windows.
fn changed_states<S: Pod + Send>(
    old: &ScratchArray<S>,
    new: &ScratchArray<S>,
    count: u64,
    windows: impl Iterator<Item = Range<usize>>,
) -> Result<Vec<u8>> {
    let mut writer = ListWriter::new::<S>(count as usize);
    let (mut old_buffer, mut new_buffer) = (Vec::new(), Vec::new());
    for window in windows {
        let before = old.slice(window.clone(), &mut old_buffer)?;
        let after = new.slice(window.clone(), &mut new_buffer)?;
        let pairs = window.zip(before.iter().zip(after));
        for (vertex, (_, state)) in pairs.filter(|(_, (before, after))| differ(*before, *after)) {
            writer.push(vertex, state);
        }
    }
    Ok(writer.into_bytes())
}

/// Puts the states of `vertices` in place: the old ones, except for those that are listed.
fn apply_changes<S: Pod + Send>(
    old: &ScratchArray<S>,
    new: &mut ScratchArray<S>,
    vertices: Range<usize>,
    division: &Division<'_>,
    bytes: &[u8],
) -> Result<()> {
    let mut changed = read_list::<S>(bytes, vertices.clone())?.peekable();
    let windows = new.windows();
    let (mut buffer, mut records) = (Vec::new(), Vec::new());
    for window in division.windows(vertices) {
        records.clear();
        records.extend_from_slice(old.slice(window.clone(), &mut buffer)?);
        while let Some((vertex, state)) = changed.next_if(|(vertex, _)| window.contains(vertex)) {
            records[vertex - window.start] = state;
        }
        windows.write(window.start, &records)?;
    }
    // Vertices out of order.
    if changed.next().is_some() { Err(malformed()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        let swept = Swept { signals: 5, edges: 6 };
        let figures = GatherFigures { swept, gathered: 7, changed: 8, open: 9 };
        let aggregates = vec![crate::Count(3), crate::Count(4)];
        let report = SuperstepReport { superstep: 2, form: 1, figures, aggregates };
        let bytes = report.to_bytes();
        let back = SuperstepReport::<crate::Count>::of_bytes(&bytes).unwrap();
        assert_eq!((back.superstep, back.form, back.figures.open), (2, 1, 9));
        assert_eq!(back.aggregates.iter().map(|count| count.0).collect::<Vec<_>>(), [3, 4]);
        assert!(SuperstepReport::<crate::Count>::of_bytes(&bytes[..bytes.len() - 8]).is_none());
    }
}
