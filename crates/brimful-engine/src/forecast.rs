//! What a run will take: memory, disk, bytes and time, worked out from the plan that it would
//! follow.
//!
//! Memory and disk are within a quarter of what is then measured, where the graph is as it was said
//! to be; time is an estimate, as bandwidths and the number of supersteps are. Invariant: nothing
//! of a graph is read but its tables of segments.

use brimful_graph::import::forecast::{Forecast as ImportForecast, forecast_index};
use brimful_graph::sizes::Sizes;
use brimful_store::{Budget, Resources};

use crate::error::Result;
use crate::extent::{Extent, IndexExtent, ToBuild};
use crate::gather;
use crate::needs::{GatherNeeds, Needs};
use crate::plan::Plan;
use crate::scan::Scan;

/// Bytes of memory traffic that stand for an edge of a superstep: PageRank of RMAT-24 takes .385 s
/// where memory is read at 30 GB/s (bench/RESULTS.md). Making lists and going through them takes
/// about ten times as long, union-find three times.
const EDGE_TRAFFIC: u64 = 43;
const LIST_TRAFFIC: u64 = 430;
const SCAN_TRAFFIC: u64 = 130;
/// Supersteps of a program that settles, where there is more than one item, and how often they go
/// over all edges.
const SUPERSTEPS_OF_ITEMS: u64 = 8;
const PASSES_OF_ITEMS: f64 = 3.0;
/// Bytes of a packed degree.
const DEGREE_BYTES: u64 = 1;

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// Supersteps.
    pub supersteps: u64,
    /// How often all edges are gone over in all.
    pub passes: f64,
    /// That many are likely, not certain.
    pub guessed: bool,
}

impl Steps {
    /// Exactly so many supersteps over all edges.
    pub fn exactly(supersteps: u64) -> Self {
        Self { supersteps, passes: supersteps as f64, guessed: false }
    }

    /// About so many supersteps, that go over all edges so often.
    pub fn about(supersteps: u64, passes: f64) -> Self {
        Self { supersteps, passes, guessed: true }
    }

    /// At most so many supersteps.
    #[must_use]
    pub fn at_most(self, supersteps: u64) -> Self {
        if supersteps >= self.supersteps {
            return self;
        }
        let passes = self.passes * supersteps as f64 / self.supersteps as f64;
        Self { supersteps, passes, guessed: self.guessed }
    }
}

/// Bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidths {
    /// Reading memory, with all threads.
    pub memory: f64,
    /// Reading the disk.
    pub disk: f64,
}

/// What a run will take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The smallest budget that works, beside the process.
    pub minimum_bytes: u64,
    /// Memory that is likely to be filled, beside the process.
    pub memory_bytes: u64,
    /// Memory that the result takes when the run has ended.
    pub result_bytes: u64,
    /// Bytes of disk until the run ends.
    pub scratch_bytes: u64,
    /// What building an index that is missing takes, which stays.
    pub index: Option<ImportForecast>,
    /// Bytes read once, that stay in memory.
    pub read_once_bytes: u64,
    /// Bytes read in a superstep that goes over all edges.
    pub read_bytes: u64,
    /// Bytes written in such a superstep.
    pub written_bytes: u64,
    /// Memory traffic that stands for the work of such a superstep.
    pub traffic_bytes: u64,
    /// How long the run is.
    pub steps: Steps,
    /// False where bytes moved are not known, and none are said.
    pub moves: bool,
    /// False where the time depends on more than is known.
    pub timed: bool,
}

/// The graph of a run, and what the run may use.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'e> {
    /// The graph.
    pub extent: &'e Extent,
    /// Compute threads.
    pub workers: usize,
    /// Bytes of memory beside the process.
    pub limit: u64,
}

impl<'e> Setting<'e> {
    /// A run on a graph of `extent` with `resources`.
    pub fn new(extent: &'e Extent, resources: &Resources) -> Self {
        Self { extent, workers: resources.workers(), limit: resources.budget.limit() }
    }

    /// The smallest budget of a run over shards.
    pub fn least_of_program(&self, needs: &Needs, asynchronous: bool) -> u64 {
        self.with_index(Plan::minimum_bytes(needs, self.extent, asynchronous, self.workers))
    }

    /// The smallest budget of a run over neighbour lists.
    pub fn least_of_lists(&self, needs: &GatherNeeds) -> u64 {
        self.with_index(gather::plan::Plan::minimum_bytes(needs, self.extent, self.workers as u64))
    }

    /// Of a run of a program over shards, which goes over `first_indexes` of its indexes in the
    /// first superstep.
    ///
    /// # Errors
    /// None but those of the plan, which has its minimum.
    pub fn of_program(
        &self,
        needs: &Needs,
        first_indexes: usize,
        asynchronous: bool,
        steps: Steps,
    ) -> Result<Forecast> {
        let Self { extent, workers, .. } = *self;
        let minimum = self.least_of_program(needs, asynchronous);
        let plan = Plan::new(needs, extent, asynchronous, workers, &self.budget(minimum))?;
        let windows = plan.source_windows(extent);
        let streamed = 1.0 - plan.pinned_bytes as f64 / extent.packed().max(1) as f64;
        // A unit is read for each window that it has sources of.
        let of_index = |index: &IndexExtent| {
            let packed: u64 = index.columns.iter().map(|column| column.packed).sum();
            packed as f64 * (1.0 + (windows - 1) as f64 * index.reach)
        };
        let edges = extent.indexes.iter().map(of_index).sum::<f64>() * streamed.max(0.0);
        let [states, next] = plan.paged_bytes(needs, extent);
        let sums = plan.spilled_bytes(needs, extent);
        let arrays = windows.saturating_mul(sums).saturating_add(states + next);
        let has_degrees = plan.degrees_resident || !needs.degrees;
        let degrees = if has_degrees { 0 } else { extent.vertices * DEGREE_BYTES };
        // A program that goes over one of its indexes at a time may end before it has read all of
        // them, or have no superstep at all.
        let first = first_indexes as f64 / extent.indexes.len().max(1) as f64;
        let share = if steps.supersteps == 0 { 0.0 } else { steps.passes.max(first).min(1.0) };
        let read = (share * extent.packed() as f64) as u64;
        Ok(Forecast {
            memory_bytes: plan.likely_bytes(needs, extent, workers, read),
            result_bytes: if plan.states_resident { extent.vertices * needs.state } else { 0 },
            scratch_bytes: states + next + if steps.supersteps == 0 { 0 } else { sums },
            read_once_bytes: plan.pinned_bytes.min(read),
            read_bytes: arrays.saturating_add(edges as u64 + degrees),
            written_bytes: arrays,
            traffic_bytes: EDGE_TRAFFIC * extent.edges()
                + extent.vertices * 2 * (needs.state + needs.signal),
            ..self.empty(minimum, steps)
        })
    }

    /// Of a run of a program over neighbour lists.
    ///
    /// # Errors
    /// None but those of the plan, which has its minimum.
    pub fn of_lists(&self, needs: &GatherNeeds, steps: Steps) -> Result<Forecast> {
        let (extent, workers) = (self.extent, self.workers as u64);
        let minimum = self.least_of_lists(needs);
        let plan = gather::plan::Plan::new(needs, extent, workers, &self.budget(minimum))?;
        let scratch = plan.scratch_bytes(needs, extent);
        let states = extent.vertices * needs.state;
        let spilled = plan.spilled_bytes(extent);
        let in_shards = 1.0 - plan.spilled_edges(extent) as f64 / extent.edges().max(1) as f64;
        let streamed = extent.packed() - plan.pinned_bytes.min(extent.packed());
        let steps = match needs.settles && plan.items(extent) > 1 {
            true => Steps::about(SUPERSTEPS_OF_ITEMS, PASSES_OF_ITEMS),
            false => steps,
        };
        Ok(Forecast {
            memory_bytes: plan.likely_bytes(needs, extent, workers),
            result_bytes: if plan.resident { states } else { 0 },
            scratch_bytes: scratch,
            read_once_bytes: plan.pinned_bytes,
            read_bytes: (streamed as f64 * in_shards) as u64 + scratch,
            written_bytes: if plan.resident { 0 } else { states },
            traffic_bytes: LIST_TRAFFIC * extent.edges() + spilled,
            ..self.empty(minimum, steps)
        })
    }

    /// Of `passes` scans beside arrays that take so many bytes while scanning, and so many after
    /// it, `result_bytes` of which stay.
    pub fn of_scans(
        &self,
        (scanning, after): (u64, u64),
        result_bytes: u64,
        passes: u64,
    ) -> Forecast {
        let Self { extent, workers, .. } = *self;
        let arrays = scanning.max(after);
        let minimum = arrays + Scan::minimum_bytes(extent, workers);
        let left = self.limit.max(minimum) - arrays;
        let pinned = left.saturating_sub(Scan::minimum_bytes(extent, workers)).min(extent.packed());
        let scan = Scan::likely_bytes(extent, left, workers);
        Forecast {
            memory_bytes: after.max(scanning + scan),
            result_bytes,
            read_once_bytes: pinned,
            read_bytes: extent.packed() - pinned,
            traffic_bytes: SCAN_TRAFFIC * extent.edges(),
            ..self.empty(minimum, Steps { supersteps: 1, passes: passes as f64, guessed: false })
        }
    }

    /// Of a run that keeps vertices elsewhere, of which bytes moved and time are not known: the
    /// smallest budget, memory, that of the result, and disk, in bytes.
    pub fn of_others(
        &self,
        [minimum, memory, result, scratch]: [u64; 4],
        steps: Steps,
    ) -> Forecast {
        Forecast {
            memory_bytes: memory,
            result_bytes: result,
            scratch_bytes: scratch,
            moves: false,
            timed: false,
            ..self.empty(minimum, steps)
        }
    }

    /// The budget, or the smallest that works.
    fn budget(&self, minimum: u64) -> std::sync::Arc<Budget> {
        Budget::new(self.limit.max(minimum), 0)
    }

    /// What building an index that is missing takes.
    fn index(&self) -> Option<ImportForecast> {
        let Self { extent, workers, .. } = *self;
        let missing = extent.indexes.iter().find_map(|index| Some((index.edges, index.to_build?)));
        missing.map(|(edges, ToBuild { bytes, weighted })| {
            let sizes = Sizes {
                vertices: extent.vertices,
                edges,
                undirected: false,
                weighted,
                reverse: false,
                bytes_per_edge: None,
            };
            forecast_index(&sizes, bytes, self.limit, workers)
        })
    }

    /// The smallest budget in which what needs `minimum` works, and before it the building of an
    /// index that is missing.
    fn with_index(&self, minimum: u64) -> u64 {
        minimum.max(self.index().map_or(0, |index| index.minimum_bytes))
    }

    /// Nothing but the building of an index that is missing.
    fn empty(&self, minimum: u64, steps: Steps) -> Forecast {
        let index = self.index();
        Forecast {
            minimum_bytes: minimum.max(index.map_or(0, |index| index.minimum_bytes)),
            memory_bytes: 0,
            result_bytes: 0,
            scratch_bytes: 0,
            index,
            read_once_bytes: 0,
            read_bytes: 0,
            written_bytes: 0,
            traffic_bytes: 0,
            steps,
            moves: true,
            timed: true,
        }
    }
}

impl Forecast {
    /// Memory, beside the process: of the run, or of building an index before it.
    pub fn peak_bytes(&self) -> u64 {
        self.memory_bytes.max(self.index.map_or(0, |index| index.memory_bytes))
    }

    /// The most bytes of disk at a time, beside the graph as it is: an index that is built stays.
    pub fn disk_bytes(&self) -> u64 {
        let index = self.index.map_or(0, |index| index.graph_bytes);
        index + self.scratch_bytes.max(self.index.map_or(0, |index| index.temporary_bytes))
    }

    /// Seconds of a superstep that goes over all edges: what takes longer of moving its bytes and
    /// of its work.
    pub fn seconds_of_pass(&self, at: Bandwidths) -> f64 {
        let moved = (self.read_bytes as f64 + self.written_bytes as f64) / at.disk;
        moved.max(self.traffic_bytes as f64 / at.memory)
    }

    /// Seconds in all.
    pub fn seconds(&self, at: Bandwidths) -> f64 {
        let index = self.index.map_or(0.0, |index| index.seconds(at.memory, at.disk));
        let run =
            if self.steps.supersteps == 0 { 0.0 } else { self.read_once_bytes as f64 / at.disk };
        index + run + self.steps.passes * self.seconds_of_pass(at)
    }
}
