//! The diameter of a component. Every edge has the length 1.
//!
//! Returns one row: two vertices of the component at the greatest distance, and this distance
//! (`source`, `target`, and `distance`: int64). The component is that of the source; without a
//! source, that of the vertex with the most outgoing arcs. In a directed graph it is the strongly
//! connected component. Exact.
//!
//! Method: iFUB (Crescenzi, Grossi, Habib, Lanzi, Marino 2013; in directed graphs with searches in
//! both directions: Crescenzi, Grossi, Lanzi, Marino 2012). Levels are distances from a vertex in
//! the middle of a long path. Eccentricities are computed from the outermost level inwards,
//! sixty-four at a time, until no remaining pair can be farther apart: twice its level is a bound.
//! Most graphs take few runs of searches ([`crate::distances`]), at worst |V| / 64. Memory: 12
//! bytes a vertex, besides that of a run.

use std::sync::Arc;

use brimful_engine::RowWriter;
use brimful_engine::result::stats::Traversal;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::distances::{
    DISTANCES_COLUMNS, LANES, PHASE, PURPOSE, Reached, Searching, UNREACHED, for_each, plan,
    sources_of, spare_bytes,
};
use crate::edge_rows;
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "diameter",
    computes: "diameter of a component: two vertices at the greatest distance, exact (iFUB)",
    column: "distance",
    takes: Takes { source: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Rows(DISTANCES_COLUMNS, run),
    plan: |planner| plan(planner, indexes(planner.is_directed()), level_bytes),
};

/// The indexes of searches.
fn indexes(directed: bool) -> &'static [Index] {
    if directed { &[Index::In, Index::Reverse] } else { &[Index::In] }
}

/// Bytes of levels in both directions, and of the vertices of a level.
fn level_bytes(vertices: u64) -> u64 {
    vertices * (2 * size_of::<u16>() + size_of::<u64>()) as u64
}

/// A search for the diameter of a component.
struct Component<'s, 'g> {
    searching: &'s mut Searching<'g>,
    /// Distances from the vertex in the middle, and to it. The second is empty in an undirected
    /// graph, where both are the same.
    levels: [Vec<u16>; 2],
    /// The greatest distance so far, and its ends.
    distance: u16,
    ends: [u64; 2],
}

impl Component<'_, '_> {
    fn contains(&self, vertex: u64) -> bool {
        let is_reached = |levels: &Vec<u16>| levels.get(vertex as usize) != Some(&UNREACHED);
        self.levels.iter().all(is_reached)
    }

    /// Computes the eccentricities of vertices within the component, along edges or against them,
    /// and keeps the greatest.
    fn search(&mut self, vertices: &[u64], index: Index) -> Result<()> {
        let states = self.searching.run(vertices, index)?;
        let mut farthest = vec![(0_u16, u64::MAX); vertices.len()];
        for_each(&states, |vertex, reached| {
            if !self.contains(vertex) {
                return;
            }
            for (lane, farthest) in farthest.iter_mut().enumerate() {
                if let Some(level) = reached.level(lane).filter(|level| *level > farthest.0) {
                    *farthest = (level, vertex);
                }
            }
        })?;
        for (vertex, (level, other)) in vertices.iter().zip(farthest) {
            if level > self.distance {
                self.distance = level;
                self.ends = match index {
                    Index::In => [*vertex, other],
                    Index::Reverse => [other, *vertex],
                };
            }
        }
        Ok(())
    }

    /// True if two vertices of at most this level may be farther apart than the pair found so far.
    fn may_exceed(&self, level: u16) -> bool {
        u32::from(self.distance) < 2 * u32::from(level)
    }

    /// Searches from the outermost level inwards, while a remaining pair may be farther apart.
    fn close(&mut self) -> Result<()> {
        let deepest = |levels: &Vec<u16>| {
            let inside = (0..).zip(levels).filter(|(vertex, _)| self.contains(*vertex));
            inside.map(|(_, level)| *level).max()
        };
        let mut level = self.levels.iter().filter_map(deepest).max().unwrap_or(0);
        while level > 0 && self.may_exceed(level) {
            // Long paths end at a vertex that is far from the middle, so its search is against the
            // edges.
            for (side, index) in [Index::Reverse, Index::In].into_iter().enumerate() {
                let is_due = |vertex: &u64| {
                    self.levels[side].get(*vertex as usize) == Some(&level)
                        && self.contains(*vertex)
                };
                let due: Vec<u64> = (0..self.levels[side].len() as u64).filter(is_due).collect();
                let index = if self.levels[1].is_empty() { Index::In } else { index };
                for vertices in due.chunks(LANES) {
                    if self.may_exceed(level) {
                        self.search(vertices, index)?;
                    }
                }
            }
            level -= 1;
        }
        Ok(())
    }
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    let indexes = indexes(graph.description().directed);
    request.refuse_max_supersteps()?;
    let pass = OnePass::begin(graph, resources);
    let extra = level_bytes(graph.connected()) + edge_rows::min_bytes(resources.workers());
    spare_bytes(graph, indexes, extra, resources)?;
    let sources = sources_of(request, graph)?;
    if sources.len() > 1 {
        let problem = "diameter measures the component of one source; name one source";
        return Err(Error::Usage(problem.into()));
    }
    let _memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let mut searching = Searching::new(graph, indexes, extra, resources);
    let start = match sources.first() {
        Some((vertex, _)) => Some(*vertex),
        None => most_arcs(graph)?,
    };
    let bytes = RowWriter::MINIMUM_BYTES;
    let mut rows = RowWriter::new(graph, DISTANCES_COLUMNS, bytes, &resources.job);
    if let Some(start) = start {
        let (ends, distance) = match start < graph.connected() {
            true => diameter_of(start, &mut searching)?,
            false => ([start; 2], 0),
        };
        let offsets = graph.id_offsets()?;
        let mut words = [0, 0, distance.into()];
        for (end, word) in ends.into_iter().zip(&mut words) {
            *word = graph.external_offset(offsets, end)?;
        }
        rows.push(&words)?;
    }
    let (table, stats) = (rows.finish()?, pass.finish(PHASE, Traversal::Dense, searching.edges));
    Ok(FinishedRows { table, stats, variant: "ifub" })
}

/// The vertex with the most outgoing arcs; `None` in a graph without vertices.
fn most_arcs(graph: &Graph) -> Result<Option<u64>> {
    let mut best = None;
    for (vertex, degree) in (0..).zip(graph.degrees_of_first(graph.connected())) {
        let degree = degree?;
        if best.is_none_or(|(most, _)| degree > most) {
            best = Some((degree, vertex));
        }
    }
    Ok(best.map(|(_, vertex)| vertex).or((graph.vertices() > 0).then_some(0)))
}

/// The levels of a search.
fn levels(states: &ScratchArray<Reached>, lane: usize) -> Result<Vec<u16>> {
    let mut levels = Vec::with_capacity(states.len());
    for_each(states, |_, reached| levels.push(reached.levels[lane]))?;
    Ok(levels)
}

/// The vertex with the greatest level in the first search, and its level; the smallest id on a tie.
fn last(states: &ScratchArray<Reached>) -> Result<(u64, u16)> {
    let mut last = (0, None);
    for_each(states, |vertex, reached| {
        if reached.level(0) > last.1 {
            last = (vertex, reached.level(0));
        }
    })?;
    Ok((last.0, last.1.unwrap_or(0)))
}

/// Two vertices of the component of `start` at the greatest distance, and this distance.
fn diameter_of(start: u64, searching: &mut Searching<'_>) -> Result<([u64; 2], u16)> {
    let directed = searching.graph.description().directed;
    let middle = if directed { start } else { middle(start, searching)? };
    let out = levels(&searching.run(&[middle], Index::In)?, 0)?;
    let back = match directed {
        true => levels(&searching.run(&[middle], Index::Reverse)?, 0)?,
        false => Vec::new(),
    };
    let (levels, ends) = ([out, back], [middle; 2]);
    let mut component = Component { searching, levels, distance: 0, ends };
    component.close()?;
    Ok((component.ends, component.distance))
}

/// A vertex in the middle of a long shortest path of an undirected graph: the path between the
/// vertices that two successive searches reach last.
fn middle(start: u64, searching: &mut Searching<'_>) -> Result<u64> {
    let (one, _) = last(&searching.run(&[start], Index::In)?)?;
    let (other, distance) = last(&searching.run(&[one], Index::In)?)?;
    let mut middle = None;
    for_each(&searching.run(&[one, other], Index::In)?, |vertex, reached| {
        let distances = [reached.levels[0], reached.levels[1]];
        if middle.is_none() && distances == [distance / 2, distance - distance / 2] {
            middle = Some(vertex);
        }
    })?;
    Ok(middle.unwrap_or(start))
}
