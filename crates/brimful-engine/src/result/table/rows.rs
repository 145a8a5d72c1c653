//! The rows of a result, one after another, by ascending vertex id.
//!
//! Values are in internal order, perhaps on disk. The external order walks each run of the internal
//! order forwards. So rows read one window of values per run, and nothing at random. Invariant:
//! memory is at most [`Rows::MEMORY_BYTES`] in addition to the requested batch.

use std::ops::{Deref, Range};
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::description::MAX_RUNS;
use brimful_graph::read::external_order::{self, ExternalOrder};

use crate::error::Result;
use crate::result::table::{Column, ResultTable};

/// Values of a run in memory at once, of all columns together.
const WINDOW: u64 = 8 << 10;

/// Consecutive values of one run.
struct Window {
    run: Range<u64>,
    start: u64,
    /// Values of each column, as its table holds them, in 64 bits.
    values: Vec<Vec<Option<u64>>>,
}

/// A reader of all rows of a table, or of several tables of one graph as columns side by side.
pub struct Rows<T> {
    tables: Vec<T>,
    order: ExternalOrder<Arc<Graph>>,
    windows: Vec<Window>,
    vertices: Vec<u64>,
}

impl<T> Rows<T> {
    /// The most bytes of memory of a reader, in addition to a batch.
    pub const MEMORY_BYTES: u64 = external_order::MEMORY_BYTES + MAX_RUNS as u64 * WINDOW * 16;
}

impl<T: Deref<Target = ResultTable>> Rows<T> {
    /// A reader at the first row of a table.
    pub fn new(table: T) -> Self {
        Self::of(Arc::clone(table.graph()), vec![table])
    }

    /// A reader at the first row of tables of `graph`.
    pub fn of(graph: Arc<Graph>, tables: Vec<T>) -> Self {
        let connected = graph.runs().filter(|run| run.start < graph.connected());
        let window = |run: Range<u64>| {
            let values = tables.iter().map(|_| Vec::new()).collect();
            Window { start: run.start, run, values }
        };
        let windows = connected.map(window).collect();
        Self { order: ExternalOrder::new(graph), windows, vertices: Vec::new(), tables }
    }

    /// The next rows of a single table, at most `max`: bits of the vertex ids, and values; `None`
    /// at the end.
    pub fn next_batch(&mut self, max: usize) -> Result<Option<(Vec<u64>, Column)>> {
        let read = self.next_columns(max)?;
        Ok(read.and_then(|(ids, mut columns)| Some((ids, columns.pop()?))))
    }

    /// The next rows, at most `max`: bits of the vertex ids, and a column for each table; `None` at
    /// the end.
    pub fn next_columns(&mut self, max: usize) -> Result<Option<(Vec<u64>, Vec<Column>)>> {
        let mut ids = Vec::new();
        self.vertices.clear();
        self.order.next_batch(max, &mut self.vertices, &mut ids)?;
        if ids.is_empty() {
            return Ok(None);
        }
        let mut raw: Vec<_> = self.tables.iter().map(|_| Vec::with_capacity(ids.len())).collect();
        for (&vertex, &id) in self.vertices.iter().zip(&ids) {
            let Some(window) = self.windows.iter_mut().find(|window| window.run.contains(&vertex))
            else {
                for (raw, table) in raw.iter_mut().zip(&self.tables) {
                    raw.push(table.isolated(id));
                }
                continue;
            };
            if !window.holds(vertex) {
                window.load(&self.tables, vertex)?;
            }
            let at = (vertex - window.start) as usize;
            for (raw, values) in raw.iter_mut().zip(&window.values) {
                raw.push(values.get(at).copied().flatten());
            }
        }
        let columns = self.tables.iter().zip(raw).map(|(table, raw)| table.column(raw)).collect();
        Ok(Some((ids, columns)))
    }
}

impl Window {
    fn holds(&self, vertex: u64) -> bool {
        let length = self.values.first().map_or(0, Vec::len);
        vertex.checked_sub(self.start).is_some_and(|at| at < length as u64)
    }

    /// Reads the windows that begin with the values of `vertex`.
    #[cold]
    fn load<T: Deref<Target = ResultTable>>(&mut self, tables: &[T], vertex: u64) -> Result<()> {
        let rows = (WINDOW / tables.len() as u64).max(1);
        let count = rows.min(self.run.end - vertex);
        self.start = vertex;
        for (table, values) in tables.iter().zip(&mut self.values) {
            table.read_raw(vertex, count as usize, values)?;
        }
        Ok(())
    }
}
