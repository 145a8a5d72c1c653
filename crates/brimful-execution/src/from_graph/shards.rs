//! Vertices with all their edges, from the shards of a graph.
//!
//! Shards hold edges by target. Here they are sorted by source, within a budget, and returned as
//! whole vertices in ascending order. Invariant: every vertex that is asked for is returned once,
//! including those without edges.

use std::ops::Range;

use brimful_graph::build::records::{EdgeRecord, KeyLayout, Pair, WeightedPair};
use brimful_graph::input_position::UNKNOWN;
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_store::sorter::Sorter;
use brimful_store::{Folder, Resources};
use brimful_vertices::Edges;

use crate::error::{Error, Result};
use crate::from_graph::edges::AGAINST;
use crate::from_graph::{ALONG, EdgeData, GraphPart, LoadingShares, direction};
use crate::hubs::Hubs;

/// Edges for which memory is kept from vertex to vertex.
const MAX_KEPT: usize = 1 << 16;

/// Receives a vertex with its edges.
pub(super) type Taker<'f, E> = dyn FnMut(u64, Edges<u64, E>) -> Result<()> + Send + 'f;

/// Passes on those vertices of `part` that are in `own`, with their edges; data that exceeds memory
/// is in `folder` meanwhile.
pub(super) fn vertices<E: EdgeData>(
    (part, own): (GraphPart<'_>, Range<u64>),
    within: (&dyn Folder, &Resources),
    hubs: &mut Hubs,
    take: &mut Taker<'_, E>,
) -> Result<()> {
    match part.is_weighted {
        true => sorted::<WeightedPair, E>((part, own), within, hubs, take),
        false => sorted::<Pair, E>((part, own), within, hubs, take),
    }
}

/// Bytes of an edge while it is sorted.
pub(crate) fn edge_bytes(is_weighted: bool) -> usize {
    if is_weighted { size_of::<WeightedPair>() } else { size_of::<Pair>() }
}

fn sorted<R: EdgeRecord, E: EdgeData>(
    (part, own): (GraphPart<'_>, Range<u64>),
    (folder, resources): (&dyn Folder, &Resources),
    hubs: &mut Hubs,
    take: &mut Taker<'_, E>,
) -> Result<()> {
    let GraphPart { graph, indexes, .. } = part;
    let job = &resources.job;
    // Sorted by vertex, then by neighbor and direction: the target of the layout is the vertex.
    let layout =
        KeyLayout { interval_bits: 0, ..KeyLayout::new(graph.vertices().saturating_mul(2), 1) };
    let bytes =
        LoadingShares::new(resources.budget.free(), resources.workers(), size_of::<R>()).sorting;
    let memory = resources.budget.reserve(bytes, "to load this graph")?;
    let sorter = Sorter::<R>::new(folder, bytes, resources.workers(), job)?;
    let mut writer = sorter.writer();
    for index in indexes {
        let Some(shards) = graph.shards(*index) else {
            return Err(Error::Internal(format!("the {} index is not built", index.name())));
        };
        let direction = direction(*index);
        for_each_edge(shards, part.is_weighted, ("sort", job), |source, target, weight| {
            if !own.contains(&source) {
                return Ok(());
            }
            // The reverse shards hold the same edges with their ends exchanged. In both, signals go
            // from the source of the shard.
            let neighbor = target * 2 + u64::from(direction >> 1);
            writer.push(R::pack(layout, neighbor, source, weight, UNKNOWN))
        })?;
    }
    writer.finish()?;

    // A copy has exactly the memory of its edges. The memory of a hub is not kept for later
    // vertices.
    let mut hand_over = |vertex: u64, edges: &mut Edges<u64, E>, hubs: &mut Hubs| {
        hubs.record(edges.len() as u64)?;
        if edges.len() > MAX_KEPT {
            return take(vertex, std::mem::take(edges).shrunk());
        }
        let taken = take(vertex, edges.clone());
        edges.clear();
        taken
    };
    job.begin("load", own.end - own.start);
    let (mut next, mut edges) = (own.start, Edges::default());
    sorter.merge(&resources.pool, |batch| {
        for record in batch {
            let (neighbor, vertex, weight) = record.unpack(layout);
            while next < vertex {
                hand_over(next, &mut edges, hubs)?;
                next += 1;
            }
            hubs.reserve_for(edges.len() as u64)?;
            let direction =
                if graph.description().directed { 1 << (neighbor % 2) } else { ALONG | AGAINST };
            edges.push(neighbor / 2, E::new(weight.unwrap_or(1.0), direction));
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    while next < own.end {
        hand_over(next, &mut edges, hubs)?;
        next += 1;
    }
    drop(memory);
    Ok(())
}
