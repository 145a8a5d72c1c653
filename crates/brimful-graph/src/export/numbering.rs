//! Vertex numbers for formats whose only ids are 1 to n.
//!
//! Invariant: the number of a vertex is its id, unless the user requested other numbers.

use brimful_store::Error as StoreError;

use super::Exporting;
use crate::error::{Error, Result};
use crate::read::graph::{Graph, IDS};

/// The map from external ids to numbers from 1 to n.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering<'a> {
    graph: &'a Graph,
    /// The number to subtract from every id.
    offset: i128,
}

impl<'a> Numbering<'a> {
    /// The numbering of a graph whose ids are 1 to n; with `renumber`, whose ids are consecutive.
    ///
    /// # Errors
    /// [`Error::Usage`] for other ids.
    pub(super) fn of(exporting: &Exporting<'a>) -> Result<Self> {
        let Exporting { graph, options, .. } = exporting;
        let name = options.format.name();
        let (min, max) = id_range(graph)?;
        let vertices = i128::from(graph.vertices());
        // Ids are distinct, so this many ids in this range leave no gap.
        let consecutive = max - min + 1 == vertices;
        // The ranks of strings are consecutive, but no ids of the user.
        let own = min == 1 && graph.longest_name().is_none();
        if consecutive && (own || options.renumber) {
            return Ok(Self { graph: *graph, offset: min - 1 });
        }
        if graph.longest_name().is_some() {
            return Err(Error::Usage(format!(
                "{name} numbers vertices from 1 to {vertices}, and the ids of this graph \
                 are strings; number them in the order of their bytes with --renumber, or export \
                 as parquet or arrow"
            )));
        }
        let remedy = match consecutive {
            true => {
                "write them as 1 to n with --renumber, or export as graphalytics, which keeps ids"
            }
            false => "export as graphalytics or edgelist, which keep ids",
        };
        let gaps = if consecutive { "" } else { " with gaps" };
        Err(Error::Usage(format!(
            "{name} numbers vertices from 1 to {vertices}, and the ids of this graph are {min} to \
             {max}{gaps}; {remedy}"
        )))
    }

    /// The number, from 1 to n, of the vertex with external id `id`.
    ///
    /// # Errors
    /// Corruption if the id is outside the range of the ids.
    #[inline]
    pub(super) fn number(self, id: i128) -> Result<u64> {
        match u64::try_from(id - self.offset) {
            Ok(number @ 1..) if number <= self.graph.vertices() => Ok(number),
            _ => {
                let problem = format!("the id {id} is beyond the first and the last");
                Err(StoreError::corrupt(self.graph.path().join(IDS), 0, problem).into())
            }
        }
    }
}

/// The least and the greatest external id; (0, -1) for a graph without vertices.
fn id_range(graph: &Graph) -> Result<(i128, i128)> {
    let number = |key| graph.id_type().number(graph.id_type().from_order_key(key));
    Ok(graph.key_bounds()?.map_or((0, -1), |(least, greatest)| (number(least), number(greatest))))
}
