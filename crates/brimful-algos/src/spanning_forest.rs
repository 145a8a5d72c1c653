//! A minimum spanning forest.
//!
//! Returns for each vertex its parent in the forest (`parent`, of the type of ids); the root of a
//! tree is its own parent. Every other vertex represents the edge to its parent, and these edges
//! span every connected component with the least sum of weights. Without weights each edge has the
//! weight 1. Direction is ignored; weights may be negative. The order of internal ids, which the
//! import fixes, decides ties and roots. Exact.
//!
//! Method: Kruskal 1956. The external sorter orders edges by weight, in any budget; one thread
//! joins trees by union-find with path halving. Then the forest, of fewer edges than vertices, is
//! walked breadth-first from the roots in memory: 28 bytes a vertex with edges, which the budget
//! must hold. One pass over the edges, O(|E| log |E|).

use std::sync::Arc;

use brimful_engine::Values;
use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::traverse::scan::Scan;
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_graph::{Graph, Index};
use brimful_store::scratch::ScratchArray;
use brimful_store::sorter::{self, Record};
use brimful_store::{Error as StoreError, Resources};
use bytemuck::{Pod, Zeroable};

use crate::id_offsets::id_offsets;
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::planning::Planner;
use crate::request::{Finished, Request};
use crate::sorting::sorted;
use crate::{Error, Result};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "spanning_forest",
    computes: "minimum spanning forest: the parent of each vertex, a root its own; direction \
               ignored",
    column: "parent",
    takes: Takes { weights: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Vertices(run),
    plan,
};

/// Bytes for each vertex with edges: edges of the forest 8, their lists 12, parents 4, the queue 4.
/// Union-find before takes less, and so do the offsets of external ids after.
const VERTEX_BYTES: u64 = 28;

/// An edge to be sorted: an order key of its weight, and its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct WeightedEdge {
    weight: u64,
    ends: [u32; 2],
}

impl Record for WeightedEdge {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.weight
    }
}

/// An integer in the same order as the weight; adding 0.0 makes -0.0 and 0.0 equal.
fn order_key(weight: f64) -> u64 {
    let bits = (weight + 0.0).to_bits();
    bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
}

fn array_bytes(vertices: u64, workers: usize) -> u64 {
    vertices * VERTEX_BYTES + sorter::minimum_bytes(workers, size_of::<WeightedEdge>())
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let sorted = planner.arcs() * size_of::<WeightedEdge>() as u64;
    let forecast = planner.scans(1, |setting| {
        let bytes = array_bytes(setting.extent.vertices, setting.workers);
        (bytes, bytes, setting.extent.vertices * 8)
    });
    let left = planner.limit().saturating_sub(forecast.minimum_bytes);
    Ok(Forecast {
        memory_bytes: forecast.minimum_bytes + left.min(sorted),
        scratch_bytes: sorted.saturating_sub(left),
        moves: false,
        timed: false,
        ..forecast
    })
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    const PURPOSE: &str = "to find a spanning forest";
    request.refuse_max_supersteps()?;
    request.options(0).check_weights(graph)?;
    if graph.connected() >= 1 << 31 {
        let problem = "spanning_forest supports fewer than 2^31 vertices with edges";
        return Err(Error::Usage(problem.into()));
    }
    let workers = resources.workers();
    let extent = Extent::of(graph, &[Index::In], request.weighted);
    let needed = Scan::minimum_bytes(&extent, workers) + array_bytes(extent.vertices, workers);
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let least = sorter::minimum_bytes(workers, size_of::<WeightedEdge>());
    let mut pass = OnePass::begin(graph, resources);
    let forest = forest(graph, request.weighted, memory.bytes() - needed + least, resources)?;
    pass.end("join");
    let Rooted { parents, order } = Rooted::new(&forest, graph.connected() as usize);
    drop(order);
    drop(forest);
    let offsets = offsets_of(graph, &parents, resources)?;
    let stats = pass.finish("root", Traversal::Scan, graph.description().arcs);
    let values = Values::vertices(offsets, Some, Some).without_nulls();
    Finished::new(graph, "parent", values, stats, "minimum")
}

/// The edges of the forest, in order of their weights.
fn forest(
    graph: &Graph,
    weighted: bool,
    bytes: u64,
    resources: &Resources,
) -> Result<Vec<[u32; 2]>> {
    let job = &resources.job;
    let sorter = sorted(graph, bytes, resources, |edges| {
        for_each_edge(graph.forward(), weighted, ("sort", job), |source, target, weight| {
            // One arc of an undirected edge is enough.
            let is_second = !graph.description().directed && source > target;
            if source == target || is_second {
                return Ok(());
            }
            let ends = [source.min(target) as u32, source.max(target) as u32];
            Ok(edges.push(WeightedEdge { weight: order_key(weight), ends })?)
        })
    })?;
    let mut trees: Vec<u32> = (0..graph.connected() as u32).collect();
    let mut forest = Vec::with_capacity(trees.len());
    job.begin("join", sorter.len());
    sorter.merge(&resources.pool, |edges| {
        job.check()?;
        for edge in edges {
            let [one, other] = edge.ends.map(|end| root(&mut trees, end));
            if one != other {
                trees[one.max(other) as usize] = one.min(other);
                forest.push(edge.ends);
            }
        }
        job.advance(edges.len() as u64);
        Ok::<(), StoreError>(())
    })?;
    Ok(forest)
}

/// The root of the tree of a vertex; halves the path to it.
pub(crate) fn root(trees: &mut [u32], mut vertex: u32) -> u32 {
    while trees[vertex as usize] != vertex {
        let above = trees[trees[vertex as usize] as usize];
        trees[vertex as usize] = above;
        vertex = above;
    }
    vertex
}

/// A forest with rooted trees; the root is the least vertex of its tree.
pub(crate) struct Rooted {
    /// The parent of each vertex; a root is its own.
    pub(crate) parents: Vec<u32>,
    /// All vertices, each after its parent.
    pub(crate) order: Vec<u32>,
}

impl Rooted {
    /// The forest of these edges.
    pub(crate) fn new(forest: &[[u32; 2]], vertices: usize) -> Self {
        // An entry holds at first the number of edges of a vertex, then the position of its first
        // edge, and after filling the position of the first edge of the next vertex.
        let mut starts = vec![0_u32; vertices + 1];
        forest.iter().flatten().for_each(|end| starts[*end as usize] += 1);
        let mut total = 0;
        for start in &mut starts {
            total += std::mem::replace(start, total);
        }
        let mut neighbors = vec![0_u32; total as usize];
        for &[one, other] in forest {
            for (from, to) in [(one, other), (other, one)] {
                let place = &mut starts[from as usize];
                neighbors[*place as usize] = to;
                *place += 1;
            }
        }
        starts.rotate_right(1);
        starts[0] = 0;
        let (mut parents, mut order) = (vec![u32::MAX; vertices], Vec::with_capacity(vertices));
        let mut next = 0;
        for start in 0..vertices as u32 {
            if parents[start as usize] == u32::MAX {
                parents[start as usize] = start;
                order.push(start);
            }
            while let Some(&vertex) = order.get(next) {
                next += 1;
                let range = starts[vertex as usize] as usize..starts[vertex as usize + 1] as usize;
                for &neighbor in &neighbors[range] {
                    if parents[neighbor as usize] == u32::MAX {
                        parents[neighbor as usize] = vertex;
                        order.push(neighbor);
                    }
                }
            }
        }
        Self { parents, order }
    }
}

/// The offsets of the external ids of these vertices.
fn offsets_of(graph: &Graph, ids: &[u32], resources: &Resources) -> Result<ScratchArray<u64>> {
    let id_offsets = id_offsets(graph, &resources.job)?;
    let offsets: Vec<u64> = ids.iter().map(|id| id_offsets[*id as usize]).collect();
    Ok(ScratchArray::of(offsets.into(), 1 << graph.description().interval_bits))
}
