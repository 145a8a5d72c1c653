//! `sort_part`: sort a part of the edges of an import in another process. Also the other end: an
//! object written in Python, through which an import lets other processes sort.
//!
//! The object has an attribute `parts` and two methods. `put(part, records)` takes a view of memory
//! that ends with the call. `sort(task, parts)` returns an object with the method `next(seconds)`
//! of messages (see `parsed.rs`).

use std::path::PathBuf;
use std::sync::Arc;

use brimful::graph::Result as GraphResult;
use brimful::graph::build::divided::{RecordSink, Sorters, sort_part as sort};
use brimful::graph::message::Messages;
use brimful::store::DiskFolder;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::with_resources;
use crate::cluster::with_views;
use crate::parsed::{PythonMessages, failed, next_buffer, task_limits};

/// Processes that an object in Python leads.
#[derive(Debug)]
struct PythonSorters {
    object: Py<PyAny>,
    parts: usize,
}

/// The sorters of an object in Python.
pub(crate) fn sorters_of(object: Option<Py<PyAny>>) -> PyResult<Option<Arc<dyn Sorters>>> {
    let Some(object) = object else { return Ok(None) };
    let parts = Python::attach(|py| object.bind(py).getattr("parts")?.extract())?;
    Ok(Some(Arc::new(PythonSorters { object, parts })))
}

impl RecordSink for PythonSorters {
    fn put(&self, part: usize, records: &[u8]) -> GraphResult<()> {
        Python::attach(|py| {
            with_views(py, &[records], |views| {
                self.object.bind(py).call_method1("put", (part, &views[0])).map(|_| ())
            })
        })
        .map_err(failed)
    }
}

impl Sorters for PythonSorters {
    fn parts(&self) -> usize {
        self.parts
    }

    fn sort(&self, task: &[u8], parts: usize) -> GraphResult<Box<dyn Messages>> {
        let messages = Python::attach(|py| {
            let arguments = (PyBytes::new(py, task), parts);
            Ok(self.object.bind(py).call_method1("sort", arguments)?.unbind())
        });
        Ok(Box::new(PythonMessages(messages.map_err(failed)?)))
    }
}

/// Sorts the records that `records` returns until it returns None, and calls `send` with the bytes
/// of each message. `folder` is for scratch files.
#[pyfunction]
#[pyo3(signature = (task, records, send, *, folder, budget))]
pub(crate) fn sort_part(
    py: Python<'_>,
    task: Vec<u8>,
    records: Py<PyAny>,
    send: Py<PyAny>,
    folder: PathBuf,
    budget: u64,
) -> PyResult<()> {
    let next = || next_buffer(&records);
    let pass = |message: Vec<u8>| {
        Python::attach(|py| send.bind(py).call1((PyBytes::new(py, &message),)).map(|_| ()))
            .map_err(failed)
    };
    with_resources(py, None, task_limits(budget), |resources| {
        Ok(sort(&task, &DiskFolder::new(&folder), resources, next, pass)?)
    })
}
