//! Estimates the number of supersteps in which signals spread over a graph, from the neighborhoods
//! of a few vertices.
//!
//! If every vertex has few edges, as on roads and grids, the number of vertices within a distance r
//! of a vertex grows as r^d for a small d, the dimension (Song, Havlin and Makse 2005), and a graph
//! of n vertices is about n^(1/d) wide. In other graphs it grows exponentially, and a few
//! supersteps reach everything.

use brimful_graph::Graph;
use brimful_graph::read::lookup::vertices_by_distance;

use crate::Result;

/// A graph with a longer list of outgoing neighbors is not wide.
const LONGEST_LIST: u64 = 64;
/// The maximum number of vertices to visit around a start vertex.
const SURROUNDINGS: usize = 2048;
/// The number of start vertices to try, until one has half of `SURROUNDINGS` vertices around it.
const TRIES: u64 = 3;
/// Growth of the number of vertices with the distance counts as exponential above this dimension.
const GREATEST_DIMENSION: f64 = 3.0;
/// The distance from a vertex to the farthest, in radii of the graph: 1 from its center, 2 from its
/// rim.
const ECCENTRICITY: f64 = 1.5;

/// The number of supersteps in which signals of a vertex reach the farthest vertex of a wide graph;
/// `None` if the graph is not wide, or its width is unknown.
pub(crate) fn supersteps_across(graph: &Graph) -> Result<Option<u64>> {
    let lists = graph.description().longest_lists;
    if lists.is_none_or(|lists| lists.outgoing > LONGEST_LIST) {
        return Ok(None);
    }
    let vertices = graph.connected();
    for place in 0..TRIES {
        let counts = vertices_by_distance(graph, place * (vertices / TRIES), SURROUNDINGS)?;
        if counts.iter().sum::<u64>() >= SURROUNDINGS as u64 / 2 {
            return Ok(across(&counts, vertices));
        }
    }
    Ok(None)
}

/// The distance from a vertex to the farthest of `vertices` vertices; `counts` has the numbers of
/// vertices at distance 0, 1, ...
fn across(counts: &[u64], vertices: u64) -> Option<u64> {
    let radius = counts.len() - 1;
    let within = |distance: usize| counts[..=distance].iter().sum::<u64>() as f64;
    let dimension = (within(radius) / within(radius / 2)).log2().max(1.0);
    let radius_of_all = radius as f64 * (vertices as f64 / within(radius)).powf(dimension.recip());
    let farthest = ((ECCENTRICITY * radius_of_all).ceil() as u64).min(vertices);
    (dimension <= GREATEST_DIMENSION).then_some(farthest)
}

#[cfg(test)]
mod tests {
    use super::across;

    #[test]
    fn chains_and_grids_are_wide_and_trees_are_not() {
        assert_eq!(across(&[1; 1024], 50_000), Some(50_000));
        let grid: Vec<u64> =
            std::iter::once(1).chain((1..32).map(|distance| 4 * distance)).collect();
        let width = across(&grid, 1_000_000).unwrap();
        assert!((707..2000).contains(&width), "{width}");
        let tree: Vec<u64> = (0..11).map(|distance| 1 << distance).collect();
        assert_eq!(across(&tree, 1_000_000), None);
    }
}
