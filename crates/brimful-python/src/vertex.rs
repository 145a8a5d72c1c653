//! Vertices as Python has them: integers, or strings.

use brimful::graph::ids::ExternalId;
use brimful::graph::names::NameCursor;
use brimful::graph::{Error, Graph};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::errors::Failure;

/// An id as given.
#[derive(Debug, Clone, FromPyObject)]
pub(crate) enum Vertex {
    /// Of a graph with string ids.
    Name(String),
    /// Of any other.
    Number(i128),
}

impl From<Vertex> for ExternalId {
    fn from(vertex: Vertex) -> Self {
        match vertex {
            Vertex::Name(name) => Self::Name(name),
            Vertex::Number(number) => Self::Number(number),
        }
    }
}

impl Vertex {
    /// Its internal id.
    pub(crate) fn find(self, graph: &Graph) -> Result<u64, Error> {
        graph.find_id(&self.into())
    }
}

/// Makes ids of a graph Python's.
pub(crate) struct Shown<'g> {
    graph: &'g Graph,
    names: NameCursor,
}

impl<'g> Shown<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        Self { graph, names: NameCursor::default() }
    }

    /// The id that is `number`, or of which that is the rank.
    pub(crate) fn number<'py>(&mut self, py: Python<'py>, number: i128) -> PyResult<Bound<'py, PyAny>> {
        match (self.graph.longest_name(), u64::try_from(number)) {
            (Some(_), Ok(rank)) => {
                self.names.label(self.graph, rank).map_err(Failure::from)?.into_bound_py_any(py)
            }
            _ => number.into_bound_py_any(py),
        }
    }
}
