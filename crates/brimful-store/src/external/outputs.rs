//! Outputs and temporary folders, each under a hidden name until it is complete or removed.

use std::fs::{self, File};
use std::io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotFound};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::hidden::{Hidden, Kind, LOCK, Owner, is_taken, sweep_folders};
use super::{make_folder, split};
use crate::device::{DiskFolder, Folder};
use crate::error::{Error, Result};

/// The name of a replaced folder while it is removed.
const OLD: &str = "old";

/// The part of the name of an unfinished output between its own name and its process id.
const MARK: &str = ".partial-";

/// The prefix of the hidden names of the unfinished output `name`.
fn prefix_of(name: &str) -> String {
    format!(".{name}{MARK}")
}

/// An unfinished output under a hidden name, which any writer fills by its path.
///
/// Dropping it removes it, and so does the next process that begins the same output if this one is
/// killed.
#[derive(Debug)]
pub struct PartialFile {
    hidden: Hidden,
    path: PathBuf,
    overwrite: bool,
}

impl PartialFile {
    /// Begins the output `path`.
    ///
    /// # Errors
    /// [`Error::Exists`] if it exists and `overwrite` is false; [`Error::Io`].
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        if !overwrite && is_taken(path) {
            return Err(Error::Exists { path: path.into() });
        }
        let (folder, name) = split(path)?;
        let hidden = Hidden::create(&folder, &prefix_of(&name), Kind::File)
            .map_err(|e| Error::io(path, "write", e))?;
        Ok(Self { hidden, path: path.into(), overwrite })
    }

    /// The hidden name.
    pub fn path(&self) -> &Path {
        self.hidden.path()
    }

    /// Makes the output durable under its final name.
    ///
    /// # Errors
    /// [`Error::Exists`] if another file has got the name since then and is not to be overwritten;
    /// [`Error::Io`].
    pub fn publish(mut self) -> Result<()> {
        let fail = |e| Error::io(&self.path, "write", e);
        self.hidden.file().sync_all().map_err(fail)?;
        let renamed = match self.overwrite {
            true => self.hidden.rename(&self.path),
            false => self.hidden.rename_new(&self.path),
        };
        match renamed {
            Err(e) if e.kind() == AlreadyExists => return Err(Error::Exists { path: self.path }),
            renamed => renamed.map_err(fail)?,
        }
        let (folder, _) = split(&self.path)?;
        DiskFolder::new(folder).sync().map_err(fail)
    }
}

/// An output file, written under a hidden name and renamed when complete.
#[derive(Debug)]
pub struct OutputFile {
    writer: BufWriter<File>,
    partial: PartialFile,
}

impl OutputFile {
    /// Begins the output `path`; [`Error::Exists`] if it exists and `overwrite` is false.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        let partial = PartialFile::create(path, overwrite)?;
        let file = partial.hidden.file().try_clone().map_err(|e| Error::io(path, "write", e))?;
        Ok(Self { writer: BufWriter::with_capacity(256 << 10, file), partial })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(|e| Error::io(&self.partial.path, "write", e))
    }

    /// Makes the output durable and renames it to its final name.
    pub fn finish(self) -> Result<()> {
        let Self { writer, partial } = self;
        let flushed = writer.into_inner();
        flushed.map_err(|e| Error::io(&partial.path, "write", e.into_error()))?;
        partial.publish()
    }
}

/// For encoders; their caller adds the path to errors.
impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A folder under construction: hidden and locked until [`PartialFolder::publish`] renames it.
///
/// Dropping it removes the folder, and so does the next process that begins a folder beside it if
/// this one is killed.
#[derive(Debug)]
pub struct PartialFolder {
    hidden: Hidden,
    folder: DiskFolder,
    path: PathBuf,
    replaces: bool,
}

impl PartialFolder {
    /// Begins the folder `path`, which must not exist.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::Io`].
    pub fn create(path: &Path) -> Result<Self> {
        if is_taken(path) {
            return Err(Error::Exists { path: path.into() });
        }
        Self::begin(path, false)
    }

    /// Begins a folder that takes the place of the folder `path` when it is published.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replace(path: &Path) -> Result<Self> {
        Self::begin(path, true)
    }

    fn begin(path: &Path, replaces: bool) -> Result<Self> {
        let (parent, name) = split(path)?;
        let hidden = sweep_folders(&parent, MARK)
            .and_then(|()| Hidden::create(&parent, &prefix_of(&name), Kind::Folder))
            .map_err(|e| Error::io(path, "create", e))?;
        let folder = DiskFolder::new(hidden.path());
        Ok(Self { hidden, folder, path: path.into(), replaces })
    }

    /// The folder under construction.
    pub fn folder(&self) -> &DiskFolder {
        &self.folder
    }

    /// Makes the folder durable under its final name.
    ///
    /// A crash leaves the old folder, the new one, or neither.
    ///
    /// # Errors
    /// [`Error::Exists`] if another folder has got the name since then and is not to be replaced;
    /// [`Error::Io`].
    pub fn publish(mut self) -> Result<()> {
        let operation = if self.replaces { "replace" } else { "create" };
        let fail = |e| Error::io(&self.path, operation, e);
        let (parent, name) = split(&self.path)?;
        self.folder.sync().map_err(fail)?;
        let old = if self.replaces { self.set_aside(&parent, &name).map_err(fail)? } else { None };
        let renamed = match self.replaces {
            true => self.hidden.rename(&self.path),
            false => self.hidden.rename_new(&self.path),
        };
        if let Err(e) = renamed {
            // If this fails too, the first error is more useful.
            let _ = old.map(|old| fs::rename(old.path().join(OLD), &self.path));
            let is_taken = matches!(e.kind(), AlreadyExists | DirectoryNotEmpty);
            return Err(if is_taken { Error::Exists { path: self.path } } else { fail(e) });
        }
        DiskFolder::new(parent).sync().map_err(fail)?;
        // The lock file is removed only now: without it the hidden folder looks abandoned, and
        // another process that begins the same output would remove the folder. If the file stays,
        // the next lock reuses it.
        let _ = fs::remove_file(self.path.join(LOCK));
        // The old folder is removed last: until the new name is durable, a crash may bring it back.
        drop(old);
        Ok(())
    }

    /// Moves the folder to be replaced into a hidden one, which removes it when dropped; `None` if
    /// there is none.
    fn set_aside(&self, parent: &Path, name: &str) -> io::Result<Option<Hidden>> {
        let aside = Hidden::create(parent, &prefix_of(name), Kind::PrivateFolder)?;
        match fs::rename(&self.path, aside.path().join(OLD)) {
            Err(e) if e.kind() == NotFound => Ok(None),
            moved => moved.map(|()| Some(aside)),
        }
    }
}

/// A private folder of this process within another one. Dropping it removes it with its content;
/// the next `create` removes the folders that killed processes left.
///
/// The parent is removed as well if it was made for this folder and holds nothing else.
#[derive(Debug)]
pub struct TemporaryFolder {
    hidden: Hidden,
    /// Dropped after the folder itself.
    _made: Option<MadeFolder>,
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
        let made = is_new.then(|| MadeFolder { path: parent.into(), owner: Owner::current() });
        let hidden = Hidden::create(parent, prefix, Kind::PrivateFolder)
            .map_err(|e| Error::io(parent, "create", e))?;
        Ok(Self { hidden, _made: made })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.hidden.path()
    }
}

/// A folder that is removed when dropped if nothing is in it.
#[derive(Debug)]
struct MadeFolder {
    path: PathBuf,
    owner: Owner,
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            return;
        }
        match fs::remove_dir(&self.path) {
            // Other processes use the folder by now, or have removed it.
            Err(e) if matches!(e.kind(), DirectoryNotEmpty | NotFound) => {}
            Err(e) => {
                tracing::warn!(path = %self.path.display(), error = %e, "a temporary name stays");
            }
            Ok(()) => {}
        }
    }
}
