//! Numeric programs on stores of vertices.
//!
//! Any [`brimful_engine::Program`] runs here on every store, and computes the result of
//! [`brimful_engine::run()`] on shards: the same numbers if signals are combined by min, max or
//! sums of integers; sums of floats agree within 1e-9. Vertices are ranks in the graph's internal
//! order.
//!
//! - `checks`: refused options and budgets; [`forecast`]: the forecast of a run.
//! - `erased`: a program whose states are words; `program`: a numeric program as a
//!   [`crate::VertexProgram`]; `parts`: the parts of vertices; `sizes`: the sizes of vertices for
//!   which code is compiled.
//! - `attributes`: degrees, weights and external ids of vertices; `checkpoint`: checkpoints of a
//!   run; `divided`: runs in several processes.
//! - Here: supersteps and rounds, and the result.

mod attributes;
mod checkpoint;
mod checks;
mod divided;
mod erased;
pub mod forecast;
mod parts;
mod program;
mod sizes;

use std::time::{Duration, Instant};

use brimful_engine::checkpoint::Every;
use brimful_engine::exchange::Communicator;
use brimful_engine::result::stats::{Durations, Swept, Traversal};
use brimful_engine::run::identity;
use brimful_engine::scratch::scratch_array;
use brimful_engine::supersteps::{Supersteps, build_missing, moved, run_supersteps};
use brimful_engine::vertex::program::BATCH;
use brimful_engine::{Output, Program, Reason, RunOptions, Thresholds};
use brimful_graph::{Graph, Index};
use brimful_store::scratch::ScratchArray;
use brimful_store::{Content, Reservation, Resources};
use brimful_vertices::Vertex;
use brimful_vertices::serializer::named;
use bytemuck::Pod;

use crate::error::{Error, Result, element, of_batch};
use crate::from_graph::{
    EdgeData, GraphPart, StoreOf, StoreOptions, by_external_id, load, of_one_run,
};
use crate::numeric::attributes::Attributes;
use crate::numeric::checkpoint::{NumericCheckpoints, PriorNumericRun};
use crate::numeric::checks::{check_options, in_terms_of_the_run};
use crate::numeric::divided::{keep_records, write_record};
use crate::numeric::erased::{Erased, ProgramTraits, Typed};
use crate::numeric::parts::StateWords;
use crate::numeric::program::Numeric;
use crate::numeric::sizes::{BySize, by_size};
use crate::program::{SIGNAL_THRESHOLD, VertexOf};
use crate::{
    Execution, ExecutionOptions, ExecutionStats, ListLocation, Loading, RunLimits, RunMode,
};

/// Options of a numeric program on a store.
pub struct NumericOptions<'s> {
    /// The store.
    pub stores: StoreOptions<'s>,
    /// Name of the serializer (see [`named()`]); `None`: `native`. Live vertices are not
    /// serialized.
    pub serializer: Option<&'s str>,
    /// The mode: with or without supersteps.
    pub mode: RunMode,
    /// The location of the lists.
    pub lists: ListLocation,
    /// Limits, thresholds and weights, as on shards; without supersteps, the limit of supersteps
    /// does not apply.
    pub run: RunOptions,
}

/// Runs `program` on `graph` until it converges or a limit is reached.
///
/// # Errors
/// [`Error::Usage`] for options that the program, the graph or the store does not support, such as
/// weights on a graph without them, or no supersteps for a program that needs them; budget errors;
/// errors of the store; [`Error::Program`] with the external id of the vertex. In one of several
/// processes [`brimful_engine::Error::ProcessDone`] at the end, unless it is the driver.
pub fn run<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<Output<P>> {
    let refused = |error| in_terms_of_the_run(error, program, graph, options, resources);
    run_in(program, graph, options, resources).map_err(refused)
}

/// [`run`], with budget errors that may name the needs of one part only.
fn run_in<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<Output<P>> {
    check_options(program, graph, options, resources)?;
    let (store, _folders) = of_one_run(options.stores.store, options.stores.schemes)?;
    let stores = StoreOptions { store: &store, ..options.stores };
    let options = &NumericOptions { stores, run: options.run.clone(), ..*options };
    let own = identity(program, &options.run);
    let limits = (options.mode, options.run.max_supersteps);
    let open = |chosen| NumericCheckpoints::open(chosen, limits, graph, &own, resources);
    let checkpoints = options.run.checkpoints.as_ref().map(open).transpose()?;
    let index_seconds = build_missing(graph, program.indexes(), resources)?;
    let moved_before = moved(graph, resources);
    let has_result = options.run.communicator.as_ref().is_none_or(Communicator::is_driver);
    let (states, _memory) = match has_result {
        true => room_for_result(program.state_len(), graph, options, resources)?,
        false => (ScratchArray::resident(0, 1), None),
    };
    let (signals, _more_memory) = match P::BATCHED && checkpoints.is_some() {
        true => {
            let (signals, memory) = room_for_result(1, graph, options, resources)?;
            (Some(signals), memory)
        }
        false => (None, None),
    };
    let thresholds = Thresholds::new(options.run.signal_threshold, options.run.collect_threshold);
    let workers = resources.workers();
    let mut typed = Typed::new(program, graph.vertices(), (states, signals), thresholds, workers);
    let facts = typed.facts();
    let driving = Driving { program: &mut typed, graph, options, checkpoints, resources };
    let done = driving.drive(&facts).map_err(|error| by_external_id(error, graph))?;
    let stats = brimful_engine::Stats {
        supersteps: typed.globals.superstep,
        reason: done.reason,
        durations: done.durations,
        seconds: done.seconds,
        index_seconds,
        signals: done.prior.swept.signals + done.stats.signals_sent,
        edges_visited: done.prior.swept.edges + done.stats.edges_visited,
        moved: moved(graph, resources) - moved_before,
        phases: done.phases,
        threads: resources.workers(),
        resumed_from: done.prior.resumed_from,
        store: Some(done.stats),
    };
    if !has_result {
        return Err(Error::Engine(brimful_engine::Error::ProcessDone(Box::new(stats))));
    }
    let Typed { states, isolated, globals, .. } = typed;
    Ok(Output { states, isolated, aggregate: globals.aggregate, stats })
}

/// An array of `len` values for each vertex with edges, and its memory. It is on disk if the
/// vertices are.
fn room_for_result<T: Pod + Send>(
    len: usize,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<(ScratchArray<T>, Option<Reservation>)> {
    let (vertices, window) = (graph.connected() as usize, 1 << graph.description().interval_bits);
    let (len, window) = (vertices * len, window * len);
    if options.stores.schemes.kind(options.stores.store)?.has_share() {
        let states = scratch_array(false, (len, window), graph, resources)?;
        return Ok((states.counted_as(Content::States), None));
    }
    let memory = resources.budget.reserve((len * size_of::<T>()) as u64, "for the result")?;
    Ok((ScratchArray::resident(len, window), Some(memory)))
}

/// A run in progress.
struct Driving<'r> {
    program: &'r mut dyn Erased,
    graph: &'r Graph,
    options: &'r NumericOptions<'r>,
    checkpoints: Option<NumericCheckpoints<'r>>,
    resources: &'r Resources,
}

impl Driving<'_> {
    /// Runs the program. The code for each size of vertices is compiled here, once, and not in
    /// every crate that runs programs.
    fn drive(self, facts: &ProgramTraits) -> Result<Done> {
        // An undirected graph is its own reverse, and has one index.
        let is_tagged = self.graph.description().directed && facts.indexes.len() > 1;
        let is_weighted = self.options.run.weighted;
        by_size((facts.state, facts.sum), (is_weighted, is_tagged), self)
    }
}

impl BySize for Driving<'_> {
    type Out = Done;

    fn call<const S: usize, const M: usize, E: EdgeData>(self) -> Result<Done> {
        let Self { program, graph, options, checkpoints, resources } = self;
        NumericRun::<S, M, E>::new(program, graph, options, checkpoints, resources)?.run()
    }
}

/// The outcome of a run, besides the states.
struct Done {
    reason: Reason,
    durations: Durations,
    prior: PriorNumericRun,
    seconds: f64,
    phases: Vec<(&'static str, f64)>,
    stats: ExecutionStats,
}

/// The cells of vertices at the start, computed for a batch of consecutive vertices at a time.
struct Starts<'g, const S: usize> {
    graph: &'g Graph,
    attributes: Attributes,
    /// Vertices of the run, from 0 on.
    vertices: u64,
    /// The first vertex of the batch.
    first: u64,
    /// The cells of the batch, and whether each vertex is due to signal.
    cells: Vec<(StateWords<S>, bool)>,
}

impl<const S: usize> Starts<'_, S> {
    /// The cell of a vertex, and whether it is due to signal. Vertices come in ascending order.
    fn of<const M: usize, E: EdgeData>(
        &mut self,
        program: &Numeric<'_, S, M, E>,
        id: u64,
    ) -> Result<(StateWords<S>, bool)> {
        if id >= self.first + self.cells.len() as u64 {
            self.first = id;
            let batch = id..self.vertices.min(id + BATCH as u64);
            let attributes =
                batch.map(|id| self.attributes.of(self.graph, id)).collect::<Result<Vec<_>>>()?;
            let started = program.start(id, &attributes);
            self.cells = started.map_err(|failure| of_batch(id, "initialize", failure))?;
        }
        let at = (id - self.first) as usize;
        element(&mut self.cells, at, "first state").copied()
    }
}

struct NumericRun<'r, const S: usize, const M: usize, E: EdgeData> {
    graph: &'r Graph,
    resources: &'r Resources,
    options: &'r NumericOptions<'r>,
    execution: Execution<'r, Numeric<'r, S, M, E>, StoreOf<VertexOf<Numeric<'r, S, M, E>>>>,
    checkpoints: Option<NumericCheckpoints<'r>>,
    prior: PriorNumericRun,
    durations: Durations,
    /// After the last superstep some vertex was due to signal.
    is_due: bool,
    begin: Instant,
    loaded: Instant,
}

impl<'r, const S: usize, const M: usize, E: EdgeData> NumericRun<'r, S, M, E> {
    /// Loads the graph.
    fn new(
        program: &'r mut dyn Erased,
        graph: &'r Graph,
        options: &'r NumericOptions<'r>,
        mut checkpoints: Option<NumericCheckpoints<'r>>,
        resources: &'r Resources,
    ) -> Result<Self> {
        let (facts, begin) = (program.facts(), Instant::now());
        let mut prior = match &mut checkpoints {
            Some(checkpoints) => checkpoints.resume(program)?,
            None => PriorNumericRun::default(),
        };
        if prior.resumed_from.is_none() {
            program.begin()?;
        }
        let threshold = options.run.signal_threshold.unwrap_or(SIGNAL_THRESHOLD);
        let numeric = Numeric::new(program, options.run.weighted, threshold);
        let attributes = Attributes::new(graph, facts, options.run.weighted)?;

        let indexes = if graph.description().directed { facts.indexes } else { &[Index::In] };
        // Vertices without edges are in the store only if they take part in every superstep.
        let count = if facts.is_full { graph.vertices() } else { graph.connected() };
        let part = GraphPart { graph, indexes, vertices: count, is_weighted: options.run.weighted };
        let lists = ExecutionOptions {
            signal_threshold: options.run.signal_threshold,
            collect_threshold: options.run.collect_threshold,
            lists: options.lists,
            scratch_folder: None,
            communicator: options.run.communicator.clone(),
            has_fixed_stores: options.stores.are_fixed()?,
        };
        let serializer = || named(options.serializer.unwrap_or("native"));
        let mut starts = Starts { graph, attributes, vertices: count, first: 0, cells: Vec::new() };
        let mut some_due = false;
        let mut add = |loading: &mut Loading<'r, Numeric<'r, S, M, E>, _>, id, edges| {
            let (cell, is_due) = match checkpoints.as_ref().and_then(|saved| saved.is_due(id)) {
                None => starts.of(loading.program(), id)?,
                Some(is_due) => {
                    let (strength, _) = starts.attributes.of(graph, id)?;
                    (loading.program().resumed(id, strength)?, is_due)
                }
            };
            let mut vertex = Vertex::new(id, cell, edges);
            vertex.signalled = (!is_due).then_some(cell);
            some_due |= is_due;
            loading.add_vertex(vertex)
        };
        let mut execution =
            load(numeric, part, (&options.stores, &lists), &serializer, None, resources, &mut add)?;
        if prior.resumed_from.is_none() {
            some_due = execution.agree_on(some_due)?;
            execution.program_mut().program.end_turn();
        }
        let (loaded, durations) = (Instant::now(), std::mem::take(&mut prior.durations));
        Ok(Self {
            graph,
            resources,
            options,
            execution,
            checkpoints,
            prior,
            durations,
            is_due: some_due,
            begin,
            loaded,
        })
    }

    fn run(mut self) -> Result<Done> {
        let reason = match self.options.mode {
            RunMode::Synchronous => {
                let (graph, resources, options) = (self.graph, self.resources, self.options);
                let is_counted = !self.execution.stats()?.has_uncounted_bytes;
                let (begin, moved) = (self.begin, || is_counted.then(|| moved(graph, resources)));
                run_supersteps(&mut self, &options.run, begin, moved, Self::checkpoint)?
            }
            RunMode::Asynchronous(_) => self.rounds()?,
        };
        self.finish(reason)
    }

    fn program(&mut self) -> &mut dyn Erased {
        self.execution.program_mut().program
    }

    /// Runs without supersteps until no round has any work left.
    fn rounds(&mut self) -> Result<Reason> {
        let most = self.options.run.max_seconds;
        loop {
            self.execution.program_mut().begin_superstep();
            let left = most.map(|most| (most - self.begin.elapsed().as_secs_f64()).max(0.0));
            let check_every =
                match self.options.run.checkpoints.as_ref().and_then(|chosen| chosen.every) {
                    Some(Every::Time(time)) => time,
                    _ => Duration::from_secs(3600),
                };
            let limits = RunLimits { max_seconds: left, check_every, ..RunLimits::default() };
            let (checkpoints, swept) = (&mut self.checkpoints, self.prior.swept);
            let reason = self.execution.run(self.options.mode, &limits, |execution| {
                if let Some(checkpoints) = checkpoints {
                    checkpoints.make_if_due(execution, (swept, &self.durations))?;
                }
                Ok(false)
            })?;
            self.program().end_turn();
            if reason != Reason::NoChange || !self.next_round()? {
                return Ok(reason);
            }
        }
    }

    /// Makes a checkpoint between two supersteps, if it is due.
    fn checkpoint(&mut self) -> Result<bool> {
        let Some(checkpoints) = &mut self.checkpoints else {
            return Ok(false);
        };
        checkpoints.make_if_due(&mut self.execution, (self.prior.swept, &self.durations))
    }

    /// Begins rounds until a vertex is due to signal; false if there are no more rounds.
    fn next_round(&mut self) -> Result<bool> {
        while self.program().another_round() {
            let mut is_due = false;
            self.execution.for_each_by(|numeric, vertex| {
                let begun = numeric.begin_round(vertex);
                is_due |= begun
                    .map_err(|failure| Error::program(vertex.id(), "begin a round", failure))?;
                Ok(())
            })?;
            self.execution.restart();
            let is_due = self.execution.agree_on(is_due)?;
            self.program().end_turn();
            if is_due {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies the states into the program.
    fn finish(mut self, reason: Reason) -> Result<Done> {
        let checkpoints = self.checkpoints.take().map(NumericCheckpoints::finish).transpose()?;
        let seconds = self.begin.elapsed().as_secs_f64();
        if self.options.run.communicator.is_some() {
            self.execution
                .gather(&mut write_record::<Numeric<'r, S, M, E>, S>, &mut keep_records)?;
        } else {
            self.execution.for_each_by(|numeric, vertex| {
                Ok(numeric.program.keep(*vertex.id(), vertex.state.state())?)
            })?;
        }
        let load_seconds = (self.loaded - self.begin).as_secs_f64();
        let supersteps = seconds - load_seconds - checkpoints.unwrap_or(0.0);
        let mut phases = vec![("load", load_seconds), ("supersteps", supersteps)];
        phases.extend(checkpoints.map(|seconds| ("checkpoints", seconds)));
        Ok(Done {
            reason,
            durations: self.durations,
            prior: self.prior,
            seconds,
            phases,
            stats: self.execution.stats()?,
        })
    }
}

impl<const S: usize, const M: usize, E: EdgeData> Supersteps for NumericRun<'_, S, M, E> {
    type Error = Error;

    fn done(&mut self) -> u64 {
        self.program().superstep()
    }

    fn swept(&mut self) -> Swept {
        let mut swept = self.prior.swept;
        swept += self.execution.swept();
        swept
    }

    fn durations(&mut self) -> &mut Durations {
        &mut self.durations
    }

    fn next_superstep(&mut self) -> Result<bool> {
        Ok(self.program().next_superstep()?)
    }

    fn superstep(&mut self) -> Result<(Traversal, u64)> {
        self.execution.program_mut().begin_superstep();
        self.is_due = self.execution.superstep()?;
        self.program().end_superstep();
        Ok((Traversal::Store, self.execution.latest().frontier))
    }

    fn converged(&mut self) -> bool {
        self.program().converged()
    }

    fn begins_with_superstep(&mut self) -> bool {
        self.program().begins_with_superstep()
    }

    fn advance_rounds(&mut self) -> Result<bool> {
        Ok(self.is_due || self.next_round()?)
    }
}
