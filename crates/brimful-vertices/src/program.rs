//! What an algorithm provides: the Signal/Collect model for vertices of any kind.
//!
//! (Signal/Collect: Stutz, Bernstein, Cohen 2010; *Making Signal/Collect Scale* 2011, chapter 2.) A vertex whose
//! signal score exceeds the threshold signals along its edges; a vertex for which signals wait, and whose collect score
//! exceeds its threshold, collects them into its state.
//!
//! Distances from one vertex, a whole program:
//!
//! ```
//! use brimful_vertices::{Delivery, Edge, Edges, Failure, Loan, VertexOf, VertexProgram};
//!
//! struct Distances {
//!     source: u64,
//! }
//!
//! impl VertexProgram for Distances {
//!     type Id = u64;
//!     type State = f64;
//!     type Edge = f64;
//!     type Signal = f64;
//!
//!     fn delivery(&self) -> Delivery {
//!         Delivery::Combined
//!     }
//!     fn combine(&self, held: &mut f64, signal: f64) -> Result<(), Failure> {
//!         *held = held.min(signal);
//!         Ok(())
//!     }
//!     fn initial(&self, id: &u64, _: &Edges<u64, f64>) -> Result<f64, Failure> {
//!         Ok(if *id == self.source { 0.0 } else { f64::INFINITY })
//!     }
//!     fn signal(&self, source: &VertexOf<Self>, edge: Edge<'_, u64, f64>) -> Result<Option<f64>, Failure> {
//!         Ok(source.state.is_finite().then(|| source.state + edge.data))
//!     }
//!     fn collect(&self, vertex: &mut Loan<'_, VertexOf<Self>>, signals: &[f64]) -> Result<(), Failure> {
//!         let least = signals.iter().fold(vertex.state, |least, signal| least.min(*signal));
//!         if least < vertex.state {
//!             vertex.state = least;
//!         }
//!         Ok(())
//!     }
//! }
//! ```

pub use brimful_engine::program::{COLLECT_THRESHOLD, SIGNAL_THRESHOLD};

use crate::error::Failure;
use crate::field::Field;
use crate::id::Id;
use crate::store::Loan;
use crate::vertex::{Edge, Edges, Vertex};

/// The vertices of a program.
pub type VertexOf<P> = Vertex<
    <P as VertexProgram>::Id,
    <P as VertexProgram>::State,
    <P as VertexProgram>::Edge,
    <P as VertexProgram>::Signal,
>;

/// What becomes of signals between their source and the collect of their target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Each is collected once (data-flow vertices).
    Each,
    /// Signals to one vertex are combined on the way; it collects what became of them.
    Combined,
    /// The vertex remembers the latest signal of each edge that leads to it and collects all of them each time (data-graph
    /// vertices). Parallel edges are told apart by the order in which their source has them.
    LatestPerEdge,
}

/// A vertex program.
///
/// Methods other than [`VertexProgram::collect`] are pure functions of their arguments; all are called from many
/// threads, for one vertex from one at a time. A [`Failure`] ends the run, which names the vertex.
pub trait VertexProgram: Sync {
    /// What names a vertex.
    type Id: Id;
    /// What a vertex owns.
    type State: Clone + PartialEq + Send + 'static;
    /// What an edge carries; `()` for nothing.
    type Edge: Clone + Send + 'static;
    /// What goes along edges.
    type Signal: Field;

    /// What becomes of signals on their way.
    fn delivery(&self) -> Delivery {
        Delivery::Each
    }

    /// Makes one of two signals to the same vertex; associative and commutative. Asked if signals are [`Delivery::Combined`].
    fn combine(&self, held: &mut Self::Signal, signal: Self::Signal) -> Result<(), Failure> {
        let _ = (held, signal);
        Err("signals are to be combined, and the program does not say how; implement `combine`".into())
    }

    /// The state at the start.
    fn initial(&self, id: &Self::Id, edges: &Edges<Self::Id, Self::Edge>) -> Result<Self::State, Failure>;

    /// What goes along an edge; `None` for nothing.
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, Self::Id, Self::Edge>,
    ) -> Result<Option<Self::Signal>, Failure>;

    /// Folds signals into the state. `signals` are those that came since the last collect, one if they are combined, those of all edges
    /// with [`Delivery::LatestPerEdge`]; none, if a collect was requested where none came. A vertex that is not changed is not written.
    fn collect(&self, vertex: &mut Loan<'_, VertexOf<Self>>, signals: &[Self::Signal])
    -> Result<(), Failure>;

    /// True if every vertex signals and collects in every synchronous superstep, whatever its scores, which are not asked then,
    /// nor is [`Vertex::signalled`] kept.
    fn is_full(&self) -> bool {
        false
    }

    /// False if collecting and scores neither look at edges nor change them: vertices of a store may then come without.
    fn collects_edges(&self) -> bool {
        true
    }

    /// Changes the state of a vertex that has just signalled along all its edges: what it said may be part of its state.
    #[inline]
    fn signalled(&self, state: &mut Self::State) {
        let _ = state;
    }

    /// What a vertex knows already, put as a signal: signals that change nothing when combined with it need not be collected. Asked
    /// after a collect if signals are [`Delivery::Combined`]. By default nobody knows.
    #[inline]
    fn known(&self, vertex: &VertexOf<Self>) -> Option<Self::Signal> {
        let _ = vertex;
        None
    }

    /// How much there is to signal: the vertex signals if this exceeds the threshold. By default 1 if its edges changed, it
    /// never signalled, or its state is not the one that it signalled last, else 0.
    #[inline]
    fn signal_score(&self, vertex: &VertexOf<Self>) -> f64 {
        f64::from(u8::from(vertex.signalled.as_ref() != Some(&vertex.state)))
    }

    /// How much there is to collect: the vertex collects if this exceeds the threshold, else the signals are forgotten.
    /// By default 1.
    #[inline]
    fn collect_score(&self, vertex: &VertexOf<Self>, signals: &[Self::Signal]) -> f64 {
        let _ = (vertex, signals);
        1.0
    }
}
