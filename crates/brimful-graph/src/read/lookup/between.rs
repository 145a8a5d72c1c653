//! A shortest path between two vertices, by look-ups from both ends (Pohl 1971).
//!
//! Two breadth-first searches, along edges from the first vertex and against them from the last,
//! take turns: the one with fewer vertices at its last distance continues. They meet halfway, so
//! that they visit far fewer edges than a search of the whole graph. `weighted`: by weights.

mod weighted;

use std::collections::{HashMap, HashSet};

use brimful_store::Job;

use super::walk::{Blocks, Reach};
use super::{Direction, Lookup};
use crate::error::Result;

/// The maximum number of vertices that both searches find: 16 MiB of memory.
const MAX_VERTICES: usize = 1 << 18;

/// The result of the two searches.
#[derive(Debug, PartialEq, Eq)]
pub enum Between {
    /// The vertices of the path. Among several paths, the smallest vertices, chosen from the last
    /// one back.
    Path(Vec<u64>),
    /// No path leads there.
    Nothing,
    /// The graph lacks the reverse index or usable weights, or the searches met too many vertices.
    Unknown,
}

/// A search from one end.
struct Search<'b> {
    blocks: &'b Blocks,
    /// The distance of each vertex that was found.
    distances: HashMap<u64, u64>,
    /// The vertices at the greatest distance, ascending.
    last: Vec<u64>,
    distance: u64,
}

impl<'b> Search<'b> {
    fn new(blocks: &'b Blocks, vertex: u64) -> Self {
        Self { blocks, distances: HashMap::from([(vertex, 0)]), last: vec![vertex], distance: 0 }
    }

    /// Finds the vertices one edge farther away; stops early if there are more than `most`.
    fn expand(&mut self, most: usize) -> Result<()> {
        self.distance += 1;
        let mut next = Vec::new();
        self.blocks.walk(&self.last, Reach::Everywhere, false, |_, target, _| {
            self.distances.entry(target).or_insert_with(|| {
                next.push(target);
                self.distance
            });
            next.len() <= most
        })?;
        next.sort_unstable();
        self.last = next;
        Ok(())
    }
}

impl Lookup {
    /// A shortest path along edges from `source` to `target`, found from both ends.
    ///
    /// # Errors
    /// Corruption and I/O errors; [`brimful_store::Error::Interrupted`] after a cancellation.
    pub fn between(&self, source: u64, target: u64, job: &Job) -> Result<Between> {
        if source == target {
            return Ok(Between::Path(vec![source]));
        }
        if source.max(target) >= self.graph.connected() {
            return Ok(Between::Nothing);
        }
        let Some(reverse) = self.graph.shards(Direction::In.index()) else {
            return Ok(Between::Unknown);
        };
        let (along, against) = (self.blocks(Direction::Out)?, self.blocks(Direction::In)?);
        let mut forward = Search::new(along, source);
        let mut backward = Search::new(against, target);
        let middle = loop {
            job.check()?;
            let max_vertices =
                MAX_VERTICES.checked_sub(forward.distances.len() + backward.distances.len());
            let Some(max_vertices) = max_vertices else { return Ok(Between::Unknown) };
            let (smaller, larger) = match forward.last.len() <= backward.last.len() {
                true => (&mut forward, &backward),
                false => (&mut backward, &forward),
            };
            smaller.expand(max_vertices)?;
            if smaller.last.len() > max_vertices {
                return Ok(Between::Unknown);
            }
            if smaller.last.is_empty() {
                return Ok(Between::Nothing);
            }
            // The searches meet at the last vertices of both; otherwise they would have met before.
            let meets = |vertex: &u64| larger.distances.contains_key(vertex);
            let middle: Vec<u64> = smaller.last.iter().copied().filter(meets).collect();
            if !middle.is_empty() {
                break middle;
            }
        };
        let second_half = second_half(along, &backward, middle)?;
        let mut path = vec![target];
        while let Some(&vertex) = path.last().filter(|vertex| **vertex != source) {
            let is_before = |neighbor: &u64| match backward.distances.get(&vertex) {
                Some(left) if *left < backward.distance => {
                    second_half.contains(neighbor)
                        && backward.distances.get(neighbor) == Some(&(left + 1))
                }
                _ => {
                    let left = forward.distances.get(&vertex).and_then(|left| left.checked_sub(1));
                    left.is_some() && forward.distances.get(neighbor) == left.as_ref()
                }
            };
            let mut before = Vec::new();
            against.walk(&[vertex], Reach::Everywhere, false, |_, neighbor, _| {
                before.extend(Some(neighbor).filter(is_before));
                true
            })?;
            let keyed =
                before.into_iter().map(|neighbor| Ok((self.order_key(neighbor)?, neighbor)));
            let least = keyed.collect::<Result<Vec<_>>>()?.into_iter().min();
            let problem = "the index lacks an edge that the forward index has";
            let (_, least) = least.ok_or_else(|| reverse.file().corrupt(0, problem))?;
            path.push(least);
        }
        path.reverse();
        Ok(Between::Path(path))
    }

    /// The order key of the external id of a vertex.
    fn order_key(&self, vertex: u64) -> Result<u64> {
        let mut bits = [0];
        self.graph.external_ids(vertex, &mut bits)?;
        Ok(self.graph.id_type().order_key(bits[0]))
    }
}

/// The vertices on shortest paths from the vertices in the middle to the end.
fn second_half(along: &Blocks, backward: &Search<'_>, middle: Vec<u64>) -> Result<HashSet<u64>> {
    let (mut on_path, mut last) = (HashSet::from_iter(middle.iter().copied()), middle);
    for left in (0..backward.distance).rev() {
        let mut next = Vec::new();
        along.walk(&last, Reach::Everywhere, false, |_, target, _| {
            if backward.distances.get(&target) == Some(&left) && on_path.insert(target) {
                next.push(target);
            }
            true
        })?;
        next.sort_unstable();
        last = next;
    }
    Ok(on_path)
}
