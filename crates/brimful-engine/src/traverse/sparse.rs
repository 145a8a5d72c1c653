//! Sparse traversal: a superstep that decodes only the blocks with edges of the frontier.
//!
//! Each interval is combined by itself, in the order of dense traversal, into the sums of the
//! targets that receive a signal. After all intervals, these targets collect, in order of their
//! ids. Of a unit that is not in memory, single blocks are read if few are needed, each against its
//! own checksum. Weights and segments compressed by lz4 are read in whole units only. Invariant:
//! states, signals and aggregates are the same bits as in dense traversal.

mod limits;
mod touched;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_graph::codec::{BATCH, Keys, Weights};
use brimful_graph::read::block_cursor::{BlockBuffers, BlockCursor, SegmentBytes};
use brimful_graph::read::directory::Directory;
use brimful_store::Resources;

use crate::error::Result;
use crate::plan::cost_model::{CostModel, Indexes, within};
use crate::result::stats::Swept;
use crate::traverse::residency::{PinnedIndex, Shard, Spare, is_windowed, segments_of_intervals};
use crate::traverse::sweep::Sources;
use crate::traverse::sweep::batcher::Batcher;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Program, SignalOf, is_left_out};
pub(crate) use limits::{Limits, likely_bytes, memory_bytes, reading_bytes};
pub(crate) use touched::Touched;

/// Frontiers up to this size are not worth waking other threads for.
pub(crate) const FEW: usize = 64;

/// The sums of one interval: targets within the interval, ascending, and their sums.
pub(crate) type TargetSums<S> = Vec<(u32, S)>;

/// The positions of each interval's edges, for reading few of them.
pub(crate) struct Sparse<S> {
    /// One for each index.
    directories: Vec<Directory>,
    /// For each interval, its segments in each index.
    intervals: Vec<Shard>,
    /// For each interval, the first and the last source of its segments.
    spans: Vec<(u64, u64)>,
    vertices: u64,
    limits: Limits,
    /// One for each worker.
    buffers: Vec<Mutex<SparseBuffers<S>>>,
}

/// The input of a sparse superstep.
pub(crate) struct Combine<'a, P: Program> {
    pub(crate) program: &'a P,
    /// For each file, whether its edges are walked.
    pub(crate) walked: &'a [bool],
    pub(crate) files: &'a [PinnedIndex],
    pub(crate) signals: &'a [SignalOf<P>],
    pub(crate) frontier: &'a [u64],
    /// For each interval, whether all of its vertices are finished.
    pub(crate) finished: &'a [bool],
    pub(crate) weighted: bool,
    pub(crate) interval_bits: u32,
    /// `None`: everything is in memory.
    pub(crate) costs: Option<&'a CostModel>,
}

/// The result of combining in a sparse superstep.
pub(crate) struct CombinedIntervals<S> {
    /// Sums by interval, ascending; intervals without any are left out.
    pub(crate) intervals: Vec<(usize, TargetSums<S>)>,
    pub(crate) swept: Swept,
}

impl<S: Copy + Send> Sparse<S> {
    /// Reads the directories of `files`, to combine the `owned` intervals.
    pub(crate) fn load(
        files: &[PinnedIndex],
        intervals: usize,
        owned: &Range<usize>,
        vertices: u64,
        limits: Limits,
        workers: usize,
    ) -> Result<Self> {
        let mut intervals = segments_of_intervals(files.iter().map(PinnedIndex::shards), intervals);
        let is_owned = |interval: usize| owned.contains(&interval);
        (intervals.iter_mut().enumerate().filter(|(interval, _)| !is_owned(*interval)))
            .for_each(|(_, shard)| shard.clear());
        let spans = intervals.iter().map(|shard| span(files, shard)).collect();
        let directories =
            files.iter().map(|file| Directory::load(file.shards())).collect::<Result<_, _>>()?;
        let buffers = (0..workers).map(|_| Mutex::default()).collect();
        Ok(Self { directories, intervals, spans, vertices, limits, buffers })
    }

    /// Frees the working memory of all workers; a dense superstep needs it.
    pub(crate) fn release(&self) {
        for buffers in &self.buffers {
            *buffers.lock().unwrap_or_else(PoisonError::into_inner) = SparseBuffers::default();
        }
    }

    /// True if a frontier of `count` vertices fits in memory for sparse traversal.
    pub(crate) fn fits(&self, count: u64) -> bool {
        count <= self.limits.sources
    }

    /// True if a frontier of `count` vertices fits in memory, with the signals that are held back.
    pub(crate) fn can_hold_back(&self, count: u64) -> bool {
        count <= self.limits.sources + self.limits.targets
    }

    /// The costs of both traversals; `None` if few vertices signal and all edges are in memory.
    pub(crate) fn costs<P: Program<Combiner: Combiner<Sum = S>>>(
        &self,
        combine: &Combine<'_, P>,
    ) -> Option<CostModel> {
        let Combine { frontier, weighted, walked, files, .. } = *combine;
        if frontier.len() <= FEW && files.iter().all(PinnedIndex::is_loaded) {
            return None;
        }
        let indexes = Indexes {
            vertices: self.vertices,
            weighted,
            walked,
            files,
            intervals: &self.intervals,
            directories: &self.directories,
        };
        Some(CostModel::new(frontier, &indexes))
    }

    /// Combines the signals of the frontier. `None`, without effect, if they reach too many
    /// vertices.
    pub(crate) fn combine<P: Program<Combiner: Combiner<Sum = S>>>(
        &self,
        combine: &Combine<'_, P>,
        resources: &Resources,
    ) -> Result<Option<CombinedIntervals<S>>> {
        let max_targets = self.limits.targets;
        // The first intervals have the most edges, so they come last: the superstep may be
        // abandoned before them.
        let intervals = (0..self.intervals.len()).rev();
        let walked: Vec<usize> =
            intervals.filter(|interval| self.may_reach(combine, *interval)).collect();
        let (next, reached) = (AtomicUsize::new(0), AtomicU64::new(0));
        let swept = Mutex::new(Swept::default());
        let stop = AtomicBool::new(false);
        let work = |worker: usize| -> Result<Vec<(usize, TargetSums<S>)>> {
            let mut buffers = self.buffers[worker].lock().unwrap_or_else(PoisonError::into_inner);
            let mut combined = Vec::new();
            while let Some(&interval) = walked.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let target_sums =
                    self.interval(combine, interval, &mut buffers, &swept).inspect_err(|_| {
                        stop.store(true, Ordering::Relaxed);
                    })?;
                if target_sums.is_empty() {
                    continue;
                }
                let count = target_sums.len() as u64;
                if reached.fetch_add(count, Ordering::Relaxed) + count > max_targets {
                    stop.store(true, Ordering::Relaxed);
                }
                combined.push((interval, target_sums));
                resources.job.check()?;
            }
            Ok(combined)
        };
        let mut intervals = if combine.frontier.len() <= FEW {
            work(0)?
        } else {
            let parts = resources.broadcast(work);
            parts.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        };
        if reached.into_inner() > max_targets {
            return Ok(None);
        }
        intervals.sort_unstable_by_key(|(interval, _)| *interval);
        Ok(Some(CombinedIntervals {
            intervals,
            swept: swept.into_inner().unwrap_or_else(PoisonError::into_inner),
        }))
    }

    /// True if an interval with unfinished vertices has segments whose source range may signal.
    fn may_reach<P: Program>(&self, combine: &Combine<'_, P>, interval: usize) -> bool {
        let (first, last) = self.spans[interval];
        let from = combine.frontier.partition_point(|source| *source < first);
        combine.frontier.get(from).is_some_and(|source| *source <= last)
            && !combine.finished[interval]
    }

    /// Combines the signals of the frontier into one interval.
    fn interval<P: Program<Combiner: Combiner<Sum = S>>>(
        &self,
        combine: &Combine<'_, P>,
        interval: usize,
        buffers: &mut SparseBuffers<S>,
        swept: &Mutex<Swept>,
    ) -> Result<TargetSums<S>> {
        // The sums of the targets of each window that has any, in order.
        let mut windows: Vec<TargetSums<S>> = Vec::new();
        let mut count = Swept::default();
        let shard = &self.intervals[interval];
        let is_windowed = is_windowed(shard, combine.files);
        for (file, range) in shard.iter().filter(|(file, _)| combine.walked[*file]) {
            let segments = combine.files[*file].shards().segments();
            for index in range.clone() {
                let segment = &segments[index];
                if is_windowed
                    && (index == range.start || segment.window != segments[index - 1].window)
                {
                    buffers.sums.drain_into::<P::Combiner>(&mut windows);
                }
                let sources = within(combine.frontier, segment);
                if !sources.is_empty() {
                    count += self.segment(combine, *file, index, sources, buffers)?;
                }
            }
        }
        buffers.sums.drain_into::<P::Combiner>(&mut windows);
        if count.edges > 0 {
            *swept.lock().unwrap_or_else(PoisonError::into_inner) += count;
        }
        if windows.len() > 1 {
            for target_sums in std::mem::take(&mut windows) {
                for (target, sum) in target_sums {
                    let total = buffers.sums.at::<P::Combiner>(target, 1 << combine.interval_bits);
                    combine.program.merge(std::slice::from_mut(total), &[sum])?;
                }
            }
            buffers.sums.drain_into::<P::Combiner>(&mut windows);
        }
        let target_sums = windows.pop().unwrap_or_default();
        // Targets ascend, so the last one decides. The last interval has fewer vertices than
        // others.
        let first = interval << combine.interval_bits;
        let beyond = target_sums
            .last()
            .is_some_and(|(target, _)| first + *target as usize >= combine.signals.len());
        match self.intervals[interval].first() {
            Some((file, range)) if beyond => {
                Err(combine.files[*file].shards().contradiction(range.start).into())
            }
            _ => Ok(target_sums),
        }
    }

    /// Combines the signals of `sources`, ascending, along the edges of one segment.
    fn segment<P: Program<Combiner: Combiner<Sum = S>>>(
        &self,
        combine: &Combine<'_, P>,
        file: usize,
        index: usize,
        sources: &[u64],
        buffers: &mut SparseBuffers<S>,
    ) -> Result<Swept> {
        let (pinned, directory) = (&combine.files[file], &self.directories[file]);
        let shards = pinned.shards();
        let segment = &shards.segments()[index];
        let SparseBuffers { sums, units, blocks } = buffers;
        let one_by_one =
            combine.costs.is_some_and(|costs| costs.one_by_one(file, shards.unit(index)));
        let (bytes, weights) = units.columns(pinned, file, index, combine.weighted, one_by_one)?;
        let (bits, mut count) = (combine.interval_bits, Swept::default());
        let first_target = segment.interval << bits;
        let takes_edges = P::BATCHED && combine.program.batched().takes_edges();
        let mut batcher = takes_edges.then(|| {
            let (batched, sources) = (combine.program.batched(), Sources::all(combine.signals));
            Batcher::new(batched, sources, segment.first_source, first_target, combine.weighted)
        });
        let mut batch = |base: u64, keys: Keys<'_>, weights: &[f64; BATCH]| {
            let signals = combine.signals.get(base as usize..).unwrap_or_default();
            keys.iter().zip(weights).all(|(key, &weight)| {
                let offset = (key >> bits) as usize;
                let Some(&signal) = signals.get(offset) else {
                    return false;
                };
                let target = key & ((1 << bits) - 1);
                let is_self_loop = base + offset as u64 == first_target + u64::from(target);
                if !is_left_out::<P>(signal, is_self_loop) {
                    let sum = sums.at::<P::Combiner>(target, 1 << bits);
                    count.signals += 1;
                    if batcher.is_none() {
                        *sum = P::Combiner::combine(*sum, combine.program.along(signal, weight));
                    }
                }
                true
            }) && (!P::BATCHED
                || batcher
                    .as_mut()
                    .is_none_or(|batcher| batcher.add(base, keys, bits, weights, &mut sums.sums)))
        };
        let mut cursor =
            BlockCursor::new(shards, directory, index, sources, bytes, weights, blocks);
        let decoded = loop {
            match cursor.next(&mut batch) {
                Ok(Some(edges)) => count.edges += u64::from(edges),
                end => break end,
            }
        };
        // A failure of the program is reported before the edges that it refused.
        if P::BATCHED
            && let Some(batcher) = batcher
        {
            batcher.finish(&mut sums.sums)?;
        }
        decoded?;
        Ok(count)
    }
}

/// The first and the last source of the segments of an interval; an empty range if there is no
/// segment.
fn span(files: &[PinnedIndex], shard: &Shard) -> (u64, u64) {
    let segments =
        shard.iter().flat_map(|(file, range)| &files[*file].shards().segments()[range.clone()]);
    segments.fold((u64::MAX, 0), |(first, last), segment| {
        (first.min(segment.first_source), last.max(segment.last_source))
    })
}

/// Units that were read out of order, one for each column of each index, and a decompressed
/// segment.
#[derive(Default)]
struct Units {
    spares: Vec<[Spare; 2]>,
    plain: Vec<u8>,
    /// The index and the segment that `plain` holds.
    decompressed: Option<(usize, usize)>,
}

impl Units {
    /// The bytes of segment `index` of index `file`, to be read later if its blocks are needed
    /// `one_by_one`, and its weights if the run is `weighted`.
    fn columns<'b>(
        &'b mut self,
        pinned: &'b PinnedIndex,
        file: usize,
        index: usize,
        weighted: bool,
        one_by_one: bool,
    ) -> Result<(SegmentBytes<'b>, Option<Weights<'b>>)> {
        let Self { spares, plain, decompressed } = self;
        if spares.len() <= file {
            spares.resize_with(file + 1, Default::default);
        }
        let ([spare, spare_weights], shards) = (&mut spares[file], pinned.shards());
        let (unit, is_compressed) =
            (shards.unit(index), shards.segments()[index].packing.compressed);
        let is_decompressed = decompressed.take() == Some((file, index));
        let bytes = if one_by_one {
            SegmentBytes::ReadBlocks
        } else if is_compressed && is_decompressed {
            *decompressed = Some((file, index));
            SegmentBytes::Loaded(plain)
        } else {
            let bytes = shards.plain(index, pinned.unit(0, unit, spare)?, plain)?;
            *decompressed = is_compressed.then_some((file, index));
            SegmentBytes::Loaded(bytes)
        };
        let weights = match weighted {
            true => Some(shards.weights(index, pinned.unit(1, unit, spare_weights)?)?),
            false => None,
        };
        Ok((bytes, weights))
    }
}

/// The scratch buffers of one worker.
pub(crate) struct SparseBuffers<S> {
    sums: Touched<S>,
    units: Units,
    blocks: BlockBuffers,
}

impl<S> Default for SparseBuffers<S> {
    fn default() -> Self {
        Self { sums: Touched::default(), units: Units::default(), blocks: BlockBuffers::default() }
    }
}
