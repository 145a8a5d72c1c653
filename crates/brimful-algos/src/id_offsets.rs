//! The offsets of the external ids of vertices, by which results name vertices.

use std::ops::Range;

use brimful_graph::Graph;
use brimful_store::Job;

use crate::Result;
use crate::out_weights::AT_ONCE;

/// Bytes of the offsets of `vertices` vertices.
pub(crate) fn id_offset_bytes(vertices: u64) -> u64 {
    vertices * size_of::<u64>() as u64
}

/// Calls `each` with every vertex of a range of internal ids and the offset of its
/// external id.
pub(crate) fn for_each_id_offset(
    graph: &Graph,
    vertices: Range<u64>,
    job: &Job,
    mut each: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let (offsets, mut id_offsets) = (graph.id_offsets()?, Vec::new());
    for start in vertices.clone().step_by(AT_ONCE) {
        job.check()?;
        id_offsets.resize((vertices.end - start).min(AT_ONCE as u64) as usize, 0);
        graph.external_offsets(offsets, start, &mut id_offsets)?;
        (start..).zip(&id_offsets).try_for_each(|(vertex, id_offset)| each(vertex, *id_offset))?;
    }
    Ok(())
}

/// The offset of the external id of each vertex with edges, by internal id.
pub(crate) fn id_offsets(graph: &Graph, job: &Job) -> Result<Vec<u64>> {
    let offsets = graph.id_offsets()?;
    let mut id_offsets = vec![0_u64; graph.connected() as usize];
    for (at, part) in id_offsets.chunks_mut(AT_ONCE).enumerate() {
        job.check()?;
        graph.external_offsets(offsets, (at * AT_ONCE) as u64, part)?;
    }
    Ok(id_offsets)
}
