//! The log of a run: events of [`tracing`], computed only if a subscriber listens.

use brimful_store::Moved;
use tracing::Level;

use crate::plan::division::Plan;
use crate::result::stats::{Stats, Swept, Traversal};

/// The totals up to the last superstep; the log gives the differences.
#[derive(Debug)]
pub(crate) struct SuperstepLog {
    swept: Swept,
    moved: Moved,
}

impl SuperstepLog {
    /// A log that begins after so many signals, edges and bytes.
    pub(crate) fn new(swept: Swept, moved: Moved) -> Self {
        Self { swept, moved }
    }

    /// Logs a superstep with its `traversal`, from the signals, edges and bytes of the run so far.
    pub(crate) fn tell(
        &mut self,
        (superstep, seconds): (u64, f64),
        traversal: Traversal,
        swept: Swept,
        moved: impl FnOnce() -> Moved,
    ) {
        if !tracing::enabled!(Level::INFO) {
            return;
        }
        let moved = moved();
        let (step, work) = (moved - self.moved, swept - self.swept);
        tracing::info!(
            superstep,
            seconds,
            traversal = traversal.name(),
            signals = work.signals,
            edges = work.edges,
            bytes_read = step.bytes_read(),
            bytes_written = step.bytes_written(),
            bytes_found = step.bytes_found(),
            "superstep"
        );
        *self = Self { swept, moved };
    }
}

impl Plan {
    /// Logs the location of the arrays of the run.
    pub(crate) fn log(&self) {
        tracing::info!(
            total_bytes = self.total_bytes,
            pinned_bytes = self.pinned_bytes,
            states_resident = self.states_resident,
            next_resident = self.next_resident,
            source_window = self.source_window,
            degrees_resident = self.degrees_resident,
            sparse = self.sparse.is_some(),
            reads = self.reads,
            "plan"
        );
    }
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
