//! Bridges and articulation points.
//!
//! `bridges` returns a row for each edge whose removal disconnects its component (`source`,
//! `target`, the smaller id first), ascending. `articulation_points` returns for each vertex 1 if
//! its removal disconnects its component, else 0 (`member`, int64). Direction and self-loops are
//! ignored. A parallel edge is never a bridge; two opposite arcs of a directed graph count as
//! parallel. Exact.
//!
//! Method (Tarjan and Vishkin 1985): union-find yields a spanning forest, whose vertices are
//! numbered so that the subtree of a vertex is an interval of numbers. With the least and the
//! greatest number that other edges reach from each subtree, an edge to a parent is a bridge if
//! none leaves the subtree. Edges to parents are in one block if an edge joins subtrees of which
//! neither contains the other, or leads from below a vertex past its parent; a vertex is an
//! articulation point if edges of two blocks meet there.
//!
//! Two passes over the edges in one thread, in any order; edges stay on disk. Memory: 28 bytes a
//! vertex with edges, which the budget must hold.

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::traverse::scan::Scan;
use brimful_engine::{RowColumn, Stats, Values};
use brimful_graph::read::segment_reader;
use brimful_graph::{Graph, Index};
use brimful_store::scratch::ScratchArray;
use brimful_store::{Job, Resources};

use crate::edge_rows::{self, edge_rows};
use crate::id_offsets::id_offsets;
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::planning::Planner;
use crate::request::{Finished, FinishedRows, Request};
use crate::spanning_forest::{Rooted, root};
use crate::{Error, Result};

/// Bytes for each vertex with edges: edges of the forest 8, their lists 12, parents 4, and the
/// queue 4. Later, `Forest` takes 24 and a mark 1, and bridges take 17.
const VERTEX_BYTES: u64 = 28;

const COLUMNS: &[RowColumn] = &[("source", Kind::Vertex), ("target", Kind::Vertex)];

/// The registry entry of bridges.
pub(crate) const BRIDGES: Info = Info {
    name: "bridges",
    computes: "bridges: edges whose removal splits a component; direction ignored",
    column: "target",
    takes: Takes::NOTHING,
    parameters: &[],
    run: Run::Rows(COLUMNS, bridges),
    plan,
};

/// The registry entry of articulation points.
pub(crate) const ARTICULATION: Info = Info {
    name: "articulation_points",
    computes: "articulation points: 1 for a vertex whose removal splits a component, else 0; \
               direction ignored",
    column: "member",
    takes: Takes::NOTHING,
    parameters: &[],
    run: Run::Vertices(articulation_points),
    plan,
};

fn array_bytes(vertices: u64, workers: usize) -> u64 {
    vertices * VERTEX_BYTES + edge_rows::min_bytes(workers)
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let forecast = planner.scans(2, |setting| {
        let bytes = array_bytes(setting.extent.vertices, setting.workers);
        (bytes, bytes, setting.extent.vertices)
    });
    Ok(Forecast { moves: false, timed: false, ..forecast })
}

/// A spanning forest in preorder numbers, and the range of numbers that its subtrees reach.
struct Forest {
    /// The number of each vertex.
    numbers: Vec<u32>,
    /// The following vectors are indexed by number. A root is its own parent.
    parents: Vec<u32>,
    sizes: Vec<u32>,
    least: Vec<u32>,
    greatest: Vec<u32>,
    /// Union-find of the edges to parents.
    blocks: Vec<u32>,
}

impl Forest {
    /// The forest of a graph, with the ranges that the other edges reach.
    fn of(graph: &Graph, resources: &Resources) -> Result<Self> {
        let job = &resources.job;
        let mut trees: Vec<u32> = (0..graph.connected() as u32).collect();
        let mut edges = Vec::with_capacity(trees.len());
        for_each_edge_without_loops(graph, "join", job, |one, other| {
            let ends = [one, other];
            let [one, other] = ends.map(|end| root(&mut trees, end));
            if one != other {
                trees[one.max(other) as usize] = one.min(other);
                edges.push(ends);
            }
        })?;
        drop(trees);
        let rooted = Rooted::new(&edges, graph.connected() as usize);
        drop(edges);
        let mut forest = Self::numbered(rooted);
        let mut is_tree_edge_seen = vec![false; forest.numbers.len()];
        for_each_edge_without_loops(graph, "reach", job, |one, other| {
            let ends = [one, other].map(|end| forest.numbers[end as usize]);
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let seen = &mut is_tree_edge_seen[high as usize];
            if forest.parents[high as usize] == low && !std::mem::replace(seen, true) {
                return;
            }
            forest.reach(low, high);
        })?;
        forest.close();
        Ok(forest)
    }

    /// Numbers the vertices so that a subtree is an interval that begins at its root.
    fn numbered(rooted: Rooted) -> Self {
        let vertices = rooted.parents.len();
        let mut below = vec![1_u32; vertices];
        for &vertex in rooted.order.iter().rev() {
            let parent = rooted.parents[vertex as usize];
            if parent != vertex {
                below[parent as usize] += below[vertex as usize];
            }
        }
        // In `order`, parents come before their children; `next` holds the number of the next
        // child.
        let (mut numbers, mut next, mut roots) = (vec![0_u32; vertices], vec![0_u32; vertices], 0);
        for &vertex in &rooted.order {
            let parent = rooted.parents[vertex as usize];
            let place = if parent == vertex { &mut roots } else { &mut next[parent as usize] };
            let number = *place;
            *place += below[vertex as usize];
            numbers[vertex as usize] = number;
            next[vertex as usize] = number + 1;
        }
        drop(next);
        let (mut parents, mut sizes) = (vec![0_u32; vertices], vec![0_u32; vertices]);
        for (vertex, number) in numbers.iter().enumerate() {
            parents[*number as usize] = numbers[rooted.parents[vertex] as usize];
            sizes[*number as usize] = below[vertex];
        }
        drop((below, rooted));
        let own: Vec<u32> = (0..vertices as u32).collect();
        Self { numbers, parents, sizes, least: own.clone(), greatest: own.clone(), blocks: own }
    }

    /// Adds an edge that is not in the forest; `low` is the smaller number of its ends.
    fn reach(&mut self, low: u32, high: u32) {
        let least = &mut self.least[high as usize];
        *least = low.min(*least);
        let greatest = &mut self.greatest[low as usize];
        *greatest = high.max(*greatest);
        if high - low >= self.sizes[low as usize] {
            self.join(low, high);
        }
    }

    /// Extends the ranges of vertices to those of their subtrees, and joins edges to parents that
    /// are in one block.
    fn close(&mut self) {
        // In descending order, children come before their parents.
        for vertex in (0..self.parents.len()).rev() {
            let parent = self.parents[vertex] as usize;
            self.least[parent] = self.least[parent].min(self.least[vertex]);
            self.greatest[parent] = self.greatest[parent].max(self.greatest[vertex]);
        }
        for vertex in 0..self.parents.len() as u32 {
            let parent = self.parents[vertex as usize];
            let is_child = parent != vertex && self.parents[parent as usize] != parent;
            if is_child && self.leaves(vertex, parent) {
                self.join(vertex, parent);
            }
        }
    }

    /// True if an edge leads from the subtree of `vertex` to a vertex outside the subtree of
    /// `around`.
    fn leaves(&self, vertex: u32, around: u32) -> bool {
        let end = around + self.sizes[around as usize];
        self.least[vertex as usize] < around || self.greatest[vertex as usize] >= end
    }

    fn join(&mut self, one: u32, other: u32) {
        let [one, other] = [one, other].map(|vertex| root(&mut self.blocks, vertex));
        self.blocks[one.max(other) as usize] = one.min(other);
    }

    /// The ends of all bridges.
    fn bridges(self) -> Vec<[u32; 2]> {
        let is_bridge =
            |vertex| self.parents[vertex as usize] != vertex && !self.leaves(vertex, vertex);
        let marks: Vec<bool> = (0..self.parents.len() as u32).map(is_bridge).collect();
        let Self { numbers, parents, sizes, least, greatest, blocks } = self;
        drop((sizes, least, greatest, blocks));
        let mut vertices = vec![0_u32; numbers.len()];
        for (vertex, number) in (0..).zip(&numbers) {
            vertices[*number as usize] = vertex;
        }
        drop(numbers);
        let mut ends = Vec::with_capacity(marks.iter().filter(|mark| **mark).count());
        let marked = (0..).zip(&marks).filter(|(_, mark)| **mark);
        ends.extend(marked.map(|(number, _)| {
            [number, parents[number as usize]].map(|number| vertices[number as usize])
        }));
        ends
    }

    /// For each number, 1 if two blocks meet at the vertex, else 0.
    fn articulation(&mut self) -> Vec<u8> {
        let mut members = vec![0_u8; self.parents.len()];
        for vertex in 0..self.parents.len() as u32 {
            let parent = self.parents[vertex as usize];
            if parent == vertex {
                continue;
            }
            // A root has no edge to a parent; the edge of its first child, the next number, stands
            // for it.
            let is_root = self.parents[parent as usize] == parent;
            let other = if is_root { parent + 1 } else { parent };
            if root(&mut self.blocks, vertex) != root(&mut self.blocks, other) {
                members[parent as usize] = 1;
            }
        }
        members
    }
}

/// Calls `each` with the ends of every edge except self-loops; an undirected edge once.
fn for_each_edge_without_loops(
    graph: &Graph,
    phase: &str,
    job: &Job,
    mut each: impl FnMut(u32, u32),
) -> Result<()> {
    let directed = graph.description().directed;
    segment_reader::for_each_edge(graph.forward(), false, (phase, job), |source, target, _| {
        // An undirected edge is stored as two arcs.
        if source < target || directed && source != target {
            each(source as u32, target as u32);
        }
        Ok(())
    })
}

/// Passes the forest of the graph, and the bytes of memory for rows, to `take`; returns its result
/// and the figures of the run.
fn with_forest<T>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
    take: impl FnOnce(Forest, u64) -> Result<T>,
) -> Result<(T, Stats)> {
    const PURPOSE: &str = "to find blocks";
    request.refuse_max_supersteps()?;
    if graph.connected() >= 1 << 31 {
        let problem = format!("{} supports fewer than 2^31 vertices with edges", request.algorithm);
        return Err(Error::Usage(problem));
    }
    let workers = resources.workers();
    let extent = Extent::of(graph, &[Index::In], false);
    let needed = Scan::minimum_bytes(&extent, workers) + array_bytes(extent.vertices, workers);
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let forest = Forest::of(graph, resources)?;
    pass.end("find");
    let taken = take(forest, memory.bytes() - needed + edge_rows::min_bytes(workers))?;
    Ok((taken, pass.finish("list", Traversal::Scan, 2 * graph.description().arcs)))
}

fn bridges(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    let (table, stats) = with_forest(request, graph, resources, |forest, bytes| {
        let ends = forest.bridges();
        let id_offsets = id_offsets(graph, &resources.job)?;
        edge_rows(graph, COLUMNS, bytes, resources, |push| {
            ends.iter().try_for_each(|ends| {
                let [one, other] = ends.map(|end| id_offsets[end as usize]);
                push([one.min(other), one.max(other)], 0)
            })
        })
    })?;
    Ok(FinishedRows { table, stats, variant: "tarjan-vishkin" })
}

fn articulation_points(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let (members, stats) = with_forest(request, graph, resources, |mut forest, _| {
        let members = forest.articulation();
        Ok(forest.numbers.iter().map(|number| members[*number as usize]).collect::<Vec<u8>>())
    })?;
    let members = ScratchArray::of(members.into(), 1 << graph.description().interval_bits);
    let values = Values::integers(members, |member: u8| Some(member.into()), |_| Some(0));
    Finished::new(graph, "member", values.without_nulls(), stats, "tarjan-vishkin")
}
