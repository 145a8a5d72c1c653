//! What the log is told of a run: events of [`tracing`], worked out only where somebody listens.

use brimful_store::Moved;
use tracing::Level;

use crate::plan::Plan;
use crate::stats::{Stats, Swept, Traversal};

/// Figures as of the superstep before, from which those of the next one are told.
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

    /// Tells of a superstep that went by `traversal`, with the run's signals, edges and bytes so far.
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
            door = traversal.name(),
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
    /// Tells the log where everything will live.
    pub(crate) fn log(&self) {
        tracing::info!(
            total_bytes = self.total_bytes,
            pinned_bytes = self.pinned_bytes,
            states_resident = self.states_resident,
            next_resident = self.next_resident,
            source_window = self.source_window,
            degrees_resident = self.degrees_resident,
            sparse = self.sparse,
            reads = self.reads,
            "plan"
        );
    }
}

impl Stats {
    /// Tells the log what a finished run did.
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
