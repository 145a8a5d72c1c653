//! Strongly connected components by one depth-first search, if the unpacked edges fit in memory.
//!
//! Tarjan's algorithm (1972) in the form of Pearce, *A Space-Efficient Algorithm for Finding
//! Strongly Connected Components* (2016). Each vertex has one number: first its position in the
//! search, or the least position on the search path to which it leads back; then the number of its
//! component. Component numbers count down from the number of vertices, so that they are never
//! below a position. O(|V| + |E|), on one thread.

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::result::stats::Traversal;
use brimful_engine::traverse::adjacency::Adjacency;
use brimful_engine::traverse::by_source::EdgesBySource;
use brimful_engine::{Result, Stats};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::Error;
use crate::connected_components::labels::{WINDOW, labels};
use crate::connected_components::propagation::Label;
use crate::one_pass::OnePass;

/// Start vertices between two checks for a cancellation.
const TURNS: usize = 1 << 14;

/// A vertex on the path of the search: its next edge, and whether no edge has led back yet.
struct PathEntry {
    vertex: u32,
    next: u32,
    is_root: bool,
}

/// Bytes of memory while edges are unpacked and searched, and of the labels, which stay; `None` if
/// there are too many vertices or edges.
pub(super) fn bytes<L>(extent: &Extent, workers: usize) -> Option<(u64, u64)> {
    let adjacency = Adjacency::memory_bytes(extent)?;
    let of_search = (size_of::<PathEntry>() + 2 * size_of::<u32>()) as u64;
    let search = adjacency + extent.vertices * of_search.max(4 + 2 * size_of::<L>() as u64);
    let windows = (workers * WINDOW * size_of::<u64>()) as u64;
    let labels = extent.vertices * size_of::<L>() as u64;
    Some((search + windows + EdgesBySource::reading_bytes(extent), labels))
}

/// The error if `bytes` returns `None`.
pub(super) fn too_large() -> Error {
    let problem =
        "the method search supports fewer than 2^32 vertices and edges; use the method coloring";
    Error::Usage(problem.into())
}

/// The label of every vertex with edges: the least offset of its component.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; corruption and I/O errors when they occur.
pub(super) fn components<L: Label>(
    graph: &Graph,
    needed: u64,
    resources: &Resources,
) -> Result<(ScratchArray<L>, Stats)> {
    let _memory = resources.budget.reserve(needed, "to search for strong components in memory")?;
    let mut pass = OnePass::begin(graph, resources);
    let indexes = vec![Arc::clone(graph.forward())];
    resources.job.begin("unpack", graph.description().arcs);
    let adjacency = Adjacency::of(graph, indexes, (false, false), resources)?;
    pass.end("unpack");
    let components = search(&adjacency, graph.connected() as usize, resources)?;
    drop(adjacency);
    pass.end("search");
    let labels = labels(graph, &|vertex| components[vertex as usize], resources)?;
    Ok((labels, pass.finish("label", Traversal::Search, graph.description().arcs)))
}

/// A number for each vertex, less than the number of vertices, shared by the vertices of a
/// component.
fn search(edges: &Adjacency, vertices: usize, resources: &Resources) -> Result<Vec<u32>> {
    // 0: not reached yet.
    let mut numbers = vec![0_u32; vertices];
    let (mut next, mut component) = (1_u32, vertices as u32);
    // The path of the search, and the visited vertices outside it whose component is not complete.
    let (mut path, mut behind): (Vec<PathEntry>, Vec<u32>) = (Vec::new(), Vec::new());
    resources.job.begin("search", vertices as u64);
    for start in 0..vertices {
        if start % TURNS == 0 {
            resources.job.check()?;
            resources.job.advance(TURNS.min(vertices - start) as u64);
        }
        if numbers[start] != 0 {
            continue;
        }
        numbers[start] = next;
        next += 1;
        path.push(PathEntry { vertex: start as u32, next: 0, is_root: true });
        while let Some(place) = path.last_mut() {
            let own = place.vertex as usize;
            if let Some(&target) = edges.targets(own).get(place.next as usize) {
                let number = numbers[target as usize];
                if number == 0 {
                    // The edge is visited again when the search returns to this vertex.
                    numbers[target as usize] = next;
                    next += 1;
                    path.push(PathEntry { vertex: target, next: 0, is_root: true });
                    continue;
                }
                place.next += 1;
                if number < numbers[own] {
                    numbers[own] = number;
                    place.is_root = false;
                }
                continue;
            }
            let is_root = place.is_root;
            path.pop();
            if !is_root {
                behind.push(own as u32);
                continue;
            }
            next -= 1;
            while let Some(&last) =
                behind.last().filter(|last| numbers[**last as usize] >= numbers[own])
            {
                behind.pop();
                numbers[last as usize] = component;
                next -= 1;
            }
            numbers[own] = component;
            component -= 1;
        }
    }
    // Numbers started at 1, so that 0 could mark unreached vertices.
    numbers.iter_mut().for_each(|number| *number -= 1);
    Ok(numbers)
}
