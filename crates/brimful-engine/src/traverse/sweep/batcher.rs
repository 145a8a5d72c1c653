//! Decoded edges in batches, for programs that are called for many edges at a time.
//!
//! Invariant: the edges of a batch are those that would reach [`Combiner::combine`], in its order.

use brimful_graph::codec::{BATCH as KEYS, Keys};

use crate::error::Result;
use crate::traverse::sweep::Sources;
use crate::vertex::program::{BATCH, Batched, Edges, Program, SignalOf, SumOf, is_left_out};

/// Collects decoded edges of one segment into batches for a program.
pub(crate) struct Batcher<'b, P: Program> {
    batched: &'b dyn Batched<P>,
    /// The sources whose signals are in memory.
    available: Sources<'b, SignalOf<P>>,
    /// The signals of the sources from `first_source` on.
    signals: &'b [SignalOf<P>],
    first_source: u64,
    first_target: u64,
    weighted: bool,
    sources: [u32; BATCH],
    targets: [u32; BATCH],
    weights: [f64; BATCH],
    count: usize,
    combined: u64,
    result: Result<()>,
}

impl<'b, P: Program> Batcher<'b, P> {
    /// A batcher for edges from `first_source` on to `first_target` on; skips sources outside
    /// `available`.
    pub(crate) fn new(
        batched: &'b dyn Batched<P>,
        available: Sources<'b, SignalOf<P>>,
        first_source: u64,
        first_target: u64,
        weighted: bool,
    ) -> Self {
        let first_source = first_source.max(available.first);
        Self {
            batched,
            available,
            signals: available.from(first_source),
            first_source,
            first_target,
            weighted,
            sources: [0; BATCH],
            targets: [0; BATCH],
            weights: [1.0; BATCH],
            count: 0,
            combined: 0,
            result: Ok(()),
        }
    }

    /// Takes more edges: keys, from the source `base` on, and their weights; `sums` are those of
    /// the 2^`bits` targets from the first on. False if an end of an edge is not a vertex, or the
    /// program failed.
    #[inline]
    pub(crate) fn add(
        &mut self,
        base: u64,
        keys: Keys<'_>,
        bits: u32,
        weights: &[f64; KEYS],
        sums: &mut [SumOf<P>],
    ) -> bool {
        let offset = base.wrapping_sub(self.first_source);
        let signals = self.signals.get(offset as usize..).unwrap_or_default();
        let at = self.count;
        let (Some(sources), Some(targets), Some(batch_weights)) = (
            self.sources[at..].first_chunk_mut::<KEYS>(),
            self.targets[at..].first_chunk_mut::<KEYS>(),
            self.weights[at..].first_chunk_mut::<KEYS>(),
        ) else {
            return false;
        };
        let (mut max_source, mut count) = (0, 0);
        for (key, weight) in keys.iter().zip(weights) {
            let (source, target) = (key >> bits, key & ((1 << bits) - 1));
            max_source = max_source.max(source);
            // The next edge overwrites a skipped one. The remainder makes a bounds check
            // unnecessary.
            sources[count % KEYS] = (offset as u32).wrapping_add(source);
            targets[count % KEYS] = target;
            if self.weighted {
                batch_weights[count % KEYS] = *weight;
            }
            let is_self_loop =
                base.wrapping_add(u64::from(source)) == self.first_target + u64::from(target);
            let signal = signals.get(source as usize);
            count +=
                usize::from(!signal.is_some_and(|signal| is_left_out::<P>(*signal, is_self_loop)));
        }
        let inside = (max_source as usize) < signals.len()
            && offset + u64::from(max_source) <= u64::from(u32::MAX);
        if !inside {
            match self.add_available(base, keys, bits, weights) {
                Some(added) => count = added,
                None => return false,
            }
        }
        // If all sources are silent, there may be no sums yet.
        if count > 0 && sums.len() >> bits == 0 {
            return false;
        }
        self.count += count;
        // There must be room for the next keys.
        if self.count > BATCH - KEYS {
            self.hand_over(sums);
        }
        self.result.is_ok()
    }

    /// Appends the edges whose sources are available and signal; returns their number. `None` if an
    /// end of an edge is not a vertex.
    fn add_available(
        &mut self,
        base: u64,
        keys: Keys<'_>,
        bits: u32,
        weights: &[f64; KEYS],
    ) -> Option<usize> {
        let mut end = self.count;
        for (key, weight) in keys.iter().zip(weights) {
            let (source, target) =
                (base.checked_add(u64::from(key >> bits))?, key & ((1 << bits) - 1));
            let Some(signal) = self.available.from(source).first() else {
                if source < self.available.vertices { continue } else { return None }
            };
            if is_left_out::<P>(*signal, source == self.first_target + u64::from(target)) {
                continue;
            }
            *self.sources.get_mut(end)? = source.checked_sub(self.first_source)?.try_into().ok()?;
            *self.targets.get_mut(end)? = target;
            *self.weights.get_mut(end)? = *weight;
            end += 1;
        }
        Some(end - self.count)
    }

    fn hand_over(&mut self, sums: &mut [SumOf<P>]) {
        let count = std::mem::take(&mut self.count);
        self.combined += count as u64;
        self.result = self.batched.edges(Edges {
            sources: &self.sources[..count],
            targets: &self.targets[..count],
            weights: self.weighted.then_some(&self.weights[..count]),
            first_source: self.first_source,
            first_target: self.first_target,
            signals: self.signals,
            sums,
        });
    }

    /// Passes on the last batch; returns the number of signals combined.
    pub(crate) fn finish(mut self, sums: &mut [SumOf<P>]) -> Result<u64> {
        if self.result.is_ok() && self.count > 0 {
            self.hand_over(sums);
        }
        self.result.map(|()| self.combined)
    }
}
