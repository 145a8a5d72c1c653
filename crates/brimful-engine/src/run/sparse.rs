//! Supersteps of few vertices, by sparse traversal.

use super::ShardRun;
use super::context::RunContext;
use crate::error::Result;
use crate::plan::cost_model::CostModel;
use crate::plan::options::TraversalMode;
use crate::traverse::sparse::{Combine, FEW, TargetSums};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::batch::collect_target_sums;
use crate::vertex::collect::turn;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Globals, Program, SignalOf, SumOf, Vertex};
use crate::vertex::turn::Partial;

/// The sums of targets by interval, ascending.
pub(super) type IntervalSums<P> = Vec<(usize, TargetSums<SumOf<P>>)>;

/// States on disk are read and written in ranges of targets that are at most this far apart, so
/// that few targets do not cost a whole interval.
const NEARBY: u32 = 1 << 12;

impl<P: Program> ShardRun<'_, P> {
    /// Tries a superstep that reads only the blocks with edges of the frontier; false if it was
    /// abandoned.
    pub(super) fn sparse_superstep(&mut self, edges: u64) -> Result<bool> {
        let Some(combined) = self.combine_sparse(edges)? else { return Ok(false) };
        self.collect_intervals(combined)?;
        Ok(true)
    }

    /// Combines the signals of the frontier into the targets of each interval; `None` if dense
    /// traversal is faster.
    pub(super) fn combine_sparse(&mut self, edges: u64) -> Result<Option<IntervalSums<P>>> {
        let context = &self.context;
        let (Some(frontier), Some(sparse)) = (&mut self.frontier, &self.sparse) else {
            return Ok(None);
        };
        if context.options.traversal == TraversalMode::Auto && !sparse.fits(frontier.count()) {
            return Ok(None);
        }
        context.show_sometimes(self.globals.superstep, edges);
        context.resources.job.check()?;
        let walked = context.walked(&self.globals);
        let mut combine = Combine {
            program: context.program,
            walked: &walked,
            files: &context.files,
            signals: &self.signals,
            frontier: frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE),
            finished: &self.finished,
            weighted: context.options.weighted,
            interval_bits: context.graph.description().interval_bits,
            costs: None,
        };
        let costs = sparse.costs(&combine);
        let is_slower = |costs: &CostModel| match self.asynchronous {
            None => !costs.prefers_sparse(),
            // The choice decides which signals meet, so a resumed run must repeat it.
            Some(_) => combine.frontier.len() > FEW && !costs.prefers_sparse_decoding(),
        };
        if context.options.traversal == TraversalMode::Auto && costs.as_ref().is_some_and(is_slower)
        {
            return Ok(None);
        }
        combine.costs = costs.as_ref();
        context.free.clear();
        let Some(combined) = sparse.combine(&combine, context.resources)? else {
            return Ok(None);
        };
        self.swept += combined.swept;
        Ok(Some(combined.intervals))
    }

    /// Lets the targets of `combined` collect, which ends the superstep; those that signal become
    /// the frontier.
    pub(super) fn collect_intervals(&mut self, combined: IntervalSums<P>) -> Result<()> {
        let context = &self.context;
        let Some(frontier) = &mut self.frontier else {
            unreachable!("full programs take dense supersteps")
        };
        let mut list =
            Vec::with_capacity(combined.iter().map(|(_, target_sums)| target_sums.len()).sum());
        for vertex in frontier.replace(Vec::new()) {
            self.signals[vertex as usize] = P::Combiner::SILENCE;
        }
        let (window, state_len) = (context.window(), context.program.state_len());
        let farthest = if self.states.is_resident() { u32::MAX } else { NEARBY };
        let states = self.states.windows();
        let mut partials = Vec::with_capacity(combined.len());
        let mut buffer = Vec::new();
        for (interval, mut target_sums) in combined {
            let mut partial = Partial::default();
            for near in target_sums.chunk_by_mut(|one, other| other.0 - one.0 <= farthest) {
                let (first, len) = (near[0].0, near[near.len() - 1].0 - near[0].0 + 1);
                near.iter_mut().for_each(|(target, _)| *target -= first);
                let start = interval * window + first as usize;
                let (signals, globals) = (&mut self.signals[start..], &self.globals);
                let values = start * state_len..(start + len as usize) * state_len;
                states.update_part(values, &mut buffer, |states| {
                    let start = start as u64;
                    context.collect_targets(
                        start,
                        near,
                        states,
                        signals,
                        globals,
                        &mut partial,
                        &mut list,
                    )
                })??;
            }
            partials.push((interval, partial));
        }
        drop(states);
        self.globals.superstep += 1;
        let activity = self.context.division.as_ref().and_then(|_| self.context.empty_activity());
        let turned = self.exchange(partials, activity, Some(list))?;
        match (turned.list, &mut self.frontier) {
            (Some(list), Some(frontier)) => {
                let merge =
                    |whole: P::Aggregate, partial: &Partial<_>| whole.merge(partial.aggregate);
                let whole = turned.partials.iter().fold(P::Aggregate::NOTHING, merge);
                self.globals.aggregate = whole.after(self.globals.aggregate);
                frontier.replace(list);
            }
            _ => self.conclude(turned.partials, turned.activity, P::Aggregate::NOTHING),
        }
        Ok(())
    }
}

impl<P: Program> RunContext<'_, P> {
    /// Lets targets, counted from vertex `start` on, collect. `states` and `signals` are those from
    /// `start` on; the targets that signal are appended to `list`.
    fn collect_targets(
        &self,
        start: u64,
        target_sums: &[(u32, SumOf<P>)],
        states: &mut [P::State],
        signals: &mut [SignalOf<P>],
        globals: &Globals<P::Aggregate>,
        partial: &mut Partial<P::Aggregate>,
        list: &mut Vec<u64>,
    ) -> Result<()> {
        let listed = list.len();
        let vertex = |target: u32| {
            let id = start + u64::from(target);
            let (degree, strength) = self.degrees.of(id);
            Vertex { id, degree, strength, external: 0 }
        };
        if P::BATCHED {
            collect_target_sums(
                self.program.batched(),
                target_sums,
                states,
                &mut *signals,
                vertex,
                globals,
                self.thresholds,
                partial,
            )?;
            let signalled = |target: &u32| signals[*target as usize] != P::Combiner::SILENCE;
            let targets = target_sums.iter().map(|(target, _)| *target).filter(signalled);
            list.extend(targets.map(|target| start + u64::from(target)));
        } else {
            for &(target, sum) in target_sums {
                let (at, vertex) = (target as usize, vertex(target));
                let state = &mut states[at];
                let signal =
                    turn(self.program, vertex, state, sum, globals, self.thresholds, partial);
                signals[at] = signal;
                if signal != P::Combiner::SILENCE {
                    list.push(vertex.id);
                }
            }
        }
        partial.signalling += (list.len() - listed) as u64;
        Ok(())
    }
}
