//! Breadth-first search: levels or parents.
//!
//! Returns for each vertex its distance from the nearest source in edges (`distance`, int64), or
//! its parent in a forest of shortest paths (`parent`): the smallest id among the in-neighbors that
//! are one level nearer; a source is its own parent. The value is null if there is no path. Follows
//! the direction of edges. Exact. There are as many supersteps as levels, and each reads the edges
//! of the previous level (Moore 1959).

use std::sync::Arc;

use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Globals, Max, Min, Mode, Program, Values, Vertex};
use brimful_graph::Graph;
use brimful_store::Resources;
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{Finished, Request};
use crate::sources::Sources;
use crate::sssp::ShortestPaths;
use crate::{Error, Result};

const VALUES: ParameterInfo = ParameterInfo {
    name: "values",
    values: Accepts::Words(&["distance", "parent"]),
    meaning: "distance, or parent: the smallest neighbor one level nearer",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "bfs",
    computes: "breadth-first search along edges: distance in edges from the nearest source, or \
               parent in the tree",
    column: "distance",
    takes: Takes { source: true, asynchronous: true, ..Takes::PROGRAM },
    parameters: &[VALUES],
    run: Run::Vertices(run),
    plan: |planner| {
        if VALUES.word(planner.request)? == "parent" {
            return planner.program(&Parents { sources: 0.into() }, steps(planner)?);
        }
        if let Some(forecast) = asynchronous(planner)? {
            return Ok(forecast);
        }
        planner.in_supersteps(|planner| {
            planner.program(&Levels { sources: 0.into() }, steps(planner)?)
        })
    },
};

/// A search of R-MAT graphs of 2^20 vertices takes 8 supersteps with three passes over the edges in
/// total.
fn steps(planner: &Planner<'_>) -> Result<Steps> {
    planner.spreading(Steps::about(8, 3.0))
}

/// The forecast of an asynchronous search. `None` if supersteps take its place: its signals have
/// eight times the bytes, and visit more edges if they leave no memory for sparse supersteps.
fn asynchronous(planner: &Planner<'_>) -> Result<Option<Forecast>> {
    let request = planner.request;
    if !request.asynchronous {
        return Ok(None);
    }
    let forecast = planner.program(&ShortestPaths { sources: 0.into() }, steps(planner)?)?;
    // A checkpoint belongs to one program at any budget.
    let stays = request.store.is_some() || request.checkpoints.is_some();
    Ok(Some(forecast).filter(|forecast| stays || forecast.in_memory_bytes <= planner.limit()))
}

/// Computes levels. State: the distance from the nearest source, or all ones while the vertex is
/// unreached. A signal says that the sender has just been reached; it is one byte, so that the sums
/// of an interval stay in cache.
#[derive(Debug, Clone)]
pub struct Levels {
    /// The vertices at distance 0.
    pub sources: Sources,
}

impl Program for Levels {
    type State = u32;
    type Combiner = Max<u8>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> u32 {
        if self.sources.contains(vertex.id) { 0 } else { u32::MAX }
    }

    fn signal(&self, _: Vertex, level: u32) -> u8 {
        u8::from(level != u32::MAX)
    }

    #[inline]
    fn collect(&self, _: Vertex, level: u32, reached: u8, globals: &Globals<()>) -> u32 {
        if level == u32::MAX && reached == 1 { globals.superstep as u32 + 1 } else { level }
    }
}

/// Computes parents. A signal is the offset of the sender's external id; the smallest of the first
/// signals to arrive is final.
#[derive(Debug, Clone)]
pub struct Parents {
    /// The vertices that are their own parents.
    pub sources: Sources,
}

/// The offsets of a vertex and of its parent; the parent is all ones while the vertex is unreached.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Child {
    id: u64,
    parent: u64,
}

impl Program for Parents {
    type State = Child;
    type Combiner = Min<u64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;
    const NEEDS_EXTERNAL: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> Child {
        let id = vertex.external;
        Child { id, parent: if self.sources.contains(vertex.id) { id } else { u64::MAX } }
    }

    fn signal(&self, _: Vertex, child: Child) -> u64 {
        if child.parent == u64::MAX { u64::MAX } else { child.id }
    }

    fn collect(&self, _: Vertex, child: Child, least: u64, _: &Globals<()>) -> Child {
        if child.parent == u64::MAX { Child { parent: least, ..child } } else { child }
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let sources = request.sources(graph, &resources.job)?;
    if VALUES.word(request)? == "parent" {
        if graph.key_bounds()?.is_some_and(|(smallest, largest)| largest - smallest == u64::MAX) {
            // The greatest offset would equal the mark for no parent.
            return Err(Error::Usage(
                "parents need an unused 64-bit number, and the ids of this graph span all of them"
                    .into(),
            ));
        }
        let output =
            request.run(&Parents { sources: sources.clone() }, u64::MAX, graph, resources)?;
        let parent = |child: Child| (child.parent != u64::MAX).then_some(child.parent);
        let values = Values::vertices(output.states, parent, move |id_offset| {
            sources.has_isolated(id_offset).then_some(id_offset)
        });
        return Finished::new(graph, "parent", values, output.stats, "parents");
    }
    if asynchronous(&Planner::of_run(request, graph, resources)?)?.is_some() {
        let output =
            request.run(&ShortestPaths { sources: sources.clone() }, u64::MAX, graph, resources)?;
        let level = |length: f64| length.is_finite().then_some(length as i64);
        let values = Values::integers(output.states, level, move |id_offset| {
            sources.has_isolated(id_offset).then_some(0)
        });
        return Finished::new(graph, "distance", values, output.stats, "levels");
    }
    let most = u64::from(u32::MAX) - 1;
    let request = Request { asynchronous: false, ..request.clone() };
    let output = request.run(&Levels { sources: sources.clone() }, most, graph, resources)?;
    let level = |level: u32| (level != u32::MAX).then_some(level.into());
    let values = Values::integers(output.states, level, move |id_offset| {
        sources.has_isolated(id_offset).then_some(0)
    });
    Finished::new(graph, "distance", values, output.stats, "levels")
}
