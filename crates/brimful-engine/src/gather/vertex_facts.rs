//! Degrees, strengths and external ids of consecutive vertices, as far as a program needs them.
//!
//! Invariant: a value that the program does not need is 0.

use std::ops::Range;

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;

use crate::error::Result;
use crate::vertex::gather::Gather;
use crate::vertex::program::Vertex;

/// Degrees, strengths and external ids of consecutive vertices; empty where the program needs none.
#[derive(Default)]
pub(super) struct VertexFacts {
    degrees: Vec<u64>,
    strengths: Vec<f64>,
    external: Vec<u64>,
}

impl VertexFacts {
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

    pub(super) fn read_external(
        &mut self,
        graph: &Graph,
        offsets: Option<IdOffsets>,
        range: &Range<usize>,
    ) -> Result<()> {
        if let Some(offsets) = offsets {
            self.external.resize(range.len(), 0);
            graph.external_offsets(offsets, range.start as u64, &mut self.external)?;
        }
        Ok(())
    }

    /// Vertex `at` of these, the first of which is `start`.
    pub(super) fn vertex(&self, start: usize, at: usize) -> Vertex {
        let degree = self.degrees.get(at).copied().unwrap_or(0);
        let strength = self.strengths.get(at).copied().unwrap_or(degree as f64);
        let external = self.external.get(at).copied().unwrap_or(0);
        Vertex { id: (start + at) as u64, degree, strength, external }
    }
}
