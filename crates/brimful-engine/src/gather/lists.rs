//! The lists of consecutive targets, made by one worker.
//!
//! Invariant: neighbors are in the order of the edges; if states are on disk, or the program reads
//! no ids, each list holds copies of its neighbors' states. Sources ascend within a segment, so
//! those states are read in sequence.

use std::ops::Range;

use brimful_store::Job;
use brimful_store::huge::renew;
use brimful_store::scratch::{ScratchArray, ScratchWindow};
use bytemuck::Pod;

use crate::error::Result;
use crate::traverse::interval_edges::spill::{IntervalPart, Spill};
use crate::traverse::interval_edges::{IntervalEdges, Reader, Shards};
use crate::vertex::gather::{Neighbors, States};

/// The position of vertices that need no list.
pub(super) const NOWHERE: usize = usize::MAX;

/// Lists, and the buffers with which they are made.
pub(super) struct Lists<S> {
    reader: Reader,
    /// For each target, the position of its next neighbor; once all are placed, the end of its
    /// list.
    ends: Vec<usize>,
    /// One for each neighbor, if the program reads ids.
    ids: Vec<u32>,
    /// One for each neighbor, if the run is weighted.
    weights: Vec<f64>,
    /// One for each neighbor, if states are on disk or the program reads no ids.
    states: Vec<S>,
    window: ScratchWindow<S>,
}

/// The edges from which lists are made.
#[derive(Clone, Copy)]
pub(super) struct ListSource<'s> {
    pub(super) shards: &'s Shards,
    /// The edges of intervals whose lists do not fit in memory together.
    pub(super) spill: Option<&'s Spill>,
    pub(super) job: &'s Job,
}

/// The contents of lists, the same in all calls of a run.
pub(super) struct ListContents<'s, S> {
    pub(super) weighted: bool,
    pub(super) reads_ids: bool,
    pub(super) states: &'s ScratchArray<S>,
    /// Maximum number of neighbors in the lists of one call.
    pub(super) max_neighbors: usize,
}

impl<S> Clone for ListContents<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for ListContents<'_, S> {}

impl<S> Default for Lists<S> {
    fn default() -> Self {
        Self {
            reader: Reader::default(),
            ends: Vec::new(),
            ids: Vec::new(),
            weights: Vec::new(),
            states: Vec::new(),
            window: ScratchWindow::default(),
        }
    }
}

impl<S: Pod + Send> Lists<S> {
    /// Makes the lists of `targets`, at least one target, with the given lengths. A target whose
    /// length is `None` gets no list. Returns the number of edges read.
    pub(super) fn make(
        &mut self,
        source: ListSource<'_>,
        targets: Range<usize>,
        lengths: impl Iterator<Item = Option<u32>> + Clone,
        contents: ListContents<'_, S>,
    ) -> Result<u64> {
        self.reserve(lengths.clone(), contents);
        let ListSource { shards, spill, .. } = source;
        let (first, mut edges) = (targets.start, 0);
        for interval in shards.interval(first)..=shards.interval(targets.end - 1) {
            let range = shards.window(interval);
            let parts = spill.map_or(&[][..], |spill| spill.parts(interval));
            let whole = parts.is_empty().then_some((range.clone(), None));
            let pieces = parts.iter().map(|part| (part.targets.clone(), Some(part))).chain(whole);
            // Targets are counted from the first of the interval, ends from the first of `targets`.
            let shift = range.start.wrapping_sub(first);
            for (piece, part) in pieces {
                let wanted = piece.start.max(first)..piece.end.min(targets.end);
                let is_wanted = !wanted.is_empty()
                    && self.ends[wanted.start - first..wanted.end - first]
                        .iter()
                        .any(|end| *end != NOWHERE);
                if is_wanted {
                    edges += self.add_edges(source, interval, part, shift, contents)?;
                }
            }
        }
        match self.first_wrong(lengths) {
            None => Ok(edges),
            Some(at) => Err(shards.changed(shards.interval(first + at)).into()),
        }
    }

    /// Places the lists, one after the other, and resizes the arrays for them.
    fn reserve(
        &mut self,
        lengths: impl Iterator<Item = Option<u32>>,
        contents: ListContents<'_, S>,
    ) {
        let ListContents { weighted, reads_ids, states, max_neighbors } = contents;
        let mut end = 0;
        self.ends.clear();
        self.ends.extend(lengths.map(|length| match length {
            Some(length) => {
                end += length as usize;
                end - length as usize
            }
            None => NOWHERE,
        }));
        let listed = !states.is_resident() || !reads_ids;
        let resize_to = |needed: bool| if needed { (end, max_neighbors) } else { (0, 0) };
        let (len, max_len) = resize_to(reads_ids);
        resize(&mut self.ids, len, max_len, 0);
        let (len, max_len) = resize_to(weighted);
        resize(&mut self.weights, len, max_len, 1.0);
        let (len, max_len) = resize_to(listed);
        resize(&mut self.states, len, max_len, S::zeroed());
    }

    /// Adds the edges into an interval, or into a part of it, to the lists. `shift` plus a target
    /// is the index of its list. Returns the number of edges read.
    fn add_edges(
        &mut self,
        source: ListSource<'_>,
        interval: usize,
        part: Option<&IntervalPart>,
        shift: usize,
        contents: ListContents<'_, S>,
    ) -> Result<u64> {
        let ListSource { shards, spill, job } = source;
        let ListContents { weighted, reads_ids, states, .. } = contents;
        let interval_len = shards.window(0).len();
        let Self { reader, ends, ids, weights, states: copies, window } = self;
        let mut failed: Result<()> = Ok(());
        let mut add_batch = |edges: IntervalEdges<'_>| {
            match (weighted, reads_ids, states.in_memory()) {
                (false, true, Some(_)) => {
                    return write_lists(&edges, shift, ends, &mut ids[..], |source| source as u32);
                }
                (false, false, Some(all)) => {
                    return write_lists(&edges, shift, ends, &mut copies[..], |source| all[source]);
                }
                _ => {}
            }
            let mut edge_weights = edges.weights.iter();
            edges.all(|source, target| {
                let weight = edge_weights.next();
                let Some(end) = ends.get_mut(shift.wrapping_add(target)) else {
                    return true;
                };
                let Some(at) = next_position(end, NOWHERE) else { return true };
                if let Some(id) = ids.get_mut(at) {
                    *id = source as u32;
                }
                if let (Some(listed), Some(weight)) = (weights.get_mut(at), weight) {
                    *listed = *weight;
                }
                if let Some(copy) = copies.get_mut(at) {
                    match window.get(states, source as usize, interval_len) {
                        Ok(state) => *copy = *state,
                        Err(error) => failed = Err(error.into()),
                    }
                }
                failed.is_ok()
            })
        };
        let edges = match spill.zip(part) {
            Some((spill, part)) => reader.each_of_part(spill, part, job, &mut add_batch),
            None => shards.each(interval, weighted, job, reader, &mut add_batch),
        };
        failed?;
        edges
    }

    /// The position of the first target whose list does not have its length.
    fn first_wrong(&self, lengths: impl Iterator<Item = Option<u32>>) -> Option<usize> {
        let mut expected = 0;
        lengths.zip(&self.ends).position(|(length, end)| {
            expected += length.unwrap_or(0) as usize;
            length.is_some() && *end != expected
        })
    }

    /// The list of target `at`, of `length` neighbors. The states of all vertices are in
    /// `all_states` if they are in memory; `new` as in [`Neighbors`].
    #[inline]
    pub(super) fn of<'n>(
        &'n self,
        at: usize,
        length: u32,
        all_states: Option<&'n [S]>,
        new: (usize, &'n [S]),
    ) -> Neighbors<'n, S> {
        let range = self.ends[at] - length as usize..self.ends[at];
        let states = match all_states {
            Some(states) => States::All(states),
            None => States::Listed(&self.states[range.clone()]),
        };
        let weights = self.weights.get(range.clone()).unwrap_or_default();
        let ids = if self.ids.is_empty() { &[][..] } else { &self.ids[range] };
        Neighbors { ids, weights, states, new }
    }
}

/// Resizes an array that takes memory for `max_len` records once: an array that grew would leave
/// free memory of its former sizes, which is not in the plan. The array is advised for huge pages,
/// because writes to the lists of an interval are random accesses.
fn resize<T: Copy>(array: &mut Vec<T>, len: usize, max_len: usize, value: T) {
    if array.capacity() < max_len.max(len) {
        renew(max_len.max(len), array);
    }
    array.resize(len, value);
}

/// The position of the next neighbor in the list that continues at `end`; `None` if the list is not
/// wanted, or has no space below `len`. A list without space continues beyond the end of all, and
/// so has the wrong length.
#[inline]
fn next_position(end: &mut usize, len: usize) -> Option<usize> {
    let at = *end;
    *end += usize::from(at != NOWHERE);
    (at < len).then_some(at)
}

/// Writes `value(source)` to the lists of all targets; enough if states are in memory and the run
/// is not weighted.
pub(super) fn write_lists<T>(
    edges: &IntervalEdges<'_>,
    shift: usize,
    ends: &mut [usize],
    lists: &mut [T],
    value: impl Fn(usize) -> T,
) -> bool {
    edges.all(|source, target| {
        if let Some(end) = ends.get_mut(shift.wrapping_add(target))
            && let Some(at) = next_position(end, lists.len())
        {
            lists[at] = value(source as usize);
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_graph::Graph;
    use brimful_graph::build::import::{ImportOptions, Input, import};
    use brimful_store::{Budget, ErrorKind, Job, Resources};

    use super::*;
    use crate::traverse::residency::ALL_INTERVALS;

    #[test]
    fn lists_of_other_lengths_than_the_edges_have_are_corrupt() {
        let folder = tempfile::tempdir().unwrap();
        let (text, path) = (folder.path().join("edges.txt"), folder.path().join("graph"));
        std::fs::write(&text, "0 1\n0 2\n1 2\n2 0\n").unwrap();
        let job = Arc::new(Job::new());
        let resources = Resources::new(Budget::new(1 << 28, 0), Arc::clone(&job), Some(1)).unwrap();
        import(Input::EdgeList(vec![text]), &path, &ImportOptions::default(), &resources).unwrap();
        let graph = Graph::open(&path, job.traffic()).unwrap();
        let shards =
            Shards::new(&graph, vec![Arc::clone(graph.forward())], false, 1 << 20, &ALL_INTERVALS);
        let mut counted = [0_u32; 3];
        let count = &mut |edges: IntervalEdges<'_>| {
            edges.all(|_, target| {
                counted[target] += 1;
                true
            })
        };
        assert_eq!(shards.each(0, false, &job, &mut Reader::default(), count).unwrap(), 4);
        let states = ScratchArray::<u32>::resident(3, 1 << 16);
        let make = |lengths: [u32; 3]| {
            let lengths = lengths.map(Some).into_iter();
            let mut lists = Lists::default();
            let source = ListSource { shards: &shards, spill: None, job: &job };
            let contents = ListContents {
                weighted: false,
                reads_ids: true,
                states: &states,
                max_neighbors: 9,
            };
            lists.make(source, 0..3, lengths, contents)
        };
        assert_eq!(make(counted).unwrap(), 4);
        for at in 0..3 {
            let (mut more, mut fewer) = (counted, counted);
            more[at] += 1;
            fewer[at] -= 1;
            for lengths in [more, fewer] {
                let kind = make(lengths).map_err(|error| error.kind());
                assert_eq!(kind, Err(ErrorKind::Corrupt), "{lengths:?} for {counted:?}");
            }
        }
    }
}
