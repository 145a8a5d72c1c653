//! The loop of supersteps of numeric programs, over shards, neighbor lists and stores: limits,
//! rounds, checkpoints, durations and log. General programs on stores, which have no rounds, have a
//! loop of their own. Also builds a missing index before a run.

use std::sync::Arc;
use std::time::Instant;

use brimful_graph::build::import;
use brimful_graph::{Graph, Index};
use brimful_store::checkpoint::Saved;
use brimful_store::{Moved, Resources};
use serde::de::DeserializeOwned;

use crate::checkpoint::Checkpointer;
use crate::error::{Error, Result};
use crate::exchange::Communicator;
use crate::plan::options::RunOptions;
use crate::result::stats::{Durations, Reason, Stats, Swept, Traversal, Work};

/// A run in supersteps.
pub trait Supersteps {
    /// The error of a superstep.
    type Error;

    /// Supersteps done, including those before a resume.
    fn done(&mut self) -> u64;

    /// Signals combined and edges visited so far.
    fn swept(&mut self) -> Swept;

    /// Durations and traversals of supersteps.
    fn durations(&mut self) -> &mut Durations;

    /// Lets the program act before the next superstep; false ends the run.
    fn next_superstep(&mut self) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Runs one superstep; returns its traversal and the number of vertices in its frontier. A
    /// superstep in which no vertex acts need not count as done: it is the last one.
    fn superstep(&mut self) -> Result<(Traversal, u64), Self::Error>;

    /// True if the program has converged.
    fn converged(&mut self) -> bool;

    /// True if the run may have ended before its first superstep.
    fn begins_with_superstep(&mut self) -> bool {
        false
    }

    /// Begins further rounds until a vertex is due; false if none is due and no round is left.
    fn advance_rounds(&mut self) -> Result<bool, Self::Error>;
}

/// Runs supersteps until a run that began at `start` ends. `checkpoint` is called after each
/// superstep but the last, and returns whether it wrote a checkpoint. `moved` returns the bytes
/// moved so far, or `None` if they are not counted.
///
/// # Errors
/// Errors of a superstep, of a new round, and of `checkpoint`.
pub fn run_supersteps<R: Supersteps + ?Sized>(
    run: &mut R,
    options: &RunOptions,
    start: Instant,
    moved: impl Fn() -> Option<Moved>,
    mut checkpoint: impl FnMut(&mut R) -> Result<bool, R::Error>,
) -> Result<Reason, R::Error> {
    let (first, mut begin) = (run.done(), Instant::now());
    let (mut swept_before, mut moved_before) = (run.swept(), moved());
    if run.begins_with_superstep() {
        if run.converged() {
            return Ok(Reason::Converged);
        }
        if !run.advance_rounds()? {
            return Ok(Reason::NoChange);
        }
    }
    while run.done() < options.max_supersteps {
        let done = run.done();
        let spent = (begin - start).as_secs_f64();
        if done > first && options.max_seconds.is_some_and(|limit| spent >= limit) {
            return Ok(Reason::MaxSeconds);
        }
        if !run.next_superstep()? {
            return Ok(Reason::Converged);
        }
        let (traversal, frontier) = run.superstep()?;
        if run.done() == done {
            return Ok(Reason::NoChange);
        }
        let end = Instant::now();
        let seconds = (end - begin).as_secs_f64();
        let (swept, moved) = (run.swept(), moved());
        let moved_now = moved.zip(moved_before).map(|(moved, before)| moved - before);
        let work = Work::new(seconds, Some(frontier), swept - swept_before, moved_now);
        (swept_before, moved_before) = (swept, moved);
        run.durations().push(work, traversal);
        work.log(run.done(), traversal);
        begin = end;
        if run.converged() {
            return Ok(Reason::Converged);
        }
        if !run.advance_rounds()? {
            return Ok(Reason::NoChange);
        }
        if checkpoint(run)? {
            begin = Instant::now();
        }
    }
    Ok(Reason::MaxSupersteps)
}

/// A run of the engine, from the beginning or from a checkpoint.
pub(crate) trait Resumable: Supersteps<Error = Error> {
    /// The fields of a checkpoint, apart from its arrays.
    type Fields: DeserializeOwned;

    /// Sets every state, before the first superstep.
    fn initialize(&mut self) -> Result<()>;

    /// Resumes from a checkpoint.
    fn restore(&mut self, saved: &mut Saved, fields: Self::Fields) -> Result<()>;

    /// Makes a checkpoint between two supersteps, if one is due; returns whether it did.
    fn checkpoint(&mut self, checkpointer: &mut Checkpointer<'_>) -> Result<bool>;

    /// Completes the states after the last superstep.
    fn complete(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The results of [`prepare`], from which a run is created.
pub(crate) struct Prepared<'a> {
    checkpointer: Option<Checkpointer<'a>>,
    index_seconds: f64,
    /// Of several processes, only the driver writes checkpoints and returns the states.
    has_result: bool,
}

/// Opens the checkpoints of a run of this identity, and builds the index that it walks if the graph
/// lacks it.
pub(crate) fn prepare<'a>(
    graph: &Graph,
    indexes: &[Index],
    options: &'a RunOptions,
    identity: &[(&str, String)],
    resources: &'a Resources,
) -> Result<Prepared<'a>> {
    let has_result = options.communicator.as_ref().is_none_or(Communicator::is_driver);
    let open = |chosen| Checkpointer::open(chosen, graph, identity, resources, has_result);
    let checkpointer = options.checkpoints.as_ref().map(open).transpose()?;
    options.check_index(graph, indexes)?;
    let index_seconds = build_missing(graph, indexes, resources)?;
    Ok(Prepared { checkpointer, index_seconds, has_result })
}

/// Creates a run, starts or resumes it, runs its supersteps, and returns it with its figures.
///
/// # Errors
/// Errors of the run; [`Error::ProcessDone`] at the end in a process that is not the driver.
pub(crate) fn run_to_end<R: Resumable>(
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
    prepared: Prepared<'_>,
    make: impl FnOnce() -> Result<R>,
) -> Result<(R, Stats)> {
    let (begin, moved_before) = (Instant::now(), moved(graph, resources));
    let (mut run, has_result) = (make()?, prepared.has_result);
    let stats = finish(&mut run, graph, options, resources, prepared, begin, moved_before)?;
    if has_result { Ok((run, stats)) } else { Err(Error::ProcessDone(Box::new(stats))) }
}

/// Runs `run`, whose construction began at `begin`, to its end. It is compiled once for all
/// programs.
fn finish<F: DeserializeOwned>(
    run: &mut dyn Resumable<Fields = F>,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
    prepared: Prepared<'_>,
    begin: Instant,
    moved_before: Moved,
) -> Result<Stats> {
    let Prepared { mut checkpointer, index_seconds, .. } = prepared;
    let moved = || moved(graph, resources);
    let made = begin.elapsed().as_secs_f64();
    let resumed_from = match &mut checkpointer {
        Some(checkpointer) => checkpointer
            .resume(options.max_supersteps, &mut |mut saved, fields| {
                run.restore(&mut saved, fields)
            })?,
        None => None,
    };
    if resumed_from.is_none() {
        run.initialize()?;
    }
    let initialized = begin.elapsed().as_secs_f64();
    let reason = run_supersteps(
        run,
        options,
        begin,
        || Some(moved()),
        |run| checkpointer.as_mut().map_or(Ok(false), |checkpointer| run.checkpoint(checkpointer)),
    )?;
    run.complete()?;
    let checkpoints = checkpointer.map(Checkpointer::finish).transpose()?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut phases = vec![
        ("prepare", made),
        (if resumed_from.is_some() { "resume" } else { "initialize" }, initialized - made),
        ("supersteps", seconds - initialized - checkpoints.unwrap_or(0.0)),
    ];
    phases.extend(checkpoints.map(|seconds| ("checkpoints", seconds)));
    let swept = run.swept();
    Ok(Stats {
        supersteps: run.done(),
        reason,
        durations: std::mem::take(run.durations()),
        seconds,
        index_seconds,
        signals: swept.signals,
        edges_visited: swept.edges,
        moved: moved() - moved_before,
        phases,
        threads: resources.workers(),
        resumed_from,
        store: None,
    })
}

/// Builds the index that a program walks and the graph lacks, if any. Returns the seconds that this
/// took; 0 if no index was missing.
///
/// # Errors
/// Errors of building the index.
pub fn build_missing(graph: &Graph, indexes: &[Index], resources: &Resources) -> Result<f64> {
    // The forward index always exists, so the missing one is the reverse.
    match indexes.iter().any(|index| graph.shards(*index).is_none()) {
        true => Ok(import::build_reverse(graph, resources)?),
        false => Ok(0.0),
    }
}

/// The smallest budget of [`build_missing`], in bytes; 0 if no index is missing.
pub fn missing_index_bytes(graph: &Graph, indexes: &[Index], workers: usize) -> u64 {
    match indexes.contains(&Index::Reverse) {
        true => import::reverse_minimum_bytes(graph, workers),
        false => 0,
    }
}

/// Bytes moved so far, by the scratch files of the job and by the graph, whose counters may differ.
pub fn moved(graph: &Graph, resources: &Resources) -> Moved {
    let (job, graph) = (resources.job.traffic(), graph.traffic());
    if Arc::ptr_eq(job, graph) { job.moved() } else { job.moved() + graph.moved() }
}
