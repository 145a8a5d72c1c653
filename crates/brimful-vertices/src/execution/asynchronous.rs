//! Without supersteps: each worker collects what waits and signals what is due until nobody has anything left
//! to do.
//!
//! Invariant: a stop between two vertices loses nothing: what was to be done is in the lists, the packets or the queues.

use crate::error::Result;
use crate::execution::desk::Phase;
use crate::execution::options::Schedule;
use crate::execution::synchronous::collect;
use crate::execution::worker::{After, Worker};
use crate::program::{VertexOf, VertexProgram};
use crate::store::VertexStore;

/// Works until nobody has anything left to do, or the phase is stopped.
pub(super) fn work<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
    schedule: Schedule,
) -> Result<()> {
    if worker.is_fresh {
        worker.signal_all(phase)?;
    }
    loop {
        worker.desk.take_in(phase)?;
        let mut is_busy = false;
        for place in 0..worker.stores.len() {
            is_busy |= sweep(phase, worker, place, schedule)?;
            if phase.exchange.is_stopped() {
                return Ok(());
            }
        }
        // After a stop the generation of a list may be at its end, and another behind it.
        if is_busy || worker.desk.has_any_mail()? || worker.desk.is_any_due()? {
            // Others may have nothing to do but what is for them.
            worker.desk.flush(phase)?;
        } else if !worker.desk.wait(phase)? {
            return Ok(());
        }
    }
}

/// Lets vertices collect what is under way until nothing is; nobody signals.
pub(super) fn settle<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    loop {
        collect(phase, worker)?;
        if !worker.desk.flush(phase)? {
            return Ok(());
        }
        // Whoever sends takes in what is for him.
        if !worker.desk.has_any_mail()? && !worker.desk.wait(phase)? {
            return Ok(());
        }
    }
}

/// Lets the vertices of a partition collect and signal, each at most once; true if there was one.
fn sweep<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
    place: usize,
    schedule: Schedule,
) -> Result<bool> {
    let at_once = schedule == Schedule::LowLatency;
    let mut is_any = false;
    while let Some((id, after)) = worker.collect(phase, place, at_once)? {
        is_any = true;
        if let After::Due(score) = after {
            worker.desk.mark(place, &id, Some(score))?;
        }
        if worker.desk.look(phase)? {
            return Ok(true);
        }
    }
    while let Some((id, score)) = worker.desk.take_due(place)? {
        is_any = true;
        match score.filter(|score| !at_once && !worker.desk.is_average(place, *score)) {
            Some(score) => worker.desk.mark(place, &id, Some(score))?,
            None => worker.signal(phase, place, &id)?,
        }
        if worker.desk.look(phase)? {
            return Ok(true);
        }
    }
    Ok(is_any)
}
