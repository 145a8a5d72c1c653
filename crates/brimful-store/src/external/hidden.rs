//! Hidden, locked names: everything unfinished or temporary that a killed process could leave.
//!
//! A name is a prefix, then the id of the owner's process and the time. The owner holds a lock: for
//! a file on the file itself, for a folder on the file `lock` in it. Dropping the owner removes the
//! name. If the owner is killed, the next process that makes a name with this prefix removes the
//! name; the lock distinguishes it from a name in use. An unfinished folder of another output is
//! removed as well, if every file in it is one of ours.
//!
//! Invariant: nothing else is removed. Entries of other users, links, and names of another form
//! stay. The name stays, too, when a forked child drops its copy of the parent's owner.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind::{
    AlreadyExists, DirectoryNotEmpty, NotFound, PermissionDenied, WouldBlock,
};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::sealed;

/// The file in a folder that its owner locks.
pub(super) const LOCK: &str = "lock";

/// The kind of file or folder that has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    File,
    /// A folder with the permissions of the user's mask.
    Folder,
    /// A folder that only this user may read.
    PrivateFolder,
}

/// The id of a process. A forked child has a copy of every owner of its parent, and must remove
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(u32);

impl Owner {
    /// This process.
    pub(super) fn current() -> Self {
        Self(std::process::id())
    }

    pub(super) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// The owner of a hidden name; dropping it removes the name.
#[derive(Debug)]
pub(super) struct Hidden {
    path: PathBuf,
    kind: Kind,
    /// Locked as long as it is open.
    lock: File,
    owner: Owner,
    is_renamed: bool,
}

/// True if a file, a folder or a link has this name, even a link that leads nowhere.
pub(super) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl Hidden {
    /// Makes a name in `parent`. First removes the names with the same prefix that killed processes
    /// left.
    pub(super) fn create(parent: &Path, prefix: &str, kind: Kind) -> io::Result<Self> {
        sweep(parent, prefix, kind)?;
        loop {
            if let Some(hidden) = Self::try_create(parent.join(unique(prefix)), kind)? {
                return Ok(hidden);
            }
        }
    }

    /// Makes the name `path`. Returns `None` if the name is taken, or if another process took it
    /// for abandoned before it was locked.
    fn try_create(path: PathBuf, kind: Kind) -> io::Result<Option<Self>> {
        let made = match kind {
            Kind::File => OpenOptions::new().write(true).create_new(true).open(&path).map(Some),
            Kind::Folder => fs::create_dir(&path).map(|()| None),
            Kind::PrivateFolder => DirBuilder::new().mode(0o700).create(&path).map(|()| None),
        };
        let made = match made {
            Err(e) if e.kind() == AlreadyExists => return Ok(None),
            made => made?,
        };
        let locked = || -> io::Result<File> {
            let file = made.map_or_else(|| open_lock(&path, kind), Ok)?;
            file.try_lock()?;
            // The locked file may have just been removed.
            fs::symlink_metadata(lock_path(&path, kind))?;
            Ok(file)
        };
        match locked() {
            Ok(lock) => {
                Ok(Some(Self { path, kind, lock, owner: Owner::current(), is_renamed: false }))
            }
            Err(e) if matches!(e.kind(), WouldBlock | NotFound) => Ok(None),
            Err(e) => {
                // The first error is more useful than one of the removal; the file system may have
                // no locks at all.
                let _ = remove(&path, kind);
                Err(e)
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The locked file: for [`Kind::File`] the file itself, open for writing.
    pub(super) fn file(&self) -> &File {
        &self.lock
    }

    /// Gives the file or folder its final name. From now on, dropping this value removes nothing.
    pub(super) fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        self.is_renamed = true;
        Ok(())
    }

    /// Like [`Hidden::rename`], but fails with [`AlreadyExists`] if the name is taken.
    pub(super) fn rename_new(&mut self, to: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.path, CWD, to, RenameFlags::NOREPLACE) {
            // The file system has no such rename, so another process may take the name meanwhile.
            Err(Errno::INVAL | Errno::NOSYS) if is_taken(to) => return Err(AlreadyExists.into()),
            Err(Errno::INVAL | Errno::NOSYS) => return self.rename(to),
            renamed => renamed?,
        }
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if self.is_renamed || !self.owner.is_current() {
            return;
        }
        match remove(&self.path, self.kind) {
            Err(e) if e.kind() != NotFound => {
                // The work is done, so this is no error; the next process sweeps the name.
                tracing::warn!(path = %self.path.display(), error = %e, "a temporary name stays");
            }
            _ => {}
        }
    }
}

fn remove(path: &Path, kind: Kind) -> io::Result<()> {
    if kind == Kind::File { fs::remove_file(path) } else { fs::remove_dir_all(path) }
}

/// The path of the file that is locked.
fn lock_path(path: &Path, kind: Kind) -> PathBuf {
    if kind == Kind::File { path.into() } else { path.join(LOCK) }
}

/// Opens the file to be locked, without following a link or waiting for the other end of a pipe. In
/// a folder, makes the file if it is missing: the folder is new, or its owner was killed before it
/// made one.
fn open_lock(path: &Path, kind: Kind) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(kind != Kind::File).truncate(false).custom_flags(flags);
    options.open(lock_path(path, kind))
}

/// Removes the names of `prefix` that killed processes left.
fn sweep(parent: &Path, prefix: &str, kind: Kind) -> io::Result<()> {
    for path in entries(parent, kind, |name| is_hidden_name(name, prefix))? {
        remove_abandoned(&path, kind, |_| Ok(true))?;
    }
    Ok(())
}

/// Removes the unfinished folders of any output, `.NAME` followed by `mark` and so on, that killed
/// processes left.
///
/// The name alone does not identify the owner. The folder must therefore contain the lock, and all
/// other files must be [sealed](crate::sealed), or beginnings of sealed files.
pub(super) fn sweep_folders(parent: &Path, mark: &str) -> io::Result<()> {
    let is_ours = |name: &str| {
        let prefix = name.rfind(mark).map_or("", |at| &name[..at + mark.len()]);
        prefix.len() > 1 + mark.len() && prefix.starts_with('.') && is_hidden_name(name, prefix)
    };
    for path in entries(parent, Kind::Folder, is_ours)? {
        if path.join(LOCK).symlink_metadata().is_ok() {
            remove_abandoned(&path, Kind::Folder, holds_sealed_files)?;
        }
    }
    Ok(())
}

/// Removes a name if it has no owner and `is_ours` holds for it.
fn remove_abandoned(
    path: &Path,
    kind: Kind,
    is_ours: impl FnOnce(&Path) -> io::Result<bool>,
) -> io::Result<()> {
    let swept = open_lock(path, kind).and_then(|lock| {
        lock.try_lock()?;
        // The lock is held until the name is gone: a process that has just made the name notices,
        // and makes another.
        if is_ours(path)? { remove(path, kind) } else { Ok(()) }
    });
    match swept {
        // The name is in use, its owner has removed it, or its owner has just made and locked it.
        Err(e) if matches!(e.kind(), WouldBlock | NotFound | DirectoryNotEmpty) => Ok(()),
        Err(e) if e.kind() == PermissionDenied || has_no_lock_file(&e) => {
            tracing::warn!(path = %path.display(), error = %e, "a temporary name stays");
            Ok(())
        }
        swept => swept,
    }
}

/// True if a folder holds an empty lock and sealed files only. The header of a sealed file is
/// written last, so one that was cut off is empty or begins with zeros.
fn holds_sealed_files(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if !meta.file_type().is_file() {
            return Ok(false);
        }
        let mut begin = Vec::new();
        File::open(entry.path())?.take(sealed::MAGIC.len() as u64).read_to_end(&mut begin)?;
        let is_cut = begin.iter().all(|byte| *byte == 0);
        let is_lock = entry.file_name() == LOCK;
        if is_lock && !begin.is_empty() || !is_lock && !is_cut && begin != sealed::MAGIC {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if there is a link, a pipe or a folder in the place of the file to be locked.
fn has_no_lock_file(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(number, Some(Errno::LOOP | Errno::NXIO | Errno::ISDIR))
}

/// The entries of a folder whose names are ours and that belong to this user. Other users could
/// plant entries to have them removed.
fn entries(parent: &Path, kind: Kind, is_ours: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let user = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(&is_ours) {
            continue;
        }
        // For a link, this is the metadata of the link itself.
        match entry.metadata() {
            Ok(meta) => {
                let file_type = meta.file_type();
                let is_kind =
                    if kind == Kind::File { file_type.is_file() } else { file_type.is_dir() };
                if is_kind && meta.uid() == user {
                    found.push(entry.path());
                }
            }
            Err(e) if e.kind() != NotFound => return Err(e),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// A unique name, even among processes with the same id in other containers.
fn unique(prefix: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{prefix}{}-{now:x}", std::process::id())
}

/// True for a name as [`unique`] makes it; the time may be missing.
fn is_hidden_name(name: &str, prefix: &str) -> bool {
    let Some(rest) = name.strip_prefix(prefix) else { return false };
    let (process, time) = rest.split_once('-').unwrap_or((rest, "0"));
    let consists_of =
        |text: &str, is: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|b| is(&b));
    consists_of(process, u8::is_ascii_digit) && consists_of(time, u8::is_ascii_hexdigit)
}
