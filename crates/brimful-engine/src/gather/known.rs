//! What a program may know of consecutive vertices.
//!
//! Read from the graph where a program needs it. Invariant: what it does not need is 0.

use std::ops::Range;

use brimful_graph::Graph;

use super::Gather;
use crate::error::Result;
use crate::program::Vertex;

/// What is known of consecutive vertices; nothing where the program does not need it.
#[derive(Default)]
pub(super) struct Known {
    degrees: Vec<u64>,
    strengths: Vec<f64>,
    external: Vec<u64>,
}

impl Known {
    pub(super) fn read_degrees<G: Gather>(
        &mut self,
        graph: &Graph,
        weighted: bool,
        range: &Range<usize>,
    ) -> Result<()> {
        if G::NEEDS_DEGREES {
            self.degrees.resize(range.len(), 0);
            graph.degrees(range.start as u64, &mut self.degrees)?;
            if weighted {
                self.strengths.resize(range.len(), 0.0);
                graph.strengths(range.start as u64, &mut self.strengths)?;
            }
        }
        Ok(())
    }

    pub(super) fn read_external<G: Gather>(
        &mut self,
        graph: &Graph,
        smallest: u64,
        range: &Range<usize>,
    ) -> Result<()> {
        if G::NEEDS_EXTERNAL {
            self.external.resize(range.len(), 0);
            graph.external_ids(range.start as u64, &mut self.external)?;
            let id_type = graph.id_type();
            self.external.iter_mut().for_each(|id| *id = id_type.order_key(*id).wrapping_sub(smallest));
        }
        Ok(())
    }

    /// Vertex `at` of those that begin with `start`.
    pub(super) fn vertex(&self, start: usize, at: usize) -> Vertex {
        let degree = self.degrees.get(at).copied().unwrap_or(0);
        let strength = self.strengths.get(at).copied().unwrap_or(degree as f64);
        let external = self.external.get(at).copied().unwrap_or(0);
        Vertex { id: (start + at) as u64, degree, strength, external }
    }
}
