//! Vertices as Python objects: integers, or strings, which may be names of other objects.

use brimful::graph::Graph;
use brimful::graph::ids::external::ExternalId;
use brimful::graph::read::name_cursor::NameCursor;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::Failure;
use crate::object_id;

/// An id, as given from Python.
#[derive(Debug, Clone)]
pub(crate) enum Vertex {
    /// A vertex of a graph with string ids.
    Name(String),
    /// A vertex of any other graph.
    Number(i128),
}

impl<'py> FromPyObject<'_, 'py> for Vertex {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return object.extract().map(Self::Name);
        }
        // Through the limited API of Python, 128 bits take ten times as long as 64.
        if let Ok(number) = object.extract::<i64>() {
            return Ok(Self::Number(number.into()));
        }
        object
            .extract()
            .map(Self::Number)
            .or_else(|error| object_id::name(&object).map(Self::Name).ok_or(error))
    }
}

impl From<Vertex> for ExternalId {
    fn from(vertex: Vertex) -> Self {
        match vertex {
            Vertex::Name(name) => Self::Name(name),
            Vertex::Number(number) => Self::Number(number),
        }
    }
}

/// A Python integer.
pub(crate) fn integer(py: Python<'_>, number: i128) -> PyResult<Bound<'_, PyAny>> {
    match i64::try_from(number) {
        Ok(number) => number.into_bound_py_any(py),
        Err(_) => number.into_bound_py_any(py),
    }
}

/// Converts ids of a graph to Python objects.
pub(crate) struct Shown<'g> {
    graph: &'g Graph,
    names: NameCursor,
}

impl<'g> Shown<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        Self { graph, names: NameCursor::default() }
    }

    /// The id with the value `number`, or with that rank.
    pub(crate) fn number<'py>(
        &mut self,
        py: Python<'py>,
        number: i128,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (self.graph.longest_name(), u64::try_from(number)) {
            (Some(_), Ok(rank)) => {
                self.names.label(self.graph, rank).map_err(Failure::from)?.into_bound_py_any(py)
            }
            _ => integer(py, number),
        }
    }
}
