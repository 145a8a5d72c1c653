//! PageRank (unnormalized: 1 - d + d * sum), so many supersteps. A state has the ranks after an
//! even and after an odd number of them, so that a superstep reads what the one before wrote
//! wherever a neighbor is.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::disk::Disk;
use crate::input::{Input, Loaded};

/// How many supersteps.
pub(crate) const SUPERSTEPS: usize = 10;
const DAMPING: f64 = 0.85;

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct Rank {
    ranks: [f64; 2],
    degree: f64,
}

impl Rank {
    fn first(vertex: &Loaded<u32>) -> Self {
        Self { ranks: [1.0 - DAMPING; 2], degree: vertex.edges.len() as f64 }
    }

    fn share(&self, superstep: usize) -> f64 {
        self.ranks[superstep % 2] / self.degree
    }

    fn collect(mut self, superstep: usize, sum: f64) -> Self {
        self.ranks[(superstep + 1) % 2] = 1.0 - DAMPING + DAMPING * sum;
        self
    }

    fn last(&self) -> f64 {
        self.ranks[SUPERSTEPS % 2]
    }
}

pub(crate) fn in_memory(input: &Input) -> Result<Vec<f64>> {
    let mut ranks = input.states(Rank::first)?;
    let edges: Vec<Vec<u32>> = input.edges()?;
    for superstep in 0..SUPERSTEPS {
        for (vertex, edges) in edges.iter().enumerate() {
            let rank = ranks[vertex];
            let mut sum = 0.0;
            for neighbor in edges {
                sum += ranks[*neighbor as usize].share(superstep);
            }
            ranks[vertex] = rank.collect(superstep, sum);
        }
    }
    Ok(ranks.iter().map(Rank::last).collect())
}

pub(crate) fn decoupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let ranks = disk.states(input, Rank::first)?;
    let edges = disk.edges::<u32>(input)?;
    for superstep in 0..SUPERSTEPS {
        ranks.process(&edges, |rank, edges| {
            let mut sum = 0.0;
            for neighbor in edges {
                sum += ranks.fetch(*neighbor)?.share(superstep);
            }
            Ok(rank.collect(superstep, sum))
        })?;
    }
    ranks.map(|rank| rank.last())
}

pub(crate) fn coupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let vertices = disk.vertices(input, Rank::first)?;
    for superstep in 0..SUPERSTEPS {
        vertices.process(|rank, edges| {
            let mut sum = 0.0;
            for neighbor in edges {
                sum += vertices.fetch(*neighbor)?.state.share(superstep);
            }
            Ok(rank.collect(superstep, sum))
        })?;
    }
    vertices.map(|rank| rank.last())
}
