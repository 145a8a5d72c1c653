//! A synchronous superstep: all vertices signal, then all collect (Signal/Collect 2010, section
//! 3.1).
//!
//! Vertices collect, and so signal in the next superstep, by ascending ids: the order of the
//! signals from one worker does not depend on the memory of the lists. Invariant: no vertex
//! collects before every signal of the superstep has arrived.

use brimful_vertices::VertexStore;

use crate::context::{Next, Phase};
use crate::error::Result;
use crate::program::{VertexOf, VertexProgram};
use crate::worker::{After, Worker};

/// Lets the due vertices of a worker signal, and receives packets until all workers are done.
pub(crate) fn signal<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    if worker.is_fresh || phase.program.is_full() {
        worker.signal_all(phase)?;
    }
    for slot in 0..worker.stores.len() {
        while let Some((id, _)) = worker.context.take_due(slot)? {
            worker.signal(phase, slot, &id)?;
            if worker.context.poll(phase)? {
                return Ok(());
            }
        }
    }
    while worker.context.wait(phase, false)? != Next::End {}
    Ok(())
}

/// Lets the vertices of a worker collect that have received signals.
pub(crate) fn collect<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    for slot in 0..worker.stores.len() {
        // There is more than one generation only after an asynchronous run was stopped.
        while worker.context.has_messages(phase, slot)? {
            worker.context.begin_in_order(phase, slot)?;
            if phase.program.batch() > 1 {
                while worker.collect_together(phase, slot)? {
                    if worker.context.poll(phase)? {
                        return Ok(());
                    }
                }
                continue;
            }
            while let Some((id, after)) = worker.collect(phase, slot, false)? {
                if let After::Due(_) = after {
                    worker.context.mark(slot, &id, None)?;
                }
                if worker.context.poll(phase)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
