//! Weakly connected components by label propagation.
//!
//! Returns, for each vertex, the smallest id of its component. State, signal and sum: a label, the
//! place of an external id in numeric order, counted from the smallest id of the graph, in 32 bits where
//! that suffices, else 64. Labels start as the vertex's own and shrink to the minimum over neighbours, edges read in both
//! directions (Kang, Tsourakakis, Faloutsos 2009, "HCC"). Exact. At most diameter + 1 supersteps,
//! one pass over the segments with active sources each.

use brimful_engine::{Aggregate, Globals, Mode, Program, Vertex};
use brimful_graph::Index;
use bytemuck::Pod;

/// A label that holds the place of any external id of the graph.
pub trait Label: Pod + Send + Sync + Ord {
    /// At least as large as any label.
    const NONE: Self;
    /// The label of a place.
    fn new(place: u64) -> Self;
}

impl Label for u32 {
    const NONE: Self = Self::MAX;
    fn new(place: u64) -> Self {
        place as Self
    }
}

impl Label for u64 {
    const NONE: Self = Self::MAX;
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
pub struct ConnectedComponents<L>(std::marker::PhantomData<L>);

impl<L: Label> ConnectedComponents<L> {
    /// The program.
    pub fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<L: Label> Program for ConnectedComponents<L> {
    type State = L;
    type Signal = L;
    type Sum = L;

    const MODE: Mode = Mode::Idempotent;
    const NEEDS_DEGREES: bool = false;
    const NEEDS_EXTERNAL: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex, _: &Globals) -> L {
        L::new(vertex.external)
    }

    fn signal(&self, _: Vertex, label: L) -> L {
        label
    }

    fn silence(&self) -> L {
        L::NONE
    }

    fn identity(&self) -> L {
        L::NONE
    }

    #[inline]
    fn combine(&self, sum: L, signal: L, _: f64) -> L {
        sum.min(signal)
    }

    #[inline]
    fn merge(&self, earlier: L, later: L) -> L {
        earlier.min(later)
    }

    #[inline]
    fn collect(&self, _: Vertex, label: L, sum: L, _: &Globals) -> L {
        label.min(sum)
    }

    fn changed(&self, old: L, new: L) -> bool {
        new < old
    }

    fn aggregate(&self, _: Vertex, _: L, _: L) -> Aggregate {
        Aggregate::default()
    }

    fn converged(&self, _: &Globals) -> bool {
        false
    }
}
