//! Sequences: records written once in order to a nameless file and read in order, any number of
//! times.
//!
//! No crash promise. Invariant: a writer or reader uses memory for one window of records, whatever
//! the length.

use bytemuck::Pod;

use crate::device::Folder;
use crate::error::Result;
use crate::file::StoreFile;
use crate::job::Job;

/// Memory of a writer or a reader, in bytes.
pub const WINDOW_BYTES: usize = 64 << 10;

const fn window<T>() -> usize {
    WINDOW_BYTES / size_of::<T>()
}

/// Writes records in order.
#[derive(Debug)]
pub struct SequenceWriter<T> {
    file: StoreFile,
    pending: Vec<T>,
    written: u64,
}

impl<T: Pod> SequenceWriter<T> {
    /// An empty sequence in `folder`.
    pub fn new(folder: &dyn Folder, job: &Job) -> Result<Self> {
        let file = StoreFile::scratch(folder, job.traffic())?;
        Ok(Self { file, pending: Vec::with_capacity(window::<T>()), written: 0 })
    }

    /// Appends one record.
    #[inline]
    pub fn push(&mut self, record: T) -> Result<()> {
        self.pending.push(record);
        if self.pending.len() == window::<T>() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let offset = self.written * size_of::<T>() as u64;
        self.file.write_all_at(bytemuck::cast_slice(&self.pending), offset)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Ends the sequence.
    pub fn finish(mut self) -> Result<Sequence<T>> {
        self.flush()?;
        Ok(Sequence { file: self.file, len: self.written, record: std::marker::PhantomData })
    }
}

/// A finished sequence.
#[derive(Debug)]
pub struct Sequence<T> {
    file: StoreFile,
    len: u64,
    record: std::marker::PhantomData<T>,
}

impl<T: Pod> Sequence<T> {
    /// Number of records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A reader at the first record.
    pub fn reader(&self) -> SequenceReader<'_, T> {
        SequenceReader { sequence: self, window: Vec::new(), at: 0, next: 0 }
    }
}

/// Reads a [`Sequence`] from the first record to the last.
#[derive(Debug)]
pub struct SequenceReader<'s, T> {
    sequence: &'s Sequence<T>,
    window: Vec<T>,
    at: usize,
    next: u64,
}

impl<T: Pod> SequenceReader<'_, T> {
    /// The next record, without moving past it; `None` at the end.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<T>> {
        if self.at == self.window.len() {
            self.fill()?;
        }
        Ok(self.window.get(self.at).copied())
    }

    /// Moves past the record that [`SequenceReader::peek`] returned.
    #[inline]
    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// Returns the next record and moves past it; `None` at the end.
    pub fn take(&mut self) -> Result<Option<T>> {
        let record = self.peek()?;
        self.at += usize::from(record.is_some());
        Ok(record)
    }

    fn fill(&mut self) -> Result<()> {
        let count = (self.sequence.len - self.next).min(window::<T>() as u64);
        self.window.resize(count as usize, T::zeroed());
        let offset = self.next * size_of::<T>() as u64;
        self.sequence.file.read_exact_at(bytemuck::cast_slice_mut(&mut self.window), offset)?;
        self.next += count;
        self.at = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskFolder;

    #[test]
    fn what_is_written_is_read_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        for count in [0, 1, 8192, 8193, 50_000_u64] {
            let mut writer =
                SequenceWriter::new(&DiskFolder::new(folder.path()), &Job::new()).unwrap();
            (0..count).for_each(|i| writer.push(i * 3).unwrap());
            let sequence = writer.finish().unwrap();
            assert_eq!((sequence.len(), sequence.is_empty()), (count, count == 0));
            for _ in 0..2 {
                let mut reader = sequence.reader();
                assert!((0..count).all(|i| reader.take().unwrap() == Some(i * 3)));
                assert_eq!((reader.peek().unwrap(), reader.take().unwrap()), (None, None));
            }
        }
    }
}
