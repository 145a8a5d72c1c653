//! `sort_part`: sort a part of the edges of an import in another process.

use std::path::PathBuf;

use brimful::graph::build::divided::sort_part as sort;
use brimful::store::DiskFolder;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Limits, with_resources};
use crate::parsed::{failed, next_buffer};

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
    with_resources(py, None, Limits::one_thread(Some(budget)), |resources| {
        Ok(sort(&task, &DiskFolder::new(&folder), resources, next, pass)?)
    })
}
