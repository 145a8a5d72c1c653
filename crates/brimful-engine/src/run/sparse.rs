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

impl<P: Program> ShardRun<'_, P> {
    /// Tries a superstep that reads only the blocks with edges of the frontier; false if it was
    /// abandoned.
    pub(super) fn sparse_superstep(&mut self, edges: u64) -> Result<bool> {
        let context = &self.context;
        let (Some(frontier), Some(sparse)) = (&mut self.frontier, &self.sparse) else {
            return Ok(false);
        };
        if context.options.traversal == TraversalMode::Auto && !sparse.fits(frontier.count()) {
            return Ok(false);
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
            return Ok(false);
        }
        combine.costs = costs.as_ref();
        let Some(combined) = sparse.combine(&combine, context.resources)? else {
            return Ok(false);
        };
        self.swept += combined.swept;
        self.collect_intervals(combined.intervals)?;
        Ok(true)
    }

    /// Lets the targets of `combined` collect, which ends the superstep; those that signal become
    /// the frontier.
    pub(super) fn collect_intervals(
        &mut self,
        combined: Vec<(usize, TargetSums<SumOf<P>>)>,
    ) -> Result<()> {
        let context = &self.context;
        let Some(frontier) = &mut self.frontier else {
            unreachable!("full programs take dense supersteps")
        };
        let mut list =
            Vec::with_capacity(combined.iter().map(|(_, target_sums)| target_sums.len()).sum());
        for vertex in frontier.replace(Vec::new()) {
            self.signals[vertex as usize] = P::Combiner::SILENCE;
        }
        let window = context.window();
        let states = self.states.windows();
        let mut partials = Vec::with_capacity(combined.len());
        let mut buffer = Vec::new();
        for (interval, target_sums) in combined {
            let start = interval * window;
            let (signals, globals) = (&mut self.signals[start..], &self.globals);
            let partial = states.update(interval, &mut buffer, |states| {
                let arrays = (states, signals);
                context.collect_targets(start as u64, target_sums, arrays, globals, &mut list)
            })??;
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
    /// Lets the targets of the interval that begins at vertex `start` collect. `states` and
    /// `signals` are those from `start` on; the targets that signal are appended to `list`.
    fn collect_targets(
        &self,
        start: u64,
        target_sums: TargetSums<SumOf<P>>,
        (states, signals): (&mut [P::State], &mut [SignalOf<P>]),
        globals: &Globals<P::Aggregate>,
        list: &mut Vec<u64>,
    ) -> Result<Partial<P::Aggregate>> {
        let (mut partial, listed) = (Partial::default(), list.len());
        let vertex = |target: u32| {
            let id = start + u64::from(target);
            let (degree, strength) = self.degrees.of(id);
            Vertex { id, degree, strength, external: 0 }
        };
        let known = (globals, self.thresholds);
        if let Some(batched) = self.program.batched() {
            let arrays = (states, &mut *signals);
            collect_target_sums(batched, &target_sums, arrays, vertex, known, &mut partial)?;
            let says = |target: &u32| signals[*target as usize] != P::Combiner::SILENCE;
            let speakers = target_sums.iter().map(|(target, _)| *target).filter(says);
            list.extend(speakers.map(|target| start + u64::from(target)));
        } else {
            for (target, sum) in target_sums {
                let (place, vertex) = (target as usize, vertex(target));
                let state = &mut states[place];
                let signal =
                    turn(self.program, vertex, state, sum, globals, self.thresholds, &mut partial);
                signals[place] = signal;
                if signal != P::Combiner::SILENCE {
                    list.push(vertex.id);
                }
            }
        }
        partial.signalling = (list.len() - listed) as u64;
        Ok(partial)
    }
}
