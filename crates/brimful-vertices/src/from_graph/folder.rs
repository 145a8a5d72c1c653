//! What a run on a store on disk leaves: nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use brimful_store::Error as StoreError;

use crate::error::Result;
use crate::open::Schemes;

/// The folder of the store of a run. Dropped after the stores it removes what was made in it since, and the folder if there was none: nobody
/// reads the vertices of a run when it has ended.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The names in it; `None` if there was no folder.
    before: Option<BTreeSet<OsString>>,
}

impl RunFolder {
    /// Looks at the folder of the store `url` before it is opened; `None` if the store is not on disk.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] for an unknown store; I/O.
    pub fn of(url: &str, schemes: &Schemes) -> Result<Option<Self>> {
        let Some(path) = schemes.folder(url)? else { return Ok(None) };
        let before = if path.is_dir() { Some(names(path)?) } else { None };
        Ok(Some(Self { path: path.into(), before }))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let Ok(now) = names(&self.path) else { return };
        let before = self.before.clone().unwrap_or_default();
        let made = now.difference(&before).map(|name| std::fs::remove_dir_all(self.path.join(name)));
        let folder = self.before.is_none().then_some(());
        let removed = made.chain(folder.map(|()| std::fs::remove_dir(&self.path)));
        for error in removed.filter_map(std::result::Result::err) {
            // The result of the run is safe, and the next one on this store says what is in the way.
            tracing::warn!(path = %self.path.display(), %error, "the vertices of a run stay");
        }
    }
}

fn names(path: &Path) -> Result<BTreeSet<OsString>> {
    let list =
        || -> std::io::Result<_> { std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect() };
    list().map_err(|e| StoreError::io(path, "list", e).into())
}
