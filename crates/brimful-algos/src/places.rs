//! The offsets of external ids from the smallest one, which results hold for vertices.

use brimful_graph::Graph;
use brimful_store::Job;

use crate::Result;
use crate::out_weights::AT_ONCE;

/// Bytes of the offsets of so many vertices.
pub(crate) fn place_bytes(vertices: u64) -> u64 {
    vertices * size_of::<u64>() as u64
}

/// The offset of the external id of each vertex with edges, by internal id.
pub(crate) fn places(graph: &Graph, job: &Job) -> Result<Vec<u64>> {
    let smallest = graph.key_bounds()?.map_or(0, |(smallest, _)| smallest);
    let mut places = vec![0_u64; graph.connected() as usize];
    for (at, part) in places.chunks_mut(AT_ONCE).enumerate() {
        job.check()?;
        graph.external_ids((at * AT_ONCE) as u64, part)?;
        part.iter_mut().for_each(|id| *id = graph.id_type().order_key(*id).wrapping_sub(smallest));
    }
    Ok(places)
}
