//! Two-coloring of bipartite graphs.
//!
//! Returns for each vertex its side, 0 or 1, such that every edge joins the two sides (`side`,
//! int64). The smallest vertex of a component, and all at an even distance from it, have side 0.
//! The value is null in a component with an odd cycle, such as a self-loop, because it has no such
//! sides. Direction is ignored. Exact.
//!
//! Method: union-find over vertices at even and at odd distances, in one pass over the edges, if
//! its arrays fit the budget; else, and in supersteps, label propagation as for connected
//! components, by the parity of walks.
//!
//! State of both: the smallest vertex from which a walk of an even number of edges leads here, and
//! the smallest for an odd number; both as offsets of external ids, in 32 bits if they fit, else in
//! 64. Signal: both labels, exchanged, because an edge changes the parity. In a component with an
//! odd cycle, walks of both parities lead from its smallest vertex to every vertex; in other
//! components, walks of only one parity. The number of supersteps is one more than the length of
//! the longest shortest walk of a parity, which is at most twice the number of vertices. A
//! superstep reads only segments with states that changed.

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Combiner, Globals, Mode, Program, Values, Vertex};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::Result;
use crate::connected_components::propagation::Label;
use crate::connected_components::{METHOD, union_find, union_find_wanted};
use crate::info::{Info, Run, Takes};
use crate::planning::{Planner, fits_narrow, require_either};
use crate::request::{Finished, Request};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "bipartite",
    computes: "sides of bipartite graphs: every edge joins the two sides; null in components with \
               an odd cycle",
    column: "side",
    takes: Takes { asynchronous: true, ..Takes::PROGRAM },
    parameters: &[METHOD],
    run: Run::Vertices(|request, graph, resources| match fits_narrow(graph.largest_id_offset()?) {
        true => run::<u32>(request, graph, resources),
        false => run::<u64>(request, graph, resources),
    }),
    plan: |planner| match planner.has_narrow_id_offsets()? {
        true => plan::<u32>(planner),
        false => plan::<u64>(planner),
    },
};

/// Nodes of union-find for each vertex.
const NODES: u64 = 2;

fn plan<L: Label + 'static>(planner: &Planner<'_>) -> Result<Forecast> {
    let union_find = union_find::forecast::<L>(planner, NODES).map_err(Into::into);
    union_find_wanted(planner.request)?.forecast(planner.limit(), union_find, || {
        // R-MAT of 2^20 vertices takes 8 supersteps with five passes over both indexes in total.
        let steps = planner.spreading(Steps::about(8, 5.0))?;
        planner.program(&Parities::<L>::new(), steps)
    })
}

/// Keeps the smaller label of each parity.
#[derive(Debug, Clone, Copy)]
pub struct Smallest<L>(PhantomData<L>);

impl<L: Label + 'static> Combiner for Smallest<L> {
    type Signal = [L; 2];
    type Sum = [L; 2];
    const IDEMPOTENT: bool = true;
    const IDENTITY: [L; 2] = [L::GREATEST; 2];
    const SILENCE: [L; 2] = [L::GREATEST; 2];

    #[inline]
    fn combine([even, odd]: [L; 2], signal: [L; 2]) -> [L; 2] {
        [even.min(signal[0]), odd.min(signal[1])]
    }

    #[inline]
    fn merge(earlier: [L; 2], later: [L; 2]) -> [L; 2] {
        Self::combine(earlier, later)
    }
}

/// The program, with labels of type `L`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parities<L>(PhantomData<L>);

impl<L: Label> Parities<L> {
    /// The program.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

/// The side of a vertex; `None` in a component with an odd cycle.
fn side<L: Label>([even, odd]: [L; 2]) -> Option<i64> {
    (even != odd).then_some(i64::from(odd < even))
}

impl<L: Label + 'static> Program for Parities<L> {
    /// The smallest vertex by walks of even length, and by walks of odd length.
    type State = [L; 2];
    type Combiner = Smallest<L>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const ASYNCHRONOUS: bool = true;
    const KEEPS_SILENCE: bool = true;
    const NEEDS_EXTERNAL: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> [L; 2] {
        [L::new(vertex.external), L::GREATEST]
    }

    fn signal(&self, _: Vertex, [even, odd]: [L; 2]) -> [L; 2] {
        [odd, even]
    }

    #[inline]
    fn collect(&self, _: Vertex, state: [L; 2], sum: [L; 2], _: &Globals<()>) -> [L; 2] {
        Smallest::combine(state, sum)
    }
}

fn run<L: Label + 'static>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let finish = |states: ScratchArray<[L; 2]>, stats, method| {
        let values = Values::integers(states, side::<L>, |_| Some(0));
        Finished::new(graph, "side", values, stats, method)
    };
    let extent = Extent::of(graph, &[Index::In], false);
    let least = union_find::min_bytes::<L>(&extent, resources.workers(), NODES);
    if union_find_wanted(request)?.applies(least, resources.budget.limit()) {
        let (states, stats) = union_find::parities::<L>(graph, resources)?;
        return finish(states, stats, "union_find");
    }
    require_either(request, graph, resources, plan::<L>, "to find sides")?;
    let output = request.run(&Parities::<L>::new(), u64::MAX, graph, resources)?;
    finish(output.states, output.stats, "propagation")
}
