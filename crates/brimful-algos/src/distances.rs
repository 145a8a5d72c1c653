//! Distances from many sources at once, and eccentricities. Every edge has the length 1.
//!
//! - `distances` returns a row for each source and each vertex that it reaches along edges
//!   (`source`, `target`, and `distance`: int64), ascending.
//! - `eccentricity` returns a row for each source, ascending: the greatest of these distances, and
//!   the number of other vertices that are reached (`source`, `eccentricity` and `reached`: int64).
//!
//! Both are exact. Method: sixty-four breadth-first searches share each superstep, one bit of a
//! word for each search (Then et al. 2014, "The More the Merrier").
//!
//! State: the searches that have reached a vertex, and its level in each, 136 bytes a vertex, paged
//! in smaller budgets; signals of 8 bytes. Every sixty-four sources take about as many supersteps
//! as their greatest distance. `distances` holds 8 bytes a vertex in memory, and sorts rows in any
//! budget.

pub(crate) mod diameter;

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::plan::needs::Needs;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::{
    Globals, Mode, Or, Program, RowColumn, RowWriter, RunOptions, Vertex, run as run_program,
};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;
use bytemuck::{Pod, Zeroable};

use crate::Result;
use crate::edge_rows::{self, edge_rows};
use crate::id_offsets::{id_offset_bytes, id_offsets};
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::out_weights::AT_ONCE;
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};

const PURPOSE: &str = "to search from many vertices";
/// The phase of all searches.
const PHASE: &str = "search";
/// Searches that share a run.
const LANES: usize = 64;
/// The level of a vertex that a search has not reached; real levels are smaller.
const UNREACHED: u16 = u16::MAX;

/// The index that searches along edges read.
const ALONG: &[Index] = &[Index::In];

const DISTANCES_COLUMNS: &[RowColumn] =
    &[("source", Kind::Vertex), ("target", Kind::Vertex), ("distance", Kind::Integer)];
const ECCENTRICITY_COLUMNS: &[RowColumn] =
    &[("source", Kind::Vertex), ("eccentricity", Kind::Integer), ("reached", Kind::Integer)];

/// The registry entry of distances.
pub(crate) const DISTANCES: Info = Info {
    name: "distances",
    computes: "distances from each of several sources, by 64 searches at a time",
    column: "distance",
    takes: Takes { source: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Rows(DISTANCES_COLUMNS, distances),
    plan: |planner| plan(planner, ALONG, id_offset_bytes),
};

/// The registry entry of eccentricities.
pub(crate) const ECCENTRICITY: Info = Info {
    name: "eccentricity",
    computes: "greatest distance from each of several sources, and the number of vertices reached",
    column: "reached",
    takes: Takes { source: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Rows(ECCENTRICITY_COLUMNS, eccentricity),
    plan: |planner| plan(planner, ALONG, |_| 0),
};

/// The searches that have reached a vertex, one bit each, and its level in each.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Reached {
    seen: u64,
    levels: [u16; LANES],
}

impl Reached {
    /// The level in a search, if the search has reached the vertex.
    #[inline]
    fn level(&self, lane: usize) -> Option<u16> {
        (self.levels[lane] != UNREACHED).then_some(self.levels[lane])
    }
}

/// Up to sixty-four breadth-first searches.
#[derive(Debug, Clone)]
pub struct Searches {
    /// Internal ids of the sources, in the order of the bits.
    sources: Vec<u64>,
    /// The indexes of all searches of the algorithm.
    indexes: &'static [Index],
    /// The index that this run reads: [`Index::In`] along edges, [`Index::Reverse`] against them.
    walked: Index,
}

impl Program for Searches {
    type State = Reached;
    type Combiner = Or;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;

    fn indexes(&self) -> &'static [Index] {
        self.indexes
    }

    fn walks(&self, index: Index, _: &Globals<()>) -> bool {
        index == self.walked
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> Reached {
        let mut reached = Reached { seen: 0, levels: [UNREACHED; LANES] };
        for (lane, _) in self.sources.iter().enumerate().filter(|(_, id)| **id == vertex.id) {
            reached.seen |= 1 << lane;
            reached.levels[lane] = 0;
        }
        reached
    }

    fn signal(&self, _: Vertex, reached: Reached) -> u64 {
        reached.seen
    }

    #[inline]
    fn collect(&self, _: Vertex, mut reached: Reached, sum: u64, globals: &Globals<()>) -> Reached {
        let mut fresh = sum & !reached.seen;
        reached.seen |= fresh;
        while fresh != 0 {
            reached.levels[fresh.trailing_zeros() as usize] = globals.superstep as u16 + 1;
            fresh &= fresh - 1;
        }
        reached
    }
}

/// Makes runs of searches in the memory that is left beside the caller's arrays.
struct Searching<'s> {
    graph: &'s Graph,
    within: Resources,
    indexes: &'static [Index],
    /// Edges visited by all runs so far.
    edges: u64,
}

impl<'s> Searching<'s> {
    /// Runs over these indexes leave `reserved` bytes of the budget to the caller.
    fn new(
        graph: &'s Graph,
        indexes: &'static [Index],
        reserved: u64,
        resources: &Resources,
    ) -> Self {
        let within = resources.within(resources.budget.limit() - reserved);
        Self { graph, within, indexes, edges: 0 }
    }

    /// The states after searches from these vertices, at most sixty-four.
    fn run(&mut self, sources: &[u64], walked: Index) -> Result<ScratchArray<Reached>> {
        let program = Searches { sources: sources.to_vec(), indexes: self.indexes, walked };
        let max_level = u64::from(UNREACHED) - 1;
        let options = RunOptions { max_supersteps: max_level, ..Default::default() };
        let output = run_program(&program, self.graph, &options, &self.within)?;
        self.edges += output.stats.edges_visited;
        if output.stats.supersteps >= max_level {
            let problem =
                format!("a shortest path has more than {max_level} edges, the supported maximum");
            return Err(brimful_engine::Error::Program(problem).into());
        }
        Ok(output.states)
    }
}

/// Calls `each` with every vertex and its state, ascending.
fn for_each(states: &ScratchArray<Reached>, mut each: impl FnMut(u64, &Reached)) -> Result<()> {
    let mut buffer = Vec::new();
    for start in (0..states.len()).step_by(AT_ONCE) {
        let end = states.len().min(start + AT_ONCE);
        for (vertex, reached) in (start as u64..).zip(states.slice(start..end, &mut buffer)?) {
            each(vertex, reached);
        }
    }
    Ok(())
}

fn plan(
    planner: &Planner<'_>,
    indexes: &'static [Index],
    arrays: fn(u64) -> u64,
) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let (vertices, workers) = planner.of_scan(|setting| (setting.extent.vertices, setting.workers));
    let batches = planner.request.sources.len().div_ceil(LANES).max(1) as u64;
    let steps = planner.spreading(Steps::about(8 * batches, 4.0 * batches as f64))?;
    let forecast =
        planner.program(&Searches { sources: Vec::new(), indexes, walked: Index::In }, steps)?;
    let extra = arrays(vertices) + edge_rows::min_bytes(workers);
    Ok(Forecast {
        minimum_bytes: forecast.minimum_bytes + extra,
        in_memory_bytes: forecast.in_memory_bytes + extra,
        memory_bytes: forecast.memory_bytes + extra,
        timed: false,
        ..forecast
    })
}

/// The sources of a request: internal ids of those with edges, and offsets of external ids.
fn sources_of(request: &Request, graph: &Graph) -> Result<Vec<(u64, u64)>> {
    let offsets = graph.id_offsets()?;
    let ids_of = |source| -> Result<(u64, u64)> {
        let vertex = graph.find_id(source)?;
        Ok((vertex, graph.external_offset(offsets, vertex)?))
    };
    let mut sources = request.sources.iter().map(ids_of).collect::<Result<Vec<_>>>()?;
    sources.sort_unstable_by_key(|(_, id_offset)| *id_offset);
    sources.dedup();
    Ok(sources)
}

/// The bytes of the budget beyond `extra` and the minimum of a run of searches.
fn spare_bytes(
    graph: &Graph,
    indexes: &'static [Index],
    extra: u64,
    resources: &Resources,
) -> Result<u64> {
    let needs = Needs::of(&Searches { sources: Vec::new(), indexes, walked: Index::In });
    let extent = Extent::of(graph, indexes, false);
    let minimum = Setting::new(&extent, resources).min_of_program(&needs, false);
    resources.budget.require(minimum + extra, PURPOSE)?;
    Ok(resources.budget.limit() - minimum - extra)
}

/// Begins a run from sources.
fn begin<'r>(request: &Request, graph: &'r Graph, resources: &'r Resources) -> Result<OnePass<'r>> {
    request.require_sources()?;
    request.refuse_max_supersteps()?;
    Ok(OnePass::begin(graph, resources))
}

fn distances(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    let pass = begin(request, graph, resources)?;
    let (vertices, workers) = (graph.connected(), resources.workers());
    let min_rows = edge_rows::min_bytes(workers);
    let extra = id_offset_bytes(vertices) + min_rows;
    let row_bytes = spare_bytes(graph, ALONG, extra, resources)? / 2;
    let sources = sources_of(request, graph)?;
    let _memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let id_offsets = id_offsets(graph, &resources.job)?;
    let mut searching = Searching::new(graph, ALONG, extra + row_bytes, resources);
    let (inside, alone): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|(vertex, _)| *vertex < vertices);
    let table = edge_rows(graph, DISTANCES_COLUMNS, min_rows + row_bytes, resources, |push| {
        alone.iter().try_for_each(|(_, id_offset)| push([*id_offset; 2], 0))?;
        for batch in inside.chunks(LANES) {
            let ids: Vec<u64> = batch.iter().map(|(vertex, _)| *vertex).collect();
            let states = searching.run(&ids, Index::In)?;
            let mut pushed = Ok(());
            for_each(&states, |vertex, reached| {
                for (lane, (_, source)) in batch.iter().enumerate() {
                    if let (Some(level), Ok(())) = (reached.level(lane), &pushed) {
                        pushed = push([*source, id_offsets[vertex as usize]], level.into());
                    }
                }
            })?;
            pushed?;
        }
        Ok(())
    })?;
    Ok(FinishedRows {
        table,
        stats: pass.finish(PHASE, Traversal::Dense, searching.edges),
        variant: "64 searches",
    })
}

fn eccentricity(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<FinishedRows> {
    let pass = begin(request, graph, resources)?;
    let extra = edge_rows::min_bytes(resources.workers());
    spare_bytes(graph, ALONG, extra, resources)?;
    let sources = sources_of(request, graph)?;
    let _memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let mut searching = Searching::new(graph, ALONG, extra, resources);
    let bytes = RowWriter::MINIMUM_BYTES;
    let mut rows = RowWriter::new(graph, ECCENTRICITY_COLUMNS, bytes, &resources.job);
    for batch in sources.chunks(LANES) {
        let inside = |vertex: u64| vertex < graph.connected();
        let ids: Vec<u64> = batch.iter().map(|(vertex, _)| *vertex).collect();
        let mut reached_by = vec![(0_u16, 0_u64); batch.len()];
        if ids.iter().any(|vertex| inside(*vertex)) {
            for_each(&searching.run(&ids, Index::In)?, |_, reached| {
                for (lane, (eccentricity, count)) in reached_by.iter_mut().enumerate() {
                    if let Some(level) = reached.level(lane) {
                        (*eccentricity, *count) =
                            (level.max(*eccentricity), *count + u64::from(level > 0));
                    }
                }
            })?;
        }
        for ((_, id_offset), (eccentricity, count)) in batch.iter().zip(reached_by) {
            rows.push(&[*id_offset, eccentricity.into(), count])?;
        }
    }
    let (table, stats) = (rows.finish()?, pass.finish(PHASE, Traversal::Dense, searching.edges));
    Ok(FinishedRows { table, stats, variant: "64 searches" })
}
