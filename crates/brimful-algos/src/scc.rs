//! Strongly connected components: by depth-first search if the unpacked edges fit in memory
//! (`depth_first`), else by coloring. In an undirected graph, they are the connected components.
//!
//! Returns for each vertex the smallest id in its component (`component`, of the type of ids): the
//! vertices that it reaches along edges and that reach it. Exact.
//!
//! Forward-backward coloring in rounds (Orzan, *On Distributed Verification and Verified
//! Distribution*, 2004, section 5; trimming as in McLendon, Hendrickson, Plimpton and Rauchwerger
//! 2005). Vertices are *open* until their component is known. Rounds come in groups of seven:
//! 1. *count*, *peel*: open vertices count their arcs from open ones. A vertex without such arcs is
//!    a component of its own; it closes, and its successors count one arc less. Then the same two
//!    rounds run against the arcs. The remaining vertices lie on cycles or on paths between them.
//!    The second peeling leaves no vertex without arcs from open ones, because the predecessors of
//!    a vertex that leads to a cycle lead there too.
//! 2. *color*: each open vertex takes the smallest offset among open vertices that reach it,
//!    itself included.
//! 3. *join*: a vertex with its own color is the smallest of its component. It, and all vertices
//!    that have joined, signal their color against the arcs. An open vertex joins if a successor
//!    of the same color has joined: it reaches that successor, and the vertex that gave both the
//!    color reaches it. The component is named by the color.
//! 4. *rest*: no vertex signals; the open ones are counted.
//!
//! In *join* a vertex must know whether its own color is among the signalled colors, but a
//! combiner does not know the target. The *greatest* color suffices: all vertices that reach v
//! reach a successor w of v, so that color(w) <= color(v), and v's own color is among the
//! signals if and only if it is the greatest of them. (Signals are complements, of which the least
//! is taken.)
//!
//! In every second group *color* runs against the arcs and *join* along them. Components are the
//! same. If components form a path with ascending names, coloring along the arcs finds one
//! component at a time, but coloring against them finds all at once.
//!
//! State: the offset of the vertex's id; a color or count; and a stage; each in 32 bits if ids and
//! arcs fit, else in 64 bits. Signal: one number of this size. A group takes as many supersteps as
//! the longest path of a color, and sweeps only segments with signalling vertices. There are as
//! many groups as needed to name all components, in the worst case one for each.

mod depth_first;

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Combiner, Count, Globals, Mode, Program, Reason, Values, Vertex};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::Result;
use crate::connected_components;
use crate::connected_components::propagation::Label;
use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{InMemory, Planner, fits_narrow, require_either};
use crate::request::{Finished, Request};

const METHOD: ParameterInfo = ParameterInfo {
    name: "method",
    values: Accepts::Words(&["auto", "search", "coloring"]),
    meaning: "search: depth-first, edges in memory; coloring: any budget; auto: search if it \
              fits",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "scc",
    computes: "strongly connected components, each named by its smallest vertex",
    column: "component",
    takes: Takes::PROGRAM,
    parameters: &[METHOD],
    run: Run::Vertices(|request, graph, resources| {
        if is_undirected(request, graph.description().directed)? {
            return connected_components::find(request, graph, resources);
        }
        match fits_narrow(graph.largest_id_offset()?) && fits_narrow(graph.description().arcs) {
            true => run::<u32>(request, graph, resources),
            false => run::<u64>(request, graph, resources),
        }
    }),
    plan: |planner| {
        if is_undirected(planner.request, planner.is_directed())? {
            return connected_components::plan_any(planner);
        }
        match planner.has_narrow_id_offsets()? && fits_narrow(planner.arcs()) {
            true => plan::<u32>(planner),
            false => plan::<u64>(planner),
        }
    },
};

/// The condition under which a request uses a depth-first search.
fn search_wanted(request: &Request) -> Result<InMemory> {
    InMemory::chosen(request, &METHOD, "search", "coloring")
}

/// True if the strongly connected components are those of [`connected_components`], because all
/// edges lead both ways, and the request allows that method.
fn is_undirected(request: &Request, directed: bool) -> Result<bool> {
    Ok(!directed && search_wanted(request)? == InMemory::IfItFits)
}

fn plan<L: Label + 'static>(planner: &Planner<'_>) -> Result<Forecast> {
    let bytes = planner.of_scan(|setting| depth_first::bytes::<L>(setting.extent, setting.workers));
    let search = bytes.map(|(needed, labels)| Forecast {
        minimum_bytes: needed,
        in_memory_bytes: needed,
        ..planner.scans(1, |_| (needed, labels, labels))
    });
    let search = search.ok_or_else(depth_first::too_large);
    search_wanted(planner.request)?.forecast(planner.limit(), search, || {
        // R-MAT of 2^20 vertices: 22 supersteps with five passes over both indexes in total.
        planner.program(&StrongComponents::<L>::new(), planner.spreading(Steps::about(22, 5.0))?)
    })
}

/// The least signal, and the number of signals.
#[derive(Debug, Clone, Copy)]
pub struct LeastAndCount<L>(PhantomData<L>);

impl<L: Label + 'static> Combiner for LeastAndCount<L> {
    type Signal = L;
    type Sum = [u64; 2];
    const IDEMPOTENT: bool = false;
    const COMMUTES: bool = true;
    const IDENTITY: [u64; 2] = [u64::MAX, 0];
    const SILENCE: L = L::GREATEST;

    #[inline]
    fn combine([least, count]: [u64; 2], signal: L) -> [u64; 2] {
        [least.min(signal.into()), count + 1]
    }

    #[inline]
    fn merge([least, count]: [u64; 2], later: [u64; 2]) -> [u64; 2] {
        [least.min(later[0]), count + later[1]]
    }
}

/// The task of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    CountIn,
    PeelIn,
    CountOut,
    PeelOut,
    Colour,
    Join,
    Rest,
}

const TASKS: [Task; 7] = [
    Task::CountIn,
    Task::PeelIn,
    Task::CountOut,
    Task::PeelOut,
    Task::Colour,
    Task::Join,
    Task::Rest,
];

fn task(round: u64) -> Task {
    TASKS[(round % TASKS.len() as u64) as usize]
}

/// Stages of a vertex, as numbers in its state. Odd ones are open.
mod stage {
    /// Its component is known.
    pub(super) const CLOSED: u64 = 0;
    pub(super) const OPEN: u64 = 1;
    /// Just closed, because no arc leads to it, or from it.
    pub(super) const LEAVES: u64 = 2;
    /// Open, and signals its neighbors, which count it.
    pub(super) const COUNTS: u64 = 3;
    /// Just closed, because it has joined the component of its color.
    pub(super) const JOINS: u64 = 4;
    /// Open, with a color to pass on.
    pub(super) const COLOURED: u64 = 5;
}

/// The state: the offset of the vertex's id; a color, the name of its component, or the number of
/// its open neighbors; and a stage.
pub type Visit<L> = [L; 3];

/// The offset that names the component of a vertex, if it is known.
pub fn component<L: Label>([_, name, stage]: Visit<L>) -> Option<u64> {
    (stage.into() == stage::CLOSED).then_some(name.into())
}

/// Strongly connected components with offsets and counts of type `L`.
#[derive(Debug, Clone, Copy, Default)]
pub struct StrongComponents<L>(PhantomData<L>);

impl<L: Label> StrongComponents<L> {
    /// The program.
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// The complement, so that the least complement is that of the greatest color. The greatest
    /// offset has no complement: a vertex with that color is alone in its component.
    fn complement(colour: L) -> L {
        let greatest: u64 = L::GREATEST.into();
        colour
            .into()
            .checked_add(1)
            .and_then(|above| greatest.checked_sub(above))
            .map_or(L::GREATEST, L::new)
    }
}

impl<L: Label + 'static> Program for StrongComponents<L> {
    type State = Visit<L>;
    type Combiner = LeastAndCount<L>;
    /// The number of open vertices, at the end of a *rest* round.
    type Aggregate = Count;
    /// Delta because of the counts; repeated signals of colors would do no harm.
    const MODE: Mode = Mode::Delta;
    const NEEDS_EXTERNAL: bool = true;
    const SELF_LOOPS: bool = false;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn walks(&self, index: Index, globals: &Globals<Count>) -> bool {
        let turned = globals.round / TASKS.len() as u64 % 2 == 1;
        let along = match task(globals.round) {
            Task::CountIn | Task::PeelIn | Task::Rest => true,
            Task::CountOut | Task::PeelOut => false,
            Task::Colour => !turned,
            Task::Join => turned,
        };
        index == if along { Index::In } else { Index::Reverse }
    }

    fn initial(&self, vertex: Vertex, _: &Globals<Count>) -> Visit<L> {
        [L::new(vertex.external), L::new(0), L::new(stage::COUNTS)]
    }

    #[inline]
    fn signal(&self, _: Vertex, [_, colour, stage]: Visit<L>) -> L {
        match stage.into() {
            stage::COUNTS | stage::LEAVES => L::new(0),
            stage::COLOURED => colour,
            stage::JOINS => Self::complement(colour),
            _ => L::GREATEST,
        }
    }

    #[inline]
    fn signalled(&self, [own, colour, stage]: Visit<L>) -> Visit<L> {
        [own, colour, L::new(stage.into() % 2)]
    }

    #[inline]
    fn signal_score(&self, _: Visit<L>, [_, _, stage]: Visit<L>) -> f64 {
        f64::from(u8::from(stage.into() > stage::OPEN))
    }

    #[inline]
    fn collect(
        &self,
        _: Vertex,
        state: Visit<L>,
        [least, count]: [u64; 2],
        globals: &Globals<Count>,
    ) -> Visit<L> {
        let [own, at, stage] = state;
        if count == 0 || stage.into() != stage::OPEN {
            return state;
        }
        match task(globals.round) {
            Task::CountIn | Task::CountOut => [own, L::new(at.into() + count), stage],
            Task::PeelIn | Task::PeelOut => match at.into().saturating_sub(count) {
                0 => [own, own, L::new(stage::LEAVES)],
                left => [own, L::new(left), stage],
            },
            Task::Colour if least < at.into() => [own, L::new(least), L::new(stage::COLOURED)],
            Task::Join if least == Self::complement(at).into() => [own, at, L::new(stage::JOINS)],
            Task::Colour | Task::Join | Task::Rest => state,
        }
    }

    #[inline]
    fn aggregate(&self, _: Vertex, _: Visit<L>, [_, _, stage]: Visit<L>) -> Count {
        Count(stage.into() % 2)
    }

    fn finished(&self, [_, _, stage]: Visit<L>) -> bool {
        stage.into() == stage::CLOSED
    }

    /// A *rest* round has no supersteps, so its aggregate covers all vertices.
    fn another_round(&self, globals: &Globals<Count>) -> bool {
        task(globals.round) != Task::Rest || globals.aggregate.0 > 0
    }

    fn begin_round(&self, _: Vertex, state: Visit<L>, globals: &Globals<Count>) -> Visit<L> {
        let [own, at, stage] = state;
        if stage.into() == stage::CLOSED {
            return state;
        }
        match task(globals.round) {
            Task::CountIn | Task::CountOut => [own, L::new(0), L::new(stage::COUNTS)],
            Task::PeelIn | Task::PeelOut if at.into() == 0 => [own, own, L::new(stage::LEAVES)],
            Task::Colour => [own, own, L::new(stage::COLOURED)],
            Task::Join if at == own => [own, own, L::new(stage::JOINS)],
            Task::PeelIn | Task::PeelOut | Task::Join | Task::Rest => state,
        }
    }
}

fn run<L: Label + 'static>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let wanted = search_wanted(request)?;
    let extent = Extent::of(graph, &[Index::In], false);
    let needed = depth_first::bytes::<L>(&extent, resources.workers()).map(|(needed, _)| needed);
    if wanted.applies(needed, resources.budget.limit()) {
        let needed = needed.ok_or_else(depth_first::too_large)?;
        let (labels, stats) = depth_first::components::<L>(graph, needed, resources)?;
        let values = Values::vertices(labels, |label: L| Some(label.into()), Some).without_nulls();
        return Finished::new(graph, "component", values, stats, "search");
    }
    require_either(request, graph, resources, plan::<L>, "to find strong components")?;
    let output = request.run(&StrongComponents::<L>::new(), u64::MAX, graph, resources)?;
    let values = Values::vertices(output.states, component::<L>, Some);
    // Only a run that reached a limit leaves vertices without a component.
    let values =
        if output.stats.reason == Reason::NoChange { values.without_nulls() } else { values };
    Finished::new(graph, "component", values, output.stats, "strong")
}
