//! Breadth-first search on a graph in memory: the same search repeated in one run; prints one JSON
//! object.
//!
//! `loaded GRAPH BUDGET_BYTES SOURCE ROUNDS`: seconds of all supersteps of a search: the median of
//! the rounds after the first, and the first, which reads the units. As `brimful run bfs`, except
//! that a round ends by preparing the next.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the terminal")]

use std::path::Path;
use std::sync::Arc;

use brimful_algos::bfs::Levels;
use brimful_engine::{Globals, Max, Mode, Program, RunOptions, Vertex};
use brimful_graph::Graph;
use brimful_store::{Budget, Job, Resources};

struct Searches {
    search: Levels,
    rounds: u64,
}

impl Program for Searches {
    type State = u32;
    type Combiner = Max<u8>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;

    fn initial(&self, vertex: Vertex, globals: &Globals<()>) -> u32 {
        self.search.initial(vertex, globals)
    }

    fn signal(&self, vertex: Vertex, level: u32) -> u8 {
        self.search.signal(vertex, level)
    }

    #[inline]
    fn collect(&self, vertex: Vertex, level: u32, reached: u8, globals: &Globals<()>) -> u32 {
        self.search.collect(vertex, level, reached, globals)
    }

    fn another_round(&self, globals: &Globals<()>) -> bool {
        globals.round + 1 < self.rounds
    }

    fn begin_round(&self, vertex: Vertex, _: u32, globals: &Globals<()>) -> u32 {
        self.search.initial(vertex, globals)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<u64>().unwrap();
    let resources = Resources::new(Budget::new(number(1), 0), Arc::new(Job::new()), None).unwrap();
    let graph = Graph::open(Path::new(&arguments[0]), resources.job.traffic()).unwrap();
    let (sources, rounds) = (graph.find(number(2).into()).unwrap().into(), number(3));
    let program = Searches { search: Levels { sources }, rounds };
    let output = brimful_engine::run(&program, &graph, &RunOptions::default(), &resources).unwrap();
    let durations = output.stats.durations.seconds();
    let each = durations.len() / rounds as usize;
    assert_eq!(each * rounds as usize, durations.len(), "every round is the same search");
    let mut seconds: Vec<f64> = durations.chunks(each).map(|round| round.iter().sum()).collect();
    let first = seconds.remove(0);
    seconds.sort_by(f64::total_cmp);
    println!(
        "{{\"seconds\": {:.4}, \"best_seconds\": {:.4}, \"first_seconds\": {first:.4}}}",
        seconds[seconds.len() / 2],
        seconds[0]
    );
}
