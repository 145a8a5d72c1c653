//! Raw bytes behind two small traits, the minimum that an implementor writes.
//!
//! Invariant: a device moves bytes and passes on the operating system's results; it neither
//! retries, nor interprets, nor caches. Modules above use [`crate::StoreFile`], which does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A file of bytes with positioned reads and writes.
///
/// `read_at` and `write_at` may move fewer bytes than asked, as the system calls do.
pub trait Device: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// True if the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reads up to `buffer.len()` bytes at `offset`; 0 means the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes up to `bytes.len()` bytes at `offset`, extending the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts the file to `len` bytes, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes everything written so far durable.
    fn sync(&self) -> io::Result<()>;
    /// Starts reading `len` bytes at `offset` into the system's cache, without waiting. A hint: an
    /// implementation may do nothing.
    fn start_reading(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
    /// Starts moving the `len` bytes written at `offset` to the disk, without waiting. A hint: an
    /// implementation may do nothing.
    fn start_writing(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
}

/// A folder of devices, by name.
pub trait Folder: std::fmt::Debug + Send + Sync {
    /// Another handle of this folder, for opening files later.
    fn shared(&self) -> Arc<dyn Folder>;
    /// The path of this folder, for messages.
    fn path(&self) -> &Path;
    /// Makes a new, empty file open for reading and writing; fails if the name is taken.
    fn create(&self, name: &str) -> io::Result<Box<dyn Device>>;
    /// Opens an existing file for reading.
    fn open(&self, name: &str) -> io::Result<Box<dyn Device>>;
    /// Opens an existing file for reading and writing.
    fn open_to_change(&self, name: &str) -> io::Result<Box<dyn Device>>;
    /// Renames a file, replacing the target atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Names of the files here, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync(&self) -> io::Result<()>;
    /// Makes a nameless file that disappears when dropped or when the process dies.
    fn scratch(&self) -> io::Result<Box<dyn Device>>;
    /// Bytes of free space.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// The maximum number of files that the work of one command holds open at once.
pub const MAX_OPEN_FILES: usize = 32;

static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);

/// The maximum number of files that this process holds open through [`DiskFolder`]: half of the
/// system's limit, so that a process can open several graphs; between [`MAX_OPEN_FILES`] and 512.
pub fn open_files_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = allowed
            .map_or(usize::MAX, |allowed| usize::try_from(allowed / 2).unwrap_or(usize::MAX));
        half.clamp(MAX_OPEN_FILES, 512)
    })
}

/// The number of files that this process holds open through [`DiskFolder`].
pub fn open_files() -> usize {
    OPEN_FILES.load(Ordering::Relaxed)
}

/// A folder of the file system.
#[derive(Debug, Clone)]
pub struct DiskFolder {
    path: PathBuf,
}

impl DiskFolder {
    /// The folder at `path`, which must exist by the time it is used.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes a file and removes its name at once. Also removes the names of scratch files that
    /// processes left when they were killed between these two steps.
    fn unlinked(&self) -> io::Result<Box<dyn Device>> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let left = self.list()?;
        left.iter()
            .filter(|name| name.starts_with(SCRATCH))
            .try_for_each(|name| self.forget(name))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{SCRATCH}{}-{number}", std::process::id());
            match self.create(&name) {
                // A process with the same id in another container has just made it.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
                Ok(device) => return self.forget(&name).map(|()| device),
            }
        }
    }

    /// Removes the name of a scratch file, unless another process has just removed it. An open file
    /// survives this.
    fn forget(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl Folder for DiskFolder {
    fn shared(&self) -> Arc<dyn Folder> {
        Arc::new(self.clone())
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Device>> {
        FileDevice::open(
            &self.path.join(name),
            OpenOptions::new().read(true).write(true).create_new(true),
        )
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Device>> {
        FileDevice::open(&self.path.join(name), OpenOptions::new().read(true).custom_flags(AT_ONCE))
    }

    fn open_to_change(&self, name: &str) -> io::Result<Box<dyn Device>> {
        let path = self.path.join(name);
        FileDevice::open(&path, OpenOptions::new().read(true).write(true).custom_flags(AT_ONCE))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn scratch(&self) -> io::Result<Box<dyn Device>> {
        // The file is nameless, or unlinked at once, so that the kernel frees the space however the
        // process ends.
        #[cfg(target_os = "linux")]
        match FileDevice::open(
            &self.path,
            OpenOptions::new().read(true).write(true).custom_flags(NAMELESS),
        ) {
            // File systems without nameless files.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::IsADirectory) => {
            }
            opened => return opened,
        }
        self.unlinked()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let status = rustix::fs::statvfs(&self.path)?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

/// The prefix of the names of scratch files, where they need a name.
const SCRATCH: &str = ".brimful-scratch-";

/// Opens a file that may be a pipe without waiting for its other end.
pub(crate) const AT_ONCE: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Opens a nameless file in a folder.
#[cfg(target_os = "linux")]
const NAMELESS: i32 = rustix::fs::OFlags::TMPFILE.bits().cast_signed();

/// A file of the file system.
struct FileDevice {
    file: File,
}

impl FileDevice {
    fn open(path: &Path, options: &OpenOptions) -> io::Result<Box<dyn Device>> {
        let limit = open_files_limit();
        if OPEN_FILES.fetch_add(1, Ordering::Relaxed) >= limit {
            OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
            let problem = format!(
                "more than {limit} files are open at once; close some, or raise `ulimit -n`"
            );
            return Err(io::Error::other(problem));
        }
        let opened = options.open(path).and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        });
        let device = opened.inspect_err(|_| {
            OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(Box::new(Self { file: device? }))
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Device for FileDevice {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.file, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    #[cfg(target_os = "linux")]
    fn start_reading(&self, offset: u64, len: u64) {
        if let Some(length) = std::num::NonZeroU64::new(len) {
            let _ =
                rustix::fs::fadvise(&self.file, offset, Some(length), rustix::fs::Advice::WillNeed);
        }
    }

    #[cfg(target_os = "linux")]
    fn start_writing(&self, offset: u64, len: u64) {
        // Linux starts to write back the dirty pages of the range. Under a hard memory limit the
        // pages are then clean when the kernel reclaims them, and no thread waits. The kernel takes
        // length 0 as everything to the end.
        if let Some(length) = std::num::NonZeroU64::new(len) {
            let _ =
                rustix::fs::fadvise(&self.file, offset, Some(length), rustix::fs::Advice::DontNeed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_sweeps_what_killed_processes_left() {
        let disk = tempfile::tempdir().unwrap();
        for number in 0..100 {
            let name = format!("{SCRATCH}{}-{number}", std::process::id() as usize + number % 3);
            fs::write(disk.path().join(name), b"left").unwrap();
        }
        let folder = DiskFolder::new(disk.path());
        let scratch = folder.unlinked().unwrap();
        assert!(scratch.is_empty().unwrap());
        assert_eq!(folder.list().unwrap(), Vec::<String>::new());
    }
}
