//! A numeric program as a [`crate::VertexProgram`].
//!
//! One turn of the engine is two steps here: a vertex collects, and later signals. The decision to
//! signal needs the old and the new state, so it is made in the collect. It is stored in
//! [`brimful_vertices::Vertex::signalled`], where `None` means that the vertex is due. Invariant:
//! in a synchronous superstep a vertex gets the sum and computes the state of the engine, except
//! for the order in which signals are added.

use std::marker::PhantomData;

use brimful_engine as engine;
use brimful_vertices::{Edge, Edges, Loan};

use crate::error::{Failure, Result};
use crate::from_graph::{ALONG, EdgeData, direction};
use crate::numeric::erased::{Erased, ProgramTraits, VertexTurn};
use crate::numeric::parts::{SignalWords, StateWords};
use crate::program::{Collecting, Delivery, VertexOf, VertexProgram};

/// A numeric program with cells of `S` words, sums of `M` words and edge data `E`.
pub(super) struct Numeric<'p, const S: usize, const M: usize, E> {
    pub(super) program: &'p mut dyn Erased,
    facts: ProgramTraits,
    /// The directions that the coming superstep walks, and the direction of edges that do not store
    /// one.
    walked: u8,
    usual_direction: u8,
    is_weighted: bool,
    signal_threshold: f64,
    edges: PhantomData<fn() -> E>,
}

impl<'p, const S: usize, const M: usize, E: EdgeData> Numeric<'p, S, M, E> {
    pub(super) fn new(
        program: &'p mut dyn Erased,
        is_weighted: bool,
        signal_threshold: f64,
    ) -> Self {
        let facts = program.facts();
        let usual_direction = facts.indexes.iter().fold(0, |all, index| all | direction(*index));
        Self {
            program,
            facts,
            walked: ALONG,
            usual_direction,
            is_weighted,
            signal_threshold,
            edges: PhantomData,
        }
    }

    /// A vertex, as the program sees it.
    fn vertex(&self, id: u64, strength: f64) -> engine::Vertex {
        let (degree, strength) = match (self.facts.needs_degrees, self.is_weighted) {
            (false, _) => (0, 0.0),
            (true, true) => (0, strength),
            (true, false) => (strength as u64, strength),
        };
        engine::Vertex { id, degree, strength, external: 0 }
    }

    /// True if the coming superstep walks an edge.
    #[inline]
    fn is_walked(&self, source: &VertexOf<Self>, edge: Edge<'_, u64, E>) -> bool {
        let is_loop = !self.facts.self_loops && edge.target == source.id();
        edge.data.direction().unwrap_or(self.usual_direction) & self.walked != 0 && !is_loop
    }

    /// The signal along an edge of this weight; `None` for silence.
    #[inline]
    fn signal_along(
        &self,
        source: &VertexOf<Self>,
        weight: f64,
    ) -> Result<Option<SignalWords<M>>, Failure> {
        let own = self.vertex(*source.id(), source.state.strength());
        let mut sum = [0; M];
        let speaks = self.program.signal(own, source.state.state(), weight, &mut sum)?;
        Ok(speaks.then_some(SignalWords(sum)))
    }

    /// Sets the directions that the coming superstep walks.
    pub(super) fn begin_superstep(&mut self) {
        let walks = |index: &&_| self.program.walks(**index);
        self.walked =
            self.facts.indexes.iter().filter(walks).fold(0, |all, index| all | direction(*index));
    }

    /// The cells of consecutive vertices from `first` on at the start, and whether each is due to
    /// signal; `attributes` has the strength and external id of each.
    pub(super) fn start(
        &self,
        first: u64,
        attributes: &[(f64, u64)],
    ) -> Result<Vec<(StateWords<S>, bool)>, Failure> {
        let mut cells: Vec<StateWords<S>> =
            attributes.iter().map(|(strength, _)| StateWords::new(*strength)).collect();
        let turn = |((id, (strength, external)), cell): ((u64, &(f64, u64)), _)| VertexTurn {
            vertex: engine::Vertex { external: *external, ..self.vertex(id, *strength) },
            words: StateWords::state_mut(cell),
            sum: None,
            is_due: false,
        };
        let mut turns: Vec<_> = (first..).zip(attributes).zip(cells.iter_mut()).map(turn).collect();
        self.program.start(&mut turns)?;
        let is_due: Vec<bool> = turns.iter().map(|turn| turn.is_due).collect();
        Ok(cells.into_iter().zip(is_due).collect())
    }

    /// The cell of vertex `id`, restored from the result in the program.
    pub(super) fn resumed(&self, id: u64, strength: f64) -> Result<StateWords<S>> {
        let mut cell = StateWords::new(strength);
        self.program.kept(id, cell.state_mut())?;
        Ok(cell)
    }

    /// Begins another round for a vertex; true if it is due to signal.
    pub(super) fn begin_round(&self, vertex: &mut VertexOf<Self>) -> Result<bool, Failure> {
        let own = self.vertex(*vertex.id(), vertex.state.strength());
        let is_due = self.program.begin_round(own, vertex.state.state_mut())?;
        vertex.signalled = (!is_due).then_some(vertex.state);
        Ok(is_due)
    }
}

impl<const S: usize, const M: usize, E: EdgeData> VertexProgram for Numeric<'_, S, M, E> {
    type Id = u64;
    type State = StateWords<S>;
    type Edge = E;
    type Signal = SignalWords<M>;

    fn delivery(&self) -> Delivery {
        Delivery::Combined
    }

    fn combine(&self, waiting: &mut SignalWords<M>, signal: SignalWords<M>) -> Result<(), Failure> {
        self.program.combine(&mut waiting.0, &signal.0)
    }

    fn initial(&self, _: &u64, _: &Edges<u64, E>) -> Result<StateWords<S>, Failure> {
        Err("vertices of a numeric program come from a graph, with their states".into())
    }

    fn is_full(&self) -> bool {
        self.facts.is_full
    }

    #[inline]
    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, u64, E>,
    ) -> Result<Option<SignalWords<M>>, Failure> {
        let is_walked = self.is_walked(source, edge);
        if is_walked { self.signal_along(source, edge.data.weight()) } else { Ok(None) }
    }

    #[inline]
    fn signal_all<'v>(
        &self,
        source: &'v VertexOf<Self>,
        mut send: impl FnMut(usize, &'v u64, SignalWords<M>) -> bool,
    ) -> Result<(), Failure> {
        // Without weights, the signal along all edges.
        let mut same = None;
        for (place, edge) in source.edges().iter().enumerate() {
            if !self.is_walked(source, edge) {
                continue;
            }
            let signal = match same {
                Some(signal) => signal,
                None => self.signal_along(source, edge.data.weight())?,
            };
            if !self.is_weighted {
                same = Some(signal);
            }
            if let Some(signal) = signal
                && !send(place, edge.target, signal)
            {
                break;
            }
        }
        Ok(())
    }

    fn collects_edges(&self) -> bool {
        false
    }

    fn signalled(&self, state: &mut StateWords<S>) -> Result<(), Failure> {
        self.program.signalled(state.state_mut());
        Ok(())
    }

    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[SignalWords<M>],
    ) -> Result<(), Failure> {
        let mut cell = vertex.state;
        let own = self.vertex(*vertex.id(), cell.strength());
        let sum = signals.first().map(|sum| &sum.0[..]);
        let is_due = self.program.collect(own, cell.state_mut(), sum, self.signal_threshold)?;
        // An unchanged vertex must not be written.
        if cell != vertex.state {
            vertex.state = cell;
        }
        // A vertex that was due stays due: without supersteps it may collect twice before it
        // signals.
        if is_due && vertex.signalled.is_some() {
            vertex.signalled = None;
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        self.facts.batch
    }

    fn collect_together(&self, batch: &mut [Collecting<Self>]) -> Result<(), Failure> {
        let mut turns = Vec::with_capacity(batch.len());
        for Collecting { id, state, signal, .. } in batch.iter_mut() {
            turns.push(VertexTurn {
                vertex: self.vertex(*id, state.strength()),
                words: state.state_mut(),
                sum: signal.as_ref().map(|sum| &sum.0[..]),
                is_due: false,
            });
        }
        self.program.collect_together(&mut turns)?;
        let is_due: Vec<bool> = turns.iter().map(|turn| turn.is_due).collect();
        batch.iter_mut().zip(is_due).for_each(|(one, is_due)| one.is_due = is_due);
        Ok(())
    }

    fn contribution(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.program.contribution().into_iter().flat_map(u64::to_le_bytes).collect())
    }

    fn merge(&self, of_all: &[&[u8]]) -> Result<(), Failure> {
        let words =
            |part: &&[u8]| part.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
        let of_all: Vec<Vec<u64>> = of_all.iter().map(words).collect();
        match self.program.merge(&of_all) {
            true => Ok(()),
            false => Err("a worker sent aggregates of another program; please report it".into()),
        }
    }

    #[inline]
    fn signal_score(&self, vertex: &VertexOf<Self>) -> Result<f64, Failure> {
        if vertex.signalled.is_some() {
            return Ok(f64::NEG_INFINITY);
        }
        // A due vertex is above the threshold, whatever its urgency.
        let score = self.signal_threshold + self.program.urgency(vertex.state.state());
        Ok(if score > self.signal_threshold { score } else { f64::MAX })
    }

    fn collect_score(
        &self,
        vertex: &VertexOf<Self>,
        signals: &[SignalWords<M>],
    ) -> Result<f64, Failure> {
        let sum = signals.first().map(|sum| &sum.0[..]);
        Ok(self.program.collect_score(vertex.state.state(), sum))
    }
}
