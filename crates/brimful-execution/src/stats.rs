//! Figures of an execution.

use brimful_engine::Reason;
use brimful_vertices::{CacheStats, VertexStore};

use crate::error::Result;
use crate::lists::{IdSet, Mailbox};
use crate::program::{VertexOf, VertexProgram};
use crate::worker::Worker;

/// Figures of an execution since it was loaded. Supersteps and signals count from the start of the
/// run, even if it resumed from a checkpoint.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExecutionStats {
    /// Synchronous supersteps done.
    pub supersteps: u64,
    /// Why the last run ended.
    pub reason: Option<Reason>,
    /// Seconds spent running.
    pub seconds: f64,
    /// Signalling vertices; each is counted each time.
    pub vertices_signalled: u64,
    /// Collecting vertices; each is counted each time.
    pub vertices_collected: u64,
    /// Signals sent along edges.
    pub signals_sent: u64,
    /// Signals that arrived in a mailbox.
    pub signals_received: u64,
    /// Of these, those combined with another on arrival.
    pub signals_combined: u64,
    /// Signals to vertices that do not exist.
    pub signals_undelivered: u64,
    /// Spills of lists to disk.
    pub spills: u64,
    /// Bytes that lists wrote to disk.
    pub spilled_bytes: u64,
    /// The caches of all stores, summed, the outermost first.
    pub caches: Vec<CacheStats>,
    /// Bytes of memory of all stores.
    pub store_memory_bytes: u64,
    /// Bytes on disk of all stores.
    pub store_disk_bytes: u64,
}

impl ExecutionStats {
    /// Adds the figures of a worker.
    pub(crate) fn add<P: VertexProgram, S: VertexStore<VertexOf<P>>>(
        &mut self,
        worker: &Worker<P, S>,
    ) -> Result<()> {
        let counts = worker.context.counts;
        self.vertices_signalled += counts.signalled;
        self.vertices_collected += counts.collected;
        self.signals_sent += counts.sent;
        self.signals_undelivered += counts.undelivered;
        for mailbox in worker.context.mailboxes.iter().map(Mailbox::stats) {
            self.signals_received += mailbox.received;
            self.signals_combined += mailbox.combined;
            self.spills += mailbox.spills;
        }
        self.spills += worker.context.to_signal.iter().map(IdSet::spills).sum::<u64>();
        for store in &worker.stores {
            let store = store.stats()?;
            self.store_memory_bytes += store.memory_bytes;
            self.store_disk_bytes += store.disk_bytes;
            let deeper = store.caches.len().saturating_sub(self.caches.len());
            self.caches.extend(std::iter::repeat_n(CacheStats::default(), deeper));
            for (all, cache) in self.caches.iter_mut().zip(store.caches) {
                all.hits += cache.hits;
                all.misses += cache.misses;
                all.evicted += cache.evicted;
                all.written += cache.written;
            }
        }
        Ok(())
    }
}
