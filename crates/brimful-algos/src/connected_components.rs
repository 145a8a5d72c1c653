//! Weakly connected components by label propagation.
//!
//! Returns, for each vertex, the smallest id of its component. State, signal and sum: a label, the
//! place of an external id in numeric order, counted from the smallest id of the graph, in 32 bits where
//! that suffices, else 64. Labels start as the vertex's own and shrink to the minimum over neighbours, edges read in both
//! directions (Kang, Tsourakakis, Faloutsos 2009, "HCC"). Exact. At most diameter + 1 supersteps,
//! one pass over the segments with active sources each.

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::combiner::Bounded;
use brimful_engine::{Globals, Min, Mode, Program, Result, Values, Vertex};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::registry::{Info, Takes};
use crate::request::{Finished, Request};

/// What there is to know of it.
pub(crate) const INFO: Info = Info {
    name: "connected_components",
    computes: "weakly connected components, each named by its smallest vertex",
    column: "component",
    takes: Takes { source: false, tolerance: false, precision: false, weights: false },
    parameters: &[],
    run: |request, graph, resources| {
        let range = graph.key_bounds()?.map_or(0, |(smallest, largest)| largest.saturating_sub(smallest));
        match fits_narrow(range) {
            true => run::<u32>(request, graph, resources),
            false => run::<u64>(request, graph, resources),
        }
    },
};

/// A label that holds the place of any external id of the graph.
pub trait Label: Bounded + Ord + Into<u64> {
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

fn run<L: Label + 'static>(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let output = request.run(&ConnectedComponents::<L>::new(), u64::MAX, graph, resources)?;
    let values = Values::vertices(output.states, |label: L| Some(label.into()), Some).without_nulls();
    Finished::new(graph, "component", values, output.stats, "weak")
}
