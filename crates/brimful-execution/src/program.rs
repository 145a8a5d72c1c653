//! The interface of algorithms: the Signal/Collect model for vertices of any kind.
//!
//! (Signal/Collect: Stutz, Bernstein, Cohen 2010; *Making Signal/Collect Scale* 2011, chapter 2.) A
//! vertex whose signal score exceeds the threshold signals along its edges; a vertex for which
//! signals wait, and whose collect score exceeds its threshold, collects them into its state.
//!
//! Distances from one vertex, a whole program:
//!
//! ```
//! use brimful_execution::{Delivery, Failure, VertexOf, VertexProgram};
//! use brimful_vertices::{Edge, Edges, Loan};
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
//!     fn combine(&self, waiting: &mut f64, signal: f64) -> Result<(), Failure> {
//!         *waiting = waiting.min(signal);
//!         Ok(())
//!     }
//!     fn initial(&self, id: &u64, _: &Edges<u64, f64>) -> Result<f64, Failure> {
//!         Ok(if *id == self.source { 0.0 } else { f64::INFINITY })
//!     }
//!     fn signal(
//!         &self,
//!         source: &VertexOf<Self>,
//!         edge: Edge<'_, u64, f64>,
//!     ) -> Result<Option<f64>, Failure> {
//!         Ok(source.state.is_finite().then(|| source.state + edge.data))
//!     }
//!     fn collect(
//!         &self,
//!         vertex: &mut Loan<'_, VertexOf<Self>>,
//!         signals: &[f64],
//!     ) -> Result<(), Failure> {
//!         let least = signals.iter().fold(vertex.state, |least, signal| least.min(*signal));
//!         if least < vertex.state {
//!             vertex.state = least;
//!         }
//!         Ok(())
//!     }
//! }
//! ```

pub use brimful_engine::{COLLECT_THRESHOLD, SIGNAL_THRESHOLD};

use brimful_vertices::cache::ScoreFunction;
use brimful_vertices::{Edge, Edges, Field, Id, Loan, Vertex};

use crate::error::Failure;

/// The vertices of a program.
pub type VertexOf<P> = Vertex<
    <P as VertexProgram>::Id,
    <P as VertexProgram>::State,
    <P as VertexProgram>::Edge,
    <P as VertexProgram>::Signal,
>;

/// The delivery of signals from their source to the collect of their target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Each is collected once (data-flow vertices).
    Each,
    /// Signals to one vertex are combined on the way; it collects the result.
    Combined,
    /// The vertex stores the latest signal of each incoming edge and collects all of them each time
    /// (data-graph vertices). Parallel edges are distinguished by their order at the source.
    LatestPerEdge,
}

/// A vertex that collects together with others.
pub struct Collecting<P: VertexProgram + ?Sized> {
    /// The vertex.
    pub id: P::Id,
    /// Its state, which the program replaces.
    pub state: P::State,
    /// The combined signals; `None` if only a collect was requested.
    pub signal: Option<P::Signal>,
    /// Set by the program: the vertex is due to signal.
    pub is_due: bool,
}

/// A vertex program.
///
/// Methods other than [`VertexProgram::collect`] are pure functions of their arguments. All are
/// called from many threads, but for one vertex by one thread at a time. A [`Failure`] ends the run
/// with an error that names the vertex.
pub trait VertexProgram: Sync {
    /// The id of a vertex.
    type Id: Id;
    /// The value that a vertex owns.
    type State: Clone + PartialEq + Send + 'static;
    /// The data of an edge; `()` for none.
    type Edge: Clone + Send + 'static;
    /// The value that a vertex sends along an edge.
    type Signal: Field;

    /// The delivery of signals.
    fn delivery(&self) -> Delivery {
        Delivery::Each
    }

    /// Combines a signal with the one that waits for the same vertex; associative and commutative.
    /// Called for [`Delivery::Combined`] only.
    fn combine(&self, waiting: &mut Self::Signal, signal: Self::Signal) -> Result<(), Failure> {
        let _ = (waiting, signal);
        Err("the delivery combines signals, but the program has no combiner; implement `combine`"
            .into())
    }

    /// The state at the start.
    fn initial(
        &self,
        id: &Self::Id,
        edges: &Edges<Self::Id, Self::Edge>,
    ) -> Result<Self::State, Failure>;

    /// The first state of a vertex that has a state from an earlier run on a kept store.
    fn restart(&self, vertex: &VertexOf<Self>) -> Result<Self::State, Failure> {
        self.initial(vertex.id(), vertex.edges())
    }

    /// The signal along an edge; `None` for none.
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, Self::Id, Self::Edge>,
    ) -> Result<Option<Self::Signal>, Failure>;

    /// Passes the signals along all edges of `source` to `send`, each with the place and the target
    /// of its edge, until `send` returns false. Programs whose signal is the same along many edges
    /// may compute it once here.
    #[inline]
    fn signal_all<'v>(
        &self,
        source: &'v VertexOf<Self>,
        mut send: impl FnMut(usize, &'v Self::Id, Self::Signal) -> bool,
    ) -> Result<(), Failure> {
        for (place, edge) in source.edges().iter().enumerate() {
            let target = edge.target;
            if let Some(signal) = self.signal(source, edge)?
                && !send(place, target, signal)
            {
                break;
            }
        }
        Ok(())
    }

    /// True if vertices choose the targets of their signals (Pregel), by [`VertexProgram::send`];
    /// false if they signal along their edges.
    fn addresses(&self) -> bool {
        false
    }

    /// Passes the signals of `source` to `send` with their targets, until `send` returns false.
    /// Returns true if the vertex collects in this superstep even without signals. Called if
    /// [`VertexProgram::addresses`], instead of [`VertexProgram::signal`].
    fn send(
        &self,
        source: &VertexOf<Self>,
        send: &mut dyn FnMut(&Self::Id, Self::Signal) -> bool,
    ) -> Result<bool, Failure> {
        let _ = (source, send);
        Err("the program chooses the targets of its signals, and has no `send`; implement it"
            .into())
    }

    /// The state of a vertex that received signals and does not exist: it is created, without
    /// edges, and collects. `None`: the signals are not delivered.
    fn create(&self, id: &Self::Id) -> Result<Option<Self::State>, Failure> {
        let _ = id;
        Ok(None)
    }

    /// A signal in the form in which its target stores it, for [`Delivery::LatestPerEdge`].
    #[inline]
    fn received(&self, signal: Self::Signal) -> Result<Self::Signal, Failure> {
        Ok(signal)
    }

    /// Folds signals into the state. `signals` are those since the last collect: one if they are
    /// combined, those of all edges with [`Delivery::LatestPerEdge`], none if only a collect was
    /// requested. An unchanged vertex is not written.
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[Self::Signal],
    ) -> Result<(), Failure>;

    /// The number of vertices that collect together in a synchronous superstep, by
    /// [`VertexProgram::collect_together`]; 1: each collects alone. Signals to vertices that
    /// collect together are combined, and create no vertices.
    fn batch(&self) -> usize {
        1
    }

    /// [`VertexProgram::collect`] for a batch of vertices.
    fn collect_together(&self, batch: &mut [Collecting<Self>]) -> Result<(), Failure> {
        let _ = batch;
        Err("the program has batches of vertices, and does not let them collect together".into())
    }

    /// True if every vertex signals and collects in every synchronous superstep. The score methods
    /// are then not called, and [`Vertex::signalled`] is not stored.
    fn is_full(&self) -> bool {
        false
    }

    /// False if collects and scores neither read nor change edges: stores may then lend vertices
    /// without edges.
    fn collects_edges(&self) -> bool {
        true
    }

    /// Changes the state of a vertex after it signalled along all its edges, for a state that
    /// contains its unsignalled change.
    #[inline]
    fn signalled(&self, state: &mut Self::State) -> Result<(), Failure> {
        let _ = state;
        Ok(())
    }

    /// The signal score: the vertex signals if it exceeds the threshold. By default 1 if its edges
    /// changed, it never signalled, or its state changed since it signalled; else 0.
    #[inline]
    fn signal_score(&self, vertex: &VertexOf<Self>) -> Result<f64, Failure> {
        Ok(f64::from(u8::from(vertex.signalled.as_ref() != Some(&vertex.state))))
    }

    /// The collect score: the vertex collects if it exceeds the threshold, else the signals are
    /// dropped. By default 1.
    #[inline]
    fn collect_score(
        &self,
        vertex: &VertexOf<Self>,
        signals: &[Self::Signal],
    ) -> Result<f64, Failure> {
        let _ = (vertex, signals);
        Ok(1.0)
    }

    /// The score by which the cache `score:N` keeps vertices; `None`: the number of their loans.
    fn cache_score(&self) -> Option<ScoreFunction<VertexOf<Self>>> {
        None
    }

    /// A signal to a vertex of another process of the run, in a form that has its meaning there.
    #[inline]
    fn export(&self, signal: Self::Signal) -> Result<Self::Signal, Failure> {
        Ok(signal)
    }

    /// A signal from another process, as [`VertexProgram::export`] returned it there, in the form
    /// of this process.
    #[inline]
    fn import(&self, signal: Self::Signal) -> Result<Self::Signal, Failure> {
        Ok(signal)
    }

    /// The ids to which a vertex of this process was the first to send a signal in this superstep,
    /// as bytes for the other processes; `None` if signals never name new ids.
    fn new_ids(&self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(None)
    }

    /// Takes the new ids of all processes, in order. Afterwards [`VertexProgram::final_id`] returns
    /// the id by which all processes know a vertex.
    fn accept_ids(&self, of_all: &[&[u8]]) -> Result<(), Failure> {
        let _ = of_all;
        Ok(())
    }

    /// The id of a vertex that a signal of this process named in this superstep, equal in all
    /// processes.
    #[inline]
    fn final_id(&self, id: &Self::Id) -> Self::Id {
        id.clone()
    }

    /// The values that the vertices of this process contributed to aggregates in this superstep, as
    /// bytes for all processes.
    fn contribution(&self) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    /// Takes the contributions of all processes to the aggregates of a superstep, in order.
    fn merge(&self, of_all: &[&[u8]]) -> Result<(), Failure> {
        let _ = of_all;
        Ok(())
    }

    /// Calls `work`, the work of one worker in one phase, on the thread of that worker. A program
    /// that needs a lock for all its calls, such as that of an interpreter, holds it meanwhile.
    #[inline]
    fn within_phase(&self, work: &mut dyn FnMut()) {
        work();
    }
}
