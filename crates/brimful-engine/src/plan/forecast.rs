//! Forecast of a run: memory, disk, bytes moved and time, computed from its plan.
//!
//! Memory and disk are within a quarter of the measured values if the graph has the expected size.
//! Time is an estimate, as bandwidths and the number of supersteps are. Invariant: a forecast reads
//! nothing of a graph but its tables of segments.

use brimful_graph::build::import::forecast::{Forecast as ImportForecast, forecast_index};
use brimful_graph::build::sizes::Sizes;
use brimful_store::{Budget, Resources};

use crate::error::Result;
use crate::plan::exchange::ExchangeForecast;
use crate::plan::extent::{Extent, IndexExtent, ToBuild};
use crate::plan::gather;
use crate::plan::memory::Plan;
use crate::plan::needs::{GatherNeeds, Needs};
use crate::plan::partitioning::{Cluster, PartitionSize};
use crate::traverse::scan::Scan;

/// Memory traffic, in bytes, equivalent to the work on one edge of a superstep: PageRank of RMAT-24
/// takes 0.14 to 0.15 s where two threads read memory at 65 to 75 GB/s (bench/RESULTS.md). Making
/// and reading neighbor lists takes about eight times as long, reading lists in memory twice,
/// union-find five times.
const EDGE_TRAFFIC: u64 = 28;
const LIST_TRAFFIC: u64 = 210;
const UNPACKED_LIST_TRAFFIC: u64 = 60;
const SCAN_TRAFFIC: u64 = 130;
/// Supersteps of a settling program, and its passes over all edges, each for a run and for an item.
/// Coloring of RMAT-22 with 3, 16, 43 and 161 items takes 3, 8, 18 and 62 supersteps and 2.7, 6.0,
/// 13.2 and 43.6 passes.
const SETTLING_SUPERSTEPS: (f64, f64) = (1.5, 0.39);
const SETTLING_PASSES: (f64, f64) = (1.8, 0.265);
/// The part of the edges on disk that a sparse superstep reads. Core numbers of RMAT-22 read 34 GB
/// in 854 supersteps, of which 27 are passes over all edges.
const SPARSE_READS: f64 = 0.2;
/// Passes over all edges for each superstep of a wide graph that may be sparse.
const SPARSE_PASSES: f64 = 0.5;
/// The same share, if only the first vertices in order signal.
const ORDERED_PASSES: f64 = 0.1;
/// Bytes of a packed degree.
const DEGREE_BYTES: u64 = 1;

/// The length of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// Supersteps.
    pub supersteps: u64,
    /// Passes over all edges, in total.
    pub passes: f64,
    /// True if the numbers are guesses.
    pub guessed: bool,
    /// True if frontiers are small in all of many supersteps, as on roads. The passes are those of
    /// a run over unpacked edges.
    pub wide: bool,
}

impl Steps {
    /// A known number of supersteps over all edges.
    pub fn exactly(supersteps: u64) -> Self {
        Self { supersteps, passes: supersteps as f64, guessed: false, wide: false }
    }

    /// An estimated number of supersteps, and of passes over all edges.
    pub fn about(supersteps: u64, passes: f64) -> Self {
        Self { supersteps, passes, guessed: true, wide: false }
    }

    /// The same steps, but at most `supersteps` supersteps.
    #[must_use]
    pub fn at_most(self, supersteps: u64) -> Self {
        if supersteps >= self.supersteps {
            return self;
        }
        let passes = self.passes * supersteps as f64 / self.supersteps as f64;
        Self { supersteps, passes, ..self }
    }

    /// The steps on a wide graph under `plan`. If its edges do not fit unpacked, each superstep
    /// decodes every block with an edge of the frontier, or visits every edge.
    fn of_plan(self, plan: &Plan, ordered: bool) -> Self {
        if !self.wide || plan.unpacked {
            return self;
        }
        let share = match (plan.sparse, ordered) {
            (None, _) => 1.0,
            (Some(_), false) => SPARSE_PASSES,
            (Some(_), true) => ORDERED_PASSES,
        };
        Self { passes: self.passes.max(self.supersteps as f64 * share), ..self }
    }
}

/// Bandwidths of a machine in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidths {
    /// Reading memory, with all threads.
    pub memory: f64,
    /// Reading the disk.
    pub disk: f64,
    /// The network, in each direction.
    pub network: f64,
}

/// The forecast of a run; on a cluster, of the worker with the most work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The smallest budget that works, in bytes beyond those of the process.
    pub minimum_bytes: u64,
    /// A budget with which the data of all vertices stay in memory, in bytes beyond those of the
    /// process.
    pub in_memory_bytes: u64,
    /// Memory that the run is likely to fill, in bytes beyond those of the process.
    pub memory_bytes: u64,
    /// Memory of the result after the run, in bytes.
    pub result_bytes: u64,
    /// Bytes of scratch files, until the run ends.
    pub scratch_bytes: u64,
    /// The cost of building a missing index, which stays on disk.
    pub index: Option<ImportForecast>,
    /// Bytes that are read once and stay in memory.
    pub read_once_bytes: u64,
    /// Bytes read in a superstep over all edges.
    pub read_bytes: u64,
    /// Bytes written in a superstep over all edges.
    pub written_bytes: u64,
    /// Memory traffic of a machine equivalent to the work of a superstep over all edges, in bytes.
    pub traffic_bytes: u64,
    /// The exchange between the workers of a cluster.
    pub exchange: Option<ExchangeForecast>,
    /// The length of the run.
    pub steps: Steps,
    /// False if the numbers of bytes moved are unknown; they are then left out.
    pub moves: bool,
    /// False if the time depends on unknown factors.
    pub timed: bool,
}

/// The graph of a run, and its resources.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'e> {
    /// The graph.
    pub extent: &'e Extent,
    /// Compute threads.
    pub workers: usize,
    /// Budget in bytes, beyond those of the process.
    pub limit: u64,
    /// The cluster on which the program runs; threads and budget are those of a worker.
    pub cluster: Option<&'e Cluster>,
}

impl<'e> Setting<'e> {
    /// A run with `resources` on a graph of `extent`.
    pub fn new(extent: &'e Extent, resources: &Resources) -> Self {
        let (workers, limit) = (resources.workers(), resources.budget.limit());
        Self { extent, workers, limit, cluster: None }
    }

    /// The smallest budget of a run over shards.
    pub fn min_of_program(&self, needs: &Needs, asynchronous: bool) -> u64 {
        self.with_index(Plan::minimum_bytes(needs, self.extent, asynchronous, self.workers))
    }

    /// The smallest budget of a run over neighbor lists.
    pub fn min_of_lists(&self, needs: &GatherNeeds) -> u64 {
        self.with_index(gather::GatherPlan::minimum_bytes(needs, self.extent, self.workers as u64))
    }

    /// The forecast of a program over shards that walks `first_indexes` of its indexes in the first
    /// superstep.
    ///
    /// # Errors
    /// Errors of the plan, except for a budget below the minimum.
    pub fn forecast_program(
        &self,
        needs: &Needs,
        first_indexes: usize,
        asynchronous: bool,
        steps: Steps,
    ) -> Result<Forecast> {
        let Self { extent, workers, cluster, .. } = *self;
        let whole = PartitionSize { vertices: extent.vertices, edges: extent.edges() };
        let exchange = cluster.map(|cluster| ExchangeForecast::of(cluster, &whole, needs.signal));
        let memory = exchange.map_or(0, |exchange| exchange.memory_bytes);
        let needs = &needs.distributed(cluster.is_some()).with_exchange(memory);
        let minimum = self.min_of_program(needs, asynchronous);
        let plan = Plan::new(needs, extent, asynchronous, workers, &self.budget(minimum))?;
        let steps = steps.of_plan(&plan, needs.ordered);
        let windows = plan.source_windows(extent);
        let traffic = |part: PartitionSize| EDGE_TRAFFIC * part.work();
        let busiest = cluster.map_or(whole, |cluster| cluster.busiest(traffic));
        let share = busiest.edges as f64 / whole.edges.max(1) as f64;
        let packed = (share * extent.packed() as f64) as u64;
        let streamed = 1.0 - plan.pinned_bytes as f64 / packed.max(1) as f64;
        // A unit is read once for each window that has sources in it.
        let of_index = |index: &IndexExtent| {
            let packed: u64 = index.columns.iter().map(|column| column.packed).sum();
            packed as f64 * (1.0 + (windows - 1) as f64 * index.reach)
        };
        let edges = extent.indexes.iter().map(of_index).sum::<f64>() * share * streamed.max(0.0);
        let [states, next] = plan.paged_bytes(needs, busiest.vertices);
        let sums = plan.spilled_bytes(needs, extent);
        let arrays = windows.saturating_mul(sums).saturating_add(states + next);
        let has_degrees = plan.degrees_resident || !needs.degrees;
        let degrees = if has_degrees { 0 } else { busiest.vertices * DEGREE_BYTES };
        // A program that reads one index at a time may end before it has read all indexes, or
        // without a superstep.
        let first = first_indexes as f64 / extent.indexes.len().max(1) as f64;
        let walked = if steps.supersteps == 0 { 0.0 } else { steps.passes.max(first).min(1.0) };
        let read = (walked * packed as f64) as u64;
        let in_memory = Plan::in_memory_bytes(needs, extent, asynchronous, workers);
        // The many supersteps of a wide graph take a tenth of the time along unpacked edges.
        let unpacked = Plan::unpacked_bytes(needs, extent).filter(|_| steps.wide).unwrap_or(0);
        let likely = plan.likely_bytes(needs, extent, workers, busiest.vertices, read);
        Ok(Forecast {
            in_memory_bytes: in_memory.max(minimum).max(unpacked),
            memory_bytes: if plan.unpacked { likely.max(unpacked) } else { likely },
            // The caller receives the states of all vertices.
            result_bytes: if plan.states_resident { busiest.vertices * needs.state } else { 0 },
            scratch_bytes: states + next + if steps.supersteps == 0 { 0 } else { sums },
            read_once_bytes: plan.pinned_bytes.min(read),
            read_bytes: arrays.saturating_add(edges as u64 + degrees),
            written_bytes: arrays,
            traffic_bytes: match cluster {
                None => traffic(busiest),
                Some(cluster) => cluster.of_machine(workers, traffic(busiest), traffic(whole)),
            },
            exchange: exchange.map(|exchange| exchange.in_memory(plan.exchange_bytes)),
            ..self.empty(minimum, steps)
        })
    }

    /// The forecast of a program over neighbor lists.
    ///
    /// # Errors
    /// Errors of the plan, except for a budget below the minimum.
    pub fn forecast_gather(&self, needs: &GatherNeeds, steps: Steps) -> Result<Forecast> {
        let (extent, workers) = (self.extent, self.workers as u64);
        let whole = PartitionSize { vertices: extent.vertices, edges: extent.edges() };
        let exchange =
            self.cluster.map(|cluster| ExchangeForecast::of(cluster, &whole, needs.state));
        let message = self.cluster.map_or(0, |cluster| cluster.max_vertices() * needs.state);
        let shared = exchange.map_or(0, |exchange| exchange.memory_bytes);
        let minimum = self.min_of_lists(&needs.with_exchange(message));
        let budget = self.budget(minimum);
        let limit = budget.limit();
        let (needs, shared) =
            &gather::needs_of_exchange(*needs, message, shared, extent, workers, limit);
        let plan = gather::GatherPlan::new(needs, extent, workers, &budget)?;
        let states = extent.vertices * needs.state;
        let edge = if plan.unpacked { UNPACKED_LIST_TRAFFIC } else { LIST_TRAFFIC };
        let traffic = |part: PartitionSize| edge * part.edges;
        let busiest = self.cluster.map_or(whole, |cluster| cluster.busiest(traffic));
        let share = busiest.edges as f64 / whole.edges.max(1) as f64;
        let spilled = (share * plan.spilled_bytes(extent) as f64) as u64;
        let scratch = plan.array_bytes(needs, extent) + spilled;
        let in_shards = 1.0 - plan.spilled_edges(extent) as f64 / extent.edges().max(1) as f64;
        let packed = (share * extent.packed() as f64) as u64;
        let pinned = if plan.unpacked { packed } else { plan.pinned_bytes.min(packed) };
        // A process does not see the new states of others within a superstep.
        let parts = plan.items(extent) * self.cluster.map_or(1, |cluster| cluster.size.workers);
        let steps = match needs.settles && parts > 1 {
            true => {
                let with = |(of_run, of_part): (f64, f64)| of_run + of_part * parts as f64;
                Steps::about(with(SETTLING_SUPERSTEPS).ceil() as u64, with(SETTLING_PASSES))
            }
            false => steps,
        };
        let in_memory = gather::GatherPlan::in_memory_bytes(needs, extent, workers);
        Ok(Forecast {
            in_memory_bytes: in_memory.max(minimum),
            memory_bytes: plan.likely_bytes(needs, extent, workers),
            result_bytes: if plan.resident { states } else { 0 },
            scratch_bytes: scratch,
            read_once_bytes: pinned,
            read_bytes: ((packed - pinned) as f64 * in_shards) as u64 + scratch,
            written_bytes: if plan.resident { 0 } else { states },
            traffic_bytes: spilled
                + match self.cluster {
                    None => traffic(busiest),
                    Some(cluster) => {
                        cluster.of_machine(self.workers, traffic(busiest), traffic(whole))
                    }
                },
            exchange: exchange.map(|exchange| exchange.in_memory(*shared)),
            // With states on disk, the number of supersteps depends on the order of hubs.
            timed: plan.resident || !needs.settles || parts == 1,
            ..self.empty(minimum, steps)
        })
    }

    /// The forecast of `passes` scans with arrays of the given bytes during and after the scans;
    /// `result_bytes` of them stay.
    pub fn forecast_scans(
        &self,
        (scanning, after): (u64, u64),
        result_bytes: u64,
        passes: u64,
    ) -> Forecast {
        let Self { extent, workers, .. } = *self;
        let arrays = scanning.max(after);
        let minimum = arrays + Scan::minimum_bytes(extent, workers);
        let spare = self.limit.max(minimum) - arrays;
        let pinned =
            spare.saturating_sub(Scan::minimum_bytes(extent, workers)).min(extent.packed());
        let scan = Scan::likely_bytes(extent, spare, workers);
        Forecast {
            memory_bytes: after.max(scanning + scan),
            result_bytes,
            read_once_bytes: pinned,
            read_bytes: extent.packed() - pinned,
            traffic_bytes: SCAN_TRAFFIC * extent.edges(),
            ..self.empty(minimum, Steps { passes: passes as f64, ..Steps::exactly(1) })
        }
    }

    /// The forecast of a run that is not over shards or lists, without bytes moved and time. The
    /// four numbers are bytes: smallest budget, memory, result and scratch files.
    pub fn forecast_other(
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

    /// The budget, raised to the smallest that works.
    fn budget(&self, minimum: u64) -> std::sync::Arc<Budget> {
        Budget::new(self.limit.max(minimum), 0)
    }

    /// The cost of building a missing index.
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

    /// The smallest budget for a run that needs `minimum` bytes, including the building of a
    /// missing index before it.
    fn with_index(&self, minimum: u64) -> u64 {
        minimum.max(self.index().map_or(0, |index| index.minimum_bytes))
    }

    /// A forecast of nothing but the building of a missing index.
    fn empty(&self, minimum: u64, steps: Steps) -> Forecast {
        let index = self.index();
        let minimum = minimum.max(index.map_or(0, |index| index.minimum_bytes));
        Forecast {
            minimum_bytes: minimum,
            in_memory_bytes: minimum,
            memory_bytes: 0,
            result_bytes: 0,
            scratch_bytes: 0,
            index,
            read_once_bytes: 0,
            read_bytes: 0,
            written_bytes: 0,
            traffic_bytes: 0,
            exchange: None,
            steps,
            moves: true,
            timed: true,
        }
    }
}

impl Forecast {
    /// The peak of memory, in bytes beyond those of the process: of the run, or of building an
    /// index before it.
    pub fn peak_bytes(&self) -> u64 {
        self.memory_bytes.max(self.index.map_or(0, |index| index.memory_bytes))
    }

    /// The peak of disk, in bytes beyond the existing graph; a new index stays.
    pub fn disk_bytes(&self) -> u64 {
        let index = self.index.map_or(0, |index| index.graph_bytes);
        index + self.scratch_bytes.max(self.index.map_or(0, |index| index.temporary_bytes))
    }

    /// Seconds of a superstep over all edges: the longer of moving its bytes and doing its work,
    /// and those of the exchange between workers.
    pub fn seconds_of_pass(&self, at: Bandwidths) -> f64 {
        let disk = at.disk / self.readers();
        let moved = (self.read_bytes as f64 + self.written_bytes as f64) / disk;
        let work = moved.max(self.traffic_bytes as f64 / at.memory);
        work + self.exchange.map_or(0.0, |exchange| exchange.seconds(at.network))
    }

    /// Seconds in total.
    pub fn seconds(&self, at: Bandwidths) -> f64 {
        let index = self.index.map_or(0.0, |index| index.seconds(at.memory, at.disk));
        let run = match self.steps.supersteps {
            0 => 0.0,
            _ => self.readers() * self.read_once_bytes as f64 / at.disk,
        };
        // Supersteps over few edges exchange little, but all processes wait for one another.
        let few = (self.steps.supersteps as f64 - self.steps.passes).max(0.0);
        let others = self.exchange.map_or(0.0, |exchange| {
            ExchangeForecast::START_SECONDS + few * exchange.idle_seconds()
        });
        let edges = self.read_bytes.saturating_sub(self.written_bytes) as f64;
        let sparse = few * SPARSE_READS * self.readers() * edges / at.disk;
        index + run + others + sparse + self.steps.passes * self.seconds_of_pass(at)
    }

    /// The processes that read from one disk.
    fn readers(&self) -> f64 {
        self.exchange.map_or(1.0, |exchange| exchange.on_a_machine as f64)
    }
}
