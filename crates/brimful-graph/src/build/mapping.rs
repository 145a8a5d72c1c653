//! Maps the ends of edges to internal ids, in this process or in others.
//!
//! Another process maps batches of distributed edges, and passes on the records of each part.
//! Invariant: the records are those that the import would make of the same batches.

use brimful_store::{Job, Resources};
use serde::{Deserialize, Serialize};

use crate::build::divided::{PartBounds, PartWriter};
use crate::build::edge_writer::{EdgeWriter, RecordWriter};
use crate::build::records::{EdgeRecord, RecordWork};
use crate::build::weights::hash_all;
use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::Result;
use crate::input::distributed::{DistributedEdges, take_edges};
use crate::input::formats::parser::Output;
use crate::message::{Message, damaged};
use crate::order::bitmap::ranks::RankTable;
use crate::order::classes::changed;
use crate::read::index::Index;

/// Edges whose ends are mapped together.
const MAPPED_AT_ONCE: usize = 128;

/// The internal ids of all ids.
pub(crate) enum IdTable<'a> {
    /// Internal id = id - first, of `count` ids.
    Consecutive { first: u64, count: u64 },
    /// Internal ids by rank.
    Ranks(RankTable<'a>),
}

impl IdTable<'_> {
    /// Replaces ids by their internal ids; false if one of them is unknown.
    #[inline]
    fn map(&self, ids: &mut [u64]) -> bool {
        match self {
            Self::Consecutive { first, count } => {
                let mut largest = 0;
                for id in ids {
                    *id = id.wrapping_sub(*first);
                    largest = largest.max(*id);
                }
                largest < *count
            }
            Self::Ranks(ranks) => ranks.map(ids),
        }
    }
}

/// Passes the edges of a batch, in their direction in `index`, to a writer.
pub(crate) fn write_mapped<W: RecordWriter>(
    table: &IdTable<'_>,
    index: Index,
    batch: &EdgeBatch,
    writer: &mut EdgeWriter<W>,
) -> Result<()> {
    let (mut sources, mut targets) = ([0; MAPPED_AT_ONCE], [0; MAPPED_AT_ONCE]);
    for start in (0..batch.len()).step_by(MAPPED_AT_ONCE) {
        let range = start..batch.len().min(start + MAPPED_AT_ONCE);
        let (sources, targets) = (&mut sources[..range.len()], &mut targets[..range.len()]);
        sources.copy_from_slice(&batch.sources[range.clone()]);
        targets.copy_from_slice(&batch.targets[range.clone()]);
        if !(table.map(sources) && table.map(targets)) {
            // The first pass saw every id.
            return Err(changed());
        }
        for (at, (&s, &t)) in range.zip(sources.iter().zip(&*targets)) {
            let (s, t) = if index == Index::In { (s, t) } else { (t, s) };
            writer.push(s, t, batch.weight(at), batch.position(at))?;
        }
    }
    Ok(())
}

/// The facts that another process needs to map edges.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    bounds: PartBounds,
    is_reverse: bool,
    undirected: bool,
    weighted: bool,
    positioned: bool,
    hashed: bool,
    /// The first id and the number of ids if ids are consecutive; otherwise a table has the
    /// internal ids.
    consecutive: Option<(u64, u64)>,
}

/// The mapping of distributed edges for an index.
pub(crate) struct Mapping<'a> {
    pub(crate) distributed: &'a dyn DistributedEdges,
    pub(crate) table: IdTable<'a>,
    pub(crate) index: Index,
    pub(crate) undirected: bool,
    pub(crate) hashed: bool,
}

impl Mapping<'_> {
    /// Lets other processes map all edges and hand over the records of each part. `last`: the edges
    /// are not needed again. Returns the number of records.
    pub(crate) fn run<R: EdgeRecord>(
        &self,
        bounds: &PartBounds,
        last: bool,
        job: &Job,
    ) -> Result<u64> {
        let (consecutive, bytes) = match &self.table {
            IdTable::Consecutive { first, count } => (Some((*first, *count)), [&[][..]; 2]),
            IdTable::Ranks(ranks) => (None, ranks.bytes()),
        };
        let task = Task {
            bounds: bounds.clone(),
            is_reverse: self.index == Index::Reverse,
            undirected: self.undirected,
            weighted: R::WEIGHTED,
            positioned: R::POSITIONED,
            hashed: self.hashed,
            consecutive,
        };
        let task = serde_json::to_vec(&task).map_err(|_| damaged())?;
        job.begin("sort", self.distributed.batches()? as u64);
        let (mut messages, mut records) = (self.distributed.map(&task, bytes, last)?, 0);
        while let Some((_, message)) = messages.next(job)? {
            let counts: Counts =
                serde_json::from_slice((*message).as_ref()).map_err(|_| damaged())?;
            records += counts.records;
            job.advance(counts.batches);
        }
        Ok(records)
    }
}

/// The counts of mapped edges: the last message of [`map_edges`].
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    batches: u64,
    records: u64,
}

/// The memory of a batch and its message, in bytes.
const BATCH_BYTES: u64 = (2 * BATCH_EDGES * 32) as u64;
/// The purpose of the budget, in error messages.
const PURPOSE: &str = "to map the ends of edges";

/// Maps the batches that `batches` returns, each with the number of its file, until it returns
/// `None`. Passes the records of parts to `send`, with the number of the part. Returns the counts
/// as a message.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of `batches` and of `send`.
pub fn map_edges(
    task: &[u8],
    table: [&[u8]; 2],
    resources: &Resources,
    batches: impl FnMut() -> Result<Option<(usize, Message)>>,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<Vec<u8>> {
    let task: Task = serde_json::from_slice(task).map_err(|_| damaged())?;
    let (layout, weighted, positioned) = (task.bounds.layout, task.weighted, task.positioned);
    let table = match task.consecutive {
        Some((first, count)) => IdTable::Consecutive { first, count },
        None => IdTable::Ranks(RankTable::of(table)),
    };
    let work = BatchMapping { task, table, resources, batches, send };
    let counts = layout.with_records(weighted, positioned, work)?;
    serde_json::to_vec(&counts).map_err(|_| damaged())
}

struct BatchMapping<'a, N, S> {
    task: Task,
    table: IdTable<'a>,
    resources: &'a Resources,
    batches: N,
    send: S,
}

impl<N, S> RecordWork for BatchMapping<'_, N, S>
where
    N: FnMut() -> Result<Option<(usize, Message)>>,
    S: FnMut(usize, Vec<u8>) -> Result<()>,
{
    type Done = Result<Counts>;

    fn with<R: EdgeRecord>(self) -> Result<Counts> {
        let Self { task, table, resources, mut batches, send } = self;
        let minimum = BATCH_BYTES + 2 * PartWriter::<R, S>::minimum_bytes(&task.bounds);
        let memory = resources.budget.reserve_all(minimum, PURPOSE)?;
        // A buffer is copied when it is sent.
        let bytes = (memory.bytes() - BATCH_BYTES) / 2;
        let layout = task.bounds.layout;
        let index = if task.is_reverse { Index::Reverse } else { Index::In };
        let (mut out, mut counts) = (Output::default(), Counts::default());
        let parts = PartWriter::<R, S>::new(task.bounds, bytes, send, &mut counts.records);
        let mut writer = EdgeWriter::new(parts, layout, task.undirected);
        while let Some((file, message)) = batches()? {
            resources.job.check()?;
            take_edges(file, &message, &mut out)?;
            if task.hashed {
                hash_all(&mut out.edges);
            }
            write_mapped(&table, index, &out.edges, &mut writer)?;
            counts.batches += 1;
        }
        writer.finish()?;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_the_consecutive_ones_are_unknown() {
        let table = IdTable::Consecutive { first: 5, count: 3 };
        let mut ids = [7, 5, 6];
        assert!(table.map(&mut ids));
        assert_eq!(ids, [2, 0, 1]);
        assert!(!table.map(&mut [5, 8]));
        assert!(!table.map(&mut [4, 5]));
    }
}
