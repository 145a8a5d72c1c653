//! Arrays of fixed-size records in a sealed file: ids, degrees, weights.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use crate::traffic::Traffic;
use crate::wording::counted;

/// Bytes per block, the unit of reading and of checksums.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes records in order.
#[derive(Debug)]
pub struct ArrayWriter<T> {
    file: SealedWriter,
    pending: Vec<T>,
    len: u64,
}

impl<T: Pod> ArrayWriter<T> {
    /// Begins the array file `name`.
    pub fn create(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = SealedWriter::create(folder, name, kind, 0, traffic)?;
        Ok(Self { file, pending: Vec::with_capacity(per_block::<T>()), len: 0 })
    }

    /// Appends one record.
    pub fn push(&mut self, record: T) -> Result<()> {
        self.pending.push(record);
        self.len += 1;
        if self.pending.len() == per_block::<T>() { self.flush() } else { Ok(()) }
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if no record was appended.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(bytemuck::cast_slice(&self.pending), &[])?;
        self.pending.clear();
        Ok(())
    }

    /// Makes the array durable; returns the file's length in bytes.
    pub fn finish(mut self) -> Result<u64> {
        if !self.pending.is_empty() {
            self.flush()?;
        }
        self.file.finish()
    }
}

const fn per_block<T>() -> usize {
    BLOCK_BYTES / size_of::<T>()
}

/// Reads any range of an array, with one block in memory at a time.
#[derive(Debug)]
pub struct ArrayFile<T> {
    file: SealedFile,
    len: u64,
    record: PhantomData<T>,
}

impl<T: Pod> ArrayFile<T> {
    /// Opens the array file `name`, which must hold `len` records.
    ///
    /// # Errors
    /// `Error::Corrupt` if the file is damaged or does not hold `len` records of this size.
    pub fn open(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        len: u64,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = SealedFile::open(folder, name, kind, 0, traffic)?;
        let blocks = file.entries().len() as u64;
        let full = file
            .entries()
            .iter()
            .rev()
            .skip(1)
            .all(|e| e.len == (per_block::<T>() * size_of::<T>()) as u64);
        let bytes: u64 = file.entries().iter().map(|e| e.len).sum();
        if !full
            || bytes != len.saturating_mul(size_of::<T>() as u64)
            || blocks != len.div_ceil(per_block::<T>() as u64)
        {
            let problem = format!(
                "expected {} of {}, found {}",
                counted(len, "record"),
                counted(size_of::<T>(), "byte"),
                counted(bytes, "byte")
            );
            return Err(Error::corrupt(file.path(), 0, problem));
        }
        Ok(Self { file, len, record: PhantomData })
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `out` with the records from `start` on.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn read(&self, start: u64, out: &mut [T]) -> Result<()> {
        assert!(start + out.len() as u64 <= self.len, "range within the array");
        let mut buffer = Buffer::new();
        let mut done = 0;
        while done < out.len() {
            let at = start as usize + done;
            self.file.read_block(at / per_block::<T>(), &mut buffer)?;
            let records: &[T] = bytemuck::cast_slice(buffer.bytes());
            let from = &records[at % per_block::<T>()..];
            let count = from.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        Ok(())
    }

    /// Reads record `index`.
    pub fn get(&self, index: u64) -> Result<T> {
        let mut out = [T::zeroed()];
        self.read(index, &mut out)?;
        Ok(out[0])
    }

    /// The sealed file of the array, for verification.
    pub fn sealed(&self) -> &SealedFile {
        &self.file
    }
}
