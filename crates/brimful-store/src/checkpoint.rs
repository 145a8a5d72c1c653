//! Checkpoints: sealed files in a folder of their own, from which a long run resumes.
//!
//! Checkpoint N consists of the sealed file `arrays-N` and of `manifest-N`. The blocks of
//! `arrays-N` are the windows of arrays, one array after the other. The payload of the manifest is
//! the seal of `arrays-N`, followed by the owner's payload. Compute threads write the arrays while
//! they do not change; then the run continues. A background thread makes the file durable,
//! publishes the manifest and removes older checkpoints. One old file of arrays stays, and the next
//! checkpoint overwrites it. Invariant: `current` names a complete checkpoint, or no checkpoint
//! exists. A checkpoint to keep is removed only after a newer one is durable.

use std::collections::BTreeSet;
use std::io::ErrorKind::{DirectoryNotEmpty, InvalidInput, NotFound};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytemuck::Pod;

use crate::device::{DiskFolder, Folder};
use crate::error::{Error, ErrorKind, Result};
use crate::external::{FolderLock, make_folder};
use crate::file::{list_names, remove_if_present};
use crate::manifest;
use crate::resources::Resources;
use crate::scratch::ScratchArray;
use crate::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use crate::traffic::Traffic;
use crate::wording::counted;

const ARRAYS: &str = "arrays-";

/// The checkpoints in a folder.
pub struct Checkpoints {
    folder: Arc<dyn Folder>,
    /// Held for the lifetime of this value.
    lock: Option<FolderLock>,
    traffic: Arc<Traffic>,
    /// The number of checkpoints to keep.
    keep: usize,
    /// The checkpoints that were complete when the folder was opened, ascending.
    existing: Vec<u64>,
    /// The checkpoints of this run, ascending.
    of_run: Vec<u64>,
    /// The number of the next checkpoint.
    next: u64,
    publishing: Option<JoinHandle<Result<()>>>,
    /// True if this value only reads the folder.
    reads_only: bool,
}

impl std::fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoints").field("folder", &self.folder.path()).finish_non_exhaustive()
    }
}

impl Checkpoints {
    /// Opens the checkpoints in the folder `path` and keeps `keep` of them, at least 1. Makes the
    /// folder if its parent exists.
    ///
    /// # Errors
    /// [`Error::Io`] if another process has the folder open, or if it holds other files: a graph
    /// uses the same names.
    pub fn open(path: &Path, keep: usize, traffic: &Arc<Traffic>) -> Result<Self> {
        make_folder(path)?;
        let folder = DiskFolder::new(path);
        refuse_others(&folder)?;
        let lock = FolderLock::take(path)?;
        let mut opened = Self::open_folder(Arc::new(folder), keep, traffic)?;
        opened.lock = Some(lock);
        Ok(opened)
    }

    /// Like [`Checkpoints::open`], in any folder. No other process may change the folder. Removes
    /// the unfinished files of processes that ended, and checkpoints beyond those to keep.
    pub fn open_folder(
        folder: Arc<dyn Folder>,
        keep: usize,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let ((mut existing, lost), keep) = (complete(&*folder, traffic)?, keep.max(1));
        if let Some(newest) = lost {
            tracing::warn!(folder = %folder.path().display(), newest, "the pointer to the newest \
                                                                       checkpoint was lost");
            let payload = manifest::read_number(&*folder, newest, traffic)?;
            manifest::point_at(&*folder, newest, &payload, traffic)?;
        }
        // A process that was killed after it published a checkpoint may have left one more than it
        // keeps.
        while existing.len() > keep {
            existing.pop_first();
        }
        remove_but(&*folder, |number| existing.contains(&number), None)?;
        Ok(Self {
            folder,
            lock: None,
            traffic: Arc::clone(traffic),
            keep,
            next: existing.last().map_or(1, |newest| newest + 1),
            existing: existing.into_iter().collect(),
            of_run: Vec::new(),
            publishing: None,
            reads_only: false,
        })
    }

    /// Opens the checkpoints in the folder `path` only to read them, while another process of the
    /// same run holds the folder and may write others. A missing folder has none.
    pub fn open_to_read(path: &Path, traffic: &Arc<Traffic>) -> Result<Self> {
        let folder = DiskFolder::new(path);
        let existing = match path.is_dir() {
            true => complete(&folder, traffic)?.0.into_iter().collect(),
            false => Vec::new(),
        };
        Ok(Self {
            folder: Arc::new(folder),
            lock: None,
            traffic: Arc::clone(traffic),
            keep: 1,
            existing,
            of_run: Vec::new(),
            next: 0,
            publishing: None,
            reads_only: true,
        })
    }

    /// The folder of the checkpoints.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The complete checkpoints found on opening, newest first.
    pub fn existing(&self) -> impl Iterator<Item = u64> + use<> {
        self.existing.clone().into_iter().rev()
    }

    /// Opens one of the existing checkpoints.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the checkpoint fails a checksum.
    pub fn read(&self, number: u64) -> Result<Saved> {
        let (payload, file) =
            read_whole(&*self.folder, number, &self.traffic).map_err(with_remedy)?;
        Ok(Saved { number, payload, file, next: 0 })
    }

    /// Resumes from checkpoint `saved`: the checkpoints up to it count as those of this run. The
    /// other existing ones are removed once a newer checkpoint is durable.
    pub fn resume_after(&mut self, saved: u64) {
        self.of_run = self.existing.iter().copied().filter(|number| *number <= saved).collect();
    }

    /// Begins a checkpoint after the previous one is published.
    ///
    /// # Errors
    /// Errors of publishing the previous checkpoint.
    pub fn begin(&mut self) -> Result<Draft> {
        self.wait()?;
        let number = self.next;
        let file =
            SealedWriter::replace(&*self.folder, &arrays(number), Kind::Arrays, 0, &self.traffic)?;
        Ok(Draft { number, file })
    }

    /// Publishes a checkpoint in the background. The next call of `begin` or `wait` returns the
    /// errors.
    pub fn publish(&mut self, draft: Draft, payload: Vec<u8>) -> Result<()> {
        let Draft { number, file } = draft;
        self.next = number + 1;
        self.of_run.push(number);
        self.of_run.drain(..self.of_run.len().saturating_sub(self.keep));
        let (folder, traffic, kept) =
            (Arc::clone(&self.folder), Arc::clone(&self.traffic), self.of_run.clone());
        let work = move || {
            file.finish()?;
            let seal =
                SealedFile::open(&*folder, &arrays(number), Kind::Arrays, 0, &traffic)?.seal();
            let payload = [&seal.to_le_bytes()[..], &payload].concat();
            manifest::publish(&*folder, number, &payload, &traffic)?;
            remove_but(&*folder, |number| kept.contains(&number), Some(number + 1))?;
            // The manifest of an old checkpoint must be gone before the next checkpoint overwrites
            // its arrays.
            folder.sync().map_err(|e| Error::io(folder.path(), "sync", e))
        };
        let thread =
            std::thread::Builder::new().name("brimful-checkpoint".into()).stack_size(256 << 10);
        let thread = thread
            .spawn(work)
            .map_err(|e| Error::io("a thread that writes checkpoints", "start", e))?;
        self.publishing = Some(thread);
        Ok(())
    }

    /// Waits until every checkpoint passed to [`Checkpoints::publish`] is published.
    ///
    /// # Errors
    /// Errors of publishing a checkpoint.
    pub fn wait(&mut self) -> Result<()> {
        match self.publishing.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        if self.reads_only {
            return;
        }
        if let Some(thread) = self.publishing.take() {
            // The lock must outlive the thread. Only a failed run gets here, and its previous
            // checkpoint stays.
            let _ = thread.join();
        }
        // This is the unfinished file of the next checkpoint, or the old file that the next
        // checkpoint would have overwritten. If it stays, the next opening of the folder removes
        // it.
        let _ = remove_if_present(&*self.folder, &arrays(self.next));
        if self.lock.is_some() && self.existing.is_empty() && self.of_run.is_empty() {
            // The folder was not used. If its removal fails, an empty folder stays.
            let _ = remove_all(&*self.folder);
        }
    }
}

/// A checkpoint being written.
#[derive(Debug)]
pub struct Draft {
    number: u64,
    file: SealedWriter,
}

impl Draft {
    /// Appends an array, using all threads. Memory: one window per thread if the array is on disk.
    pub fn array<T: Pod + Send + Sync>(
        &mut self,
        array: &ScratchArray<T>,
        resources: &Resources,
    ) -> Result<()> {
        let bytes = |index: usize| (array.window_range(index).len() * size_of::<T>()) as u64;
        self.file.append_shared(
            array.window_count(),
            bytes,
            resources,
            |index, buffers: &mut Vec<T>, slot| {
                slot.put(bytemuck::cast_slice(array.slice(array.window_range(index), buffers)?))
            },
        )
    }

    /// Appends raw bytes.
    pub fn block(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes, &[])
    }

    /// Appends records in windows of `window`, using all threads.
    pub fn records<T: Pod + Sync>(
        &mut self,
        records: &[T],
        window: usize,
        resources: &Resources,
    ) -> Result<()> {
        let windows: Vec<&[T]> = records.chunks(window).collect();
        let bytes = |index: usize| size_of_val(windows[index]) as u64;
        self.file.append_shared(windows.len(), bytes, resources, |index, (): &mut (), slot| {
            slot.put(bytemuck::cast_slice(windows[index]))
        })
    }
}

/// A complete checkpoint, read array by array in the order of writing.
#[derive(Debug)]
pub struct Saved {
    number: u64,
    payload: Vec<u8>,
    file: SealedFile,
    /// The first block of the next array.
    next: usize,
}

impl Saved {
    /// The payload that the owner published with the checkpoint.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The path of the manifest, for messages.
    pub fn path(&self) -> std::path::PathBuf {
        self.file.path().with_file_name(manifest::name(self.number))
    }

    /// Fills an array, using all threads. Memory: two windows per thread.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a checksum fails or the checkpoint holds other data.
    pub fn array<T: Pod + Send>(
        &mut self,
        array: &mut ScratchArray<T>,
        resources: &Resources,
    ) -> Result<()> {
        let (count, windows) = (array.window_count(), array.windows());
        self.windows(count, resources, |index, buffers: &mut (Vec<T>, Buffer), read| {
            let (window, buffer) = buffers;
            windows
                .overwrite(index, window, |window| read(bytemuck::cast_slice_mut(window), buffer))?
        })
    }

    /// Fills records in windows of `window`, using all threads.
    ///
    /// # Errors
    /// As [`Saved::array`].
    pub fn records<T: Pod + Send>(
        &mut self,
        records: &mut [T],
        window: usize,
        resources: &Resources,
    ) -> Result<()> {
        let windows: Vec<Mutex<&mut [T]>> = records.chunks_mut(window).map(Mutex::new).collect();
        self.windows(windows.len(), resources, |index, buffer: &mut Buffer, read| {
            let mut window = windows[index].lock().unwrap_or_else(PoisonError::into_inner);
            read(bytemuck::cast_slice_mut(&mut window), buffer)
        })
    }

    /// Reads the next block of bytes; false after the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its checksum fails.
    pub fn block(&mut self, buffer: &mut Buffer) -> Result<bool> {
        if self.next == self.file.entries().len() {
            return Ok(false);
        }
        self.file.read_block(self.next, buffer).map_err(with_remedy)?;
        self.next += 1;
        Ok(true)
    }

    /// Returns to the first array or block.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// Makes `fill` read the next `count` blocks into their windows.
    fn windows<Buffers: Default>(
        &mut self,
        count: usize,
        resources: &Resources,
        fill: impl Fn(usize, &mut Buffers, &dyn Fn(&mut [u8], &mut Buffer) -> Result<()>) -> Result<()>
        + Sync,
    ) -> Result<()> {
        let (first, file) = (self.next, &self.file);
        resources.parallel_map(count, |index, buffers: &mut Buffers| {
            let block = first + index;
            fill(index, buffers, &|window, buffer| {
                if file.entries().get(block).is_none_or(|entry| entry.len != window.len() as u64) {
                    let problem = format!(
                        "block {block} does not have the expected {}",
                        counted(window.len(), "byte")
                    );
                    return Err(Error::corrupt(file.path(), 0, problem));
                }
                file.read_block(block, buffer)?;
                window.copy_from_slice(buffer.bytes());
                Ok(())
            })
            .map_err(with_remedy)
        })?;
        self.next += count;
        Ok(())
    }
}

/// Removes the checkpoints in the folder `path`, and the folder if it holds nothing else. A missing
/// folder is not an error.
pub fn discard(path: &Path) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let _lock = FolderLock::take(path)?;
    remove_all(&DiskFolder::new(path))
}

/// Removes the checkpoints in a folder whose lock is held, and the folder if it holds nothing else.
fn remove_all(folder: &dyn Folder) -> Result<()> {
    discard_in(folder)?;
    remove_if_present(folder, FolderLock::NAME)?;
    match std::fs::remove_dir(folder.path()) {
        Err(e) if e.kind() != DirectoryNotEmpty => Err(Error::io(folder.path(), "remove", e)),
        _ => Ok(()),
    }
}

/// Removes the checkpoints in `folder`, beginning with the pointer and the manifests that make them
/// complete.
pub fn discard_in(folder: &dyn Folder) -> Result<()> {
    remove_if_present(folder, manifest::CURRENT)?;
    remove_but(folder, |_| false, None)
}

/// The payload of the newest complete checkpoint in `folder`, if there is one.
pub fn newest(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Option<Vec<u8>>> {
    match current(folder, traffic)? {
        None => Ok(None),
        Some(number) => {
            let (_, payload) = read_manifest(folder, number, traffic).map_err(with_remedy)?;
            Ok(Some(payload))
        }
    }
}

/// The seal of the arrays of checkpoint `number`, and the owner's payload.
fn read_manifest(
    folder: &dyn Folder,
    number: u64,
    traffic: &Arc<Traffic>,
) -> Result<(u64, Vec<u8>)> {
    let mut payload = manifest::read_number(folder, number, traffic)?;
    let Some(seal) = payload.first_chunk().map(|seal| u64::from_le_bytes(*seal)) else {
        let path = folder.path().join(manifest::name(number));
        return Err(Error::corrupt(path, 64, "it is too short to name the file of its arrays"));
    };
    Ok((seal, payload.split_off(size_of::<u64>())))
}

/// Refuses a folder that holds files other than checkpoints and hidden files.
fn refuse_others(folder: &dyn Folder) -> Result<()> {
    const OURS: [&str; 3] = [manifest::CURRENT, manifest::CURRENT_NEW, FolderLock::NAME];
    let is_ours = |name: &str| {
        name.starts_with('.')
            || OURS.contains(&name)
            || manifest::number(name).is_some()
            || number_of_arrays(name).is_some()
    };
    let Some(other) = list_names(folder)?.into_iter().find(|name| !is_ours(name)) else {
        return Ok(());
    };
    let problem = format!(
        "it contains {other}, which is not a checkpoint; name a folder for the checkpoints of this \
         run alone"
    );
    Err(Error::io(folder.path(), "keep checkpoints in", std::io::Error::new(InvalidInput, problem)))
}

/// The number in the name of a file of arrays.
fn number_of_arrays(name: &str) -> Option<u64> {
    name.strip_prefix(ARRAYS)?.parse().ok()
}

/// The numbers of the complete checkpoints, and the newest of them if the pointer to it is missing
/// or damaged.
///
/// Without the pointer, the checkpoints whose files are whole count as complete.
fn complete(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<(BTreeSet<u64>, Option<u64>)> {
    let there: BTreeSet<u64> =
        list_names(folder)?.iter().filter_map(|name| manifest::number(name)).collect();
    let damage = match current(folder, traffic) {
        // Includes the newest one even if its manifest is missing: reading it reports the error.
        Ok(Some(newest)) => {
            let older = there.into_iter().filter(|number| *number < newest);
            return Ok((older.chain([newest]).collect(), None));
        }
        Ok(None) => None,
        Err(error) if error.kind() == ErrorKind::Corrupt => Some(error),
        Err(error) => return Err(error),
    };
    let mut whole = BTreeSet::new();
    for number in there {
        match read_whole(folder, number, traffic).map_err(with_remedy) {
            Ok(_) => whole.insert(number),
            Err(error) if error.kind() == ErrorKind::Corrupt => continue,
            Err(error) => return Err(error),
        };
    }
    match (whole.last().copied(), damage) {
        (None, Some(damage)) => Err(damage),
        (lost, _) => Ok((whole, lost)),
    }
}

/// The manifest of checkpoint `number` and the file of its arrays; an error if they do not belong
/// together.
fn read_whole(
    folder: &dyn Folder,
    number: u64,
    traffic: &Arc<Traffic>,
) -> Result<(Vec<u8>, SealedFile)> {
    let (seal, payload) = read_manifest(folder, number, traffic)?;
    let file = SealedFile::open(folder, &arrays(number), Kind::Arrays, 0, traffic)?;
    if file.seal() != seal {
        let problem = "it is intact, but not the file that the manifest names";
        return Err(Error::corrupt(file.path(), 0, problem));
    }
    Ok((payload, file))
}

/// The number of the newest complete checkpoint.
fn current(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Option<u64>> {
    match manifest::current(folder, traffic) {
        Ok(number) => Ok(Some(number)),
        Err(Error::Io { source, .. }) if source.kind() == NotFound => Ok(None),
        Err(error) => Err(with_remedy(error)),
    }
}

/// Turns errors of reading a file of a checkpoint into errors that name a remedy.
fn with_remedy(error: Error) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == NotFound => {
            Error::corrupt_checkpoint(path, 0, "the file is missing")
        }
        Error::Corrupt { path, offset, problem, .. } => {
            Error::corrupt_checkpoint(path, offset, problem)
        }
        error => error,
    }
}

fn arrays(number: u64) -> String {
    format!("{ARRAYS}{number}")
}

/// Removes the files of all checkpoints except the `kept` ones, manifests first, and an unfinished
/// pointer. If `next` is given, one file of arrays is renamed for the `next` checkpoint, which
/// overwrites it.
fn remove_but(
    folder: &dyn Folder,
    kept: impl Fn(u64) -> bool,
    mut next: Option<u64>,
) -> Result<()> {
    let names = list_names(folder)?;
    let names_with =
        |number: fn(&str) -> Option<u64>| names.iter().filter(move |name| number(name).is_some());
    for name in
        names_with(manifest::number).filter(|name| !manifest::number(name).is_some_and(&kept))
    {
        remove_if_present(folder, name)?;
    }
    for name in
        names_with(number_of_arrays).filter(|name| !number_of_arrays(name).is_some_and(&kept))
    {
        match next.take().map(arrays) {
            Some(next) => {
                let fail = |e| Error::io(folder.path().join(name), "rename", e);
                folder.rename(name, &next).map_err(fail)?;
            }
            None => remove_if_present(folder, name)?,
        }
    }
    match names.iter().find(|name| *name == manifest::CURRENT_NEW) {
        Some(name) => remove_if_present(folder, name),
        None => Ok(()),
    }
}
