//! The hierarchy of Louvain's and Leiden's method: the communities after each level, side by side.
//!
//! Returns a row for each vertex, ascending (`vertex`, and `level_1`, `level_2`, ... of the type of
//! ids): the column `level_k` is the result of the method with `levels` = k. The last column has
//! the communities of one complete iteration. A hierarchy of more than thirty-two levels has
//! columns for the first thirty-one and the last level.
//!
//! Labels are sorted by vertex in any budget. Memory: 32 bytes a vertex more than those of the
//! method.

use std::sync::Arc;

use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::scratch::in_scratch;
use brimful_engine::{RowColumn, RowWriter};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::sorter::Sorter;

use super::lists::{Lists, Order};
use super::{Method, RESOLUTION, Settings, TAKES, communities, prepared};
use crate::connected_components::labels::labels;
use crate::connected_components::propagation::Label;
use crate::edge_rows::{self, EdgeRow};
use crate::id_offsets::for_each_id_offset;
use crate::info::{Info, Run};
use crate::one_pass::OnePass;
use crate::planning::{Planner, fits_narrow};
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

/// Bytes for each vertex besides those of the method: its community, the connected part of its
/// community, its label, and the least label of its community, each in up to 8 bytes.
const VERTEX_BYTES: u64 = 32;
/// The number of levels that a forecast assumes. It is unknown until the run ends, and seldom
/// greater.
const LIKELY_LEVELS: u64 = 6;

macro_rules! columns {
    ($($level:literal)*) => {
        &[("vertex", Kind::Vertex), $((concat!("level_", $level), Kind::Vertex)),*]
    };
}

/// The columns of a table with the maximum number of levels.
const COLUMNS: &[RowColumn] = columns!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
    24 25 26 27 28 29 30 31 32);

/// The registry entry of Louvain's method.
pub(crate) const LOUVAIN: Info = Info {
    name: "louvain_hierarchy",
    computes: "communities of high modularity after each level, a column each (Louvain)",
    column: "level_1",
    takes: TAKES,
    parameters: &[RESOLUTION],
    run: Run::Rows(COLUMNS.split_at(2).0, |request, graph, resources| {
        run_narrowest(Method::Louvain, request, graph, resources)
    }),
    plan: |planner| plan(Method::Louvain, planner),
};

/// The registry entry of Leiden's method.
pub(crate) const LEIDEN: Info = Info {
    name: "leiden_hierarchy",
    computes: "connected communities of high modularity after each level, a column each (Leiden)",
    column: "level_1",
    takes: TAKES,
    parameters: &[RESOLUTION],
    run: Run::Rows(COLUMNS.split_at(2).0, |request, graph, resources| {
        run_narrowest(Method::Leiden, request, graph, resources)
    }),
    plan: |planner| plan(Method::Leiden, planner),
};

/// Bytes besides those of the method.
fn extra_bytes(vertices: u64, workers: usize) -> u64 {
    vertices * VERTEX_BYTES + edge_rows::min_bytes(workers)
}

fn plan(method: Method, planner: &Planner<'_>) -> Result<Forecast> {
    let forecast = super::plan(method, planner)?;
    let extra = planner.of_scan(|setting| extra_bytes(setting.extent.vertices, setting.workers));
    // The labels to be sorted, and the rows.
    let label_bytes = size_of::<EdgeRow>() as u64 * LIKELY_LEVELS;
    let row_bytes = size_of::<u64>() as u64 * (LIKELY_LEVELS + 1);
    let vertices = planner.of_graph(Graph::vertices, planner.connected());
    Ok(Forecast {
        minimum_bytes: forecast.minimum_bytes + extra,
        memory_bytes: forecast.memory_bytes + extra,
        scratch_bytes: forecast.scratch_bytes + vertices * (label_bytes + row_bytes),
        ..forecast
    })
}

/// Runs a method with labels as narrow as the ids allow.
fn run_narrowest(
    method: Method,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<FinishedRows> {
    match fits_narrow(graph.largest_id_offset()?) {
        true => run::<u32>(method, request, graph, resources),
        false => run::<u64>(method, request, graph, resources),
    }
}

fn run<L: Label>(
    method: Method,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<FinishedRows> {
    let (workers, job) = (resources.workers(), &resources.job);
    let settings = Settings { iterations: 1, ..super::settings(method, request)? };
    let extra = extra_bytes(graph.connected(), workers);
    let (_memory, budget) = prepared(&settings, request, graph, resources, extra)?;
    let mut pass = OnePass::begin(graph, resources);
    let lists = Lists::of(graph, settings.weighted, &budget)?;
    let sorting = edge_rows::min_bytes(workers) - RowWriter::MINIMUM_BYTES;
    let sorter =
        in_scratch(graph, &|folder| Sorter::<EdgeRow>::new(folder, sorting, workers, job))?;
    let mut writer = sorter.writer();
    let (order, mut levels) = (Order::of(graph), 0);
    let (last, edges) = communities(
        lists,
        &settings,
        &budget,
        Some(&mut |community: &[u32]| {
            let labels =
                labels::<L>(graph, &|vertex| community[order.number(vertex) as usize], resources)?;
            let mut buffer = Vec::new();
            for_each_id_offset(graph, 0..graph.vertices(), job, |vertex, id_offset| {
                let at = vertex as usize;
                let label = match vertex < graph.connected() {
                    true => labels.slice(at..at + 1, &mut buffer)?[0].into(),
                    false => id_offset,
                };
                Ok(writer.push(EdgeRow { ends: [id_offset, levels], value: label })?)
            })?;
            levels += 1;
            Ok(())
        }),
    )?;
    drop(last);
    writer.finish()?;
    pass.end("move");
    let columns = &COLUMNS[..COLUMNS.len().min(levels as usize + 1)];
    let mut rows = RowWriter::new(graph, columns, RowWriter::MINIMUM_BYTES, job);
    let mut row = Vec::with_capacity(columns.len());
    job.begin("sort rows", sorter.len());
    sorter.merge(&resources.pool, |records| {
        job.check()?;
        for record in records {
            let [id_offset, level] = record.ends;
            if level == 0 {
                row.push(id_offset);
            }
            row.truncate(columns.len() - 1);
            row.push(record.value);
            if level + 1 == levels {
                rows.push(&row)?;
                row.clear();
            }
        }
        job.advance(records.len() as u64);
        Ok::<(), Error>(())
    })?;
    let stats = pass.finish("sort", Traversal::Scan, edges);
    Ok(FinishedRows { table: rows.finish()?, stats, variant: method.name() })
}
