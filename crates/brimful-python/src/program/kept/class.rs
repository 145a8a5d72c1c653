//! `KeptVertexStore`: vertices that stay in a folder, for Python.

use std::sync::Arc;

use brimful::execution::kept::{Condition, KeptStore};
use brimful::execution::{Error, Start};
use brimful::graph::Graph as Inner;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::location::Location;
use super::opened::{Opened, rows_of};
use super::{Keeping, Shared, listed, locked, path_of, shared};
use crate::call::{Limits, with_resources};
use crate::errors::{Failure, no_vertex};
use crate::graph::{Graph, Stream};
use crate::plugin::schemes;
use crate::program::ids::Ids;
use crate::program::value::{MemoryWatch, Values};
use crate::request::Store;
use crate::vertex::Vertex;

/// Vertices that stay in a folder.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct KeptVertexStore {
    shared: Shared,
    graph: Arc<Inner>,
}

impl KeptVertexStore {
    /// Calls `work` with the vertices, without the interpreter's lock.
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Opened) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| work(&mut locked(&self.shared))).map_err(Failure::from)?)
    }

    fn ids(&self) -> (Arc<Ids>, Arc<Values>) {
        let opened = locked(&self.shared);
        (Arc::clone(&opened.ids), Arc::clone(&opened.values))
    }

    /// The rank of a vertex that the store has or had, or the error that it lacks the vertex.
    fn rank(&self, vertex: &Vertex) -> PyResult<u64> {
        let rank = self.ids().0.find(&vertex.clone().into(), false)?;
        rank.ok_or_else(|| missing(vertex))
    }

    /// The rank of a vertex, which is created if there is none.
    fn new_rank(&self, vertex: Vertex) -> PyResult<u64> {
        self.ids().0.rank(&vertex.into(), true)
    }
}

fn missing(vertex: &Vertex) -> PyErr {
    no_vertex("the store", &vertex.clone().into())
}

#[pymethods]
impl KeptVertexStore {
    /// The graph, serializer and weights of a kept store; `None` if there is none.
    #[staticmethod]
    fn describe<'py>(
        py: Python<'py>,
        url: &str,
        opener: Option<Py<PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let description = KeptStore::read(url, &*schemes(opener.as_ref())?);
        let Some(description) = description.map_err(Failure::from)? else { return Ok(None) };
        let out = PyDict::new(py);
        out.set_item("graph", description.graph.display().to_string())?;
        out.set_item("is_loading", description.condition == Condition::Loading)?;
        for (name, value) in description.properties() {
            out.set_item(name, value)?;
        }
        Ok(Some(out))
    }

    #[staticmethod]
    fn open(
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        store: Store,
        dumps: Py<PyAny>,
        loads: Py<PyAny>,
        serializer: &str,
        weighted: bool,
        resources: Limits,
    ) -> PyResult<Self> {
        let inner = Arc::clone(&graph.get().inner);
        let choice = store
            .choice()?
            .ok_or_else(|| Failure::from(Error::Usage("a store needs a URL".into())))?;
        let limits = Limits { threads: Some(1), ..resources };
        // Vertices whose last run did not finish are opened too, so that a program can run on them;
        // readers of their states are refused.
        let keeping =
            Keeping { serializer: serializer.to_owned(), start: Start::Fresh, is_pregel: false };
        let path = path_of(&choice.url, &choice).map_err(Failure::from)?;
        let shared = match path.and_then(|path| shared(&path)) {
            Some(shared) => shared,
            None => with_resources(py, None, limits, |resources| {
                let location = Location::new(&choice, &inner, (Some(&keeping), weighted))?;
                let memory = MemoryWatch::new(&resources.budget, limits.process_budget);
                let values = Values::new((dumps, loads), (false, serializer), memory);
                let ids = Arc::new(Ids::new(&inner, location.created(), true, resources)?);
                let count = location.vertices().map_or(1, |kept| kept.edges.len());
                Ok(location.leave(
                    (&inner, &choice, count),
                    None,
                    (ids, Arc::new(values)),
                    resources,
                )?)
            })?,
        };
        Ok(Self { shared, graph: inner })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.on(py, |opened| Ok(opened.len()? as usize))
    }

    fn state<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyAny>> {
        let rank = self.rank(&vertex)?;
        let state = self.on(py, |opened| opened.state(rank))?;
        let state = state.ok_or_else(|| missing(&vertex))?;
        self.ids().1.object(py, &state)
    }

    fn set_state(&self, py: Python<'_>, vertex: Vertex, state: Bound<'_, PyAny>) -> PyResult<()> {
        let rank = self.rank(&vertex)?;
        let state = self.ids().1.state(state)?;
        let done = self.on(py, |opened| {
            opened.change()?;
            opened.with(rank, |vertex| vertex.state = state)
        })?;
        done.ok_or_else(|| missing(&vertex))
    }

    /// Pairs of the target and the weight of each edge of a vertex.
    fn edges<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyList>> {
        let rank = self.rank(&vertex)?;
        let edges = self.on(py, |opened| opened.with(rank, |vertex| vertex.edges().clone()))?;
        let edges = edges.ok_or_else(|| missing(&vertex))?;
        let (ids, out) = (self.ids().0, PyList::empty(py));
        for edge in edges.iter() {
            out.append((ids.get(py, *edge.target)?, *edge.data))?;
        }
        Ok(out)
    }

    /// Adds a vertex; false if it exists.
    fn add_vertex(
        &self,
        py: Python<'_>,
        vertex: Vertex,
        state: Bound<'_, PyAny>,
        edges: Vec<(Vertex, f64)>,
    ) -> PyResult<bool> {
        let state = self.ids().1.state(state)?;
        let rank = self.new_rank(vertex)?;
        let edges = self.ranked(edges)?;
        self.on(py, |opened| opened.insert(rank, state, edges.into_iter().collect()))
    }

    /// Removes a vertex and its edges.
    fn remove_vertex(&self, py: Python<'_>, vertex: Vertex) -> PyResult<()> {
        let rank = self.rank(&vertex)?;
        match self.on(py, |opened| opened.remove(rank))? {
            true => Ok(()),
            false => Err(missing(&vertex)),
        }
    }

    fn add_edges(&self, py: Python<'_>, source: Vertex, edges: Vec<(Vertex, f64)>) -> PyResult<()> {
        let rank = self.rank(&source)?;
        let edges = self.ranked(edges)?;
        match self.on(py, |opened| opened.extend(rank, &edges))? {
            true => Ok(()),
            false => Err(missing(&source)),
        }
    }

    /// Removes the edges between two vertices; returns their number.
    fn remove_edges(&self, py: Python<'_>, source: Vertex, target: Vertex) -> PyResult<usize> {
        let (rank, target) = (self.rank(&source)?, self.rank(&target)?);
        let removed = self.on(py, |opened| opened.disconnect(rank, target))?;
        removed.ok_or_else(|| missing(&source))
    }

    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = self.on(py, |opened| rows_of(opened, start, count))?;
        let (ids, values) = self.ids();
        listed(py, &ids, &values, rows)
    }

    fn vertex_stream(&self) -> Stream {
        Stream::of_vertices(&self.graph)
    }

    /// Makes all changes durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, Opened::sync)
    }

    /// Makes all changes durable, and ends the use of the store.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, Opened::close)
    }
}

impl KeptVertexStore {
    /// Edges by rank. A target may be missing, and may be added later.
    fn ranked(&self, edges: Vec<(Vertex, f64)>) -> PyResult<Vec<(u64, f64)>> {
        edges.into_iter().map(|(target, weight)| Ok((self.new_rank(target)?, weight))).collect()
    }
}
