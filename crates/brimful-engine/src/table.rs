//! A result as a table: the user's vertex ids, sorted, beside one value each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::names::{Labels, NameCursor};
use brimful_graph::text::push_csv;
use brimful_store::Job;
use brimful_store::external::OutputFile;

use crate::error::Result;
use crate::rows::Rows;
pub use crate::values::{Column, Kind, Value, Values};

/// Rows read at once.
pub const BATCH_ROWS: usize = 64 << 10;

/// The result of a run.
///
/// Raw values are those of [`Values`], but for vertices the bits of their external ids.
#[derive(Debug)]
pub struct ResultTable {
    graph: Arc<Graph>,
    name: &'static str,
    values: Values,
    /// Order key of the smallest external id.
    smallest_key: u64,
}

impl ResultTable {
    /// A table of `values` under the column `name`.
    pub fn new(graph: Arc<Graph>, name: &'static str, values: Values) -> Result<Self> {
        let smallest_key = graph.key_bounds()?.map_or(0, |(smallest, _)| smallest);
        Ok(Self { graph, name, values, smallest_key })
    }

    /// Name of the value column.
    pub fn name(&self) -> &'static str {
        self.name
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
    pub(crate) fn read_raw(&self, start: u64, count: usize, out: &mut Vec<Option<u64>>) -> Result<()> {
        self.values.read(start as usize, count, out)?;
        if self.values.kind() == Kind::Vertex {
            out.iter_mut().flatten().for_each(|place| *place = self.id_at(*place));
        }
        Ok(())
    }

    fn id_at(&self, place: u64) -> u64 {
        self.graph.id_type().from_order_key(self.smallest_key.wrapping_add(place))
    }

    /// The place of the external id that has the bits `id`.
    fn place(&self, id: u64) -> u64 {
        self.graph.id_type().order_key(id).wrapping_sub(self.smallest_key)
    }

    /// The value of the vertex without edges whose external id has the bits `id`.
    pub(crate) fn isolated(&self, id: u64) -> Option<u64> {
        let value = self.values.isolated(self.place(id));
        if self.values.kind() == Kind::Vertex { value.map(|place| self.id_at(place)) } else { value }
    }

    pub(crate) fn column(&self, raw: Vec<Option<u64>>) -> Column {
        match self.values.kind() {
            Kind::Float => Column::Float(raw.into_iter().map(|raw| raw.map(f64::from_bits)).collect()),
            Kind::Integer => Column::Integer(raw.into_iter().map(|raw| raw.map(u64::cast_signed)).collect()),
            Kind::Unsigned => Column::Unsigned(raw),
            Kind::Vertex => Column::Ids(raw),
        }
    }

    fn named(&self, raw: Option<u64>) -> Value {
        let Some(raw) = raw else { return Value::Null };
        match self.values.kind() {
            Kind::Float => Value::Float(f64::from_bits(raw)),
            Kind::Integer => Value::Integer(raw.cast_signed().into()),
            Kind::Unsigned => Value::Integer(raw.into()),
            Kind::Vertex => Value::Id(self.graph.id_type().number(raw)),
        }
    }

    /// A number that orders as the value does.
    fn order_key(&self, raw: u64) -> u64 {
        match self.values.kind() {
            Kind::Float => order_key(f64::from_bits(raw)),
            Kind::Integer => raw ^ 1 << 63,
            Kind::Unsigned => raw,
            Kind::Vertex => self.graph.id_type().order_key(raw),
        }
    }

    /// The value of one vertex, given by its external id.
    pub fn value(&self, vertex: i128) -> Result<Value> {
        self.value_at(self.graph.find(vertex)?)
    }

    /// The value of one vertex, given by its internal id.
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

    /// The `count` rows with the largest values, largest first, ties by vertex. Rows without a value are left out.
    /// Vertices that are strings come as their ranks.
    pub fn top(&self, count: usize) -> Result<Vec<(i128, Value)>> {
        let mut best = Best { rows: BinaryHeap::new(), count };
        let (mut raw, mut ids) = (Vec::new(), Vec::new());
        let connected = self.graph.connected();
        for start in (0..connected).step_by(BATCH_ROWS) {
            let rows = (connected - start).min(BATCH_ROWS as u64) as usize;
            self.read_raw(start, rows, &mut raw)?;
            // Most batches have nobody who could be among the best: their ids need not be read.
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
        let id_type = self.graph.id_type();
        let row = |Reverse(row): Reverse<Row>| {
            (id_type.number(id_type.from_order_key(row.1.0)), self.named(Some(row.2)))
        };
        Ok(best.rows.into_sorted_vec().into_iter().map(row).collect())
    }

    fn offer(&self, best: &mut Best, ids: &[u64], raw: &[Option<u64>]) {
        let values = ids.iter().zip(raw).filter_map(|(&id, raw)| Some((id, (*raw)?)));
        for (id, raw) in values {
            let (key, id) = (self.order_key(raw), self.graph.id_type().order_key(id));
            if best.could_take(key) {
                best.rows.push(Reverse((key, Reverse(id), raw)));
                if best.rows.len() > best.count {
                    best.rows.pop();
                }
            }
        }
    }

    /// Writes `vertex,<name>` and a line per vertex. Floats are written so that they read back as the
    /// same bits; a value that is missing is an empty field.
    pub fn write_csv(&self, path: &Path, overwrite: bool, job: &Job) -> Result<()> {
        let mut out = OutputFile::create(path, overwrite)?;
        out.write(format!("vertex,{}\n", self.name).as_bytes())?;
        job.begin("write result", self.len());
        let mut text = String::new();
        let mut rows = self.rows();
        let mut names = NameCursor::default();
        while let Some((vertices, column)) = rows.next_batch(self.graph.batch_rows(BATCH_ROWS))? {
            job.check()?;
            text.clear();
            let ids = IdTexts::new(&self.graph, &mut names, &vertices)?;
            match &column {
                Column::Float(values) => {
                    write_rows(&mut text, &ids, values, |out, _, value| write!(out, "{value:?}"));
                }
                Column::Integer(values) => {
                    write_rows(&mut text, &ids, values, |out, _, value| write!(out, "{value}"));
                }
                Column::Unsigned(values) => {
                    write_rows(&mut text, &ids, values, |out, _, value| write!(out, "{value}"));
                }
                Column::Ids(values) => {
                    // Where there is none, any vertex will do: it is not written.
                    let named: Vec<u64> = values.iter().map(|id| id.unwrap_or(vertices[0])).collect();
                    let named = IdTexts::new(&self.graph, &mut names, &named)?;
                    write_rows(&mut text, &ids, values, |out, at, _| named.write(out, at));
                }
            }
            out.write(text.as_bytes())?;
            job.advance(column.len() as u64);
        }
        Ok(out.finish()?)
    }
}

/// Ids to be written.
enum IdTexts {
    Numbers(Vec<i128>),
    Names(Labels),
}

impl IdTexts {
    fn new(graph: &Graph, names: &mut NameCursor, ids: &[u64]) -> Result<Self> {
        Ok(match graph.longest_name() {
            Some(_) => Self::Names(names.labels(graph, ids)?),
            None => Self::Numbers(ids.iter().map(|id| graph.id_type().number(*id)).collect()),
        })
    }

    fn write(&self, text: &mut String, at: usize) -> std::fmt::Result {
        match self {
            Self::Numbers(numbers) => numbers.get(at).map_or(Ok(()), |number| write!(text, "{number}")),
            Self::Names(labels) => {
                push_csv(labels.get(at), text);
                Ok(())
            }
        }
    }
}

/// `write` is given the number of the row and its value.
fn write_rows<T: Copy>(
    text: &mut String,
    ids: &IdTexts,
    values: &[Option<T>],
    write: impl Fn(&mut String, usize, T) -> std::fmt::Result,
) {
    // Writing to a string cannot fail.
    let _ = values.iter().enumerate().try_for_each(|(at, value)| {
        ids.write(text, at)?;
        text.write_char(',')?;
        value.map_or(Ok(()), |value| write(text, at, value))?;
        text.write_char('\n')
    });
}

/// Order key of the value, order key of the vertex id (ties go to the smaller), raw value.
type Row = (u64, Reverse<u64>, u64);

/// The best rows so far, the worst of them on top.
struct Best {
    rows: BinaryHeap<Reverse<Row>>,
    count: usize,
}

impl Best {
    fn could_take(&self, key: u64) -> bool {
        self.rows.len() < self.count || self.rows.peek().is_some_and(|Reverse(worst)| key >= worst.0)
    }
}

/// A number that orders as the float does (IEEE 754 total order).
fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
