//! `DiskBox<T>`: an array of plain records that may be larger than memory.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;

use brimful_store::Folder;
use bytemuck::Pod;

use crate::error::Result;
use crate::options::Options;
use crate::order::{Ids, Order};
use crate::record_box::RecordBox;

/// A disk-resident array of plain fixed-size records; derive `bytemuck::Pod` for your own.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{DiskBox, Options, Order};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(16 << 20, 0), Arc::new(Job::new()), None)?);
/// let squares = DiskBox::<u64>::open(&folder.path().join("squares"), Options::new(&resources))?;
/// squares.extend(&(0..100_000).collect::<Vec<u64>>())?;
/// squares.process(&Order::Ascending, |_, records| {
///     records.iter_mut().for_each(|x| *x *= *x);
///     Ok(())
/// })?;
/// assert_eq!(squares.fetch(300)?, 90_000);
/// assert_eq!(squares.fetch_batch(&[7, 2, 7])?, [49, 4, 49]);
/// squares.sync()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskBox<T> {
    records: RecordBox,
    record: PhantomData<fn() -> T>,
}

/// Derefs to the operations that do not depend on the type of records.
impl<T> Deref for DiskBox<T> {
    type Target = RecordBox;

    fn deref(&self) -> &RecordBox {
        &self.records
    }
}

impl<T: Pod + Send + Sync> DiskBox<T> {
    const ALIGNED: () = assert!(align_of::<T>() <= 8, "a record is aligned to at most 8 bytes");

    /// Opens the box at `path`, or makes it. Only the size of records is checked, not their type.
    ///
    /// # Errors
    /// As [`RecordBox::open`].
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let () = Self::ALIGNED;
        Ok(Self {
            records: RecordBox::open(path, size_of::<T>(), b"", options)?,
            record: PhantomData,
        })
    }

    /// Like [`DiskBox::open`], in any folder; the caller ensures that no other process has it open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        let () = Self::ALIGNED;
        Ok(Self {
            records: RecordBox::open_in(folder, size_of::<T>(), b"", options)?,
            record: PhantomData,
        })
    }

    /// The records as bytes.
    pub fn records(&self) -> &RecordBox {
        &self.records
    }

    /// Record `id`: at most one read.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    #[inline]
    pub fn fetch(&self, id: u64) -> Result<T> {
        self.records.fetch(id, bytemuck::pod_read_unaligned)
    }

    /// `count` records from `start` on, in large reads.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn fetch_range(&self, start: u64, count: usize) -> Result<Vec<T>> {
        // Before the memory is taken, because a wrong number may be of any size.
        self.records.check_range(start, count as u64)?;
        let mut out = vec![T::zeroed(); count];
        self.records.fetch_range(start, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }

    /// The records `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn fetch_batch(&self, ids: &[u64]) -> Result<Vec<T>> {
        let mut out = vec![T::zeroed(); ids.len()];
        self.records.fetch_batch(ids, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }

    /// Replaces record `id`.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn store(&self, id: u64, record: &T) -> Result<()> {
        self.records.store(id, bytemuck::bytes_of(record))
    }

    /// Replaces the records from `start` on.
    ///
    /// # Errors
    /// `Error::OutOfRange`.
    pub fn store_range(&self, start: u64, records: &[T]) -> Result<()> {
        self.records.store_range(start, bytemuck::cast_slice(records))
    }

    /// Replaces the records `ids`; the last record of a repeated id stays.
    ///
    /// # Errors
    /// `Error::OutOfRange`; `Error::RecordBytes` if the numbers of ids and records differ.
    pub fn store_batch(&self, ids: &[u64], records: &[T]) -> Result<()> {
        self.records.store_batch(ids, bytemuck::cast_slice(records))
    }

    /// Appends one record; returns its id.
    pub fn append(&self, record: &T) -> Result<u64> {
        self.records.append(bytemuck::bytes_of(record))
    }

    /// Appends records; returns the id of the first.
    pub fn extend(&self, records: &[T]) -> Result<u64> {
        self.records.extend(bytemuck::cast_slice(records))
    }

    /// All records in order, read in batches. An error is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<T>> + '_ {
        let step = self.records.batch_len();
        let mut has_failed = false;
        let batches = (0..self.len()).step_by(step).map_while(move |start| {
            let count = (self.len().saturating_sub(start)).min(step as u64) as usize;
            let batch = (!has_failed).then(|| self.fetch_range(start, count))?;
            has_failed = batch.is_err();
            Some(batch)
        });
        batches.flat_map(|batch| {
            let (records, error) = match batch {
                Ok(records) => (records, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            records.into_iter().map(Ok).chain(error)
        })
    }

    /// Passes all records to `f` as [`RecordBox::process`] does.
    ///
    /// # Errors
    /// Errors of `f`; `Error::OutOfRange` for an id of `order`.
    pub fn process(
        &self,
        order: &Order,
        f: impl Fn(&Ids, &mut [T]) -> Result<()> + Sync,
    ) -> Result<()> {
        self.records.process(order, |ids, bytes| f(ids, bytemuck::cast_slice_mut(bytes)))
    }
}
