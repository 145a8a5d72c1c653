//! A result of rows in an order of their own: pairs of vertices with a score, edges with a number,
//! the steps of walks.
//!
//! A row has a word of 64 bits for each column: the bits of a float or of an integer, or the offset
//! of a vertex (see [`crate::Vertex::external`]). A last column may have a list of 32-bit floats,
//! two in a word, the first in its lower half. Invariant: rows are in memory up to the limit of
//! their writer, and in scratch beyond it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;
use brimful_store::Job;
use brimful_store::scratch::ScratchArray;

use crate::error::{Error, Result};
use crate::result::csv::CsvFile;
use crate::result::table::{BATCH_ROWS, BestRows, Column, Kind, Value};
use crate::scratch::in_scratch;

/// Name and kind of a column.
pub type RowColumn = (&'static str, Kind);

/// Words of a part of the rows in memory.
const PART: usize = 1 << 16;
/// Words that a file of scratch may hold.
const MAX_WORDS: usize = 1 << 58;

/// Name of a column of lists, and the length of each list.
pub type ListColumn = (&'static str, usize);

/// The columns of a table.
#[derive(Debug, Clone, Copy)]
struct Layout {
    columns: &'static [RowColumn],
    /// The last column, if it has lists.
    lists: Option<ListColumn>,
}

impl Layout {
    /// Words of a row.
    fn width(self) -> usize {
        self.columns.len() + self.lists.map_or(0, |(_, length)| length.div_ceil(2))
    }
}

/// Collects rows, in their order.
#[derive(Debug)]
pub struct RowWriter<'r> {
    graph: &'r Arc<Graph>,
    layout: Layout,
    job: &'r Job,
    /// Maximum number of parts in memory.
    most: usize,
    /// Whole parts, and one that grows.
    parts: Vec<Vec<u64>>,
    part: Vec<u64>,
    /// Words before those in memory.
    spilled: Option<ScratchArray<u64>>,
    words: usize,
}

impl<'r> RowWriter<'r> {
    /// The minimum memory of a writer, in bytes.
    pub const MINIMUM_BYTES: u64 = 2 * 8 * PART as u64;

    /// A writer that holds rows in about `bytes` of memory, at least
    /// [`RowWriter::MINIMUM_BYTES`].
    pub fn new(
        graph: &'r Arc<Graph>,
        columns: &'static [RowColumn],
        bytes: u64,
        job: &'r Job,
    ) -> Self {
        let most = (bytes / (8 * PART as u64)).saturating_sub(1) as usize;
        let (parts, part) = (Vec::new(), Vec::with_capacity(PART));
        let layout = Layout { columns, lists: None };
        Self { graph, layout, job, most: most.max(1), parts, part, spilled: None, words: 0 }
    }

    /// The same writer, with a last column of lists.
    #[must_use]
    pub fn with_lists(mut self, lists: ListColumn) -> Self {
        self.layout.lists = Some(lists);
        self
    }

    /// Adds a row: a word for each column, and the words of its list.
    ///
    /// # Errors
    /// Errors of writing to scratch files.
    #[inline]
    pub fn push(&mut self, row: &[u64]) -> Result<()> {
        debug_assert_eq!(row.len(), self.layout.width());
        for word in row {
            if self.part.len() == PART {
                self.next_part()?;
            }
            self.part.push(*word);
        }
        Ok(())
    }

    #[cold]
    fn next_part(&mut self) -> Result<()> {
        if self.spilled.is_none() && self.parts.len() < self.most {
            self.words += self.part.len();
            self.parts.push(std::mem::replace(&mut self.part, Vec::with_capacity(PART)));
            return Ok(());
        }
        self.spill()
    }

    /// Writes the rows in memory to scratch.
    fn spill(&mut self) -> Result<()> {
        let mut file = match self.spilled.take() {
            Some(file) => file,
            None => {
                self.words = 0;
                in_scratch(self.graph, &|folder| {
                    ScratchArray::paged(MAX_WORDS, PART, folder, self.job)
                })?
            }
        };
        for part in self.parts.drain(..).chain([std::mem::take(&mut self.part)]) {
            file.windows().write(self.words, &part)?;
            self.words += part.len();
        }
        self.part = Vec::with_capacity(PART);
        self.spilled = Some(file);
        Ok(())
    }

    /// Ends the writer and returns the table of all rows.
    ///
    /// # Errors
    /// Errors of writing to scratch files.
    pub fn finish(mut self) -> Result<RowTable> {
        if self.spilled.is_some() {
            self.spill()?;
        } else {
            self.words += self.part.len();
            self.parts.push(std::mem::take(&mut self.part));
        }
        Ok(RowTable {
            graph: Arc::clone(self.graph),
            layout: self.layout,
            parts: self.parts,
            spilled: self.spilled,
            rows: (self.words / self.layout.width().max(1)) as u64,
            offsets: self.graph.id_offsets()?,
        })
    }
}

/// A table of rows.
#[derive(Debug)]
pub struct RowTable {
    graph: Arc<Graph>,
    layout: Layout,
    parts: Vec<Vec<u64>>,
    spilled: Option<ScratchArray<u64>>,
    rows: u64,
    offsets: IdOffsets,
}

impl RowTable {
    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The columns, without that of lists.
    pub fn columns(&self) -> &'static [RowColumn] {
        self.layout.columns
    }

    /// The last column, if it has lists.
    pub fn lists(&self) -> Option<ListColumn> {
        self.layout.lists
    }

    /// The names of all columns.
    pub fn names(&self) -> Vec<&'static str> {
        let columns = self.columns().iter().map(|(name, _)| *name);
        columns.chain(self.lists().map(|(name, _)| name)).collect()
    }

    /// Rows to read at once: fewer if they are long.
    pub fn batch_rows(&self) -> usize {
        (4 * BATCH_ROWS / self.layout.width().max(1)).clamp(1, BATCH_ROWS)
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The words of `rows` rows from row `start` on, with the bits of external ids for vertices.
    fn words(&self, start: u64, rows: usize) -> Result<Vec<u64>> {
        let width = self.layout.width();
        let (first, count) = (start as usize * width, rows * width);
        let mut words = Vec::with_capacity(count);
        if let Some(file) = &self.spilled {
            words.resize(count, 0);
            file.read(first, &mut words)?;
        }
        while words.len() < count {
            let at = first + words.len();
            let part = &self.parts[at / PART][at % PART..];
            words.extend(part.iter().take(count - words.len()));
        }
        for (at, (_, kind)) in self.columns().iter().enumerate() {
            if *kind == Kind::Vertex {
                let own = words.iter_mut().skip(at).step_by(width);
                own.for_each(|word| *word = self.offsets.id(*word));
            }
        }
        Ok(words)
    }

    /// The columns of at most `most` rows from row `start` on.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read(&self, start: u64, most: usize) -> Result<Vec<Column>> {
        let rows = self.rows.saturating_sub(start).min(most as u64) as usize;
        let words = self.words(start, rows)?;
        let column = |(at, (_, kind)): (usize, &RowColumn)| {
            let own = words.iter().skip(at).step_by(self.layout.width());
            Column::new(*kind, own.copied().map(Some).collect())
        };
        let mut columns: Vec<Column> = self.columns().iter().enumerate().map(column).collect();
        columns.extend(self.lists().map(|(_, length)| {
            let halves =
                |word: &u64| [*word as u32, (*word >> u32::BITS) as u32].map(f32::from_bits);
            let list = |row: &[u64]| -> Vec<f32> {
                row[self.columns().len()..].iter().flat_map(halves).take(length).collect()
            };
            Column::Lists(length, words.chunks(self.layout.width()).flat_map(list).collect())
        }));
        Ok(columns)
    }

    /// The best `count` rows after `after`, the worst first.
    fn best_after(&self, after: Option<Rank>, count: usize) -> Result<Vec<Rank>> {
        let (width, id_type) = (self.layout.width(), self.graph.id_type());
        let mut best: BinaryHeap<Reverse<Rank>> = BinaryHeap::new();
        for start in (0..self.rows).step_by(BATCH_ROWS) {
            let rows = (self.rows - start).min(BATCH_ROWS as u64);
            let words = self.words(start, rows as usize)?;
            for (row, words) in (start..).zip(words.chunks(width)) {
                let last = self.columns().iter().zip(words).next_back();
                let key = last.map_or(0, |((_, kind), word)| kind.order_key(*word, id_type));
                let rank = (key, Reverse(row));
                let is_better = best.peek().is_none_or(|Reverse(worst)| rank > *worst);
                if after.is_none_or(|after| rank < after) && (best.len() < count || is_better) {
                    best.push(Reverse(rank));
                    if best.len() > count {
                        best.pop();
                    }
                }
            }
        }
        let mut rows: Vec<Rank> = best.into_iter().map(|Reverse(rank)| rank).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    /// Writes the columns as CSV.
    ///
    /// # Errors
    /// Errors of reading and of writing; an error if the file exists, unless `overwrite` is true.
    pub fn write_csv(&self, path: &Path, overwrite: bool, job: &Job) -> Result<()> {
        let mut out = CsvFile::create(path, overwrite, &self.names(), &self.graph)?;
        job.begin("write result", self.rows);
        for start in (0..self.rows).step_by(self.batch_rows()) {
            out.write(&self.read(start, self.batch_rows())?, job)?;
        }
        out.finish()
    }
}

/// A row by its value in the last column, with ties in the order of the table.
type Rank = (u64, Reverse<u64>);

/// An iterator over the rows with the largest values in the last column.
///
/// It reads all rows again for every 131,072 results.
pub struct TopOfRows {
    table: Arc<RowTable>,
    best: BestRows<Rank>,
}

impl TopOfRows {
    /// The `count` rows of `table` with the largest values.
    ///
    /// # Errors
    /// [`Error::Usage`] for a last column of lists.
    pub fn new(table: Arc<RowTable>, count: u64) -> Result<Self> {
        if let Some((name, _)) = table.lists() {
            let problem = format!(
                "the lists in the column {name} have no order, so the rows cannot be ranked; write \
                 the rows to a file"
            );
            return Err(Error::Usage(problem));
        }
        Ok(Self { table, best: BestRows::new(count) })
    }

    /// The next rows, at most `most`; `None` at the end.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Vec<Vec<Value>>>> {
        let (table, id_type) = (&*self.table, self.table.graph.id_type());
        let values = |(_, Reverse(row)): Rank| -> Result<Vec<Value>> {
            let words = table.words(row, 1)?;
            let named = table.columns().iter().zip(words);
            Ok(named.map(|((_, kind), word)| kind.value(word, id_type)).collect())
        };
        let next = self.best.next(most, |after, count| table.best_after(after, count))?;
        next.map(|rows| rows.map(values).collect()).transpose()
    }
}
