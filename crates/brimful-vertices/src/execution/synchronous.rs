//! A synchronous superstep: all signal, then all collect (Signal/Collect 2010, section 3.1).
//!
//! Invariant: no vertex collects before every signal of the superstep has arrived.

use crate::error::Result;
use crate::execution::desk::{Next, Phase};
use crate::execution::worker::{After, Worker};
use crate::program::{VertexOf, VertexProgram};
use crate::store::VertexStore;

/// Lets the vertices of a worker signal that have something to, and takes in what others send until all have.
pub(super) fn signal<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    if worker.is_fresh || phase.program.is_full() {
        worker.signal_all(phase)?;
    }
    for place in 0..worker.stores.len() {
        while let Some((id, _)) = worker.desk.take_due(place)? {
            worker.signal(phase, place, &id)?;
            if worker.desk.look(phase)? {
                return Ok(());
            }
        }
    }
    while worker.desk.wait(phase, false)? != Next::End {}
    Ok(())
}

/// Lets the vertices of a worker collect for which something waits.
pub(super) fn collect<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    phase: &Phase<'_, P>,
    worker: &mut Worker<P, S>,
) -> Result<()> {
    for place in 0..worker.stores.len() {
        // More than one generation only where an asynchronous run was stopped before.
        while worker.desk.has_mail(place)? {
            while let Some((id, after)) = worker.collect(phase, place, false)? {
                if let After::Due(_) = after {
                    worker.desk.mark(place, &id, None)?;
                }
                if worker.desk.look(phase)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
