//! Gather programs: a vertex sees its whole list of neighbours at once.
//!
//! Lists are made from the shards, an interval or a part of one at a time: sources are put where their
//! targets' lists are, which keeps them in order. There is no adjacency on disk, and the in-shards that
//! every graph has are enough. A superstep reads the states of the one before. Invariant: states are the same bits at any budget and number
//! of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
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
use crate::program::Vertex;
use crate::residency::{Resident, Shard, Spare, columns, segments_of_intervals, unit_bytes};
use crate::stats::{Durations, Reason, Stats};

/// The neighbours of a vertex, with multiplicity: those of the first index ascending, then those of the next.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours<'n, S> {
    ids: &'n [u32],
    states: &'n [S],
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
        let states = self.states;
        self.ids.iter().map(move |id| (u64::from(*id), states[*id as usize]))
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

    /// Whose edges make lists: [`Index::In`] in-neighbours, [`Index::Reverse`] out-neighbours.
    fn indexes(&self) -> &'static [Index];
    /// The state at the start. Degrees are not known.
    fn initial(&self, vertex: Vertex) -> Self::State;
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
    let (begin, read_before) = (Instant::now(), graph.traffic().bytes_read());
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
        + workers * (window * 8 + shards.iter().map(largest).sum::<u64>());
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
    run.items = run.cut(lists.max(longest));
    let prepared = begin.elapsed().as_secs_f64();
    let (mut durations, mut reason) = (Durations::default(), Reason::MaxSupersteps);
    let (mut supersteps, mut signals) = (0, 0);
    let edges: u64 = run.files.iter().map(|file| file.shards().edges()).sum();
    while supersteps < max_supersteps {
        let started = Instant::now();
        resources.job.begin(format!("superstep {}", supersteps + 1), vertices);
        let changed = run.superstep()?;
        supersteps += 1;
        signals += edges;
        durations.push(started.elapsed().as_secs_f64());
        if changed == 0 {
            reason = Reason::NoChange;
            break;
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
        bytes_read: graph.traffic().bytes_read() - read_before,
        bytes_written: 0,
        phases: vec![("prepare", prepared), ("supersteps", seconds - prepared)],
        threads: resources.workers(),
    };
    Ok(Gathered { states, stats })
}

/// What one worker works with.
#[derive(Default)]
struct Room<R> {
    spares: Vec<Spare>,
    plain: Vec<u8>,
    /// Where the next neighbour of each target goes.
    ends: Vec<usize>,
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

    /// Cuts intervals into items with lists of at most `most` neighbours, which the longest one has not.
    fn cut(&self, most: u64) -> Vec<Item> {
        let mut items = Vec::new();
        for interval in 0..self.intervals.len() {
            let range = self.window(interval);
            let (mut start, mut held) = (0, 0);
            for (target, length) in self.lengths[range.clone()].iter().enumerate() {
                if held + u64::from(*length) > most {
                    items.push(Item { interval, targets: start..target });
                    (start, held) = (target, 0);
                }
                held += u64::from(*length);
            }
            items.push(Item { interval, targets: start..range.len() });
        }
        items
    }

    /// Gathers everybody once; how many states changed.
    fn superstep(&mut self) -> Result<u64> {
        let mut next = HugeArray::zeroed(self.states.len());
        let mut slices = Vec::with_capacity(self.items.len());
        let mut rest = &mut next[..];
        for item in &self.items {
            let (slice, after) = rest.split_at_mut(item.targets.len());
            slices.push(Mutex::new(slice));
            rest = after;
        }
        let changed = AtomicU64::new(0);
        self.resources.share(self.items.len(), |index, room: &mut Room<G::Room>| -> Result<()> {
            let item = &self.items[index];
            let Room { spares, plain, ends, lists, own } = room;
            let first = self.window(item.interval).start + item.targets.start;
            let lengths = &self.lengths[first..first + item.targets.len()];
            let mut end = 0;
            ends.clear();
            ends.extend(lengths.iter().map(|length| {
                let start = end;
                end += *length as usize;
                start
            }));
            lists.clear();
            lists.resize(end, 0);
            let targets = item.targets.clone();
            self.each_edge(item.interval, spares, plain, |source, target| {
                if targets.contains(&target) {
                    let end = &mut ends[target - targets.start];
                    lists[*end] = source as u32;
                    *end += 1;
                }
            })?;
            let mut slice = slices[index].lock().unwrap_or_else(PoisonError::into_inner);
            let mut differ = 0;
            for (at, new) in slice.iter_mut().enumerate() {
                let old = self.states[first + at];
                let ids = &lists[ends[at] - lengths[at] as usize..ends[at]];
                let neighbours = Neighbours { ids, states: &self.states };
                *new = self.program.gather((first + at) as u64, old, neighbours, own);
                differ += u64::from(*new != old);
            }
            changed.fetch_add(differ, Ordering::Relaxed);
            self.resources.job.advance(lengths.len() as u64);
            Ok(())
        })?;
        drop(slices);
        self.states = next;
        Ok(changed.into_inner())
    }

    fn finish(self) -> ScratchArray<G::State> {
        ScratchArray::of(self.states, 1 << self.graph.description().interval_bits)
    }
}
