//! The states at the end of a run of a program: in memory, or in the store of the run.

use std::sync::Arc;

use brimful::execution::Error;
use brimful::graph::Graph;
use brimful::vertices::{Field, Growth};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::ids::Ids;
use super::kept::{Opened, Shared, listed, locked, missing, rows_of};
use super::value::{Value, Values};
use super::{OnStores, SMALL_STATE};
use crate::errors::Failure;
use crate::graph::Stream;
use crate::vertex::Vertex;

/// The states at the end of a run.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct States {
    pub(super) ids: Arc<Ids>,
    pub(super) values: Arc<Values>,
    pub(super) source: Source,
    pub(super) stats: Option<Py<PyDict>>,
}

/// The location of the states.
pub(super) enum Source {
    Memory(InMemory),
    /// In the store of the run, until the store changes.
    Disk {
        shared: Shared,
        generation: u64,
    },
}

/// States in memory.
pub(super) struct InMemory {
    /// Ranks of the vertices that exist, in the order of external ids.
    order: Vec<u64>,
    /// By rank; `None` for a vertex that does not exist.
    states: Vec<Option<Value>>,
}

impl InMemory {
    /// The states of all vertices of an execution. If vertices `change`, those without a state were
    /// removed, or never created.
    pub(super) fn of(
        execution: &mut OnStores<'_>,
        (graph, ids): (&Graph, &Ids),
        change: bool,
        mut memory: Growth,
    ) -> Result<Self, Error> {
        let count = ids.count();
        memory.take((count - graph.vertices()) * (size_of::<Value>() as u64 + 8 + SMALL_STATE))?;
        let mut states = vec![None; count as usize];
        execution.for_each(&mut |vertex| {
            memory.take((vertex.state.heap_bytes() as u64).saturating_sub(SMALL_STATE))?;
            let exists = !change || vertex.state != Value::None;
            if let Some(state) = states.get_mut(*vertex.id() as usize).filter(|_| exists) {
                *state = Some(vertex.state.clone());
            }
            Ok(())
        })?;
        let mut order = ids.order().map_err(|error| Error::Internal(error.to_string()))?;
        order.retain(|rank| states[*rank as usize].is_some());
        Ok(Self { order, states })
    }
}

#[pymethods]
impl States {
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stats.as_ref().map_or_else(|| Ok(PyDict::new(py)), |stats| stats.bind(py).copy())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match &self.source {
            Source::Memory(states) => Ok(states.order.len()),
            Source::Disk { .. } => self.on_disk(py, |opened| Ok(opened.len()? as usize)),
        }
    }

    fn state<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyAny>> {
        let id = vertex.into();
        let rank = self.ids.rank(&id, false)?;
        let state = match &self.source {
            Source::Memory(states) => states.states.get(rank as usize).cloned().flatten(),
            Source::Disk { .. } => self.on_disk(py, |opened| opened.state(rank))?,
        };
        match state {
            Some(state) => self.values.object(py, &state),
            None => Err(missing(&id)),
        }
    }

    fn vertex_stream(&self) -> Stream {
        Stream::of_vertices(&self.ids.graph)
    }

    /// Vertices and states from position `start` on, in the order of ids.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = match &self.source {
            Source::Memory(states) => {
                let ranks = states.order.iter().skip(start).take(count);
                ranks
                    .filter_map(|rank| Some((*rank, states.states[*rank as usize].clone()?)))
                    .collect()
            }
            Source::Disk { .. } => self.on_disk(py, |opened| rows_of(opened, start, count))?,
        };
        listed(py, &self.ids, &self.values, rows)
    }
}

impl States {
    /// Calls `work` with the vertices in the store of the run.
    fn on_disk<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Opened) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let Source::Disk { shared, generation } = &self.source else {
            return Err(Failure::from(Error::Internal("the states are in memory".into())).into());
        };
        let done = py.detach(|| {
            let mut opened = locked(shared);
            if opened.generation != *generation {
                return Err(Error::Usage(
                    "the vertices of the store have changed since this run; read the store itself, \
                     or keep the states with to_arrow() or dict()"
                        .into(),
                ));
            }
            work(&mut opened)
        });
        Ok(done.map_err(Failure::from)?)
    }
}
