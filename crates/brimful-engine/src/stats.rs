//! What a run did, in figures.

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program's convergence condition held.
    Converged,
    /// No vertex changed.
    NoChange,
    /// The number of supersteps asked for was reached.
    MaxSupersteps,
}

impl Reason {
    /// A phrase for people.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Converged => "converged within the tolerance",
            Self::NoChange => "converged: no vertex changed",
            Self::MaxSupersteps => "reached the maximum number of supersteps",
        }
    }
}

/// Figures of a run.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Supersteps done.
    pub supersteps: u64,
    /// Why the run ended.
    pub reason: Reason,
    /// Seconds of each superstep.
    pub superstep_seconds: Vec<f64>,
    /// Seconds from the first byte read to the last superstep, without building indexes.
    pub seconds: f64,
    /// Seconds spent building an index that was missing.
    pub index_seconds: f64,
    /// Signals combined.
    pub signals: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// Seconds by phase, in order.
    pub phases: Vec<(&'static str, f64)>,
    /// Compute threads.
    pub threads: usize,
}

impl Stats {
    /// True if the run ended by itself.
    pub fn converged(&self) -> bool {
        self.reason != Reason::MaxSupersteps
    }
}
