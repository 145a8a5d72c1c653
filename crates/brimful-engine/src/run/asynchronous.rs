//! Asynchronous supersteps: signals are received within the same sweep (Gauss-Seidel).
//!
//! A sweep processes the blocks of the schedule (one heavy interval, or a run of light ones), a
//! part of the edges at a time. After each part the signals of its vertices are published, so that
//! the next part receives them. The blocks with the greatest scores come next. The score of a block
//! is the sum of the signal scores that it has not received, estimated from the number of edges
//! that lead there. In a full program every block is processed once a sweep. In an idempotent
//! program, a vertex without a new signal repeats its last one until the sweep ends, and a block is
//! processed only if one of its sources has signalled since. Delta programs are refused: every
//! target must receive an increment exactly once. An idempotent program takes a sparse superstep
//! instead of a sweep wherever the cost model prefers it. If the run has visited the edges often
//! and has not converged, its rest is in synchronous supersteps, or one traversal in order
//! (`prioritized`).
//!
//! Invariant: the result does not depend on the assignment of work to threads. Blocks end at units
//! that are not pinned, so that the order of blocks may depend on the budget and, through it, on
//! the number of threads.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::ShardRun;
use super::context::unlock;
use crate::error::{Error, Result};
use crate::plan::memory::MAX_GROUPS;
use crate::result::stats::Traversal;
use crate::traverse::frontier::ACTIVITY_BITS;
use crate::traverse::residency::PinnedIndex;
use crate::traverse::schedule::Schedule;
use crate::traverse::sweep::{Activity, Sources};
use crate::vertex::collect::Collector;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program};

/// Parts of a sweep; signals are published after each.
const PARTS: u64 = 16;
/// The state between the parts of sweeps.
pub(super) struct Asynchronous {
    /// Edges of each block, and all of them.
    edges: Vec<u64>,
    total: u64,
    /// For each pair of groups, the share of the first one's signals that the second receives.
    flow: Vec<f32>,
    groups: usize,
    /// For each group, the sum of signal scores that it has not yet received.
    unreceived: Vec<f64>,
    /// For each 2^12 vertices the time of their last signal, and for each block the time when it
    /// last received signals; 0: never.
    signalled: Vec<u64>,
    received: Vec<u64>,
    now: u64,
    /// The interval at which each block ends.
    ends: Vec<usize>,
}

/// The part of this state that changes, for checkpoints; scores are stored as raw bits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSweeps {
    /// The interval at which each block ends.
    ends: Vec<usize>,
    unreceived: Vec<u64>,
    signalled: Vec<u64>,
    received: Vec<u64>,
    now: u64,
}

impl Asynchronous {
    pub(super) fn new(
        files: &[PinnedIndex],
        schedule: &Schedule,
        vertices: usize,
        interval_bits: u32,
    ) -> Self {
        let blocks = schedule.blocks();
        let groups = blocks.len().min(MAX_GROUPS);
        let group = |block: usize| block * groups / blocks.len();
        let mut of_interval = vec![0; vertices.div_ceil(1 << interval_bits)];
        for (index, block) in blocks.iter().enumerate() {
            of_interval[block.intervals.clone()].fill(group(index));
        }
        let (mut edges, mut flow) = (vec![0; blocks.len()], vec![0.0_f32; groups * groups]);
        for (index, block) in blocks.iter().enumerate() {
            for (file, segment) in schedule.segments(block) {
                let segment = &files[file].shards().segments()[segment];
                edges[index] += u64::from(segment.edges);
                // The sources of a segment are assumed to be spread evenly.
                let from = of_interval[(segment.first_source >> interval_bits) as usize];
                let to = of_interval[(segment.last_source >> interval_bits) as usize];
                let share = segment.edges as f32 / (to + 1 - from) as f32;
                (from..=to).for_each(|source| flow[source * groups + group(index)] += share);
            }
        }
        for row in flow.chunks_mut(groups.max(1)) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= sum.max(1.0));
        }
        Self {
            total: edges.iter().sum(),
            edges,
            flow,
            groups,
            unreceived: vec![0.0; groups],
            signalled: vec![0; vertices.div_ceil(1 << ACTIVITY_BITS)],
            received: vec![0; blocks.len()],
            now: 1,
            ends: blocks.iter().map(|block| block.intervals.end).collect(),
        }
    }

    /// The state between two sweeps, for a checkpoint.
    pub(super) fn save(&self) -> SavedSweeps {
        SavedSweeps {
            ends: self.ends.clone(),
            unreceived: self.unreceived.iter().map(|score| score.to_bits()).collect(),
            signalled: self.signalled.clone(),
            received: self.received.clone(),
            now: self.now,
        }
    }

    /// Restores the state of a checkpoint.
    ///
    /// # Errors
    /// [`Error::Usage`] if the blocks of the checkpoint are not those of this run.
    pub(super) fn restore(&mut self, saved: SavedSweeps) -> Result<()> {
        let lengths = [saved.unreceived.len(), saved.signalled.len(), saved.received.len()];
        if saved.ends != self.ends
            || lengths != [self.unreceived.len(), self.signalled.len(), self.received.len()]
        {
            let problem = "this run divides the graph into other blocks than the checkpoint; \
                           resume with the memory budget and threads of the run that wrote it";
            return Err(Error::Usage(problem.into()));
        }
        self.unreceived = saved.unreceived.into_iter().map(f64::from_bits).collect();
        (self.signalled, self.received, self.now) = (saved.signalled, saved.received, saved.now);
        Ok(())
    }

    fn group(&self, block: usize) -> usize {
        block * self.groups / self.edges.len()
    }

    /// Chooses the next part of a sweep among `blocks`: those with the greatest scores.
    fn next_part(&self, mut blocks: Vec<usize>) -> Vec<usize> {
        let score = |block: &usize| self.unreceived[self.group(*block)];
        blocks.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
        let mut edges = 0;
        let full = |block: &usize| {
            edges += self.edges[*block];
            edges * PARTS >= self.total
        };
        let count = blocks.iter().position(full).map_or(blocks.len(), |last| last + 1);
        blocks.truncate(count);
        blocks
    }

    /// Records that the blocks of a part have received all signals, and adds the scores of their
    /// new ones.
    fn record_part(&mut self, part: &[usize], scores: &[f64]) {
        for &block in part {
            let group = self.group(block);
            self.unreceived[group] = 0.0;
            self.received[block] = self.now;
        }
        for (&block, score) in part.iter().zip(scores) {
            let row = self.group(block) * self.groups;
            for (unreceived, share) in self.unreceived.iter_mut().zip(&self.flow[row..]) {
                *unreceived += score * f64::from(*share);
            }
        }
    }
}

impl<P: Program> ShardRun<'_, P> {
    /// Records a signal of every vertex in the frontier.
    pub(super) fn record_frontier(&mut self) {
        let (Some(asynchronous), Some(frontier)) = (&mut self.asynchronous, &mut self.frontier)
        else {
            return;
        };
        asynchronous.now += 1;
        for (signalled, active) in asynchronous.signalled.iter_mut().zip(frontier.map()) {
            if active.load(Ordering::Relaxed) {
                *signalled = asynchronous.now;
            }
        }
    }

    /// Runs one sweep, or a sparse superstep in its place; `None` if the run is synchronous.
    pub(super) fn asynchronous_superstep(&mut self, edges: u64) -> Result<Option<Traversal>> {
        if self.asynchronous.is_none() {
            return Ok(None);
        }
        // Of the programs with sweeps, those that are idempotent.
        if Self::HAS_FRONTIER {
            if self.is_long(edges) {
                // A sweep visits whole blocks even if few of their vertices signal, as they do for
                // long in a graph of high diameter.
                self.asynchronous = None;
                return Ok(None);
            }
            if self.sparse_superstep(edges)? {
                self.record_frontier();
                return Ok(Some(Traversal::Sparse));
            }
        }
        if let Some(sparse) = &self.sparse {
            sparse.release();
        }
        let Some(mut asynchronous) = self.asynchronous.take() else { return Ok(None) };
        self.context.resources.job.begin(format!("sweep {}", self.globals.superstep + 1), edges);
        let result = self.asynchronous_sweep(&mut asynchronous);
        self.asynchronous = Some(asynchronous);
        result.map(|()| Some(Traversal::Sweep))
    }

    /// Silences the vertices that did not signal in the sweep that began at `start`: every block
    /// has received their signals.
    fn silence_received(&mut self, asynchronous: &Asynchronous, start: u64) -> Result<()> {
        let (window, buffer) = (self.context.window(), &mut Vec::new());
        let next = self.next.windows();
        for (interval, signals) in self.signals.chunks_mut(window).enumerate() {
            if asynchronous.received[self.context.schedule.block_of[interval]] > start {
                next.update(interval, buffer, |next| signals.copy_from_slice(next))?;
            } else {
                signals.fill(P::Combiner::SILENCE);
            }
        }
        Ok(())
    }

    fn asynchronous_sweep(&mut self, asynchronous: &mut Asynchronous) -> Result<()> {
        let context = &self.context;
        let walked = context.walked(&self.globals);
        let blocks = context.schedule.blocks().to_vec();
        let (buffers, partials) = (context.buffers(), context.empty_partials());
        let signalling = context.empty_activity();
        let mut left: Vec<usize> = (0..blocks.len()).collect();
        let start = asynchronous.now;
        loop {
            let context = &self.context;
            asynchronous.now += 1;
            let activity = match P::MODE {
                Mode::Idempotent => Activity::Since {
                    signalled: &asynchronous.signalled,
                    received: &asynchronous.received,
                },
                Mode::Full | Mode::Delta => Activity::All,
            };
            let mut sweep =
                context.sweep(Sources::all(&self.signals), activity, &walked, &self.finished);
            // Blocks without signals to receive now may have some after this part.
            let has_input =
                |block: &usize| P::MODE == Mode::Full || sweep.has_work(&blocks[*block]);
            let part = asynchronous.next_part(left.iter().copied().filter(has_input).collect());
            if part.is_empty() {
                break;
            }
            left.retain(|block| !part.contains(block));
            let mut items = Vec::new();
            part.iter().for_each(|block| items.extend(blocks[*block].items.clone()));
            sweep.items = Some(&items);
            let arrays = (&mut self.states, &mut self.next);
            let collector = Collector {
                scored: true,
                ..context.collector(arrays, signalling.as_deref(), &self.finished, self.globals)
            };
            self.swept += context.sweep_and_collect(&sweep, &collector, &buffers, &partials)?;
            drop(collector);
            let mut scores = Vec::with_capacity(part.len());
            for &block in &part {
                let mut score = 0.0;
                for interval in blocks[block].intervals.clone() {
                    score +=
                        partials[interval].lock().unwrap_or_else(PoisonError::into_inner).score;
                    self.publish(
                        interval,
                        signalling.as_deref().unwrap_or_default(),
                        asynchronous,
                    )?;
                }
                scores.push(score);
            }
            asynchronous.record_part(&part, &scores);
        }
        if P::MODE == Mode::Idempotent {
            self.silence_received(asynchronous, start)?;
        }
        let isolated = self.evolve_isolated()?;
        self.globals.superstep += 1;
        self.conclude(unlock(partials), signalling, isolated);
        Ok(())
    }

    /// Publishes the new signals of an interval to the next part.
    fn publish(
        &mut self,
        interval: usize,
        signalling: &[AtomicBool],
        asynchronous: &mut Asynchronous,
    ) -> Result<()> {
        let window = self.context.window();
        let range = interval * window..((interval + 1) * window).min(self.signals.len());
        let (signals, buffer) = (&mut self.signals[range.clone()], &mut Vec::new());
        self.next.windows().update(interval, buffer, |next| {
            if P::MODE == Mode::Full {
                signals.copy_from_slice(next);
                return;
            }
            for (signal, next) in signals.iter_mut().zip(next) {
                *signal = if *next == P::Combiner::SILENCE { *signal } else { *next };
            }
        })?;
        let marks = range.start >> ACTIVITY_BITS..range.end.div_ceil(1 << ACTIVITY_BITS);
        for mark in
            marks.filter(|mark| signalling.get(*mark).is_some_and(|on| on.load(Ordering::Relaxed)))
        {
            asynchronous.signalled[mark] = asynchronous.now;
        }
        Ok(())
    }
}
