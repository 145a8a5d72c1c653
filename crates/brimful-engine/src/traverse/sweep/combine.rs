//! The edge kernel: combines the signals of one segment into sums.
//!
//! A batch of edges takes the fast path if the signals of all its sources are in memory. Otherwise
//! the edges are checked one by one: the segment reaches into another source window, or is corrupt.

use brimful_graph::codec::{BATCH, Keys, scatter};

use crate::error::Result;
use crate::traverse::schedule::SegmentRef;
use crate::traverse::sweep::Sweep;
use crate::traverse::sweep::batcher::Batcher;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program, SignalOf, SumOf, is_left_out};

/// A batch of at most this many sources is checked for silence first: a silent hub is the source of
/// many edges in a row.
const FEW: usize = 32;

/// Sources whose signals are in memory: all vertices, or a window of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a, S> {
    pub(crate) first: u64,
    pub(crate) signals: &'a [S],
    /// Number of vertices; a source beyond is corrupt.
    pub(crate) vertices: u64,
}

impl<'a, S: Copy> Sources<'a, S> {
    /// All vertices.
    pub(crate) fn all(signals: &'a [S]) -> Self {
        Self { first: 0, signals, vertices: signals.len() as u64 }
    }

    /// The signals from `source` on; empty if the signal of `source` is not in memory.
    #[inline]
    pub(crate) fn from(&self, source: u64) -> &'a [S] {
        self.signals.get(source.wrapping_sub(self.first) as usize..).unwrap_or_default()
    }

    /// One past the last source in memory.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.signals.len() as u64
    }
}

impl<P: Program> Sweep<'_, P> {
    /// Combines the signals of one segment into `sums`; returns their number.
    pub(super) fn accumulate(
        &self,
        step: SegmentRef,
        unit: &[u8],
        weights: &[u8],
        buffer: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<u64> {
        match self.weighted {
            true => self.accumulate_segment::<true>(step, unit, Some(weights), buffer, sums),
            false => self.accumulate_segment::<false>(step, unit, None, buffer, sums),
        }
    }

    /// `WEIGHTED` is a constant, so that the weight 1 costs nothing in the loop.
    #[inline(never)]
    fn accumulate_segment<const WEIGHTED: bool>(
        &self,
        step: SegmentRef,
        unit: &[u8],
        weights: Option<&[u8]>,
        buffer: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<u64> {
        let (program, sources, bits) = (self.program, self.sources, self.interval_bits);
        let shards = self.files[step.file].shards();
        let first_target = (step.interval as u64) << bits;
        let mut left_out = 0;
        // The sum keeps its bits, whatever value the program computes for an omitted signal.
        let fold = |signal: SignalOf<P>, weight: f64, sum: &mut SumOf<P>, is_self_loop: bool| {
            let weight = if WEIGHTED { weight } else { 1.0 };
            let folded = P::Combiner::combine(*sum, program.along(signal, weight));
            let skip = is_left_out::<P>(signal, is_self_loop);
            let may_fold = P::KEEPS_SILENCE && !is_self_loop;
            *sum = if skip && !may_fold { *sum } else { folded };
            u64::from(skip)
        };
        let all_silent = |base: u64, keys: &Keys<'_>| {
            let few =
                Some(keys.sources(bits)).filter(|few| P::MODE != Mode::Full && few.len() <= FEW);
            few.and_then(|few| sources.from(base).get(few))
                .is_some_and(|few| few.iter().all(|signal| is_left_out::<P>(*signal, false)))
        };
        shards.decode(
            step.segment,
            unit,
            weights,
            self.unpack,
            buffer,
            |base, keys, weights| {
                if all_silent(base, &keys) {
                    left_out += keys.len() as u64;
                    return true;
                }
                let mut key_weights = weights.iter();
                let all_inside = P::SELF_LOOPS
                    && scatter(keys, bits, sources.from(base), sums, |signal, sum| {
                        let weight =
                            if WEIGHTED { key_weights.next().copied().unwrap_or(1.0) } else { 1.0 };
                        left_out += fold(signal, weight, sum, false);
                    });
                all_inside || {
                    scatter_checked(base, keys, weights, bits, first_target, sources, sums, fold)
                        .map(|count| left_out += count)
                        .is_some()
                }
            },
        )?;
        Ok(u64::from(shards.segments()[step.segment].edges) - left_out)
    }

    /// Combines the signals of one segment for programs that take batches; returns their number.
    pub(super) fn accumulate_batches(
        &self,
        step: SegmentRef,
        unit: &[u8],
        weights: &[u8],
        buffer: &mut Vec<u8>,
        sums: &mut [SumOf<P>],
    ) -> Result<u64> {
        let (shards, bits) = (self.files[step.file].shards(), self.interval_bits);
        let first_source = shards.segments()[step.segment].first_source;
        let first_target = (step.interval as u64) << bits;
        let mut batcher = Batcher::new(
            self.program.batched(),
            self.sources,
            first_source,
            first_target,
            self.weighted,
        );
        let weights = self.weighted.then_some(weights);
        let decoded = shards.decode(
            step.segment,
            unit,
            weights,
            self.unpack,
            buffer,
            |base, keys, weights| batcher.add(base, keys, bits, weights, sums),
        );
        let combined = batcher.finish(sums)?;
        decoded?;
        Ok(combined)
    }
}

/// [`scatter`] edge by edge: sources that are not in memory are skipped, and `fold` receives
/// whether the source is the target. Returns the number of edges left out, including those that
/// `fold` leaves out; `None` if an end of an edge is not a vertex.
#[inline(never)]
fn scatter_checked<A: Copy, B>(
    base: u64,
    keys: Keys<'_>,
    weights: &[f64; BATCH],
    target_bits: u32,
    first_target: u64,
    sources: Sources<'_, A>,
    targets: &mut [B],
    fold: impl Fn(A, f64, &mut B, bool) -> u64,
) -> Option<u64> {
    let mut left_out = 0;
    for (key, weight) in keys.iter().zip(weights) {
        let source = base.checked_add(u64::from(key >> target_bits))?;
        let target = key & ((1 << target_bits) - 1);
        let sum = targets.get_mut(target as usize)?;
        left_out += match sources.from(source).first() {
            Some(signal) => fold(*signal, *weight, sum, source == first_target + u64::from(target)),
            None if source < sources.vertices => 1,
            None => return None,
        };
    }
    Some(left_out)
}
