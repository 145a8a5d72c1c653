//! Vertices of a score below the average leave, all in one pass.
//!
//! Nothing is kept in order while vertices are lent, and room is made seldom (the thesis, section 3.4).

use super::Policy;

/// What a vertex is worth to a cache.
type Worth<V> = Box<dyn Fn(&V) -> f64 + Send>;

/// The policy of scores.
pub struct Score<V> {
    /// By slot; `None` where nobody is.
    scores: Vec<Option<f64>>,
    worth: Option<Worth<V>>,
}

impl<V> Score<V> {
    /// A vertex is worth as much as it is used: its score is the number of its loans. The scores of those that stay are halved whenever room is made, so
    /// that what was in use long ago leaves.
    pub fn by_use() -> Self {
        Self { scores: Vec::new(), worth: None }
    }

    /// A vertex is worth what `worth` says after each loan began. Not a number counts as least.
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
        let taken = || self.scores.iter().enumerate().filter_map(|(slot, score)| Some((slot, (*score)?)));
        let count = taken().count() as f64;
        // Each is divided first, so that the sum of large ones is finite.
        let average: f64 = taken().map(|(_, score)| score / count).sum();
        out.extend(taken().filter(|(_, score)| *score < average).map(|(slot, _)| slot));
        if out.is_empty() {
            // All are worth the same: every second one leaves.
            out.extend(taken().step_by(2).map(|(slot, _)| slot));
        }
        if self.worth.is_none() {
            self.scores.iter_mut().flatten().for_each(|score| *score /= 2.0);
        }
    }
}
