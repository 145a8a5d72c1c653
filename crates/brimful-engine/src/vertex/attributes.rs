//! Degrees, strengths and external ids of consecutive vertices, as far as a program needs them.
//!
//! Invariant: a value that the program does not need is 0.

use std::ops::Range;

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;

use crate::error::Result;
use crate::vertex::program::Vertex;

/// Degrees, strengths and external ids of consecutive vertices; empty where none were read.
#[derive(Debug, Default)]
pub struct VertexAttributes {
    pub(crate) degrees: Vec<u64>,
    pub(crate) strengths: Vec<f64>,
    pub(crate) external: Vec<u64>,
}

impl VertexAttributes {
    /// Reads the out-degrees of `vertices`.
    ///
    /// # Errors
    /// Corruption and I/O errors, as for all reads.
    pub fn read_degrees(&mut self, graph: &Graph, vertices: &Range<usize>) -> Result<()> {
        self.degrees.resize(vertices.len(), 0);
        Ok(graph.degrees(vertices.start as u64, &mut self.degrees)?)
    }

    /// Reads the sums of outgoing weights of `vertices`.
    ///
    /// # Errors
    /// Also [`brimful_graph::Error::Usage`] if the graph has no weights.
    pub fn read_strengths(&mut self, graph: &Graph, vertices: &Range<usize>) -> Result<()> {
        self.strengths.resize(vertices.len(), 0.0);
        Ok(graph.strengths(vertices.start as u64, &mut self.strengths)?)
    }

    /// Reads the offsets of the external ids of `vertices`, if there are `offsets`.
    ///
    /// # Errors
    /// As [`VertexAttributes::read_degrees`].
    pub fn read_external(
        &mut self,
        graph: &Graph,
        offsets: Option<IdOffsets>,
        vertices: &Range<usize>,
    ) -> Result<()> {
        if let Some(offsets) = offsets {
            self.external.resize(vertices.len(), 0);
            graph.external_offsets(offsets, vertices.start as u64, &mut self.external)?;
        }
        Ok(())
    }

    /// Vertex `at` of those that were read, the first of which is `start`. Without weights, its
    /// strength is its degree.
    pub fn vertex(&self, start: usize, at: usize) -> Vertex {
        let degree = self.degrees.get(at).copied().unwrap_or(0);
        let strength = self.strengths.get(at).copied().unwrap_or(degree as f64);
        let external = self.external.get(at).copied().unwrap_or(0);
        Vertex { id: (start + at) as u64, degree, strength, external }
    }
}
