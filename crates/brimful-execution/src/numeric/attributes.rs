//! Degrees, weights and external ids of a graph's vertices, read in windows, in the order of
//! vertices.

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;

use crate::error::Result;
use crate::numeric::erased::ProgramTraits;

/// Degrees, sums of weights and external ids, read a window at a time on demand.
pub(super) struct Attributes {
    start: u64,
    strengths: Vec<f64>,
    external: Vec<u64>,
    needs_degrees: bool,
    is_weighted: bool,
    offsets: Option<IdOffsets>,
}

const WINDOW: u64 = 1 << 14;

impl Attributes {
    pub(super) fn new(graph: &Graph, facts: ProgramTraits, is_weighted: bool) -> Result<Self> {
        let offsets = facts.needs_external.then(|| graph.id_offsets()).transpose()?;
        let (strengths, external) = (Vec::new(), Vec::new());
        let needs_degrees = facts.needs_degrees;
        Ok(Self { start: 0, strengths, external, needs_degrees, is_weighted, offsets })
    }

    /// The strength of a vertex, and the offset of its external id; 0 if not needed.
    pub(super) fn of(&mut self, graph: &Graph, id: u64) -> Result<(f64, u64)> {
        let is_there =
            |start: u64, length: usize| length > 0 && (start..start + length as u64).contains(&id);
        if self.needs_degrees && !is_there(self.start, self.strengths.len())
            || self.offsets.is_some() && !is_there(self.start, self.external.len())
        {
            self.read(graph, id)?;
        }
        let at = (id - self.start) as usize;
        let strength = self.strengths.get(at).copied().unwrap_or(0.0);
        Ok((strength, self.external.get(at).copied().unwrap_or(0)))
    }

    fn read(&mut self, graph: &Graph, id: u64) -> Result<()> {
        self.start = id;
        let length = (graph.vertices() - id).min(WINDOW) as usize;
        if self.needs_degrees {
            self.strengths.resize(length, 0.0);
            if self.is_weighted {
                graph.strengths(id, &mut self.strengths)?;
            } else {
                let mut degrees = vec![0; length];
                graph.degrees(id, &mut degrees)?;
                self.strengths
                    .iter_mut()
                    .zip(degrees)
                    .for_each(|(strength, degree)| *strength = degree as f64);
            }
        }
        if let Some(offsets) = self.offsets {
            self.external.resize(length, 0);
            graph.external_offsets(offsets, id, &mut self.external)?;
        }
        Ok(())
    }
}
