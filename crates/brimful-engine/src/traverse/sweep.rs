//! One pass over the shards: every signal combined once, every vertex collected once.
//!
//! Work is cut into items, in a fixed order: one window of a *heavy* interval, which has several,
//! or a run of *light* intervals. A worker sums a light interval and collects its vertices while
//! their sums are in cache. The sums of a heavy interval's windows are added in order; the worker
//! that adds the last window collects. If signals are in memory one window of sources at a time, a
//! sweep covers one window, and its sums are spilled for the next.
//! Invariant: the order of signals in a sum depends on the graph alone; the grouping of light
//! intervals may vary.

pub(crate) mod batcher;
mod combine;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use brimful_graph::codec::Unpack;
use brimful_store::Resources;
use brimful_store::huge::HugeArray;
use brimful_store::read_ahead::ReadPool;

use crate::error::Result;
use crate::result::stats::Swept;
use crate::traverse::frontier::{entries, is_any_marked};
use crate::traverse::residency::{Announced, Feed, PinnedIndex};
use crate::traverse::schedule::{Item, Schedule, ScheduleBlock, SegmentRef};
use crate::traverse::sums::{FreeSums, SpilledSums};
use crate::vertex::program::{Program, SignalOf, SumOf};
pub(crate) use combine::Sources;

/// The vertices that signal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Activity<'a> {
    /// All vertices.
    All,
    /// For each 2^12 vertices, whether any signals.
    Marked(&'a [AtomicBool]),
    /// For each 2^12 vertices the time of their last signal, and for each block of the schedule the
    /// time when it last collected; 0: never.
    Since { signalled: &'a [u64], received: &'a [u64] },
}

/// The input of a sweep.
pub(crate) struct Sweep<'a, P: Program> {
    pub(crate) program: &'a P,
    /// For each file, whether its edges are walked.
    pub(crate) walked: &'a [bool],
    pub(crate) files: &'a [PinnedIndex],
    pub(crate) schedule: &'a Schedule,
    pub(crate) sources: Sources<'a, SignalOf<P>>,
    pub(crate) activity: Activity<'a>,
    /// For each interval, whether all of its vertices are finished.
    pub(crate) finished: &'a [bool],
    /// The items of the sweep, in order, those of an interval together; `None`: all.
    pub(crate) items: Option<&'a [usize]>,
    pub(crate) free: &'a FreeSums<SumOf<P>>,
    pub(crate) weighted: bool,
    pub(crate) interval_bits: u32,
    pub(crate) unpack: Unpack,
    pub(crate) reads: usize,
    pub(crate) read_pool: &'a ReadPool,
    pub(crate) resources: &'a Resources,
}

/// The partial sums of an interval of several items.
struct Total<S> {
    /// The next window of which sums are added.
    window: usize,
    sums: HugeArray<S>,
}

/// Bytes of a sweep for an interval, besides its sums: the total, and whether its vertices are
/// finished.
pub(crate) const INTERVAL_BYTES: u64 = (size_of::<Mutex<Total<()>>>() + size_of::<bool>()) as u64;

struct Shared<S> {
    next: AtomicUsize,
    signals: AtomicU64,
    edges: AtomicU64,
    totals: Vec<Mutex<Total<S>>>,
    passed: Condvar,
    /// One lock for the condition variable: at most a few hundred windows pass in a second.
    waiting: Mutex<()>,
    failed: AtomicBool,
}

/// Tells the other workers, when dropped, if its worker ended early.
struct OnEarlyEnd<'s, S> {
    shared: &'s Shared<S>,
    early: bool,
}

impl<S> Drop for OnEarlyEnd<'_, S> {
    fn drop(&mut self) {
        if self.early {
            self.shared.failed.store(true, Ordering::SeqCst);
            let _guard = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.passed.notify_all();
        }
    }
}

impl<P: Program> Sweep<'_, P> {
    /// Runs the sweep and passes each interval's sums to `collect(worker, interval, sums)`.
    pub(crate) fn collect(
        &self,
        collect: impl Fn(usize, usize, &mut [SumOf<P>]) -> Result<()> + Sync,
    ) -> Result<Swept> {
        self.visit(|worker, item, steps| {
            let interval = steps.interval;
            let collect = |sums: &mut [SumOf<P>]| collect(worker.index, interval, sums);
            if self.finished[interval] {
                // All steps of the item are idle.
                return if item.window + 1 == item.windows {
                    collect(&mut []).map(|()| true)
                } else {
                    Ok(true)
                };
            }
            let mut sums = self.free.take::<P::Combiner>();
            steps.combine_into(&mut sums)?;
            worker.deliver(item, interval, sums, collect)
        })
    }

    /// Runs the sweep, continuing the spilled sums.
    pub(crate) fn spill(&self, spilled: &SpilledSums) -> Result<Swept> {
        self.visit(|_, item, steps| {
            if !steps.are_done() {
                let mut sums = self.free.take::<P::Combiner>();
                spilled.update(steps.interval, item.window, &mut sums, |sums| {
                    steps.combine_into(sums)
                })?;
                self.free.give_back(sums);
            }
            Ok(true)
        })
    }

    /// Calls `visit` for every interval of every item, from all threads, until it returns false.
    fn visit<F>(&self, visit: F) -> Result<Swept>
    where
        F: Fn(&Worker<'_, P>, &Item, &mut IntervalSegments<'_, '_, P>) -> Result<bool> + Sync,
    {
        let shared = Shared {
            next: AtomicUsize::new(0),
            signals: AtomicU64::new(0),
            edges: AtomicU64::new(0),
            totals: (0..self.schedule.intervals)
                .map(|_| Mutex::new(Total { window: 0, sums: HugeArray::default() }))
                .collect(),
            passed: Condvar::new(),
            waiting: Mutex::new(()),
            failed: AtomicBool::new(false),
        };
        let results = self.resources.broadcast(|index| {
            let worker = Worker { sweep: self, shared: &shared, index };
            // No worker may wait for one that ended early, by an error or a panic.
            let mut end = OnEarlyEnd { shared: &shared, early: true };
            let result = worker.run(&visit);
            end.early = result.is_err();
            result
        });
        results.into_iter().collect::<Result<()>>()?;
        Ok(Swept { signals: shared.signals.into_inner(), edges: shared.edges.into_inner() })
    }

    /// True if there are segments of sources that signal.
    pub(crate) fn has_any_work(&self) -> bool {
        self.schedule.steps.iter().any(|step| !self.is_idle(*step))
    }

    /// True if a block has segments of sources that signal.
    pub(crate) fn has_work(&self, block: &ScheduleBlock) -> bool {
        self.schedule.steps(block).any(|step| !self.is_idle(step))
    }

    fn is_idle(&self, step: SegmentRef) -> bool {
        let segment = &self.files[step.file].shards().segments()[step.segment];
        let first = segment.first_source.max(self.sources.first);
        let end = self.sources.end().min(segment.last_source.saturating_add(1));
        if first >= end || !self.walked[step.file] || self.finished[step.interval] {
            return true;
        }
        match self.activity {
            Activity::All => false,
            Activity::Marked(map) => !is_any_marked(map, first..end),
            Activity::Since { signalled, received } => {
                let since = received[self.schedule.block_of[step.interval]].max(1);
                !signalled[entries(first..end)].iter().any(|signalled| *signalled >= since)
            }
        }
    }
}

struct Worker<'s, P: Program> {
    sweep: &'s Sweep<'s, P>,
    shared: &'s Shared<SumOf<P>>,
    index: usize,
}

/// A claimed item, with its announced and unannounced steps.
struct Claimed {
    item: usize,
    announced: VecDeque<(SegmentRef, Option<Announced>)>,
    unannounced: Range<usize>,
}

/// The remaining steps of one interval.
struct IntervalSegments<'v, 'r, P: Program> {
    worker: &'v Worker<'v, P>,
    interval: usize,
    claimed: &'v mut VecDeque<Claimed>,
    feed: &'v mut Feed<'r>,
    buffer: &'v mut Vec<u8>,
}

impl<P: Program> IntervalSegments<'_, '_, P> {
    /// True if no step remains.
    fn are_done(&mut self) -> bool {
        self.worker.look_ahead(self.claimed, self.feed);
        let next = self.claimed.front().and_then(|front| front.announced.front());
        next.is_none_or(|(step, _)| step.interval != self.interval)
    }

    /// Combines the signals of all steps into `sums`.
    fn combine_into(&mut self, sums: &mut [SumOf<P>]) -> Result<()> {
        while !self.are_done() {
            let next = self.claimed.front_mut().and_then(|front| front.announced.pop_front());
            let Some((step, announced)) = next else { break };
            self.worker.sweep.resources.job.check()?;
            if let Some(announced) = announced {
                self.feed.turn_to(step.file, announced)?;
            }
            self.worker.walk(step, self.feed, self.buffer, sums)?;
        }
        Ok(())
    }
}

impl<P: Program> Worker<'_, P> {
    fn run(
        &self,
        visit: impl Fn(&Self, &Item, &mut IntervalSegments<'_, '_, P>) -> Result<bool>,
    ) -> Result<()> {
        let mut feed = Feed::new(self.sweep.files, self.sweep.read_pool);
        let (mut claimed, mut buffer) = (VecDeque::new(), Vec::new());
        loop {
            self.look_ahead(&mut claimed, &mut feed);
            let Some(front) = claimed.front() else {
                return Ok(());
            };
            let item = &self.sweep.schedule.items[front.item];
            for interval in item.intervals.clone() {
                if self.shared.failed.load(Ordering::SeqCst) {
                    return Ok(());
                }
                let mut steps = IntervalSegments {
                    worker: self,
                    interval,
                    claimed: &mut claimed,
                    feed: &mut feed,
                    buffer: &mut buffer,
                };
                if !visit(self, item, &mut steps)? {
                    return Ok(());
                }
            }
            claimed.pop_front();
        }
    }

    /// Announces steps until enough reads are in flight, claiming the next item when the last
    /// claimed one is announced to its end.
    fn look_ahead(&self, claimed: &mut VecDeque<Claimed>, feed: &mut Feed<'_>) {
        loop {
            if let Some(last) = claimed.back_mut().filter(|last| !last.unannounced.is_empty()) {
                if feed.in_flight() >= self.sweep.reads {
                    return;
                }
                let step = self.sweep.schedule.steps[last.unannounced.start];
                last.unannounced.start += 1;
                if !self.sweep.is_idle(step) {
                    let announced = feed.announce(step.file, step.segment);
                    last.announced.push_back((step, announced));
                }
                continue;
            }
            // One item beyond the current one, and only while its reads can begin.
            if claimed.len() >= 2 || !(claimed.is_empty() || self.wants_more(feed)) {
                return;
            }
            let place = self.shared.next.fetch_add(1, Ordering::Relaxed);
            let item = match self.sweep.items {
                Some(items) => items.get(place).copied(),
                None => Some(place),
            };
            let Some((item, next)) =
                item.and_then(|item| Some((item, self.sweep.schedule.items.get(item)?)))
            else {
                return;
            };
            let unannounced = next.steps.clone();
            claimed.push_back(Claimed { item, announced: VecDeque::new(), unannounced });
        }
    }

    /// A worker that reads nothing claims late, so that work stays balanced to the end.
    fn wants_more(&self, feed: &Feed<'_>) -> bool {
        (1..self.sweep.reads).contains(&feed.in_flight())
    }

    fn walk(
        &self,
        step: SegmentRef,
        feed: &Feed<'_>,
        buffer: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<()> {
        let segment = &self.sweep.files[step.file].shards().segments()[step.segment];
        let (unit, weights) = (feed.bytes(step.file, 0), feed.bytes(step.file, 1));
        let combined = if P::BATCHED && self.sweep.program.batched().takes_edges() {
            self.sweep.accumulate_batches(step, unit, weights, buffer, sums)
        } else {
            self.sweep.accumulate(step, unit, weights, buffer, sums)
        }?;
        self.shared.signals.fetch_add(combined, Ordering::Relaxed);
        self.shared.edges.fetch_add(segment.edges.into(), Ordering::Relaxed);
        self.sweep.resources.job.advance(u64::from(segment.edges));
        Ok(())
    }

    /// Adds the sums of an item to those of its interval, in the order of windows, and collects
    /// after the last item. False if another worker has failed.
    fn deliver(
        &self,
        item: &Item,
        interval: usize,
        mut sums: HugeArray<SumOf<P>>,
        collect: impl FnOnce(&mut [SumOf<P>]) -> Result<()>,
    ) -> Result<bool> {
        if item.windows > 1 {
            if !self.wait_for_window(interval, item.window) {
                return Ok(false);
            }
            let mut total =
                self.shared.totals[interval].lock().unwrap_or_else(PoisonError::into_inner);
            if item.window == 0 {
                total.sums = std::mem::take(&mut sums);
            } else {
                self.sweep.program.merge(&mut total.sums, &sums)?;
            }
            if item.window + 1 < item.windows {
                total.window += 1;
                drop(total);
                self.sweep.free.give_back(sums);
                let _guard = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                self.shared.passed.notify_all();
                return Ok(true);
            }
            let whole = std::mem::take(&mut total.sums);
            self.sweep.free.give_back(std::mem::replace(&mut sums, whole));
        }
        collect(&mut sums)?;
        self.sweep.free.give_back(sums);
        Ok(true)
    }

    /// Waits until the earlier items of the interval have added their sums; false if another worker
    /// failed. The lowest unfinished item never waits, so one worker always proceeds.
    fn wait_for_window(&self, interval: usize, window: usize) -> bool {
        let mut guard = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.shared.failed.load(Ordering::SeqCst) {
                return false;
            }
            let total = self.shared.totals[interval].lock().unwrap_or_else(PoisonError::into_inner);
            if total.window == window {
                return true;
            }
            drop(total);
            guard = self.shared.passed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
