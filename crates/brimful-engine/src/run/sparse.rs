//! Supersteps of few vertices, by sparse traversal.

use super::Run;
use crate::aggregate::Aggregate;
use crate::batch::collect_letters;
use crate::collect::{Partial, turn};
use crate::combiner::Combiner;
use crate::error::{Error, Result};
use crate::options::TraversalMode;
use crate::program::{Program, SumOf, Vertex};
use crate::sparse::{Combine, Letters};

impl<P: Program> Run<'_, P> {
    /// Tries to do a superstep by reading only the blocks that the frontier has edges in.
    pub(super) fn sparse_superstep(&mut self, edges: u64) -> Result<bool> {
        let fixed = &self.fixed;
        let (Some(frontier), Some(sparse)) = (&mut self.frontier, &self.sparse) else {
            return Ok(false);
        };
        if fixed.options.traversal == TraversalMode::Auto && !sparse.has_room(frontier.count()) {
            return Ok(false);
        }
        fixed.show_sometimes(self.globals.superstep, edges);
        fixed.resources.job.check()?;
        let walked = fixed.walked(&self.globals);
        let mut combine = Combine {
            program: fixed.program,
            walked: &walked,
            files: &fixed.files,
            signals: &self.signals,
            frontier: frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE),
            over: &self.over,
            weighted: fixed.options.weighted,
            interval_bits: fixed.graph.description().interval_bits,
            costs: None,
        };
        let costs = sparse.costs(&combine);
        if fixed.options.traversal == TraversalMode::Auto
            && costs.as_ref().is_some_and(|costs| !costs.prefers_sparse())
        {
            return Ok(false);
        }
        combine.costs = costs.as_ref();
        let Some(mail) = sparse.combine(&combine, fixed.resources)? else {
            return Ok(false);
        };
        self.swept += mail.swept;
        self.collect_mail(mail.intervals)?;
        self.globals.superstep += 1;
        Ok(true)
    }

    /// Lets the vertices that got letters collect, and makes those that signal the frontier.
    pub(super) fn collect_mail(&mut self, mail: Vec<(usize, Letters<SumOf<P>>)>) -> Result<()> {
        let fixed = &self.fixed;
        let Some(frontier) = &mut self.frontier else { return Ok(()) };
        let mut list = Vec::with_capacity(mail.iter().map(|(_, letters)| letters.len()).sum());
        for vertex in frontier.replace(Vec::new()) {
            self.signals[vertex as usize] = P::Combiner::SILENCE;
        }
        let window = fixed.window();
        let states = self.states.windows();
        let mut aggregate = P::Aggregate::NOTHING;
        let mut room = Vec::new();
        for (interval, letters) in mail {
            let start = interval * window;
            let signals = &mut self.signals[start..];
            let mut partial = Partial::default();
            let vertex = |target: u32| {
                let id = start as u64 + u64::from(target);
                let (degree, strength) = fixed.degrees.of(id);
                Vertex { id, degree, strength, external: 0 }
            };
            states.update(interval, &mut room, |states| {
                if let Some(batched) = fixed.program.batched() {
                    let (arrays, known) = ((states, &mut *signals), (&self.globals, fixed.thresholds));
                    collect_letters(batched, &letters, arrays, vertex, known, &mut partial)?;
                    let says = |target: &u32| signals[*target as usize] != P::Combiner::SILENCE;
                    let speakers = letters.iter().map(|(target, _)| *target).filter(says);
                    list.extend(speakers.map(|target| start as u64 + u64::from(target)));
                    return Ok(());
                }
                for (target, sum) in letters {
                    let (target, vertex) = (target as usize, vertex(target));
                    let state = &mut states[target];
                    let signal = turn(
                        fixed.program,
                        vertex,
                        state,
                        sum,
                        &self.globals,
                        fixed.thresholds,
                        &mut partial,
                    );
                    signals[target] = signal;
                    if signal != P::Combiner::SILENCE {
                        list.push(vertex.id);
                    }
                }
                Ok::<_, Error>(())
            })??;
            aggregate = aggregate.merge(partial.aggregate);
        }
        self.globals.aggregate = aggregate;
        frontier.replace(list);
        Ok(())
    }
}
