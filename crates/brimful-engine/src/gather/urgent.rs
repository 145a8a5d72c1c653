//! A superstep of a program that settles, if memory does not hold the lists of all vertices.
//!
//! A vertex depends on more urgent vertices only. So a superstep makes the lists of the most urgent
//! vertices, as many as memory holds, and gathers them in order: all of them settle. The number of
//! supersteps is about the size of all lists divided by that memory. Invariant: a vertex is
//! gathered after all that are more urgent.

use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use brimful_store::huge::HugeArray;

use super::lists::{NOWHERE, write_lists};
use super::step::{GatherContext, GatherFigures, GatherState, differ};
use crate::error::Result;
use crate::result::stats::Swept;
use crate::traverse::interval_edges::Reader;
use crate::vertex::attributes::VertexAttributes;
use crate::vertex::gather::{Gather, Neighbors, States};

/// Bits of an urgency class: a pass over all vertices distinguishes `1 << CLASS_BITS` classes.
const CLASS_BITS: u32 = 12;
/// Vertices that are gathered between two checks for a cancellation.
const VERTICES_PER_CHECK: usize = 1 << 12;

/// A vertex whose list is made.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    vertex: u32,
    length: u32,
    /// The start of its list.
    start: usize,
}

impl Chosen {
    /// Bytes of a chosen vertex and its list.
    fn bytes(length: u32) -> u64 {
        size_of::<Self>() as u64 + u64::from(length) * size_of::<u32>() as u64
    }

    fn list(self) -> std::ops::Range<usize> {
        self.start..self.start + self.length as usize
    }
}

/// Chosen vertices of one interval, and their lists.
type ChosenPart<'p> = (usize, &'p [Chosen], &'p mut [u32]);

impl<G: Gather> GatherContext<'_, G> {
    /// True if vertices can be chosen from all intervals: only ids, and states in memory, are read.
    pub(super) fn can_choose(&self) -> bool {
        G::SETTLES && !G::NEEDS_DEGREES && !self.weighted && self.plan.resident
    }

    /// Gathers the most urgent vertices that are not settled.
    pub(super) fn most_urgent(&self, current: &mut GatherState<G>) -> Result<GatherFigures> {
        let GatherState { states, globals } = current;
        let Some(states) = states.in_memory_mut() else {
            unreachable!("vertices are chosen where the plan keeps states in memory")
        };
        let (mut chosen, open) = self.choose(states)?;
        let mut ids = HugeArray::zeroed(chosen.last().map_or(0, |last| last.list().end));
        let edges = self.list(&chosen, &mut ids)?;
        let swept = Swept { signals: ids.len() as u64, edges };
        let mut step = GatherFigures { swept, gathered: chosen.len() as u64, changed: 0, open };
        chosen.sort_unstable_by_key(|target| {
            Reverse(self.program.urgency(states[target.vertex as usize]))
        });
        let (attributes, mut buffers) = (VertexAttributes::default(), G::Buffers::default());
        for chosen in chosen.chunks(VERTICES_PER_CHECK) {
            self.resources.job.check()?;
            for target in chosen {
                let (at, list) = (target.vertex as usize, &ids[target.list()]);
                let neighbors = Neighbors {
                    ids: list,
                    weights: &[],
                    states: States::All(states),
                    new: (0, &[]),
                };
                let state = self.program.gather(
                    attributes.vertex(at, 0),
                    states[at],
                    neighbors,
                    globals,
                    &mut buffers,
                );
                step.changed += u64::from(differ(&states[at], &state));
                step.open -= u64::from(self.is_settled(state));
                states[at] = state;
            }
            self.resources.job.advance(chosen.len() as u64);
        }
        Ok(step)
    }

    /// The most urgent vertices whose lists fit in memory together, by id, and the number of
    /// vertices that are not settled.
    fn choose(&self, states: &[G::State]) -> Result<(Vec<Chosen>, u64)> {
        let Some(lengths) = self.lengths.in_memory() else {
            unreachable!("vertices are chosen where the plan keeps lengths in memory")
        };
        let open = || {
            let all = (0_u32..).zip(states.iter().zip(lengths));
            all.filter(|(_, (state, _))| !self.is_settled(**state))
                .map(|(vertex, (state, length))| (vertex, self.program.urgency(*state), *length))
        };
        let (mut count, mut low, mut high) = (0, u128::MAX, 0);
        for (_, urgency, _) in open() {
            (count, low, high) = (count + 1, low.min(urgency), high.max(urgency));
        }
        if count == 0 {
            return Ok((Vec::new(), 0));
        }
        // In addition, each worker holds the positions in the lists of an interval.
        let position_bytes =
            self.resources.workers() * self.shards.window(0).len() * size_of::<usize>();
        let free_bytes = self.plan.list_bytes.saturating_sub(position_bytes as u64);
        let least = self.least_urgency(&open, low..=high, free_bytes)?;
        let fitting = || {
            let urgent = open().filter(|(_, urgency, _)| *urgency >= least);
            urgent.scan(0, |bytes, (vertex, _, length)| {
                *bytes += Chosen::bytes(length);
                (*bytes <= free_bytes).then_some((vertex, length))
            })
        };
        // A growing vector could take twice the bytes of its contents.
        let (mut chosen, mut start) = (Vec::with_capacity(fitting().count()), 0);
        for (vertex, length) in fitting() {
            chosen.push(Chosen { vertex, length, start });
            start += length as usize;
        }
        Ok((chosen, count))
    }

    /// The least urgency of the vertices to choose: all vertices that are more urgent fit in
    /// `free_bytes`. `open` lists the vertices that are not settled, with their urgencies, all in
    /// `range`, and the lengths of their lists.
    fn least_urgency<V: Iterator<Item = (u32, u128, u32)>>(
        &self,
        open: &impl Fn() -> V,
        range: RangeInclusive<u128>,
        free_bytes: u64,
    ) -> Result<u128> {
        let (mut low, mut high) = range.into_inner();
        // Urgencies from `least` on are chosen; those from `low` to `high` are undecided.
        let (mut chosen_bytes, mut least) = (0, u128::MAX);
        loop {
            self.resources.job.check()?;
            let bits = u128::BITS - (high - low).leading_zeros();
            let shift = bits.saturating_sub(CLASS_BITS);
            let mut classes = vec![0; 1 << CLASS_BITS];
            for (_, urgency, length) in
                open().filter(|(_, urgency, _)| (low..=high).contains(urgency))
            {
                classes[((urgency - low) >> shift) as usize] += Chosen::bytes(length);
            }
            let class = classes.iter().rposition(|bytes| {
                let fits = chosen_bytes + bytes <= free_bytes;
                chosen_bytes += if fits { *bytes } else { 0 };
                !fits
            });
            let Some(class) = class else {
                return Ok(low);
            };
            let first = low + ((class as u128) << shift);
            let last = first.saturating_add((1 << shift) - 1).min(high);
            if chosen_bytes == 0 && shift == 0 {
                // Of equally urgent vertices, as many as fit.
                return Ok(first);
            }
            if chosen_bytes > 0 {
                least = last + 1;
            }
            if shift == 0 || chosen_bytes > free_bytes / 2 {
                return Ok(least);
            }
            (low, high) = (first, last);
        }
    }

    /// Makes the lists of `chosen`, which ascend, in `ids`; returns the number of edges read.
    fn list(&self, chosen: &[Chosen], ids: &mut [u32]) -> Result<u64> {
        let (mut parts, mut remaining_ids) = (Vec::new(), ids);
        let interval = |target: &Chosen| self.shards.interval(target.vertex as usize);
        for chosen in chosen.chunk_by(|a, b| interval(a) == interval(b)) {
            let length = chosen.iter().map(|target| target.length as usize).sum();
            let (part_ids, following_ids) = remaining_ids.split_at_mut(length);
            parts.push(Mutex::new((interval(&chosen[0]), chosen, part_ids)));
            remaining_ids = following_ids;
        }
        let make = |index: usize, (reader, ends): &mut (Reader, Vec<usize>)| -> Result<u64> {
            let mut part = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
            let (interval, chosen, ids): &mut ChosenPart<'_> = &mut part;
            let window = self.shards.window(*interval);
            let base = chosen.first().map_or(0, |first| first.start);
            ends.clear();
            ends.resize(window.len(), NOWHERE);
            for target in *chosen {
                ends[target.vertex as usize - window.start] = target.start - base;
            }
            let mut add_batch = |edges: crate::traverse::interval_edges::IntervalEdges<'_>| {
                write_lists(&edges, 0, ends, &mut ids[..], |source| source as u32)
            };
            let edges =
                self.shards.each(*interval, false, &self.resources.job, reader, &mut add_batch)?;
            let is_whole = |target: &Chosen| {
                ends[target.vertex as usize - window.start] == target.list().end - base
            };
            match chosen.iter().all(is_whole) {
                true => Ok(edges),
                false => Err(self.shards.changed(*interval).into()),
            }
        };
        Ok(self.resources.parallel_map(parts.len(), make)?.into_iter().sum())
    }
}
