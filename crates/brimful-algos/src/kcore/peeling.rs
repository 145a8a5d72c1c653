//! Core numbers by peeling one vertex after another, with as many neighbor lists in memory as fit.
//!
//! Batagelj and Zaversnik 2003, "An O(m) algorithm for cores decomposition of networks", with a
//! stack instead of buckets: for each k that occurs, in ascending order, vertices with k remaining
//! neighbors are removed, and with them the neighbors that fall to k. The numbers of all vertices
//! are in memory, but not all edges (Wen, Qin, Zhang, Lin, Yu 2016, "I/O efficient core graph
//! decomposition at web scale"): a scan loads the lists of the vertices of lowest degree, which are
//! removed next, and the next scan begins when a vertex without a list is to be removed. Lists
//! contain remaining neighbors only, so each edge is loaded about once. O(|E| + the sum of core
//! numbers) on one thread, besides the scans.
//!
//! Invariant: the numbers do not depend on the order in which vertices are removed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::result::stats::Traversal;
use brimful_engine::supersteps::{build_missing, moved};
use brimful_engine::traverse::by_source::{EdgeOfSource, EdgesBySource, split, split_at_ends};
use brimful_engine::{Result, Stats};
use brimful_graph::Graph;
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Job, Resources};

use super::NEIGHBORS;
use crate::Error;
use crate::connected_components::labels::WINDOW;

pub(super) const PURPOSE: &str = "to peel vertices";
/// Bytes of an entry of a list, or of a number of a vertex.
const ENTRY: u64 = size_of::<u32>() as u64;
/// Arrays of a number for each vertex: remaining neighbors, and places of lists.
const ARRAYS: u64 = 2;
/// The maximum number of scans that load lists, if each loads a full share; rounds are faster than
/// more scans.
const LOADS: u64 = 32;
/// Vertices removed between two checks for a cancellation.
const VERTICES_PER_CHECK: usize = 1 << 14;
/// The maximum number of vertices on the stack.
const STACK: usize = 1 << 16;

/// The place of the list of a vertex that is not in memory.
const NOT_LOADED: u32 = u32::MAX;
/// The place of the list of a vertex that is removed, as its neighbors know.
const REMOVED: u32 = u32::MAX - 1;

/// The bytes of a run.
#[derive(Clone)]
pub(super) struct Needs {
    /// In the smallest budget that works, besides building an index.
    minimum: u64,
    /// The lists in the smallest budget, and all lists.
    lists: Range<u64>,
}

impl Needs {
    /// Of a run on a graph of this extent; `None` if there are too many vertices or neighbors.
    pub(super) fn of(extent: &Extent) -> Option<Self> {
        if extent.vertices.max(extent.longest_list) >= u64::from(REMOVED) {
            return None;
        }
        // A list begins with its length.
        let all = (extent.edges() + extent.vertices).min(u64::from(REMOVED)) * ENTRY;
        let least = all.div_ceil(LOADS).max((extent.longest_list + 1) * ENTRY);
        let minimum =
            ARRAYS * extent.vertices * ENTRY + least + EdgesBySource::reading_bytes(extent);
        Some(Self { minimum, lists: least..all.max(least) })
    }

    /// Bytes of lists in a budget of `limit` bytes.
    fn lists(&self, limit: u64) -> u64 {
        let spare = limit.saturating_sub(self.minimum);
        (self.lists.start + spare).min(self.lists.end)
    }

    /// The forecast of a run.
    pub(super) fn forecast(&self, setting: &Setting<'_>) -> Forecast {
        let (lists, numbers) = (self.lists(setting.limit), setting.extent.vertices * ENTRY);
        let needed = self.minimum - self.lists.start + lists;
        // Building a missing index may take more.
        let least = setting.forecast_other([self.minimum, needed, numbers, 0], Steps::exactly(1));
        Forecast {
            minimum_bytes: least.minimum_bytes,
            in_memory_bytes: least.minimum_bytes,
            memory_bytes: needed,
            ..setting.forecast_scans((needed, numbers), numbers, 1 + self.lists.end.div_ceil(lists))
        }
    }
}

/// The error if `Needs::of` returns `None`.
pub(super) fn too_large() -> Error {
    let problem = "the method peeling supports fewer than 2^32 vertices, and neighbors of a \
                   vertex; use the method rounds";
    Error::Usage(problem.into())
}

/// The core number of every vertex with edges.
///
/// # Errors
/// [`brimful_store::Error::Budget`] in a smaller budget than the minimum; corruption and I/O errors
/// when they occur.
pub(super) fn cores(
    graph: &Graph,
    extent: &Extent,
    needs: &Needs,
    resources: &Resources,
) -> Result<(ScratchArray<u32>, Stats)> {
    let index_seconds = build_missing(graph, NEIGHBORS, resources)?;
    let begin = Instant::now();
    let lists = needs.lists(resources.budget.limit());
    let needed = needs.minimum - needs.lists.start + lists;
    let _memory = resources.budget.reserve(needed, PURPOSE)?;
    let moved_before = moved(graph, resources);
    let mut indexes: Vec<_> =
        NEIGHBORS.iter().filter_map(|index| graph.shards(*index).map(Arc::clone)).collect();
    // All neighbors of an undirected graph are in one index.
    indexes.dedup_by(|one, other| Arc::ptr_eq(one, other));
    let edges = EdgesBySource::new(graph, indexes, false, resources);
    resources.job.begin("count neighbors", edges.edges());
    let mut left = HugeArray::zeroed(graph.connected() as usize);
    edges.for_each(split(&mut left, edges.ranges()), false, |left, batch| {
        batch.all(|edge| {
            left[edge.at] += u32::from(edge.source != edge.target);
            true
        })
    })?;
    if let Some(degree) = left.iter().find(|left| u64::from(**left) > extent.longest_list) {
        let longest = extent.longest_list;
        let problem = format!(
            "no vertex should have more than {}, but one has {degree}",
            counted(longest, "neighbor")
        );
        return Err(StoreError::corrupt(graph.path(), 0, problem).into());
    }
    let mut peeling = Peeling::new(left, (lists / ENTRY) as usize, STACK);
    let (mut scans, mut reading) = (1, begin.elapsed().as_secs_f64());
    peeling.peel(&resources.job, |peeling, core| {
        let begin = Instant::now();
        resources.job.begin("load lists", edges.edges());
        let empty = peeling.choose(core, edges.ranges());
        edges.for_each(empty, false, |lists, batch| {
            let Filling { core, left, places, first, lists } = lists;
            batch.all(|EdgeOfSource { at, source, target, .. }| {
                Filling::add((*core, left), &mut places[at], (*first, lists), (source, target))
            })
        })?;
        if !peeling.measure_lists() {
            let problem = "the edges changed while they were read";
            return Err(StoreError::corrupt(graph.path(), 0, problem).into());
        }
        scans += 1;
        reading += begin.elapsed().as_secs_f64();
        Ok(())
    })?;
    let phases = vec![("unpack", reading), ("peel", begin.elapsed().as_secs_f64() - reading)];
    let (visited, moved) = (scans * edges.edges(), moved(graph, resources) - moved_before);
    let stats = Stats::one_pass(Traversal::Search, phases, visited, moved, resources.workers());
    Ok((ScratchArray::of(peeling.left, WINDOW), Stats { index_seconds, ..stats }))
}

/// Vertices that are removed in order of their remaining neighbors.
struct Peeling {
    /// The number of remaining neighbors of each vertex; of a removed vertex, its core number.
    left: HugeArray<u32>,
    /// The place of the list of each vertex in `lists`.
    places: HugeArray<u32>,
    /// Lists of neighbors in the order of their vertices, each after its length. A list has a place
    /// for each neighbor that remained when the list was chosen.
    lists: HugeArray<u32>,
    /// All vertices from this one on are removed.
    end: usize,
    /// Vertices to remove, at most `stack_limit`.
    stack: Vec<u32>,
    stack_limit: usize,
}

/// The lists of the vertices of one thread, while they are loaded.
struct Filling<'p> {
    /// Neighbors with at most as many remaining neighbors are removed.
    core: u32,
    left: &'p [u32],
    /// For each of these vertices, the place of the last neighbor in its list.
    places: &'p mut [u32],
    /// The place of the first of `lists`.
    first: u32,
    lists: &'p mut [u32],
}

impl Filling<'_> {
    /// Adds the neighbor of an edge to the list that ends at `place`, if the list is loaded and the
    /// neighbor remains. False if there is no place for it.
    #[inline]
    fn add(
        (core, left): (u32, &[u32]),
        place: &mut u32,
        (first, lists): (u32, &mut [u32]),
        (vertex, neighbor): (usize, usize),
    ) -> bool {
        if *place >= REMOVED || vertex == neighbor || left[neighbor] <= core {
            return true;
        }
        *place += 1;
        let entry = lists.get_mut((*place - first) as usize);
        entry.map(|entry| *entry = neighbor as u32).is_some()
    }
}

impl Peeling {
    /// A peeling with room for this many entries of lists.
    fn new(left: HugeArray<u32>, entries: usize, stack_limit: usize) -> Self {
        let mut places = HugeArray::zeroed(left.len());
        places.fill(NOT_LOADED);
        let (lists, stack) = (HugeArray::zeroed(entries), Vec::with_capacity(stack_limit));
        Self { end: left.len(), left, places, lists, stack, stack_limit }
    }

    /// Removes all vertices; `load(core)` loads lists if those of vertices to be removed at `core`
    /// are missing.
    fn peel(
        &mut self,
        job: &Job,
        mut load: impl FnMut(&mut Self, u32) -> Result<()>,
    ) -> Result<()> {
        job.begin("peel", self.left.len() as u64);
        let (mut removed, mut next) = (0, self.left.iter().min().copied());
        while let Some(core) = next {
            while self.remove(core, &mut removed, job)? {
                load(self, core)?;
                job.begin("peel", self.left.len() as u64);
                job.advance(removed as u64);
            }
            while self.end > 0 && self.places[self.end - 1] == REMOVED {
                self.end -= 1;
            }
            // Numbers up to `core`, of removed vertices, wrap.
            let above = self.left[..self.end].iter().map(|left| left.wrapping_sub(core + 1)).min();
            next = above.filter(|above| *above < REMOVED - core).map(|above| core + 1 + above);
        }
        Ok(())
    }

    /// Removes the vertices with `core` remaining neighbors whose lists are in memory; returns true
    /// if there are others.
    fn remove(&mut self, core: u32, removed: &mut usize, job: &Job) -> Result<bool> {
        loop {
            let (mut is_missing, mut is_full) = (false, false);
            for vertex in 0..self.end {
                if self.left[vertex] != core || self.places[vertex] == REMOVED {
                    continue;
                }
                is_missing |= self.places[vertex] == NOT_LOADED;
                self.stack.push(vertex as u32);
                while let Some(vertex) = self.stack.pop() {
                    let place = self.places[vertex as usize];
                    if place >= REMOVED {
                        continue;
                    }
                    self.places[vertex as usize] = REMOVED;
                    *removed += 1;
                    if removed.is_multiple_of(VERTICES_PER_CHECK) {
                        job.check()?;
                        job.advance(VERTICES_PER_CHECK as u64);
                    }
                    let length = self.lists[place as usize] as usize;
                    for &other in &self.lists[place as usize + 1..][..length] {
                        let left = &mut self.left[other as usize];
                        if *left <= core {
                            continue;
                        }
                        *left -= 1;
                        if *left == core {
                            is_missing |= self.places[other as usize] == NOT_LOADED;
                            is_full |= self.stack.len() == self.stack_limit;
                            if self.stack.len() < self.stack_limit {
                                self.stack.push(other);
                            }
                        }
                    }
                }
            }
            // A full stack leaves vertices for the next turn.
            if !is_full {
                return Ok(is_missing);
            }
        }
    }

    /// Gives places to the lists of vertices to be removed at `core` and of those with the fewest
    /// remaining neighbors, as many as fit; returns the empty lists of each range of vertices.
    fn choose(&mut self, core: u32, ranges: &[Range<usize>]) -> Vec<Filling<'_>> {
        let rest = &self.left[..self.end];
        let due = (0..self.end).filter(|at| rest[*at] == core && self.places[*at] != REMOVED);
        let of_due = due.count() * (core as usize + 1);
        // Those with more than `core` and fewer than `bound` remaining neighbors.
        let entries_below = |bound: u32| -> usize {
            let all = rest.iter().map(|left| (left.wrapping_sub(core + 1), *left as usize + 1));
            of_due
                + all
                    .map(|(above, entries)| if above < bound - core - 1 { entries } else { 0 })
                    .sum::<usize>()
        };
        // The greatest bound below which all lists fit.
        let (mut bound, mut beyond) = (core + 1, REMOVED);
        while beyond - bound > 1 {
            let middle = bound + (beyond - bound) / 2;
            let fits = entries_below(middle) <= self.lists.len();
            if fits { bound = middle } else { beyond = middle }
        }
        let (mut used, mut ends) = (0, Vec::with_capacity(ranges.len()));
        for range in ranges {
            for vertex in range.start..range.end.min(self.end) {
                if self.places[vertex] == REMOVED {
                    continue;
                }
                let left = self.left[vertex];
                self.places[vertex] = NOT_LOADED;
                // Not all lists of this core may fit.
                if left < bound && (left as usize) < self.lists.len() - used {
                    self.places[vertex] = used as u32;
                    used += left as usize + 1;
                }
            }
            ends.push(used);
        }
        let firsts = [0].into_iter().chain(ends.clone());
        let lists = split_at_ends(&mut self.lists, ends.into_iter());
        let places = split(&mut self.places, ranges);
        let filling = firsts.zip(lists).zip(places).map(|((first, lists), places)| Filling {
            core,
            left: &self.left,
            places,
            first: first as u32,
            lists,
        });
        filling.collect()
    }

    /// Writes the lengths of lists that are loaded; false if a list is longer than its places.
    fn measure_lists(&mut self) -> bool {
        let (rest, mut start) = (&self.left[..self.end], 0);
        for (place, left) in self.places.iter_mut().zip(rest).filter(|(place, _)| **place < REMOVED)
        {
            let length = *place - start;
            if length > *left {
                return false;
            }
            self.lists[start as usize] = length;
            *place = start;
            start += left + 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails on any error")]

    use brimful_graph::random::Random;

    use super::*;

    /// Core numbers by their definition: for each k, vertices with fewer than k neighbors are
    /// removed until none is left.
    fn expected(vertices: usize, edges: &[(usize, usize)]) -> Vec<u32> {
        let mut cores = vec![0; vertices];
        for k in 1.. {
            let mut is_in = vec![true; vertices];
            loop {
                let count = |vertex: usize| {
                    let others = edges.iter().filter(|(one, other)| is_in[*one] && is_in[*other]);
                    others.filter(|(one, other)| *one == vertex || *other == vertex).count()
                };
                let lost: Vec<_> =
                    (0..vertices).filter(|vertex| is_in[*vertex] && count(*vertex) < k).collect();
                if lost.is_empty() {
                    break;
                }
                lost.into_iter().for_each(|vertex| is_in[vertex] = false);
            }
            if !is_in.contains(&true) {
                return cores;
            }
            let inside = cores.iter_mut().zip(is_in).filter(|(_, is_in)| *is_in);
            inside.for_each(|(core, _)| *core = k as u32);
        }
        unreachable!("a core of more neighbors than edges is empty")
    }

    #[test]
    fn lists_of_any_memory_give_the_same_numbers() {
        let mut random = Random::of(7, 0);
        let mut below = |most: usize| random.below(most as u64) as usize;
        let mut most_loads = 0;
        for _ in 0..60 {
            let (vertices, count) = (2 + below(25), below(120));
            // The lower a vertex, the more edges it has; edges may be parallel.
            let end = |below: &mut dyn FnMut(usize) -> usize| {
                let most = below(vertices) + 1;
                below(most)
            };
            let edges: Vec<_> = (0..count).map(|_| (end(&mut below), end(&mut below))).collect();
            let edges: Vec<_> = edges.into_iter().filter(|(one, other)| one != other).collect();
            let wanted = expected(vertices, &edges);
            let both = || edges.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
            let longest =
                (0..vertices).map(|vertex| both().filter(|(one, _)| *one == vertex).count());
            let least = longest.max().unwrap() + 1;
            for (entries, stack) in [(least, 1), (least + 10, 3), (2 * count + vertices, STACK)] {
                let mut left = HugeArray::zeroed(vertices);
                both().for_each(|(one, _)| left[one] += 1);
                let mut peeling = Peeling::new(left, entries, stack);
                let ranges = [0..vertices / 2, vertices / 2..vertices];
                let mut loads = 0;
                let load = |peeling: &mut Peeling, core| {
                    loads += 1;
                    let filling = peeling.choose(core, &ranges);
                    for (part, range) in filling.into_iter().zip(&ranges) {
                        let Filling { core, left, places, first, lists } = part;
                        for ends in both().filter(|(one, _)| range.contains(one)) {
                            let place = &mut places[ends.0 - range.start];
                            assert!(Filling::add((core, left), place, (first, lists), ends));
                        }
                    }
                    assert!(peeling.measure_lists());
                    Ok(())
                };
                peeling.peel(&Job::new(), load).unwrap();
                assert_eq!(peeling.left[..], wanted[..], "{entries} entries of {edges:?}");
                assert!(loads == 1 || entries < 2 * edges.len() + vertices, "{loads} loads");
                most_loads = most_loads.max(loads);
            }
        }
        assert!(most_loads > 3, "{most_loads}");
    }
}
