//! The rest of a run of an ordered program: one traversal, if the unpacked edges fit in memory.

use brimful_store::scratch::ScratchArray;

use super::ShardRun;
use crate::error::Result;
use crate::result::stats::Swept;
use crate::traverse::priority_queue::{
    BRIEF, PASSES_WORTH_UNPACKING, PriorityQueue, VERTICES_PER_CHECK,
};
use crate::vertex::collect::turn;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Program, Vertex};
use crate::vertex::turn::Partial;

impl<P: Program> ShardRun<'_, P> {
    /// True if supersteps or sweeps are likely to visit many more edges than a priority queue
    /// costs: they already have, or they will if as many supersteps follow as were done and each
    /// visits as many edges as the last one.
    pub(super) fn is_long(&self, edges: u64) -> bool {
        let ahead = self.globals.superstep.saturating_mul(self.last_visits);
        self.swept.edges.max(ahead) > BRIEF.max(PASSES_WORTH_UNPACKING * edges)
    }

    /// True if the rest of the run may be an ordered traversal. A limit of supersteps needs
    /// supersteps.
    pub(super) fn prefers_order(&self, edges: u64) -> bool {
        let options = self.context.options;
        let is_limited = options.max_supersteps != u64::MAX || options.max_seconds.is_some();
        P::ORDERED && !is_limited && self.is_long(edges)
    }

    /// Lets vertices signal in order until none is due; false if supersteps continue.
    pub(super) fn prioritized_superstep(&mut self, edges: u64) -> Result<bool> {
        if !(self.context.plan.unpacked && self.prefers_order(edges)) {
            return Ok(false);
        }
        let Some(frontier) = &mut self.frontier else { return Ok(false) };
        let context = &mut self.context;
        context.resources.job.begin("in order", edges);
        frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE);
        let seeds = frontier.replace(Vec::new());
        // Frees the arrays of supersteps: none follows.
        self.sparse = None;
        self.next = ScratchArray::resident(0, context.window());
        let adjacencies = context.unpack(|files| vec![files])?;
        let [adjacency] = &adjacencies[..] else { unreachable!("all files are unpacked together") };
        let Some(states) = self.states.in_memory_mut() else {
            unreachable!("the plan of an ordered traversal keeps states in memory")
        };
        let (signals, mut partial) = (&mut self.signals, Partial::default());
        let mut queue = PriorityQueue::new(states.len());
        for seed in seeds {
            queue.push(seed as usize, |one, other| {
                context.program.before(signals[one as usize], signals[other as usize])
            });
        }
        let mut swept = Swept::default();
        loop {
            context.resources.job.check()?;
            for _ in 0..VERTICES_PER_CHECK {
                let next = queue.pop(|one, other| {
                    context.program.before(signals[one as usize], signals[other as usize])
                });
                let Some(source) = next else {
                    self.swept += swept;
                    self.globals.superstep += 1;
                    return Ok(true);
                };
                let signal = std::mem::replace(&mut signals[source], P::Combiner::SILENCE);
                let edges = adjacency.each(source, |target, weight| {
                    let (degree, strength) = context.degrees.of(target as u64);
                    let vertex = Vertex { id: target as u64, degree, strength, external: 0 };
                    let sum = P::Combiner::combine(
                        P::Combiner::IDENTITY,
                        context.program.along(signal, weight),
                    );
                    let signal = turn(
                        context.program,
                        vertex,
                        &mut states[target],
                        sum,
                        &self.globals,
                        context.thresholds,
                        &mut partial,
                    );
                    if signal != P::Combiner::SILENCE {
                        signals[target] = signal;
                        queue.push(target, |one, other| {
                            context.program.before(signals[one as usize], signals[other as usize])
                        });
                    }
                });
                swept += Swept { signals: edges, edges };
                context.resources.job.advance(edges);
            }
        }
    }
}
