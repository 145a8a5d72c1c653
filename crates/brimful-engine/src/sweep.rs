//! One pass over the shards: every signal combined once, every vertex collected once.
//!
//! Work is cut into items, in a fixed order: one window of a *heavy* interval, which has several, or a run
//! of *light* intervals. A worker sums a light interval and collects its vertices while their sums are in
//! cache. The sums of a heavy interval's windows are added in order, and whoever adds the last one collects.
//! Invariant: the order in which signals meet in a sum depends on the graph alone; how light intervals are
//! grouped may vary.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use brimful_graph::codec::{BATCH, Code, Keys, Unpack, scatter};
use brimful_graph::with_codec;
use brimful_store::Resources;
use brimful_store::huge::HugeArray;
use brimful_store::read_ahead::ReadPool;

use crate::batch::{Batched, Batcher};
use crate::combiner::Combiner;
use crate::error::Result;
use crate::frontier::ACTIVITY_BITS;
use crate::program::{Mode, Program, SignalOf, SumOf};
use crate::residency::{Announced, Feed, Resident};
use crate::schedule::{Block, Item, Schedule, Step};

/// Which vertices signal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Activity<'a> {
    /// Everybody.
    All,
    /// For each 2^12 vertices, whether any does.
    Marked(&'a [AtomicBool]),
    /// For each 2^12 vertices when one of them last did, and for each block of the schedule when it last listened; 0: never.
    Since { spoke: &'a [u64], listened: &'a [u64] },
}

/// What a sweep reads.
pub(crate) struct Sweep<'a, P: Program> {
    pub(crate) program: &'a P,
    /// For each file, whether its edges count.
    pub(crate) walked: &'a [bool],
    pub(crate) files: &'a [Resident],
    pub(crate) schedule: &'a Schedule,
    pub(crate) signals: &'a [SignalOf<P>],
    pub(crate) activity: Activity<'a>,
    /// For each interval, whether all of its vertices are finished.
    pub(crate) over: &'a [bool],
    /// The items to do, in order, those of an interval together; `None`: all.
    pub(crate) items: Option<&'a [usize]>,
    /// Buffers of sums that nobody uses.
    pub(crate) free: &'a Mutex<Vec<HugeArray<SumOf<P>>>>,
    pub(crate) weighted: bool,
    pub(crate) interval_bits: u32,
    pub(crate) unpack: Unpack,
    pub(crate) reads: usize,
}

/// The sums of an interval of several items, so far.
struct Total<S> {
    turn: usize,
    sums: HugeArray<S>,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Swept {
    /// Signals combined.
    pub(crate) signals: u64,
    /// Edges looked at.
    pub(crate) edges: u64,
}

impl std::ops::AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        self.signals += other.signals;
        self.edges += other.edges;
    }
}

struct Shared<S> {
    next: AtomicUsize,
    signals: AtomicU64,
    edges: AtomicU64,
    totals: Vec<Mutex<Total<S>>>,
    passed: Condvar,
    /// One lock for the condition variable: turns pass a few hundred times a second at most.
    turns: Mutex<()>,
    failed: AtomicBool,
}

/// Tells the other workers when one ends early.
struct OnEarlyEnd<'s, S> {
    shared: &'s Shared<S>,
    early: bool,
}

impl<S> Drop for OnEarlyEnd<'_, S> {
    fn drop(&mut self) {
        if self.early {
            self.shared.failed.store(true, Ordering::SeqCst);
            let _guard = self.shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.passed.notify_all();
        }
    }
}

impl<P: Program> Sweep<'_, P> {
    /// Runs the sweep, handing each interval's sums to `collect(worker, interval, sums)`.
    pub(crate) fn run(
        &self,
        resources: &Resources,
        read_pool: &ReadPool,
        collect: impl Fn(usize, usize, &mut [SumOf<P>]) -> Result<()> + Sync,
    ) -> Result<Swept> {
        let shared = Shared {
            next: AtomicUsize::new(0),
            signals: AtomicU64::new(0),
            edges: AtomicU64::new(0),
            totals: (0..self.schedule.intervals)
                .map(|_| Mutex::new(Total { turn: 0, sums: HugeArray::default() }))
                .collect(),
            passed: Condvar::new(),
            turns: Mutex::new(()),
            failed: AtomicBool::new(false),
        };
        let results = resources.pool.broadcast(|context| {
            let worker = Worker { sweep: self, shared: &shared, resources };
            // A worker that ends early, by an error or a panic, must not be waited for.
            let mut end = OnEarlyEnd { shared: &shared, early: true };
            let result = worker.run(read_pool, |interval, sums| collect(context.index(), interval, sums));
            end.early = result.is_err();
            result
        });
        results.into_iter().collect::<Result<()>>()?;
        Ok(Swept { signals: shared.signals.into_inner(), edges: shared.edges.into_inner() })
    }

    /// True if a block has segments of sources that signal.
    pub(crate) fn has_work(&self, block: &Block) -> bool {
        self.schedule.steps(block).any(|step| !self.is_idle(step))
    }

    fn is_idle(&self, step: Step) -> bool {
        let segment = &self.files[step.file].shards().segments()[step.segment];
        let block = |source: u64| (source >> ACTIVITY_BITS) as usize;
        let sources = block(segment.first_source)..=block(segment.last_source);
        let active = match self.activity {
            Activity::All => true,
            Activity::Marked(map) => map[sources].iter().any(|active| active.load(Ordering::Relaxed)),
            Activity::Since { spoke, listened } => {
                let since = listened[self.schedule.block_of[step.interval]].max(1);
                spoke[sources].iter().any(|spoke| *spoke >= since)
            }
        };
        !active || !self.walked[step.file] || self.over[step.interval]
    }

    /// Combines the signals of one segment into `sums`; the number of them. The inner loop of brimful.
    #[inline(never)]
    fn accumulate<C: Code>(
        &self,
        step: Step,
        unit: &[u8],
        weights: &[u8],
        room: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<u64> {
        let (program, signals, bits) = (self.program, self.signals, self.interval_bits);
        let shards = self.files[step.file].shards();
        let mut silent = 0;
        // Who is silent is skipped, not combined: the sum is the same bits whatever the program makes of it.
        let mut fold = |signal: SignalOf<P>, weight: f64, sum: &mut SumOf<P>, to_itself: bool| {
            let folded = P::Combiner::combine(*sum, program.along(signal, weight));
            let skip = to_itself || P::MODE != Mode::Full && signal == P::Combiner::SILENCE;
            silent += u64::from(skip);
            *sum = if to_itself || skip && !P::KEEPS_SILENCE { *sum } else { folded };
        };
        let first_target = (step.interval as u64) << bits;
        if self.weighted {
            let (mut packed, mut weights) = (shards.weights(step.segment, weights)?, [1.0; BATCH]);
            shards.decode::<C>(step.segment, unit, self.unpack, room, |base, keys| {
                packed.take(&mut weights[..keys.len()]);
                let mut weights = weights.iter();
                let sources = signals.get(base as usize..).unwrap_or_default();
                let mut fold = |signal, sum: &mut SumOf<P>, to_itself| {
                    fold(signal, weights.next().copied().unwrap_or(1.0), sum, to_itself);
                };
                match P::SELF_LOOPS {
                    true => scatter(keys, bits, sources, sums, |signal, sum| fold(signal, sum, false)),
                    false => scatter_telling_loops(keys, bits, (base, first_target), sources, sums, fold),
                }
            })?;
        } else {
            shards.decode::<C>(step.segment, unit, self.unpack, room, |base, keys| {
                let sources = signals.get(base as usize..).unwrap_or_default();
                let mut fold = |signal, sum: &mut SumOf<P>, to_itself| fold(signal, 1.0, sum, to_itself);
                match P::SELF_LOOPS {
                    true => scatter(keys, bits, sources, sums, |signal, sum| fold(signal, sum, false)),
                    false => scatter_telling_loops(keys, bits, (base, first_target), sources, sums, fold),
                }
            })?;
        }
        Ok(u64::from(shards.segments()[step.segment].edges) - silent)
    }

    /// The same by a program that takes batches.
    fn accumulate_batches<C: Code>(
        &self,
        batched: &dyn Batched<P>,
        step: Step,
        unit: &[u8],
        weights: &[u8],
        room: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<u64> {
        let (shards, bits) = (self.files[step.file].shards(), self.interval_bits);
        let firsts = (shards.segments()[step.segment].first_source, (step.interval as u64) << bits);
        let mut batcher = Batcher::new(batched, self.signals, firsts, self.weighted);
        let mut packed = match self.weighted {
            true => Some(shards.weights(step.segment, weights)?),
            false => None,
        };
        let decoded = shards.decode::<C>(step.segment, unit, self.unpack, room, |base, keys| {
            let mut values = [1.0; BATCH];
            if let Some(packed) = &mut packed {
                packed.take(&mut values[..keys.len()]);
            }
            batcher.add(base, keys, bits, &values, sums)
        });
        let combined = batcher.finish(sums)?;
        decoded?;
        Ok(combined)
    }
}

/// [`scatter`], and `f` is told whether the source is the target; both are counted from `firsts`.
#[inline(always)]
fn scatter_telling_loops<A: Copy, B>(
    keys: Keys<'_>,
    target_bits: u32,
    firsts: (u64, u64),
    sources: &[A],
    targets: &mut [B],
    mut f: impl FnMut(A, &mut B, bool),
) -> bool {
    keys.iter().all(|key| {
        let (source, target) = (key >> target_bits, key & ((1 << target_bits) - 1));
        let to_itself = firsts.0 + u64::from(source) == firsts.1 + u64::from(target);
        match (sources.get(source as usize), targets.get_mut(target as usize)) {
            (Some(&signal), Some(sum)) => {
                f(signal, sum, to_itself);
                true
            }
            _ => false,
        }
    })
}

struct Worker<'s, P: Program> {
    sweep: &'s Sweep<'s, P>,
    shared: &'s Shared<SumOf<P>>,
    resources: &'s Resources,
}

/// An item claimed, with the steps that will be walked as far as they were announced.
struct Claimed {
    item: usize,
    announced: VecDeque<(Step, Option<Announced>)>,
    unannounced: Range<usize>,
}

impl<P: Program> Worker<'_, P> {
    fn run(&self, pool: &ReadPool, collect: impl Fn(usize, &mut [SumOf<P>]) -> Result<()>) -> Result<()> {
        let mut feed = Feed::new(self.sweep.files, pool);
        let mut claimed = VecDeque::new();
        let mut room = Vec::new();
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
                if self.sweep.over[interval] {
                    // All its steps are idle.
                    if item.turn + 1 == item.turns {
                        collect(interval, &mut [])?;
                    }
                    continue;
                }
                let mut sums = self.fresh_sums();
                while let Some((step, announced)) = self.next_step(interval, &mut claimed, &mut feed) {
                    self.resources.job.check()?;
                    if let Some(announced) = announced {
                        feed.turn_to(step.file, announced)?;
                    }
                    self.walk(step, &feed, &mut room, &mut sums)?;
                }
                if !self.deliver(item, interval, sums, &collect)? {
                    return Ok(());
                }
            }
            claimed.pop_front();
        }
    }

    /// The next step of the current item, if it is one of `interval`'s.
    fn next_step(
        &self,
        interval: usize,
        claimed: &mut VecDeque<Claimed>,
        feed: &mut Feed<'_>,
    ) -> Option<(Step, Option<Announced>)> {
        self.look_ahead(claimed, feed);
        let front = claimed.front_mut()?;
        front.announced.front().filter(|(step, _)| step.interval == interval)?;
        front.announced.pop_front()
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
            let Some((item, next)) = item.and_then(|item| Some((item, self.sweep.schedule.items.get(item)?)))
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

    fn fresh_sums(&self) -> HugeArray<SumOf<P>> {
        let free = self.sweep.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sums = free.unwrap_or_else(|| HugeArray::zeroed(1 << self.sweep.interval_bits));
        sums.fill(P::Combiner::IDENTITY);
        sums
    }

    fn walk(&self, step: Step, feed: &Feed<'_>, room: &mut Vec<u8>, sums: &mut [SumOf<P>]) -> Result<()> {
        let segment = &self.sweep.files[step.file].shards().segments()[step.segment];
        let (unit, weights) = (feed.bytes(step.file, 0), feed.bytes(step.file, 1));
        let combined = with_codec!(segment.packing.codec, C => match self.sweep.program.batched() {
            Some(batched) => self.sweep.accumulate_batches::<C>(batched, step, unit, weights, room, sums),
            None => self.sweep.accumulate::<C>(step, unit, weights, room, sums),
        })?;
        self.shared.signals.fetch_add(combined, Ordering::Relaxed);
        self.shared.edges.fetch_add(segment.edges.into(), Ordering::Relaxed);
        self.resources.job.advance(u64::from(segment.edges));
        Ok(())
    }

    /// Adds an item's sums to its interval's, in turn, and collects after the last. False if another
    /// worker failed meanwhile.
    fn deliver(
        &self,
        item: &Item,
        interval: usize,
        mut sums: HugeArray<SumOf<P>>,
        collect: impl Fn(usize, &mut [SumOf<P>]) -> Result<()>,
    ) -> Result<bool> {
        if item.turns > 1 {
            if !self.wait_for_turn(interval, item.turn) {
                return Ok(false);
            }
            let mut total = self.shared.totals[interval].lock().unwrap_or_else(PoisonError::into_inner);
            if item.turn == 0 {
                total.sums = std::mem::take(&mut sums);
            } else {
                let merge = |(earlier, later): (&mut SumOf<P>, &SumOf<P>)| {
                    *earlier = P::Combiner::merge(*earlier, *later)
                };
                total.sums.iter_mut().zip(&*sums).for_each(merge);
            }
            if item.turn + 1 < item.turns {
                total.turn += 1;
                drop(total);
                self.give_back(sums);
                let _guard = self.shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
                self.shared.passed.notify_all();
                return Ok(true);
            }
            let whole = std::mem::take(&mut total.sums);
            self.give_back(std::mem::replace(&mut sums, whole));
        }
        collect(interval, &mut sums)?;
        self.give_back(sums);
        Ok(true)
    }

    fn give_back(&self, sums: HugeArray<SumOf<P>>) {
        if !sums.is_empty() {
            self.sweep.free.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        }
    }

    /// The lowest unfinished item never waits, so somebody always goes on.
    fn wait_for_turn(&self, interval: usize, turn: usize) -> bool {
        let mut guard = self.shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.shared.failed.load(Ordering::SeqCst) {
                return false;
            }
            let total = self.shared.totals[interval].lock().unwrap_or_else(PoisonError::into_inner);
            if total.turn == turn {
                return true;
            }
            drop(total);
            guard = self.shared.passed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
