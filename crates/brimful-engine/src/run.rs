//! A run over shards.
//!
//! In a superstep, the signal of every source, made at the end of the last superstep, is combined
//! into the sums of its targets in ascending order of (window, source). Then every vertex collects,
//! and makes its next signal, interval by interval. Aggregates are summed within an interval in id
//! order, then over intervals in order. Invariant: states and aggregates are the same bits at any
//! budget and number of threads.

pub(crate) mod asynchronous;
mod checkpoint;
mod context;
mod dense;
mod distributed;
mod ordered;
mod prioritized;
mod sparse;
pub(crate) mod unpacked;
mod windowed;

use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Content, Resources};

use crate::error::{Error, Result};
use crate::exchange::division::Division;
use crate::plan::extent::{Extent, present};
use crate::plan::forecast::Setting;
use crate::plan::memory::PURPOSE;
use crate::plan::needs::Needs;
use crate::plan::options::{RunOptions, TraversalMode};
use crate::result::stats::{Durations, Stats, Swept, Traversal};
use crate::scratch::in_scratch;
use crate::supersteps::{Supersteps, prepare, run_to_end};
use crate::traverse::frontier::Frontier;
use crate::traverse::sparse::Sparse;
use crate::traverse::sums::SpilledSums;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::collect::Degrees;
use crate::vertex::combiner::Combiner;
use crate::vertex::isolated::Isolated;
use crate::vertex::program::{Globals, Mode, Program, SignalOf, SumOf};
use crate::vertex::turn::Turn;
use asynchronous::Asynchronous;
pub use checkpoint::identity;
use context::RunContext;
use unpacked::Unpacked;

/// The states at the end of a run of `P`, and its figures.
#[derive(Debug)]
pub struct Output<P: Program> {
    /// The states of vertices with edges, in internal order, [`Program::state_len`] values each.
    pub states: ScratchArray<P::State>,
    /// The states of vertices without edges.
    pub isolated: Isolated<P::State>,
    /// The aggregate over the last superstep.
    pub aggregate: P::Aggregate,
    /// Figures of the run.
    pub stats: Stats,
}

/// Runs `program` on `graph` until it converges or `max_supersteps` are done.
///
/// A missing index is built first, and kept.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work if the budget is too small; [`Error::Usage`]
/// for options that the program or the graph does not support; corruption and I/O errors when they
/// occur; [`brimful_store::Error::Interrupted`] after a cancellation. In one of several processes
/// [`Error::ProcessDone`] at the end, unless it is the driver.
pub fn run<P: Program>(
    program: &P,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<Output<P>> {
    options.check_weights(graph)?;
    options.check::<P>()?;
    // The smallest budget of all stages, including a missing index, is checked before the first.
    let (needs, extent) = (
        Needs::of(program).distributed(options.communicator.is_some()),
        Extent::of(graph, program.indexes(), options.weighted),
    );
    let setting = Setting::new(&extent, resources);
    resources.budget.require(setting.min_of_program(&needs, options.asynchronous), PURPOSE)?;
    let identity = identity(program, options);
    let prepared = prepare(graph, program.indexes(), options, &identity, resources)?;
    let shards: Vec<Arc<ShardFile>> =
        present(graph, program.indexes()).into_iter().map(Arc::clone).collect();
    let (run, stats) = run_to_end(graph, options, resources, prepared, || {
        let context = RunContext::new(program, graph, options, resources, shards)?;
        let mut run = ShardRun::new(context)?;
        run.load_degrees()?;
        Ok(run)
    })?;
    let ShardRun { states, isolated, globals, .. } = run;
    Ok(Output { states, isolated, aggregate: globals.aggregate, stats })
}

/// The state of a run between two supersteps.
struct ShardRun<'a, P: Program> {
    context: RunContext<'a, P>,
    states: ScratchArray<P::State>,
    /// The signals that this superstep makes; with a source window, the signals of all vertices.
    next: ScratchArray<SignalOf<P>>,
    /// The signals of all vertices, or of a window of sources.
    signals: HugeArray<SignalOf<P>>,
    /// The vertices that signal next; `None`: all.
    frontier: Option<Frontier>,
    /// For each interval, whether all of its vertices are finished.
    finished: Vec<bool>,
    /// The states of vertices without edges.
    isolated: Isolated<P::State>,
    globals: Globals<P::Aggregate>,
    asynchronous: Option<Asynchronous>,
    swept: Swept,
    /// The counts at the last exchange with other processes.
    swept_before: Swept,
    /// Edges that the last superstep visited.
    last_visits: u64,
    durations: Durations,
    sparse: Option<Sparse<SumOf<P>>>,
    unpacked: Option<Unpacked<SumOf<P>>>,
    /// Sums between source windows, if signals are in memory one window at a time.
    spilled_sums: Option<SpilledSums>,
}

/// The traversals that a program can take. The compiler leaves out calls behind a false constant,
/// but not behind a comparison of modes.
impl<P: Program> ShardRun<'_, P> {
    const HAS_FRONTIER: bool = !matches!(P::MODE, Mode::Full);
    const HAS_SWEEPS: bool = P::ASYNCHRONOUS && !matches!(P::MODE, Mode::Delta);
    const UNPACKS: bool = Self::HAS_FRONTIER && P::Combiner::COMMUTES && !P::ORDERED && !P::BATCHED;
}

impl<'a, P: Program> ShardRun<'a, P> {
    fn new(context: RunContext<'a, P>) -> Result<Self> {
        let RunContext {
            graph, options, plan, resources, files, schedule, owned, division, ..
        } = &context;
        let vertices = graph.connected() as usize;
        let spilled_sums = match plan.source_window {
            Some(_) => Some(in_scratch(graph, &|folder| {
                SpilledSums::new(schedule, folder, &resources.job)
            })?),
            None => None,
        };
        let may_be_sparse = options.traversal != TraversalMode::Dense
            && !division.as_ref().is_some_and(Division::is_driver);
        let load = |limits| {
            let (intervals, workers) = (schedule.intervals, resources.workers());
            Sparse::load(files, intervals, owned, vertices as u64, limits, workers)
        };
        let sparse = plan.sparse.filter(|_| may_be_sparse).map(load).transpose()?;
        let interval_bits = graph.description().interval_bits;
        Ok(Self {
            states: context
                .array(context.program.state_len(), plan.states_resident)?
                .counted_as(Content::States),
            next: context.array(1, plan.next_resident)?.counted_as(Content::Signals),
            signals: HugeArray::zeroed(
                plan.source_window.map_or(vertices, |window| window.min(vertices)),
            ),
            frontier: None,
            finished: vec![false; schedule.intervals],
            isolated: Isolated::Initial,
            globals: Globals {
                vertices: graph.vertices(),
                superstep: 0,
                round: 0,
                aggregate: P::Aggregate::NOTHING,
            },
            asynchronous: plan
                .asynchronous
                .then(|| Asynchronous::new(files, schedule, vertices, interval_bits)),
            swept: Swept::default(),
            swept_before: Swept::default(),
            last_visits: 0,
            durations: Durations::default(),
            sparse,
            unpacked: None,
            spilled_sums,
            context,
        })
    }

    fn load_degrees(&mut self) -> Result<()> {
        if self.context.program.needs_degrees() {
            self.context.degrees = self.context.read_degrees()?;
            if matches!(self.context.degrees, Degrees::OnDisk) {
                // Sparse supersteps and unpacked edges need the degree of any vertex at any time.
                (self.sparse, self.context.plan.unpacked) = (None, false);
            }
        }
        Ok(())
    }
}

impl<P: Program> Supersteps for ShardRun<'_, P> {
    type Error = Error;

    fn done(&mut self) -> u64 {
        self.globals.superstep
    }

    fn swept(&mut self) -> Swept {
        self.swept
    }

    fn durations(&mut self) -> &mut Durations {
        &mut self.durations
    }

    fn next_superstep(&mut self) -> Result<bool> {
        self.context.program.next_superstep(&mut self.globals)
    }

    fn superstep(&mut self) -> Result<(Traversal, u64)> {
        // Without a frontier every vertex takes part, those without edges too.
        let due = self.frontier.as_ref().map_or(self.globals.vertices, Frontier::count);
        let edges: u64 = self.context.files.iter().map(|file| file.shards().edges()).sum();
        let visits_before = self.swept.edges;
        let aggregate = self.globals.aggregate;
        let traversal = if P::ORDERED && self.prioritized_superstep(edges)? {
            Traversal::PriorityQueue
        } else if P::ORDERED && self.ordered_superstep(edges)? {
            Traversal::Ordered
        } else if Self::HAS_SWEEPS
            && let Some(traversal) = self.asynchronous_superstep(edges)?
        {
            traversal
        } else if self.windowed_superstep(edges)? {
            Traversal::Windows
        } else if Self::UNPACKS && self.unpacked_superstep(edges)? {
            Traversal::Unpacked
        } else if Self::HAS_FRONTIER && self.sparse_superstep(edges)? {
            Traversal::Sparse
        } else {
            if let Some(sparse) = &self.sparse {
                sparse.release();
            }
            self.dense_superstep(edges)?;
            Traversal::Dense
        };
        self.last_visits = self.swept.edges - visits_before;
        // A sweep of the asynchronous mode does not count as a superstep.
        if self.asynchronous.is_none() && self.context.program.was_idle(&self.globals) {
            self.globals.superstep -= 1;
            self.globals.aggregate = aggregate;
        }
        let is_divided = self.context.division.is_some();
        Ok((if is_divided { Traversal::Cluster } else { traversal }, due))
    }

    fn converged(&mut self) -> bool {
        self.context.program.converged(&self.globals)
    }

    fn begins_with_superstep(&mut self) -> bool {
        self.context.program.begins_with_superstep()
    }

    /// Begins rounds until a vertex signals. False if none does and there is no other round.
    fn advance_rounds(&mut self) -> Result<bool> {
        while self.frontier.as_ref().is_some_and(|frontier| frontier.count() == 0) {
            if !self.context.program.another_round(&self.globals) {
                return Ok(false);
            }
            self.globals.round += 1;
            self.context
                .resources
                .job
                .begin(format!("round {}", self.globals.round + 1), self.context.graph.intervals());
            self.pass(Turn::Round)?;
        }
        Ok(true)
    }
}
