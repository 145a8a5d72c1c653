//! Dense supersteps: they visit all segments with signalling sources, and all vertices.

use std::sync::atomic::AtomicBool;

use super::ShardRun;
use super::context::unlock;
use crate::error::Result;
use crate::traverse::frontier::Frontier;
use crate::traverse::sweep::{Activity, Sources};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::collect::Collector;
use crate::vertex::isolated;
use crate::vertex::program::{Mode, Program, SumOf};
use crate::vertex::turn::{Partial, Turn};

impl<P: Program> ShardRun<'_, P> {
    /// Lets every vertex take a turn that needs no edges.
    pub(super) fn pass(&mut self, turn: Turn<'static, SumOf<P>>) -> Result<()> {
        let context = &self.context;
        let offsets = P::NEEDS_EXTERNAL.then(|| context.graph.id_offsets()).transpose()?;
        let activity = context.empty_activity();
        let arrays = (&mut self.states, &mut self.next);
        let collector = Collector {
            offsets,
            ..context.collector(arrays, activity.as_deref(), &self.finished, self.globals)
        };
        let first = context.owned.start;
        let partials = context.resources.parallel_map(context.owned.len(), |index, buffers| {
            let partial = collector.interval(first + index, turn, buffers);
            context.resources.job.advance(1);
            partial
        })?;
        drop(collector);
        // In a full program isolated vertices take their first turn, in others none.
        let isolated = self.evolve_isolated()?;
        let partials = self.end_superstep(partials, activity, isolated)?;
        if P::MODE != Mode::Full {
            self.finished = partials.iter().map(|partial| partial.open == 0).collect();
        }
        self.record_frontier();
        Ok(())
    }

    /// Runs one superstep with all signals in memory.
    pub(super) fn dense_superstep(&mut self, edges: u64) -> Result<()> {
        self.context
            .resources
            .job
            .begin(format!("superstep {}", self.globals.superstep + 1), edges);
        let context = &self.context;
        let (partials, activity) = (context.empty_partials(), context.empty_activity());
        let walked = context.walked(&self.globals);
        let signalling = self
            .frontier
            .as_mut()
            .map_or(Activity::All, |frontier| Activity::Marked(frontier.map()));
        let sweep = context.sweep(Sources::all(&self.signals), signalling, &walked, &self.finished);
        let arrays = (&mut self.states, &mut self.next);
        let collector =
            context.collector(arrays, activity.as_deref(), &self.finished, self.globals);
        self.swept +=
            context.sweep_and_collect(&sweep, &collector, &context.buffers(), &partials)?;
        drop(collector);
        let isolated = self.evolve_isolated()?;
        self.globals.superstep += 1;
        self.end_superstep(unlock(partials).collect(), activity, isolated)?;
        Ok(())
    }

    /// Lets the vertices without edges take a turn; returns their part of the aggregate.
    pub(super) fn evolve_isolated(&mut self) -> Result<P::Aggregate> {
        let context = &self.context;
        isolated::evolve(
            context.program,
            context.graph,
            &mut self.isolated,
            &self.globals,
            context.thresholds,
        )
    }

    /// Publishes the new signals, and merges the intervals in order, then the isolated vertices.
    /// `partials` are those of this process; returns those of all intervals.
    pub(super) fn end_superstep(
        &mut self,
        partials: Vec<Partial<P::Aggregate>>,
        activity: Option<Vec<AtomicBool>>,
        isolated: P::Aggregate,
    ) -> Result<Vec<Partial<P::Aggregate>>> {
        if self.context.division.is_some() {
            self.publish_own()?;
        } else if self.spilled_sums.is_none() {
            self.next.publish_into(&mut self.signals)?;
        }
        // Else the only array of signals is `next`; windows are read from it when they are due.
        let own = self.context.owned.clone().zip(partials).collect();
        let turned = self.exchange(own, activity, None)?;
        self.conclude(turned.partials.iter().copied(), turned.activity, isolated);
        Ok(turned.partials)
    }

    /// Merges the intervals in order, then the isolated vertices, and sets the frontier.
    pub(super) fn conclude(
        &mut self,
        partials: impl IntoIterator<Item = Partial<P::Aggregate>>,
        activity: Option<Vec<AtomicBool>>,
        isolated: P::Aggregate,
    ) {
        let mut whole = Partial::<P::Aggregate>::default();
        for partial in partials {
            whole.aggregate = whole.aggregate.merge(partial.aggregate);
            whole.signalling += partial.signalling;
        }
        self.globals.aggregate = whole.aggregate.merge(isolated).after(self.globals.aggregate);
        let vertices = self.context.graph.connected() as usize;
        self.frontier = activity.map(|map| Frontier::marked(vertices, map, whole.signalling));
    }
}
