//! A result as a table: the user's vertex ids, sorted, with one value each.

pub(crate) mod rows;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;
use brimful_store::Job;

use crate::error::Result;
use crate::result::csv::CsvFile;
pub use crate::result::values::{Column, Kind, Value, Values};
use rows::Rows;

/// Rows read at once.
pub const BATCH_ROWS: usize = 64 << 10;

/// The result of a run.
///
/// Raw values are those of [`Values`], except that vertices are the bits of their external ids.
#[derive(Debug)]
pub struct ResultTable {
    graph: Arc<Graph>,
    name: Cow<'static, str>,
    values: Values,
    offsets: IdOffsets,
}

impl ResultTable {
    /// A table of `values` under the column `name`.
    pub fn new(
        graph: Arc<Graph>,
        name: impl Into<Cow<'static, str>>,
        values: Values,
    ) -> Result<Self> {
        let offsets = graph.id_offsets()?;
        Ok(Self { graph, name: name.into(), values, offsets })
    }

    /// Name of the value column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The value column.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Number of rows: one per vertex.
    pub fn len(&self) -> u64 {
        self.graph.vertices()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows by ascending vertex id.
    pub fn rows(&self) -> Rows<&Self> {
        Rows::new(self)
    }

    /// Replaces `out` by the values of `count` vertices with edges, from internal id `start` on.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read_raw(&self, start: u64, count: usize, out: &mut Vec<Option<u64>>) -> Result<()> {
        self.values.read(start as usize, count, out)?;
        if self.values.kind() == Kind::Vertex {
            out.iter_mut().flatten().for_each(|id_offset| *id_offset = self.offsets.id(*id_offset));
        }
        Ok(())
    }

    /// The value of the vertex without edges whose external id has the bits `id`.
    pub(crate) fn isolated(&self, id: u64) -> Option<u64> {
        let value = self.values.isolated(self.offsets.of(id));
        if self.values.kind() == Kind::Vertex {
            value.map(|id_offset| self.offsets.id(id_offset))
        } else {
            value
        }
    }

    pub(crate) fn column(&self, raw: Vec<Option<u64>>) -> Column {
        Column::new(self.values.kind(), raw)
    }

    fn named(&self, raw: Option<u64>) -> Value {
        raw.map_or(Value::Null, |raw| self.values.kind().value(raw, self.graph.id_type()))
    }

    /// A number that sorts like the value.
    fn order_key(&self, raw: u64) -> u64 {
        self.values.kind().order_key(raw, self.graph.id_type())
    }

    /// The value of one vertex, given by its external id.
    ///
    /// # Errors
    /// An error if the graph has no such vertex; errors of reading.
    pub fn value(&self, vertex: i128) -> Result<Value> {
        self.value_at(self.graph.find(vertex)?)
    }

    /// The value of one vertex, given by its internal id.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn value_at(&self, internal: u64) -> Result<Value> {
        let mut raw = Vec::new();
        if internal < self.graph.connected() {
            self.read_raw(internal, 1, &mut raw)?;
        } else {
            let mut id = [0];
            self.graph.external_ids(internal, &mut id)?;
            raw.push(self.isolated(id[0]));
        }
        Ok(self.named(raw.first().copied().flatten()))
    }

    /// The `count` rows with the largest values, largest first, ties by vertex. Rows without a
    /// value are left out. String ids are returned as their ranks.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn top(&self, count: u64) -> Result<Vec<(i128, Value)>> {
        let (mut top, mut rows) = (Top::new(self, count), Vec::new());
        while let Some(mut more) = top.next_batch(BATCH_ROWS)? {
            rows.append(&mut more);
        }
        Ok(rows)
    }

    /// The best `count` rows after `after`, the worst first.
    fn best_after(&self, after: Option<Rank>, count: usize) -> Result<Vec<Row>> {
        let mut best = Best { rows: BinaryHeap::new(), count, after };
        let (mut raw, mut ids) = (Vec::new(), Vec::new());
        let connected = self.graph.connected();
        for start in (0..connected).step_by(BATCH_ROWS) {
            let rows = (connected - start).min(BATCH_ROWS as u64) as usize;
            self.read_raw(start, rows, &mut raw)?;
            // Most batches have no candidate for the best rows; their ids need not be read.
            if raw.iter().flatten().any(|raw| best.could_take(self.order_key(*raw))) {
                ids.resize(rows, 0);
                self.graph.external_ids(start, &mut ids)?;
                self.offer(&mut best, &ids, &raw);
            }
        }
        for start in (connected..self.len()).step_by(BATCH_ROWS) {
            ids.resize((self.len() - start).min(BATCH_ROWS as u64) as usize, 0);
            self.graph.external_ids(start, &mut ids)?;
            raw.clear();
            raw.extend(ids.iter().map(|id| self.isolated(*id)));
            self.offer(&mut best, &ids, &raw);
        }
        let mut rows: Vec<Row> = best.rows.into_iter().map(|Reverse(row)| row).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    fn offer(&self, best: &mut Best, ids: &[u64], raw: &[Option<u64>]) {
        let values = ids.iter().zip(raw).filter_map(|(&id, raw)| Some((id, (*raw)?)));
        for (id, raw) in values {
            let (key, id) = (self.order_key(raw), self.graph.id_type().order_key(id));
            if best.could_take(key) && best.after.is_none_or(|after| (key, Reverse(id)) < after) {
                best.rows.push(Reverse((key, Reverse(id), raw)));
                if best.rows.len() > best.count {
                    best.rows.pop();
                }
            }
        }
    }

    /// Writes `vertex,<name>` and a line per vertex.
    ///
    /// # Errors
    /// Errors of reading and of writing; an error if the file exists, unless `overwrite` is true.
    pub fn write_csv(&self, path: &Path, overwrite: bool, job: &Job) -> Result<()> {
        write_csv(&self.graph, &[self], path, overwrite, job)
    }
}

/// Writes a header of `vertex` and the names of the tables of `graph`, and a line per vertex.
///
/// # Errors
/// Errors of reading and of writing.
pub fn write_csv(
    graph: &Arc<Graph>,
    tables: &[&ResultTable],
    path: &Path,
    overwrite: bool,
    job: &Job,
) -> Result<()> {
    let mut names = vec!["vertex"];
    names.extend(tables.iter().map(|table| table.name()));
    let mut out = CsvFile::create(path, overwrite, &names, graph)?;
    job.begin("write result", graph.vertices());
    let mut rows = Rows::of(Arc::clone(graph), tables.to_vec());
    while let Some((vertices, mut columns)) = rows.next_columns(BATCH_ROWS)? {
        columns.insert(0, Column::Ids(vertices.into_iter().map(Some).collect()));
        out.write(&columns, job)?;
    }
    out.finish()
}

/// Order key of a value, and order key of its vertex's id: ties go to the smaller id.
type Rank = (u64, Reverse<u64>);

/// A rank and the raw value.
type Row = (u64, Reverse<u64>, u64);

/// The most rows that a search for the best holds at once.
const TOP_ROWS: u64 = 1 << 17;

/// The best rows, found some at a time, so that memory is bounded for any count.
pub(super) struct BestRows<R> {
    left: u64,
    /// The next rows, the first one last.
    next: Vec<R>,
    /// The last row found.
    after: Option<R>,
}

impl<R: Copy> BestRows<R> {
    /// The `count` best rows.
    pub(super) fn new(count: u64) -> Self {
        Self { left: count, next: Vec::new(), after: None }
    }

    /// Returns the next rows, at most `most`; `None` at the end. `find` takes a row and a count,
    /// and returns this many of the best rows after that row, the worst first.
    pub(super) fn next(
        &mut self,
        most: usize,
        find: impl FnOnce(Option<R>, usize) -> Result<Vec<R>>,
    ) -> Result<Option<impl Iterator<Item = R>>> {
        if self.next.is_empty() && self.left > 0 {
            let wanted = self.left.min(TOP_ROWS);
            self.next = find(self.after, wanted as usize)?;
            // Fewer rows than wanted are the last ones.
            self.left = if (self.next.len() as u64) < wanted { 0 } else { self.left - wanted };
            self.after = self.next.first().copied();
        }
        let first = self.next.len().saturating_sub(most);
        Ok((!self.next.is_empty()).then(|| self.next.drain(first..).rev()))
    }
}

/// An iterator over the rows with the largest values.
///
/// It reads all rows again for every `TOP_ROWS` results.
pub struct Top<T> {
    table: T,
    best: BestRows<Row>,
}

impl<T: Deref<Target = ResultTable>> Top<T> {
    /// The `count` rows of `table` with the largest values.
    pub fn new(table: T, count: u64) -> Self {
        Self { table, best: BestRows::new(count) }
    }

    /// The next rows, at most `most`; `None` at the end.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Vec<(i128, Value)>>> {
        let (table, id_type) = (&*self.table, self.table.graph.id_type());
        let find = |after: Option<Row>, count| {
            table.best_after(after.map(|(key, id, _)| (key, id)), count)
        };
        let shown =
            |row: Row| (id_type.number(id_type.from_order_key(row.1.0)), table.named(Some(row.2)));
        Ok(self.best.next(most, find)?.map(|rows| rows.map(shown).collect()))
    }
}

/// The best rows so far, the worst of them on top.
struct Best {
    rows: BinaryHeap<Reverse<Row>>,
    count: usize,
    /// Rows up to this one were found before.
    after: Option<Rank>,
}

impl Best {
    fn could_take(&self, key: u64) -> bool {
        if self.after.is_some_and(|after| key > after.0) {
            return false;
        }
        self.rows.len() < self.count
            || self.rows.peek().is_some_and(|Reverse(worst)| key >= worst.0)
    }
}
