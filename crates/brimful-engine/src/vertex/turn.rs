//! The turns that a vertex takes, and the partial results of an interval.

use crate::vertex::aggregate::Aggregate;

/// The partial result of collecting an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partial<A> {
    pub(crate) aggregate: A,
    /// Vertices that signal next.
    pub(crate) signalling: u64,
    /// Sum of signal scores, if it is needed.
    pub(crate) score: f64,
    /// After a turn without edges: vertices that signal next or are not finished.
    pub(crate) open: u64,
}

impl<A: Aggregate> Default for Partial<A> {
    fn default() -> Self {
        Self { aggregate: A::NOTHING, signalling: 0, score: 0.0, open: 0 }
    }
}

/// The turn of the vertices of an interval.
#[derive(Debug, Clone, Copy)]
pub enum Turn<'s, S> {
    /// Take their first state.
    First,
    /// Begin another round.
    Round,
    /// Collect these sums.
    Collect(&'s [S]),
}

/// Default score above which a vertex signals (as in Signal/Collect).
pub const SIGNAL_THRESHOLD: f64 = 0.01;
/// Default score above which a vertex collects (as in Signal/Collect).
pub const COLLECT_THRESHOLD: f64 = 0.0;

/// Scores above which vertices act.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Above this a vertex signals.
    pub signal: f64,
    /// Above this a vertex collects.
    pub collect: f64,
}

impl Thresholds {
    /// The thresholds that the user chose, or the defaults [`SIGNAL_THRESHOLD`] and
    /// [`COLLECT_THRESHOLD`].
    pub fn new(signal: Option<f64>, collect: Option<f64>) -> Self {
        Self {
            signal: signal.unwrap_or(SIGNAL_THRESHOLD),
            collect: collect.unwrap_or(COLLECT_THRESHOLD),
        }
    }
}
