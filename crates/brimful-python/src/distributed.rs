//! `read_table`, `number_ids`, `replace_numbers`, `rank_range`, `map_edges`: work for an import in
//! other processes, which keep the edges of its files. Also the other end: a Python object that
//! controls these processes.
//!
//! The object has the method `next(seconds)`, which returns the last message of each file (see
//! `parsed.rs`); `batches()`, the number of batches; `parts()`, the largest number of parts of
//! edges; `replace(task, generation, table)`; and the methods `names()`, `number(task)`,
//! `rank(task, declared)`, `map(task, slots, lines, last)` and `sort(task, parts)`, which return an
//! object with the method `next(seconds)`. Views of memory end with the call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful::graph::Result as GraphResult;
use brimful::graph::build::mapping::map_edges as map;
use brimful::graph::build::numbering::number_ids as number;
use brimful::graph::input::distributed::{DistributedEdges, rank_range as rank};
use brimful::graph::input::sending::{read_stream, replace_numbers as replaced};
use brimful::graph::message::{Message, Messages};
use brimful::store::{Budget, DiskFolder, Job, Resources};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow_in::ArrowEdges;
use crate::arrow_names::ColumnIds;
use crate::call::{Limits, with_job, with_resources};
use crate::cluster::with_views;
use crate::errors::Failure;
use crate::parsed::{
    PythonMessages, failed, message_of, next_buffer, next_message, on_error_of, policy_of, sender,
};

/// Processes that an object in Python leads.
#[derive(Debug)]
pub(crate) struct PythonDistributed(pub(crate) Py<PyAny>);

impl DistributedEdges for PythonDistributed {
    fn next(&self, job: &Job) -> GraphResult<Option<(usize, Message)>> {
        next_message(&self.0, job)
    }

    fn batches(&self) -> GraphResult<usize> {
        Python::attach(|py| self.0.bind(py).call_method0("batches")?.extract()).map_err(failed)
    }

    fn parts(&self) -> GraphResult<usize> {
        Python::attach(|py| self.0.bind(py).call_method0("parts")?.extract()).map_err(failed)
    }

    fn sort(&self, task: &[u8], parts: usize) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| {
            let arguments = (PyBytes::new(py, task), parts);
            Ok(self.0.bind(py).call_method1("sort", arguments)?.unbind())
        });
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }

    fn names(&self) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| Ok(self.0.bind(py).call_method0("names")?.unbind()));
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }

    fn number(&self, task: &[u8]) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| {
            let arguments = (PyBytes::new(py, task),);
            Ok(self.0.bind(py).call_method1("number", arguments)?.unbind())
        });
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }

    fn replace(&self, task: &[u8], generation: usize, table: &[u8]) -> GraphResult<()> {
        Python::attach(|py| {
            with_views(py, &[table], |views| {
                let arguments = (PyBytes::new(py, task), generation, &views[0]);
                self.0.bind(py).call_method1("replace", arguments).map(|_| ())
            })
        })
        .map_err(failed)
    }

    fn rank(&self, task: &[u8], declared: &[usize]) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| {
            let arguments = (PyBytes::new(py, task), declared.to_vec());
            Ok(self.0.bind(py).call_method1("rank", arguments)?.unbind())
        });
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }

    fn map(&self, task: &[u8], table: [&[u8]; 2], last: bool) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| {
            with_views(py, &table, |views| {
                let arguments = (PyBytes::new(py, task), &views[0], &views[1], last);
                Ok(self.0.bind(py).call_method1("map", arguments)?.unbind())
            })
        });
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }
}

/// The distributed edges that an object in Python controls.
pub(crate) fn distributed_of(object: Py<PyAny>) -> Arc<dyn DistributedEdges> {
    Arc::new(PythonDistributed(object))
}

/// Reads a table, and calls `send` with the label and the bytes of each message. `folder` is for
/// scratch files.
#[pyfunction]
#[pyo3(signature = (
    table, send, *, name, source, target, weight, ids, vertex_rows, undirected, on_error,
    self_loops, duplicates, reserve_bytes, folder, budget
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn read_table(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    send: Py<PyAny>,
    name: String,
    source: &str,
    target: &str,
    weight: Option<&str>,
    ids: &str,
    vertex_rows: bool,
    undirected: Option<bool>,
    on_error: &str,
    self_loops: &str,
    duplicates: &str,
    reserve_bytes: u64,
    folder: PathBuf,
    budget: u64,
) -> PyResult<()> {
    let on_error = on_error_of(on_error)?;
    let ids = ColumnIds::from_name(ids).map_err(Failure::from)?;
    let choices = policy_of(undirected, self_loops, duplicates)?;
    let path = Path::new(&name);
    let mut edges = ArrowEdges::open(table, path, source, target, weight, ids, Some(on_error))?;
    edges.take_vertex_rows(vertex_rows);
    with_job(py, None, |job| {
        let budget = Budget::new(budget, reserve_bytes);
        let resources = Resources::new(budget, Arc::clone(job), Some(1))?;
        let (directed, folder) = (undirected == Some(false), DiskFolder::new(&folder));
        let (facts, send) = (ArrowEdges::facts, sender(&send));
        Ok(read_stream(&mut edges, directed, choices, &folder, &resources, facts, send)?)
    })
}

/// Numbers the ids of distributed edges: `batches` returns the number of a file and a batch of it
/// until it returns None. Calls `send` with the label and the bytes of each message.
#[pyfunction]
#[pyo3(signature = (task, batches, send, *, budget))]
pub(crate) fn number_ids(
    py: Python<'_>,
    task: Vec<u8>,
    batches: Py<PyAny>,
    send: Py<PyAny>,
    budget: u64,
) -> PyResult<()> {
    let next = || next_batch(&batches);
    with_resources(py, None, Limits::one_thread(Some(budget)), move |resources| {
        Ok(number(&task, resources, next, sender(&send))?)
    })
}

/// Replaces the numbers of a generation by the entries of `table`: `batches` returns each batch
/// until it returns None. Calls `send` with the label and the bytes of each message.
#[pyfunction]
#[pyo3(signature = (task, table, batches, send, *, budget))]
pub(crate) fn replace_numbers(
    py: Python<'_>,
    task: Vec<u8>,
    table: PyBuffer<u8>,
    batches: Py<PyAny>,
    send: Py<PyAny>,
    budget: u64,
) -> PyResult<()> {
    let table = message_of(table).map_err(Failure::from)?;
    let next = || next_buffer(&batches);
    with_resources(py, None, Limits::one_thread(Some(budget)), move |resources| {
        Ok(replaced(&task, (*table).as_ref(), resources, next, sender(&send))?)
    })
}

/// Ranks the ids of a range: `ids` returns the message of each file until it returns None. Returns
/// the message of the ranks.
#[pyfunction]
#[pyo3(signature = (task, range, ids, *, budget))]
pub(crate) fn rank_range(
    py: Python<'_>,
    task: Vec<u8>,
    range: usize,
    ids: Py<PyAny>,
    budget: u64,
) -> PyResult<Bound<'_, PyBytes>> {
    let next = || next_buffer(&ids);
    let message = with_resources(py, None, Limits::one_thread(Some(budget)), |resources| {
        Ok(rank(&task, range, resources, next)?)
    })?;
    Ok(PyBytes::new(py, &message))
}

/// Maps batches of distributed edges: `batches` returns the number of a file and a batch of it
/// until it returns None. Calls `send` with each part and records of it. Returns the message of the
/// counts.
#[pyfunction]
#[pyo3(signature = (task, slots, lines, batches, send, *, budget))]
pub(crate) fn map_edges<'py>(
    py: Python<'py>,
    task: Vec<u8>,
    slots: PyBuffer<u8>,
    lines: PyBuffer<u8>,
    batches: Py<PyAny>,
    send: Py<PyAny>,
    budget: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let slots = message_of(slots).map_err(Failure::from)?;
    let lines = message_of(lines).map_err(Failure::from)?;
    let next = || next_batch(&batches);
    let message = with_resources(py, None, Limits::one_thread(Some(budget)), move |resources| {
        let table = [(*slots).as_ref(), (*lines).as_ref()];
        Ok(map(&task, table, resources, next, sender(&send))?)
    })?;
    Ok(PyBytes::new(py, &message))
}

/// The batch that a function in Python returns, with the number of its file; `None` for None.
fn next_batch(function: &Py<PyAny>) -> GraphResult<Option<(usize, Message)>> {
    let batch: Option<(usize, PyBuffer<u8>)> =
        Python::attach(|py| function.bind(py).call0()?.extract()).map_err(failed)?;
    batch.map(|(file, buffer)| Ok((file, message_of(buffer)?))).transpose()
}
