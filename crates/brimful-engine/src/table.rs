//! A result as a table: the user's vertex ids, sorted, beside one value each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_store::Job;
use brimful_store::external::OutputFile;
use brimful_store::scratch::ScratchArray;

use crate::error::Result;
use crate::rows::Rows;

/// Rows read at once.
pub const BATCH_ROWS: usize = 64 << 10;

/// One value per vertex with edges, in internal order, and what the others have.
#[derive(Debug)]
pub enum Values {
    /// Numbers; vertices without edges have the one beside.
    Float(ScratchArray<f64>, f64),
    /// Vertices, as places of their external ids (see [`crate::Vertex::external`]) in 32 bits. A vertex
    /// without edges has itself.
    Place32(ScratchArray<u32>),
    /// The same in 64 bits.
    Place64(ScratchArray<u64>),
}

/// Values of consecutive rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers.
    Float(Vec<f64>),
    /// Bits of external ids.
    Ids(Vec<u64>),
}

/// A value of one row, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number.
    Float(f64),
    /// An external id.
    Id(i128),
}

/// The result of a run.
///
/// Values are handled as 64 raw bits: those of a float, or an external id's.
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

    /// True if values are external ids.
    pub fn holds_ids(&self) -> bool {
        !matches!(self.values, Values::Float(..))
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
    pub(crate) fn read_raw(&self, start: u64, count: usize, out: &mut Vec<u64>) -> Result<()> {
        let at = start as usize;
        out.clear();
        match &self.values {
            Values::Float(values, _) => {
                let mut read = vec![0.0; count];
                values.read(at, &mut read)?;
                out.extend(read.into_iter().map(f64::to_bits));
            }
            Values::Place32(values) => {
                let mut read = vec![0_u32; count];
                values.read(at, &mut read)?;
                out.extend(read.into_iter().map(|place| self.id_at(place.into())));
            }
            Values::Place64(values) => {
                out.resize(count, 0);
                values.read(at, out)?;
                out.iter_mut().for_each(|place| *place = self.id_at(*place));
            }
        }
        Ok(())
    }

    fn id_at(&self, place: u64) -> u64 {
        self.graph.id_type().from_order_key(self.smallest_key.wrapping_add(place))
    }

    /// The value of the vertex without edges whose external id has the bits `id`.
    pub(crate) fn isolated(&self, id: u64) -> u64 {
        match self.values {
            Values::Float(_, value) => value.to_bits(),
            Values::Place32(_) | Values::Place64(_) => id,
        }
    }

    pub(crate) fn column(&self, raw: Vec<u64>) -> Column {
        match self.values {
            Values::Float(..) => Column::Float(raw.into_iter().map(f64::from_bits).collect()),
            Values::Place32(_) | Values::Place64(_) => Column::Ids(raw),
        }
    }

    fn named(&self, raw: u64) -> Value {
        match self.values {
            Values::Float(..) => Value::Float(f64::from_bits(raw)),
            Values::Place32(_) | Values::Place64(_) => Value::Id(self.graph.id_type().number(raw)),
        }
    }

    /// A number that orders as the value does.
    fn order_key(&self, raw: u64) -> u64 {
        match self.values {
            Values::Float(..) => order_key(f64::from_bits(raw)),
            Values::Place32(_) | Values::Place64(_) => self.graph.id_type().order_key(raw),
        }
    }

    /// The value of one vertex, given by its external id.
    pub fn value(&self, vertex: i128) -> Result<Value> {
        let internal = self.graph.find(vertex)?;
        let mut raw = Vec::new();
        if internal < self.graph.connected() {
            self.read_raw(internal, 1, &mut raw)?;
        } else {
            let mut id = [0];
            self.graph.external_ids(internal, &mut id)?;
            raw.push(self.isolated(id[0]));
        }
        Ok(self.named(raw.first().copied().unwrap_or_default()))
    }

    /// The `count` rows with the largest values, largest first, ties by vertex.
    pub fn top(&self, count: usize) -> Result<Vec<(i128, Value)>> {
        let mut best = Best { rows: BinaryHeap::new(), count };
        let (mut raw, mut ids) = (Vec::new(), Vec::new());
        let connected = self.graph.connected();
        for start in (0..connected).step_by(BATCH_ROWS) {
            let rows = (connected - start).min(BATCH_ROWS as u64) as usize;
            self.read_raw(start, rows, &mut raw)?;
            // Most batches have nobody who could be among the best: their ids need not be read.
            if raw.iter().any(|raw| best.could_take(self.order_key(*raw))) {
                ids.resize(rows, 0);
                self.graph.external_ids(start, &mut ids)?;
                self.offer(&mut best, &ids, &raw);
            }
        }
        // Vertices without edges come in order of their ids; where they have the same value the first are
        // best, where they have their own id the last.
        let isolated = connected..self.len();
        let some = (isolated.end - isolated.start).min(count as u64);
        let first = if self.holds_ids() { isolated.end - some } else { isolated.start };
        for start in (first..first + some).step_by(BATCH_ROWS) {
            ids.resize((first + some - start).min(BATCH_ROWS as u64) as usize, 0);
            self.graph.external_ids(start, &mut ids)?;
            raw.clear();
            raw.extend(ids.iter().map(|id| self.isolated(*id)));
            self.offer(&mut best, &ids, &raw);
        }
        let id_type = self.graph.id_type();
        let row =
            |Reverse(row): Reverse<Row>| (id_type.number(id_type.from_order_key(row.1.0)), self.named(row.2));
        Ok(best.rows.into_sorted_vec().into_iter().map(row).collect())
    }

    fn offer(&self, best: &mut Best, ids: &[u64], raw: &[u64]) {
        for (&id, &raw) in ids.iter().zip(raw) {
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
    /// same bits.
    pub fn write_csv(&self, path: &Path, overwrite: bool, job: &Job) -> Result<()> {
        let mut out = OutputFile::create(path, overwrite)?;
        out.write(format!("vertex,{}\n", self.name).as_bytes())?;
        job.begin("write result", self.len());
        let id_type = self.graph.id_type();
        let mut text = String::new();
        let mut rows = self.rows();
        while let Some((vertices, column)) = rows.next_batch(BATCH_ROWS)? {
            job.check()?;
            text.clear();
            let vertices = vertices.into_iter().map(|id| id_type.number(id));
            // Writing to a string cannot fail.
            let _ = match &column {
                Column::Float(values) => {
                    vertices.zip(values).try_for_each(|(id, value)| writeln!(text, "{id},{value:?}"))
                }
                Column::Ids(ids) => vertices
                    .zip(ids)
                    .try_for_each(|(id, value)| writeln!(text, "{id},{}", id_type.number(*value))),
            };
            out.write(text.as_bytes())?;
            job.advance(column.len() as u64);
        }
        Ok(out.finish()?)
    }
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

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Ids(ids) => ids.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A number that orders as the float does (IEEE 754 total order).
fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
