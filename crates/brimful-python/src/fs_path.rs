//! Paths as Python has them.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A path that becomes a string in the encoding of the system, as the words of the command line
/// are. PyO3 takes UTF-8 whatever that encoding is, and the resulting path would name no file.
#[derive(Debug, Clone)]
pub(crate) struct FsPath(PathBuf);

impl FsPath {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl<'py> IntoPyObject<'py> for FsPath {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let bytes = PyBytes::new(py, self.0.as_os_str().as_bytes());
        py.import("os")?.call_method1("fsdecode", (bytes,))
    }
}
