//! Measures how fast this machine works on edges.
//!
//! Invariant: the measurement takes a fixed time, at most a tenth of the free budget, and leaves
//! nothing behind.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brimful_store::Resources;
use brimful_store::bandwidth::memory_bandwidth;
use brimful_store::splitmix::splitmix64;

/// Memory traffic, in bytes, equivalent to an edge of the measured loop. PageRank of RMAT-22 takes
/// as long for an edge, its share of the vertices included: 1.2 ns with one thread where forecasts
/// count 36 bytes (bench/RESULTS.md).
const LOOP_TRAFFIC: f64 = 35.0;
/// Edges of a pass, and targets in the sums of an interval.
const EDGES: usize = 1 << 17;
const TARGETS: usize = 1 << 16;
/// The measuring time. The fastest pass counts, because other processes may slow the others.
const MEASURING: Duration = Duration::from_millis(50);

/// The bandwidth of memory in bytes a second; less if the threads add up edges more slowly than
/// memory delivers their traffic.
pub fn working_bandwidth(resources: &Resources) -> f64 {
    let memory = memory_bandwidth(resources);
    let bytes = (EDGES * 4 + TARGETS * 16) as u64 * resources.workers() as u64;
    match bytes <= resources.budget.free() / 10 {
        true => memory.min(edges_a_second(resources) * LOOP_TRAFFIC),
        false => memory,
    }
}

/// The arrays of a thread: packed edges, signals of sources and sums of targets.
struct Arrays {
    edges: Vec<u32>,
    signals: Vec<f64>,
    sums: Vec<f64>,
}

impl Arrays {
    fn new() -> Self {
        let edges = (0..EDGES as u64).map(|edge| splitmix64(edge) as u32).collect();
        Self { edges, signals: vec![1.0; TARGETS], sums: vec![0.0; TARGETS] }
    }

    /// Adds signals to sums, as a dense traversal does: sources ascend, targets are anywhere.
    fn add_up(&mut self) {
        let Self { edges, signals, sums } = self;
        let mut source = 0;
        for edge in black_box(&*edges) {
            source += (edge >> 16 & 1) as usize;
            sums[*edge as usize % TARGETS] += signals[source % TARGETS];
        }
        black_box(&*sums);
    }
}

/// Edges that all threads add up in a second.
fn edges_a_second(resources: &Resources) -> f64 {
    let arrays: Vec<Mutex<Arrays>> =
        (0..resources.workers()).map(|_| Mutex::new(Arrays::new())).collect();
    let rates = resources.broadcast(|worker| {
        let mut arrays = arrays[worker].lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, mut seconds) = (Instant::now(), f64::INFINITY);
        while begin.elapsed() < MEASURING {
            let pass = Instant::now();
            arrays.add_up();
            seconds = seconds.min(pass.elapsed().as_secs_f64());
        }
        EDGES as f64 / seconds.max(1e-9)
    });
    // Where threads share a core, a pass may still have it alone.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = cores.min(rates.len()) as f64 / rates.len() as f64;
    rates.into_iter().sum::<f64>() * share
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_store::{Budget, Job};

    use super::*;

    #[test]
    fn speeds_are_those_of_a_machine() {
        let limits =
            |bytes| Resources::new(Budget::new(bytes, 0), Arc::new(Job::new()), Some(2)).unwrap();
        let edges = edges_a_second(&limits(1 << 30));
        assert!((1e6..1e11).contains(&edges), "{edges}");
        let bandwidth = working_bandwidth(&limits(1 << 30));
        assert!((1e8..1e12).contains(&bandwidth), "{bandwidth}");
    }
}
