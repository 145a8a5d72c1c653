//! A path of the least weight between two vertices, by look-ups from both ends (Pohl 1971).
//!
//! Two searches by Dijkstra's rule, along edges from the first vertex and against them from the
//! last, take turns: the one with fewer waiting vertices continues. A search looks up several of
//! its nearest vertices at once, so a vertex may be looked up again by a shorter path.
//! Invariant: a vertex nearer than the nearest waiting one has its final distance. Once the nearest
//! waiting vertices of both searches are together farther than the best path, each vertex of a
//! shortest path is final in one of the searches.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use brimful_store::Job;

use super::{Between, MAX_VERTICES};
use crate::error::Result;
use crate::read::lookup::walk::{Blocks, Reach};
use crate::read::lookup::{Direction, Lookup};
use crate::read::weight_range::WeightRange;

/// One look-up is allowed per this many edges of the graph: beyond that, a run over the whole graph
/// is about as fast. In a small graph this many look-ups are allowed.
const EDGES_PER_LOOKUP: u64 = 1 << 9;
const FEW_LOOKUPS: u64 = 1 << 8;
/// The maximum number of vertices that a search looks up at once. It looks up at most one at once
/// per `BEFORE` vertices that it looked up before.
const MAX_AT_ONCE: usize = 1 << 8;
const BEFORE: usize = 8;

/// A search from one end.
struct Search<'b> {
    blocks: &'b Blocks,
    /// The least weight of a path to each vertex that was found.
    distances: HashMap<u64, f64>,
    /// The vertices to look up, by the bits of their distances, which are not negative. A vertex
    /// that was found again by a shorter path is there again.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    looked_up: usize,
}

impl<'b> Search<'b> {
    fn new(blocks: &'b Blocks, vertex: u64) -> Self {
        let waiting = BinaryHeap::from([Reverse((0, vertex))]);
        Self { blocks, distances: HashMap::from([(vertex, 0.0)]), waiting, looked_up: 0 }
    }

    /// The distance of the nearest waiting vertex.
    fn nearest(&self) -> Option<f64> {
        self.waiting.peek().map(|Reverse((bits, _))| f64::from_bits(*bits))
    }

    /// Entries in memory.
    fn entries(&self) -> usize {
        self.distances.len() + self.waiting.len()
    }

    /// Looks up the nearest vertices whose edges may be part of a path of at most `best`, and
    /// returns the weight of the best path through a vertex that `other` has found too. `None` if
    /// both searches together would have more than [`MAX_VERTICES`] entries.
    fn advance(&mut self, other: &Self, mut best: f64) -> Result<Option<f64>> {
        let far = other.nearest().unwrap_or(0.0);
        let most = (self.looked_up / BEFORE).clamp(1, MAX_AT_ONCE);
        let mut vertices = Vec::new();
        while vertices.len() < most && self.nearest().is_some_and(|near| near + far <= best) {
            let Some(Reverse((bits, vertex))) = self.waiting.pop() else { break };
            if self.distances.get(&vertex).is_some_and(|distance| distance.to_bits() == bits) {
                vertices.push((vertex, f64::from_bits(bits)));
            }
        }
        vertices.sort_unstable_by_key(|(vertex, _)| *vertex);
        let ids: Vec<u64> = vertices.iter().map(|(vertex, _)| *vertex).collect();
        self.looked_up += ids.len();
        let mut fits = true;
        self.blocks.walk(&ids, Reach::Everywhere, true, |place, target, weight| {
            let distance = vertices[place].1 + weight;
            let earlier = self.distances.get(&target).copied().unwrap_or(f64::INFINITY);
            if distance < earlier {
                self.distances.insert(target, distance);
                self.waiting.push(Reverse((distance.to_bits(), target)));
                if let Some(rest) = other.distances.get(&target) {
                    best = best.min(distance + rest);
                }
            }
            fits = self.entries() + other.entries() <= MAX_VERTICES;
            fits
        })?;
        Ok(fits.then_some(best))
    }
}

impl Lookup {
    /// A path of the least weight from `source` to `target`, found from both ends. Of several, it
    /// has the fewest edges, and then the smallest vertices from the last one back.
    ///
    /// # Errors
    /// Corruption and I/O errors; [`brimful_store::Error::Interrupted`] after a cancellation.
    pub fn between_weighted(&self, source: u64, target: u64, job: &Job) -> Result<Between> {
        let description = self.graph.description();
        let Some(reverse) = self.graph.shards(Direction::In.index()) else {
            return Ok(Between::Unknown);
        };
        // A run refuses negative weights, and sums that overflow.
        let is_summable = |range: WeightRange| {
            !range.any_negative() && (range.max * self.graph.connected() as f64).is_finite()
        };
        if !description.weights.is_some_and(is_summable) {
            return Ok(Between::Unknown);
        }
        if source == target {
            return Ok(Between::Path(vec![source]));
        }
        if source.max(target) >= self.graph.connected() {
            return Ok(Between::Nothing);
        }
        let (along, against) = (self.blocks(Direction::Out)?, self.blocks(Direction::In)?);
        let mut forward = Search::new(along, source);
        let mut backward = Search::new(against, target);
        let (most, mut best) =
            ((description.arcs / EDGES_PER_LOOKUP).max(FEW_LOOKUPS), f64::INFINITY);
        while let (Some(near), Some(far)) = (forward.nearest(), backward.nearest())
            && near + far <= best
        {
            job.check()?;
            if (forward.looked_up + backward.looked_up) as u64 > most {
                return Ok(Between::Unknown);
            }
            let shortest = match forward.waiting.len() <= backward.waiting.len() {
                true => forward.advance(&backward, best)?,
                false => backward.advance(&forward, best)?,
            };
            let Some(shortest) = shortest else { return Ok(Between::Unknown) };
            best = shortest;
        }
        if best == f64::INFINITY {
            return Ok(Between::Nothing);
        }
        let Some(path) = self.path_of(&forward, &backward, source, target, best, job)? else {
            let problem = "the index lacks an edge that the forward index has";
            return Err(reverse.file().corrupt(0, problem).into());
        };
        Ok(Between::Path(path))
    }

    /// The path of weight `best` that both searches found: a breadth-first search back from the
    /// target, over edges that make up the distances of their ends.
    fn path_of(
        &self,
        forward: &Search<'_>,
        backward: &Search<'_>,
        source: u64,
        target: u64,
        best: f64,
        job: &Job,
    ) -> Result<Option<Vec<u64>>> {
        // Vertices on shortest paths whose distances from the source, and to the target, are final.
        let is_middle = |(vertex, distance): (&u64, &f64)| {
            let rest = backward.distances.get(vertex)?;
            (distance + rest == best).then_some(*vertex)
        };
        let mut first_half: HashSet<u64> = forward.distances.iter().filter_map(is_middle).collect();
        let second_half =
            second_half(forward.blocks, backward, first_half.iter().copied().collect(), job)?;
        let (mut followed, mut last) = (HashMap::from([(target, target)]), vec![target]);
        while !last.is_empty() && !followed.contains_key(&source) {
            job.check()?;
            let mut vertices: Vec<(u64, usize)> =
                last.iter().enumerate().map(|(place, vertex)| (*vertex, place)).collect();
            vertices.sort_unstable();
            let ids: Vec<u64> = vertices.iter().map(|(vertex, _)| *vertex).collect();
            let mut steps = Vec::new();
            backward.blocks.walk(&ids, Reach::Everywhere, true, |at, before, weight| {
                let (vertex, place) = vertices[at];
                let distances = |search: &Search<'_>| {
                    Some((*search.distances.get(&vertex)?, *search.distances.get(&before)?))
                };
                let is_in_first = first_half.contains(&vertex)
                    && distances(forward).is_some_and(|(far, near)| near + weight == far);
                let is_in_second = second_half.contains(&vertex)
                    && second_half.contains(&before)
                    && distances(backward).is_some_and(|(near, far)| near + weight == far);
                if is_in_first || is_in_second {
                    steps.push((place, before, is_in_first));
                }
                true
            })?;
            let keyed = steps.into_iter().map(|(place, before, is_in_first)| {
                Ok((place, self.order_key(before)?, before, is_in_first))
            });
            let mut steps = keyed.collect::<Result<Vec<_>>>()?;
            steps.sort_unstable();
            let mut next = Vec::new();
            for (place, _, before, is_in_first) in steps {
                if is_in_first {
                    first_half.insert(before);
                }
                followed.entry(before).or_insert_with(|| {
                    next.push(before);
                    last[place]
                });
            }
            last = next;
        }
        let (mut path, mut vertex) = (vec![source], source);
        while vertex != target {
            let Some(next) = followed.get(&vertex) else { return Ok(None) };
            path.push(*next);
            vertex = *next;
        }
        Ok(Some(path))
    }
}

/// The vertices on shortest paths from the vertices in the middle to the target.
fn second_half(
    along: &Blocks,
    backward: &Search<'_>,
    middle: Vec<u64>,
    job: &Job,
) -> Result<HashSet<u64>> {
    let (mut on_path, mut last) = (HashSet::from_iter(middle.iter().copied()), middle);
    while !last.is_empty() {
        job.check()?;
        last.sort_unstable();
        let mut next = Vec::new();
        along.walk(&last, Reach::Everywhere, true, |place, target, weight| {
            let ends = (backward.distances.get(&last[place]), backward.distances.get(&target));
            if let (Some(far), Some(near)) = ends
                && near + weight == *far
                && on_path.insert(target)
            {
                next.push(target);
            }
            true
        })?;
        last = next;
    }
    Ok(on_path)
}
