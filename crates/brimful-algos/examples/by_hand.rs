//! PageRank by the public trait, compared with a loop written by hand for this algorithm alone;
//! prints one JSON object.
//!
//! `by_hand GRAPH BUDGET_BYTES SUPERSTEPS ROUNDS`: seconds per superstep, medians over all rounds,
//! in turns. The loop by hand keeps the packed units of the in-shards in memory, as the engine does
//! if there is room; it has no progress, no cancellation and no streaming. f64; as many threads as
//! cores. Both must compute the same scores.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use brimful_algos::pagerank::{PageRank, Variant};
use brimful_engine::RunOptions;
use brimful_graph::codec::{Unpack, scatter};
use brimful_graph::{Graph, Index};
use brimful_store::sealed::Buffer;
use brimful_store::{Budget, Error, Job, Resources};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<u64>().unwrap();
    let resources = Resources::new(Budget::new(number(1), 0), Arc::new(Job::new()), None).unwrap();
    let graph = Graph::open(Path::new(&arguments[0]), resources.job.traffic()).unwrap();
    let (supersteps, rounds) = (number(2), number(3));
    let (mut by_hand, mut by_trait) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        // The first superstep of the engine reads the units.
        let (durations, scores) = hand_written(&graph, supersteps + 1, &resources);
        by_hand.extend_from_slice(&durations[1..]);
        let options = RunOptions { max_supersteps: supersteps + 1, ..RunOptions::default() };
        let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
        let output = brimful_engine::run(&program, &graph, &options, &resources).unwrap();
        let mut states = vec![0.0; scores.len()];
        output.states.read(0, &mut states).unwrap();
        let apart = states.iter().zip(&scores).map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max);
        assert!(apart < 1e-9, "scores differ by {apart}");
        by_trait.extend_from_slice(&output.stats.durations.seconds()[1..]);
    }
    let (hand, engine) = (median(by_hand), median(by_trait));
    println!(
        "{{\"by_hand_seconds\": {hand:.6}, \"by_trait_seconds\": {engine:.6}, \"ratio\": {:.4}}}",
        engine / hand
    );
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Seconds of each superstep, and scores.
fn hand_written(graph: &Graph, supersteps: u64, resources: &Resources) -> (Vec<f64>, Vec<f64>) {
    let shards = graph.shards(Index::In).unwrap();
    let (bits, vertices) = (shards.interval_bits(), graph.connected() as usize);
    let read = |unit: usize, (): &mut ()| -> Result<Buffer, Error> {
        let mut buffer = Buffer::new();
        shards.file().read_block(unit, &mut buffer)?;
        Ok(buffer)
    };
    let units = resources.parallel_map(shards.units(), read).unwrap();
    let mut degrees = vec![0_u64; vertices];
    graph.degrees(0, &mut degrees).unwrap();
    let degrees: Vec<u32> = degrees.iter().map(|&degree| degree as u32).collect();
    let mut scores = vec![1.0 / graph.vertices() as f64; vertices];
    let mut signals: Vec<f64> = scores
        .iter()
        .zip(&degrees)
        .map(|(score, &degree)| score / f64::from(degree.max(1)))
        .collect();

    // A window of an interval is an item of work; only the first intervals have several windows.
    let segments = shards.segments();
    let place = |index: usize| (segments[index].interval, segments[index].window);
    let mut items: Vec<std::ops::Range<usize>> = Vec::new();
    for index in 0..segments.len() {
        match items.last_mut() {
            Some(item) if place(item.start) == place(index) => item.end = index + 1,
            _ => items.push(index..index + 1),
        }
    }
    let sums: Vec<Mutex<Vec<f64>>> = (0..graph.intervals()).map(|_| Mutex::default()).collect();
    let unpack = Unpack::fastest();
    let (n, isolated) = (graph.vertices() as f64, (graph.vertices() - vertices as u64) as f64);
    let is_sink = |degree: &&u32| **degree == 0;
    let mut sinks = (degrees.iter().filter(is_sink).count() as f64 + isolated) / n;
    let mut durations = Vec::new();
    for _ in 0..supersteps {
        let begin = Instant::now();
        let share = (0.15 + 0.85 * sinks) / n;
        let add =
            |item: usize, (plain, own): &mut (Vec<u8>, Vec<f64>)| -> brimful_graph::Result<()> {
                own.clear();
                own.resize(1 << bits, 0.0);
                for index in items[item].clone() {
                    let unit = units[shards.unit(index)].bytes();
                    shards.decode(index, unit, None, unpack, plain, |base, keys, _| {
                        scatter(keys, bits, &signals[base as usize..], own, |signal, sum| {
                            *sum += signal
                        })
                    })?;
                }
                let mut total = sums[segments[items[item].start].interval as usize].lock().unwrap();
                if total.is_empty() {
                    std::mem::swap(&mut *total, own);
                } else {
                    total.iter_mut().zip(&*own).for_each(|(total, sum)| *total += sum);
                }
                Ok(())
            };
        resources.parallel_map(items.len(), add).unwrap();
        let of_intervals = scores.chunks_mut(1 << bits).zip(signals.chunks_mut(1 << bits));
        let parts: Vec<_> = of_intervals.zip(degrees.chunks(1 << bits)).map(Mutex::new).collect();
        let collect = |interval: usize, (): &mut ()| -> brimful_graph::Result<(f64, f64)> {
            let mut part = parts[interval].lock().unwrap();
            let ((scores, signals), degrees) = &mut *part;
            let mut sums = sums[interval].lock().unwrap();
            let vertices =
                scores.iter_mut().zip(signals.iter_mut()).zip(degrees.iter()).zip(sums.iter());
            let (mut mass, mut change) = (0.0, 0.0);
            for (((score, signal), &degree), sum) in vertices {
                let new = share + 0.85 * sum;
                change += (new - *score).abs();
                if degree == 0 {
                    mass += new;
                } else {
                    *signal = new / f64::from(degree);
                }
                *score = new;
            }
            sums.clear();
            Ok((mass, change))
        };
        let totals = resources.parallel_map(parts.len(), collect).unwrap();
        sinks = totals.iter().map(|(mass, _)| mass).sum::<f64>() + isolated * share;
        assert!(totals.iter().map(|(_, change)| change).sum::<f64>() > 0.0);
        durations.push(begin.elapsed().as_secs_f64());
    }
    (durations, scores)
}
