//! Asynchronous mode: each worker collects and signals until no worker has any work left.
//!
//! An under-loaded worker waits for more signals while others work, at most twice its longest
//! generation, because a vertex that responds to half of its signals must respond again.
//!
//! Invariant: a stop between two vertices loses nothing. The remaining work is in lists, packets
//! and queues.

use brimful_vertices::VertexStore;

use crate::context::{Next, Phase};
use crate::error::Result;
use crate::options::Scheduler;
use crate::program::{VertexOf, VertexProgram};
use crate::synchronous::collect;
use crate::worker::{After, Worker};

/// Works until no worker has any work left, or the phase is stopped.
pub(crate) fn work<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
    schedule: Scheduler,
) -> Result<()> {
    if worker.is_fresh {
        worker.signal_all(phase)?;
    }
    loop {
        worker.context.take_in(phase)?;
        let has_work = worker.context.has_any_messages(phase)? || worker.context.is_any_due()?;
        let mut are_others_idle = false;
        if !has_work || worker.context.is_under_loaded() {
            match worker.context.wait(phase, has_work)? {
                Next::Arrived => continue,
                Next::AllIdle => are_others_idle = true,
                Next::BackOffEnded => {}
                Next::End => return Ok(()),
            }
        }
        worker.context.begin_generation(are_others_idle);
        for slot in 0..worker.stores.len() {
            sweep(phase, worker, slot, schedule)?;
            if phase.exchange.is_stopped() {
                return Ok(());
            }
        }
        worker.context.end_generation();
        // Idle workers may wait for these packets.
        worker.context.flush(phase)?;
    }
}

/// Lets vertices collect until no signal is in flight; no vertex signals.
pub(crate) fn drain_signals<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    loop {
        collect(phase, worker)?;
        if !worker.context.flush(phase)? {
            return Ok(());
        }
        // Sending receives packets as well.
        if !worker.context.has_any_messages(phase)?
            && worker.context.wait(phase, false)? == Next::End
        {
            return Ok(());
        }
    }
}

/// Lets the vertices of a partition collect and signal, each at most once.
fn sweep<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
    slot: usize,
    schedule: Scheduler,
) -> Result<()> {
    let at_once = schedule == Scheduler::LowLatency;
    while let Some((id, after)) = worker.collect(phase, slot, at_once)? {
        if let After::Due(score) = after {
            worker.context.mark(slot, &id, Some(score))?;
        }
        if worker.context.poll(phase)? {
            return Ok(());
        }
    }
    while let Some((id, score)) = worker.context.take_due(slot)? {
        match score.filter(|score| !at_once && !worker.context.is_average(slot, *score)) {
            Some(score) => worker.context.mark(slot, &id, Some(score))?,
            None => worker.signal(phase, slot, &id)?,
        }
        if worker.context.poll(phase)? {
            return Ok(());
        }
    }
    Ok(())
}
