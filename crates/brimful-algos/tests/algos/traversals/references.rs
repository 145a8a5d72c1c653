//! Different algorithms with the same results, on edges in memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Case;

/// Distances in edges from the nearest of `sources`.
pub(crate) fn levels(case: &Case, sources: &[usize]) -> Vec<Option<u64>> {
    let mut level = vec![None; case.out.len()];
    sources.iter().for_each(|source| level[*source] = Some(0));
    let mut queue: VecDeque<usize> = sources.iter().copied().collect();
    while let Some(vertex) = queue.pop_front() {
        for &(target, _) in &case.out[vertex] {
            if level[target].is_none() {
                level[target] = level[vertex].map(|level: u64| level + 1);
                queue.push_back(target);
            }
        }
    }
    level
}

/// Dijkstra; weights are whole numbers, so that sums are exact.
pub(crate) fn distances(case: &Case, sources: &[usize]) -> Vec<Option<u64>> {
    let mut distance = vec![None; case.out.len()];
    let mut heap = BinaryHeap::from_iter(sources.iter().map(|source| (Reverse(0), *source)));
    while let Some((Reverse(length), vertex)) = heap.pop() {
        if distance[vertex].is_some() {
            continue;
        }
        distance[vertex] = Some(length);
        heap.extend(
            case.out[vertex]
                .iter()
                .map(|&(target, weight)| (Reverse(length + weight as u64), target)),
        );
    }
    distance
}

/// Label propagation, computed from its definition.
pub(crate) fn propagated(case: &Case, undirected: bool, supersteps: u64) -> Vec<u64> {
    let mut around = vec![Vec::new(); case.out.len()];
    for (vertex, targets) in case.out.iter().enumerate() {
        for (target, _) in targets {
            around[vertex].push(*target);
            if !undirected {
                around[*target].push(vertex);
            }
        }
    }
    let mut labels: Vec<u64> = (0..case.out.len() as u64).collect();
    for _ in 0..supersteps {
        let gather = |(vertex, neighbors): (usize, &Vec<usize>)| {
            let mut counts = std::collections::BTreeMap::<u64, usize>::new();
            neighbors
                .iter()
                .for_each(|neighbor| *counts.entry(labels[*neighbor]).or_default() += 1);
            let best = counts.into_iter().max_by_key(|(label, count)| (*count, Reverse(*label)));
            best.map_or(labels[vertex], |(label, _)| label)
        };
        labels = around.iter().enumerate().map(gather).collect();
    }
    labels
}
