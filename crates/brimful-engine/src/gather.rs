//! Gather programs: a vertex sees its whole list of neighbours at once.
//!
//! Lists are made from the shards, an interval or a part of one at a time: sources are put where their
//! targets' lists are, which keeps them in order. There is no adjacency on disk, and the in-shards that
//! every graph has are enough. A superstep reads the states of the one before, but for programs that settle. Invariant: states are the same bits at any budget and number
//! of threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brimful_graph::codec::Unpack;
use brimful_graph::shards::ShardFile;
use brimful_graph::{Graph, Index, import, with_codec};
use brimful_store::Resources;
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::log::SuperstepLog;
use crate::program::Vertex;
use crate::residency::{Resident, Shard, Spare, columns, segments_of_intervals, unit_bytes};
use crate::run::moved;
use crate::stats::{Durations, Reason, Stats};

/// The neighbours of a vertex, with multiplicity: those of the first index ascending, then those of the next.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours<'n, S> {
    ids: &'n [u32],
    states: &'n [S],
    /// States of this superstep, where they may be seen, and the vertex of the first.
    new: (usize, &'n [S]),
}

impl<'n, S: Copy> Neighbours<'n, S> {
    /// How many.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Internal ids and states.
    pub fn iter(&self) -> impl Iterator<Item = (u64, S)> + use<'n, S> {
        let (states, (first, new)) = (self.states, self.new);
        self.ids.iter().map(move |id| {
            let seen = new.get((*id as usize).wrapping_sub(first));
            (u64::from(*id), *seen.unwrap_or_else(|| &states[*id as usize]))
        })
    }
}

/// A program over whole neighbour lists. Vertices without edges keep their initial state.
pub trait Gather: Sync {
    /// What a vertex owns.
    type State: Pod + Send + Sync + PartialEq;
    /// What a thread works with.
    type Room: Default + Send;

    /// True if [`Vertex::external`] is used.
    const NEEDS_EXTERNAL: bool = false;
    /// True if every vertex comes to a state that follows from what its neighbours come to, whenever it sees that. Then
    /// those whose lists are made together see at once what the more urgent of them have become; how many
    /// supersteps there are may depend on the memory, the states at the end do not.
    const SETTLES: bool = false;

    /// Whose edges make lists: [`Index::In`] in-neighbours, [`Index::Reverse`] out-neighbours.
    fn indexes(&self) -> &'static [Index];
    /// The state at the start. Degrees are not known.
    fn initial(&self, vertex: Vertex) -> Self::State;
    /// True if a vertex in this state keeps it whatever its neighbours become: it is not gathered again, and nothing is
    /// read for intervals of such vertices. Only where [`Gather::SETTLES`].
    fn settled(&self, state: Self::State) -> bool {
        let _ = state;
        false
    }
    /// The vertices of a part of an interval are gathered from the most urgent on. Only where [`Gather::SETTLES`].
    fn urgency(&self, state: Self::State) -> u128 {
        let _ = state;
        0
    }
    /// The new state of `vertex`, an internal id.
    fn gather(
        &self,
        vertex: u64,
        state: Self::State,
        neighbours: Neighbours<'_, Self::State>,
        room: &mut Self::Room,
    ) -> Self::State;
}

/// The states at the end of a run, and what the run did.
#[derive(Debug)]
pub struct Gathered<S> {
    /// One state per vertex with edges, in internal order.
    pub states: ScratchArray<S>,
    /// Figures.
    pub stats: Stats,
}

/// A run of targets whose lists are made together.
#[derive(Debug)]
struct Item {
    interval: usize,
    targets: Range<usize>,
}

/// What a superstep did.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    /// Neighbours gathered.
    gathered: u64,
    /// States that changed.
    changed: u64,
    /// Vertices that are not settled.
    open: u64,
}

struct Run<'a, G: Gather> {
    program: &'a G,
    graph: &'a Graph,
    resources: &'a Resources,
    files: Vec<Resident>,
    /// For each interval, its segments in each file.
    intervals: Vec<Shard>,
    /// Lengths of lists.
    lengths: Vec<u32>,
    items: Vec<Item>,
    states: HugeArray<G::State>,
}

/// Runs `program` for at most `max_supersteps`, or until no state changes.
///
/// # Errors
/// [`brimful_store::Error::Budget`] naming the smallest budget that works: where that is because of one long list, after one
/// pass over the edges; corruption and I/O as they are met; [`brimful_store::Error::Interrupted`] after a cancellation.
pub fn gather<G: Gather>(
    program: &G,
    graph: &Graph,
    max_supersteps: u64,
    resources: &Resources,
) -> Result<Gathered<G::State>> {
    const PURPOSE: &str = "to gather neighbours in this graph";
    let mut index_seconds = 0.0;
    if program.indexes().iter().any(|index| graph.shards(*index).is_none()) {
        index_seconds = import::build_reverse(graph, resources)?;
    }
    let (begin, moved_before) = (Instant::now(), moved(graph, resources));
    let mut shards: Vec<Arc<ShardFile>> =
        program.indexes().iter().filter_map(|index| graph.shards(*index)).map(Arc::clone).collect();
    shards.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let vertices = graph.connected();
    if vertices > u64::from(u32::MAX) {
        return Err(Error::Usage("neighbour lists are for up to 2^32 vertices with edges".into()));
    }
    let workers = resources.workers() as u64;
    let window = vertices.min(1 << graph.description().interval_bits);
    let largest = |file: &Arc<ShardFile>| {
        let units = columns(file, false).flat_map(|column| unit_bytes(file, column)).max().unwrap_or(0);
        units + file.largest_unpacked()
    };
    let fixed = vertices * (2 * size_of::<G::State>() as u64 + 4)
        + workers * (window * (8 + 4) + shards.iter().map(largest).sum::<u64>());
    resources.budget.require(fixed + workers * 4, PURPOSE)?;
    let memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let spare = memory.bytes() - fixed;
    let packed: u64 =
        shards.iter().flat_map(|file| columns(file, false).flat_map(|c| unit_bytes(file, c))).sum();
    // Lists of a quarter of what is left are long enough; the rest keeps edges in memory.
    let lists = (spare / 4).max(spare.saturating_sub(packed)) / workers / 4;
    let mut run = Run {
        program,
        graph,
        resources,
        intervals: segments_of_intervals(&shards, graph.intervals() as usize),
        files: Resident::spread(shards, false, spare - lists * 4 * workers),
        lengths: Vec::new(),
        items: Vec::new(),
        states: HugeArray::zeroed(vertices as usize),
    };
    run.initialize()?;
    run.lengths = run.measure()?;
    let longest = run.lengths.iter().copied().max().map_or(0, u64::from);
    resources.budget.require(fixed + workers * 4 * longest, PURPOSE)?;
    let most = lists.max(longest);
    run.items = run.cut(most);
    let prepared = begin.elapsed().as_secs_f64();
    let (mut durations, mut reason) = (Durations::default(), Reason::MaxSupersteps);
    let (mut supersteps, mut signals) = (0, 0);
    let mut log = SuperstepLog::new(moved(graph, resources));
    while supersteps < max_supersteps {
        let started = Instant::now();
        resources.job.begin(format!("superstep {}", supersteps + 1), vertices);
        let step = run.superstep()?;
        supersteps += 1;
        signals += step.gathered;
        let seconds = started.elapsed().as_secs_f64();
        durations.push(seconds);
        log.tell((supersteps, seconds), "gather", signals, signals, || moved(graph, resources));
        if step.changed == 0 || step.open == 0 {
            reason = Reason::NoChange;
            break;
        }
        if G::SETTLES {
            run.items = run.cut(most);
        }
    }
    let states = run.finish();
    let seconds = begin.elapsed().as_secs_f64();
    let stats = Stats {
        supersteps,
        reason,
        durations,
        sparse_supersteps: 0,
        seconds,
        index_seconds,
        signals,
        edges_visited: signals,
        moved: moved(graph, resources) - moved_before,
        phases: vec![("prepare", prepared), ("supersteps", seconds - prepared)],
        threads: resources.workers(),
    };
    Ok(Gathered { states, stats })
}

/// Where the neighbours of settled vertices go.
const NOWHERE: usize = usize::MAX;

/// What one worker works with.
#[derive(Default)]
struct Room<R> {
    spares: Vec<Spare>,
    plain: Vec<u8>,
    /// Where the next neighbour of each target goes.
    ends: Vec<usize>,
    /// Targets that are gathered, one after the other.
    order: Vec<u32>,
    lists: Vec<u32>,
    own: R,
}

impl<G: Gather> Run<'_, G> {
    fn window(&self, interval: usize) -> Range<usize> {
        let bits = self.graph.description().interval_bits;
        interval << bits..((interval + 1) << bits).min(self.states.len())
    }

    fn initialize(&mut self) -> Result<()> {
        let smallest = self.graph.key_bounds()?.map_or(0, |(smallest, _)| smallest);
        self.resources.job.begin("initialize", self.intervals.len() as u64);
        let parts = self.resources.share(self.intervals.len(), |interval, (): &mut ()| -> Result<_> {
            let range = self.window(interval);
            let mut external = vec![0; if G::NEEDS_EXTERNAL { range.len() } else { 0 }];
            self.graph.external_ids(range.start as u64, &mut external)?;
            let id_type = self.graph.id_type();
            let state = |id: usize| {
                let bits = external.get(id - range.start);
                let external = bits.map_or(0, |bits| id_type.order_key(*bits).wrapping_sub(smallest));
                self.program.initial(Vertex { id: id as u64, degree: 0, strength: 0.0, external })
            };
            self.resources.job.advance(1);
            Ok(range.clone().map(state).collect::<Vec<_>>())
        })?;
        for (interval, states) in parts.into_iter().enumerate() {
            let range = self.window(interval);
            self.states[range].copy_from_slice(&states);
        }
        Ok(())
    }

    /// Calls `edge(source, target)` for the edges into an interval, targets counted within it.
    fn each_edge(
        &self,
        interval: usize,
        spares: &mut Vec<Spare>,
        plain: &mut Vec<u8>,
        mut edge: impl FnMut(u64, usize),
    ) -> Result<()> {
        let (bits, vertices) = (self.graph.description().interval_bits, self.states.len() as u64);
        let (mask, targets, unpack) = ((1_u32 << bits) - 1, self.window(interval).len(), Unpack::fastest());
        spares.resize_with(self.files.len(), Spare::default);
        for (file, segments) in &self.intervals[interval] {
            let resident = &self.files[*file];
            let shards = resident.shards();
            for index in segments.clone() {
                self.resources.job.check()?;
                let unit = resident.unit(0, shards.unit(index), &mut spares[*file])?;
                with_codec!(shards.segments()[index].packing.codec, C => {
                    shards.decode::<C>(index, unit, unpack, plain, |base, keys| {
                        keys.iter().all(|key| {
                            let (source, target) = (base + u64::from(key >> bits), (key & mask) as usize);
                            let inside = source < vertices && target < targets;
                            if inside {
                                edge(source, target);
                            }
                            inside
                        })
                    })
                })?;
            }
        }
        Ok(())
    }

    /// Lengths of all lists.
    fn measure(&self) -> Result<Vec<u32>> {
        self.resources.job.begin("measure lists", self.intervals.len() as u64);
        let parts = self.resources.share(
            self.intervals.len(),
            |interval, room: &mut Room<G::Room>| -> Result<_> {
                let mut lengths = vec![0_u32; self.window(interval).len()];
                let mut long = false;
                self.each_edge(interval, &mut room.spares, &mut room.plain, |_, target| {
                    let (length, over) = lengths[target].overflowing_add(1);
                    lengths[target] = length;
                    long |= over;
                })?;
                if long {
                    return Err(Error::Usage("a vertex has 2^32 neighbours or more".into()));
                }
                self.resources.job.advance(1);
                Ok(lengths)
            },
        )?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Cuts intervals into items with lists of at most `most` neighbours, which the longest one has not; settled vertices need none.
    fn cut(&self, most: u64) -> Vec<Item> {
        let mut items = Vec::new();
        for interval in 0..self.intervals.len() {
            let range = self.window(interval);
            let (mut start, mut held) = (0, 0);
            for (target, vertex) in range.clone().enumerate() {
                let length = if self.is_settled(vertex) { 0 } else { u64::from(self.lengths[vertex]) };
                if held + length > most {
                    items.push(Item { interval, targets: start..target });
                    (start, held) = (target, 0);
                }
                held += length;
            }
            items.push(Item { interval, targets: start..range.len() });
        }
        items
    }

    fn is_settled(&self, vertex: usize) -> bool {
        G::SETTLES && self.program.settled(self.states[vertex])
    }

    /// Gathers everybody who is not settled once.
    fn superstep(&mut self) -> Result<Step> {
        let mut next = HugeArray::zeroed(self.states.len());
        let mut slices = Vec::with_capacity(self.items.len());
        let mut rest = &mut next[..];
        for item in &self.items {
            let (slice, after) = rest.split_at_mut(item.targets.len());
            slices.push(Mutex::new(slice));
            rest = after;
        }
        let steps =
            self.resources.share(self.items.len(), |index, room: &mut Room<G::Room>| -> Result<_> {
                let item = &self.items[index];
                let Room { spares, plain, ends, order, lists, own } = room;
                let first = self.window(item.interval).start + item.targets.start;
                let lengths = &self.lengths[first..first + item.targets.len()];
                let states = &self.states[first..first + item.targets.len()];
                let mut end = 0;
                ends.clear();
                ends.extend((first..).zip(lengths).map(|(vertex, length)| {
                    if self.is_settled(vertex) {
                        return NOWHERE;
                    }
                    let start = end;
                    end += *length as usize;
                    start
                }));
                lists.clear();
                lists.resize(end, 0);
                let targets = item.targets.clone();
                if end > 0 {
                    self.each_edge(item.interval, spares, plain, |source, target| {
                        if targets.contains(&target) {
                            let end = &mut ends[target - targets.start];
                            if let Some(place) = lists.get_mut(*end) {
                                *place = source as u32;
                                *end += 1;
                            }
                        }
                    })?;
                }
                let mut slice = slices[index].lock().unwrap_or_else(PoisonError::into_inner);
                slice.copy_from_slice(states);
                order.clear();
                order.extend((0..states.len() as u32).filter(|at| ends[*at as usize] != NOWHERE));
                if G::SETTLES {
                    order.sort_unstable_by_key(|at| {
                        std::cmp::Reverse(self.program.urgency(states[*at as usize]))
                    });
                }
                let mut step = Step { gathered: end as u64, ..Step::default() };
                for at in order.iter().map(|at| *at as usize) {
                    let ids = &lists[ends[at] - lengths[at] as usize..ends[at]];
                    let new = if G::SETTLES { (first, &slice[..]) } else { (0, &[][..]) };
                    let neighbours = Neighbours { ids, states: &self.states, new };
                    let new = self.program.gather((first + at) as u64, states[at], neighbours, own);
                    slice[at] = new;
                    step.changed += u64::from(new != states[at]);
                    step.open += u64::from(!(G::SETTLES && self.program.settled(new)));
                }
                self.resources.job.advance(lengths.len() as u64);
                Ok(step)
            })?;
        drop(slices);
        self.states = next;
        Ok(steps.into_iter().fold(Step::default(), |sum, step| Step {
            gathered: sum.gathered + step.gathered,
            changed: sum.changed + step.changed,
            open: sum.open + step.open,
        }))
    }

    fn finish(self) -> ScratchArray<G::State> {
        ScratchArray::of(self.states, 1 << self.graph.description().interval_bits)
    }
}
