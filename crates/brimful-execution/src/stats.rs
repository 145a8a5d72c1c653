//! Figures of an execution.

pub use brimful_engine::result::stats::store::{ExecutionStats, SuperstepFigures};

use brimful_vertices::VertexStore;

use crate::error::Result;
use crate::lists::{IdSet, Mailbox};
use crate::program::{VertexOf, VertexProgram};
use crate::worker::Worker;

/// Adds the figures of a worker.
pub(crate) fn add<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
    stats: &mut ExecutionStats,
    worker: &Worker<P, S>,
) -> Result<()> {
    let counts = worker.context.counts;
    stats.vertices_signalled += counts.signalled;
    stats.vertices_collected += counts.collected;
    stats.edges_visited += counts.edges;
    stats.signals_sent += counts.sent;
    stats.signals_undelivered += counts.undelivered;
    // Every signal passes a relay, if there are relays.
    let relays = worker.context.mailboxes.get(worker.stores.len()..).unwrap_or_default();
    let arriving = if relays.is_empty() { &worker.context.mailboxes } else { relays };
    stats.signals_received += arriving.iter().map(|one| one.stats().received).sum::<u64>();
    for mailbox in worker.context.mailboxes.iter().map(Mailbox::stats) {
        stats.signals_combined += mailbox.combined;
        stats.spills += mailbox.spills;
    }
    stats.spills += worker.context.to_signal.iter().map(IdSet::spills).sum::<u64>();
    for store in &worker.stores {
        let store = store.stats()?;
        stats.store_memory_bytes += store.memory_bytes;
        stats.store_disk_bytes += store.disk_bytes;
        stats.has_uncounted_bytes |= store.has_uncounted_bytes;
        stats.vertices_read += store.reads;
        stats.vertices_written += store.writes;
        stats.add_caches(&store.caches);
    }
    Ok(())
}
