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
//! Every method is a pure function of its arguments: the engine calls them from many threads, in
//! the order that the module documentation of [`mod@crate::run`] promises.

use brimful_graph::Index;
use bytemuck::Pod;

use crate::aggregate::Aggregate;
use crate::batch::Batched;
use crate::combiner::Combiner;

/// How signals relate to states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every vertex signals its whole value in every superstep: PageRank by power steps.
    Full,
    /// Signals are increments, and the residual of a vertex is part of its state. A vertex signals
    /// when its score exceeds the threshold; the run ends when none does. Collecting the sum of no
    /// signals changes nothing.
    Delta,
    /// Signals may be repeated, or left out if nothing changed, because the combiner is min, max or
    /// or. A vertex signals when its score exceeds the threshold, by default when its state
    /// changed; the run ends when none does. Collecting the sum of no signals changes nothing.
    Idempotent,
}

/// A vertex, as a program sees it; compiled kernels too, so that its layout is part of
/// [`crate::kernel::ABI_VERSION`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Vertex {
    /// Internal id, from 0.
    pub id: u64,
    /// Outgoing arcs, with multiplicity. 0 unless [`Program::NEEDS_DEGREES`].
    pub degree: u64,
    /// Sum of outgoing weights; the degree where the run is not weighted.
    pub strength: f64,
    /// The place of the external id among all 2^64: its order key minus that of the smallest id of
    /// the graph. Only in [`Program::initial`], and 0 unless [`Program::NEEDS_EXTERNAL`].
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
    /// [`Program::aggregate`] over the superstep before.
    pub aggregate: A,
}

/// The signal type of a program.
pub type SignalOf<P> = <<P as Program>::Combiner as Combiner>::Signal;
/// The sum that a vertex collects.
pub type SumOf<P> = <<P as Program>::Combiner as Combiner>::Sum;

/// The score above which a vertex signals, unless the user sets another (Signal/Collect's default).
pub const SIGNAL_THRESHOLD: f64 = 0.01;
/// The score above which a vertex collects, unless the user sets another (Signal/Collect's
/// default).
pub const COLLECT_THRESHOLD: f64 = 0.0;

/// A numeric vertex program.
///
/// Results are the same bits at any budget and number of threads as long as these methods are pure.
///
/// Vertices without edges have no state. In [`Mode::Full`] they behave alike: one of them is
/// evolved for all, and its part of the aggregate is multiplied by their number and merged last.
/// Therefore [`Program::initial`] must then give the same state to all vertices of degree 0 without
/// in-edges. In the other modes collecting the sum of no signals changes nothing, so their state
/// stays the initial one, and they add nothing to the aggregate.
pub trait Program: Sync {
    /// What a vertex owns.
    type State: Pod + Send + Sync;
    /// How signals become sums.
    type Combiner: Combiner;
    /// What is known of all vertices after a superstep; `()` for nothing.
    type Aggregate: Aggregate;

    /// How signals relate to states.
    const MODE: Mode;
    /// True if [`Vertex::degree`] or [`Vertex::strength`] is used.
    const NEEDS_DEGREES: bool = false;
    /// True if [`Vertex::external`] is used.
    const NEEDS_EXTERNAL: bool = false;
    /// True if [`Program::along`] leaves [`Combiner::SILENCE`] as it is and combining that changes
    /// nothing, as with the ready-made combiners: then nobody need look at every edge whether its
    /// source is silent.
    const KEEPS_SILENCE: bool = false;
    /// True if the states that the run ends with do not depend on when signals are heard: then it
    /// may run asynchronously. On the disk path that is for the modes full and idempotent; on
    /// stores of vertices, where there are no supersteps then, for delta and idempotent, and the
    /// aggregate may be used only where a round ends, and is that over the whole round.
    const ASYNCHRONOUS: bool = false;
    /// True if vertices may signal in the order of [`Program::before`], without supersteps: the
    /// mode is idempotent and the program asynchronous, an edge never makes a signal come before
    /// its source, and a vertex that comes later never has anything to tell one that came before.
    /// Each then signals about once, however far signals travel (Dijkstra 1959). The program has no
    /// rounds and no aggregate, walks all of its indexes always, and takes edges one by one.
    const ORDERED: bool = false;
    /// False if nothing is signalled along edges from a vertex to itself.
    const SELF_LOOPS: bool = true;

    /// The shards to walk: [`Index::In`] for signals along edges, [`Index::Reverse`] against them.
    fn indexes(&self) -> &'static [Index] {
        &[Index::In]
    }

    /// Whether the coming superstep walks `index`, one of [`Program::indexes`].
    fn walks(&self, index: Index, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = (index, globals);
        true
    }

    /// The state at the start.
    fn initial(&self, vertex: Vertex, globals: &Globals<Self::Aggregate>) -> Self::State;

    /// What the vertex has to say, computed once per superstep; [`Combiner::SILENCE`] says nothing.
    fn signal(&self, vertex: Vertex, state: Self::State) -> SignalOf<Self>;

    /// What becomes of a signal along an edge. `weight` is 1 where the run is not weighted.
    #[inline]
    fn along(&self, signal: SignalOf<Self>, weight: f64) -> SignalOf<Self> {
        let _ = weight;
        signal
    }

    /// The new state.
    fn collect(
        &self,
        vertex: Vertex,
        state: Self::State,
        sum: SumOf<Self>,
        globals: &Globals<Self::Aggregate>,
    ) -> Self::State;

    /// The state of a vertex that has just signalled ([`Mode::Delta`]: without what it said). In
    /// [`Mode::Full`] it must say the same again: a checkpoint then needs no signals.
    #[inline]
    fn signalled(&self, state: Self::State) -> Self::State {
        state
    }

    /// How much there is to signal after a collect that took the state from `old` to `new`: the
    /// vertex signals if this exceeds the threshold. By default 1 if the state changed, else 0. In
    /// [`Mode::Full`] it only tells an asynchronous run what to do next.
    #[inline]
    fn signal_score(&self, old: Self::State, new: Self::State) -> f64 {
        f64::from(u8::from(bytemuck::bytes_of(&old) != bytemuck::bytes_of(&new)))
    }

    /// How urgent it is that a vertex in this state says what it has to say, where no superstep
    /// orders it: on a store without supersteps those go first that are not below the average. At
    /// least 0; by default its score, and all are equal where that is only of a change.
    #[inline]
    fn urgency(&self, state: Self::State) -> f64 {
        self.signal_score(state, state)
    }

    /// Whether a vertex in state `one` signals before one in state `other`, in a program that is
    /// [`Program::ORDERED`].
    #[inline]
    fn before(&self, one: Self::State, other: Self::State) -> bool {
        let _ = (one, other);
        false
    }

    /// How much there is to collect: the vertex collects if this exceeds the threshold, else the
    /// signals are forgotten. By default 1. Not asked in [`Mode::Full`].
    #[inline]
    fn collect_score(&self, state: Self::State, sum: SumOf<Self>) -> f64 {
        let _ = (state, sum);
        1.0
    }

    /// What the vertex adds to the aggregate. At the start, and where a round begins, `old` is
    /// `new`. Else, in the modes other than full, only vertices whose state changed add something.
    #[inline]
    fn aggregate(&self, vertex: Vertex, old: Self::State, new: Self::State) -> Self::Aggregate {
        let _ = (vertex, old, new);
        Self::Aggregate::NOTHING
    }

    /// True if there is another round when no vertex has anything left to signal: every vertex then
    /// goes through [`Program::begin_round`], and supersteps go on. Not asked in [`Mode::Full`].
    fn another_round(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }

    /// The state with which a vertex begins another round. Every vertex then signals as at the
    /// start, whatever the threshold: one that has nothing to say must return [`Combiner::SILENCE`]
    /// from [`Program::signal`].
    fn begin_round(
        &self,
        vertex: Vertex,
        state: Self::State,
        globals: &Globals<Self::Aggregate>,
    ) -> Self::State {
        let _ = (vertex, globals);
        state
    }

    /// True if a vertex in this state takes no part any more: whatever it collects it stays so, it
    /// signals nothing, adds nothing to the aggregate and begins rounds as it is. Where a round
    /// begins, intervals of such vertices are left out from then on, and what is signalled to them
    /// is neither read nor counted. Not asked in [`Mode::Full`].
    #[inline]
    fn finished(&self, state: Self::State) -> bool {
        let _ = state;
        false
    }

    /// The program as one that takes many edges or vertices at a time; if it is, nothing else is
    /// asked for a single edge or vertex.
    #[inline]
    fn batched(&self) -> Option<&dyn Batched<Self>> {
        None
    }

    /// True if the run has converged, asked after every superstep.
    fn converged(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }
}

/// Whether a program leaves out the signal along an edge: it is silence, or the edge is a self-loop
/// that the program does not want. Full programs have no silence.
#[inline(always)]
pub(crate) fn is_left_out<P: Program>(signal: SignalOf<P>, is_self_loop: bool) -> bool {
    P::MODE != Mode::Full && signal == P::Combiner::SILENCE || is_self_loop && !P::SELF_LOOPS
}
