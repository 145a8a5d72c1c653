//! The declaration of a graph that is exported.

use crate::error::Result;
use crate::input::declaration::{Declaration, is_span};
use crate::read::graph::Graph;

impl Declaration {
    /// The declaration of a graph.
    ///
    /// # Errors
    /// Errors of reading the graph's ids.
    pub fn of(graph: &Graph) -> Result<Self> {
        let description = graph.description();
        let names = graph.longest_name().is_some();
        let vertices = graph.vertices();
        let isolated = vertices - graph.connected();
        // The external ids are ranks of strings: consecutive, but no ids for a declaration.
        let first = if names || isolated == 0 { None } else { consecutive_from(graph)? };
        Ok(Self {
            directed: description.directed,
            weighted: description.weighted,
            names,
            vertices,
            edges: description.edges,
            isolated,
            first: first.filter(|first| is_span(*first, vertices)),
        })
    }
}

/// The least id of a graph with consecutive ids that are not negative; otherwise `None`.
fn consecutive_from(graph: &Graph) -> Result<Option<u64>> {
    let number = |key| graph.id_type().number(graph.id_type().from_order_key(key));
    let bounds = graph.key_bounds()?.map(|(least, greatest)| (number(least), number(greatest)));
    Ok(bounds
        .filter(|(least, greatest)| greatest - least + 1 == i128::from(graph.vertices()))
        .and_then(|(least, _)| u64::try_from(least).ok()))
}
