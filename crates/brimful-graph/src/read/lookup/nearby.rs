//! The surroundings of a vertex: the number of vertices at each distance.

use std::collections::HashSet;

use super::Lookup;
use super::walk::{Blocks, Reach};
use crate::error::Result;
use crate::read::graph::Graph;

/// The number of vertices at distance 0, 1, ... from `vertex` along edges, until `most` are found
/// or no further one can be reached. The last distance counts only if all of its vertices were
/// found.
///
/// # Errors
/// Corruption and I/O errors.
pub fn vertices_by_distance(graph: &Graph, vertex: u64, most: usize) -> Result<Vec<u64>> {
    if vertex >= graph.connected() {
        return Ok(vec![1]);
    }
    let blocks = Blocks::open(graph.forward(), graph.connected(), Lookup::INDEX_BYTES)?;
    let (mut reached, mut level, mut counts) = (HashSet::from([vertex]), vec![vertex], Vec::new());
    while !level.is_empty() {
        counts.push(level.len() as u64);
        let mut next = Vec::new();
        blocks.walk(&level, Reach::Everywhere, false, |_, target, _| {
            if reached.insert(target) {
                next.push(target);
            }
            reached.len() < most
        })?;
        if reached.len() >= most {
            break;
        }
        next.sort_unstable();
        level = next;
    }
    Ok(counts)
}
