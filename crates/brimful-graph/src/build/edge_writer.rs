//! Turns edges into the records that a sorter takes.

use brimful_store::sorter::SortWriter;

use crate::build::records::{EdgeRecord, KeyLayout};
use crate::error::Result;

/// Takes edges as records. [`RecordWriter::finish`] must be called.
pub trait RecordWriter {
    /// The type of a record.
    type Record: EdgeRecord;
    /// Adds a record.
    fn push(&mut self, record: Self::Record) -> Result<()>;
    /// Hands over the remaining records.
    fn finish(self) -> Result<()>;
}

impl<R: EdgeRecord> RecordWriter for SortWriter<'_, '_, R> {
    type Record = R;

    #[inline]
    fn push(&mut self, record: R) -> Result<()> {
        Ok(SortWriter::push(self, record)?)
    }

    fn finish(self) -> Result<()> {
        Ok(SortWriter::finish(self)?)
    }
}

/// Turns edges into the records of a writer. [`EdgeWriter::finish`] must be called.
pub struct EdgeWriter<W> {
    records: W,
    layout: KeyLayout,
    undirected: bool,
}

impl<W: RecordWriter> EdgeWriter<W> {
    /// A writer that stores each edge in both directions if `undirected`.
    pub(crate) fn new(records: W, layout: KeyLayout, undirected: bool) -> Self {
        Self { records, layout, undirected }
    }

    /// Adds an edge and its input position, [`UNKNOWN`] if it is not needed.
    #[inline]
    pub fn push(&mut self, source: u64, target: u64, weight: f64, position: u64) -> Result<()> {
        self.records.push(W::Record::pack(self.layout, source, target, weight, position))?;
        if self.undirected && source != target {
            self.records.push(W::Record::pack(self.layout, target, source, weight, position))?;
        }
        Ok(())
    }

    /// Hands over the remaining edges.
    pub fn finish(self) -> Result<()> {
        self.records.finish()
    }
}
