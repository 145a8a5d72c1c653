//! The figures of algorithms that count as one superstep.

use std::time::Instant;

use brimful_engine::Stats;
use brimful_engine::result::stats::Traversal;
use brimful_engine::supersteps::moved;
use brimful_graph::Graph;
use brimful_store::{Moved, Resources};

/// The clock of a run with one pass over the edges, and the bytes moved before it.
pub(crate) struct OnePass<'r> {
    graph: &'r Graph,
    resources: &'r Resources,
    moved_before: Moved,
    /// The beginning of the phase.
    begin: Instant,
    /// The phases that have ended, with their seconds.
    phases: Vec<(&'static str, f64)>,
}

impl<'r> OnePass<'r> {
    /// Begins the first phase.
    pub(crate) fn begin(graph: &'r Graph, resources: &'r Resources) -> Self {
        let moved_before = moved(graph, resources);
        Self { graph, resources, moved_before, begin: Instant::now(), phases: Vec::new() }
    }

    /// Ends a phase, and begins the next one.
    pub(crate) fn end(&mut self, phase: &'static str) {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.phases.push((phase, seconds));
        self.begin = Instant::now();
    }

    /// Ends the last phase. `edges` is the number of edges visited.
    pub(crate) fn finish(mut self, phase: &'static str, traversal: Traversal, edges: u64) -> Stats {
        self.end(phase);
        let moved = moved(self.graph, self.resources) - self.moved_before;
        Stats::one_pass(traversal, self.phases, edges, moved, self.resources.workers())
    }
}
