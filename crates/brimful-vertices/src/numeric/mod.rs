//! Numeric programs of the disk path on stores of vertices.
//!
//! Any [`brimful_engine::Program`] runs here on every store, with the answer of [`brimful_engine::run()`]: the same numbers where signals
//! are combined by min, max or in integers, sums within 1e-9. Vertices are the ranks of the graph's internal order.
//!
//! - `attributes`: what a graph knows of its vertices beside their edges.
//! - `parts`: what vertices are made of; `program`: a numeric program as a [`crate::VertexProgram`]; `graph`: whole
//!   vertices from shards.
//! - Here: loading, the superstep loop with aggregates and rounds, and the result.

mod attributes;
mod graph;
mod parts;
mod program;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brimful_engine::run::moved;
use brimful_engine::stats::Durations;
use brimful_engine::{Globals, Isolated, Output, Program, Reason, RunOptions};
use brimful_graph::{Graph, Index, import};
use brimful_store::huge::HugeArray;
use brimful_store::scratch::ScratchArray;
use brimful_store::{DiskFolder, Moved, Resources};

use crate::cache::Choice;
use crate::error::{Error, Result};
use crate::execution::{Execution, ExecutionOptions, Limits, Lists, Loading, Mode, Stats};
use crate::numeric::attributes::{Attributes, balanced};
use crate::numeric::parts::{Cell, EdgeData, Plain, Tagged};
use crate::numeric::program::{Numeric, way};
use crate::open::{Place, Schemes};
use crate::program::SIGNAL_THRESHOLD;
use crate::serializer::Native;
use crate::store::VertexStore;
use crate::vertex::{Edges, Vertex};

/// How to run a numeric program on a store.
pub struct NumericOptions<'s> {
    /// The store, by its URL.
    pub store: &'s str,
    /// The stores that there are.
    pub schemes: &'s Schemes,
    /// A cache over it.
    pub cache: Option<Choice>,
    /// Bytes of memory for each store that is told beforehand how much it has.
    pub store_bytes: u64,
    /// Partitions; `None`: as many as workers.
    pub partitions: Option<usize>,
    /// With or without supersteps.
    pub mode: Mode,
    /// Where the lists are.
    pub lists: Lists,
    /// Limits, thresholds and weights, as on the disk path; without supersteps their number is no limit.
    pub run: RunOptions,
}

/// The store of a partition.
type StoreOf<P, E> =
    Box<dyn VertexStore<Vertex<u64, Cell<<P as Program>::State>, E, Plain<brimful_engine::SumOf<P>>>>>;

/// Runs `program` on `graph` until it converges or a limit is reached. The states of all vertices come back in memory.
///
/// # Errors
/// [`Error::Usage`] for what the program or the graph cannot do: weights where there are none, no supersteps where the program needs them; the
/// budget's; those of the store.
pub fn run<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Arc<Resources>,
) -> Result<(Output<P>, Stats)> {
    let is_weighted = options.run.weighted;
    if is_weighted && !graph.description().weighted {
        return Err(Error::Usage(format!(
            "{} has no edge weights; import it with a weight column or run without weights",
            graph.path().display()
        )));
    }
    options.run.check::<P>()?;
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
    match (is_weighted, is_tagged) {
        (false, false) => Run::<P, ()>::new(program, graph, options, resources)?.run(),
        (true, false) => Run::<P, f64>::new(program, graph, options, resources)?.run(),
        (false, true) => Run::<P, u8>::new(program, graph, options, resources)?.run(),
        (true, true) => Run::<P, Tagged>::new(program, graph, options, resources)?.run(),
    }
}

struct Run<'r, P: Program, E: EdgeData> {
    program: &'r P,
    graph: &'r Graph,
    options: &'r NumericOptions<'r>,
    resources: &'r Arc<Resources>,
    execution: Execution<'r, Numeric<'r, P, E>, StoreOf<P, E>>,
    durations: Durations,
    begin: Instant,
    loaded: Instant,
    index_seconds: f64,
    moved_before: Moved,
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
        resources: &'r Arc<Resources>,
    ) -> Result<Self> {
        let indexes = program.indexes();
        let mut index_seconds = 0.0;
        if indexes.iter().any(|index| graph.shards(*index).is_none()) {
            index_seconds = import::build_reverse(graph, resources)?;
        }
        let (begin, moved_before) = (Instant::now(), moved(graph, resources));
        let count = stored::<P>(graph);
        let partitions = options.partitions.unwrap_or(resources.workers()).max(1);
        let place = |partition| Place {
            partition,
            resources: Arc::clone(resources),
            memory_bytes: options.store_bytes,
        };
        let open = |partition| {
            let store = options.schemes.open(options.store, &place(partition), Native)?;
            match options.cache {
                Some(cache) => cache.shared_by(partitions).over(store, &resources.budget),
                None => Ok(store),
            }
        };
        let stores = (0..partitions).map(open).collect::<Result<Vec<StoreOf<P, E>>>>()?;
        let left: u64 = stores.iter().map(|store| store.len()).sum();
        if left > 0 {
            return Err(Error::Usage(format!(
                "the store {:?} has {left} vertices of another run; remove it or name another",
                options.store
            )));
        }

        let threshold = options.run.signal_threshold.unwrap_or(SIGNAL_THRESHOLD);
        let mut numeric = Numeric::new(program, graph.vertices(), resources.workers(), threshold);
        numeric.is_weighted = options.run.weighted;
        numeric.usual_way = indexes.iter().fold(0, |all, index| all | way(*index));
        let mut attributes = Attributes::new::<P>(graph, options.run.weighted)?;
        let partitioner = balanced(graph, count, partitions)?;
        let mut loading = Loading::new(numeric, partitioner, stores, resources)?;

        let folder = scratch(options);
        let once = if graph.description().directed { indexes } else { &[Index::In] };
        let work = (&folder as &dyn brimful_store::Folder, &**resources);
        graph::vertices::<E>(graph, once, count, options.run.weighted, work, &mut |id, edges| {
            let vertex = first(loading.program(), attributes.of(graph, id)?, id, edges);
            loading.add_vertex(vertex)
        })?;
        let list = ExecutionOptions {
            signal_threshold: options.run.signal_threshold,
            collect_threshold: options.run.collect_threshold,
            lists: options.lists,
            scratch: options.run.scratch.clone(),
        };
        let mut execution = Execution::start(loading, &list)?;
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
        let bytes = (connected * size_of::<P::State>()) as u64;
        let _memory = self.resources.budget.reserve(bytes, "for the result")?;
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
) -> Vertex<u64, Cell<P::State>, E, Plain<brimful_engine::SumOf<P>>> {
    let own = numeric.vertex(id, strength);
    let first = numeric.program.initial(brimful_engine::Vertex { external, ..own }, &numeric.globals);
    let (state, signalled) = begin(numeric, own, first, strength);
    numeric.add(numeric.program.aggregate(own, first, first));
    let mut vertex = Vertex::new(id, state, edges);
    vertex.signalled = signalled;
    vertex
}

/// Where what exceeds memory goes.
fn scratch(options: &NumericOptions<'_>) -> DiskFolder {
    DiskFolder::new(options.run.scratch.clone().unwrap_or_else(std::env::temp_dir))
}
