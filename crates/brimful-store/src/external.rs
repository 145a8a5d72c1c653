//! The user's files: inputs, which are read once from front to back, and outputs, which appear
//! under their name only when complete.
//!
//! `hidden` makes the names of everything unfinished or temporary, `outputs` has the types that use
//! such names, and `lock` locks a folder that stays.

mod hidden;
mod lock;
mod outputs;

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::device::{AT_ONCE, DiskFolder, Folder};
use crate::error::{Error, Result};
use crate::job::Job;
pub use lock::FolderLock;
pub use outputs::{OutputFile, PartialFile, PartialFolder, TemporaryFolder};

/// Opens an input for one pass from front to back; `-` is standard input.
///
/// Progress of `job` advances by the bytes read.
///
/// # Errors
/// [`Error::Io`] if the path is missing, unreadable or a folder.
pub fn open_input(path: &Path, job: &Arc<Job>) -> Result<Box<dyn Read + Send>> {
    let job = Arc::clone(job);
    if path == Path::new("-") {
        let file =
            io::stdin().as_fd().try_clone_to_owned().map_err(|e| Error::io(path, "open", e))?;
        return Ok(Box::new(Input { file: file.into(), may_wait: true, job }));
    }
    let file = open_at_once(OpenOptions::new().read(true), path)
        .map_err(|e| Error::io(path, "open", e))?;
    let meta = file.metadata().map_err(|e| Error::io(path, "look at", e))?;
    if meta.is_dir() {
        let error =
            io::Error::new(io::ErrorKind::IsADirectory, "it is a folder; name a file in it");
        return Err(Error::io(path, "read", error));
    }
    Ok(Box::new(Input { file, may_wait: !meta.is_file(), job }))
}

/// Opens a file or a pipe without waiting. If a pipe lacks its other end, the first read waits for
/// it, and opening it for writing fails.
fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(AT_ONCE).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

/// Length of an input in bytes; `None` for standard input and other streams.
pub fn input_len(path: &Path) -> Option<u64> {
    let meta = fs::metadata(path).ok()?;
    meta.is_file().then_some(meta.len())
}

struct Input {
    file: File,
    /// True for a pipe or terminal, whose reads may wait forever.
    may_wait: bool,
    job: Arc<Job>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.may_wait {
            self.wait()?;
        }
        let n = self.file.read(buffer)?;
        self.job.advance(n as u64);
        Ok(n)
    }
}

impl Input {
    /// Waits until a read would return at once, and checks for cancellation ten times a second.
    fn wait(&self) -> io::Result<()> {
        loop {
            self.job.check().map_err(io::Error::other)?;
            let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let mut wanted = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut wanted, Some(&tenth)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// The folder of `path`, and the name within it.
fn split(path: &Path) -> Result<(PathBuf, String)> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name else {
        return Err(Error::io(
            path,
            "write",
            io::Error::new(io::ErrorKind::InvalidInput, "it names no file"),
        ));
    };
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    Ok((folder, name))
}

/// Opens a log for appending, and makes it if it is missing.
pub fn append_to(path: &Path) -> Result<File> {
    open_at_once(OpenOptions::new().append(true).create(true), path)
        .map_err(|e| Error::io(path, "write", e))
}

/// Refuses to make `path` on a disk with less than `bytes` free.
///
/// # Errors
/// [`Error::NoSpace`]; [`Error::Io`] if the disk does not report its free space.
pub fn require_space(path: &Path, bytes: u64) -> Result<()> {
    let (folder, _) = split(path)?;
    let disk = rustix::fs::statvfs(&folder).map_err(|e| Error::io(&folder, "look at", e.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < bytes {
        return Err(Error::NoSpace { path: path.into(), needed: bytes, free });
    }
    Ok(())
}

/// Removes a file; one that is missing is no error.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != NotFound => Err(Error::io(path, "remove", e)),
        _ => Ok(()),
    }
}

/// Makes the folder `path` if it is missing; its parent must exist.
pub fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == AlreadyExists => {
            let problem = io::Error::new(NotADirectory, "it is a file, not a folder");
            Err(Error::io(path, "open", problem))
        }
        Err(e) => Err(Error::io(path, "create", e)),
        Ok(()) => {
            let (parent, _) = split(path)?;
            DiskFolder::new(parent).sync().map_err(|e| Error::io(path, "create", e))
        }
    }
}
