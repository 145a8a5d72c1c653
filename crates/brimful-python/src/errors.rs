//! Rust's errors as the Python classes of `brimful.errors`: the one place where they are mapped.

use brimful::store::{Error as StoreError, ErrorKind};
use brimful::{collections, engine, graph};
use pyo3::exceptions::PyKeyboardInterrupt;
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

/// The class of `brimful.errors` for an error; `None`: it is no error of brimful's.
fn class_name(error: &engine::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Usage => "UsageError",
        ErrorKind::Input if is_not_found(error) => "NotFoundError",
        ErrorKind::Input => "InputError",
        ErrorKind::Budget => "BudgetError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::Io => "StoreIoError",
        ErrorKind::Program => "ProgramError",
        _ => return None,
    })
}

/// An error as text that names its class, for an Arrow stream, which carries nothing else.
pub(crate) fn labelled(error: impl Into<engine::Error>) -> String {
    let error = error.into();
    format!("{}: {error}", class_name(&error).unwrap_or("BrimfulError"))
}

/// A collection's error on its way to Python.
#[derive(Debug)]
pub(crate) struct CollectionFailure(collections::Error);

impl<E: Into<collections::Error>> From<E> for CollectionFailure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<CollectionFailure> for PyErr {
    fn from(failure: CollectionFailure) -> Self {
        let error = match failure.0 {
            collections::Error::Store(error) => return Failure::from(error).into(),
            other => other,
        };
        let class = match &error {
            collections::Error::OutOfRange { .. } | collections::Error::Removed { .. } => "RecordIdError",
            _ => match error.kind() {
                ErrorKind::Usage => "UsageError",
                ErrorKind::Corrupt => "CorruptError",
                _ => "InputError",
            },
        };
        let raise = |py: Python<'_>| -> PyResult<PyErr> {
            let class = py.import("brimful.errors")?.getattr(class)?;
            Ok(PyErr::from_value(class.call1((error.to_string(),))?))
        };
        Python::attach(|py| raise(py).unwrap_or_else(|error| error))
    }
}

fn to_python(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    let message = failure.0.to_string();
    let Some(class) = class_name(&failure.0) else {
        return Ok(PyKeyboardInterrupt::new_err(message));
    };
    let class = py.import("brimful.errors")?.getattr(class)?;
    let error = match (failure.0.kind(), failure.store()) {
        (ErrorKind::Budget, Some(StoreError::Budget { needed, .. })) => class.call1((message, *needed))?,
        (ErrorKind::Io, Some(StoreError::Io { source, .. })) => {
            class.call1((message, source.raw_os_error()))?
        }
        _ => class.call1((message,))?,
    };
    Ok(PyErr::from_value(error))
}

fn is_not_found(error: &engine::Error) -> bool {
    matches!(error, engine::Error::Graph(graph::Error::NoSuchVertex { .. } | graph::Error::NotAGraph { .. }))
}
