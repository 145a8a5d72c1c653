//! Refinement of communities into connected parts, as Leiden's method has it (Traag, Waltman, van
//! Eck 2019, algorithm A.2).
//!
//! Every vertex begins as a part of its own. In the order of their numbers, vertices that are still
//! alone, and well connected to their community, join a well-connected part of it: the one with the
//! greatest gain of modularity, or the least on a tie. A set of strength k in a community of
//! strength K is well connected if arcs of a weight of at least `g k (K - k) / 2m` lead from it to
//! the rest. Invariant: a part is connected, because a vertex joins only parts that an arc leads
//! to.
//!
//! A later move may still take away the part that held a community together. An iteration therefore
//! divides its communities into connected parts, which never lowers the modularity.

use crate::Result;
use crate::communities::lists::ListBudget;
use crate::communities::moving::{Level, Weights};
use crate::spanning_forest::root;

impl Level<'_> {
    /// The parts of communities: for each vertex, a number below the number of vertices.
    pub(super) fn refine(
        &self,
        community: &[u32],
        scale: f64,
        budget: &ListBudget<'_>,
    ) -> Result<Vec<u32>> {
        let wholes = self.strengths_of(community);
        let mut parts: Vec<u32> = (0..self.len() as u32).collect();
        // For each part: its strength, the weight of its arcs to the rest of the community, and
        // whether it has several vertices.
        let mut strengths = self.strengths.clone();
        let mut outside = vec![0.0; self.len()];
        let mut joined = vec![false; self.len()];
        self.lists.for_each(budget.job(), |vertex, list| {
            list.each(|neighbor, weight| {
                if neighbor != vertex && community[neighbor] == community[vertex] {
                    outside[vertex] += weight;
                }
            })
        })?;
        let mut weights = Weights::new(self.len());
        self.lists.for_each(budget.job(), |vertex, list| {
            if joined[vertex] {
                return Ok(());
            }
            let (own, strength) = (community[vertex], self.strengths[vertex]);
            let whole = wholes[own as usize];
            let is_well_connected = |part: usize, strengths: &[f64], outside: &[f64]| {
                outside[part] >= scale * strengths[part] * (whole - strengths[part])
            };
            if !is_well_connected(vertex, &strengths, &outside) {
                return Ok(());
            }
            list.each(|neighbor, weight| {
                if neighbor != vertex && community[neighbor] == own {
                    weights.add(parts[neighbor], weight);
                }
            })?;
            let (mut best, mut most) = (None, 0.0);
            for &part in weights.reached() {
                let at = part as usize;
                let adds = weights.to(part) - scale * strength * strengths[at];
                let is_better = adds > most || adds == most && best.is_some_and(|best| part < best);
                if is_better && is_well_connected(at, &strengths, &outside) {
                    (best, most) = (Some(part), adds);
                }
            }
            if let Some(part) = best {
                let at = part as usize;
                parts[vertex] = part;
                strengths[at] += strength;
                outside[at] += outside[vertex] - 2.0 * weights.to(part);
                joined[at] = true;
            }
            weights.clear();
            Ok(())
        })?;
        Ok(parts)
    }

    /// The connected parts of communities: for each vertex the least number in its part.
    pub(super) fn connected_parts(
        &self,
        community: &[u32],
        budget: &ListBudget<'_>,
    ) -> Result<Vec<u32>> {
        let mut parts: Vec<u32> = (0..self.len() as u32).collect();
        self.lists.for_each(budget.job(), |vertex, list| {
            list.each(|neighbor, _| {
                if community[neighbor] == community[vertex] {
                    let (one, other) =
                        (root(&mut parts, vertex as u32), root(&mut parts, neighbor as u32));
                    parts[one.max(other) as usize] = one.min(other);
                }
            })
        })?;
        for vertex in 0..self.len() as u32 {
            parts[vertex as usize] = root(&mut parts, vertex);
        }
        Ok(parts)
    }
}
