//! The states at the end of a run of a program: in memory, or in the store of the run.

use std::sync::Arc;

use brimful::execution::Error;
use brimful::vertices::{Field, Growth};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::ids::Ids;
use super::kept::{Opened, Shared, listed, locked, rows_of};
use super::value::{Value, Values};
use super::{OnStores, SMALL_STATE};
use crate::errors::{Failure, no_vertex};
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

impl Source {
    /// The states that a run left in a store.
    pub(super) fn of_run(shared: Shared) -> Self {
        let generation = locked(&shared).generation;
        Self::Disk { shared, generation }
    }
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
        ids: &Ids,
        change: bool,
        memory: Growth,
    ) -> Result<Self, Error> {
        let mut filling = Filling::new(ids, change, memory)?;
        execution.for_each(&mut |vertex| Ok(filling.add(*vertex.id(), &vertex.state)?))?;
        filling.finish(ids)
    }
}

/// States in memory that are not complete.
pub(super) struct Filling {
    states: Vec<Option<Value>>,
    change: bool,
    memory: Growth,
}

impl Filling {
    /// No states yet. `memory` has room for small ones of the vertices of the graph.
    pub(super) fn new(ids: &Ids, change: bool, mut memory: Growth) -> Result<Self, Error> {
        let count = ids.count();
        let created = count - ids.graph.vertices();
        memory.take(created * (size_of::<Value>() as u64 + 8 + SMALL_STATE))?;
        Ok(Self { states: vec![None; count as usize], change, memory })
    }

    /// Adds the state of a vertex.
    pub(super) fn add(&mut self, rank: u64, state: &Value) -> Result<(), Error> {
        self.memory.take((state.heap_bytes() as u64).saturating_sub(SMALL_STATE))?;
        if self.change && *state == Value::None {
            return Ok(());
        }
        let place = self.states.get_mut(rank as usize).ok_or_else(|| {
            Error::Internal(format!("the state of rank {rank} belongs to no vertex"))
        })?;
        *place = Some(state.clone());
        Ok(())
    }

    /// The states of all vertices that exist.
    pub(super) fn finish(self, ids: &Ids) -> Result<InMemory, Error> {
        let states = self.states;
        let mut order = ids.order().map_err(|error| Error::Internal(error.to_string()))?;
        order.retain(|rank| states[*rank as usize].is_some());
        Ok(InMemory { order, states })
    }
}

#[pymethods]
impl States {
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stats.as_ref().map_or_else(|| Ok(PyDict::new(py)), |stats| stats.bind(py).copy())
    }

    /// Adds to the figures of the run.
    fn add_stats(&self, py: Python<'_>, more: &Bound<'_, PyDict>) -> PyResult<()> {
        self.stats.as_ref().map_or(Ok(()), |stats| stats.bind(py).update(more.as_mapping()))
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
            None => Err(no_vertex("the result", &id)),
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
