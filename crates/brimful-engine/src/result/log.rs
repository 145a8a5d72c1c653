//! The log of a run: events of [`tracing`], computed only if a subscriber listens.

use tracing::Level;

use crate::plan::memory::Plan;
use crate::plan::needs::Needs;
use crate::result::stats::{Stats, Traversal, Work};

impl Work {
    /// Logs the work of a superstep with its `traversal`.
    pub(crate) fn log(&self, superstep: u64, traversal: Traversal) {
        tracing::info!(
            superstep,
            seconds = self.seconds,
            traversal = traversal.name(),
            frontier = self.frontier,
            signals = self.swept.signals,
            edges = self.swept.edges,
            bytes_read = self.bytes_read,
            bytes_written = self.bytes_written,
            bytes_found = self.bytes_found,
            "superstep"
        );
    }
}

impl Plan {
    /// Logs the location of the arrays of the run.
    pub(crate) fn log(&self, needs: &Needs) {
        tracing::info!(
            total_bytes = self.total_bytes,
            pinned_bytes = self.pinned_bytes,
            states_resident = self.states_resident,
            next_resident = self.next_resident,
            source_window = self.source_window,
            degrees_resident = self.degrees_resident,
            sparse = self.sparse.is_some(),
            exchange_bytes = self.exchange_bytes,
            reads = self.reads,
            "plan"
        );
        if self.exchange_bytes < needs.exchange {
            log_unshared("signals", needs.exchange);
        }
    }
}

/// Logs that processes exchange these values without the memory that they could share.
pub(crate) fn log_unshared(values: &str, memory_bytes: u64) {
    tracing::info!(
        memory_bytes,
        "the budget is too small to share {values} in memory; Ray's object store carries them"
    );
}

impl Stats {
    /// Logs the figures of a finished run.
    pub fn log(&self) {
        if !tracing::enabled!(Level::INFO) {
            return;
        }
        for (phase, seconds) in &self.phases {
            tracing::info!(phase, seconds, "phase");
        }
        self.moved.log();
        tracing::info!(
            supersteps = self.supersteps,
            sparse_supersteps = self.durations.count(Traversal::Sparse),
            reason = self.reason.phrase(),
            seconds = self.seconds,
            index_seconds = self.index_seconds,
            signals = self.signals,
            edges = self.edges_visited,
            threads = self.threads,
            "run"
        );
    }
}
