//! The interface of algorithms: the Signal/Collect model for numeric programs.
//!
//! (Signal/Collect: Stutz, Bernstein, Cohen 2010; *Making Signal/Collect Scale* 2011, chapter 2.)
//! In a superstep every signalling vertex signals along its edges, signals are folded into one sum
//! per target by a [`Combiner`], and every vertex collects its sum into its state.
//!
//! Distances from one vertex, a whole program:
//!
//! ```
//! use brimful_engine::{Globals, Min, Mode, Program, Vertex};
//!
//! /// Length of the shortest path from `source`, an internal id; infinite where there is none.
//! struct Distances {
//!     source: u64,
//! }
//!
//! impl Program for Distances {
//!     type State = f64;
//!     type Combiner = Min<f64>;
//!     type Aggregate = ();
//!     const MODE: Mode = Mode::Idempotent;
//!
//!     fn initial(&self, vertex: Vertex, _: &Globals<()>) -> f64 {
//!         if vertex.id == self.source { 0.0 } else { f64::INFINITY }
//!     }
//!     fn signal(&self, _: Vertex, distance: f64) -> f64 {
//!         distance
//!     }
//!     fn along(&self, distance: f64, weight: f64) -> f64 {
//!         distance + weight
//!     }
//!     fn collect(&self, _: Vertex, distance: f64, least: f64, _: &Globals<()>) -> f64 {
//!         distance.min(least)
//!     }
//! }
//! ```
//!
//! Every method is a pure function of its arguments. The engine calls them from many threads, in
//! the order that [`mod@crate::run`] documents.

use brimful_graph::Index;
use bytemuck::Pod;

use crate::error::Result;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::combiner::Combiner;
use crate::vertex::turn::{Thresholds, Turn};

/// How signals relate to states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every vertex signals its whole value in every superstep: PageRank by power steps.
    Full,
    /// Signals are increments, and the residual of a vertex is part of its state. A vertex signals
    /// when its score exceeds the threshold; the run ends when no vertex signals. Collecting the
    /// sum of no signals changes nothing.
    Delta,
    /// The combiner is min, max or or, so signals may be repeated, and omitted if nothing changed.
    /// A vertex signals when its score exceeds the threshold, by default when its state changed;
    /// the run ends when no vertex signals. Collecting the sum of no signals changes nothing.
    Idempotent,
}

/// A vertex, as a program sees it. Compiled kernels see it too, so its layout is part of
/// [`crate::vertex::kernel::ABI_VERSION`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Vertex {
    /// Internal id, from 0.
    pub id: u64,
    /// Outgoing arcs, with multiplicity. 0 in weighted runs over shards, and unless
    /// [`Program::needs_degrees`].
    pub degree: u64,
    /// Sum of outgoing weights, or the degree if the run is not weighted. 0 unless
    /// [`Program::needs_degrees`].
    pub strength: f64,
    /// The external id as an offset: its order key minus the smallest order key of the graph. Set
    /// only in [`Program::initial`]; 0 unless [`Program::NEEDS_EXTERNAL`].
    pub external: u64,
}

/// Values that every vertex can read in a superstep.
#[derive(Debug, Clone, Copy)]
pub struct Globals<A> {
    /// Number of vertices.
    pub vertices: u64,
    /// Supersteps completed.
    pub superstep: u64,
    /// Rounds completed (see [`Program::another_round`]).
    pub round: u64,
    /// [`Program::aggregate`] over the previous superstep.
    pub aggregate: A,
}

/// The signal type of a program.
pub type SignalOf<P> = <<P as Program>::Combiner as Combiner>::Signal;
/// The sum that a vertex collects.
pub type SumOf<P> = <<P as Program>::Combiner as Combiner>::Sum;

/// A numeric vertex program.
///
/// Results are the same bits at any budget and number of threads, as long as these methods are
/// pure.
///
/// Vertices without edges have no state of their own. In [`Mode::Full`] they behave alike: the
/// engine computes one of them, multiplies its part of the aggregate by their number, and merges it
/// last. Therefore [`Program::initial`] must then give the same state to all vertices of degree 0
/// without in-edges. In the other modes they keep their initial state and add nothing to the
/// aggregate, because collecting the sum of no signals changes nothing.
pub trait Program: Sync {
    /// The value that a vertex owns, or one of the values (see [`Program::state_len`]).
    type State: Pod + Send + Sync;
    /// The combiner that folds signals into sums.
    type Combiner: Combiner;
    /// The global value of a superstep; `()` for none.
    type Aggregate: Aggregate;

    /// How signals relate to states.
    const MODE: Mode;
    /// True if [`Vertex::external`] is used.
    const NEEDS_EXTERNAL: bool = false;
    /// True if [`Program::along`] returns [`Combiner::SILENCE`] unchanged and combining silence
    /// changes nothing, as with the ready-made combiners. The edge kernel then needs no check for
    /// silent sources.
    const KEEPS_SILENCE: bool = false;
    /// True if the final states do not depend on when signals are received; the program may then
    /// run asynchronously. On shards, the mode must be full or idempotent. On stores, which then
    /// have no supersteps, it must be delta or idempotent; there the aggregate covers a whole
    /// round, and may be used only at its end.
    const ASYNCHRONOUS: bool = false;
    /// True if vertices may signal in the order of [`Program::before`], without supersteps.
    /// Requirements: the mode is idempotent and the program asynchronous; a signal along an edge
    /// never comes before its source; a later vertex never improves an earlier one. Each vertex
    /// then signals about once, at any distance from the start (Dijkstra 1959). The program has no
    /// rounds and no aggregate, always walks all of its indexes, and takes edges one by one.
    const ORDERED: bool = false;
    /// False if vertices do not signal along self-loops.
    const SELF_LOOPS: bool = true;
    /// True if the program has a [batched](Program::batched) form. The engine then calls no method
    /// for a single vertex, nor for a single edge if the batched form
    /// [takes edges](Batched::takes_edges).
    const BATCHED: bool = false;

    /// The number of values of type [`Program::State`] that a vertex owns: 1, or that of the
    /// [batched](Program::batched) form.
    fn state_len(&self) -> usize {
        if Self::BATCHED { self.batched().state_len() } else { 1 }
    }

    /// True if [`Vertex::degree`] or [`Vertex::strength`] is used.
    fn needs_degrees(&self) -> bool {
        false
    }

    /// The shards to walk: [`Index::In`] for signals along edges, [`Index::Reverse`] against them.
    fn indexes(&self) -> &'static [Index] {
        &[Index::In]
    }

    /// True if the coming superstep walks `index`, one of [`Program::indexes`].
    fn walks(&self, index: Index, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = (index, globals);
        true
    }

    /// The state at the start.
    fn initial(&self, vertex: Vertex, globals: &Globals<Self::Aggregate>) -> Self::State;

    /// The signal of a vertex, computed once per superstep; [`Combiner::SILENCE`] for none.
    fn signal(&self, vertex: Vertex, state: Self::State) -> SignalOf<Self>;

    /// The signal after passing an edge. `weight` is 1 if the run is not weighted.
    #[inline]
    fn along(&self, signal: SignalOf<Self>, weight: f64) -> SignalOf<Self> {
        let _ = weight;
        signal
    }

    /// The state of a vertex after it collected `sum`.
    fn collect(
        &self,
        vertex: Vertex,
        state: Self::State,
        sum: SumOf<Self>,
        globals: &Globals<Self::Aggregate>,
    ) -> Self::State;

    /// The state of a vertex after it signalled; in [`Mode::Delta`], without the signalled
    /// residual. In [`Mode::Full`] the new state must give the same signal again, because
    /// checkpoints then omit signals.
    #[inline]
    fn signalled(&self, state: Self::State) -> Self::State {
        state
    }

    /// The score after a collect that changed the state from `old` to `new`; the vertex signals if
    /// it exceeds the threshold. By default 1 if the state changed, else 0. In [`Mode::Full`] the
    /// score only orders the parts of asynchronous sweeps.
    #[inline]
    fn signal_score(&self, old: Self::State, new: Self::State) -> f64 {
        f64::from(u8::from(bytemuck::bytes_of(&old) != bytemuck::bytes_of(&new)))
    }

    /// The urgency of signalling in this state, where no superstep orders vertices: a store without
    /// supersteps processes vertices of at least average urgency first. At least 0; by default the
    /// signal score, which is equal for all vertices if it only indicates a change.
    #[inline]
    fn urgency(&self, state: Self::State) -> f64 {
        self.signal_score(state, state)
    }

    /// True if a vertex with signal `one` comes before a vertex with signal `other`, in an
    /// [`Program::ORDERED`] program.
    #[inline]
    fn before(&self, one: SignalOf<Self>, other: SignalOf<Self>) -> bool {
        let _ = (one, other);
        false
    }

    /// The vertex collects if this score exceeds the threshold; otherwise its signals are dropped.
    /// By default 1. Not called in [`Mode::Full`].
    #[inline]
    fn collect_score(&self, state: Self::State, sum: SumOf<Self>) -> f64 {
        let _ = (state, sum);
        1.0
    }

    /// The contribution of the vertex to the aggregate. At the start, and at the beginning of a
    /// round, `old` equals `new`. Otherwise, in modes other than full, only vertices whose state
    /// changed contribute.
    #[inline]
    fn aggregate(&self, vertex: Vertex, old: Self::State, new: Self::State) -> Self::Aggregate {
        let _ = (vertex, old, new);
        Self::Aggregate::NOTHING
    }

    /// True if another round begins when no vertex has anything left to signal: every vertex then
    /// goes through [`Program::begin_round`], and supersteps continue. Not called in
    /// [`Mode::Full`].
    fn another_round(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }

    /// The state with which a vertex begins another round. Every vertex then signals as at the
    /// start, whatever the threshold; [`Program::signal`] must return [`Combiner::SILENCE`] for
    /// vertices that have no signal.
    fn begin_round(
        &self,
        vertex: Vertex,
        state: Self::State,
        globals: &Globals<Self::Aggregate>,
    ) -> Self::State {
        let _ = (vertex, globals);
        state
    }

    /// True if a vertex in this state is finished: collecting never changes its state, it never
    /// signals, adds nothing to the aggregate, and begins rounds unchanged. From the beginning of
    /// the next round, the engine skips intervals of finished vertices, and neither reads nor
    /// counts signals to them. Not called in [`Mode::Full`].
    #[inline]
    fn finished(&self, state: Self::State) -> bool {
        let _ = state;
        false
    }

    /// The batched form of a [`Program::BATCHED`] program.
    #[inline]
    fn batched(&self) -> &dyn Batched<Self> {
        unreachable!("only batched programs have a batched form")
    }

    /// True if the run has converged; called after every superstep.
    fn converged(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }

    /// True if the first states are those after a superstep, as in Pregel. A run in which no
    /// vertex has anything to do then ends without another one.
    fn begins_with_superstep(&self) -> bool {
        false
    }

    /// Merges sums of later sources into those of earlier ones, target by target.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn merge(&self, earlier: &mut [SumOf<Self>], later: &[SumOf<Self>]) -> Result<()> {
        for (earlier, later) in earlier.iter_mut().zip(later) {
            *earlier = Self::Combiner::merge(*earlier, *later);
        }
        Ok(())
    }

    /// True if no vertex acted in the last superstep. The run then ends as it was before this
    /// superstep, which does not count.
    fn was_idle(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }

    /// Acts before the first states, and may set the aggregate that [`Program::initial`] sees. Not
    /// called by a run that resumes.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn begin(&self, globals: &mut Globals<Self::Aggregate>) -> Result<()> {
        let _ = globals;
        Ok(())
    }

    /// Acts before each superstep, and may replace the aggregate of the last one, which the
    /// vertices of this one see. False ends the run.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn next_superstep(&self, globals: &mut Globals<Self::Aggregate>) -> Result<bool> {
        let _ = globals;
        Ok(true)
    }

    /// The data of a checkpoint in addition to states and globals.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn extra_state(&self) -> Result<String> {
        Ok(String::new())
    }

    /// Restores the data that [`Program::extra_state`] returned.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn restore_extra_state(&self, saved: &str) -> Result<()> {
        let _ = saved;
        Ok(())
    }
}

/// Whether a program omits the signal along an edge: the signal is silence, or the program skips
/// self-loops. Full programs have no silence.
#[inline(always)]
pub(crate) fn is_left_out<P: Program>(signal: SignalOf<P>, is_self_loop: bool) -> bool {
    P::MODE != Mode::Full && signal == P::Combiner::SILENCE || is_self_loop && !P::SELF_LOOPS
}

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
    /// Their states, [`Program::state_len`] values each, to be replaced; undefined at the first
    /// turn.
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
    /// The number of values of type [`Program::State`] that a vertex owns.
    fn state_len(&self) -> usize {
        1
    }

    /// False if edges come one by one: the engine then calls [`Program::along`] in its own loop
    /// over edges, which is twice as fast as batches.
    fn takes_edges(&self) -> bool {
        true
    }

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
