//! `has_names`, `parse_text`: parse text files for an import in another process. Also the messages
//! between an import and an object written in Python.
//!
//! The object has a method `next(seconds)`. It returns a list of a number and a constant buffer, an
//! empty list at the end, or None after that time, so that a canceled import ends. It keeps its
//! errors, and the caller raises them instead of those here.

use std::path::PathBuf;

use brimful::graph::Error as GraphError;
use brimful::graph::Result as GraphResult;
use brimful::graph::build::import::{IdChoice, OnError};
use brimful::graph::input::columns::ColumnChoice;
use brimful::graph::input::formats::{TextFile, TextFormat};
use brimful::graph::input::parsed::ScanChoices;
use brimful::graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful::graph::input::sending::{Choices, has_names as ids_are_names, parse_file};
use brimful::graph::message::{Message, Messages};
use brimful::store::{DiskFolder, Job};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Limits, with_resources};
use crate::cluster::{Buffer, TICK_SECONDS};
use crate::columns::EdgeColumns;
use crate::errors::Failure;

/// Messages from an object in Python.
#[derive(Debug)]
pub(crate) struct PythonMessages(pub(crate) Py<PyAny>);

impl Messages for PythonMessages {
    fn next(&mut self, job: &Job) -> GraphResult<Option<(usize, Message)>> {
        next_message(&self.0, job)
    }
}

/// An error of Python, which the object keeps.
pub(crate) fn failed(error: PyErr) -> GraphError {
    GraphError::input("the cluster", error.to_string())
}

/// A constant buffer as a message.
pub(crate) fn message_of(buffer: PyBuffer<u8>) -> GraphResult<Message> {
    let constant = || GraphError::input("the cluster", "a message must be constant bytes");
    Ok(Box::new(Buffer::constant(buffer).ok_or_else(constant)?))
}

/// The next message of an object in Python; `None` after the last one.
pub(crate) fn next_message(object: &Py<PyAny>, job: &Job) -> GraphResult<Option<(usize, Message)>> {
    loop {
        job.check()?;
        let next = Python::attach(|py| {
            let next = object.bind(py).call_method1("next", (TICK_SECONDS,))?;
            next.extract::<Option<Vec<(usize, PyBuffer<u8>)>>>()
        });
        let Some(messages) = next.map_err(failed)? else { continue };
        let first = messages.into_iter().next();
        return first.map(|(file, buffer)| Ok((file, message_of(buffer)?))).transpose();
    }
}

/// The buffer that a function in Python returns; `None` for None.
pub(crate) fn next_buffer(function: &Py<PyAny>) -> GraphResult<Option<Message>> {
    let buffer: Option<PyBuffer<u8>> =
        Python::attach(|py| function.bind(py).call0()?.extract()).map_err(failed)?;
    buffer.map(message_of).transpose()
}

/// Calls a function in Python with the label and the bytes of each message.
pub(crate) fn sender(send: &Py<PyAny>) -> impl FnMut(usize, Vec<u8>) -> GraphResult<()> + Send {
    move |label, message| {
        Python::attach(|py| send.bind(py).call1((label, PyBytes::new(py, &message))).map(|_| ()))
            .map_err(failed)
    }
}

/// The choices of a scan.
pub(crate) fn policy_of(
    undirected: Option<bool>,
    self_loops: &str,
    duplicates: &str,
) -> Result<ScanChoices, Failure> {
    let (self_loops, duplicates) =
        (SelfLoops::from_name(self_loops)?, Duplicates::from_name(duplicates)?);
    let policy = Policy { self_loops, duplicates };
    Ok(ScanChoices { undirected: undirected == Some(true), policy })
}

/// The text format `name` of files that stand alone.
pub(crate) fn text_format(name: &str) -> Result<TextFormat, Failure> {
    let missing = || GraphError::Usage(format!("{name:?} is not a format of text"));
    Ok(TextFormat::from_name(name).ok_or_else(missing)?)
}

/// The treatment of lines that are not edges.
pub(crate) fn on_error_of(name: &str) -> Result<OnError, Failure> {
    match name {
        "fail" => Ok(OnError::Fail),
        "skip" => Ok(OnError::Skip),
        _ => Err(GraphError::Usage(format!("on_error must be fail or skip, not {name:?}")).into()),
    }
}

/// Whether the ids of a file are strings, by the choice `ids` or its first lines.
#[pyfunction]
#[pyo3(signature = (path, *, format, columns, ids, budget, progress))]
pub(crate) fn has_names(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    columns: EdgeColumns,
    ids: &str,
    budget: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let file = TextFile { path, format: text_format(format)? };
    let ids = IdChoice::from_name(ids).map_err(Failure::from)?;
    let columns = ColumnChoice::try_from(columns)?;
    with_resources(py, progress, Limits::one_thread(Some(budget)), |resources| {
        Ok(ids_are_names(&file, ids, &columns, resources)?)
    })
}

/// Parses a file, and calls `send` with the label and the bytes of each message. `folder` is for
/// scratch files.
#[pyfunction]
#[pyo3(signature = (
    path, send, *, format, columns, names, undirected, on_error, self_loops, duplicates, folder,
    budget, progress
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn parse_text(
    py: Python<'_>,
    path: PathBuf,
    send: Py<PyAny>,
    format: &str,
    columns: EdgeColumns,
    names: bool,
    undirected: Option<bool>,
    on_error: &str,
    self_loops: &str,
    duplicates: &str,
    folder: PathBuf,
    budget: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let file = TextFile { path, format: text_format(format)? };
    let columns = ColumnChoice::try_from(columns)?;
    let on_error = on_error_of(on_error)?;
    let scan = policy_of(undirected, self_loops, duplicates)?;
    let choices = Choices {
        names,
        directed: undirected.map(|undirected| !undirected),
        columns,
        on_error,
        scan,
    };
    with_resources(py, progress, Limits::one_thread(Some(budget)), |resources| {
        let folder = DiskFolder::new(&folder);
        Ok(parse_file(&file, &choices, &folder, resources, sender(&send))?)
    })
}
