//! What an algorithm provides: the Signal/Collect model for numeric programs.
//!
//! (Signal/Collect: Stutz, Bernstein, Cohen 2010; *Making Signal/Collect Scale* 2011, chapter 2.)
//! Every method is a pure function of its arguments: the engine calls them from many threads, in the
//! order that the module documentation of [`mod@crate::run`] promises.

use brimful_graph::Index;
use bytemuck::Pod;

/// How signals relate to states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every vertex signals in every superstep.
    Full,
    /// Combining the same signal twice changes nothing (min, max, or): only vertices whose state
    /// changed signal, and the run ends when none did.
    Idempotent,
}

/// A vertex, as a program sees it.
#[derive(Debug, Clone, Copy)]
pub struct Vertex {
    /// Internal id, from 0.
    pub id: u64,
    /// Outgoing arcs, with multiplicity. 0 unless [`Program::NEEDS_DEGREES`].
    pub degree: u64,
    /// Sum of outgoing weights; the degree where the run is not weighted.
    pub strength: f64,
    /// The place of the external id among all 2^64: its order key minus that of the smallest id of the
    /// graph. Only in [`Program::initial`], and 0 unless [`Program::NEEDS_EXTERNAL`].
    pub external: u64,
}

/// Sums over all vertices, in an order that never varies.
pub type Aggregate = [f64; 2];

/// What is known to every vertex in a superstep.
#[derive(Debug, Clone, Copy)]
pub struct Globals {
    /// Number of vertices.
    pub vertices: u64,
    /// Supersteps completed.
    pub superstep: u64,
    /// Sums of [`Program::aggregate`] over the superstep before.
    pub aggregate: Aggregate,
}

/// A numeric vertex program.
///
/// Results are the same bits at any budget and number of threads as long as these methods are pure.
///
/// Vertices without edges have no state. In [`Mode::Full`] they behave alike: one of them is evolved for
/// all, and its part of the aggregate is multiplied by their number and added last. Therefore
/// [`Program::initial`] must then give the same state to all vertices of degree 0 without in-edges. In
/// [`Mode::Idempotent`] collecting the sum of no signals changes nothing, so their state stays the
/// initial one, and they add nothing to the aggregate.
pub trait Program: Sync {
    /// What a vertex owns.
    type State: Pod + Send + Sync;
    /// What a vertex sends along each of its edges, computed once per vertex and superstep.
    type Signal: Pod + Send + Sync + PartialEq;
    /// What a vertex folds signals into.
    type Sum: Pod + Send + Sync;

    /// How signals relate to states.
    const MODE: Mode;
    /// True if [`Vertex::degree`] or [`Vertex::strength`] is used.
    const NEEDS_DEGREES: bool;
    /// True if [`Vertex::external`] is used.
    const NEEDS_EXTERNAL: bool = false;

    /// The shards to walk: [`Index::In`] for signals along edges, [`Index::Reverse`] against them.
    fn indexes(&self) -> &'static [Index];
    /// The state at the start.
    fn initial(&self, vertex: Vertex, globals: &Globals) -> Self::State;
    /// What the vertex sends along each edge.
    fn signal(&self, vertex: Vertex, state: Self::State) -> Self::Signal;
    /// A signal that changes no sum: what an idle vertex sends.
    fn silence(&self) -> Self::Signal;
    /// The sum of no signals.
    fn identity(&self) -> Self::Sum;
    /// Folds one signal into a sum. `weight` is 1 where the run is not weighted.
    fn combine(&self, sum: Self::Sum, signal: Self::Signal, weight: f64) -> Self::Sum;
    /// Adds two sums, the one of earlier sources first.
    fn merge(&self, earlier: Self::Sum, later: Self::Sum) -> Self::Sum;
    /// The new state.
    fn collect(&self, vertex: Vertex, state: Self::State, sum: Self::Sum, globals: &Globals) -> Self::State;
    /// True if a vertex whose state went from `old` to `new` signals next ([`Mode::Idempotent`]).
    fn changed(&self, old: Self::State, new: Self::State) -> bool;
    /// What the vertex adds to the aggregate. At the start `old` is `new`.
    fn aggregate(&self, vertex: Vertex, old: Self::State, new: Self::State) -> Aggregate;
    /// True if the run has converged, asked after every superstep.
    fn converged(&self, globals: &Globals) -> bool;
}
