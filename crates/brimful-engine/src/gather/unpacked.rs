//! The neighbor lists of all vertices, made once and kept in memory.
//!
//! A superstep then reads them in sequence. Making the lists in each superstep instead costs a
//! random access for each edge. Invariant: states are the same bits as with lists made in each
//! superstep.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use brimful_store::Resources;
use brimful_store::huge::HugeArray;
use brimful_store::scratch::{ScratchArray, Windows};

use super::changes::Changes;
use super::lists::write_lists;
use super::step::{GatherBuffers, GatherContext, GatherFigures, GatherState};
use crate::error::Result;
use crate::traverse::interval_edges::{IntervalEdges, Reader, Shards};
use crate::vertex::gather::{Gather, Neighbors, States};

/// The lists of the vertices of some intervals.
pub(super) struct UnpackedLists {
    /// The neighbors, list after list.
    ids: HugeArray<u32>,
    /// The first of these intervals.
    first_interval: usize,
    /// For each interval, the position of its first list, and the end of the last.
    starts: Vec<usize>,
}

impl UnpackedLists {
    /// Makes the lists of the intervals `owned`, which have the given lengths.
    pub(super) fn new(
        shards: &Shards,
        owned: &Range<usize>,
        lengths: &[u32],
        resources: &Resources,
    ) -> Result<Self> {
        let (mut starts, mut end) = (vec![0], 0);
        for interval in owned.clone() {
            end += lengths[shards.window(interval)]
                .iter()
                .map(|length| *length as usize)
                .sum::<usize>();
            starts.push(end);
        }
        let mut ids = HugeArray::zeroed(end);
        let (mut parts, mut remaining_ids) = (Vec::new(), &mut ids[..]);
        for range in starts.windows(2) {
            let (part, following_ids) = remaining_ids.split_at_mut(range[1] - range[0]);
            parts.push(Mutex::new(part));
            remaining_ids = following_ids;
        }
        resources.job.begin("make lists", owned.len() as u64);
        let make = |at: usize, (reader, ends): &mut (Reader, Vec<usize>)| -> Result<()> {
            let interval = owned.start + at;
            let lengths = lengths[shards.window(interval)].iter().map(|length| *length as usize);
            let list_ends = || {
                lengths.clone().scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                })
            };
            ends.clear();
            ends.extend(list_ends().zip(lengths.clone()).map(|(end, length)| end - length));
            let mut part = parts[at].lock().unwrap_or_else(PoisonError::into_inner);
            let mut add_batch = |edges: IntervalEdges<'_>| {
                write_lists(&edges, 0, ends, &mut part[..], |source| source as u32)
            };
            shards.each(interval, false, &resources.job, reader, &mut add_batch)?;
            resources.job.advance(1);
            if list_ends().eq(ends.iter().copied()) {
                return Ok(());
            }
            Err(shards.changed(interval).into())
        };
        resources.parallel_map(parts.len(), make)?;
        drop(parts);
        Ok(Self { ids, first_interval: owned.start, starts })
    }

    /// The lists of an interval, one after the other.
    fn of_interval(&self, interval: usize) -> &[u32] {
        let at = interval - self.first_interval;
        &self.ids[self.starts[at]..self.starts[at + 1]]
    }
}

impl<G: Gather> GatherContext<'_, G> {
    /// The vertices that changed from `previous` to `current`, if few did.
    pub(super) fn changes(
        &self,
        previous: &ScratchArray<G::State>,
        current: &ScratchArray<G::State>,
    ) -> Option<Changes> {
        Changes::few(previous.in_memory()?, current.in_memory()?, self.lengths.in_memory()?)
    }

    /// Gathers the targets of an interval; with `changes`, those that it reaches.
    pub(super) fn gather_unpacked_item(
        &self,
        lists: &UnpackedLists,
        changes: Option<&Changes>,
        targets: Range<usize>,
        current: &GatherState<G>,
        next: &Windows<'_, G::State>,
        buffers: &mut GatherBuffers<G>,
    ) -> Result<GatherFigures> {
        let GatherBuffers { old, new, lengths, attributes, program, .. } = buffers;
        let (first, states) = (targets.start, &current.states);
        let Some(all_states) = states.in_memory() else {
            unreachable!("lists are unpacked where the plan keeps states in memory")
        };
        let old = states.slice(targets.clone(), old)?;
        let lengths = self.lengths.slice(targets.clone(), lengths)?;
        self.read_degrees(attributes, &targets)?;
        new.clear();
        new.extend_from_slice(old);
        let mut step = GatherFigures::default();
        let mut remaining_ids = lists.of_interval(self.shards.interval(first));
        for (at, length) in lengths.iter().enumerate() {
            let (ids, following_ids) = remaining_ids.split_at(*length as usize);
            remaining_ids = following_ids;
            if changes.is_some_and(|changes| !changes.reach(first + at, ids)) {
                // Signals count all neighbors, so that the figure is the same at any budget.
                step.swept.signals += ids.len() as u64;
                step.open += 1;
                continue;
            }
            let states = States::All(all_states);
            let neighbors = Neighbors { ids, weights: &[], states, new: (0, &[]) };
            step.gathered += 1;
            step.swept.edges += neighbors.len() as u64;
            let vertex = attributes.vertex(first, at);
            new[at] = self.gather(vertex, old[at], neighbors, current, &mut step, program);
        }
        self.resources.job.advance(targets.len() as u64);
        next.write(first, new)?;
        Ok(step)
    }
}
