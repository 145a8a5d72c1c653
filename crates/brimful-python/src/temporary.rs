//! `TemporaryFolder`, `PartialFile`: hidden files and folders, which their owner or the next start
//! removes.

use std::path::PathBuf;

use brimful::graph::Error as GraphError;
use brimful::store::external;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::Failure;
use crate::fs_path::FsPath;

/// A private folder in `parent`, removed with its content when it is closed or dropped. A forked
/// child leaves it to its parent.
#[pyclass(module = "brimful._native")]
pub(crate) struct TemporaryFolder {
    #[pyo3(get)]
    path: FsPath,
    folder: Option<external::TemporaryFolder>,
}

#[pymethods]
impl TemporaryFolder {
    /// Makes the folder, and first removes those of this prefix that killed processes left.
    #[new]
    fn new(py: Python<'_>, parent: PathBuf, prefix: &str) -> PyResult<Self> {
        let folder = py
            .detach(|| external::TemporaryFolder::create(&parent, prefix))
            .map_err(Failure::from)?;
        Ok(Self { path: FsPath::new(folder.path()), folder: Some(folder) })
    }

    /// Removes the folder; a second call does nothing.
    fn close(&mut self, py: Python<'_>) {
        let folder = self.folder.take();
        py.detach(|| drop(folder));
    }
}

/// An unfinished output under a hidden name, removed unless it is published. A forked child leaves
/// it to its parent.
#[pyclass(module = "brimful._native")]
pub(crate) struct PartialFile {
    #[pyo3(get)]
    path: FsPath,
    file: Option<external::PartialFile>,
}

#[pymethods]
impl PartialFile {
    /// Begins the output `out`, and first removes remains of it from killed processes.
    #[new]
    #[pyo3(signature = (out, *, overwrite))]
    fn new(py: Python<'_>, out: PathBuf, overwrite: bool) -> PyResult<Self> {
        let file =
            py.detach(|| external::PartialFile::create(&out, overwrite)).map_err(Failure::from)?;
        Ok(Self { path: FsPath::new(file.path()), file: Some(file) })
    }

    /// Makes the output durable under its final name.
    fn publish(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.file.take() else {
            let problem = "the output is closed; start a new one".to_owned();
            return Err(Failure::from(GraphError::Usage(problem)).into());
        };
        Ok(py.detach(|| file.publish()).map_err(Failure::from)?)
    }

    /// Removes the output unless it was published; a second call does nothing.
    fn close(&mut self, py: Python<'_>) {
        let file = self.file.take();
        py.detach(|| drop(file));
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&mut self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
