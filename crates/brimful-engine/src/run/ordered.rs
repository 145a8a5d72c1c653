//! Sparse supersteps of an ordered program whose unpacked edges do not fit in memory.
//!
//! Only the first vertices in order signal. The others hold back their signals, which better ones
//! may replace first (as in delta-stepping: Meyer and Sanders 2003). Invariant: the final states
//! are those of supersteps, for the same reason as those of a priority queue.

use std::cmp::Ordering;

use super::ShardRun;
use crate::error::Result;
use crate::plan::options::TraversalMode;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::Program;

/// One in this many vertices of the frontier signals.
const FRONTIER_PER_SIGNAL: usize = 4;
/// Vertices that signal at least: fewer would not pay for a superstep.
const FEWEST: usize = 1 << 11;

impl<P: Program> ShardRun<'_, P> {
    /// Lets the first vertices of the frontier signal; false, without effect, if all should.
    pub(super) fn ordered_superstep(&mut self, edges: u64) -> Result<bool> {
        let is_chosen = self.context.options.traversal == TraversalMode::Auto
            && self.context.division.is_none()
            && self.prefers_order(edges);
        let (Some(sparse), Some(frontier)) = (&self.sparse, &mut self.frontier) else {
            return Ok(false);
        };
        let count = frontier.count();
        if !(is_chosen && count > FEWEST as u64 && sparse.can_hold_back(count)) {
            return Ok(false);
        }
        frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE);
        let mut held_back = frontier.replace(Vec::new());
        let (program, signals) = (self.context.program, &mut self.signals);
        let last = {
            let mut all: Vec<_> = held_back.iter().map(|at| signals[*at as usize]).collect();
            let due = (all.len() / FRONTIER_PER_SIGNAL).max(FEWEST).min(all.len());
            let order = |one: &_, other: &_| match program.before(*one, *other) {
                true => Ordering::Less,
                false => program.before(*other, *one).cmp(&false),
            };
            *all.select_nth_unstable_by(due - 1, order).1
        };
        let is_due = |vertex: &mut u64| !program.before(last, signals[*vertex as usize]);
        frontier.replace(held_back.extract_if(.., is_due).collect());
        // Sparse traversal combines all signals of a block that it decodes.
        let hold_back =
            |at: &u64| std::mem::replace(&mut signals[*at as usize], P::Combiner::SILENCE);
        let their_signals: Vec<_> = held_back.iter().map(hold_back).collect();
        let combined = self.combine_sparse(edges)?;
        let is_sparse = combined.is_some();
        if let Some(combined) = combined {
            self.collect_intervals(combined)?;
        }
        for (vertex, signal) in held_back.iter().zip(their_signals) {
            let better = &mut self.signals[*vertex as usize];
            if *better == P::Combiner::SILENCE {
                *better = signal;
            }
        }
        if let Some(frontier) = &mut self.frontier {
            held_back.append(&mut frontier.replace(Vec::new()));
            held_back.sort();
            held_back.dedup();
            frontier.replace(held_back);
        }
        Ok(is_sparse)
    }
}
