//! Degrees, weights and external ids of a graph's vertices, read in windows, in the order of
//! vertices.

use std::ops::Range;

use brimful_engine::vertex::attributes::VertexAttributes;
use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;

use crate::error::Result;
use crate::numeric::erased::ProgramTraits;

/// Degrees, sums of weights and external ids, read a window at a time on demand.
pub(super) struct Attributes {
    vertices: Range<usize>,
    window: VertexAttributes,
    needs_degrees: bool,
    is_weighted: bool,
    offsets: Option<IdOffsets>,
}

const WINDOW: usize = 1 << 14;

impl Attributes {
    pub(super) fn new(graph: &Graph, traits: ProgramTraits, is_weighted: bool) -> Result<Self> {
        let offsets = traits.needs_external.then(|| graph.id_offsets()).transpose()?;
        let (window, needs_degrees) = (VertexAttributes::default(), traits.needs_degrees);
        Ok(Self { vertices: 0..0, window, needs_degrees, is_weighted, offsets })
    }

    /// The strength of a vertex, and the offset of its external id; 0 if not needed.
    pub(super) fn of(&mut self, graph: &Graph, id: u64) -> Result<(f64, u64)> {
        let id = id as usize;
        if !self.vertices.contains(&id) {
            self.vertices = id..(graph.vertices() as usize).min(id + WINDOW);
            match (self.needs_degrees, self.is_weighted) {
                (false, _) => {}
                (true, false) => self.window.read_degrees(graph, &self.vertices)?,
                (true, true) => self.window.read_strengths(graph, &self.vertices)?,
            }
            self.window.read_external(graph, self.offsets, &self.vertices)?;
        }
        let vertex = self.window.vertex(self.vertices.start, id - self.vertices.start);
        Ok((vertex.strength, vertex.external))
    }
}
