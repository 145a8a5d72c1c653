//! Vertices preassembled with their edges, from a graph whose edges lie in shards.
//!
//! Shards hold edges by target; here they are sorted by source, in a budget, and come out whole
//! vertices in ascending order. Invariant: every vertex comes once, those without edges too.

use brimful_graph::input_position::UNKNOWN;
use brimful_graph::records::{EdgeRecord, KeyLayout, Pair, WeightedPair};
use brimful_graph::segment_reader::SegmentReader;
use brimful_store::sorter::Sorter;
use brimful_store::{Folder, Resources};

use crate::error::{Error, Result};
use crate::from_graph::edges::AGAINST;
use crate::from_graph::hubs::Hubs;
use crate::from_graph::{ALONG, EdgeData, LoadingShares, Part, way};
use crate::vertex::Edges;

/// Edges for which room is kept from vertex to vertex.
const MOST_KEPT: usize = 1 << 16;

/// Takes a vertex with its edges.
pub(super) type Taker<'f, E> = dyn FnMut(u64, Edges<u64, E>) -> Result<()> + Send + 'f;

/// Hands out the vertices of `part` with their edges; what exceeds memory is in `folder` meanwhile.
pub(super) fn vertices<E: EdgeData>(
    part: Part<'_>,
    within: (&dyn Folder, &Resources),
    hubs: &mut Hubs,
    take: &mut Taker<'_, E>,
) -> Result<()> {
    match part.is_weighted {
        true => sorted::<WeightedPair, E>(part, within, hubs, take),
        false => sorted::<Pair, E>(part, within, hubs, take),
    }
}

/// Bytes of an edge while it is sorted.
pub(crate) fn edge_bytes(is_weighted: bool) -> usize {
    if is_weighted { size_of::<WeightedPair>() } else { size_of::<Pair>() }
}

fn sorted<R: EdgeRecord, E: EdgeData>(
    part: Part<'_>,
    (folder, resources): (&dyn Folder, &Resources),
    hubs: &mut Hubs,
    take: &mut Taker<'_, E>,
) -> Result<()> {
    let Part { graph, indexes, vertices: count, .. } = part;
    let job = &resources.job;
    // Sorted by vertex, then by neighbour and way: what the layout calls target is the vertex.
    let layout =
        KeyLayout { interval_bits: 0, ..KeyLayout::new(graph.vertices().saturating_mul(2), 1) };
    let bytes =
        LoadingShares::new(resources.budget.free(), resources.workers(), size_of::<R>()).sorting;
    let memory = resources.budget.reserve(bytes, "to load this graph")?;
    let sorter = Sorter::<R>::new(folder, bytes, resources.workers(), job)?;
    let mut writer = sorter.writer();
    for index in indexes {
        let Some(shards) = graph.shards(*index) else { continue };
        job.begin("sort", shards.edges());
        let (mut reader, way) =
            (SegmentReader::default().with_weights(part.is_weighted), way(*index));
        let mut edges: Vec<R> = Vec::new();
        for (number, segment) in shards.segments().iter().enumerate() {
            job.check()?;
            reader.for_each_edge(shards, number, |source, target, weight| {
                // The reverse shards say of an edge what the others do, with its ends exchanged:
                // either way the walk is from what they call the source.
                let neighbour = target * 2 + u64::from(way >> 1);
                edges.push(R::pack(layout, neighbour, source, weight, UNKNOWN));
            })?;
            edges.drain(..).try_for_each(|edge| writer.push(edge))?;
            job.advance(u64::from(segment.edges));
        }
    }
    writer.finish()?;

    // Copied, each vertex has just the memory that its edges take. Room for a hub is not kept for
    // those that follow.
    let mut hand_over = |vertex: u64, edges: &mut Edges<u64, E>, hubs: &mut Hubs| {
        hubs.came(edges.len() as u64)?;
        if edges.len() > MOST_KEPT {
            return take(vertex, std::mem::take(edges).shrunk());
        }
        let taken = take(vertex, edges.clone());
        edges.clear();
        taken
    };
    job.begin("load", count);
    let (mut next, mut edges) = (0, Edges::default());
    sorter.merge(&resources.pool, |batch| {
        for record in batch {
            let (neighbour, vertex, weight) = record.unpack(layout);
            while next < vertex {
                hand_over(next, &mut edges, hubs)?;
                next += 1;
            }
            hubs.coming(edges.len() as u64)?;
            let way =
                if graph.description().directed { 1 << (neighbour % 2) } else { ALONG | AGAINST };
            edges.push(neighbour / 2, E::new(weight.unwrap_or(1.0), way));
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    while next < count {
        hand_over(next, &mut edges, hubs)?;
        next += 1;
    }
    drop(memory);
    Ok(())
}
