//! The policy for self-loops and for edges between the same two vertices.
//!
//! Edges come sorted by (source, target), with equal edges together and in order of weight bits;
//! the result therefore depends on the edges and their positions in the input alone. An undirected
//! graph supplies both directions of an edge; both are treated alike and counted once. Invariant:
//! the number of edges in is the sum of edges out, self-loops dropped and duplicates dropped.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input_position::{PositionedEdge, UNKNOWN};

/// The policy for edges from a vertex to itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelfLoops {
    /// Keep them.
    #[default]
    Keep,
    /// Drop them; their vertices stay.
    Drop,
}

/// The policy for edges with the same source and target, whatever their weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Duplicates {
    /// Keep them all.
    #[default]
    Keep,
    /// Keep the first edge in the input; of edges without positions, the one with the smallest
    /// weight bits.
    Drop,
    /// Keep one edge with the sum of the weights. An edge without a weight counts 1, so that the
    /// graph gets the number of edges as weights.
    Sum,
    /// Keep the edge with the smallest weight; without weights the same as `Drop`.
    Min,
}

/// The policy for self-loops and duplicates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// For edges from a vertex to itself.
    pub self_loops: SelfLoops,
    /// For repeated edges.
    pub duplicates: Duplicates,
}

impl SelfLoops {
    /// The policy called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(Self::Keep),
            "drop" => Ok(Self::Drop),
            _ => Err(Error::Usage(format!(
                "self-loops must be kept or dropped, not {name:?}; choose keep or drop"
            ))),
        }
    }
}

impl Duplicates {
    /// The policy called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(Self::Keep),
            "drop" => Ok(Self::Drop),
            "sum" => Ok(Self::Sum),
            "min" => Ok(Self::Min),
            _ => {
                let problem =
                    format!("duplicates cannot be {name:?}; choose one of: keep, drop, sum, min");
                Err(Error::Usage(problem))
            }
        }
    }
}

impl Policy {
    /// True if self-loops are dropped.
    pub fn drops_self_loops(self) -> bool {
        self.self_loops == SelfLoops::Drop
    }

    /// True if this policy may drop or merge edges; the import then reports the input position of
    /// the first.
    pub fn leaves_out(self) -> bool {
        self != Self::default()
    }

    /// True if edges with the same ends are merged.
    pub fn merges(self) -> bool {
        self.duplicates != Duplicates::Keep
    }

    /// True if stored edges have weights, given whether input edges have weights.
    pub fn weighted(self, input: bool) -> bool {
        input || self.duplicates == Duplicates::Sum
    }
}

/// The edges that a policy saw and dropped; an undirected edge counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Edges equal to an earlier one.
    pub duplicates: u64,
    /// Dropped self-loops.
    pub self_loops_dropped: u64,
    /// Edges merged into an earlier one, without dropped self-loops.
    pub duplicates_dropped: u64,
    /// The first edge in the input that was merged into an earlier one, if positions are known.
    pub first_duplicate: Option<PositionedEdge>,
}

impl Applied {
    /// Adds the counts of other edges, which are equal to none of these.
    pub(crate) fn add(&mut self, others: Self) {
        self.duplicates += others.duplicates;
        self.self_loops_dropped += others.self_loops_dropped;
        self.duplicates_dropped += others.duplicates_dropped;
        self.first_duplicate =
            PositionedEdge::earlier(self.first_duplicate, others.first_duplicate);
    }
}

/// Source, target and, in a weighted graph, weight.
pub type Edge = (u64, u64, Option<f64>);

/// Applies a policy to a sorted stream of edges.
///
/// An edge that later edges may change stays pending until another pair of ends follows. So each
/// pushed edge releases at most one edge: itself or the pending one.
///
/// ```
/// use brimful_graph::input_position::UNKNOWN;
/// use brimful_graph::input::policy::{Duplicates, Merger, Policy};
/// let policy = Policy { duplicates: Duplicates::Sum, ..Policy::default() };
/// let mut merger = Merger::new(policy, false);
/// let edges = [(0, 1, Some(2.0)), (0, 1, Some(3.0)), (0, 4, Some(1.0))];
/// let mut out: Vec<_> = edges.into_iter().filter_map(|edge| merger.push(edge, UNKNOWN)).collect();
/// out.extend(merger.finish());
/// assert_eq!(out, [(0, 1, Some(5.0)), (0, 4, Some(1.0))]);
/// assert_eq!((merger.applied().duplicates, merger.applied().duplicates_dropped), (1, 1));
/// ```
#[derive(Debug)]
pub struct Merger {
    policy: Policy,
    undirected: bool,
    /// The ends of the last edge.
    last: Option<(u64, u64)>,
    /// The edge that may still change.
    pending: Option<Edge>,
    /// The least input position of the edges between its ends.
    earliest: u64,
    applied: Applied,
}

impl Merger {
    /// A merger. It expects both directions of every edge of an undirected graph.
    pub fn new(policy: Policy, undirected: bool) -> Self {
        let applied = Applied::default();
        Self { policy, undirected, last: None, pending: None, earliest: UNKNOWN, applied }
    }

    /// True if every edge passes through unchanged, so that [`Merger::note`] can replace
    /// [`Merger::push`].
    #[inline]
    pub fn keeps_all(&self) -> bool {
        !self.policy.leaves_out()
    }

    /// True if edges with these ends pass through unchanged, so that [`Merger::note`] can replace
    /// [`Merger::push`].
    #[inline]
    pub fn keeps(&self, source: u64, target: u64) -> bool {
        !self.policy.merges() && (source != target || self.policy.self_loops == SelfLoops::Keep)
    }

    /// Counts `times` edges with these ends; true if the previous edge had the same ends.
    #[inline]
    pub fn note(&mut self, source: u64, target: u64, times: u64) -> bool {
        let repeated = self.last == Some((source, target));
        self.applied.duplicates += (times - u64::from(!repeated)) * self.counted(source, target);
        self.last = Some((source, target));
        repeated
    }

    /// 1 if an edge with these ends is counted, else 0: only one direction of an undirected edge
    /// counts.
    #[inline]
    fn counted(&self, source: u64, target: u64) -> u64 {
        u64::from(!self.undirected || source <= target)
    }

    /// Takes the next edge and its position; returns the edge that is complete, if any.
    pub fn push(&mut self, edge: Edge, position: u64) -> Option<Edge> {
        let (source, target, weight) = edge;
        let repeated = self.note(source, target, 1);
        if self.keeps(source, target) {
            return Some(edge);
        }
        if source == target && self.policy.self_loops == SelfLoops::Drop {
            self.applied.self_loops_dropped += 1;
            return self.pending.take();
        }
        if repeated {
            self.applied.duplicates_dropped += self.counted(source, target);
            self.merge(weight, position < self.earliest);
            // Equal edges come in any order of positions; the one with the least position stays, so
            // the larger of two was left out.
            let left_out = PositionedEdge::new(position.max(self.earliest), (source, target));
            self.applied.first_duplicate =
                PositionedEdge::earlier(self.applied.first_duplicate, left_out);
            self.earliest = self.earliest.min(position);
            return None;
        }
        self.earliest = position;
        let weight =
            if self.policy.duplicates == Duplicates::Sum { weight.or(Some(1.0)) } else { weight };
        self.pending.replace((source, target, weight))
    }

    /// The pending edge. Call it once, after the last edge.
    pub fn finish(&mut self) -> Option<Edge> {
        self.pending.take()
    }

    /// The counts so far.
    pub fn applied(&self) -> Applied {
        self.applied
    }

    /// Merges a repeated edge into the pending one; `is_earlier`: it comes first in the input.
    fn merge(&mut self, weight: Option<f64>, is_earlier: bool) {
        let Some((_, _, pending)) = &mut self.pending else {
            return;
        };
        match self.policy.duplicates {
            Duplicates::Sum => *pending = pending.map(|sum| sum + weight.unwrap_or(1.0)),
            Duplicates::Drop if is_earlier => *pending = weight,
            // The first edge by weight bits need not be the least: they put negative weights last.
            Duplicates::Min => {
                *pending = pending.map(|least| weight.map_or(least, |weight| least.min(weight)))
            }
            Duplicates::Keep | Duplicates::Drop => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn apply(policy: Policy, undirected: bool, edges: &[Edge]) -> (Vec<Edge>, Applied) {
        let mut stored: Vec<Edge> = edges.to_vec();
        if undirected {
            stored.extend(edges.iter().filter(|(s, t, _)| s != t).map(|&(s, t, w)| (t, s, w)));
        }
        stored.sort_by_key(|&(s, t, w)| (s, t, w.map(f64::to_bits)));
        let mut merger = Merger::new(policy, undirected);
        let mut out: Vec<Edge> =
            stored.into_iter().filter_map(|edge| merger.push(edge, UNKNOWN)).collect();
        out.extend(merger.finish());
        (out, merger.applied())
    }

    fn policy(self_loops: SelfLoops, duplicates: Duplicates) -> Policy {
        Policy { self_loops, duplicates }
    }

    const WEIGHTED: [Edge; 7] = [
        (2, 2, Some(9.0)),
        (0, 1, Some(5.0)),
        (1, 0, Some(4.0)),
        (0, 1, Some(-2.0)),
        (2, 2, Some(1.0)),
        (0, 1, Some(5.0)),
        (3, 1, Some(0.5)),
    ];

    #[test]
    fn keep_passes_everything_on_and_counts() {
        let (out, applied) = apply(Policy::default(), false, &WEIGHTED);
        assert_eq!(out.len(), 7);
        assert_eq!(
            (applied.duplicates, applied.duplicates_dropped, applied.self_loops_dropped),
            (3, 0, 0)
        );
        let (out, applied) = apply(Policy::default(), true, &WEIGHTED);
        assert_eq!((out.len(), applied.duplicates), (12, 4));
    }

    #[test]
    fn duplicates_drop_sum_and_min() {
        let kept = |duplicates, undirected| {
            apply(policy(SelfLoops::Keep, duplicates), undirected, &WEIGHTED).0
        };
        let w = Some;
        assert_eq!(
            kept(Duplicates::Drop, false),
            [(0, 1, w(5.0)), (1, 0, w(4.0)), (2, 2, w(1.0)), (3, 1, w(0.5))]
        );
        assert_eq!(
            kept(Duplicates::Min, false),
            [(0, 1, w(-2.0)), (1, 0, w(4.0)), (2, 2, w(1.0)), (3, 1, w(0.5))]
        );
        assert_eq!(
            kept(Duplicates::Sum, false),
            [(0, 1, w(8.0)), (1, 0, w(4.0)), (2, 2, w(10.0)), (3, 1, w(0.5))]
        );
        assert_eq!(
            kept(Duplicates::Sum, true),
            [(0, 1, w(12.0)), (1, 0, w(12.0)), (1, 3, w(0.5)), (2, 2, w(10.0)), (3, 1, w(0.5))]
        );
    }

    #[test]
    fn the_first_edge_in_the_input_stays() {
        let mut merger = Merger::new(policy(SelfLoops::Keep, Duplicates::Drop), false);
        for (weight, position) in [(1.0, 2), (2.5, 1), (9.0, 3)] {
            assert_eq!(merger.push((4, 1, Some(weight)), position), None);
        }
        assert_eq!(merger.finish(), Some((4, 1, Some(2.5))));
    }

    #[test]
    fn the_first_duplicate_is_the_second_of_its_kind_that_comes_first() {
        let first = |policy, undirected, edges: &[(u64, u64, u64)]| {
            let mut merger = Merger::new(policy, undirected);
            for &(s, t, position) in edges {
                merger.push((s, t, None), position);
            }
            merger.applied().first_duplicate.map(|first| (first.position, first.ends))
        };
        let drop = policy(SelfLoops::Keep, Duplicates::Drop);
        let orders = [[2, 5, 9], [2, 9, 5], [5, 2, 9], [5, 9, 2], [9, 2, 5], [9, 5, 2]];
        for positions in orders {
            let mut edges = vec![(0, 1, 4), (0, 1, 7)];
            edges.extend(positions.map(|position| (3, 3, position)));
            assert_eq!(first(drop, false, &edges), Some((5, (3, 3))), "{positions:?}");
            // Dropped self-loops do not count as merged edges.
            let both = policy(SelfLoops::Drop, Duplicates::Drop);
            assert_eq!(first(both, false, &edges), Some((7, (0, 1))));
            assert_eq!(first(Policy::default(), false, &edges), None);
        }
        assert_eq!(
            first(drop, true, &[(1, 2, 8), (1, 2, 8), (2, 1, 8), (2, 1, 8)]),
            Some((8, (1, 2)))
        );
        assert_eq!(first(drop, false, &[(1, 2, 8), (2, 1, 9)]), None);
        assert_eq!(first(drop, false, &[(1, 2, UNKNOWN), (1, 2, UNKNOWN)]), None);
    }

    #[test]
    fn without_weights_the_sum_is_the_number() {
        let edges = [(0, 1, None), (0, 1, None), (4, 4, None), (0, 1, None)];
        let sum = policy(SelfLoops::Keep, Duplicates::Sum);
        assert!(sum.weighted(false) && !Policy::default().weighted(false));
        let (out, _) = apply(sum, false, &edges);
        assert_eq!(out, [(0, 1, Some(3.0)), (4, 4, Some(1.0))]);
        let (out, applied) = apply(policy(SelfLoops::Keep, Duplicates::Min), false, &edges);
        assert_eq!(out, [(0, 1, None), (4, 4, None)]);
        assert_eq!(applied, Applied { duplicates: 2, duplicates_dropped: 2, ..Applied::default() });
    }

    #[test]
    fn dropped_self_loops_are_no_dropped_duplicates() {
        let (out, applied) = apply(policy(SelfLoops::Drop, Duplicates::Drop), false, &WEIGHTED);
        assert_eq!(out.len(), 3);
        assert_eq!(
            (applied.duplicates, applied.duplicates_dropped, applied.self_loops_dropped),
            (3, 2, 2)
        );
        let only_loops = [(7, 7, None), (7, 7, None)];
        let (out, applied) = apply(policy(SelfLoops::Drop, Duplicates::Sum), true, &only_loops);
        assert_eq!((out.len(), applied.duplicates, applied.self_loops_dropped), (0, 1, 2));
    }

    #[test]
    fn nothing_is_lost_in_silence_under_any_policy() {
        let mut state = 5;
        let mut next = |bound: u64| {
            state = crate::random::splitmix64(state);
            state % bound
        };
        let edges: Vec<Edge> =
            (0..500).map(|_| (next(9), next(9), Some(next(4) as f64 - 1.0))).collect();
        let mut weights = BTreeMap::<(u64, u64), Vec<f64>>::new();
        edges.iter().for_each(|&(s, t, w)| weights.entry((s, t)).or_default().extend(w));
        for self_loops in [SelfLoops::Keep, SelfLoops::Drop] {
            for duplicates in [Duplicates::Keep, Duplicates::Drop, Duplicates::Sum, Duplicates::Min]
            {
                for undirected in [false, true] {
                    let (out, applied) = apply(policy(self_loops, duplicates), undirected, &edges);
                    let out_edges =
                        out.iter().filter(|(s, t, _)| !undirected || s <= t).count() as u64;
                    assert_eq!(
                        500,
                        out_edges + applied.self_loops_dropped + applied.duplicates_dropped
                    );
                    if undirected {
                        let mut turned: Vec<Edge> =
                            out.iter().map(|&(s, t, w)| (t, s, w)).collect();
                        turned.sort_by_key(|&(s, t, w)| (s, t, w.map(f64::to_bits)));
                        assert_eq!(out, turned, "both directions are treated alike");
                        continue;
                    }
                    for &(s, t, w) in out.iter().filter(|_| duplicates != Duplicates::Keep) {
                        let all = &weights[&(s, t)];
                        let expected = match duplicates {
                            Duplicates::Sum => all.iter().sum(),
                            Duplicates::Min => all.iter().copied().fold(f64::INFINITY, f64::min),
                            _ => all.iter().copied().min_by_key(|w| w.to_bits()).unwrap(),
                        };
                        assert_eq!(w, Some(expected));
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_understood() {
        assert_eq!(SelfLoops::from_name("drop").unwrap(), SelfLoops::Drop);
        assert_eq!(Duplicates::from_name("sum").unwrap(), Duplicates::Sum);
        assert!(
            Duplicates::from_name("max").unwrap_err().to_string().contains("keep, drop, sum, min")
        );
        assert!(SelfLoops::from_name("").is_err());
    }
}
