//! The places of vertices: the offsets of their external ids, by which results name vertices.

use std::ops::Range;

use brimful_graph::Graph;
use brimful_store::Job;

use crate::Result;
use crate::out_weights::AT_ONCE;

/// Bytes of the offsets of `vertices` vertices.
pub(crate) fn place_bytes(vertices: u64) -> u64 {
    vertices * size_of::<u64>() as u64
}

/// Calls `each` with every vertex of a range of internal ids and its place.
pub(crate) fn for_each_place(
    graph: &Graph,
    vertices: Range<u64>,
    job: &Job,
    mut each: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let (offsets, mut places) = (graph.id_offsets()?, Vec::new());
    for start in vertices.clone().step_by(AT_ONCE) {
        job.check()?;
        places.resize((vertices.end - start).min(AT_ONCE as u64) as usize, 0);
        graph.external_offsets(offsets, start, &mut places)?;
        (start..).zip(&places).try_for_each(|(vertex, place)| each(vertex, *place))?;
    }
    Ok(())
}

/// The place of each vertex with edges, by internal id.
pub(crate) fn places(graph: &Graph, job: &Job) -> Result<Vec<u64>> {
    let offsets = graph.id_offsets()?;
    let mut places = vec![0_u64; graph.connected() as usize];
    for (at, part) in places.chunks_mut(AT_ONCE).enumerate() {
        job.check()?;
        graph.external_offsets(offsets, (at * AT_ONCE) as u64, part)?;
    }
    Ok(places)
}
