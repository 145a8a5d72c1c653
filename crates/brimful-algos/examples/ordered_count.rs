//! Triangles in memory as GAP counts them, to compare with; prints one JSON object.
//!
//! `ordered_count PAIRS THREADS`: `PAIRS` are edges as pairs of `u32`, without direction. Vertices
//! are numbered by descending degree; for each edge, the lists of its ends below both are merged
//! (Beamer, Asanović, Patterson 2015, "OrderedCount"). The seconds are those of the count alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the terminal")]

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Vertices that a thread takes at once.
const CHUNK: usize = 64;

/// The neighbors of each vertex that precede it, ascending.
struct Lists {
    starts: Vec<usize>,
    neighbors: Vec<u32>,
}

impl Lists {
    fn of(&self, vertex: u32) -> &[u32] {
        &self.neighbors[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    /// Lists of edges, each the larger end above the smaller, which ascend.
    fn new(edges: &[u64], vertices: usize) -> Self {
        let mut starts = vec![0; vertices + 1];
        edges.iter().for_each(|edge| starts[(edge >> 32) as usize + 1] += 1);
        (0..vertices).for_each(|at| starts[at + 1] += starts[at]);
        Self { starts, neighbors: edges.iter().map(|edge| *edge as u32).collect() }
    }

    /// The triangles whose last vertex is `vertex`.
    fn triangles(&self, vertex: u32) -> u64 {
        let (own, mut found) = (self.of(vertex), 0);
        for neighbor in own {
            let mut rest = own.iter();
            let mut next = rest.next();
            for common in self.of(*neighbor) {
                while next.is_some_and(|own| own < common) {
                    next = rest.next();
                }
                found += u64::from(next == Some(common));
            }
        }
        found
    }
}

/// Edges with the larger end above the smaller, each once, ascending.
fn ordered(edges: impl Iterator<Item = (u32, u32)>) -> Vec<u64> {
    let key = |(a, b): (u32, u32)| u64::from(a.max(b)) << 32 | u64::from(a.min(b));
    let mut edges: Vec<u64> = edges.filter(|(a, b)| a != b).map(key).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bytes = std::fs::read(&arguments[0]).unwrap();
    let id = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let edges = ordered(bytes.chunks_exact(8).map(|pair| (id(&pair[..4]), id(&pair[4..]))));
    let ends = |edge: &u64| ((edge >> 32) as u32, *edge as u32);
    let vertices = edges.last().map_or(0, |edge| ends(edge).0 as usize + 1);
    let mut degrees = vec![0_u32; vertices];
    for (a, b) in edges.iter().map(ends) {
        degrees[a as usize] += 1;
        degrees[b as usize] += 1;
    }
    let mut order: Vec<u32> = (0..vertices as u32).collect();
    order.sort_by_key(|vertex| Reverse(degrees[*vertex as usize]));
    let mut numbers = vec![0; vertices];
    (0..).zip(&order).for_each(|(number, vertex)| numbers[*vertex as usize] = number);
    let number = |vertex: u32| numbers[vertex as usize];
    let edges = ordered(edges.iter().map(ends).map(|(a, b)| (number(a), number(b))));
    let lists = Lists::new(&edges, vertices);
    let (next, found) = (AtomicUsize::new(0), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments[1].parse().unwrap() {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if first >= vertices {
                        break;
                    }
                    let chunk = first as u32..vertices.min(first + CHUNK) as u32;
                    let sum = chunk.map(|vertex| lists.triangles(vertex)).sum();
                    found.fetch_add(sum, Ordering::Relaxed);
                }
            });
        }
    });
    let (seconds, triangles) = (started.elapsed().as_secs_f64(), found.into_inner());
    println!("{{\"seconds\": {seconds}, \"triangles\": {triangles}}}");
}
