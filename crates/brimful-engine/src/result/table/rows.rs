//! The rows of a result, one after another, by ascending vertex id.
//!
//! Values are in internal order, perhaps on disk. The external order walks each run of the internal
//! order forwards. So rows read one window of values per run, and nothing at random. Invariant:
//! memory is at most [`Rows::MEMORY_BYTES`] in addition to the requested batch.

use std::ops::{Deref, Range};
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::external_order::{self, ExternalOrder};
use brimful_graph::read::graph::MOST_RUNS;

use crate::error::Result;
use crate::result::table::{Column, ResultTable};

/// Values of a run in memory at once.
const WINDOW: u64 = 8 << 10;

/// Consecutive values of one run.
struct Window {
    run: Range<u64>,
    start: u64,
    /// Values as the table holds them, in 64 bits.
    values: Vec<Option<u64>>,
}

/// A reader of all rows of a table.
pub struct Rows<T> {
    table: T,
    order: ExternalOrder<Arc<Graph>>,
    windows: Vec<Window>,
    vertices: Vec<u64>,
}

impl<T> Rows<T> {
    /// The most bytes of memory of a reader, in addition to a batch.
    pub const MEMORY_BYTES: u64 = external_order::MEMORY_BYTES + MOST_RUNS as u64 * WINDOW * 16;
}

impl<T: Deref<Target = ResultTable>> Rows<T> {
    /// A reader at the first row.
    pub fn new(table: T) -> Self {
        let graph = table.graph();
        let connected = graph.runs().filter(|run| run.start < graph.connected());
        let windows = connected.map(|run| Window { start: run.start, run, values: Vec::new() });
        Self {
            order: ExternalOrder::new(Arc::clone(graph)),
            windows: windows.collect(),
            vertices: Vec::new(),
            table,
        }
    }

    /// The next rows, at most `max`: bits of the vertex ids, and values; `None` at the end.
    pub fn next_batch(&mut self, max: usize) -> Result<Option<(Vec<u64>, Column)>> {
        let mut ids = Vec::new();
        self.vertices.clear();
        self.order.next_batch(max, &mut self.vertices, &mut ids)?;
        if ids.is_empty() {
            return Ok(None);
        }
        let mut raw = Vec::with_capacity(ids.len());
        for (&vertex, &id) in self.vertices.iter().zip(&ids) {
            let window = self.windows.iter_mut().find(|window| window.run.contains(&vertex));
            raw.push(match window {
                Some(window) => match window.values.get(vertex.wrapping_sub(window.start) as usize)
                {
                    Some(value) => *value,
                    None => window.load(&self.table, vertex)?,
                },
                None => self.table.isolated(id),
            });
        }
        let column = self.table.column(raw);
        Ok(Some((ids, column)))
    }
}

impl Window {
    /// Reads the window whose first value is that of `vertex`; returns that value.
    #[cold]
    fn load(&mut self, table: &ResultTable, vertex: u64) -> Result<Option<u64>> {
        let count = WINDOW.min(self.run.end - vertex);
        self.start = vertex;
        table.read_raw(vertex, count as usize, &mut self.values)?;
        Ok(self.values.first().copied().flatten())
    }
}
