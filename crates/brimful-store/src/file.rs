//! Files for all other modules: exact transfers, typed errors, byte counters.
//!
//! Invariant: after a failed sync the file refuses further use, because the durable part of its
//! bytes is unknown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::device::{Device, Folder};
use crate::error::{Error, Result};
use crate::traffic::{Content, Traffic};
use crate::wording::counted;

/// Smallest write, in bytes, whose write-back is started at once.
const LARGE_WRITE: usize = 1 << 20;

/// Removes a file of `folder`; a missing one is not an error.
pub fn remove_if_present(folder: &dyn Folder, name: &str) -> Result<()> {
    match folder.remove(name) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(folder.path().join(name), "remove", e))
        }
        _ => Ok(()),
    }
}

/// The names of the files in `folder`.
pub fn list_names(folder: &dyn Folder) -> Result<Vec<String>> {
    folder.list().map_err(|e| Error::io(folder.path(), "list", e))
}

/// An open file; threads may share it.
pub struct StoreFile {
    device: Box<dyn Device>,
    path: PathBuf,
    content: Content,
    /// Makes the error of a file that ends too early, with its remedy.
    cut: fn(PathBuf, u64, String) -> Error,
    traffic: Arc<Traffic>,
    poisoned: AtomicBool,
    /// The end of the bytes written to a nameless file; `None` for a file with a name.
    scratch_end: Option<AtomicU64>,
}

impl std::fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StoreFile {
    /// Makes a new file; [`Error::Exists`] if the name is taken.
    pub fn create(folder: &dyn Folder, name: &str, traffic: &Arc<Traffic>) -> Result<Self> {
        let path = folder.path().join(name);
        match folder.create(name) {
            Ok(device) => Ok(Self::new(device, path, traffic)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::Exists { path }),
            Err(e) => Err(Error::io(path, "create", e)),
        }
    }

    /// Opens an existing file for reading.
    pub fn open(folder: &dyn Folder, name: &str, traffic: &Arc<Traffic>) -> Result<Self> {
        let path = folder.path().join(name);
        let device = folder.open(name).map_err(|e| Error::io(&path, "open", e))?;
        Ok(Self::new(device, path, traffic))
    }

    /// Opens an existing file for reading and writing.
    pub fn open_to_change(folder: &dyn Folder, name: &str, traffic: &Arc<Traffic>) -> Result<Self> {
        let path = folder.path().join(name);
        let device = folder.open_to_change(name).map_err(|e| Error::io(&path, "open", e))?;
        Ok(Self::new(device, path, traffic))
    }

    /// Makes a nameless working file in `folder`, which disappears when dropped.
    pub fn scratch(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Self> {
        let path = folder.path().join("(scratch)");
        let device = folder
            .scratch()
            .map_err(|e| Error::io(folder.path(), "create a scratch file in", e))?;
        let mut file = Self::new(device, path, traffic).cut_as(Error::corrupt_scratch);
        file.scratch_end = Some(AtomicU64::new(0));
        Ok(file)
    }

    fn new(device: Box<dyn Device>, path: PathBuf, traffic: &Arc<Traffic>) -> Self {
        Self {
            device,
            path,
            content: Content::Working,
            cut: Error::corrupt,
            traffic: Arc::clone(traffic),
            poisoned: AtomicBool::new(false),
            scratch_end: None,
        }
    }

    /// Makes the error of a file that ends too early by `cut`; the default is [`Error::corrupt`].
    pub(crate) fn cut_as(mut self, cut: fn(PathBuf, u64, String) -> Error) -> Self {
        self.cut = cut;
        self
    }

    /// Counts the traffic of the file as `content`; the default is [`Content::Working`].
    pub fn counted_as(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes.
    pub fn len(&self) -> Result<u64> {
        self.device.len().map_err(|e| Error::io(&self.path, "read the length of", e))
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` from `offset`; [`Error::Corrupt`] if the file ends first.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.usable()?;
        let (mut done, begin) = (0, Instant::now());
        while done < buffer.len() {
            match self.device.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => {
                    let missing = counted(buffer.len() - done, "byte");
                    let problem = format!("the file ends {missing} too early");
                    return Err((self.cut)(self.path.clone(), offset + done as u64, problem));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path, "read", e)),
            }
        }
        self.traffic.add_read(self.content, done as u64, begin.elapsed());
        Ok(())
    }

    /// Writes all of `bytes` at `offset`.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.usable()?;
        let (mut done, begin) = (0, Instant::now());
        while done < bytes.len() {
            match self.device.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => {
                    let error = std::io::Error::from(std::io::ErrorKind::WriteZero);
                    return Err(Error::io(&self.path, "write", error));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path, "write", e)),
            }
        }
        self.traffic.add_written(self.content, done as u64, begin.elapsed());
        if let Some(end) = &self.scratch_end {
            let now = offset + done as u64;
            let before = end.fetch_max(now, Ordering::Relaxed);
            if now > before {
                self.traffic.add_scratch(now - before);
            }
        }
        if done >= LARGE_WRITE {
            self.start_writing(offset, done as u64);
        }
        Ok(())
    }

    /// Counts `bytes` of this file that were found in memory instead of read.
    pub(crate) fn count_found(&self, bytes: u64) {
        self.traffic.add_found(self.content, bytes);
    }

    /// Starts reading bytes that are needed soon into the system's cache, without waiting.
    pub fn start_reading(&self, offset: u64, len: u64) {
        self.device.start_reading(offset, len);
    }

    /// Starts moving the bytes of small writes to the disk, without waiting.
    pub fn start_writing(&self, offset: u64, len: u64) {
        self.device.start_writing(offset, len);
    }

    /// Cuts the file to `len` bytes, or extends it with zeros.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.usable()?;
        self.device.set_len(len).map_err(|e| Error::io(&self.path, "change the length of", e))
    }

    /// Makes all writes durable. After a failure the file refuses use until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.usable()?;
        self.device.sync().map_err(|e| {
            self.poisoned.store(true, Ordering::SeqCst);
            Error::io(&self.path, "sync", e)
        })
    }

    /// Fails with [`Error::Poisoned`] after a failed sync.
    pub fn usable(&self) -> Result<()> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(Error::Poisoned { path: self.path.clone() });
        }
        Ok(())
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if let Some(end) = &mut self.scratch_end {
            self.traffic.remove_scratch(*end.get_mut());
        }
    }
}
