//! Weakly connected components.
//!
//! Returns, for each vertex, the smallest id of its component (`component`, of the type of ids);
//! direction is ignored. Both methods are exact: union-find if its arrays fit the budget, else
//! label propagation.

pub(crate) mod labels;
pub mod propagation;
pub(crate) mod union_find;

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Stats, Values};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{InMemory, Planner, fits_narrow, require_either};
use crate::request::{Finished, Request, inapplicable};
use crate::{Error, Result};

use propagation::{ConnectedComponents, Label};

/// The parameter that chooses the method.
pub(crate) const METHOD: ParameterInfo = ParameterInfo {
    name: "method",
    values: Accepts::Words(&["auto", "union_find", "propagation"]),
    meaning: "union_find: one pass, arrays in memory; propagation: any budget; auto: union_find if \
              it fits",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "connected_components",
    computes: "weakly connected components, each named by its smallest vertex",
    column: "component",
    takes: Takes { asynchronous: true, ..Takes::PROGRAM },
    parameters: &[METHOD],
    run: Run::Vertices(find),
    plan: plan_any,
};

/// Finds the components, with the narrowest labels possible.
pub(crate) fn find(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    match fits_narrow(graph.largest_id_offset()?) {
        true => run::<u32>(request, graph, resources),
        false => run::<u64>(request, graph, resources),
    }
}

/// Forecasts a run that finds the components.
pub(crate) fn plan_any(planner: &Planner<'_>) -> Result<Forecast> {
    match planner.has_narrow_id_offsets()? {
        true => plan::<u32>(planner),
        false => plan::<u64>(planner),
    }
}

fn plan<L: Label + 'static>(planner: &Planner<'_>) -> Result<Forecast> {
    let union_find = union_find::forecast::<L>(planner, 1).map_err(Into::into);
    union_find_wanted(planner.request)?.forecast(planner.limit(), union_find, || {
        // R-MAT of 2^20 vertices takes 7 supersteps with four passes over both indexes in total.
        let steps = planner.spreading(Steps::about(7, 4.0))?;
        planner.program(&ConnectedComponents::<L>::new(), steps)
    })
}

/// The condition for union-find in a request.
pub(crate) fn union_find_wanted(request: &Request) -> Result<InMemory> {
    let method = METHOD.word(request)?;
    if request.max_supersteps.is_some() && method == "union_find" {
        return Err(inapplicable("max-supersteps", "union_find"));
    }
    let in_supersteps =
        request.store.is_some() || request.checkpoints.is_some() || request.is_divided();
    if method == "union_find" && (in_supersteps || request.asynchronous) {
        let problem = "union_find has no asynchronous mode, store, checkpoints or cluster; use the \
                       method propagation";
        return Err(Error::Usage(problem.into()));
    }
    // Union-find has no supersteps, so it serves the asynchronous mode too, in less time.
    Ok(match method {
        "union_find" => InMemory::Always,
        "auto" if request.max_supersteps.is_none() && !in_supersteps => InMemory::IfItFits,
        _ => InMemory::Never,
    })
}

fn run<L: Label + 'static>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let wanted = union_find_wanted(request)?;
    let finish = |values: Values, stats: Stats, variant| {
        Finished::new(graph, "component", values.without_nulls(), stats, variant)
    };
    let extent = Extent::of(graph, &[Index::In], false);
    let least = union_find::min_bytes::<L>(&extent, resources.workers(), 1);
    if wanted.applies(least, resources.budget.limit()) {
        let (labels, stats) = union_find::components::<L>(graph, resources)?;
        return finish(
            Values::vertices(labels, |label: L| Some(label.into()), Some),
            stats,
            "union_find",
        );
    }
    require_either(request, graph, resources, plan::<L>, "to find components")?;
    let output = request.run(&ConnectedComponents::<L>::new(), u64::MAX, graph, resources)?;
    finish(
        Values::vertices(output.states, |label: L| Some(label.into()), Some),
        output.stats,
        "propagation",
    )
}
