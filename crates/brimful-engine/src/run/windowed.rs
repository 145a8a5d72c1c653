//! Supersteps whose signals do not fit in memory: one source window after another.
//!
//! All signals are in one scratch array. A *source window* of it, a multiple of the interval, is
//! read, and its signals are combined into sums. The sums are spilled until all windows are done;
//! then every interval collects. All windows of one index come before those of the next, because
//! sums have this order. Invariant: a vertex outside the frontier has silence in the array, so that
//! windows without signals, and intervals that receive none, are skipped.

use std::ops::Range;

use super::ShardRun;
use crate::error::Result;
use crate::traverse::frontier::{Frontier, is_any_marked};
use crate::traverse::sweep::{Activity, Sources};
use crate::vertex::collect::CollectBuffers;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program};
use crate::vertex::turn::{Partial, Turn};

impl<P: Program> ShardRun<'_, P> {
    /// One superstep; false if all signals are in memory.
    pub(super) fn windowed_superstep(&mut self, edges: u64) -> Result<bool> {
        let Some(spilled) = &self.spilled_sums else { return Ok(false) };
        let (context, finished) = (&self.context, &self.finished);
        context.resources.job.begin(format!("superstep {}", self.globals.superstep + 1), edges);
        let marks = self.frontier.as_mut().map(Frontier::map);
        let activity = marks.map_or(Activity::All, Activity::Marked);
        let signals_now =
            |vertices: Range<u64>| marks.is_none_or(|marks| is_any_marked(marks, vertices));
        let vertices = context.graph.connected();
        let of_interval = |interval: usize| {
            let start = (interval * context.window()) as u64;
            start..vertices.min(start + context.window() as u64)
        };
        let walked = context.walked(&self.globals);
        for file in (0..walked.len()).filter(|file| walked[*file]) {
            let walked: Vec<bool> = (0..walked.len()).map(|other| other == file).collect();
            for first in (0..vertices).step_by(self.signals.len().max(1)) {
                let count = self.signals.len().min((vertices - first) as usize);
                let window = &mut self.signals[..count];
                let sources = Sources { first, signals: &*window, vertices };
                if !context.sweep(sources, activity, &walked, finished).has_any_work() {
                    continue;
                }
                context.resources.job.check()?;
                let first_interval = first as usize / context.window();
                for (index, signals) in window.chunks_mut(context.window()).enumerate() {
                    let range = of_interval(first_interval + index);
                    match signals_now(range.clone()) {
                        true => self.next.read(range.start as usize, signals)?,
                        false => signals.fill(P::Combiner::SILENCE),
                    }
                }
                let sources = Sources { first, signals: &*window, vertices };
                self.swept += context.sweep(sources, activity, &walked, finished).spill(spilled)?;
            }
        }
        let next_activity = context.empty_activity();
        let arrays = (&mut self.states, &mut self.next);
        let collector = context.collector(arrays, next_activity.as_deref(), finished, self.globals);
        let partials = context.resources.parallel_map(
            context.schedule.intervals,
            |interval, buffers: &mut CollectBuffers<P>| {
                if P::MODE == Mode::Full || spilled.has(interval) {
                    let sums = spilled.take(interval, &context.free, context.program)?;
                    let partial = collector.interval(interval, Turn::Collect(&sums), buffers);
                    context.free.give_back(sums);
                    return partial;
                }
                // Collecting the sum of no signals would change nothing, but old signals must not
                // be received again.
                match signals_now(of_interval(interval)) {
                    true => collector.silence(interval, buffers),
                    false => Ok(Partial::default()),
                }
            },
        )?;
        drop(collector);
        let isolated = self.evolve_isolated()?;
        self.globals.superstep += 1;
        self.end_superstep(partials, next_activity, isolated)?;
        Ok(true)
    }
}
