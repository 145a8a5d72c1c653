//! The superstep loop.
//!
//! A superstep: every source's signal, made at the end of the superstep before, is combined into the
//! sums of its targets in ascending order of (window, source); then every vertex collects, and makes
//! its next signal, interval by interval. Aggregates are summed within an interval in id order, then
//! over intervals in order. Invariant: states and aggregates are the same bits at any budget and number
//! of threads.

pub(crate) mod asynchronous;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brimful_graph::codec::Unpack;
use brimful_graph::shards::ShardFile;
use brimful_graph::{Graph, import};
use brimful_store::huge::HugeArray;
use brimful_store::read_ahead::ReadPool;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Content, Moved, Reservation, Resources};

use crate::aggregate::Aggregate;
use crate::batch::collect_letters;
use crate::collect::{Collector, Degrees, Partial, Room, Thresholds, Turn, turn};
use crate::combiner::Combiner;
use crate::error::{Error, Result};
use crate::frontier::Frontier;
use crate::isolated::{self, Isolated};
use crate::log::SuperstepLog;
use crate::options::{Door, Layout, RunOptions};
use crate::plan::Plan;
use crate::program::{COLLECT_THRESHOLD, Globals, Mode, Program, SIGNAL_THRESHOLD, SignalOf, SumOf, Vertex};
use crate::records::{Records, Walk};
use crate::residency::Resident;
use crate::schedule::Schedule;
use crate::sparse::{self, Sparse};
use crate::stats::{Durations, Reason, Stats};
use crate::sweep::{Activity, Sweep, Swept};
use asynchronous::Asynchronous;

/// The states at the end of a run of `P`, and what the run did.
#[derive(Debug)]
pub struct Output<P: Program> {
    /// One state per vertex with edges, in internal order.
    pub states: ScratchArray<P::State>,
    /// What the other vertices have.
    pub isolated: Isolated<P::State>,
    /// The aggregate over the last superstep.
    pub aggregate: P::Aggregate,
    /// Figures.
    pub stats: Stats,
}

/// Runs `program` on `graph` until it converges or `max_supersteps` are done.
///
/// A missing index is built first, and kept.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work if the budget is too small; corruption and I/O as
/// they are met; [`brimful_store::Error::Interrupted`] after a cancellation.
pub fn run<P: Program>(
    program: &P,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<Output<P>> {
    if options.weighted && !graph.description().weighted {
        let what = format!(
            "{} has no edge weights; import it with a weight column or run without --weighted",
            graph.path().display()
        );
        return Err(Error::Usage(what));
    }
    options.check::<P>()?;
    if program.batched().is_some() && options.layout != Layout::Shards {
        let what =
            format!("a program that takes batches is for the layout shards, not {}", options.layout.name());
        return Err(Error::Usage(what));
    }
    let mut index_seconds = 0.0;
    if program.indexes().iter().any(|index| graph.shards(*index).is_none()) {
        // `in` always exists, so it is the reverse that is missing.
        index_seconds = import::build_reverse(graph, resources)?;
    }
    let listing = Instant::now();
    let mut shards: Vec<Arc<ShardFile>> =
        program.indexes().iter().filter_map(|index| graph.shards(*index)).map(Arc::clone).collect();
    // An undirected graph is its own reverse: once is enough.
    shards.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let records = match options.layout {
        Layout::Shards => None,
        _ => Some(Records::of_graph::<P>(graph, &shards, options, resources)?),
    };
    if records.is_some() {
        index_seconds += listing.elapsed().as_secs_f64();
    }
    let begin = Instant::now();
    let moved_before = moved(graph, resources);
    let mut run = Run::new(program, graph, options, resources, shards, records)?;
    let prepared = begin.elapsed().as_secs_f64();
    run.initialize()?;
    let initialized = begin.elapsed().as_secs_f64();
    let reason = run.supersteps(begin)?;
    run.take_states_from_records()?;
    let seconds = begin.elapsed().as_secs_f64();
    let stats = Stats {
        supersteps: run.globals.superstep,
        reason,
        durations: run.durations,
        sparse_supersteps: run.sparse_supersteps,
        seconds,
        index_seconds,
        signals: run.swept.signals,
        edges_visited: run.swept.edges,
        moved: moved(graph, resources) - moved_before,
        phases: vec![
            ("prepare", prepared),
            ("initialize", initialized - prepared),
            ("supersteps", seconds - initialized),
        ],
        threads: resources.workers(),
    };
    let isolated = run.isolated.map_or(Isolated::Initial, Isolated::Same);
    Ok(Output { states: run.states, isolated, aggregate: run.globals.aggregate, stats })
}

/// For each of `files` whether the coming superstep walks it.
fn walked<P: Program>(program: &P, files: &[Resident], globals: &Globals<P::Aggregate>) -> Vec<bool> {
    let indexes = program.indexes();
    if files.len() < indexes.len() {
        // An undirected graph has one for both directions.
        return vec![indexes.iter().any(|index| program.walks(*index, globals)); files.len()];
    }
    indexes.iter().map(|index| program.walks(*index, globals)).collect()
}

/// Bytes moved so far: by the job's scratch files and by the graph's own, which may count apart.
pub fn moved(graph: &Graph, resources: &Resources) -> Moved {
    let (job, own) = (resources.job.traffic(), graph.traffic());
    if Arc::ptr_eq(job, own) { job.moved() } else { job.moved() + own.moved() }
}

/// Everything a superstep hands to the next.
struct Run<'a, P: Program> {
    program: &'a P,
    graph: &'a Graph,
    options: &'a RunOptions,
    resources: &'a Resources,
    plan: Plan,
    #[expect(dead_code, reason = "holds the memory of the whole run")]
    memory: Reservation,
    files: Vec<Resident>,
    schedule: Schedule,
    /// Other layouts than shards.
    records: Option<Records>,
    read_pool: ReadPool,
    degrees: Degrees,
    states: ScratchArray<P::State>,
    next: ScratchArray<SignalOf<P>>,
    signals: HugeArray<SignalOf<P>>,
    /// Who signals next; `None`: everybody.
    frontier: Option<Frontier>,
    /// For each interval, whether all of its vertices are finished.
    over: Vec<bool>,
    sparse: Option<Sparse<SumOf<P>>>,
    thresholds: Thresholds,
    /// The state of every vertex without edges ([`Mode::Full`]).
    isolated: Option<P::State>,
    globals: Globals<P::Aggregate>,
    swept: Swept,
    sparse_supersteps: u64,
    durations: Durations,
    /// Buffers of sums that nobody uses.
    free: Mutex<Vec<HugeArray<SumOf<P>>>>,
    asynchronous: Option<Asynchronous>,
}

/// Of sparse supersteps, which may take microseconds, one in so many is shown.
const SPARSE_SUPERSTEPS_SHOWN: u64 = 64;

/// Degrees read at once.
const DEGREES_AT_ONCE: usize = 1 << 16;

impl<'a, P: Program> Run<'a, P> {
    fn new(
        program: &'a P,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &'a Resources,
        shards: Vec<Arc<ShardFile>>,
        records: Option<Records>,
    ) -> Result<Self> {
        let workers = resources.workers();
        let plan = match &records {
            Some(records) => Plan::of_records::<P>(
                graph,
                records.largest_block,
                options.weighted,
                workers,
                &resources.budget,
            ),
            None => {
                let borrowed: Vec<&ShardFile> = shards.iter().map(|s| &**s).collect();
                Plan::new::<P>(graph, &borrowed, options, workers, &resources.budget)
            }
        }?;
        plan.log();
        let memory = resources.budget.reserve(plan.total_bytes, "to run this program on this graph")?;
        let files = Resident::spread(shards, options.weighted, plan.pinned_bytes);
        let interval_bits = graph.description().interval_bits;
        let schedule = Schedule::new(&files, graph.intervals() as usize, interval_bits);
        let (vertices, window) = (graph.connected() as usize, 1 << interval_bits);
        let asynchronous =
            options.asynchronous.then(|| Asynchronous::new(&files, &schedule, vertices, interval_bits));
        let sparse = match plan.sparse && options.door != Door::Dense {
            true => Some(Sparse::load(&files, graph.intervals() as usize, vertices as u64, workers)?),
            false => None,
        };
        Ok(Self {
            program,
            graph,
            options,
            resources,
            plan,
            memory,
            files,
            schedule,
            records,
            read_pool: ReadPool::new(2 * workers.clamp(1, 4))?,
            degrees: Degrees::Unused,
            states: scratch(vertices, window, plan.states_resident, graph, options, resources)?
                .counted_as(Content::States),
            next: scratch(vertices, window, plan.next_resident, graph, options, resources)?
                .counted_as(Content::Signals),
            signals: HugeArray::zeroed(vertices),
            frontier: None,
            over: vec![false; graph.intervals() as usize],
            sparse,
            thresholds: Thresholds {
                signal: options.signal_threshold.unwrap_or(SIGNAL_THRESHOLD),
                collect: options.collect_threshold.unwrap_or(COLLECT_THRESHOLD),
            },
            isolated: None,
            globals: Globals {
                vertices: graph.vertices(),
                superstep: 0,
                round: 0,
                aggregate: P::Aggregate::NOTHING,
            },
            swept: Swept::default(),
            sparse_supersteps: 0,
            durations: Durations::default(),
            free: Mutex::default(),
            asynchronous,
        })
    }

    /// Loads degrees, sets every state and makes the first signals.
    fn initialize(&mut self) -> Result<()> {
        self.resources.job.begin("initialize", self.graph.intervals());
        if P::NEEDS_DEGREES {
            self.degrees = self.load_degrees()?;
        }
        self.pass(Turn::First)
    }

    /// Every vertex takes a turn, in layouts of records any, else one that needs no edges.
    fn pass(&mut self, turn: Turn<'static, SumOf<P>>) -> Result<()> {
        let smallest_key = match P::NEEDS_EXTERNAL {
            true => self.graph.key_bounds()?.map_or(0, |(smallest, _)| smallest),
            false => 0,
        };
        let activity = self.empty_activity();
        let walk = self.records.as_ref().map(|records| Walk {
            program: self.program,
            records,
            walked: walked(self.program, &self.files, &self.globals),
            signals: &self.signals,
            window: 1 << self.graph.description().interval_bits,
            combined: AtomicU64::new(0),
        });
        let collector = Collector {
            program: self.program,
            graph: self.graph,
            weighted: self.options.weighted,
            degrees: &self.degrees,
            walk: walk.as_ref(),
            states: self.states.windows(),
            next: self.next.windows(),
            activity: activity.as_deref(),
            scored: false,
            over: &self.over,
            globals: self.globals,
            thresholds: self.thresholds,
            smallest_key,
            window: 1 << self.graph.description().interval_bits,
        };
        let partials = self.resources.share(self.graph.intervals() as usize, |interval, room| {
            let partial = collector.interval(interval, turn, room);
            self.resources.job.advance(1);
            partial
        })?;
        drop(collector);
        if let Some(walk) = walk.filter(|_| matches!(turn, Turn::Collect(_))) {
            let lists = walk.walked.iter().filter(|walked| **walked).count() as u64;
            let edges = lists * self.graph.description().arcs;
            self.swept += Swept { signals: walk.combined.into_inner(), edges };
        }
        if P::MODE != Mode::Full && !matches!(turn, Turn::Collect(_)) {
            self.over = partials.iter().map(|partial: &Partial<_>| partial.open == 0).collect();
        }
        // In a full program they take their first turn, in the others none.
        let isolated = self.evolve_isolated()?;
        self.end_superstep(partials, activity, isolated)?;
        self.everybody_spoke();
        Ok(())
    }

    /// A map for the next frontier, if there is one.
    fn empty_activity(&self) -> Option<Vec<AtomicBool>> {
        (P::MODE != Mode::Full).then(|| Frontier::empty_map(self.graph.connected() as usize))
    }

    fn load_degrees(&self) -> Result<Degrees> {
        if !self.plan.degrees_resident {
            return Ok(Degrees::OnDisk);
        }
        let vertices = self.graph.connected() as usize;
        if self.options.weighted {
            let mut strengths = vec![0.0; vertices];
            self.graph.strengths(0, &mut strengths)?;
            return Ok(Degrees::ResidentStrengths(strengths));
        }
        let (mut degrees, mut window) = (vec![0_u32; vertices], Vec::new());
        for (index, part) in degrees.chunks_mut(DEGREES_AT_ONCE).enumerate() {
            window.resize(part.len(), 0);
            self.graph.degrees((index * DEGREES_AT_ONCE) as u64, &mut window)?;
            for (narrow, &wide) in part.iter_mut().zip(&window) {
                let Ok(degree) = u32::try_from(wide) else {
                    return Ok(Degrees::OnDisk);
                };
                *narrow = degree;
            }
        }
        Ok(Degrees::Resident(degrees))
    }

    /// Supersteps until the run ends; it began at `start`.
    fn supersteps(&mut self, start: Instant) -> Result<Reason> {
        let edges: u64 = match self.records {
            Some(_) => self.graph.intervals(),
            None => self.files.iter().map(|file| file.shards().edges()).sum(),
        };
        let mut log = SuperstepLog::new(moved(self.graph, self.resources));
        let mut begin = Instant::now();
        while self.globals.superstep < self.options.max_supersteps {
            let seconds = (begin - start).as_secs_f64();
            if self.globals.superstep > 0 && self.options.max_seconds.is_some_and(|most| seconds >= most) {
                return Ok(Reason::MaxSeconds);
            }
            let door = if self.asynchronous_superstep(edges)? {
                "sweep"
            } else if self.sparse_superstep(edges)? {
                "sparse"
            } else {
                self.resources.job.begin(format!("superstep {}", self.globals.superstep + 1), edges);
                self.superstep()?;
                "dense"
            };
            let end = Instant::now();
            let seconds = (end - begin).as_secs_f64();
            self.durations.push(seconds);
            begin = end;
            let (step, Swept { signals, edges }) = ((self.globals.superstep, seconds), self.swept);
            log.tell(step, door, signals, edges, || moved(self.graph, self.resources));
            if self.program.converged(&self.globals) {
                return Ok(Reason::Converged);
            }
            if !self.next_rounds()? {
                return Ok(Reason::NoChange);
            }
        }
        Ok(Reason::MaxSupersteps)
    }

    /// Begins rounds until some vertex signals. False if none does and there is no other round.
    fn next_rounds(&mut self) -> Result<bool> {
        while self.frontier.as_ref().is_some_and(|frontier| frontier.count() == 0) {
            if !self.program.another_round(&self.globals) {
                return Ok(false);
            }
            self.globals.round += 1;
            self.resources.job.begin(format!("round {}", self.globals.round + 1), self.graph.intervals());
            self.pass(Turn::Round)?;
        }
        Ok(true)
    }

    /// Tries to do a superstep by reading only the blocks that the frontier has edges in.
    fn sparse_superstep(&mut self, edges: u64) -> Result<bool> {
        let (Some(frontier), Some(sparse)) = (&mut self.frontier, &self.sparse) else {
            return Ok(false);
        };
        if self.options.door == Door::Auto && !sparse.has_room(frontier.count()) {
            return Ok(false);
        }
        if self.globals.superstep.is_multiple_of(SPARSE_SUPERSTEPS_SHOWN) {
            self.resources.job.begin(format!("superstep {}", self.globals.superstep + 1), edges);
        }
        self.resources.job.check()?;
        let walked = walked(self.program, &self.files, &self.globals);
        let mut combine = sparse::Combine {
            program: self.program,
            walked: &walked,
            files: &self.files,
            signals: &self.signals,
            frontier: frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE),
            over: &self.over,
            weighted: self.options.weighted,
            interval_bits: self.graph.description().interval_bits,
            survey: None,
        };
        let survey = sparse.survey(&combine);
        if self.options.door == Door::Auto && survey.as_ref().is_some_and(|survey| !survey.prefers_sparse()) {
            return Ok(false);
        }
        combine.survey = survey.as_ref();
        let Some(mail) = sparse.combine(&combine, self.resources)? else {
            return Ok(false);
        };
        self.swept += mail.swept;
        self.collect_mail(mail.intervals)?;
        self.globals.superstep += 1;
        self.sparse_supersteps += 1;
        Ok(true)
    }

    /// Lets the vertices that got letters collect, and makes those that signal the frontier.
    fn collect_mail(&mut self, mail: Vec<(usize, sparse::Letters<SumOf<P>>)>) -> Result<()> {
        let Some(frontier) = &mut self.frontier else { return Ok(()) };
        let mut list = Vec::with_capacity(mail.iter().map(|(_, letters)| letters.len()).sum());
        for vertex in frontier.replace(Vec::new()) {
            self.signals[vertex as usize] = P::Combiner::SILENCE;
        }
        let window = 1_usize << self.graph.description().interval_bits;
        let states = self.states.windows();
        let mut aggregate = P::Aggregate::NOTHING;
        let mut room = Vec::new();
        for (interval, letters) in mail {
            let start = interval * window;
            let signals = &mut self.signals[start..];
            let mut partial = Partial::default();
            let vertex = |target: u32| {
                let id = start as u64 + u64::from(target);
                let (degree, strength) = self.degrees.of(id);
                Vertex { id, degree, strength, external: 0 }
            };
            states.update(interval, &mut room, |states| {
                if let Some(batched) = self.program.batched() {
                    let (arrays, known) = ((states, &mut *signals), (&self.globals, self.thresholds));
                    collect_letters(batched, &letters, arrays, vertex, known, &mut partial)?;
                    let says = |target: &u32| signals[*target as usize] != P::Combiner::SILENCE;
                    let speakers = letters.iter().map(|(target, _)| *target).filter(says);
                    list.extend(speakers.map(|target| start as u64 + u64::from(target)));
                    return Ok(());
                }
                for (target, sum) in letters {
                    let (target, vertex) = (target as usize, vertex(target));
                    let state = &mut states[target];
                    let signal =
                        turn(self.program, vertex, state, sum, &self.globals, self.thresholds, &mut partial);
                    signals[target] = signal;
                    if signal != P::Combiner::SILENCE {
                        list.push(vertex.id);
                    }
                }
                Ok::<_, Error>(())
            })??;
            aggregate = aggregate.merge(partial.aggregate);
        }
        self.globals.aggregate = aggregate;
        frontier.replace(list);
        Ok(())
    }

    /// States that lie in records go where those of other layouts are.
    fn take_states_from_records(&mut self) -> Result<()> {
        let Some(records) = self.records.as_ref().filter(|records| records.is_coupled()) else {
            return Ok(());
        };
        let (states, mut window, mut room) = (self.states.windows(), Vec::new(), Vec::new());
        for interval in 0..self.graph.intervals() as usize {
            states.overwrite(interval, &mut window, |out| records.states(interval, out, &mut room))??;
        }
        Ok(())
    }

    fn superstep(&mut self) -> Result<()> {
        if self.records.is_some() {
            self.pass(Turn::Collect(&[]))?;
            self.globals.superstep += 1;
            return Ok(());
        }
        let partials: Vec<Mutex<Partial<P::Aggregate>>> =
            (0..self.graph.intervals()).map(|_| Mutex::default()).collect();
        let rooms: Vec<Mutex<Room<P>>> = (0..self.resources.workers()).map(|_| Mutex::default()).collect();
        let activity = self.empty_activity();
        let walked = walked(self.program, &self.files, &self.globals);
        let sweep = Sweep {
            program: self.program,
            walked: &walked,
            files: &self.files,
            schedule: &self.schedule,
            signals: &self.signals,
            activity: self
                .frontier
                .as_mut()
                .map_or(Activity::All, |frontier| Activity::Marked(frontier.map())),
            over: &self.over,
            items: None,
            free: &self.free,
            weighted: self.options.weighted,
            interval_bits: self.graph.description().interval_bits,
            unpack: Unpack::fastest(),
            reads: self.plan.reads,
        };
        let collector = Collector {
            program: self.program,
            graph: self.graph,
            weighted: self.options.weighted,
            degrees: &self.degrees,
            walk: None,
            states: self.states.windows(),
            next: self.next.windows(),
            activity: activity.as_deref(),
            scored: false,
            over: &self.over,
            globals: self.globals,
            thresholds: self.thresholds,
            smallest_key: 0,
            window: 1 << self.graph.description().interval_bits,
        };
        self.swept += sweep.run(self.resources, &self.read_pool, |worker, interval, sums| {
            let mut room = rooms[worker].lock().unwrap_or_else(PoisonError::into_inner);
            let partial = collector.interval(interval, Turn::Collect(sums), &mut room)?;
            *partials[interval].lock().unwrap_or_else(PoisonError::into_inner) = partial;
            Ok(())
        })?;
        drop(collector);
        let isolated = self.evolve_isolated()?;
        self.globals.superstep += 1;
        let partials = partials.into_iter().map(|p| p.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.end_superstep(partials.collect(), activity, isolated)
    }

    /// Lets the vertices without edges take a turn; what they add to the aggregate.
    fn evolve_isolated(&mut self) -> Result<P::Aggregate> {
        isolated::evolve(self.program, self.graph, &mut self.isolated, &self.globals, self.thresholds)
    }

    /// Adds up the intervals in order, then what isolated vertices add, and makes the new signals current.
    fn end_superstep(
        &mut self,
        partials: Vec<Partial<P::Aggregate>>,
        activity: Option<Vec<AtomicBool>>,
        isolated: P::Aggregate,
    ) -> Result<()> {
        let mut whole = Partial::<P::Aggregate>::default();
        for partial in partials {
            whole.aggregate = whole.aggregate.merge(partial.aggregate);
            whole.signalling += partial.signalling;
        }
        self.globals.aggregate = whole.aggregate.merge(isolated);
        self.frontier =
            activity.map(|map| Frontier::marked(self.graph.connected() as usize, map, whole.signalling));
        Ok(self.next.publish_into(&mut self.signals)?)
    }
}

fn scratch<T: bytemuck::Pod + Send>(
    len: usize,
    window: usize,
    resident: bool,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<ScratchArray<T>> {
    if resident {
        return Ok(ScratchArray::resident(len, window));
    }
    options.in_scratch(graph, |folder| ScratchArray::paged(len, window, folder, &resources.job))
}
