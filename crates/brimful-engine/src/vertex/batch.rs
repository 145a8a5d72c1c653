//! Programs that are called for many edges or vertices at a time.
//!
//! A [`Program`] is compiled into the loops of the engine. A program that is unknown at compile
//! time (see [`crate::vertex::kernel`]) gets decoded edges and vertices in batches that fit the cache
//! instead. Invariant: edges and vertices come in the order of calls to the methods of [`Program`],
//! and only those that would reach [`Combiner::combine`]. So a program that processes each batch in
//! order computes the same bits.

use brimful_graph::codec::{BATCH as KEYS, Keys};

use crate::error::Result;
use crate::traverse::sweep::Sources;
use crate::vertex::collect::{Partial, Thresholds, Turn};
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Globals, Program, SignalOf, SumOf, Vertex, is_left_out};

/// Most edges, or vertices, of a batch: 16 KiB of edges and weights.
pub const BATCH: usize = 1024;

/// Edges of signalling sources, in the order in which signals are combined.
pub struct Edges<'b, P: Program + ?Sized> {
    /// Sources, counted from `first_source`.
    pub sources: &'b [u32],
    /// Targets, counted from `first_target`.
    pub targets: &'b [u32],
    /// Weights, if the run is weighted.
    pub weights: Option<&'b [f64]>,
    /// The vertex of the first entry of `signals`.
    pub first_source: u64,
    /// The vertex of the first entry of `sums`.
    pub first_target: u64,
    /// The signals of sources; all of `sources` are in range.
    pub signals: &'b [SignalOf<P>],
    /// The sums of targets so far; all of `targets` are in range.
    pub sums: &'b mut [SumOf<P>],
}

/// Vertices, in order of their ids, that take the same turn.
pub struct Vertices<'b, P: Program + ?Sized> {
    /// Their turn; the sums to collect are those of `vertices`.
    pub turn: Turn<'b, SumOf<P>>,
    /// The vertices.
    pub vertices: &'b [Vertex],
    /// Their states, to be replaced; undefined at the first turn.
    pub states: &'b mut [P::State],
    /// Receives the signal of each vertex, [`Combiner::SILENCE`] for none; undefined before.
    pub signals: &'b mut [SignalOf<P>],
    /// Values that every vertex can read.
    pub globals: &'b Globals<P::Aggregate>,
    /// The scores above which vertices act, in the modes other than full.
    pub thresholds: Thresholds,
    /// The aggregate, into which the value of each vertex is merged, one by one.
    pub aggregate: &'b mut P::Aggregate,
    /// The signal score of each vertex is added to this when it collects.
    pub score: &'b mut f64,
}

/// A program that is called for many edges or vertices at a time (see [`Program::batched`]).
pub trait Batched<P: Program + ?Sized> {
    /// Combines the source's signal along each edge into the target's sum.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn edges(&self, edges: Edges<'_, P>) -> Result<()>;

    /// Lets each vertex take its turn.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn vertices(&self, vertices: Vertices<'_, P>) -> Result<()>;
}

/// Collects decoded edges of one segment into batches for a program.
pub(crate) struct Batcher<'b, P: Program> {
    batched: &'b dyn Batched<P>,
    known: Sources<'b, SignalOf<P>>,
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
    /// `known`.
    pub(crate) fn new(
        batched: &'b dyn Batched<P>,
        known: Sources<'b, SignalOf<P>>,
        (first_source, first_target): (u64, u64),
        weighted: bool,
    ) -> Self {
        let first_source = first_source.max(known.first);
        Self {
            batched,
            known,
            signals: known.from(first_source),
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
    /// the 2^`bits` targets from the first on. False if an edge leads nowhere, or the program
    /// failed.
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
        let (Some(sources), Some(targets), Some(kept)) = (
            self.sources[at..].first_chunk_mut::<KEYS>(),
            self.targets[at..].first_chunk_mut::<KEYS>(),
            self.weights[at..].first_chunk_mut::<KEYS>(),
        ) else {
            return false;
        };
        let (mut most, mut count) = (0, 0);
        for (key, weight) in keys.iter().zip(weights) {
            let (source, target) = (key >> bits, key & ((1 << bits) - 1));
            most = most.max(source);
            // The next edge overwrites a skipped one. The remainder makes a bounds check
            // unnecessary.
            sources[count % KEYS] = (offset as u32).wrapping_add(source);
            targets[count % KEYS] = target;
            if self.weighted {
                kept[count % KEYS] = *weight;
            }
            let is_self_loop =
                base.wrapping_add(u64::from(source)) == self.first_target + u64::from(target);
            let signal = signals.get(source as usize);
            count +=
                usize::from(!signal.is_some_and(|signal| is_left_out::<P>(*signal, is_self_loop)));
        }
        let inside =
            (most as usize) < signals.len() && offset + u64::from(most) <= u64::from(u32::MAX);
        if !inside {
            match self.add_known(base, keys, bits, weights) {
                Some(known) => count = known,
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

    /// Appends the edges with known, signalling sources; returns their number. `None` if an edge
    /// leads nowhere.
    fn add_known(
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
            let Some(signal) = self.known.from(source).first() else {
                if source < self.known.vertices { continue } else { return None }
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

/// Lets vertices take a turn; `vertex` returns the vertex of each of `states`.
pub(crate) fn take_turns<P: Program>(
    batched: &dyn Batched<P>,
    turn: Turn<'_, SumOf<P>>,
    (states, signals): (&mut [P::State], &mut [SignalOf<P>]),
    vertex: &dyn Fn(usize) -> Vertex,
    (globals, thresholds): (&Globals<P::Aggregate>, Thresholds),
    partial: &mut Partial<P::Aggregate>,
) -> Result<()> {
    let mut vertices = Vec::with_capacity(BATCH.min(states.len()));
    for (index, (states, signals)) in
        states.chunks_mut(BATCH).zip(signals.chunks_mut(BATCH)).enumerate()
    {
        let range = index * BATCH..index * BATCH + states.len();
        vertices.clear();
        vertices.extend(range.clone().map(vertex));
        batched.vertices(Vertices {
            turn: match turn {
                Turn::Collect(sums) => Turn::Collect(&sums[range]),
                Turn::First | Turn::Round => turn,
            },
            vertices: &vertices,
            states,
            signals,
            globals,
            thresholds,
            aggregate: &mut partial.aggregate,
            score: &mut partial.score,
        })?;
    }
    Ok(())
}

/// Lets the targets of `target_sums`, positions in `states`, collect their sums.
pub(crate) fn collect_target_sums<P: Program>(
    batched: &dyn Batched<P>,
    target_sums: &[(u32, SumOf<P>)],
    (states, signals): (&mut [P::State], &mut [SignalOf<P>]),
    vertex: impl Fn(u32) -> Vertex,
    known: (&Globals<P::Aggregate>, Thresholds),
    partial: &mut Partial<P::Aggregate>,
) -> Result<()> {
    for target_sums in target_sums.chunks(BATCH) {
        let mut of_targets: Vec<P::State> =
            target_sums.iter().map(|(at, _)| states[*at as usize]).collect();
        let sums: Vec<SumOf<P>> = target_sums.iter().map(|(_, sum)| *sum).collect();
        let mut said = vec![P::Combiner::SILENCE; target_sums.len()];
        let arrays = (&mut of_targets[..], &mut said[..]);
        let vertex = |at: usize| vertex(target_sums[at].0);
        take_turns(batched, Turn::Collect(&sums), arrays, &vertex, known, partial)?;
        for ((at, _), (state, signal)) in target_sums.iter().zip(of_targets.into_iter().zip(said)) {
            (states[*at as usize], signals[*at as usize]) = (state, signal);
        }
    }
    Ok(())
}

/// Lets a single vertex take `turn`; returns its state and its part of the aggregate.
pub(crate) fn take_turn<P: Program>(
    batched: &dyn Batched<P>,
    turn: Turn<'_, SumOf<P>>,
    vertex: Vertex,
    state: P::State,
    known: (&Globals<P::Aggregate>, Thresholds),
) -> Result<(P::State, P::Aggregate)> {
    let (mut states, mut signals) = ([state], [P::Combiner::SILENCE]);
    let mut partial = Partial::default();
    let arrays = (&mut states[..], &mut signals[..]);
    take_turns(batched, turn, arrays, &|_| vertex, known, &mut partial)?;
    Ok((states[0], partial.aggregate))
}
