//! The user's files: inputs, which are read once from front to back, and outputs, which appear
//! under their name only when complete.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, WouldBlock};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::device::{AT_ONCE, DiskFolder, Folder};
use crate::error::{Error, Result};
use crate::job::Job;

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

/// Opens a file or a pipe without waiting. A pipe may lack its other end: then the first read waits
/// for it, and opening for writing fails.
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
    /// True for a pipe or terminal, whose reads may wait for ever.
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

/// An output file, written under a hidden name and renamed when complete.
///
/// The next process that begins the same output removes the file that a killed process left. The
/// lock distinguishes such a file from one in use.
#[derive(Debug)]
pub struct OutputFile {
    writer: Option<BufWriter<File>>,
    partial: PathBuf,
    path: PathBuf,
}

impl OutputFile {
    /// Begins the output `path`; [`Error::Exists`] if it exists and `overwrite` is false.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        if !overwrite && path.exists() {
            return Err(Error::Exists { path: path.into() });
        }
        let (folder, name) = split(path)?;
        let prefix = format!(".{name}.partial-");
        let begin = || {
            sweep_files(&folder, &prefix)?;
            create_locked(&folder, &prefix)
        };
        let (file, partial) = begin().map_err(|e| Error::io(path, "write", e))?;
        Ok(Self {
            writer: Some(BufWriter::with_capacity(256 << 10, file)),
            partial,
            path: path.into(),
        })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.write_all(bytes).map_err(|e| Error::io(&self.path, "write", e))
    }

    /// Makes the output durable and renames it to its final name.
    pub fn finish(mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let fail = |e| Error::io(&self.path, "write", e);
        let file = writer.into_inner().map_err(|e| fail(e.into_error()))?;
        file.sync_all().map_err(fail)?;
        fs::rename(&self.partial, &self.path).map_err(fail)?;
        let (folder, _) = split(&self.path)?;
        DiskFolder::new(folder).sync().map_err(fail)
    }
}

/// For encoders; their caller adds the path to errors.
impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().map_or(Ok(0), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // After `finish` the hidden name is gone; before it, no part of the output may stay.
        let _ = fs::remove_file(&self.partial);
    }
}

/// A folder under construction: hidden and locked until [`PartialFolder::publish`] renames it.
///
/// Dropping it removes the folder. The next process that begins the same output removes the folder
/// that a killed process left. The lock distinguishes such a folder from one in use.
#[derive(Debug)]
pub struct PartialFolder {
    folder: DiskFolder,
    path: PathBuf,
    _lock: File,
    published: bool,
}

const LOCK: &str = "lock";

impl PartialFolder {
    /// Begins the folder `path`, which must not exist.
    pub fn create(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.into() });
        }
        let (parent, name) = split(path)?;
        let begun = create_locked_folder(&parent, &format!(".{name}.partial-"));
        let (lock, partial) = begun.map_err(|e| Error::io(path, "create", e))?;
        Ok(Self {
            folder: DiskFolder::new(partial),
            path: path.into(),
            _lock: lock,
            published: false,
        })
    }

    /// The folder under construction.
    pub fn folder(&self) -> &DiskFolder {
        &self.folder
    }

    /// Makes the folder durable under its final name.
    pub fn publish(mut self) -> Result<()> {
        let fail = |e| Error::io(&self.path, "create", e);
        if self.path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: self.path.clone() });
        }
        self.folder.sync().map_err(fail)?;
        fs::rename(self.folder.path(), &self.path).map_err(fail)?;
        let (parent, _) = split(&self.path)?;
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(fail)?;
        self.published = true;
        // Not earlier: without its lock the hidden folder looks abandoned, and another process that
        // begins the same output would remove it. If the file stays, the next lock reuses it.
        let _ = fs::remove_file(self.path.join(LOCK));
        Ok(())
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if !self.published {
            // If this fails, the next process that begins this output removes the folder.
            let _ = fs::remove_dir_all(self.folder.path());
        }
    }
}

fn lock(folder: &Path) -> io::Result<File> {
    let file = open_at_once(
        OpenOptions::new().create(true).write(true).truncate(false),
        &folder.join(LOCK),
    )?;
    file.try_lock()?;
    Ok(file)
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

/// Entries of a folder that begin with `prefix` and belong to this user. Other users could plant
/// entries to have them removed.
fn our_entries(parent: &Path, prefix: &str) -> io::Result<Vec<(fs::FileType, PathBuf)>> {
    let user = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        // For a link, these are the data of the link itself.
        match entry.metadata() {
            Ok(meta) if meta.uid() == user => found.push((meta.file_type(), entry.path())),
            Err(e) if e.kind() != NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(found)
}

/// Removes the folders that killed processes left.
fn sweep(parent: &Path, prefix: &str) -> io::Result<()> {
    for (kind, path) in our_entries(parent, prefix)? {
        // Our entries are folders; a link or a file is not ours.
        if !kind.is_dir() {
            continue;
        }
        match lock(&path) {
            // The lock is held until the folder is gone: the process that has just made the folder
            // notices, and makes another.
            Ok(_free) => fs::remove_dir_all(path)?,
            // In use, or already removed.
            Err(e) if matches!(e.kind(), WouldBlock | NotFound) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Removes the files that killed processes left.
fn sweep_files(parent: &Path, prefix: &str) -> io::Result<()> {
    let remove_free = |path: PathBuf| {
        let is_free = !matches!(File::open(&path)?.try_lock(), Err(TryLockError::WouldBlock));
        if is_free { fs::remove_file(&path) } else { Ok(()) }
    };
    for (kind, path) in our_entries(parent, prefix)? {
        match if kind.is_file() { remove_free(path) } else { Ok(()) } {
            // Its owner has just finished.
            Err(e) if e.kind() == NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// A unique name, even among processes with the same id in other containers.
fn unique(prefix: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{prefix}{}-{now:x}", std::process::id())
}

/// Makes a new file in `folder`, and locks it.
fn create_locked(folder: &Path, prefix: &str) -> io::Result<(File, PathBuf)> {
    loop {
        let path = folder.join(unique(prefix));
        let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(e) if e.kind() == AlreadyExists => continue,
            created => created?,
        };
        // Before the lock is taken, another process may remove the file as abandoned: then make
        // another.
        match file.try_lock() {
            Ok(()) if path.try_exists()? => return Ok((file, path)),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Makes a new folder in `parent`, and locks it. First removes the folders with its prefix that
/// killed processes left.
fn create_locked_folder(parent: &Path, prefix: &str) -> io::Result<(File, PathBuf)> {
    sweep(parent, prefix)?;
    loop {
        let path = parent.join(unique(prefix));
        match fs::create_dir(&path) {
            Err(e) if e.kind() == AlreadyExists => continue,
            created => created?,
        }
        // As in `create_locked`.
        match lock(&path) {
            Ok(file) if path.join(LOCK).try_exists()? => return Ok((file, path)),
            Err(e) if !matches!(e.kind(), WouldBlock | NotFound) => return Err(e),
            _ => {}
        }
    }
}

/// A locked folder for one run within a folder that the user named. Dropping it removes it with its
/// content; the next `create` removes those that killed processes left.
///
/// The user's folder is removed as well if it was made for this run and holds nothing else.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// The user's folder, if this run made it.
    made: Option<PathBuf>,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes a folder in `parent`, and `parent` itself if it is missing; the parent of `parent`
    /// must exist. No other program may name folders there with `prefix`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(parent: &Path, prefix: &str) -> Result<Self> {
        let is_new = !parent.is_dir();
        make_folder(parent)?;
        let (lock, path) =
            create_locked_folder(parent, prefix).map_err(|e| Error::io(parent, "create", e))?;
        Ok(Self { path, made: is_new.then(|| parent.into()), _lock: lock })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        match self.made.as_ref().map_or(Ok(()), fs::remove_dir) {
            // Others use the folder by now.
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // The work is done, so a failed removal is only logged, and the next run removes the
        // folder.
        if let Err(e) = self.remove() {
            tracing::warn!(path = %self.path.display(), error = %e, "the folder of a run stays");
        }
    }
}

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
                let what = if is_ours {
                    "this process has it open already; close that first, or use it"
                } else {
                    "another process is changing it; wait until that ends"
                };
                io::Error::new(e.kind(), what)
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

/// Makes the folder `path` if it is missing; its parent must exist.
pub fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == AlreadyExists => {
            let what = io::Error::new(NotADirectory, "it is a file, not a folder");
            Err(Error::io(path, "open", what))
        }
        Err(e) => Err(Error::io(path, "create", e)),
        Ok(()) => {
            let (parent, _) = split(path)?;
            DiskFolder::new(parent).sync().map_err(|e| Error::io(path, "create", e))
        }
    }
}
