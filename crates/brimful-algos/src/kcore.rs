//! Core numbers.
//!
//! Returns for each vertex the largest k such that it belongs to the k-core, the greatest set of
//! vertices each of which has k neighbors within it (`core`, int64). Direction is ignored; arcs
//! count with their stored multiplicity, so that a pair of opposite arcs counts twice in a directed
//! graph; self-loops do not count.
//!
//! If the numbers of all vertices and a 32nd of the unpacked edges fit in memory, vertices are
//! peeled one by one (`peeling`). In smaller budgets, and in supersteps, they are peeled in rounds
//! (Seidman 1983; Matula and Beck 1983). The first superstep counts neighbors. Then rounds come in
//! pairs: the first finds the least remaining degree, k; the second removes all vertices of that
//! degree, which signal their neighbors; neighbors that fall to k or below are removed as well.
//! State: the remaining degree, or the core number after removal, in one u64. Signal: 1, in a byte.
//! An arc carries at most two signals, one of them in the first superstep. There are two rounds for
//! each core number that occurs. A round passes over the intervals with remaining vertices, which
//! are few in degree order; edges into other intervals are not read.

mod peeling;

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::{
    Add, Aggregate, Globals, Greatest, Least, Mode, Program, Reason, Values, Vertex,
};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::Result;
use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{InMemory, Planner, require_either};
use crate::request::{Finished, Request};

const METHOD: ParameterInfo = ParameterInfo {
    name: "method",
    values: Accepts::Words(&["auto", "peeling", "rounds"]),
    meaning: "peeling: numbers of all vertices, and some edges, in memory; rounds: any budget; \
              auto: peeling if it fits",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "kcore",
    computes: "core numbers: the largest k such that a vertex has k neighbors in the k-core; \
               direction ignored",
    column: "core",
    takes: Takes::PROGRAM,
    parameters: &[METHOD],
    run: Run::Vertices(run),
    plan,
};

/// The indexes of the neighbors in both directions.
const NEIGHBORS: &[Index] = &[Index::In, Index::Reverse];

/// The condition under which a request uses peeling in memory.
fn peeling_wanted(request: &Request) -> Result<InMemory> {
    InMemory::chosen(request, &METHOD, "peeling", "rounds")
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    let peeling = planner.of_indexes(NEIGHBORS, |setting| {
        let needs = peeling::Needs::of(setting.extent).ok_or_else(peeling::too_large)?;
        Ok(needs.forecast(setting))
    });
    // R-MAT of 2^20 vertices, edge factor 16: 657 supersteps with 34 passes over both indexes in
    // total.
    peeling_wanted(planner.request)?.forecast(planner.limit(), peeling, || {
        planner.program(&CoreNumbers, Steps::about(657, 34.0))
    })
}

/// The vertex is removed; its core number is in the lower bits.
const REMOVED: u64 = 1 << 63;
/// The vertex must signal its neighbors: at the start, or at its removal.
const DUE: u64 = 1 << 62;
const NUMBER: u64 = DUE - 1;

/// Core numbers.
#[derive(Debug, Clone, Copy)]
pub struct CoreNumbers;

/// True for rounds that find the least degree; the others remove vertices.
fn looks(round: u64) -> bool {
    round % 2 == 1
}

fn removed(core: u64) -> u64 {
    REMOVED | DUE | core
}

/// The core number of a vertex by its state; `None` if the vertex is not removed yet.
pub fn core_number(state: u64) -> Option<u64> {
    (state & REMOVED != 0).then_some(state & NUMBER)
}

impl Program for CoreNumbers {
    type State = u64;
    type Combiner = Add<u8>;
    /// The least remaining degree, in rounds that find it; the core number of the vertices just
    /// removed.
    type Aggregate = (Least, Greatest);
    const MODE: Mode = Mode::Delta;
    const KEEPS_SILENCE: bool = true;
    const SELF_LOOPS: bool = false;

    fn indexes(&self) -> &'static [Index] {
        NEIGHBORS
    }

    fn initial(&self, _: Vertex, _: &Globals<(Least, Greatest)>) -> u64 {
        DUE
    }

    fn signal(&self, _: Vertex, state: u64) -> u8 {
        u8::from(state & DUE != 0)
    }

    fn signalled(&self, state: u64) -> u64 {
        state & !DUE
    }

    fn signal_score(&self, _: u64, new: u64) -> f64 {
        f64::from(u8::from(new & DUE != 0))
    }

    #[inline]
    fn collect(
        &self,
        _: Vertex,
        state: u64,
        sum: u64,
        globals: &Globals<(Least, Greatest)>,
    ) -> u64 {
        if state & REMOVED != 0 || sum == 0 {
            return state;
        }
        if globals.round == 0 {
            return state + sum;
        }
        // The last vertices removed have this core number, whether the round or the previous
        // superstep removed them.
        let core = globals.aggregate.1.0 as u64;
        let left = state.saturating_sub(sum);
        if left <= core { removed(core) } else { left }
    }

    #[inline]
    fn aggregate(&self, _: Vertex, _: u64, new: u64) -> (Least, Greatest) {
        if new & REMOVED == 0 {
            return (Least((new & NUMBER) as f64), Greatest::NOTHING);
        }
        let core = if new & DUE != 0 { Greatest((new & NUMBER) as f64) } else { Greatest::NOTHING };
        (Least::NOTHING, core)
    }

    fn finished(&self, state: u64) -> bool {
        state & (REMOVED | DUE) == REMOVED
    }

    /// A round that finds the least degree has no supersteps, so its aggregate covers all vertices.
    fn another_round(&self, globals: &Globals<(Least, Greatest)>) -> bool {
        !looks(globals.round) || globals.aggregate.0.0.is_finite()
    }

    fn begin_round(&self, _: Vertex, state: u64, globals: &Globals<(Least, Greatest)>) -> u64 {
        let core = globals.aggregate.0.0 as u64;
        if !looks(globals.round) && state & REMOVED == 0 && state <= core {
            removed(core)
        } else {
            state
        }
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let extent = Extent::of(graph, NEIGHBORS, false);
    let needs = peeling::Needs::of(&extent);
    let setting = Setting::new(&extent, resources);
    let minimum = needs.as_ref().map(|needs| needs.forecast(&setting).minimum_bytes);
    if peeling_wanted(request)?.applies(minimum, resources.budget.limit()) {
        let (needs, minimum) = needs.zip(minimum).ok_or_else(peeling::too_large)?;
        resources.budget.require(minimum, peeling::PURPOSE)?;
        let (cores, stats) = peeling::cores(graph, &extent, &needs, resources)?;
        let values = Values::integers(cores, |core| Some(i64::from(core)), |_| Some(0));
        return Finished::new(graph, "core", values.without_nulls(), stats, "peeling");
    }
    require_either(request, graph, resources, plan, "to find core numbers")?;
    let output = request.run(&CoreNumbers, u64::MAX, graph, resources)?;
    let core = |state: u64| core_number(state).and_then(|core| i64::try_from(core).ok());
    let values = Values::integers(output.states, core, |_| Some(0));
    // Only a run that reached a limit leaves vertices without a number.
    let values =
        if output.stats.reason == Reason::NoChange { values.without_nulls() } else { values };
    Finished::new(graph, "core", values, output.stats, "rounds")
}
