//! Rust's errors as the Python classes of `brimful.errors`: the one place where they are mapped.

use brimful::store::{Error as StoreError, ErrorKind};
use brimful::{engine, graph};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure(engine::Error);

impl<E: Into<engine::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl Failure {
    /// The store's error at the bottom, if that is what failed.
    fn store(&self) -> Option<&StoreError> {
        match &self.0 {
            engine::Error::Store(error) | engine::Error::Graph(graph::Error::Store(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| to_python(py, &failure).unwrap_or_else(|error| error))
    }
}

fn to_python(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    let message = failure.0.to_string();
    let raise = |class: &str, args: Bound<'_, pyo3::types::PyTuple>| -> PyResult<PyErr> {
        let class = py.import("brimful.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1(args)?))
    };
    let plain = |class: &str| raise(class, (message.as_str(),).into_pyobject(py)?);
    match failure.0.kind() {
        ErrorKind::Usage => plain("UsageError"),
        ErrorKind::Input if is_not_found(&failure.0) => plain("NotFoundError"),
        ErrorKind::Input => plain("InputError"),
        ErrorKind::Corrupt => plain("CorruptError"),
        ErrorKind::Program => plain("ProgramError"),
        ErrorKind::Interrupted => Ok(PyKeyboardInterrupt::new_err(message)),
        ErrorKind::Budget => {
            let needed = match failure.store() {
                Some(StoreError::Budget { needed, .. }) => *needed,
                _ => 0,
            };
            raise("BudgetError", (message.as_str(), needed).into_pyobject(py)?)
        }
        ErrorKind::Io => {
            let errno = match failure.store() {
                Some(StoreError::Io { source, .. }) => source.raw_os_error(),
                _ => None,
            };
            raise("StoreIoError", (message.as_str(), errno).into_pyobject(py)?)
        }
        kind => Ok(PyRuntimeError::new_err(format!("{kind:?}: {message}"))),
    }
}

fn is_not_found(error: &engine::Error) -> bool {
    matches!(error, engine::Error::Graph(graph::Error::NoSuchVertex { .. } | graph::Error::NotAGraph { .. }))
}
