//! The division of a graph among processes, and the bytes that each process sends and receives.
//!
//! Invariant: all processes divide a graph in the same way.

use std::ops::Range;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::Job;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use super::{Communicator, Contribution, Received, malformed};
use crate::error::{Error, Result};
use crate::plan::exchange::slot_bytes;
use crate::plan::partitioning::divide_intervals;

/// Bytes of the id of a vertex in a message.
const ID_BYTES: usize = size_of::<u64>();
/// Records that are written at once.
const RECORDS_AT_ONCE: usize = 1 << 12;

/// The division of the intervals of a graph among processes.
pub(crate) struct Division<'a> {
    communicator: &'a Communicator,
    /// The intervals of each process.
    parts: Vec<Range<usize>>,
    /// Vertices, and vertices of an interval.
    vertices: usize,
    window: usize,
}

impl<'a> Division<'a> {
    pub(crate) fn new(
        communicator: &'a Communicator,
        graph: &Graph,
        indexes: &[&Arc<ShardFile>],
    ) -> Self {
        let window = 1 << graph.description().interval_bits;
        let vertices = graph.connected() as usize;
        Self {
            communicator,
            parts: divide_intervals(graph, indexes, communicator.count),
            vertices,
            window,
        }
    }

    /// The intervals of this process.
    pub(crate) fn owned(&self) -> Range<usize> {
        self.communicator.index.map_or(0..0, |index| self.parts[index].clone())
    }

    /// Bytes of the memory through which a process sends signals or states, equal in all processes;
    /// 0 if they cannot share memory, or if no other process reads it.
    pub(crate) fn exchange_bytes(&self, signal: u64) -> u64 {
        let shared = self.communicator.shares_memory && self.communicator.count > 1;
        if shared { slot_bytes(self.max_vertices(), signal) } else { 0 }
    }

    /// The most bytes of the states that a process sends, equal in all processes.
    pub(crate) fn message_bytes(&self, state: u64) -> u64 {
        self.max_vertices() * state
    }

    /// True if no other process owns intervals.
    pub(crate) fn is_alone(&self) -> bool {
        self.communicator.count == 1
    }

    /// Begins to send signals or states through shared memory, which is reserved already.
    pub(crate) fn share_memory(&self, signal: u64) -> Result<()> {
        if self.is_driver() {
            return Ok(());
        }
        self.communicator.exchange.share_memory(self.max_vertices() * signal)
    }

    /// The most vertices of a process.
    fn max_vertices(&self) -> u64 {
        (0..self.parts.len()).map(|index| self.vertices(index).len() as u64).max().unwrap_or(0)
    }

    /// True if this process is the driver.
    pub(crate) fn is_driver(&self) -> bool {
        self.communicator.is_driver()
    }

    /// The vertices of process `index`.
    pub(crate) fn vertices(&self, index: usize) -> Range<usize> {
        let Range { start, end } = self.parts[index];
        self.vertices.min(start * self.window)..self.vertices.min(end * self.window)
    }

    /// The vertices of this process.
    pub(crate) fn own_vertices(&self) -> Range<usize> {
        self.communicator.index.map_or(0..0, |index| self.vertices(index))
    }

    /// Parts of consecutive vertices, one for each interval.
    pub(crate) fn windows(
        &self,
        vertices: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let (window, end) = (self.window, vertices.end);
        vertices.step_by(window).map(move |start| start..end.min(start + window))
    }

    /// The processes from which this one receives signals: their positions and vertices.
    pub(crate) fn others(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let others = (0..self.parts.len())
            .filter(|index| self.communicator.index.is_some_and(|own| own != *index));
        others.map(|index| (index, self.vertices(index)))
    }

    /// Sends a report and new values of this process, and returns those of all processes that own
    /// intervals, in order.
    ///
    /// # Errors
    /// As [`super::Exchange::all_gather`].
    pub(crate) fn all_gather(
        &self,
        report: &[u8],
        values: &[u8],
        job: &Job,
    ) -> Result<Vec<Contribution>> {
        self.communicator.all_gather(report, values, job)
    }

    /// True if process `index` is this one.
    pub(crate) fn is_own(&self, index: usize) -> bool {
        self.communicator.index == Some(index)
    }

    /// Sends the records of this process to the driver, which gets those of all vertices, `len`
    /// each.
    ///
    /// # Errors
    /// As [`super::Exchange::gather`].
    pub(crate) fn gather<T: Pod + Send>(
        &self,
        records: &mut ScratchArray<T>,
        len: usize,
        job: &Job,
    ) -> Result<()> {
        let places = |vertices: Range<usize>| vertices.start * len..vertices.end * len;
        let mut buffer = Vec::new();
        let own = records.slice(places(self.own_vertices()), &mut buffer)?;
        for (index, bytes) in self.gather_bytes(bytemuck::cast_slice(own), job)? {
            store(records, places(self.vertices(index)), (*bytes).as_ref())?;
        }
        Ok(())
    }

    /// Sends bytes to the driver, which receives those of all processes, with their positions.
    ///
    /// # Errors
    /// As [`super::Exchange::gather`].
    pub(crate) fn gather_bytes(
        &self,
        bytes: &[u8],
        job: &Job,
    ) -> Result<impl Iterator<Item = (usize, Received)> + use<>> {
        Ok(self.communicator.exchange.gather(bytes, job)?.into_iter().enumerate())
    }
}

/// Writes records to `places`, some at a time.
pub(crate) fn store<T: Pod + Send>(
    array: &mut ScratchArray<T>,
    places: Range<usize>,
    bytes: &[u8],
) -> Result<()> {
    if bytes.len() != places.len() * size_of::<T>() {
        return Err(malformed());
    }
    let (windows, mut records) = (array.windows(), Vec::new());
    for (index, part) in bytes.chunks(size_of::<T>() * RECORDS_AT_ONCE).enumerate() {
        records.clear();
        records.extend(part.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        windows.write(places.start + index * RECORDS_AT_ONCE, &records)?;
    }
    Ok(())
}

/// A message of ids and their values: first all ids, then all values.
pub(crate) struct ListWriter {
    bytes: Vec<u8>,
    count: usize,
    written: usize,
}

impl ListWriter {
    /// A message of `count` ids with values of type `T`.
    pub(crate) fn new<T: Pod>(count: usize) -> Self {
        Self { bytes: vec![0; count * (ID_BYTES + size_of::<T>())], count, written: 0 }
    }

    #[inline]
    pub(crate) fn push<T: Pod>(&mut self, id: usize, value: &T) {
        let (ids, values) = self.bytes.split_at_mut(self.count * ID_BYTES);
        let (at, len) = (self.written, size_of::<T>());
        ids[at * ID_BYTES..][..ID_BYTES].copy_from_slice(&(id as u64).to_le_bytes());
        values[at * len..][..len].copy_from_slice(bytemuck::bytes_of(value));
        self.written += 1;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The ids and values of a message that a [`ListWriter`] wrote; all ids must be `vertices`.
pub(crate) fn read_list<T: Pod>(
    bytes: &[u8],
    vertices: Range<usize>,
) -> Result<impl Iterator<Item = (usize, T)>> {
    let len = size_of::<T>();
    let count = bytes.len() / (ID_BYTES + len);
    let (ids, values) = bytes.split_at(count * ID_BYTES);
    let (ids, _) = ids.as_chunks();
    let ids = ids.iter().map(|id| u64::from_le_bytes(*id) as usize);
    if values.len() != count * len || !ids.clone().all(|id| vertices.contains(&id)) {
        return Err(malformed());
    }
    Ok(ids.zip(values.chunks_exact(len.max(1)).map(bytemuck::pod_read_unaligned)))
}

/// The error if processes have completed different numbers of supersteps.
pub(crate) fn out_of_step(own: u64, theirs: u64) -> Error {
    Error::Exchange(
        format!(
            "one worker has completed superstep {theirs}, another {own}; --checkpoint-dir must \
             be a folder that all nodes share"
        )
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip_and_their_ids_and_lengths_are_checked() {
        let pairs = [(3, 1.5_f64), (9, -0.0), (4, f64::INFINITY)];
        let mut writer = ListWriter::new::<f64>(pairs.len());
        pairs.iter().for_each(|(id, value)| writer.push(*id, value));
        let bytes = writer.into_bytes();
        assert_eq!(bytes[..16], [[3, 0, 0, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(bytes[24..32], 1.5_f64.to_le_bytes());
        let bits = |(id, value): (usize, f64)| (id, value.to_bits());
        assert!(read_list(&bytes, 3..10).unwrap().map(bits).eq(pairs.map(bits)));
        for (bytes, vertices) in [(&bytes[..], 4..10), (&bytes[..], 3..9), (&bytes[..47], 3..10)] {
            assert!(read_list::<f64>(bytes, vertices).is_err());
        }
        assert_eq!(read_list::<f64>(&[], 0..0).unwrap().count(), 0);
    }
}
