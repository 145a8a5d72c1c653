//! The external ids of internal ids, one window of the file of ids at a time.

use crate::error::{Error, Result};
use crate::ids::ascending::BLOCK_NUMBERS;
use crate::read::graph::Graph;

/// Looks up the external ids of internal ids that ascend or are close together, one window at a
/// time.
#[derive(Debug, Default)]
pub(crate) struct ExternalIds {
    window: Vec<u64>,
    start: u64,
}

impl ExternalIds {
    /// Ids in the window: one block of the file of ids.
    const WINDOW: u64 = BLOCK_NUMBERS as u64;

    /// The bits of the external id of `vertex`, which must exist.
    #[inline]
    pub(crate) fn of(&mut self, graph: &Graph, vertex: u64) -> Result<u64> {
        match self.window.get(vertex.wrapping_sub(self.start) as usize) {
            Some(id) => Ok(*id),
            None => self.look_up(graph, vertex),
        }
    }

    #[cold]
    fn look_up(&mut self, graph: &Graph, vertex: u64) -> Result<u64> {
        self.start = vertex - vertex % Self::WINDOW;
        self.window
            .resize(graph.vertices().saturating_sub(self.start).min(Self::WINDOW) as usize, 0);
        graph.external_ids(self.start, &mut self.window)?;
        let id = self.window.get((vertex - self.start) as usize).copied();
        id.ok_or_else(|| Error::no_such_rank(vertex))
    }
}
