//! Truss numbers of edges.
//!
//! Returns a row for each pair of neighbors (`source`, `target`, the smaller id first, and `truss`,
//! int64), ascending: the greatest k such that the edge is part of a subgraph whose edges are each
//! in at least k - 2 triangles of it (Cohen 2008); k is at least 2. The edges with a truss number
//! of at least k are NetworkX's `k_truss`. Direction, parallel edges and self-loops are ignored.
//! Exact.
//!
//! Method (Wang and Cheng 2012): all threads count the triangles of every edge by intersecting
//! sorted lists. Then one thread removes the edges, those with the fewest triangles first, in an
//! order that buckets maintain. The removal of an edge lowers the triangle count of the two other
//! edges of each of its triangles. Time: O(|E|^1.5). Memory: 16 bytes a vertex and 18 for each
//! entry of the symmetric lists. The budget must hold it, because the order of removal is random
//! access to the graph. Rows are sorted in any budget.

use std::sync::Arc;

use brimful_engine::RowColumn;
use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::traverse::scan::Scan;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::edge_rows::{self, edge_rows};
use crate::id_offsets::{id_offset_bytes, id_offsets};
use crate::info::{Info, Run, Takes};
use crate::neighbor_lists::{Listed, NeighborLists, common};
use crate::one_pass::OnePass;
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

/// Bytes for each entry of the lists: the entry 4, the number of its edge 4, and half of the bytes
/// of an edge: its ends 8, its triangles 4, the order of edges 4, and its place in this order 4.
const ENTRY_BYTES: u64 = 18;
/// Vertices whose edges a thread takes at a time, and edges removed between two checks for a
/// cancellation.
const CLAIM: usize = 1 << 8;

const COLUMNS: &[RowColumn] =
    &[("source", Kind::Vertex), ("target", Kind::Vertex), ("truss", Kind::Integer)];

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "ktruss",
    computes: "truss numbers of edges: the greatest k of a subgraph with k - 2 triangles around \
               each edge",
    column: "truss",
    takes: Takes::NOTHING,
    parameters: &[],
    run: Run::Rows(COLUMNS, run),
    plan,
};

fn array_bytes(vertices: u64, entries: u64, workers: usize) -> u64 {
    NeighborLists::array_bytes(vertices, workers)
        + id_offset_bytes(vertices)
        + entries * ENTRY_BYTES
        + edge_rows::min_bytes(workers)
}

/// The time is unknown, because it depends on the number of triangles.
fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let entries = Listed::Symmetric.max_entries(planner.arcs(), planner.is_directed());
    let forecast = planner.scans(1, |setting| {
        let bytes = array_bytes(setting.extent.vertices, entries, setting.workers);
        (bytes, bytes, entries / 2 * 24)
    });
    Ok(Forecast { moves: false, timed: false, ..forecast })
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    const PURPOSE: &str = "to keep edges and their triangles in memory";
    request.refuse_max_supersteps()?;
    let workers = resources.workers();
    let (arcs, directed) = (graph.description().arcs, graph.description().directed);
    let entries = Listed::Symmetric.max_entries(arcs, directed);
    if entries / 2 >= u64::from(u32::MAX) {
        return Err(Error::Usage("ktruss supports fewer than 2^32 edges".into()));
    }
    let extent = Extent::of(graph, &[Index::In], false);
    let reading = Scan::minimum_bytes(&extent, workers);
    let needed = reading + array_bytes(extent.vertices, entries, workers);
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let left = memory.bytes() - NeighborLists::min_bytes(&extent, workers);
    let lists = NeighborLists::of(graph, Listed::Symmetric, left, resources)?;
    pass.end("list");
    let (ends, truss) = Peeling::new(lists, resources)?.peel(resources)?;
    pass.end("peel");
    let id_offsets = id_offsets(graph, &resources.job)?;
    let peeled_bytes = id_offset_bytes(extent.vertices) + 12 * ends.len() as u64;
    let table = edge_rows(graph, COLUMNS, memory.bytes() - peeled_bytes, resources, |push| {
        ends.iter().zip(&truss).try_for_each(|(ends, truss)| {
            let [one, other] = ends.map(|end| id_offsets[end as usize]);
            push([one.min(other), one.max(other)], u64::from(*truss))
        })
    })?;
    let stats = pass.finish("sort", Traversal::Scan, arcs);
    Ok(FinishedRows { table, stats, variant: "peeling" })
}

/// Edges with the numbers of their remaining triangles.
struct Peeling {
    lists: NeighborLists,
    /// The edge of each entry of the lists.
    edges: Vec<u32>,
    /// The ends of each edge, the smaller one first.
    ends: Vec<[u32; 2]>,
    triangles: Vec<u32>,
}

/// The ends of edges, and their truss numbers.
type Numbered = (Vec<[u32; 2]>, Vec<u32>);

impl Peeling {
    fn new(lists: NeighborLists, resources: &Resources) -> Result<Self> {
        let mut edges = vec![u32::MAX; lists.entries() as usize];
        // An edge has two entries; growth would take up to twice the bytes.
        let mut ends = Vec::with_capacity(edges.len() / 2);
        // For each vertex, the next entry without an edge; smaller neighbors come first.
        let mut next: Vec<u64> = (0..lists.len() as u32).map(|at| lists.start(at) as u64).collect();
        let mut buffer = Vec::new();
        for vertex in 0..lists.len() as u32 {
            let start = lists.start(vertex);
            for (at, &other) in (start..).zip(lists.of_vertex(vertex, &mut buffer)?) {
                if other > vertex {
                    edges[at] = ends.len() as u32;
                    let place = &mut next[other as usize];
                    edges[*place as usize] = ends.len() as u32;
                    *place += 1;
                    ends.push([vertex, other]);
                }
            }
        }
        drop(next);
        let claims = lists.len().div_ceil(CLAIM);
        resources.job.begin("count triangles", claims as u64);
        // The edges of a vertex to greater vertices have consecutive numbers.
        let counted = resources.parallel_map(
            claims,
            |claim, buffers: &mut [Vec<u32>; 2]| -> Result<Vec<u32>> {
                let (mut counts, [own, others]) = (Vec::new(), buffers);
                for vertex in claim * CLAIM..lists.len().min((claim + 1) * CLAIM) {
                    let vertex = vertex as u32;
                    let own = lists.of_vertex(vertex, own)?;
                    for &other in own.iter().filter(|other| **other > vertex) {
                        let (mut count, others) = (0, lists.of_vertex(other, others)?);
                        common(own, others, |at, _| {
                            count += u32::from(own[at] != vertex && own[at] != other);
                        });
                        counts.push(count);
                    }
                }
                resources.job.advance(1);
                Ok(counts)
            },
        )?;
        let mut triangles = Vec::with_capacity(ends.len());
        counted.into_iter().for_each(|counts| triangles.extend(counts));
        Ok(Self { lists, edges, ends, triangles })
    }

    /// The ends of all edges, and their truss numbers.
    fn peel(self, resources: &Resources) -> Result<Numbered> {
        let Self { lists, edges, ends, mut triangles } = self;
        let mut order = Order::new(&triangles);
        let (mut level, mut buffers) = (0, [Vec::new(), Vec::new()]);
        resources.job.begin("peel", ends.len() as u64);
        for turn in 0..ends.len() {
            if turn % CLAIM == 0 {
                resources.job.check()?;
                resources.job.advance(CLAIM.min(ends.len() - turn) as u64);
            }
            let edge = order.edges[turn];
            level = level.max(triangles[edge as usize]);
            triangles[edge as usize] = level + 2;
            if level == 0 {
                continue;
            }
            let (one, other) = (ends[edge as usize][0], ends[edge as usize][1]);
            let [first, second] = &mut buffers;
            let (own, others) = (lists.of_vertex(one, first)?, lists.of_vertex(other, second)?);
            let starts = [lists.start(one), lists.start(other)];
            common(own, others, |at, at_other| {
                if own[at] == one || own[at] == other {
                    return;
                }
                let sides = [edges[starts[0] + at], edges[starts[1] + at_other]];
                if sides.iter().all(|side| order.places[*side as usize] as usize > turn) {
                    for side in sides {
                        if triangles[side as usize] > level {
                            order.lower(side, &mut triangles);
                        }
                    }
                }
            });
        }
        Ok((ends, triangles))
    }
}

/// Edges in the order of their numbers of triangles, in buckets.
struct Order {
    edges: Vec<u32>,
    /// The place of each edge in that order.
    places: Vec<u32>,
    /// By number of triangles, the place of the first edge with this number.
    starts: Vec<u32>,
}

impl Order {
    fn new(triangles: &[u32]) -> Self {
        let most = triangles.iter().copied().max().unwrap_or(0) as usize;
        let mut starts = vec![0_u32; most + 2];
        triangles.iter().for_each(|count| starts[*count as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut edges, mut places) = (vec![0; triangles.len()], vec![0; triangles.len()]);
        let mut next = starts.clone();
        for (edge, count) in triangles.iter().enumerate() {
            let place = &mut next[*count as usize];
            edges[*place as usize] = edge as u32;
            places[edge] = *place;
            *place += 1;
        }
        Self { edges, places, starts }
    }

    /// Takes a triangle from an edge, which becomes the last of the bucket below.
    fn lower(&mut self, edge: u32, triangles: &mut [u32]) {
        let count = &mut triangles[edge as usize];
        let first = &mut self.starts[*count as usize];
        let (place, other) = (self.places[edge as usize], self.edges[*first as usize]);
        self.edges.swap(place as usize, *first as usize);
        (self.places[edge as usize], self.places[other as usize]) = (*first, place);
        *first += 1;
        *count -= 1;
    }
}
