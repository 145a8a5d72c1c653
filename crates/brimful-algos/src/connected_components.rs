//! Weakly connected components.
//!
//! Returns, for each vertex, the smallest id of its component (`component`, of the type of ids); direction is
//! ignored. Exact, whichever method: union-find where its arrays fit the budget, else label propagation.

pub mod propagation;
mod union_find;

use std::sync::Arc;

use brimful_engine::{Layout, Values};
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::registry::{Info, ParameterInfo, Takes};
use crate::request::{Finished, Request, Stats};
use crate::{Error, Result};

use propagation::{ConnectedComponents, Label, fits_narrow};

/// What there is to know of it.
pub(crate) const INFO: Info = Info {
    name: "connected_components",
    computes: "weakly connected components, each named by its smallest vertex",
    column: "component",
    takes: Takes { asynchronous: true, layouts: true, stores: true, checkpoints: true, ..Takes::NOTHING },
    parameters: &[ParameterInfo {
        name: "method",
        default: "auto",
        meaning: "union_find: one pass, arrays in memory; propagation: any budget; auto: union_find if it fits",
    }],
    run: |request, graph, resources| {
        let range = graph.key_bounds()?.map_or(0, |(smallest, largest)| largest.saturating_sub(smallest));
        match fits_narrow(range) {
            true => run::<u32>(request, graph, resources),
            false => run::<u64>(request, graph, resources),
        }
    },
};

fn run<L: Label + 'static>(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let method = request.choice("method", &["auto", "union_find", "propagation"])?;
    let finish = |values: Values, stats: Stats, variant| {
        Finished::new(graph, "component", values.without_nulls(), stats, variant)
    };
    if request.max_supersteps.is_some() && method == "union_find" {
        let what =
            "union_find has no supersteps to limit; leave --max-supersteps out (Python: max_supersteps=)";
        return Err(Error::Usage(what.into()));
    }
    let swept = request.layout != Layout::Shards
        || request.asynchronous
        || request.store.is_some()
        || request.checkpoints.is_some();
    if method == "union_find" && swept {
        let what = "union_find has no asynchronous mode, no store, no layout but shards and no checkpoints; propagation has";
        return Err(Error::Usage(what.into()));
    }
    let wanted = method != "propagation" && request.max_supersteps.is_none() && !swept;
    if wanted && (method == "union_find" || union_find::fits::<L>(graph, resources)) {
        let (labels, stats) = union_find::components::<L>(graph, resources)?;
        return finish(
            Values::vertices(labels, |label: L| Some(label.into()), Some),
            stats.into(),
            "union_find",
        );
    }
    let output = request.run(&ConnectedComponents::<L>::new(), u64::MAX, graph, resources)?;
    finish(Values::vertices(output.states, |label: L| Some(label.into()), Some), output.stats, "propagation")
}
