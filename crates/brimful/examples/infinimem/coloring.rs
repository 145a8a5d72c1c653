//! Greedy coloring: a vertex takes the least color that no neighbor before it has, until no
//! color changes. The order is that of `brimful run color`: descending by the bit length of the
//! degree, then by a hash of the id.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::disk::Disk;
use crate::input::{Input, Loaded};

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct Color {
    color: u64,
    /// The vertex with the greater one is first.
    urgency: [u64; 2],
}

impl Color {
    fn first(vertex: &Loaded<u32>) -> Self {
        let degree = vertex.edges.iter().filter(|neighbor| **neighbor != vertex.number).count();
        let bits = degree.checked_ilog2().map_or(0, |bits| bits + 1);
        Self { color: 0, urgency: [bits.into(), brimful::graph::random::splitmix64(vertex.place)] }
    }

    /// Takes note of the color of a neighbor that comes before.
    fn avoid(&self, neighbor: Self, taken: &mut Vec<bool>) {
        if neighbor.urgency > self.urgency {
            taken.resize(taken.len().max(neighbor.color as usize + 1), false);
            taken[neighbor.color as usize] = true;
        }
    }
}

fn least(taken: &[bool]) -> u64 {
    taken.iter().position(|taken| !taken).unwrap_or(taken.len()) as u64
}

pub(crate) fn in_memory(input: &Input) -> Result<Vec<f64>> {
    let mut colors = input.states(Color::first)?;
    let edges: Vec<Vec<u32>> = input.edges()?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (vertex, edges) in edges.iter().enumerate() {
            let color = colors[vertex];
            let mut taken = Vec::new();
            for neighbor in edges {
                color.avoid(colors[*neighbor as usize], &mut taken);
            }
            changed |= least(&taken) != color.color;
            colors[vertex] = Color { color: least(&taken), ..color };
        }
    }
    Ok(colors.iter().map(|state| state.color as f64).collect())
}

pub(crate) fn decoupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let colors = disk.states(input, Color::first)?;
    let edges = disk.edges::<u32>(input)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        colors.process(&edges, |color, edges| {
            let mut taken = Vec::new();
            for neighbor in edges {
                color.avoid(colors.fetch(*neighbor)?, &mut taken);
            }
            changed |= least(&taken) != color.color;
            Ok(Color { color: least(&taken), ..color })
        })?;
    }
    colors.map(|state| state.color as f64)
}

pub(crate) fn coupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let vertices = disk.vertices(input, Color::first)?;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        vertices.process(|color, edges| {
            let mut taken = Vec::new();
            for neighbor in edges {
                color.avoid(vertices.fetch(*neighbor)?.state, &mut taken);
            }
            changed |= least(&taken) != color.color;
            Ok(Color { color: least(&taken), ..color })
        })?;
    }
    vertices.map(|state| state.color as f64)
}
