//! Components by label propagation, if union-find does not fit the budget.
//!
//! State, signal and sum: a label, the offset of an external id from the smallest id of the graph
//! in numeric order, in 32 bits if that suffices, else in 64. A vertex starts with its own label,
//! and takes the minimum over its neighbors; edges are read in both directions (Kang, Tsourakakis,
//! Faloutsos 2009, "HCC"). Exact. At most diameter + 1 supersteps, each one pass over the segments
//! with active sources.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use brimful_engine::vertex::combiner::Bounded;
use brimful_engine::{Globals, Min, Mode, Program, Vertex};
use brimful_graph::Index;

/// A label that holds the offset of any external id of the graph.
pub trait Label: Bounded + Ord + Into<u64> {
    /// A label that threads share.
    type Atomic: Send + Sync;
    /// The label of an offset.
    fn new(id_offset: u64) -> Self;
    /// A shared label greater than all others.
    fn atomic() -> Self::Atomic;
    /// Lowers a shared label to the label of `id_offset`, unless the label is already lower.
    fn lower(shared: &Self::Atomic, id_offset: u64);
    /// The value of a shared label.
    fn get(shared: &Self::Atomic) -> Self;
}

macro_rules! label {
    ($label:ty, $atomic:ty) => {
        impl Label for $label {
            type Atomic = $atomic;

            fn new(id_offset: u64) -> Self {
                id_offset as Self
            }

            fn atomic() -> $atomic {
                <$atomic>::new(Self::MAX)
            }

            fn lower(shared: &$atomic, id_offset: u64) {
                let id_offset = id_offset as Self;
                // A plain load first, because most vertices of a component do not lower its label.
                if id_offset < shared.load(Ordering::Relaxed) {
                    shared.fetch_min(id_offset, Ordering::Relaxed);
                }
            }

            fn get(shared: &$atomic) -> Self {
                shared.load(Ordering::Relaxed)
            }
        }
    };
}

label!(u32, AtomicU32);
label!(u64, AtomicU64);

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
    const ASYNCHRONOUS: bool = true;
    const KEEPS_SILENCE: bool = true;
    const ORDERED: bool = true;
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

    #[inline]
    fn before(&self, one: L, other: L) -> bool {
        one < other
    }
}
