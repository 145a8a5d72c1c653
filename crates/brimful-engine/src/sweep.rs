//! One pass over the shards: every signal combined once, every vertex collected once.
//!
//! Work is cut into items: one window of one shard each, in a fixed order. A worker sums an item into
//! a buffer of its own; the sums of an interval's items are added in item order, and whoever adds the
//! last one collects the interval's vertices while their sums are in cache. Invariant: the order in
//! which signals meet in a sum depends on the graph alone.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use brimful_graph::codec::decode_words;
use brimful_graph::shards::ShardFile;
use brimful_store::Resources;
use brimful_store::huge::HugeArray;
use brimful_store::read_ahead::ReadPool;

use crate::error::Result;
use crate::program::{Mode, Program};
use crate::residency::{Feed, Resident};

/// Sources per entry of the activity map.
pub(crate) const ACTIVITY_BITS: u32 = 12;

/// One window of one shard, or an interval without edges.
#[derive(Debug, Clone)]
struct Item {
    interval: usize,
    file: usize,
    segments: Range<usize>,
    /// Position among the items of its interval, and their number.
    turn: usize,
    turns: usize,
}

/// The items of all intervals, in order.
pub(crate) struct Schedule {
    items: Vec<Item>,
    intervals: usize,
}

impl Schedule {
    pub(crate) fn new(files: &[Resident], intervals: usize) -> Self {
        let mut by_interval: Vec<Vec<Item>> = vec![Vec::new(); intervals];
        for (file, resident) in files.iter().enumerate() {
            let segments = resident.shards().segments();
            let mut start = 0;
            for window in segments.chunk_by(|a, b| (a.interval, a.window) == (b.interval, b.window)) {
                let interval = window[0].interval as usize;
                let range = start..start + window.len();
                start = range.end;
                by_interval[interval].push(Item { interval, file, segments: range, turn: 0, turns: 1 });
            }
        }
        let mut items = Vec::new();
        for (interval, mut of_interval) in by_interval.into_iter().enumerate() {
            if of_interval.is_empty() {
                of_interval.push(Item { interval, file: 0, segments: 0..0, turn: 0, turns: 1 });
            }
            let turns = of_interval.len();
            items.extend(of_interval.into_iter().enumerate().map(|(turn, item)| Item {
                turn,
                turns,
                ..item
            }));
        }
        Self { items, intervals }
    }
}

/// What a sweep reads.
pub(crate) struct Sweep<'a, P: Program> {
    pub(crate) program: &'a P,
    pub(crate) files: &'a [Resident],
    pub(crate) schedule: &'a Schedule,
    pub(crate) signals: &'a [P::Signal],
    /// For blocks of 2^12 sources, whether any of them signals; `None`: all do.
    pub(crate) activity: Option<&'a [AtomicBool]>,
    pub(crate) weighted: bool,
    pub(crate) interval_bits: u32,
    pub(crate) reads: usize,
}

/// The sums of an interval of several items, so far.
struct Total<S> {
    turn: usize,
    sums: HugeArray<S>,
}

struct Shared<S> {
    next: AtomicUsize,
    signals: AtomicU64,
    totals: Vec<Mutex<Total<S>>>,
    passed: Condvar,
    /// One lock for the condition variable: turns pass a few hundred times a second at most.
    turns: Mutex<()>,
    free: Mutex<Vec<HugeArray<S>>>,
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
    /// Runs the sweep, handing each interval's sums to `collect(worker, interval, sums)`. Returns the
    /// number of signals combined.
    pub(crate) fn run(
        &self,
        resources: &Resources,
        read_pool: &ReadPool,
        collect: impl Fn(usize, usize, &mut [P::Sum]) -> Result<()> + Sync,
    ) -> Result<u64> {
        let shared = Shared {
            next: AtomicUsize::new(0),
            signals: AtomicU64::new(0),
            totals: (0..self.schedule.intervals)
                .map(|_| Mutex::new(Total { turn: 0, sums: HugeArray::default() }))
                .collect(),
            passed: Condvar::new(),
            turns: Mutex::new(()),
            free: Mutex::new(Vec::new()),
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
        Ok(shared.signals.into_inner())
    }

    fn is_idle(&self, file: &ShardFile, segment: usize) -> bool {
        let segment = &file.segments()[segment];
        let block = |source: u64| (source >> ACTIVITY_BITS) as usize;
        self.activity.is_some_and(|map| {
            let range = block(segment.first_source)..=block(segment.last_source);
            !map[range].iter().any(|active| active.load(Ordering::Relaxed))
        })
    }

    /// Combines the signals of one segment into `sums`; the number of them, or `None` if the segment
    /// is broken. The inner loop of brimful.
    #[inline(never)]
    fn accumulate(
        &self,
        file: &ShardFile,
        segment: usize,
        words: &[u32],
        weights: &[f64],
        sums: &mut [P::Sum],
    ) -> Option<u64> {
        let (program, signals, base) = (self.program, self.signals, file.segments()[segment].first_source);
        let silence = program.silence();
        let mut silent = 0;
        let mut weights = weights.iter();
        let mut edges = 0;
        let whole = decode_words(words, base, self.interval_bits, |source, target| {
            let (Some(&signal), Some(sum)) = (signals.get(source as usize), sums.get_mut(target as usize))
            else {
                return false;
            };
            let weight = if self.weighted { weights.next().copied().unwrap_or_default() } else { 1.0 };
            *sum = program.combine(*sum, signal, weight);
            if P::MODE == Mode::Idempotent {
                silent += u64::from(signal == silence);
                edges += 1;
            }
            true
        });
        let all = if P::MODE == Mode::Idempotent { edges } else { u64::from(file.segments()[segment].edges) };
        whole.then_some(all - silent)
    }
}

struct Worker<'s, P: Program> {
    sweep: &'s Sweep<'s, P>,
    shared: &'s Shared<P::Sum>,
    resources: &'s Resources,
}

/// An item claimed, and for each of its segments that will be walked whether a read was begun.
struct Claimed {
    item: usize,
    segments: VecDeque<(usize, bool)>,
    unannounced: Range<usize>,
}

impl<P: Program> Worker<'_, P> {
    fn run(&self, pool: &ReadPool, collect: impl Fn(usize, &mut [P::Sum]) -> Result<()>) -> Result<()> {
        let mut feed = Feed::new(self.sweep.files, pool);
        let mut claimed = VecDeque::new();
        let mut weights = Vec::new();
        loop {
            self.look_ahead(&mut claimed, &mut feed);
            let Some(front) = claimed.front() else {
                return Ok(());
            };
            if self.shared.failed.load(Ordering::SeqCst) {
                return Ok(());
            }
            let item = &self.sweep.schedule.items[front.item];
            let mut sums = self.fresh_sums();
            loop {
                self.look_ahead(&mut claimed, &mut feed);
                let Some((segment, read)) = claimed.front_mut().and_then(|front| front.segments.pop_front())
                else {
                    break;
                };
                self.resources.job.check()?;
                self.walk(item, segment, read, &mut feed, &mut weights, &mut sums)?;
            }
            claimed.pop_front();
            if !self.deliver(item, sums, &collect)? {
                return Ok(());
            }
        }
    }

    /// Announces segments until enough reads are in flight, claiming the next item when the last
    /// claimed one is announced to its end.
    fn look_ahead(&self, claimed: &mut VecDeque<Claimed>, feed: &mut Feed<'_>) {
        loop {
            if let Some(last) = claimed.back_mut().filter(|last| !last.unannounced.is_empty()) {
                if feed.in_flight() >= self.sweep.reads {
                    return;
                }
                let segment = last.unannounced.start;
                last.unannounced.start += 1;
                let file = self.sweep.schedule.items[last.item].file;
                if !self.sweep.is_idle(self.sweep.files[file].shards(), segment) {
                    let read = feed.announce(file, segment);
                    last.segments.push_back((segment, read));
                }
                continue;
            }
            // One item beyond the current one, and only while its reads can begin.
            if claimed.len() >= 2 || !(claimed.is_empty() || self.wants_more(feed)) {
                return;
            }
            let item = self.shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(next) = self.sweep.schedule.items.get(item) else {
                return;
            };
            claimed.push_back(Claimed {
                item,
                segments: VecDeque::new(),
                unannounced: next.segments.clone(),
            });
        }
    }

    /// A worker that reads nothing claims late, so that work stays balanced to the end.
    fn wants_more(&self, feed: &Feed<'_>) -> bool {
        (1..self.sweep.reads).contains(&feed.in_flight())
    }

    fn fresh_sums(&self) -> HugeArray<P::Sum> {
        let free = self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sums = free.unwrap_or_else(|| HugeArray::zeroed(1 << self.sweep.interval_bits));
        sums.fill(self.sweep.program.identity());
        sums
    }

    fn walk(
        &self,
        item: &Item,
        segment: usize,
        read: bool,
        feed: &mut Feed<'_>,
        weights: &mut Vec<f64>,
        sums: &mut [P::Sum],
    ) -> Result<()> {
        let file = self.sweep.files[item.file].shards();
        let combined = feed.with(item.file, segment, read, |block| {
            let packed = file.packed(segment, block)?;
            if self.sweep.weighted {
                packed.decode_weights(weights);
            }
            self.sweep.accumulate(file, segment, packed.words, weights, sums).ok_or_else(|| {
                file.file().corrupt(segment, "the segment names a vertex that the graph does not have")
            })
        })??;
        self.shared.signals.fetch_add(combined, Ordering::Relaxed);
        self.resources.job.advance(u64::from(file.segments()[segment].edges));
        Ok(())
    }

    /// Adds an item's sums to its interval's, in turn, and collects after the last. False if another
    /// worker failed meanwhile.
    fn deliver(
        &self,
        item: &Item,
        mut sums: HugeArray<P::Sum>,
        collect: impl Fn(usize, &mut [P::Sum]) -> Result<()>,
    ) -> Result<bool> {
        if item.turns > 1 {
            if !self.wait_for_turn(item) {
                return Ok(false);
            }
            let mut total = self.shared.totals[item.interval].lock().unwrap_or_else(PoisonError::into_inner);
            if item.turn == 0 {
                total.sums = std::mem::take(&mut sums);
            } else {
                let merge = |(earlier, later): (&mut P::Sum, &P::Sum)| {
                    *earlier = self.sweep.program.merge(*earlier, *later)
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
        collect(item.interval, &mut sums)?;
        self.give_back(sums);
        Ok(true)
    }

    fn give_back(&self, sums: HugeArray<P::Sum>) {
        if !sums.is_empty() {
            self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        }
    }

    /// The lowest unfinished item never waits, so somebody always goes on.
    fn wait_for_turn(&self, item: &Item) -> bool {
        let mut guard = self.shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.shared.failed.load(Ordering::SeqCst) {
                return false;
            }
            let total = self.shared.totals[item.interval].lock().unwrap_or_else(PoisonError::into_inner);
            if total.turn == item.turn {
                return true;
            }
            drop(total);
            guard = self.shared.passed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
