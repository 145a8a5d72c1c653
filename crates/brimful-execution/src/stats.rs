//! Figures of an execution.

pub use brimful_engine::result::stats::store::{ExecutionStats, SuperstepFigures};

use brimful_store::CacheStats;
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
    for mailbox in worker.context.mailboxes.iter().map(Mailbox::stats) {
        stats.signals_received += mailbox.received;
        stats.signals_combined += mailbox.combined;
        stats.spills += mailbox.spills;
    }
    stats.spills += worker.context.to_signal.iter().map(IdSet::spills).sum::<u64>();
    for store in &worker.stores {
        let store = store.stats()?;
        stats.store_memory_bytes += store.memory_bytes;
        stats.store_disk_bytes += store.disk_bytes;
        stats.vertices_read += store.reads;
        stats.vertices_written += store.writes;
        let deeper = store.caches.len().saturating_sub(stats.caches.len());
        stats.caches.extend(std::iter::repeat_n(CacheStats::default(), deeper));
        for (all, cache) in stats.caches.iter_mut().zip(store.caches) {
            all.hits += cache.hits;
            all.misses += cache.misses;
            all.evicted += cache.evicted;
            all.written += cache.written;
        }
    }
    Ok(())
}
