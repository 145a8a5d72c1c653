//! Requests as given from Python: algorithm, parameters, store, checkpoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brimful::algos::registry::{Pairs, Parameter, Request, StoreChoice};
use brimful::engine::Error as EngineError;
use brimful::engine::checkpoint::{self, CheckpointOptions, Every};
use brimful::graph::ids::external::ExternalId;
use brimful::store::Job;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::cluster::{GivenClusterSize, GivenCommunicator};
use crate::errors::Failure;
use crate::plugin::schemes;
use crate::vertex::Vertex;

/// The maximum number of supersteps of a program if the user sets no limit, so that one that
/// oscillates ends.
pub(crate) const DEFAULT_MAX_SUPERSTEPS: u64 = 10_000;

/// Says that a run ended at [`DEFAULT_MAX_SUPERSTEPS`].
pub(crate) fn say_default_limit(job: &Job) {
    job.say(
        "the program was stopped after 10,000 supersteps, the default limit; set max_supersteps to \
         change it",
    );
}

/// The request for an algorithm, as given from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked<'py> {
    pub(crate) algorithm: String,
    pub(crate) params: Bound<'py, PyDict>,
    pub(crate) source: Vec<Vertex>,
    pub(crate) source_weight: Vec<f64>,
    pub(crate) pairs: Option<Bound<'py, PyAny>>,
    pub(crate) precision: String,
    pub(crate) mode: String,
    pub(crate) tolerance: Option<f64>,
    pub(crate) max_supersteps: Option<u64>,
    pub(crate) weighted: bool,
    pub(crate) store: Store,
    /// The connection to the other processes, if several make the run.
    pub(crate) communicator: Option<GivenCommunicator>,
    /// The workers of a forecast for a cluster.
    pub(crate) cluster_size: Option<GivenClusterSize>,
}

/// The request, without checkpoints.
pub(crate) fn request(asked: &Asked<'_>) -> PyResult<Request> {
    let is_other = |word: &str, usual: &str, other: &str, option: &str| match word {
        _ if word == usual => Ok(false),
        _ if word == other => Ok(true),
        _ => {
            let problem = format!("there is no {option} {word:?}; choose {usual} or {other}");
            Err(Failure::from(EngineError::Usage(problem)))
        }
    };
    Ok(Request {
        algorithm: asked.algorithm.clone(),
        parameters: parameters(&asked.params)?,
        sources: asked.source.iter().cloned().map(ExternalId::from).collect(),
        source_weights: asked.source_weight.clone(),
        // A run sets the table that it reads; a forecast needs none.
        pairs: asked.pairs.as_ref().map(|_| Pairs::default()),
        narrow: is_other(&asked.precision, "f64", "f32", "precision")?,
        weighted: asked.weighted,
        asynchronous: is_other(&asked.mode, "sync", "async", "mode")?,
        store: asked.store.choice()?,
        tolerance: asked.tolerance,
        max_supersteps: asked.max_supersteps,
        checkpoints: None,
        communicator: asked
            .communicator
            .as_ref()
            .map(|communicator| communicator.communicator(asked.params.py())),
        cluster_size: asked.cluster_size.map(GivenClusterSize::size),
    })
}

/// Checkpoint and resume options, as given from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenCheckpoints<'py> {
    checkpoint_every: Option<Bound<'py, PyString>>,
    checkpoint_dir: Option<PathBuf>,
    resume: bool,
}

impl GivenCheckpoints<'_> {
    /// The options, if the run saves checkpoints or resumes from one.
    pub(crate) fn options(
        self,
        usual_folder: impl FnOnce() -> PathBuf,
    ) -> std::result::Result<Option<CheckpointOptions>, Failure> {
        let Self { checkpoint_every, checkpoint_dir: folder, resume } = self;
        let every =
            checkpoint_every.map(|text| Every::parse(&text.to_string_lossy())).transpose()?;
        if every.is_some() || resume {
            let folder = folder.unwrap_or_else(usual_folder);
            return Ok(Some(CheckpointOptions { every, resume, ..CheckpointOptions::new(folder) }));
        }
        if folder.is_some() {
            let problem =
                "--checkpoint-dir does nothing alone: give --checkpoint-every, --resume or both";
            return Err(EngineError::Usage(problem.into()).into());
        }
        Ok(None)
    }
}

/// The mode and the limits of the run of a program, as given from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenSteps {
    pub(crate) mode: String,
    pub(crate) max_supersteps: Option<u64>,
    pub(crate) weighted: bool,
}

/// Adds a note on resuming to an interrupt.
pub(crate) fn with_resume_advice(py: Python<'_>, error: PyErr, folder: Option<&Path>) -> PyErr {
    let folder = folder.filter(|_| error.is_instance_of::<PyKeyboardInterrupt>(py));
    let Some(Ok(Some(superstep))) = folder.map(checkpoint::newest_superstep) else { return error };
    let note = format!("--resume (Python: resume=True) continues from superstep {superstep}");
    // A failure to add the note must not hide the error itself.
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}

fn parameters(values: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, Parameter>> {
    values
        .iter()
        .map(|(key, value)| {
            let parameter = match (value.extract::<f64>(), value.extract::<Vec<f64>>()) {
                (Ok(number), _) => Parameter::Number(number),
                (_, Ok(numbers)) => Parameter::Numbers(numbers),
                _ => Parameter::Word(value.str()?.to_string()),
            };
            Ok((key.extract()?, parameter))
        })
        .collect()
}

/// The store of a run, if there is one, as given from Python.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Store {
    pub(crate) url: Option<String>,
    pub(crate) serializer: Option<String>,
    pub(crate) cache: Option<String>,
    pub(crate) lists: Option<String>,
    pub(crate) scheduler: Option<String>,
    pub(crate) partitioner: Option<String>,
    /// Opens the partitions of a store written in Python.
    pub(crate) opener: Option<Py<PyAny>>,
}

impl Store {
    /// The choice of a store, if there is one.
    pub(crate) fn choice(&self) -> std::result::Result<Option<StoreChoice>, Failure> {
        let Some(url) = &self.url else {
            let around = [
                (&self.serializer, "serializer"),
                (&self.cache, "cache"),
                (&self.lists, "lists"),
                (&self.scheduler, "scheduler"),
                (&self.partitioner, "partitioner"),
            ];
            return match around.iter().find(|(option, _)| option.is_some()) {
                None => Ok(None),
                Some((_, name)) => Err(EngineError::Usage(format!(
                    "--{name} applies to vertices in a store only; add --store, or leave it out"
                ))
                .into()),
            };
        };
        let parsed = StoreChoice {
            url: url.clone(),
            schemes: schemes(self.opener.as_ref()).map_err(|error| {
                EngineError::Usage(format!("the store {url:?} cannot be opened: {error}"))
            })?,
            serializer: self.serializer.clone(),
            cache: self.cache.as_deref().map(str::parse).transpose()?,
            lists: self.lists.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            partitioning: self
                .partitioner
                .as_deref()
                .map(str::parse)
                .transpose()?
                .unwrap_or_default(),
            schedule: self.scheduler.as_deref().map(str::parse).transpose()?,
        };
        Ok(Some(parsed))
    }
}
