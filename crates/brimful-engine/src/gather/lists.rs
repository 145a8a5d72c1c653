//! The lists of consecutive targets, made by one worker.
//!
//! Invariant: neighbours are in the order of the edges; if states are on disk, each list holds
//! copies of its neighbours' states. Sources ascend within a segment, so those states are read in
//! sequence.

use std::ops::Range;

use brimful_store::Job;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use crate::error::Result;
use crate::traverse::interval_edges::spill::Spill;
use crate::traverse::interval_edges::{Edges, Reader, Shards};
use crate::vertex::gather::{Neighbours, States};

/// The position of vertices that need no list.
pub(super) const NOWHERE: usize = usize::MAX;

/// Lists, and the buffers with which they are made.
pub(super) struct Lists<S> {
    reader: Reader,
    /// For each target the position of its next neighbour; in the end, the end of its list.
    ends: Vec<usize>,
    ids: Vec<u32>,
    /// One for each id, if the run is weighted.
    weights: Vec<f64>,
    /// One for each id, if states are on disk.
    states: Vec<S>,
    nearby: Nearby<S>,
}

impl<S> Default for Lists<S> {
    fn default() -> Self {
        Self {
            reader: Reader::default(),
            ends: Vec::new(),
            ids: Vec::new(),
            weights: Vec::new(),
            states: Vec::new(),
            nearby: Nearby { start: 0, states: Vec::new() },
        }
    }
}

impl<S: Pod + Send> Lists<S> {
    /// Makes the lists of `targets`, at least one, with the given lengths; no list if the length is
    /// `None`. All lists of a run have at most `most` neighbours at once. Returns the number of
    /// edges read.
    pub(super) fn make(
        &mut self,
        (shards, spill): (&Shards, Option<&Spill>),
        job: &Job,
        targets: Range<usize>,
        (lengths, most): (impl Iterator<Item = Option<u32>>, usize),
        (weighted, states): (bool, &ScratchArray<S>),
    ) -> Result<u64> {
        let mut end = 0;
        self.ends.clear();
        self.ends.extend(lengths.map(|length| match length {
            Some(length) => {
                end += length as usize;
                end - length as usize
            }
            None => NOWHERE,
        }));
        let listed = !states.is_resident();
        resize(&mut self.ids, (end, most), 0);
        resize(&mut self.weights, if weighted { (end, most) } else { (0, 0) }, 1.0);
        resize(&mut self.states, if listed { (end, most) } else { (0, 0) }, S::zeroed());
        let (first, mut read) = (targets.start, 0);
        for interval in shards.interval(first)..=shards.interval(targets.end - 1) {
            let window = shards.window(interval);
            let parts = spill.map_or(&[][..], |spill| spill.parts(interval));
            let whole = parts.is_empty().then_some((window.clone(), None));
            let pieces = parts.iter().map(|part| (part.targets.clone(), Some(part))).chain(whole);
            // Targets are counted from the first of the interval, ends from the first of `targets`.
            let shift = window.start.wrapping_sub(first);
            for (piece, part) in pieces {
                let wanted = piece.start.max(first)..piece.end.min(targets.end);
                if wanted.is_empty()
                    || self.ends[wanted.start - first..wanted.end - first]
                        .iter()
                        .all(|end| *end == NOWHERE)
                {
                    continue;
                }
                let Self { reader, ends, ids, weights, states: copies, nearby } = self;
                let mut failed = Ok(());
                let mut put = |edges: Edges<'_>| {
                    if !weighted && !listed {
                        return place(&edges, shift, ends, ids);
                    }
                    let mut next = edges.weights.iter();
                    edges.all(|source, target| {
                        let weight = next.next();
                        let Some(end) = ends.get_mut(shift.wrapping_add(target)) else {
                            return true;
                        };
                        let Some(id) = ids.get_mut(*end) else { return true };
                        *id = source as u32;
                        if let (Some(place), Some(weight)) = (weights.get_mut(*end), weight) {
                            *place = *weight;
                        }
                        if let Some(place) = copies.get_mut(*end) {
                            match nearby.state(states, shards, source as usize) {
                                Ok(state) => *place = state,
                                Err(error) => failed = Err(error),
                            }
                        }
                        *end += 1;
                        failed.is_ok()
                    })
                };
                let all = match spill.zip(part) {
                    Some((spill, part)) => reader.each_of_part(spill, part, job, &mut put),
                    None => shards.each(interval, weighted, job, reader, &mut put),
                };
                failed?;
                read += all?;
            }
        }
        Ok(read)
    }

    /// The list of target `at`, of `length` neighbours. States are in `all` if they are in memory;
    /// `new` as in [`Neighbours`].
    #[inline]
    pub(super) fn of<'n>(
        &'n self,
        at: usize,
        length: u32,
        all: Option<&'n [S]>,
        new: (usize, &'n [S]),
    ) -> Neighbours<'n, S> {
        let range = self.ends[at] - length as usize..self.ends[at];
        let states = match all {
            Some(all) => States::All(all),
            None => States::Listed(&self.states[range.clone()]),
        };
        let weights = self.weights.get(range.clone()).unwrap_or_default();
        Neighbours { ids: &self.ids[range], weights, states, new }
    }
}

/// Resizes an array that takes memory for `most` records once: an array that grew would leave free
/// memory of its former sizes, which is not in the plan.
fn resize<T: Copy>(array: &mut Vec<T>, (len, most): (usize, usize), value: T) {
    array.reserve_exact(most.max(len).saturating_sub(array.len()));
    array.resize(len, value);
}

/// Writes sources to the lists of their targets; enough if states are in memory and the run is not
/// weighted.
pub(super) fn place(edges: &Edges<'_>, shift: usize, ends: &mut [usize], ids: &mut [u32]) -> bool {
    edges.all(|source, target| {
        if let Some(end) = ends.get_mut(shift.wrapping_add(target))
            && let Some(id) = ids.get_mut(*end)
        {
            *id = source as u32;
            *end += 1;
        }
        true
    })
}

/// The states around the last requested source, of an array on disk.
struct Nearby<S> {
    start: usize,
    states: Vec<S>,
}

impl<S: Pod + Send> Nearby<S> {
    fn state(&mut self, all: &ScratchArray<S>, shards: &Shards, vertex: usize) -> Result<S> {
        if let Some(state) = self.states.get(vertex.wrapping_sub(self.start)) {
            return Ok(*state);
        }
        let window = shards.window(shards.interval(vertex));
        self.states.resize(window.len(), S::zeroed());
        all.read(window.start, &mut self.states)?;
        self.start = window.start;
        Ok(self.states[vertex - window.start])
    }
}
