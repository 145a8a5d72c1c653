//! Evicts all vertices with a score below the average, in one pass.
//!
//! The score of a vertex is the number of its loans. Each pass halves the scores of the remaining
//! vertices, so that old use fades. Loans maintain no order, and evictions are rare (the thesis,
//! section 3.4).

use super::EvictionPolicy;

/// The policy of scores.
#[derive(Debug, Default)]
pub struct Score {
    /// By slot; `None` for an empty one.
    scores: Vec<Option<f64>>,
}

impl EvictionPolicy for Score {
    fn admitted(&mut self, slot: usize) {
        self.scores.resize(self.scores.len().max(slot + 1), None);
        self.scores[slot] = Some(0.0);
    }

    #[inline]
    fn used(&mut self, slot: usize) {
        self.scores[slot] = Some(self.scores[slot].unwrap_or(0.0) + 1.0);
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
        self.scores.iter_mut().flatten().for_each(|score| *score /= 2.0);
    }
}
