//! Evicts all vertices with a score below the average, in one pass.
//!
//! The score of a vertex is the number of its loans; each pass halves the scores of the remaining
//! vertices, so that old use fades. With a function of the user, the score is the value of that
//! function when the vertex enters the cache. Loans maintain no order, and evictions are rare (the
//! thesis, section 3.4).

use std::fmt;
use std::sync::Arc;

use super::EvictionPolicy;
use crate::error::{Error, Result};

/// A score function of the user; vertices with high scores stay.
pub type ScoreFunction<V> =
    Arc<dyn Fn(&V) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> + Send + Sync>;

/// The policy of scores.
pub struct Score<V> {
    /// By slot; `None` for an empty one.
    scores: Vec<Option<f64>>,
    function: Option<ScoreFunction<V>>,
}

impl<V> Score<V> {
    /// The policy with scores by `function`; without a function, by the number of loans.
    pub fn new(function: Option<ScoreFunction<V>>) -> Self {
        Self { scores: Vec::new(), function }
    }
}

impl<V> Default for Score<V> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<V> fmt::Debug for Score<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Score").field("scores", &self.scores).finish_non_exhaustive()
    }
}

impl<V> EvictionPolicy<V> for Score<V> {
    fn admitted(&mut self, slot: usize, vertex: &V) -> Result<()> {
        let score = match &self.function {
            Some(function) => function(vertex).map_err(Error::Borrower)?,
            None => 0.0,
        };
        self.scores.resize(self.scores.len().max(slot + 1), None);
        self.scores[slot] = Some(score);
        Ok(())
    }

    #[inline]
    fn used(&mut self, slot: usize) {
        if self.function.is_none() {
            self.scores[slot] = Some(self.scores[slot].unwrap_or(0.0) + 1.0);
        }
    }

    fn left(&mut self, slot: usize) {
        self.scores[slot] = None;
    }

    fn choose(&mut self, out: &mut Vec<usize>) {
        let taken =
            || self.scores.iter().enumerate().filter_map(|(slot, score)| Some((slot, (*score)?)));
        let count = taken().count() as f64;
        let average: f64 = taken().map(|(_, score)| score / count).sum();
        out.extend(taken().filter(|(_, score)| *score < average).map(|(slot, _)| slot));
        if out.is_empty() {
            // All scores are equal: every second vertex is evicted.
            out.extend(taken().step_by(2).map(|(slot, _)| slot));
        }
        if self.function.is_none() {
            self.scores.iter_mut().flatten().for_each(|score| *score /= 2.0);
        }
    }
}
