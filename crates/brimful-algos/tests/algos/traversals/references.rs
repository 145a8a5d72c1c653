//! Different algorithms with the same results, on edges in memory.

use brimful_graph::random::splitmix64;
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

/// Numbers of shortest paths, level by level.
pub(crate) fn path_counts(case: &Case, sources: &[usize]) -> Vec<u64> {
    let level = levels(case, sources);
    let mut order: Vec<usize> =
        (0..level.len()).filter(|vertex| level[*vertex].is_some()).collect();
    order.sort_by_key(|vertex| level[*vertex]);
    let mut counts = vec![0; level.len()];
    sources.iter().for_each(|source| counts[*source] = 1);
    for vertex in order {
        for &(target, _) in &case.out[vertex] {
            if level[target] == level[vertex].map(|level| level + 1) {
                counts[target] += counts[vertex];
            }
        }
    }
    counts
}

/// Core numbers, by removing one vertex of least degree at a time.
pub(crate) fn core_numbers(case: &Case) -> Vec<u64> {
    let mut neighbors = vec![Vec::new(); case.out.len()];
    for (source, targets) in case.out.iter().enumerate() {
        for &(target, _) in targets.iter().filter(|(target, _)| *target != source) {
            neighbors[source].push(target);
            if case.graph.description().directed {
                neighbors[target].push(source);
            }
        }
    }
    let mut left: Vec<u64> = neighbors.iter().map(|targets| targets.len() as u64).collect();
    let (mut core, mut cores) = (0, vec![None; left.len()]);
    while let Some(next) = (0..left.len()).filter(|v| cores[*v].is_none()).min_by_key(|v| left[*v])
    {
        core = left[next].max(core);
        cores[next] = Some(core);
        neighbors[next].iter().for_each(|target| left[*target] = left[*target].saturating_sub(1));
    }
    cores.into_iter().map(Option::unwrap).collect()
}

/// For each vertex the smallest of its component (Tarjan 1972, with a stack of its own).
pub(crate) fn strong_components(case: &Case) -> Vec<Option<u64>> {
    let n = case.out.len();
    let (mut number, mut low, mut name) = (vec![usize::MAX; n], vec![0; n], vec![None; n]);
    let (mut open, mut next) = (Vec::new(), 0);
    for root in 0..n {
        let mut path = if number[root] == usize::MAX { vec![(root, 0)] } else { Vec::new() };
        while let Some((vertex, edge)) = path.pop() {
            if edge == 0 {
                (number[vertex], low[vertex]) = (next, next);
                next += 1;
                open.push(vertex);
            }
            if let Some(&(target, _)) = case.out[vertex].get(edge) {
                path.push((vertex, edge + 1));
                if number[target] == usize::MAX {
                    path.push((target, 0));
                } else if name[target].is_none() {
                    low[vertex] = low[vertex].min(number[target]);
                }
                continue;
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[vertex]);
            }
            if low[vertex] == number[vertex] {
                let first = open.iter().rposition(|member| *member == vertex).unwrap();
                let members = open.split_off(first);
                let smallest = members.iter().min().map(|smallest| *smallest as u64);
                members.into_iter().for_each(|member| name[member] = smallest);
            }
        }
    }
    name
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

/// First-fit colors of one vertex after the other, in the order of the algorithm's header.
pub(crate) fn first_fit(case: &Case) -> Vec<u64> {
    let mut around = vec![Vec::new(); case.out.len()];
    for (source, targets) in case.out.iter().enumerate() {
        for &(target, _) in targets.iter().filter(|(target, _)| *target != source) {
            around[source].push(target);
            around[target].push(source);
        }
    }
    let priority = |vertex: &usize| {
        // Each edge of an undirected graph is in `out` in both directions already.
        let degree = around[*vertex].len() / if case.graph.description().directed { 1 } else { 2 };
        (u64::BITS - (degree as u64).leading_zeros(), splitmix64(*vertex as u64))
    };
    let mut order: Vec<usize> = (0..around.len()).collect();
    order.sort_by_key(|vertex| Reverse(priority(vertex)));
    let mut colors = vec![None; around.len()];
    for vertex in order {
        let taken: Vec<u64> = around[vertex].iter().filter_map(|other| colors[*other]).collect();
        colors[vertex] = (0..).find(|color| !taken.contains(color));
    }
    colors.into_iter().map(Option::unwrap).collect()
}
