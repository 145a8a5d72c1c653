//! Weakly connected components by label propagation.
//!
//! Returns, for each vertex, the smallest id of its component. State, signal and sum: a label, the
//! place of an external id in numeric order, counted from the smallest id of the graph, in 32 bits where
//! that suffices, else 64. Labels start as the vertex's own and shrink to the minimum over neighbours, edges read in both
//! directions (Kang, Tsourakakis, Faloutsos 2009, "HCC"). Exact. At most diameter + 1 supersteps,
//! one pass over the segments with active sources each.

use std::marker::PhantomData;

use brimful_engine::combiner::Bounded;
use brimful_engine::{Globals, Min, Mode, Program, Vertex};
use brimful_graph::Index;

/// A label that holds the place of any external id of the graph.
pub trait Label: Bounded + Ord {
    /// The label of a place.
    fn new(place: u64) -> Self;
}

impl Label for u32 {
    fn new(place: u64) -> Self {
        place as Self
    }
}

impl Label for u64 {
    fn new(place: u64) -> Self {
        place
    }
}

/// True if 32-bit labels tell all ids apart whose order keys lie so far from each other at most.
pub fn fits_narrow(range: u64) -> bool {
    range < u64::from(u32::MAX)
}

/// Connected components with labels of type `L`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectedComponents<L>(PhantomData<L>);

impl<L: Label> ConnectedComponents<L> {
    /// The program.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<L: Label + 'static> Program for ConnectedComponents<L> {
    type State = L;
    type Combiner = Min<L>;
    type Aggregate = ();

    const MODE: Mode = Mode::Idempotent;
    const NEEDS_EXTERNAL: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> L {
        L::new(vertex.external)
    }

    fn signal(&self, _: Vertex, label: L) -> L {
        label
    }

    #[inline]
    fn collect(&self, _: Vertex, label: L, least: L, _: &Globals<()>) -> L {
        label.min(least)
    }
}
