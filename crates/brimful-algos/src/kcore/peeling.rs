//! Core numbers by peeling one vertex after another, if the unpacked edges fit in memory.
//!
//! Batagelj and Zaversnik 2003, "An O(m) algorithm for cores decomposition of networks", with a
//! stack instead of buckets: for each k that occurs, in ascending order, vertices with k remaining
//! neighbors are removed, and with them the neighbors that fall to k. O(|E| + the sum of core
//! numbers), on one thread.

use std::sync::Arc;
use std::time::Instant;

use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::result::stats::Traversal;
use brimful_engine::supersteps::{build_missing, moved};
use brimful_engine::traverse::adjacency::Adjacency;
use brimful_engine::{Result, Stats};
use brimful_graph::Graph;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Job, Resources};

use super::NEIGHBORS;
use crate::Error;
use crate::connected_components::labels::WINDOW;

const PURPOSE: &str = "to peel vertices in memory";
/// Vertices removed between two checks for a cancellation.
const VERTICES_PER_CHECK: usize = 1 << 14;

/// The forecast of a run; `None` if there are too many vertices or edges.
pub(super) fn forecast(setting: &Setting<'_>) -> Option<Forecast> {
    let extent = setting.extent;
    let cores = extent.vertices * size_of::<u32>() as u64;
    // Core numbers, the remaining vertices, and the stack.
    let needed = Adjacency::memory_bytes(extent)? + 3 * cores + Adjacency::reading_bytes(extent);
    // Building a missing index may take more.
    let least = setting.of_others([needed, needed, cores, 0], Steps::exactly(1));
    Some(Forecast {
        minimum_bytes: least.minimum_bytes,
        memory_bytes: least.memory_bytes,
        ..setting.of_scans((needed, cores), cores, 2)
    })
}

/// The error if `forecast` returns `None`.
pub(super) fn too_large() -> Error {
    let what =
        "the method peeling supports fewer than 2^32 vertices and edges; use the method rounds";
    Error::Usage(what.into())
}

/// The core number of every vertex with edges.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; corruption and I/O errors when they occur.
pub(super) fn cores(
    graph: &Graph,
    needed: u64,
    resources: &Resources,
) -> Result<(ScratchArray<u32>, Stats)> {
    resources.budget.require(needed, PURPOSE)?;
    let index_seconds = build_missing(graph, NEIGHBORS, resources)?;
    let begin = Instant::now();
    let _memory = resources.budget.reserve(needed, PURPOSE)?;
    let moved_before = moved(graph, resources);
    let mut indexes: Vec<_> =
        NEIGHBORS.iter().filter_map(|index| graph.shards(*index).map(Arc::clone)).collect();
    // All neighbors of an undirected graph are in one index.
    indexes.dedup_by(|one, other| Arc::ptr_eq(one, other));
    let edges = indexes.iter().map(|shards| shards.edges()).sum();
    resources.job.begin("unpack", edges);
    let neighbors = Adjacency::of(graph, indexes, (false, false), resources)?;
    let unpacked = begin.elapsed().as_secs_f64();
    let mut cores = ScratchArray::resident(graph.connected() as usize, WINDOW);
    let Some(numbers) = cores.in_memory_mut() else {
        unreachable!("a resident array is in memory")
    };
    peel(&neighbors, numbers, &resources.job)?;
    let phases = vec![("unpack", unpacked), ("peel", begin.elapsed().as_secs_f64() - unpacked)];
    let moved = moved(graph, resources) - moved_before;
    let stats = Stats::one_pass(Traversal::Search, phases, edges, moved, resources.workers());
    Ok((cores, Stats { index_seconds, ..stats }))
}

/// Fills `left`, one entry for each vertex: at first the number of its remaining neighbors, at the
/// end its core number.
fn peel(neighbors: &Adjacency, left: &mut [u32], job: &Job) -> Result<()> {
    for (vertex, left) in left.iter_mut().enumerate() {
        *left = neighbors.targets(vertex).len() as u32;
    }
    let mut rest: Vec<u32> = (0..left.len() as u32).collect();
    let mut removed = Vec::with_capacity(rest.len());
    let mut turns = 0;
    job.begin("peel", rest.len() as u64);
    while let Some(core) = rest.iter().map(|vertex| left[*vertex as usize]).min() {
        removed.extend(rest.iter().filter(|vertex| left[**vertex as usize] == core));
        while let Some(vertex) = removed.pop() {
            turns += 1;
            if turns % VERTICES_PER_CHECK == 0 {
                job.check()?;
                job.advance(VERTICES_PER_CHECK as u64);
            }
            for &other in neighbors.targets(vertex as usize) {
                let left = &mut left[other as usize];
                if *left > core {
                    *left -= 1;
                    if *left == core {
                        removed.push(other);
                    }
                }
            }
        }
        rest.retain(|vertex| left[*vertex as usize] > core);
    }
    Ok(())
}
