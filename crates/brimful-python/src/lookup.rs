//! `Lookup`: look-ups of single vertices and edges of a graph, and of many at once.

use std::sync::Arc;

use brimful::graph::ids::external::ExternalId;
use brimful::graph::read::lookup::{self, Between, Direction, NeighborReader};
use brimful::graph::{Error as GraphError, Graph as Inner};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList};

use crate::arrow_out::{Edges, capsule};
use crate::call::with_job;
use crate::errors::Failure;
use crate::graph::Graph;
use crate::keyed::words;
use crate::vertex::{Vertex, integer};

/// Look-ups in one graph. Every call releases the GIL; threads may share the object.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Lookup {
    inner: Arc<lookup::Lookup>,
}

/// Vertices of a batch, as given from Python.
#[derive(FromPyObject)]
pub(crate) enum Vertices {
    /// Signed integers.
    Signed(PyBuffer<i64>),
    /// Unsigned integers.
    Unsigned(PyBuffer<u64>),
    /// Strings.
    Names(Vec<String>),
}

impl Vertices {
    fn ids(self, py: Python<'_>) -> PyResult<Vec<ExternalId>> {
        Ok(match self {
            Self::Signed(numbers) => numbers.to_vec(py)?.into_iter().map(number).collect(),
            Self::Unsigned(numbers) => numbers.to_vec(py)?.into_iter().map(number).collect(),
            Self::Names(names) => names.into_iter().map(ExternalId::Name).collect(),
        })
    }
}

fn number(number: impl Into<i128>) -> ExternalId {
    ExternalId::Number(number.into())
}

/// Vertices between two checks for Ctrl-C.
const CHUNK: usize = 1 << 12;

impl Lookup {
    /// External ids as Python objects.
    fn shown<'py>(&self, py: Python<'py>, ids: &[u64]) -> PyResult<Bound<'py, PyList>> {
        let graph: &Inner = self.inner.graph();
        match graph.longest_name() {
            Some(_) => {
                let labels = py.detach(|| self.inner.labels(ids)).map_err(Failure::from)?;
                PyList::new(py, labels.iter().collect::<Vec<_>>())
            }
            None => {
                let numbers = ids.iter().map(|bits| integer(py, graph.id_type().number(*bits)));
                PyList::new(py, numbers.collect::<PyResult<Vec<_>>>()?)
            }
        }
    }
}

#[pymethods]
impl Lookup {
    #[new]
    fn new(graph: &Bound<'_, Graph>) -> Self {
        Self { inner: Arc::new(lookup::Lookup::new(Arc::clone(&graph.get().inner))) }
    }

    /// The ids of vertices, by their internal ids.
    fn ids<'py>(&self, py: Python<'py>, internal: Vec<u64>) -> PyResult<Bound<'py, PyList>> {
        let graph = self.inner.graph();
        let found = internal.into_iter().map(|one| {
            let mut bits = [0];
            graph.external_ids(one, &mut bits).map(|()| bits[0])
        });
        let found = found.collect::<Result<Vec<_>, _>>().map_err(Failure::from)?;
        self.shown(py, &found)
    }

    fn contains(&self, py: Python<'_>, vertex: Vertex) -> PyResult<bool> {
        match py.detach(|| self.inner.find(&vertex.into())) {
            Ok(_) => Ok(true),
            Err(GraphError::NoSuchVertex { .. }) => Ok(false),
            Err(error) => Err(Failure::from(error).into()),
        }
    }

    fn degree(&self, py: Python<'_>, vertex: Vertex, direction: &str) -> PyResult<u64> {
        let degree = || {
            self.inner.degree(self.inner.find(&vertex.into())?, Direction::from_name(direction)?)
        };
        Ok(py.detach(degree).map_err(Failure::from)?)
    }

    fn has_edge(&self, py: Python<'_>, source: Vertex, target: Vertex) -> PyResult<bool> {
        let both = || match (self.inner.find(&source.into()), self.inner.find(&target.into())) {
            (Ok(source), Ok(target)) => self.inner.has_edge(source, target),
            (
                Err(GraphError::NoSuchVertex { .. }),
                Ok(_) | Err(GraphError::NoSuchVertex { .. }),
            )
            | (Ok(_), Err(GraphError::NoSuchVertex { .. })) => Ok(false),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        Ok(py.detach(both).map_err(Failure::from)?)
    }

    /// Neighbors, and with `weights` the weights of their edges: two lists.
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        vertex: Vertex,
        direction: &str,
        weights: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let find = || {
            let direction = Direction::from_name(direction)?;
            self.inner.neighbors(self.inner.find(&vertex.into())?, direction, weights)
        };
        let neighbors = py.detach(find).map_err(Failure::from)?;
        let ids = self.shown(py, &neighbors.ids)?;
        if weights { (ids, neighbors.weights).into_bound_py_any(py) } else { Ok(ids.into_any()) }
    }

    /// The vertices of a shortest path by look-ups from both ends, empty if there is no path;
    /// `None` if look-ups cannot decide.
    fn between<'py>(
        &self,
        py: Python<'py>,
        source: Vertex,
        target: Vertex,
        weighted: bool,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let between = with_job(py, None, |job| {
            let [source, target] = [source, target].map(|end| self.inner.find(&end.into()));
            Ok(match weighted {
                false => self.inner.between(source?, target?, job)?,
                true => self.inner.between_weighted(source?, target?, job)?,
            })
        })?;
        let path = match between {
            Between::Path(path) => path,
            Between::Nothing => Vec::new(),
            Between::Unknown => return Ok(None),
        };
        let mut ids = vec![0; path.len()];
        for (vertex, id) in path.iter().zip(&mut ids) {
            let graph = self.inner.graph();
            graph.external_ids(*vertex, std::slice::from_mut(id)).map_err(Failure::from)?;
        }
        Ok(Some(self.shown(py, &ids)?))
    }

    /// The edges of many vertices, as a stream.
    fn neighbor_stream(
        &self,
        py: Python<'_>,
        vertices: Vertices,
        direction: &str,
        weights: bool,
    ) -> PyResult<NeighborStream> {
        let direction = Direction::from_name(direction).map_err(Failure::from)?;
        let ids = vertices.ids(py)?;
        let vertices = with_job(py, None, |job| Ok(self.inner.find_all(&ids, job)?))?;
        Ok(NeighborStream { lookup: Arc::clone(&self.inner), vertices, direction, weights })
    }

    /// The degrees of many vertices, 64 bits each.
    fn degrees<'py>(
        &self,
        py: Python<'py>,
        vertices: Vertices,
        direction: &str,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let direction = Direction::from_name(direction).map_err(Failure::from)?;
        let ids = vertices.ids(py)?;
        let degrees = with_job(py, None, |job| {
            let mut degrees = Vec::with_capacity(ids.len());
            for chunk in self.inner.find_all(&ids, job)?.chunks(CHUNK) {
                job.check()?;
                degrees.extend(self.inner.degrees(chunk, direction)?);
            }
            Ok(degrees)
        })?;
        Ok(words(py, &degrees))
    }
}

/// The edges of some vertices as an Arrow stream; can be read many times.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct NeighborStream {
    lookup: Arc<lookup::Lookup>,
    vertices: Vec<u64>,
    direction: Direction,
    weights: bool,
}

#[pymethods]
impl NeighborStream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows us to ignore the request: the consumer casts.
        let _ = requested_schema;
        let (lookup, vertices) = (Arc::clone(&self.lookup), self.vertices.clone());
        let mut reader = NeighborReader::new(lookup, vertices, self.direction, self.weights);
        let graph = self.lookup.graph();
        let edges =
            Edges::new(graph, graph.id_type(), self.weights, move |batch| reader.next(batch));
        capsule(py, edges)
    }
}
