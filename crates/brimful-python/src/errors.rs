//! Rust's errors as the Python classes of `brimful.errors`: the only place that maps them.

use brimful::engine::Error as EngineError;
use brimful::engine::error::KernelArguments;
use brimful::execution::Error;
use brimful::graph::ids::external::ExternalId;
use brimful::store::{Error as StoreError, ErrorKind};
use brimful::vertices::Error as VerticesError;
use brimful::{collections, graph};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

use crate::figures::process_figures;
use crate::raised::Raised;

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure(Error);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| to_python(py, &failure.0).unwrap_or_else(|error| error))
    }
}

/// An exception of the user's code apart from a vertex; it reaches the caller as it is.
pub(crate) fn raised(error: PyErr) -> Error {
    Error::Engine(EngineError::ProgramCall(Box::new(error)))
}

/// A fault of brimful itself.
pub(crate) fn internal(fault: impl Into<String>) -> Failure {
    Failure(Error::Internal(fault.into()))
}

/// The class in `brimful.errors` for an error; `None` for errors outside brimful's tree.
fn class_name(error: &Error) -> Option<&'static str> {
    use collections::Error::{OutOfRange, Removed};
    use graph::Error::{NoSuchVertex, NotAGraph};
    Some(match (error.kind(), error) {
        (_, Error::Vertices(VerticesError::Collection(OutOfRange { .. } | Removed { .. }))) => {
            "RecordIdError"
        }
        (_, Error::Graph(NoSuchVertex { .. } | NotAGraph { .. })) => "NotFoundError",
        (ErrorKind::Usage, _) => "UsageError",
        (ErrorKind::Input, _) => "InputError",
        (ErrorKind::Budget, _) => "BudgetError",
        (ErrorKind::Corrupt, _) => "CorruptError",
        (ErrorKind::Io, _) => "StoreIoError",
        (ErrorKind::Program, _) => "ProgramError",
        (ErrorKind::Internal, _) => "BrimfulError",
        _ => return None,
    })
}

/// An error as text with the name of its class, because an Arrow stream carries only text.
pub(crate) fn labelled(error: impl Into<Error>) -> String {
    let error = error.into();
    format!("{}: {error}", class_name(&error).unwrap_or("BrimfulError"))
}

/// The error for a vertex that `place` lacks, such as `the store`.
pub(crate) fn no_vertex(place: &str, vertex: &ExternalId) -> PyErr {
    let made = |py: Python<'_>| {
        let class = py.import("brimful.errors")?.getattr("NotFoundError")?;
        let error = class.call1((format!("{place} has no vertex {vertex}"),))?;
        set_vertex(&error, vertex)?;
        Ok(PyErr::from_value(error))
    };
    Python::attach(|py| made(py).unwrap_or_else(|error: PyErr| error))
}

/// Gives an error the id of a vertex.
fn set_vertex(error: &Bound<'_, PyAny>, vertex: &ExternalId) -> PyResult<()> {
    match vertex {
        ExternalId::Number(number) => error.setattr("vertex", number),
        ExternalId::Name(name) => error.setattr("vertex", name),
    }
}

fn to_python(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let mut message = error.to_string();
    if let Error::Graph(graph::Error::NoColumn { column, names, .. }) = error {
        let hint = py.import("brimful.wording")?.call_method1("did_you_mean", (column, names))?;
        message += hint.extract::<&str>()?;
    }
    let Some(class) = class_name(error) else {
        return Ok(PyKeyboardInterrupt::new_err(message));
    };
    let class = py.import("brimful.errors")?.getattr(class)?;
    let error = match error {
        Error::Store(StoreError::Budget { needed, .. }) => class.call1((message, *needed))?,
        Error::Store(StoreError::Io { source, .. }) => {
            class.call1((message, source.raw_os_error()))?
        }
        Error::Engine(EngineError::Exchange(source) | EngineError::ProgramCall(source))
            if let Some(raised) = source.downcast_ref::<PyErr>() =>
        {
            return Ok(raised.clone_ref(py));
        }
        Error::Engine(EngineError::ProcessDone(stats)) => {
            let class = py.import("brimful.cluster.exchange")?.getattr("ProcessDone")?;
            return Ok(PyErr::from_value(class.call1((process_figures(py, stats)?,))?));
        }
        Error::Vertices(VerticesError::Plugin { source, .. })
            if let Some(raised) = source.downcast_ref::<PyErr>() =>
        {
            let own = py.import("brimful.errors")?.getattr("BrimfulError")?;
            if raised.value(py).is_instance(&own)? || !raised.is_instance_of::<PyException>(py) {
                return Ok(raised.clone_ref(py));
            }
            let error = class.call1((message,))?;
            error.setattr("__cause__", raised.clone_ref(py).into_value(py))?;
            error
        }
        Error::Program { vertex, doing, source } => {
            let raised = source.downcast_ref::<Raised>();
            if let Some(raised) = raised
                && raised
                    .error
                    .value(py)
                    .is_instance(&py.import("brimful.errors")?.getattr("BudgetError")?)?
            {
                return Ok(raised.error.clone_ref(py));
            }
            let error = match raised {
                Some(raised) => {
                    let error = class.call1((message, &raised.vertex))?;
                    error.setattr("superstep", raised.superstep)?;
                    error.setattr("state", raised.state.as_ref())?;
                    error
                }
                None => class.call1((message, vertex))?,
            };
            error.setattr("doing", doing)?;
            if let Some(EngineError::Kernel { call, received, .. }) = source.downcast_ref() {
                error.setattr("call", call)?;
                if let Some(received) = received {
                    let KernelArguments { degree, superstep, state, sum, aggregate } = &**received;
                    error.setattr("received", (degree, superstep, state, sum, aggregate))?;
                }
            }
            if let Some(cause) =
                raised.map(|raised| &raised.error).or(source.downcast_ref::<PyErr>())
            {
                error.setattr("__cause__", cause.clone_ref(py).into_value(py))?;
            }
            error
        }
        Error::Graph(graph::Error::NoSuchVertex { vertex, .. }) => {
            let error = class.call1((message,))?;
            set_vertex(&error, vertex)?;
            error
        }
        Error::Engine(EngineError::Kernel { call, .. }) => {
            let error = class.call1((message,))?;
            error.setattr("call", call)?;
            error
        }
        _ => class.call1((message,))?,
    };
    Ok(PyErr::from_value(error))
}
