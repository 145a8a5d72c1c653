//! Scratch arrays: working memory in windows, resident or on disk, with no crash promise.
//!
//! Invariant: a window is a plain slice while it is in use, and has one user at a time. Apart from
//! speed, an array in memory and one on disk behave alike.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use crate::device::Folder;
use crate::error::Result;
use crate::file::StoreFile;
use crate::huge::HugeArray;
use crate::job::Job;
use crate::traffic::Content;

/// An array of `len` records in windows of `window` records.
#[derive(Debug)]
pub struct ScratchArray<T> {
    storage: ArrayStorage<T>,
    len: usize,
    window: usize,
}

#[derive(Debug)]
enum ArrayStorage<T> {
    Resident(HugeArray<T>),
    Paged(StoreFile),
}

impl<T: Pod + Send> ScratchArray<T> {
    /// A zeroed array in memory.
    pub fn resident(len: usize, window: usize) -> Self {
        Self { storage: ArrayStorage::Resident(HugeArray::zeroed(len)), len, window }
    }

    /// An array in memory that takes over `records`.
    pub fn of(records: HugeArray<T>, window: usize) -> Self {
        Self { len: records.len(), storage: ArrayStorage::Resident(records), window }
    }

    /// An array in a nameless file of `folder`. Every window must be written before it is read.
    pub fn paged(len: usize, window: usize, folder: &dyn Folder, job: &Job) -> Result<Self> {
        let file = StoreFile::scratch(folder, job.traffic())?;
        Ok(Self { storage: ArrayStorage::Paged(file), len, window })
    }

    /// Counts the traffic of the array as `content`, if it is on disk.
    pub fn counted_as(mut self, content: Content) -> Self {
        self.storage = match self.storage {
            ArrayStorage::Paged(file) => ArrayStorage::Paged(file.counted_as(content)),
            resident @ ArrayStorage::Resident(_) => resident,
        };
        self
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the array is in memory.
    pub fn is_resident(&self) -> bool {
        matches!(self.storage, ArrayStorage::Resident(_))
    }

    /// All records, if they are in memory.
    pub fn in_memory(&self) -> Option<&[T]> {
        match &self.storage {
            ArrayStorage::Resident(data) => Some(data),
            ArrayStorage::Paged(_) => None,
        }
    }

    /// All records for writing, if they are in memory.
    pub fn in_memory_mut(&mut self) -> Option<&mut [T]> {
        match &mut self.storage {
            ArrayStorage::Resident(data) => Some(data),
            ArrayStorage::Paged(_) => None,
        }
    }

    /// The records of `range`: a slice of the array, or read into `buffer`.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn slice<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<T>) -> Result<&'a [T]> {
        if let ArrayStorage::Resident(data) = &self.storage {
            return Ok(&data[range]);
        }
        buffer.resize(range.len(), T::zeroed());
        self.read(range.start, buffer)?;
        Ok(buffer)
    }

    /// Number of windows.
    pub fn window_count(&self) -> usize {
        self.len.div_ceil(self.window)
    }

    /// The records of window `index`.
    pub fn window_range(&self, index: usize) -> Range<usize> {
        window_range(self.len, self.window, index)
    }

    /// All windows, for many threads; each window has one user at a time.
    pub fn windows(&mut self) -> Windows<'_, T> {
        let kind = match &mut self.storage {
            ArrayStorage::Resident(data) => {
                WindowsKind::Resident(data.chunks_mut(self.window).map(Mutex::new).collect())
            }
            ArrayStorage::Paged(file) => WindowsKind::Paged(file),
        };
        Windows { kind, len: self.len, window: self.window }
    }

    /// Copies the records from `start` on into `out`.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn read(&self, start: usize, out: &mut [T]) -> Result<()> {
        match &self.storage {
            ArrayStorage::Resident(data) => {
                out.copy_from_slice(&data[start..start + out.len()]);
                Ok(())
            }
            ArrayStorage::Paged(file) => {
                assert!(start + out.len() <= self.len, "range within the array");
                file.read_exact_at(bytemuck::cast_slice_mut(out), (start * size_of::<T>()) as u64)
            }
        }
    }

    /// Makes `current` hold this array's records. A resident array is swapped with `current`; a
    /// paged one is read.
    pub fn publish_into(&mut self, current: &mut HugeArray<T>) -> Result<()> {
        // With unequal lengths, a paged array would be read in part, and a resident one would
        // become shorter.
        if current.len() != self.len {
            *current = HugeArray::zeroed(self.len);
        }
        match &mut self.storage {
            ArrayStorage::Resident(data) => {
                std::mem::swap(data, current);
                Ok(())
            }
            ArrayStorage::Paged(_) => self.read(0, current),
        }
    }
}

/// Consecutive records of a [`ScratchArray`] in memory, for a reader that mostly stays near the
/// record that it read last.
#[derive(Debug)]
pub struct ScratchWindow<T> {
    start: usize,
    records: Vec<T>,
}

impl<T> Default for ScratchWindow<T> {
    fn default() -> Self {
        Self { start: 0, records: Vec::new() }
    }
}

impl<T: Pod + Send> ScratchWindow<T> {
    /// Record `at` of `array`. If the window lacks it, the window becomes the `len` records around
    /// it; windows begin at multiples of `len`.
    ///
    /// # Panics
    /// If the array has no such record.
    #[inline]
    pub fn get(&mut self, array: &ScratchArray<T>, at: usize, len: usize) -> Result<&T> {
        if at.wrapping_sub(self.start) >= self.records.len() {
            // The window is empty after a failed read.
            let mut records = std::mem::take(&mut self.records);
            self.start = at - at % len;
            records.resize(len.min(array.len() - self.start), T::zeroed());
            array.read(self.start, &mut records)?;
            self.records = records;
        }
        Ok(&self.records[at - self.start])
    }
}

/// The records of window `index` of an array of `len` records in windows of `window`.
fn window_range(len: usize, window: usize, index: usize) -> Range<usize> {
    let start = index * window;
    start..len.min(start + window)
}

/// The windows of a [`ScratchArray`] for concurrent use.
#[derive(Debug)]
pub struct Windows<'a, T> {
    kind: WindowsKind<'a, T>,
    len: usize,
    window: usize,
}

#[derive(Debug)]
enum WindowsKind<'a, T> {
    Resident(Vec<Mutex<&'a mut [T]>>),
    Paged(&'a StoreFile),
}

impl<'a, T: Pod + Send> Windows<'a, T> {
    fn range(&self, index: usize) -> Range<usize> {
        window_range(self.len, self.window, index)
    }

    /// Passes window `index` to `f` to change it; `buffer` holds the window if the array is on
    /// disk.
    pub fn update<R>(
        &self,
        index: usize,
        buffer: &mut Vec<T>,
        f: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        self.with(self.range(index), buffer, true, f)
    }

    /// Like [`Windows::update`], for the records of `part`, which is not empty and within a window.
    pub fn update_part<R>(
        &self,
        part: Range<usize>,
        buffer: &mut Vec<T>,
        f: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        self.with(part, buffer, true, f)
    }

    /// Like [`Windows::update`], but without reading the previous content of the window.
    pub fn overwrite<R>(
        &self,
        index: usize,
        buffer: &mut Vec<T>,
        f: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        self.with(self.range(index), buffer, false, f)
    }

    /// Stores `records` from `start` on, across any number of windows.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub fn write(&self, start: usize, records: &[T]) -> Result<()> {
        assert!(start + records.len() <= self.len, "range within the array");
        let windows = match &self.kind {
            WindowsKind::Paged(file) => {
                return file
                    .write_all_at(bytemuck::cast_slice(records), (start * size_of::<T>()) as u64);
            }
            WindowsKind::Resident(windows) => windows,
        };
        let (mut at, mut rest) = (start, records);
        while !rest.is_empty() {
            let index = at / self.window;
            let within = self.range(index);
            let (now, later) = rest.split_at(rest.len().min(within.end - at));
            let mut window = windows[index].lock().unwrap_or_else(PoisonError::into_inner);
            window[at - within.start..][..now.len()].copy_from_slice(now);
            (at, rest) = (at + now.len(), later);
        }
        Ok(())
    }

    /// Passes the records of `part`, which is within a window, to `f`; reads them first if `read`
    /// is true.
    fn with<R>(
        &self,
        part: Range<usize>,
        buffer: &mut Vec<T>,
        read: bool,
        f: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        let mut open = self.open(&part, buffer, read)?;
        let result = f(open.records());
        self.close(open, &part)?;
        Ok(result)
    }

    // The parts of `with` without the caller's closure, compiled once for a type of records.

    fn open<'w>(
        &'w self,
        part: &Range<usize>,
        buffer: &'w mut Vec<T>,
        read: bool,
    ) -> Result<OpenWindow<'w, 'a, T>> {
        match &self.kind {
            WindowsKind::Resident(windows) => {
                let index = part.start / self.window;
                let start = part.start - index * self.window;
                let window = windows[index].lock().unwrap_or_else(PoisonError::into_inner);
                Ok(OpenWindow::Resident(window, start..start + part.len()))
            }
            WindowsKind::Paged(file) => {
                buffer.resize(part.len(), T::zeroed());
                if read {
                    file.read_exact_at(bytemuck::cast_slice_mut(buffer), Self::offset(part))?;
                }
                Ok(OpenWindow::Paged(file, buffer))
            }
        }
    }

    fn close(&self, open: OpenWindow<'_, 'a, T>, part: &Range<usize>) -> Result<()> {
        match open {
            OpenWindow::Resident(..) => Ok(()),
            OpenWindow::Paged(file, records) => {
                file.write_all_at(bytemuck::cast_slice(records), Self::offset(part))
            }
        }
    }

    /// The position of `part` in the file of an array on disk.
    fn offset(part: &Range<usize>) -> u64 {
        (part.start * size_of::<T>()) as u64
    }
}

/// Records of a window while a caller changes them.
enum OpenWindow<'w, 'a, T> {
    Resident(MutexGuard<'w, &'a mut [T]>, Range<usize>),
    Paged(&'w StoreFile, &'w mut Vec<T>),
}

impl<T> OpenWindow<'_, '_, T> {
    fn records(&mut self) -> &mut [T] {
        match self {
            Self::Resident(window, range) => &mut window[range.clone()],
            Self::Paged(_, records) => records,
        }
    }
}
