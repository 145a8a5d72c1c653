//! Evicts all vertices with a score below the average, in one pass.
//!
//! Loans maintain no order, and evictions are rare (the thesis, section 3.4).

use super::Policy;

/// The score of a vertex for a cache.
type Worth<V> = Box<dyn Fn(&V) -> f64 + Send>;

/// The policy of scores.
pub struct Score<V> {
    /// By slot; `None` for an empty one.
    scores: Vec<Option<f64>>,
    worth: Option<Worth<V>>,
}

impl<V> Score<V> {
    /// Scores by use: the score of a vertex is the number of its loans. Each pass of evictions
    /// halves the scores of the remaining vertices, so that old use fades.
    pub fn by_use() -> Self {
        Self { scores: Vec::new(), worth: None }
    }

    /// Scores by `worth`, which is called when a loan begins. NaN counts as the lowest score.
    pub fn by(worth: impl Fn(&V) -> f64 + Send + 'static) -> Self {
        Self { scores: Vec::new(), worth: Some(Box::new(worth)) }
    }

    fn score(&self, vertex: &V, by_use: f64) -> f64 {
        let score = self.worth.as_ref().map_or(by_use, |worth| worth(vertex));
        if score.is_nan() { f64::MIN } else { score.clamp(f64::MIN, f64::MAX) }
    }
}

impl<V> std::fmt::Debug for Score<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Score").field("scores", &self.scores).finish_non_exhaustive()
    }
}

impl<V> Policy<V> for Score<V> {
    fn admitted(&mut self, slot: usize, vertex: &V) {
        self.scores.resize(self.scores.len().max(slot + 1), None);
        self.scores[slot] = Some(self.score(vertex, 0.0));
    }

    #[inline]
    fn used(&mut self, slot: usize, vertex: &V) {
        let loans = self.scores[slot].unwrap_or(0.0) + 1.0;
        self.scores[slot] = Some(self.score(vertex, loans));
    }

    fn left(&mut self, slot: usize) {
        self.scores[slot] = None;
    }

    fn choose(&mut self, out: &mut Vec<usize>) {
        let taken =
            || self.scores.iter().enumerate().filter_map(|(slot, score)| Some((slot, (*score)?)));
        let count = taken().count() as f64;
        // Scores are divided before summing, so that the sum of large ones is finite.
        let average: f64 = taken().map(|(_, score)| score / count).sum();
        out.extend(taken().filter(|(_, score)| *score < average).map(|(slot, _)| slot));
        if out.is_empty() {
            // All scores are equal: every second vertex is evicted.
            out.extend(taken().step_by(2).map(|(slot, _)| slot));
        }
        if self.worth.is_none() {
            self.scores.iter_mut().flatten().for_each(|score| *score /= 2.0);
        }
    }
}
