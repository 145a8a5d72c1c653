//! The loop that every run of a program of this crate goes through, over shards, over neighbour lists and over stores: limits, rounds,
//! checkpoints, durations, and what the log is told. And the index that such a run may have to build first.

use std::time::Instant;

use brimful_graph::{Graph, Index, import};
use brimful_store::{Moved, Resources};

use crate::error::Result;
use crate::log::SuperstepLog;
use crate::options::RunOptions;
use crate::stats::{Durations, Reason, Swept, Traversal};

/// What runs in supersteps.
pub trait Supersteps {
    /// What may go wrong.
    type Error;

    /// Supersteps done, those before it was resumed too.
    fn done(&mut self) -> u64;

    /// Signals combined and edges looked at so far.
    fn swept(&mut self) -> Swept;

    /// How long supersteps took, and how they went over the edges.
    fn durations(&mut self) -> &mut Durations;

    /// Does one more; how it went over the edges.
    fn superstep(&mut self) -> Result<Traversal, Self::Error>;

    /// True if the program says that this was the last one.
    fn converged(&mut self) -> bool;

    /// False if nobody has anything to do any more, in this round or another.
    fn goes_on(&mut self) -> Result<bool, Self::Error>;
}

/// Supersteps until a run that began at `start` ends. After each that is not the last, `checkpoint` says whether it made one.
pub fn run_supersteps<R: Supersteps>(
    run: &mut R,
    options: &RunOptions,
    start: Instant,
    moved: impl Fn() -> Moved,
    mut checkpoint: impl FnMut(&mut R) -> Result<bool, R::Error>,
) -> Result<Reason, R::Error> {
    let (first, mut begin) = (run.done(), Instant::now());
    let mut log = SuperstepLog::new(run.swept(), moved());
    while run.done() < options.max_supersteps {
        let spent = (begin - start).as_secs_f64();
        if run.done() > first && options.max_seconds.is_some_and(|most| spent >= most) {
            return Ok(Reason::MaxSeconds);
        }
        let traversal = run.superstep()?;
        let end = Instant::now();
        let seconds = (end - begin).as_secs_f64();
        run.durations().push(seconds, traversal);
        begin = end;
        log.tell((run.done(), seconds), traversal, run.swept(), &moved);
        if run.converged() {
            return Ok(Reason::Converged);
        }
        if !run.goes_on()? {
            return Ok(Reason::NoChange);
        }
        if checkpoint(run)? {
            begin = Instant::now();
        }
    }
    Ok(Reason::MaxSupersteps)
}

/// Builds the index that is missing of those that a program walks, if one is; the seconds that it took.
///
/// # Errors
/// Those of building it.
pub fn build_missing(graph: &Graph, indexes: &[Index], resources: &Resources) -> Result<f64> {
    // `in` always exists, so it is the reverse that is missing.
    match indexes.iter().any(|index| graph.shards(*index).is_none()) {
        true => Ok(import::build_reverse(graph, resources)?),
        false => Ok(0.0),
    }
}
