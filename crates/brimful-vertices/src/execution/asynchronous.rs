//! Without supersteps: each worker collects what waits and signals what is due until nobody has anything left
//! to do. Who got few signals waits for more while others work, for a time that its own work sets: a vertex that answers a part of what it is about to hear
//! must answer again.
//!
//! Invariant: a stop between two vertices loses nothing: what was to be done is in the lists, the packets or the queues.

use crate::error::Result;
use crate::execution::desk::{Next, Phase};
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
        let has_work = worker.desk.has_any_mail()? || worker.desk.is_any_due()?;
        let mut is_turn = false;
        if !has_work || worker.desk.got_little() {
            match worker.desk.wait(phase, has_work)? {
                Next::Arrived => continue,
                Next::Turn => is_turn = true,
                Next::Enough => {}
                Next::End => return Ok(()),
            }
        }
        worker.desk.begin_generation(is_turn);
        for place in 0..worker.stores.len() {
            sweep(phase, worker, place, schedule)?;
            if phase.exchange.is_stopped() {
                return Ok(());
            }
        }
        worker.desk.end_generation();
        // Others may have nothing to do but what is for them.
        worker.desk.flush(phase)?;
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
        if !worker.desk.has_any_mail()? && worker.desk.wait(phase, false)? == Next::End {
            return Ok(());
        }
    }
}

/// Lets the vertices of a partition collect and signal, each at most once.
fn sweep<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
    place: usize,
    schedule: Schedule,
) -> Result<()> {
    let at_once = schedule == Schedule::LowLatency;
    while let Some((id, after)) = worker.collect(phase, place, at_once)? {
        if let After::Due(score) = after {
            worker.desk.mark(place, &id, Some(score))?;
        }
        if worker.desk.look(phase)? {
            return Ok(());
        }
    }
    while let Some((id, score)) = worker.desk.take_due(place)? {
        match score.filter(|score| !at_once && !worker.desk.is_average(place, *score)) {
            Some(score) => worker.desk.mark(place, &id, Some(score))?,
            None => worker.signal(phase, place, &id)?,
        }
        if worker.desk.look(phase)? {
            return Ok(());
        }
    }
    Ok(())
}
