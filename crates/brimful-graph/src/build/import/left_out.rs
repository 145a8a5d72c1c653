//! The report of the first edge of each kind that a policy left out.
//!
//! Invariant: the report shows file, line and ids of the input.

use super::Rejection;
use crate::error::Result;
use crate::ids::external::IdType;
use crate::input_position::{InputPart, PositionedEdge, locate};
use crate::read::graph::Graph;
use crate::read::name_cursor::NameCursor;

/// The maximum number of characters of an id in a message.
const SHOWN_CHARS: usize = 40;

/// The input positions of the first edges that were left out, if known.
pub(super) struct LeftOut {
    /// The parts of the input, for input positions.
    pub(super) inputs: Vec<InputPart>,
    /// The first self-loop; its ends are the bits of external ids.
    pub(super) self_loop: Option<PositionedEdge>,
    /// The first duplicate; its ends are internal ids.
    pub(super) duplicate: Option<PositionedEdge>,
}

impl LeftOut {
    /// The edges left out of `graph`, by reason.
    pub(super) fn report(&self, graph: &Graph) -> Result<Vec<Rejection>> {
        let counts = graph.description().counts;
        let mut out = Vec::new();
        if let Some(first) = self.self_loop {
            out.extend(self.kind("self-loop", counts.self_loops_dropped, first, graph)?);
        }
        if let Some(first) = self.duplicate {
            let external = |internal| -> Result<u64> {
                let mut bits = [0];
                graph.external_ids(internal, &mut bits)?;
                Ok(bits[0])
            };
            let mut ends = [external(first.ends.0)?, external(first.ends.1)?];
            if !graph.description().directed {
                // Both directions were sorted, so the direction in the input is unknown.
                ends.sort_unstable_by_key(|bits| graph.id_type().order_key(*bits));
            }
            let first = PositionedEdge { ends: ends.into(), ..first };
            out.extend(self.kind("duplicate edge", counts.duplicates_dropped, first, graph)?);
        }
        Ok(out)
    }

    fn kind(
        &self,
        reason: &'static str,
        count: u64,
        first: PositionedEdge,
        graph: &Graph,
    ) -> Result<Option<Rejection>> {
        let found = format!("{} {}", shown(graph, first.ends.0)?, shown(graph, first.ends.1)?);
        let position = locate(&self.inputs, first.position);
        Ok(position.map(|(path, line)| Rejection { reason, count, path, line, found }))
    }
}

/// An id for messages, shortened.
fn shown(graph: &Graph, bits: u64) -> Result<String> {
    if graph.id_type() != IdType::String {
        return Ok(graph.id_type().number(bits).to_string());
    }
    let name = NameCursor::default().label(graph, bits)?;
    Ok(match name.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name,
    })
}
