//! The part of this process in a run of a program that several processes make together.
//!
//! The steps between supersteps are an object of Python, `brimful.cluster.programs.SharedSteps`. It
//! also writes objects for other processes, and reads theirs: the user's serializer is for stores,
//! and a message may be of any type, as in one process.

use std::sync::Arc;

use brimful::engine::exchange::Communicator;
use brimful::engine::result::stats::{Durations, Traversal};
use brimful::engine::{Error as EngineError, Reason, Stats};
use brimful::execution::{Error, ExecutionStats};
use brimful::store::{Job, Resources};
use brimful::vertices::{Field, Growth};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::OnStores;
use super::ids::Ids;
use super::states::{Filling, Source, States};
use super::value::{Value, Values};
use crate::cluster::GivenCommunicator;
use crate::errors::raised;

/// The connection to the other processes, and the steps between supersteps.
pub(super) struct Distribution {
    pub(super) communicator: Communicator,
    pub(super) steps: Arc<Steps>,
}

/// The object of Python.
pub(super) struct Steps(Py<PyAny>);

impl Distribution {
    pub(super) fn new(py: Python<'_>, communicator: &GivenCommunicator, steps: Py<PyAny>) -> Self {
        Self { communicator: communicator.communicator(py), steps: Arc::new(Steps(steps)) }
    }

    /// The first process decides whether superstep `number` begins, if the program decides at all,
    /// and all processes follow.
    pub(super) fn wants_superstep(&self, number: u64, job: &Job) -> Result<bool, Error> {
        let mut decision = Vec::new();
        if self.steps.decides().map_err(raised)? {
            if self.communicator.index == Some(0) {
                decision = self.steps.decide(number).map_err(raised)?;
            }
            let all = self.communicator.all_gather(&decision, &[], job)?;
            decision = (*all[0].facts).as_ref().to_vec();
        }
        self.steps.follow(number, &decision).map_err(raised)
    }

    /// Sends states and figures to the driver, which returns them; any other process ends with
    /// [`EngineError::ProcessDone`].
    pub(super) fn finish(
        &self,
        execution: &mut OnStores<'_>,
        (ids, values): (Arc<Ids>, Arc<Values>),
        (changes, memory): (bool, Growth),
        reason: Reason,
        resources: &Resources,
    ) -> Result<(States, ExecutionStats, Option<u64>), Error> {
        let (steps, is_driver) = (&self.steps, self.communicator.is_driver());
        let mut filling = match is_driver {
            true => Some(Filling::new(&ids, changes, memory)?),
            false => None,
        };
        execution.gather(
            &mut |vertex, out| {
                let state = vertex.state.clone();
                let state = Python::attach(|py| steps.exported_state(py, &values, state));
                vertex.id().write(out);
                state.map_err(raised)?.write(out);
                Ok(())
            },
            &mut |_, mut records| {
                let Some(filling) = &mut filling else { return Ok(()) };
                while !records.is_empty() {
                    let rank = u64::read(&mut records);
                    let record = rank.and_then(|rank| Some((rank, Value::read(&mut records)?)));
                    let (rank, state) = record
                        .ok_or_else(|| Error::Internal("a worker sent a part of a state".into()))?;
                    let state = Python::attach(|py| steps.imported_state(py, &values, state));
                    filling.add(rank, &state.map_err(raised)?)?;
                }
                Ok(())
            },
        )?;
        let mut figures = execution.stats()?;
        figures.reason = Some(reason);
        match filling {
            Some(filling) => {
                let source = Source::Memory(filling.finish(&ids)?);
                Ok((States { ids, values, source, stats: None }, figures, None))
            }
            None => Err(process_done(figures, reason, resources)),
        }
    }
}

impl Steps {
    /// True if the first process decides for all.
    fn decides(&self) -> PyResult<bool> {
        Python::attach(|py| self.0.bind(py).getattr("decides")?.is_truthy())
    }

    fn decide(&self, number: u64) -> PyResult<Vec<u8>> {
        Python::attach(|py| self.0.bind(py).call_method1("decide", (number,))?.extract())
    }

    /// Begins superstep `number` as the first process decided; false if the run ends.
    fn follow(&self, number: u64, decision: &[u8]) -> PyResult<bool> {
        Python::attach(|py| {
            let decision = PyBytes::new(py, decision);
            self.0.bind(py).call_method1("follow", (number, decision))?.is_truthy()
        })
    }

    /// The contribution of this process to the aggregates of a superstep that ends.
    pub(super) fn contribution(&self) -> PyResult<Vec<u8>> {
        Python::attach(|py| self.0.bind(py).call_method0("contribution")?.extract())
    }

    /// Takes the contributions of all processes, in order.
    pub(super) fn merge(&self, of_all: &[&[u8]]) -> PyResult<()> {
        Python::attach(|py| {
            let of_all: Vec<_> = of_all.iter().map(|one| PyBytes::new(py, one)).collect();
            self.0.bind(py).call_method1("merge", (of_all,)).map(drop)
        })
    }

    fn dumped(&self, object: Bound<'_, PyAny>) -> PyResult<Value> {
        let bytes = self.0.bind(object.py()).call_method1("dumps", (object,))?;
        Ok(Value::Bytes(bytes.extract::<&[u8]>()?.into()))
    }

    fn loaded<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(py).call_method1("loads", (PyBytes::new(py, bytes),))
    }

    /// A signal for another process; it no longer waits in this one.
    pub(super) fn exported(
        &self,
        py: Python<'_>,
        values: &Values,
        signal: Value,
    ) -> PyResult<Value> {
        match signal {
            Value::Bytes(_) | Value::Live(_) | Value::Waiting(_) => {
                self.dumped(values.take(py, &signal)?)
            }
            number => Ok(number),
        }
    }

    /// A signal that [`Steps::exported`] made in another process.
    pub(super) fn imported(
        &self,
        py: Python<'_>,
        values: &Values,
        signal: Value,
    ) -> PyResult<Value> {
        match signal {
            Value::Bytes(bytes) => values.signal(self.loaded(py, &bytes)?),
            number => Ok(number),
        }
    }

    /// A state for another process. States that are not alive are bytes of the user's serializer,
    /// which all processes have.
    fn exported_state(&self, py: Python<'_>, values: &Values, state: Value) -> PyResult<Value> {
        match state {
            Value::Live(_) => self.dumped(values.object(py, &state)?),
            other => Ok(other),
        }
    }

    fn imported_state(&self, py: Python<'_>, values: &Values, state: Value) -> PyResult<Value> {
        match state {
            Value::Bytes(bytes) if values.is_live => values.state(self.loaded(py, &bytes)?),
            other => Ok(other),
        }
    }
}

/// The end of a process that is not the driver.
fn process_done(figures: ExecutionStats, reason: Reason, resources: &Resources) -> Error {
    let mut durations = Durations::default();
    figures.by_superstep.iter().for_each(|one| durations.push(one.work(), Traversal::Store));
    let stats = Stats {
        supersteps: figures.supersteps,
        reason,
        durations,
        seconds: figures.seconds,
        index_seconds: 0.0,
        signals: figures.signals_sent,
        edges_visited: figures.edges_visited,
        moved: resources.job.traffic().moved(),
        phases: Vec::new(),
        threads: resources.workers(),
        resumed_from: None,
        store: Some(figures),
    };
    Error::Engine(EngineError::ProcessDone(Box::new(stats)))
}
