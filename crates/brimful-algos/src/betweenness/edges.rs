//! Betweenness centrality of edges, exact or from sampled sources.
//!
//! Returns a row for each edge (`source`, `target`, `betweenness`: float64): the sum over pairs of
//! vertices of the share of their shortest paths that pass through it (Girvan and Newman 2002). An
//! undirected edge has one row, with the smaller id first; parallel edges add up. *Normalized*: the
//! sum is divided by the number of pairs, n (n-1). *Unnormalized*: it is divided by 1, or by 2 in
//! an undirected graph.
//!
//! Method: the runs of [`crate::betweenness`] (Brandes 2008, "On variants"): an arc from v to w on
//! the next level adds `paths(v) / paths(w) * (1 + dependency(w))`, in one pass over the edges
//! after each run of eight sources. Memory besides that of a run: 8 bytes for each arc and each
//! vertex, and the states of an interval of targets, 14 MiB. Rows are sorted in any budget.
//! Self-loops are on no shortest path.

use std::sync::Arc;

use brimful_engine::RowColumn;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::table::Kind;
use brimful_graph::Graph;
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_store::Resources;
use brimful_store::scratch::{ScratchArray, ScratchWindow};

use crate::Result;
use crate::betweenness::{
    LANES, PARAMETERS, Paths, UNREACHED, check_finite, for_all_sources, plan_sources,
};
use crate::edge_rows::{self, edge_rows};
use crate::id_offsets::{id_offset_bytes, id_offsets};
use crate::info::{Info, Run, Takes};
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};

/// Sources whose states are in memory at once, and targets of an interval.
const SOURCES: usize = 1 << 10;
const TARGETS: u64 = 1 << 16;

const COLUMNS: &[RowColumn] =
    &[("source", Kind::Vertex), ("target", Kind::Vertex), ("betweenness", Kind::Float)];

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "edge_betweenness",
    computes: "betweenness centrality of edges: share of shortest paths along an edge, exact or \
               from sampled sources",
    column: "betweenness",
    takes: Takes::NOTHING,
    parameters: PARAMETERS,
    run: Run::Rows(COLUMNS, run),
    plan: |planner: &Planner<'_>| -> Result<Forecast> {
        let (vertices, workers) =
            planner.of_scan(|setting| (setting.extent.vertices, setting.workers));
        plan_sources(planner, extra_bytes(vertices, planner.arcs(), workers))
    },
};

/// Bytes besides those of the runs.
fn extra_bytes(vertices: u64, arcs: u64, workers: usize) -> u64 {
    let states = (TARGETS.min(vertices) + SOURCES as u64) * size_of::<Paths>() as u64;
    arcs * size_of::<f64>() as u64
        + id_offset_bytes(vertices)
        + states
        + edge_rows::min_bytes(workers)
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    let (vertices, workers) = (graph.connected(), resources.workers());
    let extra = extra_bytes(vertices, graph.description().arcs, workers);
    let mut totals = vec![0.0; graph.description().arcs as usize];
    let passed = for_all_sources(request, graph, resources, extra, |states| {
        add(graph, states, &mut totals, resources)
    })?;
    check_finite(&totals)?;
    let n = graph.vertices() as f64;
    let directed = graph.description().directed;
    let pairs = match passed.variant {
        "normalized" => (n * (n - 1.0)).max(1.0),
        _ if directed => 1.0,
        _ => 2.0,
    };
    let whole = pairs * passed.share;
    let id_offsets = id_offsets(graph, &resources.job)?;
    let table = edge_rows(graph, COLUMNS, edge_rows::min_bytes(workers), resources, |push| {
        for_each_arc(graph, resources, |at, source, target| {
            let [one, other] = [source, target].map(|end| id_offsets[end as usize]);
            let ends = match directed {
                true => [one, other],
                false => [one.min(other), one.max(other)],
            };
            push(ends, (totals[at] / whole).to_bits())
        })
    })?;
    Ok(FinishedRows { table, stats: passed.stats, variant: passed.variant })
}

/// Calls `each` with the number and the ends of every arc that is not a self-loop.
fn for_each_arc(
    graph: &Graph,
    resources: &Resources,
    mut each: impl FnMut(usize, u64, u64) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    for_each_edge(graph.forward(), false, ("add", &*resources.job), |source, target, _| {
        at += 1;
        if source == target { Ok(()) } else { each(at - 1, source, target) }
    })
}

/// Adds the contribution of a run to the sum of each arc.
fn add(
    graph: &Graph,
    states: &ScratchArray<Paths>,
    totals: &mut [f64],
    resources: &Resources,
) -> Result<()> {
    let targets = 1 << graph.description().interval_bits;
    let (mut from, mut to) = (ScratchWindow::default(), ScratchWindow::default());
    for_each_arc(graph, resources, |at, source, target| {
        let from = from.get(states, source as usize, SOURCES)?;
        let to = to.get(states, target as usize, targets)?;
        for lane in 0..LANES {
            let level = from.levels[lane];
            if level != UNREACHED && to.levels[lane] == level + 1 {
                let share = from.counts[lane] / to.counts[lane];
                totals[at] += share * (1.0 + to.dependencies[lane]);
            }
        }
        Ok(())
    })
}
