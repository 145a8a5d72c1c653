//! The context of a run: its constants, and the sweeps and collectors that supersteps make from
//! them.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use brimful_graph::Graph;
use brimful_graph::codec::Unpack;
use brimful_graph::read::shards::ShardFile;
use brimful_store::read_ahead::ReadPool;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Reservation, Resources};
use bytemuck::Pod;

use crate::error::Result;
use crate::exchange::division::Division;
use crate::plan::extent::Extent;
use crate::plan::memory::{PURPOSE, Plan};
use crate::plan::needs::Needs;
use crate::plan::options::RunOptions;
use crate::result::stats::Swept;
use crate::scratch::vertex_array;
use crate::traverse::frontier::Frontier;
use crate::traverse::residency::PinnedIndex;
use crate::traverse::schedule::Schedule;
use crate::traverse::sums::FreeSums;
use crate::traverse::sweep::{Activity, Sources, Sweep};
use crate::vertex::collect::{CollectBuffers, Collector, Degrees};
use crate::vertex::program::{Globals, Mode, Program, SignalOf, SumOf};
use crate::vertex::turn::{Partial, Thresholds, Turn};

/// Degrees read at once.
const DEGREES_AT_ONCE: usize = 1 << 16;

/// The constants of a run.
pub(super) struct RunContext<'a, P: Program> {
    pub(super) program: &'a P,
    pub(super) graph: &'a Graph,
    pub(super) options: &'a RunOptions,
    pub(super) resources: &'a Resources,
    pub(super) plan: Plan,
    #[expect(dead_code, reason = "holds the memory of the whole run")]
    memory: Reservation,
    pub(super) files: Vec<PinnedIndex>,
    pub(super) schedule: Schedule,
    /// The intervals of this process; all, unless several processes make the run.
    pub(super) owned: Range<usize>,
    /// The division among several processes.
    pub(super) division: Option<Division<'a>>,
    read_pool: ReadPool,
    /// `Degrees::Unused` until they are loaded.
    pub(super) degrees: Degrees,
    pub(super) thresholds: Thresholds,
    /// Unused buffers of sums.
    pub(super) free: FreeSums<SumOf<P>>,
}

/// The partial results of collecting, by interval of this process.
pub(super) type Partials<A> = Vec<Mutex<Partial<A>>>;

impl<'a, P: Program> RunContext<'a, P> {
    pub(super) fn new(
        program: &'a P,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &'a Resources,
        shards: Vec<Arc<ShardFile>>,
    ) -> Result<Self> {
        let needs = Needs::of(program);
        let constants = Constants::new(needs, graph, options, resources, shards)?;
        let interval = 1 << graph.description().interval_bits;
        let Constants { plan, memory, files, schedule, owned, division, read_pool } = constants;
        Ok(Self {
            program,
            graph,
            options,
            resources,
            plan,
            memory,
            files,
            schedule,
            owned,
            division,
            read_pool,
            degrees: Degrees::Unused,
            thresholds: Thresholds::new(options.signal_threshold, options.collect_threshold),
            free: FreeSums::new(needs.sum_targets(graph.connected(), interval) as usize),
        })
    }

    /// Vertices of an interval; the last one may have fewer.
    pub(super) fn window(&self) -> usize {
        1 << self.graph.description().interval_bits
    }

    /// An array of `len` values per vertex with edges.
    pub(super) fn array<T: Pod + Send>(
        &self,
        len: usize,
        resident: bool,
    ) -> Result<ScratchArray<T>> {
        vertex_array(len, resident, self.graph, self.resources)
    }

    pub(super) fn read_degrees(&self) -> Result<Degrees> {
        match self.plan.degrees_resident {
            true => resident_degrees(self.graph, self.options.weighted),
            false => Ok(Degrees::OnDisk),
        }
    }

    /// Shows progress in every 64th superstep, because one may take microseconds; `superstep` are
    /// done.
    pub(super) fn show_sometimes(&self, superstep: u64, edges: u64) {
        if superstep.is_multiple_of(64) {
            self.resources.job.begin(format!("superstep {}", superstep + 1), edges);
        }
    }

    /// For each file, whether the coming superstep walks it.
    pub(super) fn walked(&self, globals: &Globals<P::Aggregate>) -> Vec<bool> {
        let indexes = self.program.indexes();
        let walks = |index| self.program.walks(index, globals);
        if self.files.len() < indexes.len() {
            // An undirected graph has one file for both directions.
            return vec![indexes.iter().any(|index| walks(*index)); self.files.len()];
        }
        indexes.iter().map(|index| walks(*index)).collect()
    }

    /// A sweep of the signals of `sources` over the whole schedule.
    pub(super) fn sweep<'s>(
        &'s self,
        sources: Sources<'s, SignalOf<P>>,
        activity: Activity<'s>,
        walked: &'s [bool],
        finished: &'s [bool],
    ) -> Sweep<'s, P> {
        Sweep {
            program: self.program,
            walked,
            files: &self.files,
            schedule: &self.schedule,
            sources,
            activity,
            finished,
            items: None,
            free: &self.free,
            weighted: self.options.weighted,
            interval_bits: self.graph.description().interval_bits,
            unpack: Unpack::fastest(),
            reads: self.plan.reads,
            read_pool: &self.read_pool,
            resources: self.resources,
        }
    }

    /// A collector that writes to `states` and `next`, and marks signalling vertices in `activity`.
    pub(super) fn collector<'s>(
        &'s self,
        (states, next): (&'s mut ScratchArray<P::State>, &'s mut ScratchArray<SignalOf<P>>),
        activity: Option<&'s [AtomicBool]>,
        finished: &'s [bool],
        globals: Globals<P::Aggregate>,
    ) -> Collector<'s, P> {
        Collector {
            program: self.program,
            graph: self.graph,
            weighted: self.options.weighted,
            degrees: &self.degrees,
            states: states.windows(),
            next: next.windows(),
            activity,
            scored: false,
            finished,
            globals,
            thresholds: self.thresholds,
            offsets: None,
            window: self.window(),
        }
    }

    /// A map for the next frontier, if the mode has one.
    pub(super) fn empty_activity(&self) -> Option<Vec<AtomicBool>> {
        (P::MODE != Mode::Full).then(|| Frontier::empty_map(self.graph.connected() as usize))
    }

    /// Empty partial results of every interval of this process.
    pub(super) fn empty_partials(&self) -> Partials<P::Aggregate> {
        (0..self.owned.len()).map(|_| Mutex::default()).collect()
    }

    /// The scratch buffers of each worker.
    pub(super) fn buffers(&self) -> Vec<Mutex<CollectBuffers<P>>> {
        (0..self.resources.workers()).map(|_| Mutex::default()).collect()
    }

    /// Sweeps, and collects each interval when its sums are complete, into its entry of `partials`.
    pub(super) fn sweep_and_collect(
        &self,
        sweep: &Sweep<'_, P>,
        collector: &Collector<'_, P>,
        buffers: &[Mutex<CollectBuffers<P>>],
        partials: &Partials<P::Aggregate>,
    ) -> Result<Swept> {
        sweep.collect(|worker, interval, sums| {
            let mut buffers = buffers[worker].lock().unwrap_or_else(PoisonError::into_inner);
            let partial = collector.interval(interval, Turn::Collect(sums), &mut buffers)?;
            let at = interval - self.owned.start;
            *partials[at].lock().unwrap_or_else(PoisonError::into_inner) = partial;
            Ok(())
        })
    }
}

/// The constants of a run that do not depend on the type of its program.
struct Constants<'a> {
    plan: Plan,
    memory: Reservation,
    files: Vec<PinnedIndex>,
    schedule: Schedule,
    owned: Range<usize>,
    division: Option<Division<'a>>,
    read_pool: ReadPool,
}

impl<'a> Constants<'a> {
    /// The constants of a program with some needs.
    fn new(
        needs: Needs,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &Resources,
        shards: Vec<Arc<ShardFile>>,
    ) -> Result<Self> {
        let (workers, budget) = (resources.workers(), &resources.budget);
        let borrowed: Vec<&Arc<ShardFile>> = shards.iter().collect();
        let division = options
            .communicator
            .as_ref()
            .map(|communicator| Division::new(communicator, graph, &borrowed));
        let needs = needs.distributed(division.is_some());
        let memory = division.as_ref().map_or(0, |one| one.exchange_bytes(needs.signal));
        let needs = needs.with_exchange(memory);
        let extent = Extent::of_shards(graph, &borrowed, options.weighted);
        let plan = Plan::new(&needs, &extent, options.asynchronous, workers, budget)?;
        plan.log(&needs);
        let memory = budget.reserve(plan.total_bytes, PURPOSE)?;
        let interval_bits = graph.description().interval_bits;
        let intervals = graph.intervals() as usize;
        if let Some(division) = division.as_ref().filter(|_| plan.exchange_bytes > 0) {
            division.share_memory(needs.signal)?;
        }
        let owned = division.as_ref().map_or(0..intervals, Division::owned);
        let files = PinnedIndex::pin(shards, options.weighted, plan.pinned_bytes, &owned);
        Ok(Self {
            plan,
            memory,
            schedule: Schedule::new(&files, intervals, &owned, interval_bits),
            owned,
            division,
            files,
            read_pool: ReadPool::new(2 * workers.clamp(1, 4))?,
        })
    }
}

/// The degrees of all vertices with edges, or their strengths; on disk if one exceeds 32 bits.
fn resident_degrees(graph: &Graph, weighted: bool) -> Result<Degrees> {
    let vertices = graph.connected() as usize;
    if weighted {
        let mut strengths = vec![0.0; vertices];
        graph.strengths(0, &mut strengths)?;
        return Ok(Degrees::ResidentStrengths(strengths));
    }
    let (mut degrees, mut window) = (vec![0_u32; vertices], Vec::new());
    for (index, part) in degrees.chunks_mut(DEGREES_AT_ONCE).enumerate() {
        window.resize(part.len(), 0);
        graph.degrees((index * DEGREES_AT_ONCE) as u64, &mut window)?;
        for (narrow, &wide) in part.iter_mut().zip(&window) {
            let Ok(degree) = u32::try_from(wide) else {
                return Ok(Degrees::OnDisk);
            };
            *narrow = degree;
        }
    }
    Ok(Degrees::Resident(degrees))
}

/// Takes the partial results out of their locks.
pub(super) fn unlock<A>(partials: Partials<A>) -> impl Iterator<Item = Partial<A>> {
    partials.into_iter().map(|partial| partial.into_inner().unwrap_or_else(PoisonError::into_inner))
}
