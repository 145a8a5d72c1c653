//! Connected components: a vertex takes the least label of its neighbors, until no label changes.
//! The first label is the vertex's id, so that the last is the least id of the component.

use crate::Result;
use crate::disk::Disk;
use crate::input::{Input, Loaded};

fn own(vertex: &Loaded<u32>) -> u64 {
    vertex.external
}

pub(crate) fn in_memory(input: &Input) -> Result<Vec<f64>> {
    let mut labels = input.states(own)?;
    let edges: Vec<Vec<u32>> = input.edges()?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (vertex, edges) in edges.iter().enumerate() {
            let label = labels[vertex];
            let mut least = label;
            for neighbor in edges {
                least = least.min(labels[*neighbor as usize]);
            }
            changed |= least < label;
            labels[vertex] = least;
        }
    }
    Ok(labels.iter().map(|label| *label as f64).collect())
}

pub(crate) fn decoupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let labels = disk.states(input, own)?;
    let edges = disk.edges::<u32>(input)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        labels.process(&edges, |label, edges| {
            let mut least = label;
            for neighbor in edges {
                least = least.min(labels.fetch(*neighbor)?);
            }
            changed |= least < label;
            Ok(least)
        })?;
    }
    labels.map(|label| label as f64)
}

pub(crate) fn coupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let vertices = disk.vertices(input, own)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        vertices.process(|label, edges| {
            let mut least = label;
            for neighbor in edges {
                least = least.min(vertices.fetch(*neighbor)?.state);
            }
            changed |= least < label;
            Ok(least)
        })?;
    }
    vertices.map(|label| label as f64)
}
