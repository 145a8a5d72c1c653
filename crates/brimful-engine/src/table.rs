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

/// Rows read at once.
pub const BATCH_ROWS: usize = 64 << 10;

/// One value per vertex, in internal order.
#[derive(Debug)]
pub enum Values {
    /// Numbers.
    Float(ScratchArray<f64>),
    /// Vertices, as internal ids of 32 bits.
    Vertex32(ScratchArray<u32>),
    /// Vertices, as internal ids of 64 bits.
    Vertex64(ScratchArray<u64>),
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
#[derive(Debug)]
pub struct ResultTable {
    graph: Arc<Graph>,
    name: &'static str,
    values: Values,
}

impl ResultTable {
    /// A table of `values` under the column `name`.
    pub fn new(graph: Arc<Graph>, name: &'static str, values: Values) -> Self {
        Self { graph, name, values }
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
        !matches!(self.values, Values::Float(_))
    }

    /// Number of rows: one per vertex.
    pub fn len(&self) -> u64 {
        self.graph.vertices()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits of the vertex ids, and values, of `count` rows from row `start` on.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn read(&self, start: u64, count: usize) -> Result<(Vec<u64>, Column)> {
        let mut vertices = vec![0; count];
        self.graph.external_ids(start, &mut vertices)?;
        let at = start as usize;
        let column = match &self.values {
            Values::Float(values) => {
                let mut out = vec![0.0; count];
                values.read(at, &mut out)?;
                Column::Float(out)
            }
            Values::Vertex32(values) => {
                let mut out = vec![0; count];
                values.read(at, &mut out)?;
                Column::Ids(self.name_vertices(out.into_iter().map(u64::from).collect())?)
            }
            Values::Vertex64(values) => {
                let mut out = vec![0; count];
                values.read(at, &mut out)?;
                Column::Ids(self.name_vertices(out)?)
            }
        };
        Ok((vertices, column))
    }

    /// Replaces internal ids by external ones, looking each distinct id up once, in ascending order.
    fn name_vertices(&self, mut ids: Vec<u64>) -> Result<Vec<u64>> {
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut names = vec![0; distinct.len()];
        let mut done = 0;
        while done < distinct.len() {
            // As many as lie close together are read together.
            let first = distinct[done];
            let run = distinct[done..].partition_point(|id| id - first < BATCH_ROWS as u64);
            let mut window = vec![0; (distinct[done + run - 1] - first + 1) as usize];
            self.graph.external_ids(first, &mut window)?;
            for at in done..done + run {
                names[at] = window[(distinct[at] - first) as usize];
            }
            done += run;
        }
        for id in &mut ids {
            if let Ok(at) = distinct.binary_search(id) {
                *id = names[at];
            }
        }
        Ok(ids)
    }

    /// The value of one vertex, given by its external id.
    pub fn value(&self, vertex: i128) -> Result<Value> {
        let (_, column) = self.read(self.graph.find(vertex)?, 1)?;
        Ok(self.at(&column, 0))
    }

    fn at(&self, column: &Column, row: usize) -> Value {
        match column {
            Column::Float(values) => Value::Float(values[row]),
            Column::Ids(ids) => Value::Id(self.graph.id_type().number(ids[row])),
        }
    }

    /// The `count` rows with the largest values, largest first, ties by vertex.
    pub fn top(&self, count: usize) -> Result<Vec<(i128, Value)>> {
        let mut best = BinaryHeap::new();
        for start in (0..self.len()).step_by(BATCH_ROWS) {
            let rows = (self.len() - start).min(BATCH_ROWS as u64) as usize;
            let (_, column) = self.read(start, rows)?;
            for row in 0..rows {
                let key = match &column {
                    Column::Float(values) => order_key(values[row]),
                    Column::Ids(ids) => self.graph.id_type().order_key(ids[row]),
                };
                best.push(Reverse((key, Reverse(start + row as u64))));
                if best.len() > count {
                    best.pop();
                }
            }
        }
        let rows = best.into_sorted_vec();
        rows.into_iter()
            .map(|Reverse((_, Reverse(row)))| {
                let (vertices, column) = self.read(row, 1)?;
                Ok((self.graph.id_type().number(vertices[0]), self.at(&column, 0)))
            })
            .collect()
    }

    /// Writes `vertex,<name>` and a line per vertex. Floats are written so that they read back as the
    /// same bits.
    pub fn write_csv(&self, path: &Path, overwrite: bool, job: &Job) -> Result<()> {
        let mut out = OutputFile::create(path, overwrite)?;
        out.write(format!("vertex,{}\n", self.name).as_bytes())?;
        job.begin("write result", self.len());
        let id_type = self.graph.id_type();
        let mut text = String::new();
        for start in (0..self.len()).step_by(BATCH_ROWS) {
            job.check()?;
            let rows = (self.len() - start).min(BATCH_ROWS as u64) as usize;
            let (vertices, column) = self.read(start, rows)?;
            text.clear();
            for (row, vertex) in vertices.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = match self.at(&column, row) {
                    Value::Float(value) => writeln!(text, "{},{value:?}", id_type.number(*vertex)),
                    Value::Id(value) => writeln!(text, "{},{value}", id_type.number(*vertex)),
                };
            }
            out.write(text.as_bytes())?;
            job.advance(rows as u64);
        }
        Ok(out.finish()?)
    }
}

/// A number that orders as the float does (IEEE 754 total order).
fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
