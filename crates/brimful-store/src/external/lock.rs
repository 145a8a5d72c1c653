//! The lock of a folder that stays: one process at a time changes it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::io::ErrorKind::WouldBlock;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::hidden::LOCK;
use super::open_at_once;
use crate::error::{Error, Result};
use crate::job::Job;

/// Holds a folder's exclusive lock until dropped: one writer at a time.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    place: FileId,
}

/// Device and inode number of a file.
type FileId = (u64, u64);

/// The locks that this process holds. They let an error message say that this process, not another
/// one, has the folder open.
static HELD: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<FileId>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_id(file: &io::Result<fs::Metadata>) -> Option<FileId> {
    file.as_ref().ok().map(|meta| (meta.dev(), meta.ino()))
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        held().remove(&self.place);
    }
}

impl FolderLock {
    /// Name of the locked file.
    pub const NAME: &str = LOCK;

    /// Takes the lock of `folder`.
    ///
    /// # Errors
    /// [`Error::Io`] if this process or another one holds it, or if the folder is read-only.
    pub fn take(folder: &Path) -> Result<Self> {
        lock(folder).and_then(Self::hold).map_err(|e| {
            let e = if e.kind() == WouldBlock {
                let is_ours = file_id(&fs::metadata(folder.join(LOCK)))
                    .is_some_and(|id| held().contains(&id));
                let problem = if is_ours {
                    "this process has it open already; close that first, or use it"
                } else {
                    "another process is changing it; wait until that ends"
                };
                io::Error::new(e.kind(), problem)
            } else {
                e
            };
            Error::io(folder, "change", e)
        })
    }

    fn hold(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let place = (meta.dev(), meta.ino());
        held().insert(place);
        Ok(Self { _file: file, place })
    }

    /// Takes the lock of `folder` once no other process holds it.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is read-only, [`Error::Interrupted`] after a cancellation.
    pub fn wait(folder: &Path, job: &Job) -> Result<Self> {
        let mut waits = false;
        loop {
            match lock(folder) {
                Ok(file) => return Self::hold(file).map_err(|e| Error::io(folder, "change", e)),
                Err(e) if e.kind() == WouldBlock => {
                    if !std::mem::replace(&mut waits, true) {
                        job.begin("wait for another process to change the graph", 0);
                    }
                    job.check()?;
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(e) => return Err(Error::io(folder, "change", e)),
            }
        }
    }
}

fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    loop {
        let file =
            open_at_once(OpenOptions::new().create(true).write(true).truncate(false), &path)?;
        file.try_lock()?;
        // The owner of an unfinished folder removes the file in the end, perhaps just before it was
        // locked here; then others would lock a new one.
        if file_id(&file.metadata()) == file_id(&fs::metadata(&path)) {
            return Ok(file);
        }
    }
}
