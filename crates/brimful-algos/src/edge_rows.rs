//! A table of rows for edges, by ascending ends, sorted in any budget.

use std::sync::Arc;

use brimful_engine::result::table::Kind;
use brimful_engine::{RowColumn, RowTable, RowWriter};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::sorter::{self, Record};
use bytemuck::{Pod, Zeroable};

use crate::sorting::sorted;
use crate::{Error, Result};

/// A row: the offsets of the external ids of two ends, and a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct EdgeRow {
    pub(crate) ends: [u64; 2],
    pub(crate) value: u64,
}

impl EdgeRow {
    fn words(&self) -> [u64; 3] {
        [self.ends[0], self.ends[1], self.value]
    }
}

impl Record for EdgeRow {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.ends[0]
    }
}

/// Receives the ends of an edge, and its value.
pub(crate) type Push<'p> = dyn FnMut([u64; 2], u64) -> Result<()> + 'p;

/// The minimum bytes of [`edge_rows`].
pub(crate) fn min_bytes(workers: usize) -> u64 {
    sorter::minimum_bytes(workers, size_of::<EdgeRow>()) + RowWriter::MINIMUM_BYTES
}

/// The rows that `each` pushes, sorted in `bytes` of memory, at least [`min_bytes`]. The columns
/// are the ends, and the value if there is a third column. Floats of equal ends are added, in
/// ascending order of their bits.
pub(crate) fn edge_rows(
    graph: &Arc<Graph>,
    columns: &'static [RowColumn],
    bytes: u64,
    resources: &Resources,
    each: impl FnOnce(&mut Push<'_>) -> Result<()>,
) -> Result<RowTable> {
    let (job, workers) = (&resources.job, resources.workers());
    let spare = bytes.saturating_sub(min_bytes(workers)) / 2;
    let sorting = sorter::minimum_bytes(workers, size_of::<EdgeRow>()) + spare;
    let sorter = sorted(graph, sorting, resources, |rows| {
        each(&mut |ends, value| Ok(rows.push(EdgeRow { ends, value })?))
    })?;
    let mut rows = RowWriter::new(graph, columns, RowWriter::MINIMUM_BYTES + spare, job);
    job.begin("sort rows", sorter.len());
    let adds_up = columns.get(2).is_some_and(|(_, kind)| *kind == Kind::Float);
    let mut last: Option<EdgeRow> = None;
    sorter.merge(&resources.pool, |records| {
        job.check()?;
        for record in records {
            match &mut last {
                Some(last) if last.ends == record.ends && adds_up => {
                    let sum = f64::from_bits(last.value) + f64::from_bits(record.value);
                    last.value = sum.to_bits();
                }
                _ => {
                    if let Some(last) = last.replace(*record) {
                        rows.push(&last.words()[..columns.len()])?;
                    }
                }
            }
        }
        job.advance(records.len() as u64);
        Ok::<(), Error>(())
    })?;
    if let Some(last) = last {
        rows.push(&last.words()[..columns.len()])?;
    }
    Ok(rows.finish()?)
}
