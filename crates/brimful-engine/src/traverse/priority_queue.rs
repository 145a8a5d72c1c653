//! Vertices that are due to signal, in the order of the program.
//!
//! On a graph of high diameter a superstep has a small frontier, and many of its vertices signal
//! again later, when a shorter path has arrived. In order (Dijkstra 1959) each signals about once.
//! Invariant: in any order the final states are those of supersteps, because a program declares by
//! [`crate::Program::ORDERED`] that its states are the minimum over all paths of signals.

use crate::plan::extent::Extent;
use crate::traverse::adjacency::Adjacency;

/// The queue is made when supersteps have visited all edges this many times, because making it
/// takes about as long.
pub(crate) const PASSES_WORTH_UNPACKING: u64 = 12;
/// Up to this many edge visits, which take some ten milliseconds, no other traversal pays off.
pub(crate) const BRIEF: u64 = 1 << 22;
/// Vertices that signal between two checks for a cancellation.
pub(crate) const VERTICES_PER_CHECK: usize = 1 << 12;
/// Children of a node of the heap: few enough to share a cache line.
const CHILDREN: usize = 4;
/// The position of a vertex that is not in the queue.
const NOWHERE: u32 = u32::MAX;

/// Bytes of the adjacency and the queue of a whole graph; `None` if it cannot have one.
pub(crate) fn memory_bytes(extent: &Extent) -> Option<u64> {
    Adjacency::memory_bytes(extent).map(|bytes| bytes + 2 * 4 * extent.vertices)
}

/// A priority queue of vertices, each once, ordered by state: a heap that knows the position of
/// each vertex.
pub(crate) struct PriorityQueue {
    heap: Vec<u32>,
    places: Vec<u32>,
}

impl PriorityQueue {
    /// An empty queue for `vertices` vertices.
    pub(crate) fn new(vertices: usize) -> Self {
        Self { heap: Vec::with_capacity(vertices), places: vec![NOWHERE; vertices] }
    }

    /// Adds a vertex, or moves it forward if its state has changed. `before(one, other)` is true if
    /// `one` comes first.
    #[inline]
    pub(crate) fn push(&mut self, vertex: usize, before: impl Fn(u32, u32) -> bool) {
        let mut place = self.places[vertex] as usize;
        if self.places[vertex] == NOWHERE {
            place = self.heap.len();
            self.heap.push(vertex as u32);
        }
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if !before(vertex as u32, self.heap[parent]) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, vertex as u32);
    }

    /// Removes and returns the first vertex.
    #[inline]
    pub(crate) fn pop(&mut self, before: impl Fn(u32, u32) -> bool) -> Option<usize> {
        let first = *self.heap.first()?;
        self.places[first as usize] = NOWHERE;
        let last = self.heap.pop()?;
        if self.heap.is_empty() {
            return Some(first as usize);
        }
        let mut place = 0;
        loop {
            let begin = place * CHILDREN + 1;
            let children = begin..(begin + CHILDREN).min(self.heap.len());
            let Some(mut least) = children.clone().next().filter(|_| !children.is_empty()) else {
                break;
            };
            for child in children.skip(1) {
                if before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if !before(self.heap[least], last) {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, last);
        Some(first as usize)
    }

    fn put(&mut self, place: usize, vertex: u32) {
        self.heap[place] = vertex;
        self.places[vertex as usize] = place as u32;
    }
}
