//! Shortest paths from one vertex: a vertex takes the least distance over its edges, until no
//! distance changes.

use crate::disk::Disk;
use crate::input::{Input, Loaded};
use crate::{Result, SOURCE};

/// A neighbor, and the weight of the edge.
type Road = (u32, f64);

fn first(vertex: &Loaded<Road>) -> f64 {
    if vertex.number == SOURCE { 0.0 } else { f64::INFINITY }
}

pub(crate) fn in_memory(input: &Input) -> Result<Vec<f64>> {
    let mut distances = input.states(first)?;
    let edges: Vec<Vec<Road>> = input.edges()?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (vertex, edges) in edges.iter().enumerate() {
            let distance = distances[vertex];
            let mut least = distance;
            for (neighbor, weight) in edges {
                least = least.min(distances[*neighbor as usize] + weight);
            }
            changed |= least < distance;
            distances[vertex] = least;
        }
    }
    Ok(distances)
}

pub(crate) fn decoupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let distances = disk.states(input, first)?;
    let edges = disk.edges::<Road>(input)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        distances.process(&edges, |distance, edges| {
            let mut least = distance;
            for (neighbor, weight) in edges {
                least = least.min(distances.fetch(*neighbor)? + weight);
            }
            changed |= least < distance;
            Ok(least)
        })?;
    }
    distances.map(|distance| distance)
}

pub(crate) fn coupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let vertices = disk.vertices(input, first)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        vertices.process(|distance, edges| {
            let mut least = distance;
            for (neighbor, weight) in edges {
                least = least.min(vertices.fetch(*neighbor)?.state + weight);
            }
            changed |= least < distance;
            Ok(least)
        })?;
    }
    vertices.map(|distance| distance)
}
