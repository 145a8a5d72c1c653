//! Matrix Market coordinate files: row i, column j is the edge i -> j.
//! (Boisvert, Pozo, Remington 1996, *The Matrix Market exchange formats*, NISTIR 5935.)
//!
//! The matrix is square, so that n vertices are declared. It is `pattern` without weights and
//! `real` with weights. For undirected graphs it is `symmetric`, with the lower triangle.
//! Multi-edges are repeated entries; readers that build a matrix add them.

use std::fmt::Write as _;

use super::numbering::Numbering;
use super::{Exporting, each_edge};
use crate::error::Result;

/// Writes the graph; returns the number of edges.
pub(super) fn write(exporting: &Exporting<'_>) -> Result<u64> {
    let numbering = Numbering::of(exporting)?;
    let (graph, description) = (exporting.graph, exporting.graph.description());
    let field = if description.weighted { "real" } else { "pattern" };
    let symmetry = if description.directed { "general" } else { "symmetric" };
    let heading = format!(
        "%%MatrixMarket matrix coordinate {field} {symmetry}\n{n} {n} {edges}\n",
        n = graph.vertices(),
        edges = description.edges
    );
    let mut out = exporting.sink()?;
    out.write(heading.as_bytes())?;
    let edges = each_edge(exporting, &mut out, |text, source, target, weight| {
        let (row, column) = (numbering.number(source)?, numbering.number(target)?);
        let (row, column) = match description.directed {
            true => (row, column),
            false => (row.max(column), row.min(column)),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{row} {column}");
        if let Some(weight) = weight {
            let _ = write!(text, " {weight}");
        }
        text.push('\n');
        Ok(())
    })?;
    out.finish()?;
    Ok(edges)
}
