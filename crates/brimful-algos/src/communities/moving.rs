//! A level of the hierarchy, and the moves of its vertices between communities.
//!
//! Let S be the strength of a community without vertex v, w the weight of the arcs from v to it,
//! and k the strength of v. Then `w - g k S / 2m` is half of the gain of 2m times the modularity if
//! v is in the community; v moves to the community with the greatest gain. Invariant: one vertex
//! moves at a time, in the order of the vertices' numbers, so the modularity never falls.

use crate::Result;
use crate::communities::lists::{List, ListBudget, Lists};

/// A move must add more than this share of the strength of a vertex: less is rounding.
const MARGIN: f64 = 1e-12;

/// Weights of the arcs from a vertex to communities.
pub(super) struct Weights {
    /// By community; 0 for communities that are not in `reached`.
    of: Vec<f64>,
    reached: Vec<u32>,
}

impl Weights {
    pub(super) fn new(communities: usize) -> Self {
        Self { of: vec![0.0; communities], reached: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, community: u32, weight: f64) {
        // An arc of weight 0 reaches no community: a sum of 0 marks those not reached.
        if weight > 0.0 {
            let sum = &mut self.of[community as usize];
            if *sum == 0.0 {
                self.reached.push(community);
            }
            *sum += weight;
        }
    }

    #[inline]
    pub(super) fn to(&self, community: u32) -> f64 {
        self.of[community as usize]
    }

    /// The communities that arcs lead to, each once.
    pub(super) fn reached(&self) -> &[u32] {
        &self.reached
    }

    pub(super) fn clear(&mut self) {
        for community in self.reached.drain(..) {
            self.of[community as usize] = 0.0;
        }
    }
}

/// The vertices of a level: those of the graph, or parts of communities of the level before.
pub(super) struct Level<'r> {
    pub(super) lists: Lists<'r>,
    /// For each vertex, the sum of the weights of its arcs.
    pub(super) strengths: Vec<f64>,
}

/// The moves of vertices.
#[derive(Default)]
pub(super) struct Moves {
    /// Number of moves.
    pub(super) count: u64,
    /// Entries of lists read.
    pub(super) entries: u64,
}

impl<'r> Level<'r> {
    /// The level of these lists.
    pub(super) fn new(lists: Lists<'r>, budget: &ListBudget<'_>) -> Result<Self> {
        let mut strengths = vec![0.0; lists.len()];
        lists.for_each(budget.job(), |vertex, list| {
            list.each(|_, weight| strengths[vertex] += weight)
        })?;
        Ok(Self { lists, strengths })
    }

    /// Number of vertices.
    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Entries of all lists.
    pub(super) fn entries(&self) -> u64 {
        self.lists.entries()
    }

    /// The sum of the strengths of all vertices.
    pub(super) fn strength(&self) -> f64 {
        self.strengths.iter().sum()
    }

    /// For each community, the sum of the strengths of its vertices.
    pub(super) fn strengths_of(&self, community: &[u32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.len()];
        for (own, strength) in community.iter().zip(&self.strengths) {
            sums[*own as usize] += strength;
        }
        sums
    }

    /// Moves vertices to the communities of neighbors until a sweep over all adds no more than
    /// `least`.
    /// Numbers of communities are below that of vertices; `scale` is g / 2m.
    pub(super) fn move_vertices(
        &self,
        community: &mut [u32],
        scale: f64,
        least: f64,
        budget: &ListBudget<'_>,
    ) -> Result<Moves> {
        let mut sweep = Sweep {
            strengths: &self.strengths,
            sums: self.strengths_of(community),
            community,
            scale,
            weights: Weights::new(self.len()),
            due: vec![true; self.len()],
        };
        let (mut moves, mut visits_all) = (Moves::default(), true);
        loop {
            let (mut gained, before) = (0.0, moves.count);
            self.lists.for_each(budget.job(), |vertex, list| {
                if let Some(gain) = sweep.visit(vertex, &list)? {
                    gained += gain;
                    moves.count += 1;
                }
                Ok(())
            })?;
            moves.entries += self.entries();
            if gained > least && moves.count > before {
                visits_all = false;
            } else if visits_all {
                return Ok(moves);
            } else {
                // Communities that shrank may attract vertices whose neighbors have not moved.
                sweep.due.fill(true);
                visits_all = true;
            }
        }
    }

    /// The level whose vertices are `parts`, numbered below `count`.
    pub(super) fn contract(
        &self,
        parts: &[u32],
        count: usize,
        budget: &'r ListBudget<'_>,
    ) -> Result<Self> {
        let mut weights = Weights::new(count);
        let lists = self.lists.next(count, budget, |links| {
            self.lists.for_each(budget.job(), |vertex, list| {
                list.each(|neighbor, weight| weights.add(parts[neighbor], weight))?;
                for part in weights.reached() {
                    links.push(parts[vertex], *part, weights.to(*part))?;
                }
                weights.clear();
                Ok(())
            })
        })?;
        let mut strengths = vec![0.0; count];
        for (part, strength) in parts.iter().zip(&self.strengths) {
            strengths[*part as usize] += strength;
        }
        Ok(Self { lists, strengths })
    }
}

/// The state of moving.
struct Sweep<'s> {
    strengths: &'s [f64],
    /// For each community, the sum of the strengths of its vertices.
    sums: Vec<f64>,
    community: &'s mut [u32],
    scale: f64,
    weights: Weights,
    /// True if a neighbor of the vertex has moved since the last visit.
    due: Vec<bool>,
}

impl Sweep<'_> {
    /// Moves a vertex to the community with the greatest gain; returns half of the gain if it
    /// moves.
    fn visit(&mut self, vertex: usize, list: &List<'_>) -> Result<Option<f64>> {
        if !std::mem::replace(&mut self.due[vertex], false) {
            return Ok(None);
        }
        let (own, strength) = (self.community[vertex], self.strengths[vertex]);
        list.each(|neighbor, weight| {
            if neighbor != vertex {
                self.weights.add(self.community[neighbor], weight);
            }
        })?;
        self.sums[own as usize] -= strength;
        let value = |community: u32| {
            self.weights.to(community) - self.scale * strength * self.sums[community as usize]
        };
        let stays = value(own);
        let (mut best, mut most) = (own, stays + MARGIN * strength);
        for &community in self.weights.reached() {
            let adds = value(community);
            if adds > most || adds == most && best != own && community < best {
                (best, most) = (community, adds);
            }
        }
        self.weights.clear();
        self.sums[best as usize] += strength;
        if best == own {
            return Ok(None);
        }
        self.community[vertex] = best;
        list.each(|neighbor, _| {
            if self.community[neighbor] != best {
                self.due[neighbor] = true;
            }
        })?;
        Ok(Some(most - stays))
    }
}
