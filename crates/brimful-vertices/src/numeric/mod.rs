//! Numeric programs of the disk path on stores of vertices.
//!
//! Any [`brimful_engine::Program`] runs here on every store, with the answer of [`brimful_engine::run()`]: the same numbers where signals
//! are combined by min, max or in integers, sums within 1e-9. Vertices are the ranks of the graph's internal order.
//!
//! - `attributes`: what a graph knows of its vertices beside their edges.
//! - `parts`: what vertices are made of; `program`: a numeric program as a [`crate::VertexProgram`].
//! - Here: the first states, the superstep loop with aggregates and rounds, and the result.

mod attributes;
mod parts;
mod program;

use std::time::{Duration, Instant};

use brimful_engine::run::moved;
use brimful_engine::stats::Durations;
use brimful_engine::{Globals, Isolated, Output, Program, Reason, RunOptions};
use brimful_graph::{Graph, Index, import};
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Moved, Reservation, Resources};

use crate::cache::Choice;
use crate::error::{Error, Result};
use crate::execution::{Execution, ExecutionOptions, Limits, Lists, Loading, Mode, Stats};
use crate::from_graph::{
    EdgeData, Part, StoreOf, StoreOptions, Tagged, by_external_id, check_weights, load, way,
};
use crate::numeric::attributes::Attributes;
use crate::numeric::parts::{Cell, Plain};
use crate::numeric::program::Numeric;
use crate::open::Schemes;
use crate::program::SIGNAL_THRESHOLD;
use crate::serializer::named;
use crate::vertex::{Edges, Vertex};

/// How to run a numeric program on a store.
pub struct NumericOptions<'s> {
    /// The store, by its URL.
    pub store: &'s str,
    /// The stores that there are.
    pub schemes: &'s Schemes,
    /// How it writes vertices, by name (see [`named()`]); `None`: `native`. Live vertices are not written.
    pub serializer: Option<&'s str>,
    /// A cache over it.
    pub cache: Option<Choice>,
    /// Partitions; `None`: as many as workers, or as the store can have.
    pub partitions: Option<usize>,
    /// With or without supersteps.
    pub mode: Mode,
    /// Where the lists are.
    pub lists: Lists,
    /// Limits, thresholds and weights, as on the disk path; without supersteps their number is no limit.
    pub run: RunOptions,
}

/// A vertex of `P`.
type VertexOf<P, E> = Vertex<u64, Cell<<P as Program>::State>, E, Plain<brimful_engine::SumOf<P>>>;

/// Runs `program` on `graph` until it converges or a limit is reached. The states of all vertices come back in memory.
///
/// # Errors
/// [`Error::Usage`] for what the program, the graph or the store cannot do: weights where there are none, no supersteps where the program
/// needs them; the budget's; those of the store; [`Error::Program`] with the external id of the vertex.
pub fn run<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<(Output<P>, Stats)> {
    let is_weighted = options.run.weighted;
    check_weights(graph, is_weighted)?;
    if options.serializer.is_some() && !options.schemes.keeps_records(options.store)? {
        return Err(Error::Usage(format!(
            "the store {:?} keeps live vertices, which no serializer writes; leave the serializer out",
            options.store
        )));
    }
    options.run.check::<P>()?;
    if options.run.checkpoints.is_some() {
        return Err(Error::Usage("there are no checkpoints of runs on stores of vertices".into()));
    }
    if program.batched().is_some() {
        return Err(Error::Usage(
            "a program that takes batches is for shards, not for stores of vertices".into(),
        ));
    }
    let is_full = P::MODE == brimful_engine::Mode::Full;
    if matches!(options.mode, Mode::Asynchronous(_)) && (!P::ASYNCHRONOUS || is_full) {
        return Err(Error::Usage(
            "this program counts on supersteps: without them its result would be another; run it synchronously"
                .into(),
        ));
    }
    // An undirected graph is its own reverse: once is enough.
    let is_tagged = graph.description().directed && program.indexes().len() > 1;
    // Each kind of edge is a program more to compile: one with weights says its way too.
    let done = match (is_weighted, is_tagged) {
        (false, false) => Run::<P, ()>::new(program, graph, options, resources).and_then(Run::run),
        (false, true) => Run::<P, u8>::new(program, graph, options, resources).and_then(Run::run),
        (true, _) => Run::<P, Tagged>::new(program, graph, options, resources).and_then(Run::run),
    };
    done.map_err(|error| by_external_id(error, graph))
}

struct Run<'r, P: Program, E: EdgeData> {
    program: &'r P,
    graph: &'r Graph,
    options: &'r NumericOptions<'r>,
    resources: &'r Resources,
    execution: Execution<'r, Numeric<'r, P, E>, StoreOf<VertexOf<P, E>>>,
    durations: Durations,
    begin: Instant,
    loaded: Instant,
    index_seconds: f64,
    moved_before: Moved,
    #[expect(dead_code, reason = "holds the memory of the result")]
    result: Reservation,
}

/// Vertices in the store: those without edges too, if they take part in every superstep.
fn stored<P: Program>(graph: &Graph) -> u64 {
    if P::MODE == brimful_engine::Mode::Full { graph.vertices() } else { graph.connected() }
}

impl<'r, P: Program, E: EdgeData> Run<'r, P, E> {
    /// Loads the graph.
    fn new(
        program: &'r P,
        graph: &'r Graph,
        options: &'r NumericOptions<'r>,
        resources: &'r Resources,
    ) -> Result<Self> {
        let indexes = program.indexes();
        let mut index_seconds = 0.0;
        if indexes.iter().any(|index| graph.shards(*index).is_none()) {
            index_seconds = import::build_reverse(graph, resources)?;
        }
        let (begin, moved_before) = (Instant::now(), moved(graph, resources));
        let count = stored::<P>(graph);
        let result = (graph.connected() as usize * size_of::<P::State>()) as u64;
        let result = resources.budget.reserve(result, "for the result")?;
        let threshold = options.run.signal_threshold.unwrap_or(SIGNAL_THRESHOLD);
        let mut numeric = Numeric::new(program, graph.vertices(), resources.workers(), threshold);
        numeric.is_weighted = options.run.weighted;
        numeric.usual_way = indexes.iter().fold(0, |all, index| all | way(*index));
        let mut attributes = Attributes::new::<P>(graph, options.run.weighted)?;

        let once = if graph.description().directed { indexes } else { &[Index::In] };
        let part = Part { graph, indexes: once, vertices: count, is_weighted: options.run.weighted };
        let NumericOptions { store, schemes, cache, partitions, .. } = *options;
        let stores = StoreOptions { store, schemes, cache, partitions };
        let lists = ExecutionOptions {
            signal_threshold: options.run.signal_threshold,
            collect_threshold: options.run.collect_threshold,
            lists: options.lists,
            scratch: options.run.scratch.clone(),
        };
        let serializer = || named(options.serializer.unwrap_or("native"));
        let mut add = |loading: &mut Loading<'r, Numeric<'r, P, E>, _>, id, edges| {
            let vertex = first(loading.program(), attributes.of(graph, id)?, id, edges);
            loading.add_vertex(vertex)
        };
        let mut execution = load(numeric, part, (&stores, &lists), &serializer, resources, &mut add)?;
        execution.program_mut().end_superstep();
        let loaded = Instant::now();
        let durations = Durations::default();
        Ok(Self {
            program,
            graph,
            options,
            resources,
            execution,
            durations,
            begin,
            loaded,
            index_seconds,
            moved_before,
            result,
        })
    }

    fn run(mut self) -> Result<(Output<P>, Stats)> {
        let reason = match self.options.mode {
            Mode::Synchronous => self.supersteps()?,
            Mode::Asynchronous(_) => self.rounds()?,
        };
        let seconds = self.begin.elapsed().as_secs_f64();
        self.finish(reason, seconds)
    }

    /// As the engine's loop.
    fn supersteps(&mut self) -> Result<Reason> {
        let run = &self.options.run;
        let mut begin = Instant::now();
        while self.globals().superstep < run.max_supersteps {
            let seconds = (begin - self.begin).as_secs_f64();
            if self.globals().superstep > 0 && run.max_seconds.is_some_and(|most| seconds >= most) {
                return Ok(Reason::MaxSeconds);
            }
            self.execution.program_mut().begin_superstep();
            let mut is_due = self.execution.superstep()?;
            let numeric = self.execution.program_mut();
            numeric.end_superstep();
            numeric.globals.superstep += 1;
            let end = Instant::now();
            self.durations.push((end - begin).as_secs_f64());
            begin = end;
            if self.program.converged(self.globals()) {
                return Ok(Reason::Converged);
            }
            while !is_due {
                if !self.program.another_round(self.globals()) {
                    return Ok(Reason::NoChange);
                }
                is_due = self.begin_round()?;
            }
        }
        Ok(Reason::MaxSupersteps)
    }

    /// Without supersteps: until nothing is left to do in any round.
    fn rounds(&mut self) -> Result<Reason> {
        let most = self.options.run.max_seconds;
        loop {
            self.execution.program_mut().begin_superstep();
            let left = most.map(|most| (most - self.begin.elapsed().as_secs_f64()).max(0.0));
            let limits =
                Limits { max_seconds: left, check_every: Duration::from_secs(3600), ..Limits::default() };
            let reason = self.execution.run(self.options.mode, &limits, |_| Ok(false))?;
            self.execution.program_mut().end_superstep();
            if reason != Reason::NoChange {
                return Ok(reason);
            }
            let mut is_due = false;
            while !is_due {
                if !self.program.another_round(self.globals()) {
                    return Ok(Reason::NoChange);
                }
                is_due = self.begin_round()?;
            }
        }
    }

    fn globals(&self) -> &Globals<P::Aggregate> {
        &self.execution.program().globals
    }

    /// Every vertex begins another round; true if one of them has something to signal.
    fn begin_round(&mut self) -> Result<bool> {
        self.execution.program_mut().globals.round += 1;
        let mut is_due = false;
        self.execution.for_each_by(|numeric, vertex| {
            let Cell { state, strength } = vertex.state;
            let own = numeric.vertex(*vertex.id(), strength);
            let first = self.program.begin_round(own, state, &numeric.globals);
            numeric.add(self.program.aggregate(own, first, first));
            let (state, signalled) = begin(numeric, own, first, strength);
            is_due |= signalled.is_none();
            (vertex.state, vertex.signalled) = (state, signalled);
            Ok(())
        })?;
        self.execution.restart();
        self.execution.program_mut().end_superstep();
        Ok(is_due)
    }

    /// The states, and what the run did.
    fn finish(mut self, reason: Reason, seconds: f64) -> Result<(Output<P>, Stats)> {
        let connected = self.graph.connected() as usize;
        let mut states: HugeArray<P::State> = HugeArray::zeroed(connected);
        let mut isolated = Isolated::Initial;
        self.execution.for_each(&mut |vertex| {
            match states.get_mut(*vertex.id() as usize) {
                Some(place) => *place = vertex.state.state,
                None => isolated = Isolated::Same(vertex.state.state),
            }
            Ok(())
        })?;
        let execution = self.execution.stats()?;
        let loading = (self.loaded - self.begin).as_secs_f64();
        let stats = brimful_engine::Stats {
            supersteps: self.globals().superstep,
            reason,
            durations: self.durations,
            sparse_supersteps: 0,
            seconds,
            index_seconds: self.index_seconds,
            signals: execution.signals_sent,
            edges_visited: execution.signals_sent,
            moved: moved(self.graph, self.resources) - self.moved_before,
            phases: vec![("load", loading), ("supersteps", seconds - loading)],
            threads: self.resources.workers(),
            resumed_from: None,
        };
        let aggregate = self.execution.program().globals.aggregate;
        let window = 1 << self.graph.description().interval_bits;
        Ok((Output { states: ScratchArray::of(states, window), isolated, aggregate, stats }, execution))
    }
}

/// State and last signalled state of a vertex that begins with `first`: due, unless it has nothing to say.
fn begin<P: Program, E: EdgeData>(
    numeric: &Numeric<'_, P, E>,
    own: brimful_engine::Vertex,
    first: P::State,
    strength: f64,
) -> (Cell<P::State>, Option<Cell<P::State>>) {
    if P::MODE == brimful_engine::Mode::Full || !numeric.is_silent(own, first) {
        return (Cell { state: first, strength }, None);
    }
    let said = Cell { state: numeric.program.signalled(first), strength };
    (said, Some(said))
}

/// Vertex `id` at the start.
fn first<P: Program, E: EdgeData>(
    numeric: &Numeric<'_, P, E>,
    (strength, external): (f64, u64),
    id: u64,
    edges: Edges<u64, E>,
) -> VertexOf<P, E> {
    let own = numeric.vertex(id, strength);
    let first = numeric.program.initial(brimful_engine::Vertex { external, ..own }, &numeric.globals);
    let (state, signalled) = begin(numeric, own, first, strength);
    numeric.add(numeric.program.aggregate(own, first, first));
    let mut vertex = Vertex::new(id, state, edges);
    vertex.signalled = signalled;
    vertex
}
