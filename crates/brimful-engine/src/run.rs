//! The superstep loop.
//!
//! A superstep: every source's signal, made at the end of the superstep before, is combined into the
//! sums of its targets in ascending order of (window, source); then every vertex collects, and makes
//! its next signal, interval by interval. Aggregates are summed within an interval in id order, then
//! over intervals in order. Invariant: states and aggregates are the same bits at any budget and number
//! of threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brimful_graph::codec::Unpack;
use brimful_graph::shards::ShardFile;
use brimful_graph::{Graph, import};
use brimful_store::huge::HugeArray;
use brimful_store::read_ahead::ReadPool;
use brimful_store::scratch::ScratchArray;
use brimful_store::{DiskFolder, Reservation, Resources};

use crate::collect::{Collector, Degrees, Partial, Room};
use crate::error::{Error, Result};
use crate::isolated::{self, Isolated};
use crate::plan::Plan;
use crate::program::{Aggregate, Globals, Mode, Program};
use crate::residency::Resident;
use crate::stats::{Reason, Stats};
use crate::sweep::{ACTIVITY_BITS, Schedule, Sweep};

/// What the user chose for a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// At most so many supersteps.
    pub max_supersteps: u64,
    /// Edge weights count.
    pub weighted: bool,
    /// Where arrays that exceed the budget go; `None`: beside the graph if that can be written to,
    /// else the system's folder for temporary files.
    pub scratch: Option<PathBuf>,
}

/// The states at the end of a run, and what the run did.
#[derive(Debug)]
pub struct Output<S> {
    /// One state per vertex with edges, in internal order.
    pub states: ScratchArray<S>,
    /// What the other vertices have.
    pub isolated: Isolated<S>,
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
) -> Result<Output<P::State>> {
    if options.weighted && !graph.description().weighted {
        let what = format!(
            "{} has no edge weights; import it with a weight column or run without --weighted",
            graph.path().display()
        );
        return Err(Error::Usage(what));
    }
    let mut index_seconds = 0.0;
    if program.indexes().iter().any(|index| graph.shards(*index).is_none()) {
        // `in` always exists, so it is the reverse that is missing.
        index_seconds = import::build_reverse(graph, resources)?;
    }
    let begin = Instant::now();
    let moved_before = moved(graph, resources);
    let mut run = Run::new(program, graph, options, resources)?;
    let prepared = begin.elapsed().as_secs_f64();
    run.initialize()?;
    let initialized = begin.elapsed().as_secs_f64();
    let reason = run.supersteps(options.max_supersteps)?;
    let seconds = begin.elapsed().as_secs_f64();
    let moved_after = moved(graph, resources);
    let stats = Stats {
        supersteps: run.globals.superstep,
        reason,
        superstep_seconds: run.seconds,
        seconds,
        index_seconds,
        signals: run.combined,
        bytes_read: moved_after.0 - moved_before.0,
        bytes_written: moved_after.1 - moved_before.1,
        phases: vec![
            ("prepare", prepared),
            ("initialize", initialized - prepared),
            ("supersteps", seconds - initialized),
        ],
        threads: resources.workers(),
    };
    let isolated = run.isolated.map_or(Isolated::Initial, Isolated::Same);
    Ok(Output { states: run.states, isolated, stats })
}

/// Bytes read and written so far: by the job's scratch files and by the graph's own, which may count
/// apart.
fn moved(graph: &Graph, resources: &Resources) -> (u64, u64) {
    let (job, own) = (resources.job.traffic(), graph.traffic());
    let read = if Arc::ptr_eq(job, own) { 0 } else { own.bytes_read() };
    (job.bytes_read() + read, job.bytes_written())
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
    read_pool: ReadPool,
    degrees: Degrees,
    states: ScratchArray<P::State>,
    next: ScratchArray<P::Signal>,
    signals: HugeArray<P::Signal>,
    activity: Option<Vec<AtomicBool>>,
    /// The state of every vertex without edges ([`Mode::Full`]).
    isolated: Option<P::State>,
    globals: Globals,
    changed: u64,
    combined: u64,
    seconds: Vec<f64>,
}

/// Degrees read at once.
const DEGREES_AT_ONCE: usize = 1 << 16;

impl<'a, P: Program> Run<'a, P> {
    fn new(
        program: &'a P,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &'a Resources,
    ) -> Result<Self> {
        let mut shards: Vec<Arc<ShardFile>> =
            program.indexes().iter().filter_map(|index| graph.shards(*index)).map(Arc::clone).collect();
        // An undirected graph is its own reverse: once is enough.
        shards.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let borrowed: Vec<&ShardFile> = shards.iter().map(|s| &**s).collect();
        let workers = resources.workers();
        let plan = Plan::new::<P>(graph, &borrowed, options.weighted, workers, &resources.budget)?;
        let memory = resources.budget.reserve(plan.total_bytes, "to run this program on this graph")?;
        let files = Resident::spread(shards, options.weighted, plan.pinned_bytes);
        let interval_bits = graph.description().interval_bits;
        let schedule = Schedule::new(&files, graph.intervals() as usize, interval_bits);
        let (vertices, window) = (graph.connected() as usize, 1 << interval_bits);
        let activity = (P::MODE == Mode::Idempotent)
            .then(|| (0..vertices.div_ceil(1 << ACTIVITY_BITS)).map(|_| AtomicBool::new(true)).collect());
        Ok(Self {
            program,
            graph,
            options,
            resources,
            plan,
            memory,
            files,
            schedule,
            read_pool: ReadPool::new(2 * workers.clamp(1, 4))?,
            degrees: Degrees::Unused,
            states: scratch(vertices, window, plan.states_resident, graph, options, resources)?,
            next: scratch(vertices, window, plan.next_resident, graph, options, resources)?,
            signals: HugeArray::zeroed(vertices),
            activity,
            isolated: None,
            globals: Globals { vertices: graph.vertices(), superstep: 0, aggregate: Aggregate::default() },
            changed: 0,
            combined: 0,
            seconds: Vec::new(),
        })
    }

    /// Loads degrees, sets every state and makes the first signals.
    fn initialize(&mut self) -> Result<()> {
        self.resources.job.begin("initialize", self.graph.intervals());
        if P::NEEDS_DEGREES {
            self.degrees = self.load_degrees()?;
        }
        let smallest_key = match P::NEEDS_EXTERNAL {
            true => self.graph.key_bounds()?.map_or(0, |(smallest, _)| smallest),
            false => 0,
        };
        let partials = self.partials();
        let next_interval = std::sync::atomic::AtomicUsize::new(0);
        let intervals = self.graph.intervals() as usize;
        let collector = Collector {
            program: self.program,
            graph: self.graph,
            weighted: self.options.weighted,
            degrees: &self.degrees,
            states: self.states.windows(),
            next: self.next.windows(),
            activity: self.activity.as_deref(),
            globals: self.globals,
            smallest_key,
            window: 1 << self.graph.description().interval_bits,
        };
        let results = self.resources.pool.broadcast(|_| {
            let mut room = Room::default();
            loop {
                let interval = next_interval.fetch_add(1, Ordering::Relaxed);
                if interval >= intervals {
                    return Ok(());
                }
                self.resources.job.check()?;
                let partial = collector.interval(interval, None, &mut room)?;
                *partials[interval].lock().unwrap_or_else(PoisonError::into_inner) = partial;
                self.resources.job.advance(1);
            }
        });
        results.into_iter().collect::<Result<()>>()?;
        drop(collector);
        let isolated = isolated::evolve(self.program, self.graph, &mut self.isolated, &self.globals);
        self.end_superstep(partials, isolated)
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

    fn supersteps(&mut self, max: u64) -> Result<Reason> {
        let edges: u64 = self.files.iter().map(|file| file.shards().edges()).sum();
        while self.globals.superstep < max {
            let begin = Instant::now();
            self.resources.job.begin(format!("superstep {}", self.globals.superstep + 1), edges);
            self.superstep()?;
            self.seconds.push(begin.elapsed().as_secs_f64());
            if P::MODE == Mode::Idempotent && self.changed == 0 {
                return Ok(Reason::NoChange);
            }
            if self.program.converged(&self.globals) {
                return Ok(Reason::Converged);
            }
        }
        Ok(Reason::MaxSupersteps)
    }

    fn superstep(&mut self) -> Result<()> {
        let partials = self.partials();
        let rooms: Vec<Mutex<Room<P>>> = (0..self.resources.workers()).map(|_| Mutex::default()).collect();
        let next_activity: Option<Vec<AtomicBool>> =
            self.activity.as_ref().map(|map| map.iter().map(|_| AtomicBool::new(false)).collect());
        let sweep = Sweep {
            program: self.program,
            files: &self.files,
            schedule: &self.schedule,
            signals: &self.signals,
            activity: self.activity.as_deref(),
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
            states: self.states.windows(),
            next: self.next.windows(),
            activity: next_activity.as_deref(),
            globals: self.globals,
            smallest_key: 0,
            window: 1 << self.graph.description().interval_bits,
        };
        self.combined += sweep.run(self.resources, &self.read_pool, |worker, interval, sums| {
            let mut room = rooms[worker].lock().unwrap_or_else(PoisonError::into_inner);
            let partial = collector.interval(interval, Some(sums), &mut room)?;
            *partials[interval].lock().unwrap_or_else(PoisonError::into_inner) = partial;
            Ok(())
        })?;
        drop(collector);
        self.activity = next_activity;
        let isolated = isolated::evolve(self.program, self.graph, &mut self.isolated, &self.globals);
        self.globals.superstep += 1;
        self.end_superstep(partials, isolated)
    }

    fn partials(&self) -> Vec<Mutex<Partial>> {
        (0..self.graph.intervals()).map(|_| Mutex::default()).collect()
    }

    /// Adds up the intervals in order, then what isolated vertices add, and makes the new signals current.
    fn end_superstep(&mut self, partials: Vec<Mutex<Partial>>, isolated: Aggregate) -> Result<()> {
        self.globals.aggregate = Aggregate::default();
        self.changed = 0;
        for partial in partials {
            let partial = partial.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.globals.aggregate.iter_mut().zip(partial.aggregate).for_each(|(sum, part)| *sum += part);
            self.changed += partial.changed;
        }
        self.globals.aggregate.iter_mut().zip(isolated).for_each(|(sum, part)| *sum += part);
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
    let job = &resources.job;
    let beside = options.scratch.as_deref().unwrap_or(graph.path());
    match ScratchArray::paged(len, window, &DiskFolder::new(beside), job) {
        // A read-only graph is legitimate; a folder that the user named is not replaced.
        Err(_) if options.scratch.is_none() => {
            Ok(ScratchArray::paged(len, window, &DiskFolder::new(std::env::temp_dir()), job)?)
        }
        array => Ok(array?),
    }
}
