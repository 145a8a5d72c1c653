//! `run_program`: programs written in Python, on vertices in a store.
//!
//! - `value`: states and signals, alive or as bytes; `record`: the records of vertices with them.
//! - `calls`: the calls of the program's methods; `purity`: checks that they change no object.
//! - `beside`: what checkpoints hold beside vertices.
//! - `ids`: external ids of vertices, also of those that the program creates; `kept`: vertices
//!   between runs.

mod beside;
mod calls;
mod ids;
pub(crate) mod kept;
mod purity;
mod record;
mod value;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brimful::algos::registry::StoreChoice;
use brimful::engine::Reason;
use brimful::engine::checkpoint::{self, CheckpointOptions, Every};
use brimful::execution::checkpoint::RunCheckpoints;
use brimful::execution::from_graph::{StoreOf, StoreOptions, by_external_id, start};
use brimful::execution::{
    Delivery, Error, Execution, ExecutionOptions, ExecutionStats, RunLimits, RunMode, Start,
    VertexOf,
};
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use brimful::vertices::{Field, Growth, Place};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call;
use crate::errors::Failure;
use crate::graph::{Graph, Stream};
use crate::plugin::with_store;
use crate::request::{Store, checkpoint_options, where_to_go_on};
use crate::run::{store_figures, work_figures};
use crate::vertex::Vertex;
use beside::Beside;
pub(crate) use calls::Seen;
use calls::{Program, with_vertex};
use ids::Ids;
use kept::{Keeping, Location, Opened, Shared, listed, locked, missing, rows_of};
use record::Records;
use value::{MemoryWatch, Value, Values};

/// The options of a run.
struct Settings {
    delivery: Delivery,
    mode: RunMode,
    max_supersteps: Option<u64>,
    signal_threshold: f64,
    collect_threshold: f64,
    /// Called with the number of each superstep before it begins; false ends the run.
    next_superstep: Option<Py<PyAny>>,
    /// The texts that checkpoints hold beside the vertices, returned and taken.
    beside: Option<(Py<PyAny>, Py<PyAny>)>,
    /// For Pregel: vertices choose the targets of their messages.
    addresses: bool,
    /// Messages create the vertices that they do not find.
    creates: bool,
    weighted: bool,
    checkpoints: Option<CheckpointOptions>,
    /// The vertices stay in the store.
    keeping: Option<Keeping>,
}

/// The most supersteps of a run that names no limit: a program that oscillates ends.
const DEFAULT_MAX_SUPERSTEPS: u64 = 10_000;

/// Runs a program of Python methods on a graph.
#[pyfunction]
#[pyo3(signature = (graph, program, *, delivery, thresholds, dumps, loads, keeps_numbers, next_superstep, beside, addresses, creates, mode, max_supersteps, weighted, store, keeping, checkpoint_every, checkpoint_dir, resume, identity, budget, process_budget, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run_program(
    py: Python<'_>,
    graph: &Bound<'_, Graph>,
    program: Py<PyAny>,
    delivery: &str,
    thresholds: (f64, f64),
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    keeps_numbers: bool,
    next_superstep: Option<Py<PyAny>>,
    beside: Option<(Py<PyAny>, Py<PyAny>)>,
    addresses: bool,
    creates: bool,
    mode: &str,
    max_supersteps: Option<u64>,
    weighted: bool,
    store: Store,
    keeping: Option<(String, bool)>,
    checkpoint_every: Option<&str>,
    checkpoint_dir: Option<PathBuf>,
    resume: bool,
    identity: Vec<(String, String)>,
    budget: Option<u64>,
    process_budget: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<States> {
    let inner = Arc::clone(&graph.get().inner);
    let usual_folder = || {
        let program = identity.first().map_or("program", |(_, program)| program.as_str());
        checkpoint::default_folder(&inner, program)
    };
    let mut checkpoints =
        checkpoint_options(checkpoint_every, checkpoint_dir, resume, usual_folder)?;
    if let Some(chosen) = &mut checkpoints {
        chosen.identity = identity;
        chosen.identity.push(("weighted".to_owned(), weighted.to_string()));
    }
    let folder = checkpoints.as_ref().map(|chosen| chosen.folder.clone());
    let choice = store.choice()?.ok_or_else(|| {
        Failure::from(Error::Usage("a program in Python needs a store; give one (store=)".into()))
    })?;
    let settings = Settings {
        delivery: match delivery {
            "each" => Delivery::Each,
            "combined" => Delivery::Combined,
            "latest" => Delivery::LatestPerEdge,
            other => {
                let what =
                    format!("there is no delivery {other:?}; choose each, combined or latest");
                return Err(Failure::from(Error::Usage(what)).into());
            }
        },
        mode: match mode {
            "sync" | "async" => choice.mode(mode == "async").map_err(Failure::from)?,
            other => {
                let what = format!("there is no mode {other:?}; choose sync or async");
                return Err(Failure::from(Error::Usage(what)).into());
            }
        },
        max_supersteps,
        signal_threshold: thresholds.0,
        collect_threshold: thresholds.1,
        next_superstep,
        beside,
        addresses,
        creates,
        weighted,
        checkpoints,
        keeping: keeping.map(|(serializer, continues)| Keeping {
            serializer,
            start: if continues { Start::Continue } else { Start::Again },
        }),
    };
    if max_supersteps.is_some() && mode == "async" {
        let what = "the asynchronous mode has no supersteps to limit; leave max_supersteps= out";
        return Err(Failure::from(Error::Usage(what.into())).into());
    }
    // One thread makes all calls: only one at a time can have the interpreter.
    let limits = call::Limits { threads: Some(1), budget, process_budget, reserve_bytes: 0 };
    let run = |resources: &Resources| {
        let is_live = choice.schemes.place(&choice.url).map_err(Error::from)? == Place::Live;
        let memory = MemoryWatch::new(&resources.budget, process_budget);
        let values = Values::new((dumps, loads), (is_live, keeps_numbers), memory);
        let location = Location::new(&choice, &inner, (settings.keeping.as_ref(), weighted))?;
        let ids = Arc::new(Ids::new(&inner, location.created(), resources)?);
        let program =
            Python::attach(|py| Program::new(program.bind(py), &settings, ids, Arc::new(values)));
        let program = program.map_err(|error| Error::Usage(error.to_string()))?;
        // A plug-in removes its records at the end of the run.
        let leaves = store.opener.is_none()
            && choice.schemes.folders(&choice.url).map_err(Error::from)?.is_some();
        Ok(run(program, &inner, &settings, (&choice, location, leaves), resources)?)
    };
    let (mut states, done, resumed_from) =
        with_store(py, progress, limits, store.opener.as_ref(), run)
            .map_err(|error| where_to_go_on(py, error, folder.as_deref()))?;
    let out = PyDict::new(py);
    out.set_item("mode", mode)?;
    out.set_item("supersteps", done.supersteps)?;
    out.set_item("reason", done.reason.map(Reason::phrase))?;
    out.set_item("seconds", done.seconds)?;
    out.set_item("signals", done.signals_sent)?;
    out.set_item("resumed_from", resumed_from)?;
    work_figures(&out, &done.by_superstep.iter().map(|one| one.work()).collect::<Vec<_>>())?;
    store_figures(&out, &store, Some(&done))?;
    states.stats = Some(out.unbind());
    Ok(states)
}

/// Bytes of each state in the result that are reserved before the run.
const SMALL_STATE: u64 = 32;

fn run(
    program: Program,
    graph: &Arc<Inner>,
    settings: &Settings,
    (store, mut location, leaves): (&StoreChoice, Location, bool),
    resources: &Resources,
) -> Result<(States, ExecutionStats, Option<u64>), Error> {
    let (ids, values) = (Arc::clone(&program.ids), Arc::clone(&program.values));
    let superstep = Arc::clone(&program.superstep);
    let lists = ExecutionOptions {
        signal_threshold: Some(settings.signal_threshold),
        collect_threshold: Some(settings.collect_threshold),
        lists: store.lists,
        ..ExecutionOptions::default()
    };
    // Reserved before the work; the size of larger states is not known yet.
    let mut memory = Growth::new(&resources.budget, "for the result")?;
    if !leaves {
        memory.take(
            graph.vertices() * (size_of::<Value>() + size_of::<u64>()) as u64
                + graph.vertices() * SMALL_STATE,
        )?;
    }
    let most = settings.max_supersteps.unwrap_or(DEFAULT_MAX_SUPERSTEPS);
    let open = |chosen| RunCheckpoints::open(chosen, (settings.mode, most), graph, &[], resources);
    let mut checkpoints = settings.checkpoints.as_ref().map(open).transpose()?;
    let records = || Records(Arc::clone(&values));
    location.begin()?;
    let url = location.url.clone();
    let stores = StoreOptions { store: &url, kept: location.vertices(), ..store.options() };
    let (part, stores) = ((&**graph, settings.weighted), (&stores, &lists));
    let started =
        start(program, part, stores, &|| Ok(Box::new(records())), checkpoints.as_mut(), resources);
    if matches!(started, Err(Error::Program { .. })) {
        // The first error is the one to report.
        let _ = location.stopped();
    }
    let mut execution = started.map_err(|error| with_vertex(error, &ids))?;
    location.loaded(execution.partition_edges())?;
    location.touched().try_for_each(|rank| execution.request_collect(&rank))?;
    let mut limits = RunLimits {
        max_supersteps: most - most.min(execution.stats()?.supersteps),
        ..RunLimits::default()
    };
    if let Some(Every::Time(time)) = settings.checkpoints.as_ref().and_then(|chosen| chosen.every) {
        limits.check_every = time;
    }
    superstep.store(execution.stats()?.supersteps, Ordering::Relaxed);
    // Aggregates and Pregel's master act before each superstep; the master may end the run.
    let wants_superstep = |number: u64| match &settings.next_superstep {
        None => Ok(true),
        Some(next) => Python::attach(|py| next.bind(py).call1((number,))?.is_truthy())
            .map_err(|error| Error::Internal(error.to_string())),
    };
    let beside = Beside { calls: settings.beside.as_ref(), ids: Arc::clone(&ids) };
    if let Some(checkpoints) = &checkpoints {
        beside.restore(checkpoints.beside())?;
    }
    // Without supersteps, a vertex counts one each time it collects.
    let most_collects = DEFAULT_MAX_SUPERSTEPS * graph.vertices().max(1);
    let is_limited = settings.mode != RunMode::Synchronous && settings.max_supersteps.is_none();
    let mut is_endless = false;
    let done = if wants_superstep(execution.stats()?.supersteps)? {
        execution.run(settings.mode, &limits, |execution| {
            let figures = execution.stats()?;
            let number = figures.supersteps;
            is_endless = is_limited && figures.vertices_collected > most_collects;
            superstep.store(number, Ordering::Relaxed);
            if let Some(checkpoints) = &mut checkpoints {
                execution.checkpoint(checkpoints, &mut records(), || beside.save())?;
            }
            Ok(is_endless || (execution.is_due() && number < most && !wants_superstep(number)?))
        })
    } else {
        Ok(Reason::Converged)
    };
    let stopped = |error| by_external_id(with_vertex(error, &ids), graph);
    // The first error is the one to report; without the note the store counts as damaged.
    if done.is_err() && execution.sync().is_ok() {
        let _ = location.stopped();
    }
    let mut reason = done.map_err(stopped)?;
    if is_endless {
        reason = Reason::MaxSupersteps;
        resources.job.say(format!(
            "the program did not end when its vertices had collected {DEFAULT_MAX_SUPERSTEPS} \
             times on average; run it with supersteps, which max_supersteps= limits"
        ));
    } else if reason == Reason::MaxSupersteps && settings.max_supersteps.is_none() {
        resources.job.say(format!(
            "the program did not end within {DEFAULT_MAX_SUPERSTEPS} supersteps; \
             give max_supersteps= if it takes more"
        ));
    }
    // Requests of Pregel create vertices and remove them.
    let changes = settings.creates;
    let in_memory = match leaves {
        true => None,
        false => Some(InMemory::of(&mut execution, (graph, &ids), changes, memory)?),
    };
    let mut figures = execution.stats()?;
    figures.reason = Some(reason);
    let resumed_from = checkpoints.as_ref().and_then(RunCheckpoints::resumed_from);
    checkpoints.map(RunCheckpoints::finish).transpose()?;
    let is_complete = matches!(reason, Reason::NoChange | Reason::Converged);
    if let Some(chosen) = settings.checkpoints.as_ref().filter(|_| is_complete) {
        // The checkpoints are no longer needed.
        checkpoint::discard(&chosen.folder)?;
    }
    let source = match in_memory {
        Some(states) => Source::Memory(states),
        None => {
            if changes {
                remove_missing(&mut execution)?;
            }
            execution.sync()?;
            let partitions = execution.partition_edges().len();
            drop(execution);
            location.finished(&ids)?;
            let own = (Arc::clone(&ids), Arc::clone(&values));
            let shared = location.leave((graph, store, partitions), own, resources)?;
            let generation = locked(&shared).generation;
            Source::Disk { shared, generation }
        }
    };
    Ok((States { ids, values, source, stats: None }, figures, resumed_from))
}

/// Removes the vertices that a program of Pregel has removed.
fn remove_missing(execution: &mut OnStores<'_>) -> Result<(), Error> {
    let mut gone = Vec::new();
    execution.for_each(&mut |vertex| {
        if vertex.state == Value::None {
            gone.push(*vertex.id());
        }
        Ok(())
    })?;
    gone.iter().try_for_each(|rank| execution.remove(rank).map(drop))
}

/// The execution of a program on any store.
type OnStores<'r> = Execution<'r, Program, StoreOf<VertexOf<Program>>>;

/// The states at the end of a run.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct States {
    ids: Arc<Ids>,
    values: Arc<Values>,
    source: Source,
    stats: Option<Py<PyDict>>,
}

/// Where states are.
enum Source {
    Memory(InMemory),
    /// In the store of the run, until the store changes.
    Disk {
        shared: Shared,
        generation: u64,
    },
}

/// States in memory.
struct InMemory {
    /// Ranks of the vertices that exist, in the order of external ids.
    order: Vec<u64>,
    /// By rank; `None` for a vertex that does not exist.
    states: Vec<Option<Value>>,
}

impl InMemory {
    /// The states of all vertices of an execution. If vertices `change`, those without a state were
    /// removed, or never created.
    fn of(
        execution: &mut OnStores<'_>,
        (graph, ids): (&Inner, &Ids),
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
