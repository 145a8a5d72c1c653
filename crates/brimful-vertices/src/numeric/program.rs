//! A numeric program of the disk path as a program of the store path.
//!
//! What the engine computes in one turn is two here: a vertex collects, and later signals. Whether it is to signal is decided
//! where old and new state are at hand, when it collects, and kept as [`crate::Vertex::signalled`]: none means that it is due.
//! Invariant: in a synchronous superstep a vertex gets the sum and makes the state that the engine would, but for the
//! order in which signals are added.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use brimful_engine as engine;
use brimful_engine::{Aggregate, Combiner, Globals, Program, SumOf};
use brimful_graph::Index;

use crate::error::Failure;
use crate::from_graph::{ALONG, EdgeData, way};
use crate::numeric::parts::{Cell, Plain};
use crate::program::{Delivery, VertexOf, VertexProgram};
use crate::store::Loan;
use crate::vertex::{Edge, Edges};

/// A numeric program with edges that carry `E`.
pub(super) struct Numeric<'p, P: Program, E> {
    pub(super) program: &'p P,
    pub(super) globals: Globals<P::Aggregate>,
    /// The ways in which the coming superstep walks edges, and those in which edges are walked that do not say it.
    pub(super) walked: u8,
    pub(super) usual_way: u8,
    pub(super) is_weighted: bool,
    pub(super) signal_threshold: f64,
    /// What the vertices of each worker add to the aggregate.
    partials: Vec<Mutex<P::Aggregate>>,
    edges: PhantomData<fn() -> E>,
}

impl<'p, P: Program, E: EdgeData> Numeric<'p, P, E> {
    pub(super) fn new(program: &'p P, vertices: u64, workers: usize, signal_threshold: f64) -> Self {
        let globals = Globals { vertices, superstep: 0, round: 0, aggregate: P::Aggregate::NOTHING };
        Self {
            program,
            globals,
            walked: 0,
            usual_way: ALONG,
            is_weighted: false,
            signal_threshold,
            partials: (0..workers).map(|_| Mutex::new(P::Aggregate::NOTHING)).collect(),
            edges: PhantomData,
        }
    }

    /// A vertex as the program knows it.
    pub(super) fn vertex(&self, id: u64, strength: f64) -> engine::Vertex {
        let (degree, strength) = match (P::NEEDS_DEGREES, self.is_weighted) {
            (false, _) => (0, 0.0),
            (true, true) => (0, strength),
            (true, false) => (strength as u64, strength),
        };
        engine::Vertex { id, degree, strength, external: 0 }
    }

    /// Adds to the aggregate of the superstep, or of the round.
    pub(super) fn add(&self, part: P::Aggregate) {
        if size_of::<P::Aggregate>() == 0 {
            return;
        }
        // Nobody else uses the worker's own.
        let worker = rayon::current_thread_index().unwrap_or(0) % self.partials.len().max(1);
        if let Some(partial) = self.partials.get(worker) {
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            *partial = partial.merge(part);
        }
    }

    /// Makes what was added the aggregate.
    pub(super) fn end_superstep(&mut self) {
        let take = |partial: &mut Mutex<P::Aggregate>| {
            std::mem::replace(
                partial.get_mut().unwrap_or_else(PoisonError::into_inner),
                P::Aggregate::NOTHING,
            )
        };
        self.globals.aggregate =
            self.partials.iter_mut().map(take).fold(P::Aggregate::NOTHING, P::Aggregate::merge);
    }

    /// Finds out which ways the coming superstep walks.
    pub(super) fn begin_superstep(&mut self) {
        let walks = |index: &&Index| self.program.walks(**index, &self.globals);
        let ways = self.program.indexes().iter().filter(walks).map(|index| way(*index));
        self.walked = ways.fold(0, |all, way| all | way);
    }

    /// True if the program has nothing to say with this state.
    pub(super) fn is_silent(&self, vertex: engine::Vertex, state: P::State) -> bool {
        self.program.signal(vertex, state) == P::Combiner::SILENCE
    }
}

impl<P: Program, E: EdgeData> VertexProgram for Numeric<'_, P, E> {
    type Id = u64;
    type State = Cell<P::State>;
    type Edge = E;
    type Signal = Plain<SumOf<P>>;

    fn delivery(&self) -> Delivery {
        Delivery::Combined
    }

    fn combine(&self, held: &mut Self::Signal, signal: Self::Signal) -> Result<(), Failure> {
        held.0 = P::Combiner::merge(held.0, signal.0);
        Ok(())
    }

    fn initial(&self, _: &u64, _: &Edges<u64, E>) -> Result<Self::State, Failure> {
        Err("vertices of a numeric program come from a graph, with their states".into())
    }

    fn is_full(&self) -> bool {
        P::MODE == engine::Mode::Full
    }

    #[inline]
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, u64, E>,
    ) -> Result<Option<Self::Signal>, Failure> {
        let is_loop = !P::SELF_LOOPS && edge.target == source.id();
        if edge.data.way().unwrap_or(self.usual_way) & self.walked == 0 || is_loop {
            return Ok(None);
        }
        let Cell { state, strength } = source.state;
        let said = self.program.signal(self.vertex(*source.id(), strength), state);
        if said == P::Combiner::SILENCE {
            return Ok(None);
        }
        let signal = self.program.along(said, edge.data.weight());
        Ok(Some(Plain(P::Combiner::combine(P::Combiner::IDENTITY, signal))))
    }

    fn signalled(&self, state: &mut Self::State) {
        state.state = self.program.signalled(state.state);
    }

    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[Self::Signal],
    ) -> Result<(), Failure> {
        let Cell { state: old, strength } = vertex.state;
        let own = self.vertex(*vertex.id(), strength);
        let sum = signals.first().map_or(P::Combiner::IDENTITY, |sum| sum.0);
        let mut new = self.program.collect(own, old, sum, &self.globals);
        if self.is_full() {
            self.add(self.program.aggregate(own, old, new));
            vertex.state.state = new;
            return Ok(());
        }
        if bytemuck::bytes_of(&old) != bytemuck::bytes_of(&new) {
            self.add(self.program.aggregate(own, old, new));
        }
        let mut is_due = self.program.signal_score(old, new) > self.signal_threshold;
        if is_due && self.is_silent(own, new) {
            // It has said nothing, which takes no superstep.
            new = self.program.signalled(new);
            is_due = false;
        }
        let new = Cell { state: new, strength };
        // Where it was due already it still is: without supersteps it may collect twice before it signals.
        if new != vertex.state {
            vertex.state = new;
        }
        if is_due && vertex.signalled.is_some() {
            vertex.signalled = None;
        }
        Ok(())
    }

    #[inline]
    fn signal_score(&self, vertex: &VertexOf<Self>) -> f64 {
        if vertex.signalled.is_some() {
            return f64::NEG_INFINITY;
        }
        let score = self.program.signal_score(vertex.state.state, vertex.state.state);
        // Where the score is that of a change, which is over, all are equal.
        if score > self.signal_threshold { score } else { f64::MAX }
    }

    fn collect_score(&self, vertex: &VertexOf<Self>, signals: &[Self::Signal]) -> f64 {
        let sum = signals.first().map_or(P::Combiner::IDENTITY, |sum| sum.0);
        self.program.collect_score(vertex.state.state, sum)
    }
}
