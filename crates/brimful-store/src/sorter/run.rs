//! A sorted run: records split into parts, and the bounds of the parts.
//!
//! Invariant: the bounds hold for every record of a part. For a run on disk they are on disk, too,
//! because they grow with the number of records.

use std::ops::Range;

use crate::error::Result;
use crate::file::StoreFile;
use crate::sorter::Record;

/// Records in parts: no record of a part is greater than any record of the next.
pub(super) struct SortedRun<R> {
    pub(super) storage: RunStorage<R>,
    pub(super) len: u64,
    /// Number of parts.
    pub(super) parts: u64,
    /// The lowest radix bit of the first digit: the radixes of different digits differ in this bit
    /// or a higher one.
    pub(super) shift: u32,
}

/// The storage of a run's records and of the bounds of its parts.
pub(super) enum RunStorage<R> {
    Memory { records: Vec<R>, parts: Parts<R> },
    File { offset: u64, parts: u64 },
}

/// The bounds of consecutive parts: the end, the least and the greatest record of each.
pub(super) struct Parts<R> {
    pub(super) ends: Vec<u64>,
    pub(super) least: Vec<R>,
    pub(super) greatest: Vec<R>,
}

impl<R: Record> Parts<R> {
    /// Bytes of the bounds of one part.
    pub(super) const BYTES: u64 = (size_of::<u64>() + 2 * size_of::<R>()) as u64;

    /// Bytes of a run with `records` and these parts.
    pub(super) fn bytes_of_run(&self, records: &[R]) -> u64 {
        size_of_val(records) as u64 + self.len() as u64 * Self::BYTES
    }

    pub(super) fn new() -> Self {
        Self { ends: Vec::new(), least: Vec::new(), greatest: Vec::new() }
    }

    /// The bounds of the parts of `records`, which begin at `starts`; the last of these is the end.
    pub(super) fn of(records: &[R], starts: &[u64]) -> Self {
        let mut parts = Self::new();
        let count = starts.len().saturating_sub(1);
        parts.ends.reserve_exact(count);
        parts.least.reserve_exact(count);
        parts.greatest.reserve_exact(count);
        for part in starts.windows(2) {
            let (start, end) = (part[0], part[1]);
            let part = &records[start as usize..end as usize];
            if let (Some(&least), Some(&greatest)) = (part.iter().min(), part.iter().max()) {
                parts.push(end, least, greatest);
            }
        }
        parts
    }

    pub(super) fn push(&mut self, end: u64, least: R, greatest: R) {
        self.ends.push(end);
        self.least.push(least);
        self.greatest.push(greatest);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.least.clear();
        self.greatest.clear();
    }

    /// Writes the bounds from part `first` on to `offset`, the start of the columns of all `count`
    /// parts of a run: ends, then least, then greatest records.
    pub(super) fn write(
        &self,
        file: &StoreFile,
        offset: u64,
        count: u64,
        first: u64,
    ) -> Result<()> {
        let [ends, least, greatest] = column_offsets::<R>(offset, count, first);
        file.write_all_at(bytemuck::cast_slice(&self.ends), ends)?;
        file.write_all_at(bytemuck::cast_slice(&self.least), least)?;
        file.write_all_at(bytemuck::cast_slice(&self.greatest), greatest)
    }

    /// Replaces the content with `range` of the `count` parts at `offset`.
    pub(super) fn read(
        &mut self,
        file: &StoreFile,
        offset: u64,
        count: u64,
        range: Range<u64>,
    ) -> Result<()> {
        let len = (range.end - range.start) as usize;
        let [ends, least, greatest] = column_offsets::<R>(offset, count, range.start);
        self.ends.resize(len, 0);
        self.least.resize(len, R::zeroed());
        self.greatest.resize(len, R::zeroed());
        file.read_exact_at(bytemuck::cast_slice_mut(&mut self.ends), ends)?;
        file.read_exact_at(bytemuck::cast_slice_mut(&mut self.least), least)?;
        file.read_exact_at(bytemuck::cast_slice_mut(&mut self.greatest), greatest)
    }
}

/// The offsets of part `first` in the three columns.
fn column_offsets<R>(offset: u64, count: u64, first: u64) -> [u64; 3] {
    let record = size_of::<R>() as u64;
    let least = offset + count * size_of::<u64>() as u64;
    [
        offset + first * size_of::<u64>() as u64,
        least + first * record,
        least + (count + first) * record,
    ]
}

/// Writes the bounds of the parts of a run on disk while its records arrive in order.
pub(super) struct PartsWriter<R> {
    part_len: u64,
    /// The number of records of the run.
    len: u64,
    /// The number of records that have arrived.
    added: u64,
    /// The offset of the bounds of all parts.
    offset: u64,
    /// The first part whose bounds are not yet written.
    first: u64,
    parts: Parts<R>,
}

/// Parts per write of bounds.
const PARTS_AT_ONCE: usize = 1 << 10;

impl<R: Record> PartsWriter<R> {
    /// A writer for `len` records in parts of `part_len` each, with the bounds at `offset`.
    pub(super) fn new(len: u64, part_len: usize, offset: u64) -> Self {
        Self { part_len: part_len as u64, len, added: 0, offset, first: 0, parts: Parts::new() }
    }

    /// Adds the next records, in ascending order.
    pub(super) fn add(&mut self, mut batch: &[R], file: &StoreFile) -> Result<()> {
        while let Some(&least) = batch.first() {
            let end = (self.added + 1).next_multiple_of(self.part_len).min(self.len);
            let now = batch.len().min((end - self.added) as usize);
            let greatest = batch[now - 1];
            match self.parts.greatest.last_mut() {
                Some(last) if !self.added.is_multiple_of(self.part_len) => *last = greatest,
                _ => self.parts.push(end, least, greatest),
            }
            self.added += now as u64;
            batch = &batch[now..];
            if self.added == self.len || self.added == end && self.parts.len() == PARTS_AT_ONCE {
                self.parts.write(
                    file,
                    self.offset,
                    self.len.div_ceil(self.part_len),
                    self.first,
                )?;
                self.first += self.parts.len() as u64;
                self.parts.clear();
            }
        }
        Ok(())
    }
}
