//! Components by union-find, in one pass over the edges.
//!
//! A forest in one array of atomics: each vertex has a parent with a smaller internal id, and roots
//! are their own parents. An edge joins two trees by hanging the root with the larger id below the
//! other (compare and swap, repeated if another thread was first); paths are halved on the way
//! (Jayanti and Tarjan 2016). With ids in degree order, the root of the largest component is soon a
//! hub, and most edges find both ends directly below it. The result does not depend on the order of
//! edges. Directed graphs, too, need only the forward index.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::traverse::scan::{Scan, ScannedEdges};
use brimful_engine::{Error, Result, Stats};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::huge::advise_spare;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use super::labels::{WINDOW, labels, least_of_sets};
use super::propagation::Label;
use crate::one_pass::OnePass;
use crate::planning::Planner;

/// Bytes of the arrays for `nodes`: parents, the least offset in the tree of each root, and labels.
fn array_bytes<L>(nodes: u64) -> u64 {
    nodes * (4 + 2 * size_of::<L>() as u64)
}

/// The smallest budget of a run with `each` nodes for each vertex; `None` if the nodes do not fit
/// 32 bits.
pub(crate) fn min_bytes<L>(extent: &Extent, workers: usize, each: u64) -> Option<u64> {
    let windows = workers * WINDOW * size_of::<u64>();
    let nodes = each * extent.vertices;
    let bytes = array_bytes::<L>(nodes) + Scan::minimum_bytes(extent, workers) + windows as u64;
    (nodes < u64::from(u32::MAX)).then_some(bytes)
}

/// The error if `min_bytes` returns `None`.
fn too_large(each: u64) -> Error {
    Error::Usage(format!(
        "the method union_find supports fewer than 2^{} vertices; use the method propagation",
        32 - each.ilog2()
    ))
}

/// Bytes of parents during the scan, of all arrays after it, and of the labels, which stay.
fn likely_bytes<L>(extent: &Extent, each: u64) -> (u64, u64, u64) {
    let nodes = each * extent.vertices;
    (nodes * 4, array_bytes::<L>(nodes), nodes * size_of::<L>() as u64)
}

/// The forecast of a run with `each` nodes for each vertex.
///
/// # Errors
/// [`Error::Usage`] if the nodes do not fit 32 bits.
pub(crate) fn forecast<L>(planner: &Planner<'_>, each: u64) -> Result<Forecast> {
    let least = planner.of_scan(|setting| min_bytes::<L>(setting.extent, setting.workers, each));
    let minimum_bytes = least.ok_or_else(|| too_large(each))?;
    Ok(Forecast {
        minimum_bytes,
        in_memory_bytes: minimum_bytes,
        ..planner.scans(1, |setting| likely_bytes::<L>(setting.extent, each))
    })
}

/// The label of every vertex with edges: the least offset of its component.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; corruption and I/O errors when they occur.
pub(super) fn components<L: Label>(
    graph: &Graph,
    resources: &Resources,
) -> Result<(ScratchArray<L>, Stats)> {
    let label = |forest: &Forest| labels(graph, &|vertex| forest.root(vertex), resources);
    joined::<L, _>(graph, (1, Forest::join), label, resources)
}

/// For every vertex with edges the least offsets at even and at odd distances; they are equal in a
/// component with an odd cycle. Nodes 2v and 2v + 1 are vertex v at an even and at an odd distance.
///
/// # Errors
/// As for components.
pub(crate) fn parities<L: Label>(
    graph: &Graph,
    resources: &Resources,
) -> Result<(ScratchArray<[L; 2]>, Stats)>
where
    [L; 2]: Pod,
{
    let label = |forest: &Forest| {
        let sets = 2 * graph.connected() as usize;
        let both = |vertex, least: &dyn Fn(u32) -> L| {
            [2 * vertex, 2 * vertex + 1].map(|node| least(forest.root(node)))
        };
        least_of_sets(graph, sets, &|vertex| forest.root(2 * vertex), both, resources)
    };
    joined::<L, _>(graph, (2, Forest::join_parities), label, resources)
}

/// Joins the nodes of all edges in one scan, and then makes an array of labels. There are `each`
/// nodes for each vertex.
fn joined<L: Label, S>(
    graph: &Graph,
    (each, join): (u64, impl Fn(&Forest, ScannedEdges<'_>) -> bool + Sync),
    label: impl FnOnce(&Forest) -> Result<ScratchArray<S>>,
    resources: &Resources,
) -> Result<(ScratchArray<S>, Stats)> {
    const PURPOSE: &str = "to find components by union-find";
    let (workers, shards) = (resources.workers(), graph.forward());
    let extent = Extent::of(graph, &[Index::In], false);
    let needed = min_bytes::<L>(&extent, workers, each).ok_or_else(|| too_large(each))?;
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let arrays = array_bytes::<L>(each * extent.vertices);
    let scan = Scan::new(Arc::clone(shards), &extent, memory.bytes() - arrays, workers)?;
    let forest = Forest::new((each * graph.connected()) as usize);
    scan.for_each(resources, |edges| join(&forest, edges))?;
    drop(scan);
    pass.end("join");
    let labels = label(&forest)?;
    Ok((labels, pass.finish("label", Traversal::Scan, shards.edges())))
}

struct Forest(Vec<AtomicU32>);

impl Forest {
    fn new(vertices: usize) -> Self {
        let mut parents = Vec::with_capacity(vertices);
        advise_spare(&mut parents);
        parents.extend((0..vertices as u32).map(AtomicU32::new));
        Self(parents)
    }

    fn parent(&self, vertex: u32) -> u32 {
        self.0[vertex as usize].load(Ordering::Relaxed)
    }

    fn root(&self, mut vertex: u32) -> u32 {
        loop {
            let parent = self.parent(vertex);
            let above = self.parent(parent);
            if parent == above {
                return parent;
            }
            // Other threads may store to the same entry, but they too store only ancestors.
            self.0[vertex as usize].store(above, Ordering::Relaxed);
            vertex = above;
        }
    }

    /// Joins the ends of all edges; false if an end is not a vertex of the graph.
    fn join(&self, edges: ScannedEdges<'_>) -> bool {
        let mut source = u64::MAX;
        let mut root = 0;
        for (from, to) in edges.iter() {
            if from != source {
                if from >= self.0.len() as u64 {
                    return false;
                }
                source = from;
                root = self.root(from as u32);
            }
            let Some(parent) = self.0.get(to as usize) else { return false };
            if parent.load(Ordering::Relaxed) != root {
                root = self.unite(root, to as u32);
            }
        }
        true
    }

    /// Joins each end of all edges at an even distance to the other end at an odd one; false if an
    /// end is not a vertex of the graph.
    fn join_parities(&self, edges: ScannedEdges<'_>) -> bool {
        let vertices = self.0.len() as u64 / 2;
        let mut source = u64::MAX;
        let mut roots = [0; 2];
        for (from, to) in edges.iter() {
            if from >= vertices || to >= vertices {
                return false;
            }
            if from != source {
                source = from;
                roots = [0, 1].map(|odd| self.root(2 * from as u32 + odd));
            }
            let others = [2 * to as u32 + 1, 2 * to as u32];
            for (root, other) in roots.iter_mut().zip(others) {
                if self.parent(other) != *root {
                    *root = self.unite(*root, other);
                }
            }
        }
        true
    }

    /// Joins two trees; returns the root of both.
    #[cold]
    fn unite(&self, one: u32, other: u32) -> u32 {
        let (mut one, mut other) = (self.root(one), self.root(other));
        while one != other {
            let (low, high) = (one.min(other), one.max(other));
            let hung = self.0[high as usize].compare_exchange(
                high,
                low,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if hung.is_ok() {
                return low;
            }
            (one, other) = (self.root(one), self.root(other));
        }
        one
    }
}
