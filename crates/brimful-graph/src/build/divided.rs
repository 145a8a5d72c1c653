//! Edges that other processes sort into shards.
//!
//! Other processes map the ends of edges to internal ids, and make records of the sorter. Each of
//! the *parts* into which the import divides the edges is a range of target intervals, which a
//! process sorts and encodes. The import writes the segments of the parts in their order.
//! Invariant: a segment belongs to one interval, and so do equal edges; so segments and counts are
//! those of one sorter of all edges.

use brimful_store::{Folder, Job, Resources, sorter};
use serde::{Deserialize, Serialize};

use crate::build::edge_writer::RecordWriter;
use crate::build::records::{EdgeRecord, KeyLayout, RecordWork};
use crate::build::shards::{Encoded, IndexWriter, ShardSorter, encoding_bytes};
use crate::error::Result;
use crate::input::distributed::DistributedEdges;
use crate::input::policy::{Applied, Policy};
use crate::message::{Message, damaged, put, take};
use crate::read::degree_counter::DegreeCounter;
use crate::read::shards::{Geometry, PackedSegment};
use crate::read::weight_range::WeightRange;

/// The facts about a part that its process must know.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Task {
    layout: KeyLayout,
    geometry: Geometry,
    policy: Policy,
    undirected: bool,
    weighted: bool,
    positioned: bool,
}

/// The maximum number of bytes that are sent together.
const MAX_PUT_BYTES: usize = 4 << 20;
/// The least number of records in a buffer.
const MIN_RECORDS: usize = 1 << 10;
/// The bytes of segments after which a message is sent; with another segment, it has at most
/// `MAX_MESSAGE_BYTES`.
const MESSAGE_BYTES: usize = 1 << 20;
const MAX_MESSAGE_BYTES: u64 = 3 << 20;
/// The number of messages in memory: the next one, and those that wait to be sent.
const MESSAGES: u64 = 4;

/// The bounds of the parts into which edges are divided.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartBounds {
    pub(crate) layout: KeyLayout,
    /// The first interval of each part.
    starts: Vec<u64>,
}

/// The options of sorting the edges of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortOptions {
    pub(crate) geometry: Geometry,
    pub(crate) policy: Policy,
    pub(crate) undirected: bool,
}

impl PartBounds {
    /// Parts of the intervals below the internal id `ends`, with about as many edges each, judged
    /// by the ascending `targets` of some edges.
    pub(crate) fn new(layout: KeyLayout, ends: u64, targets: &[u64], parts: usize) -> Self {
        let intervals = ends.div_ceil(1 << layout.interval_bits);
        let sampled: Vec<u64> =
            targets.iter().map(|target| target >> layout.interval_bits).collect();
        Self { layout, starts: even_parts(&sampled, intervals, parts) }
    }

    fn part_of<R: EdgeRecord>(&self, record: &R) -> usize {
        let (_, target, _) = record.unpack(self.layout);
        let interval = target >> self.layout.interval_bits;
        // The first part begins at interval 0.
        self.starts.partition_point(|start| *start <= interval) - 1
    }

    /// Lets other processes sort `records` records of the type `R`, which are theirs already, and
    /// writes their segments to `index`.
    pub(crate) fn sort<R: EdgeRecord>(
        self,
        records: u64,
        distributed: &dyn DistributedEdges,
        options: SortOptions,
        index: &mut IndexWriter,
        job: &Job,
    ) -> Result<Applied> {
        job.begin("write shards", records);
        let Self { layout, starts } = self;
        let SortOptions { geometry, policy, undirected } = options;
        let (weighted, positioned) = (R::WEIGHTED, R::POSITIONED);
        let task = Task { layout, geometry, policy, undirected, weighted, positioned };
        let task = serde_json::to_vec(&task).map_err(|_| damaged())?;
        let mut messages = distributed.sort(&task, starts.len())?;
        let (mut all, mut ended) = (Applied::default(), 0);
        while let Some((part, message)) = messages.next(job)? {
            if part != ended {
                return Err(damaged());
            }
            match (*message).as_ref() {
                [SEGMENTS, rest @ ..] => {
                    let mut rest = rest;
                    while !rest.is_empty() {
                        let encoded = take_segment(&mut rest).ok_or_else(damaged)?;
                        job.advance(encoded.0.entry.edges.into());
                        index.append(&encoded)?;
                    }
                }
                [END, applied @ ..] => {
                    all.add(serde_json::from_slice(applied).map_err(|_| damaged())?);
                    ended += 1;
                }
                _ => return Err(damaged()),
            }
        }
        if ended == starts.len() { Ok(all) } else { Err(damaged()) }
    }
}

/// The first intervals of at most `count` parts with about as many of the `sampled` edges each,
/// given the ascending intervals of these; without a sample, parts have equally many intervals.
fn even_parts(sampled: &[u64], intervals: u64, count: usize) -> Vec<u64> {
    if sampled.is_empty() {
        let count = (count as u64).min(intervals).max(1);
        return (0..count).map(|part| part * intervals / count).collect();
    }
    let (mut starts, mut rest, mut open) = (vec![0], sampled.len(), 0);
    for interval in sampled.chunk_by(|a, b| a == b) {
        let fair = rest / (count - starts.len() + 1);
        if starts.len() < count && open > 0 && open + interval.len() / 2 >= fair {
            starts.push(interval[0]);
            (rest, open) = (rest - open, 0);
        }
        open += interval.len();
    }
    starts
}

/// Collects the records of one worker by part, and passes them to `send` with the number of the
/// part.
pub(crate) struct PartWriter<'c, R, S> {
    bounds: PartBounds,
    send: S,
    /// Records that are collected for a part before they are sent.
    buffered: usize,
    buffers: Vec<Vec<R>>,
    /// The number of records that were sent.
    count: &'c mut u64,
}

impl<'c, R: EdgeRecord, S: FnMut(usize, Vec<u8>) -> Result<()>> PartWriter<'c, R, S> {
    /// A writer that buffers about `bytes`.
    pub(crate) fn new(bounds: PartBounds, bytes: u64, send: S, count: &'c mut u64) -> Self {
        let each = usize::try_from(bytes).unwrap_or(usize::MAX) / bounds.starts.len();
        let buffered = (each.min(MAX_PUT_BYTES) / size_of::<R>()).max(MIN_RECORDS);
        let buffers = bounds.starts.iter().map(|_| Vec::new()).collect();
        Self { bounds, send, buffered, buffers, count }
    }

    /// The least memory of a writer, in bytes.
    pub(crate) fn minimum_bytes(bounds: &PartBounds) -> u64 {
        (bounds.starts.len() * MIN_RECORDS * size_of::<R>()) as u64
    }

    fn send(&mut self, part: usize) -> Result<()> {
        let records = &mut self.buffers[part];
        *self.count += records.len() as u64;
        (self.send)(part, bytemuck::cast_slice(records).to_vec())?;
        records.clear();
        Ok(())
    }
}

impl<R, S> RecordWriter for PartWriter<'_, R, S>
where
    R: EdgeRecord,
    S: FnMut(usize, Vec<u8>) -> Result<()>,
{
    type Record = R;

    #[inline]
    fn push(&mut self, record: R) -> Result<()> {
        let part = self.bounds.part_of(&record);
        let buffer = &mut self.buffers[part];
        if buffer.capacity() == 0 {
            buffer.reserve_exact(self.buffered);
        }
        buffer.push(record);
        if buffer.len() == self.buffered { self.send(part) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<()> {
        let full = |part: &usize| !self.buffers[*part].is_empty();
        let parts: Vec<usize> = (0..self.buffers.len()).filter(full).collect();
        parts.into_iter().try_for_each(|part| self.send(part))
    }
}

/// Sorts the records of a part, which `records` returns until it returns `None`, and passes
/// messages to `send`. Runs that exceed the budget are in a scratch file of `folder`.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of `records`, of `send` and of the
/// scratch file.
pub fn sort_part(
    task: &[u8],
    folder: &dyn Folder,
    resources: &Resources,
    records: impl FnMut() -> Result<Option<Message>>,
    send: impl FnMut(Vec<u8>) -> Result<()> + Send,
) -> Result<()> {
    let task: Task = serde_json::from_slice(task).map_err(|_| damaged())?;
    let sorting = PartSorting { task, folder, resources, records, send };
    task.layout.with_records(task.weighted, task.positioned, sorting)
}

struct PartSorting<'a, N, S> {
    task: Task,
    folder: &'a dyn Folder,
    resources: &'a Resources,
    records: N,
    send: S,
}

/// The purpose of the budget, in error messages.
const PURPOSE: &str = "to sort a part of the edges";

impl<N, S> RecordWork for PartSorting<'_, N, S>
where
    N: FnMut() -> Result<Option<Message>>,
    S: FnMut(Vec<u8>) -> Result<()> + Send,
{
    type Done = Result<()>;

    fn with<R: EdgeRecord>(self) -> Result<()> {
        let Self { task, folder, resources, mut records, mut send } = self;
        let workers = resources.workers();
        let encoding =
            encoding_bytes(workers, task.weighted, task.positioned) + MESSAGES * MAX_MESSAGE_BYTES;
        let minimum = encoding + sorter::minimum_bytes(workers, size_of::<R>());
        let memory = resources.budget.reserve_all(minimum, PURPOSE)?;
        let bytes = memory.bytes() - encoding;
        let Task { layout, geometry, policy, undirected, .. } = task;
        let job = &resources.job;
        let sorter =
            ShardSorter::<R>::new(folder, layout, geometry, undirected, bytes, workers, job)?;
        let mut writer = sorter.record_writer();
        while let Some(message) = records()? {
            job.check()?;
            let records = (*message).as_ref().chunks_exact(size_of::<R>());
            if !records.remainder().is_empty() {
                return Err(damaged());
            }
            for record in records {
                RecordWriter::push(&mut writer, bytemuck::pod_read_unaligned(record))?;
            }
        }
        RecordWriter::finish(writer)?;
        let mut message = vec![SEGMENTS];
        let pass = |encoded: Encoded| {
            put_segment(&encoded, &mut message);
            if message.len() < MESSAGE_BYTES {
                return Ok(());
            }
            send(std::mem::replace(&mut message, vec![SEGMENTS]))
        };
        let applied = sorter.encode(policy, &mut DegreeCounter::default(), resources, pass)?;
        send(message)?;
        let mut message = vec![END];
        serde_json::to_writer(&mut message, &applied).map_err(|_| damaged())?;
        send(message)
    }
}

/// The first byte of a message of segments, and of the message of counts that ends a part.
const SEGMENTS: u8 = 0;
const END: u8 = 1;

fn put_segment((segment, weights): &Encoded, message: &mut Vec<u8>) {
    let weights: Vec<u64> =
        weights.iter().flat_map(|range| [range.min.to_bits(), range.max.to_bits()]).collect();
    put(message, &weights);
    segment.put(message);
}

/// The next segment of a message; `None` if it is damaged.
fn take_segment(rest: &mut &[u8]) -> Option<Encoded> {
    let mut weights = Vec::new();
    take(rest, &mut weights)?;
    let weights = match *weights.as_slice() {
        [] => None,
        [min, max] => Some(WeightRange { min: f64::from_bits(min), max: f64::from_bits(max) }),
        _ => return None,
    };
    Some((PackedSegment::take(rest)?, weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_about_as_many_edges_each() {
        assert_eq!(even_parts(&[], 10, 4), [0, 2, 5, 7]);
        assert_eq!(even_parts(&[], 2, 4), [0, 1]);
        assert_eq!(even_parts(&[], 0, 4), [0]);
        // Half of the edges are in the first interval.
        let sampled: Vec<u64> = (0..200).map(|at: u64| at.saturating_sub(100)).collect();
        assert_eq!(even_parts(&sampled, 120, 4), [0, 1, 34, 67]);
        assert_eq!(even_parts(&[7; 9], 20, 3), [0]);
    }
}
