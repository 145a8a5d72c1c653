//! `run_program`: programs written in Python, on vertices in a store.
//!
//! - `value`: states and signals, alive or as bytes; `record`: the records of vertices with them.
//! - `calls`: the calls of the program's methods; `purity`: checks that they change no object.
//! - `states`: the result; `extra_state`: the data of a checkpoint in addition to the vertices.
//! - `distribution`: the part of this process, if several make the run.
//! - `ids`: external ids of vertices, also of those that the program creates; `kept`: vertices
//!   between runs.

mod calls;
mod distribution;
mod extra_state;
mod graph_ids;
mod ids;
pub(crate) mod kept;
mod packed;
mod purity;
mod record;
mod states;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful::algos::registry::StoreChoice;
use brimful::engine::Reason;
use brimful::engine::checkpoint::{self, CheckpointOptions, Every};
use brimful::execution::checkpoint::RunCheckpoints;
use brimful::execution::from_graph::{StoreOf, StoreOptions, require_minimum, start};
use brimful::execution::{
    Delivery, Error, Execution, ExecutionOptions, ExecutionStats, RunLimits, RunMode, Start,
    VertexOf,
};
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use brimful::vertices::{Growth, StoreKind, in_steps};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{GivenResources, Limits};
use crate::cluster::GivenCommunicator;
use crate::errors::{Failure, raised};
use crate::graph::Graph;
use crate::plugin::{library_bytes, with_store};
use crate::request::{
    DEFAULT_MAX_SUPERSTEPS, GivenCheckpoints, GivenSteps, Store, say_default_limit,
    with_resume_advice,
};
use crate::run::{store_figures, work_figures};
pub(crate) use calls::Seen;
use calls::{Program, in_own_words};
use distribution::Distribution;
use extra_state::ExtraState;
use graph_ids::GraphIds;
use ids::Ids;
use kept::{Copied, Keeping, Location};
use record::Records;
pub(crate) use states::States;
use states::{InMemory, Source};
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
    /// Called after the last superstep, before checkpoints are removed.
    end: Option<Py<PyAny>>,
    /// The Python callables that save and restore the string that checkpoints hold in addition to
    /// the vertices.
    extra_state: Option<(Py<PyAny>, Py<PyAny>)>,
    /// True for Pregel, whose vertices choose the targets of their messages.
    addresses: bool,
    /// True if messages create the vertices that they do not find.
    creates: bool,
    weighted: bool,
    checkpoints: Option<CheckpointOptions>,
    /// How the vertices stay in the store; `None`: they are removed after the run.
    keeping: Option<Keeping>,
    /// The part of this process, if several make the run.
    distribution: Option<Distribution>,
}

/// A program, as given from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenProgram {
    /// The object whose methods the run calls.
    methods: Py<PyAny>,
    delivery: String,
    /// The thresholds of signals and of collects.
    thresholds: (f64, f64),
    /// The functions and the name of the serializer.
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    serializer: String,
    /// As in [`Settings`].
    next_superstep: Option<Py<PyAny>>,
    end: Option<Py<PyAny>>,
    extra_state: Option<(Py<PyAny>, Py<PyAny>)>,
    addresses: bool,
    creates: bool,
}

/// Runs a program of Python methods on a graph.
#[pyfunction]
#[pyo3(signature = (
    graph, program, *, steps, store, keeping, checkpoints, identity, communicator, resources
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run_program(
    py: Python<'_>,
    graph: &Bound<'_, Graph>,
    program: GivenProgram,
    steps: GivenSteps,
    store: Store,
    keeping: Option<(String, bool)>,
    checkpoints: GivenCheckpoints<'_>,
    identity: Vec<(String, String)>,
    communicator: Option<(GivenCommunicator, Py<PyAny>)>,
    resources: GivenResources<'_>,
) -> PyResult<States> {
    let inner = Arc::clone(&graph.get().inner);
    let usual_folder = || {
        let program = identity.first().map_or("program", |(_, program)| program.as_str());
        checkpoint::default_folder(&inner, program)
    };
    let mut checkpoints = checkpoints.options(usual_folder)?;
    if let Some(chosen) = &mut checkpoints {
        chosen.identity = identity;
        chosen.identity.push(("weighted".to_owned(), steps.weighted.to_string()));
    }
    let folder = checkpoints.as_ref().map(|chosen| chosen.folder.clone());
    let choice = store.choice()?.ok_or_else(|| {
        Failure::from(Error::Usage("an interpreted program needs a store; pass store=".into()))
    })?;
    let settings = Settings {
        delivery: delivery_of(&program.delivery).map_err(Failure::from)?,
        mode: mode_of(&steps.mode, &choice)?,
        max_supersteps: steps.max_supersteps,
        signal_threshold: program.thresholds.0,
        collect_threshold: program.thresholds.1,
        next_superstep: program.next_superstep,
        end: program.end,
        extra_state: program.extra_state,
        addresses: program.addresses,
        creates: program.creates,
        weighted: steps.weighted,
        checkpoints,
        keeping: keeping.map(|(serializer, continues)| Keeping {
            serializer,
            start: if continues { Start::Continue } else { Start::Fresh },
            is_pregel: program.addresses,
        }),
        distribution: communicator
            .map(|(communicator, steps)| Distribution::new(py, &communicator, steps)),
    };
    if steps.max_supersteps.is_some() && steps.mode == "async" {
        let problem = "the asynchronous mode has no supersteps to limit; leave max_supersteps= out";
        return Err(Failure::from(Error::Usage(problem.into())).into());
    }
    let GivenResources { limits, progress } = resources;
    // One thread makes all calls: only one at a time can have the interpreter.
    let limits = Limits { threads: Some(1), ..limits };
    let limits = limits.beside(library_bytes(store.opener.as_ref())?);
    let (methods, serializing) = (program.methods, (program.dumps, program.loads));
    let run = |resources: &Resources| {
        let kind = choice.schemes.kind(&choice.url).map_err(Error::from)?;
        let is_live = kind == StoreKind::Live;
        let memory = MemoryWatch::new(&resources.budget, limits.process_budget);
        let values = Values::new(serializing, (is_live, &program.serializer), memory);
        let mut location =
            Location::new(&choice, &inner, (settings.keeping.as_ref(), steps.weighted))?;
        let on_disk = kind.has_share();
        if settings.distribution.is_none() {
            let result = if on_disk { 0 } else { in_steps(result_bytes(&inner)) };
            let others = |shared| result + GraphIds::bytes_beside(&inner, on_disk, shared + result);
            let kept = location.vertices();
            let stores = StoreOptions { store: &location.url, kept, ..choice.options() };
            require_minimum((&inner, steps.weighted), &stores, others, resources)?;
        }
        let ids = Arc::new(Ids::new(&inner, location.created(), on_disk, resources)?);
        let values = Arc::new(values);
        let own = (Arc::clone(&ids), Arc::clone(&values));
        location.settle((&inner, &choice), own, resources)?;
        let program = Python::attach(|py| Program::new(methods.bind(py), &settings, ids, values));
        let program = program.map_err(|error| Error::Usage(error.to_string()))?;
        let result = match kind {
            // Several processes have several stores.
            _ if settings.distribution.is_some() => ResultPlace::Memory,
            StoreKind::Live | StoreKind::Memory => ResultPlace::Memory,
            StoreKind::Folder if store.opener.is_none() => ResultPlace::Store,
            StoreKind::Folder | StoreKind::Database if settings.keeping.is_some() => {
                ResultPlace::Store
            }
            // A plug-in removes its records at the end of the run.
            StoreKind::Folder | StoreKind::Database => ResultPlace::Copy,
        };
        Ok(run(program, &inner, &settings, (&choice, location, result), resources)?)
    };
    let (mut states, done, resumed_from) =
        with_store(py, progress.as_ref(), limits, store.opener.as_ref(), run)
            .map_err(|error| with_resume_advice(py, error, folder.as_deref()))?;
    states.stats = Some(figures(py, (&steps.mode, &store), &done, resumed_from)?);
    Ok(states)
}

fn delivery_of(name: &str) -> Result<Delivery, Error> {
    match name {
        "each" => Ok(Delivery::Each),
        "combined" => Ok(Delivery::Combined),
        "latest" => Ok(Delivery::LatestPerEdge),
        other => Err(Error::Usage(format!(
            "there is no delivery {other:?}; choose each, combined or latest"
        ))),
    }
}

fn mode_of(name: &str, store: &StoreChoice) -> Result<RunMode, Failure> {
    match name {
        "sync" | "async" => Ok(store.mode(name == "async")?),
        other => {
            Err(Error::Usage(format!("there is no mode {other:?}; choose sync or async")).into())
        }
    }
}

/// The figures of a run.
fn figures(
    py: Python<'_>,
    (mode, store): (&str, &Store),
    done: &ExecutionStats,
    resumed_from: Option<u64>,
) -> PyResult<Py<PyDict>> {
    let out = PyDict::new(py);
    out.set_item("mode", mode)?;
    out.set_item("supersteps", done.supersteps)?;
    out.set_item("reason", done.reason.map(Reason::phrase))?;
    out.set_item("seconds", done.seconds)?;
    out.set_item("signals", done.signals_sent)?;
    out.set_item("resumed_from", resumed_from)?;
    work_figures(&out, &done.by_superstep.iter().map(|one| one.work()).collect::<Vec<_>>())?;
    store_figures(&out, store, Some(done))?;
    Ok(out.unbind())
}

/// The place of the states after a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultPlace {
    Memory,
    /// The store of the run.
    Store,
    /// A store of their own.
    Copy,
}

/// The states of a run that still has its vertices.
enum Left {
    InMemory(InMemory),
    InStore,
    Copied(Copied),
}

/// Bytes of each state in the result that are reserved before the run.
const SMALL_STATE: u64 = 32;

fn run(
    program: Program,
    graph: &Arc<Inner>,
    settings: &Settings,
    (store, mut location, result): (&StoreChoice, Location, ResultPlace),
    resources: &Resources,
) -> Result<(States, ExecutionStats, Option<u64>), Error> {
    let (ids, values) = (Arc::clone(&program.ids), Arc::clone(&program.values));
    let superstep = Arc::clone(&program.superstep);
    let is_here = result == ResultPlace::Memory
        && settings.distribution.as_ref().is_none_or(|one| one.communicator.is_driver());
    let memory = result_memory(graph, is_here, resources)?;
    let most = settings.max_supersteps.unwrap_or(DEFAULT_MAX_SUPERSTEPS);
    let open = |chosen| RunCheckpoints::open(chosen, (settings.mode, most), graph, &[], resources);
    let mut checkpoints = settings.checkpoints.as_ref().map(open).transpose()?;
    let part = (graph, settings);
    let mut execution =
        started(program, part, (store, &mut location), checkpoints.as_mut(), resources)?;
    superstep.store(execution.stats()?.supersteps, Ordering::Relaxed);
    let extra_state = ExtraState { calls: settings.extra_state.as_ref(), ids: Arc::clone(&ids) };
    if let Some(checkpoints) = &checkpoints {
        extra_state.restore(checkpoints.extra_state())?;
    }
    let number = execution.stats()?.supersteps;
    let done = if number > 0 && number >= most {
        // The checkpoint is that of the last superstep, which is still to be ended.
        Ok(Reason::MaxSupersteps)
    } else if wants_superstep(settings, number, resources)? {
        let notes = (&*superstep, &extra_state, &values);
        supersteps(&mut execution, part, most, notes, checkpoints.as_mut(), resources)
    } else {
        Ok(Reason::Converged)
    };
    // The first error is the one to report. Without the record that `stopped` writes, the store
    // counts as damaged.
    if done.is_err() && location.name(&ids).is_ok() && execution.sync().is_ok() {
        let _ = location.stopped();
    }
    let by_author = |error| {
        in_own_words(error, &ids, settings.addresses)
            .of_vertex(|rank| ids.shown(rank.parse().ok()?))
    };
    let reason = match done.map_err(by_author)? {
        // A program of Pregel has a master, and no tolerance.
        Reason::Converged if settings.addresses => Reason::Halted,
        reason => reason,
    };
    // Requests of Pregel create vertices and remove them.
    let changes = settings.creates;
    if let Some(distribution) = &settings.distribution {
        let own = (Arc::clone(&ids), Arc::clone(&values));
        return distribution
            .finish(&mut execution, own, (changes, memory), reason, resources)
            .map_err(by_author);
    }
    let left = match result {
        ResultPlace::Memory => Left::InMemory(InMemory::of(&mut execution, &ids, changes, memory)?),
        ResultPlace::Store => Left::InStore,
        ResultPlace::Copy => {
            Left::Copied(Copied::of(&mut execution, &values, changes, graph, resources)?)
        }
    };
    let mut figures = execution.stats()?;
    figures.reason = Some(reason);
    if let Some(end) = &settings.end {
        Python::attach(|py| end.call0(py)).map_err(raised)?;
    }
    let resumed_from = checkpoints.as_ref().and_then(RunCheckpoints::resumed_from);
    checkpoints.map(RunCheckpoints::finish).transpose()?;
    let is_complete = matches!(reason, Reason::NoChange | Reason::Converged | Reason::Halted);
    if let Some(chosen) = settings.checkpoints.as_ref().filter(|_| is_complete) {
        // The checkpoints are no longer needed.
        checkpoint::discard(&chosen.folder)?;
    }
    let own = (Arc::clone(&ids), Arc::clone(&values));
    let source = match left {
        Left::InMemory(states) => Source::Memory(states),
        Left::Copied(copied) => {
            drop((execution, location));
            Source::of_run(copied.leave(graph, own, resources)?)
        }
        Left::InStore => {
            if changes && settings.keeping.is_none() {
                remove_missing(&mut execution)?;
            }
            location.name(&ids)?;
            execution.sync()?;
            let partitions = execution.partition_edges().len();
            let partitioner = execution.partitioner().clone();
            drop(execution);
            location.settle((graph, store), own.clone(), resources)?;
            location.finished(&ids)?;
            let shared =
                location.leave((graph, store, partitions), Some(partitioner), own, resources)?;
            Source::of_run(shared)
        }
    };
    Ok((States { ids, values, source, stats: None }, figures, resumed_from))
}

/// The memory of the result, if it `is_here`, reserved before the work; the size of larger states
/// is not known yet.
fn result_memory(graph: &Inner, is_here: bool, resources: &Resources) -> Result<Growth, Error> {
    let mut memory = Growth::new(&resources.budget, "for the result")?;
    if is_here {
        memory.take(result_bytes(graph))?;
    }
    Ok(memory)
}

/// Bytes of a result in memory with small states.
fn result_bytes(graph: &Inner) -> u64 {
    graph.vertices() * ((size_of::<Value>() + size_of::<u64>()) as u64 + SMALL_STATE)
}

/// Loads the vertices, or opens the store that holds them.
fn started<'r>(
    program: Program,
    (graph, settings): (&Arc<Inner>, &Settings),
    (store, location): (&StoreChoice, &mut Location),
    checkpoints: Option<&mut RunCheckpoints<'_>>,
    resources: &'r Resources,
) -> Result<OnStores<'r>, Error> {
    let (ids, values) = (Arc::clone(&program.ids), Arc::clone(&program.values));
    let lists = ExecutionOptions {
        signal_threshold: Some(settings.signal_threshold),
        collect_threshold: Some(settings.collect_threshold),
        lists: store.lists,
        communicator: settings
            .distribution
            .as_ref()
            .map(|distribution| distribution.communicator.clone()),
        ..ExecutionOptions::default()
    };
    location.begin()?;
    let url = location.url.clone();
    let stores = StoreOptions { store: &url, kept: location.vertices(), ..store.options() };
    let (part, stores) = ((&**graph, settings.weighted), (&stores, &lists));
    let serializer = || Ok(Box::new(Records(Arc::clone(&values))) as _);
    let started = start(program, part, stores, &serializer, checkpoints, resources);
    if matches!(started, Err(Error::Program { .. })) {
        // The first error is the one to report.
        let _ = location.stopped();
    }
    let mut execution = started.map_err(|error| in_own_words(error, &ids, settings.addresses))?;
    if location.is_loading() {
        // If its process is killed during the run, a file store has the state of the last sync.
        execution.sync()?;
        location.loaded(execution.partition_edges())?;
    }
    location.touched().try_for_each(|rank| execution.request_collect(&rank))?;
    Ok(execution)
}

/// Aggregates and Pregel's master act before superstep `number`; false if the master ends the run.
fn wants_superstep(settings: &Settings, number: u64, resources: &Resources) -> Result<bool, Error> {
    if let Some(distribution) = &settings.distribution {
        return distribution.wants_superstep(number, &resources.job);
    }
    match &settings.next_superstep {
        None => Ok(true),
        Some(next) => {
            Python::attach(|py| next.bind(py).call1((number,))?.is_truthy()).map_err(raised)
        }
    }
}

/// Runs at most `most` supersteps, with checkpoints, and says why a run without a limit ended.
fn supersteps(
    execution: &mut OnStores<'_>,
    (graph, settings): (&Arc<Inner>, &Settings),
    most: u64,
    (superstep, extra_state, values): (&AtomicU64, &ExtraState<'_>, &Arc<Values>),
    mut checkpoints: Option<&mut RunCheckpoints<'_>>,
    resources: &Resources,
) -> Result<Reason, Error> {
    let mut limits = RunLimits {
        max_supersteps: most - most.min(execution.stats()?.supersteps),
        ..RunLimits::default()
    };
    if let Some(Every::Time(time)) = settings.checkpoints.as_ref().and_then(|chosen| chosen.every) {
        limits.check_every = time;
    }
    // Without supersteps, a vertex counts one each time it collects.
    let max_collects = DEFAULT_MAX_SUPERSTEPS * graph.vertices().max(1);
    let is_limited = settings.mode != RunMode::Synchronous && settings.max_supersteps.is_none();
    let mut is_endless = false;
    if settings.addresses
        && settings.mode != RunMode::Synchronous
        && execution.stats()?.supersteps == 0
    {
        // All vertices of Pregel compute once before the first message.
        let first = RunLimits { max_supersteps: 1, ..RunLimits::default() };
        execution.run(RunMode::Synchronous, &first, |_| Ok(false))?;
    }
    let reason = execution.run(settings.mode, &limits, |execution| {
        let figures = execution.stats()?;
        let number = figures.supersteps;
        is_endless = is_limited && figures.vertices_collected > max_collects;
        superstep.store(number, Ordering::Relaxed);
        if let Some(checkpoints) = &mut checkpoints {
            execution
                .checkpoint(checkpoints, &mut Records(Arc::clone(values)), || extra_state.save())?;
        }
        Ok(is_endless
            || (execution.is_due()
                && number < most
                && !wants_superstep(settings, number, resources)?))
    })?;
    if is_endless {
        resources.job.say(
            "the program was stopped after its vertices had collected 10,000 times on average; run \
             it with mode=\"sync\", and limit the supersteps with max_supersteps=",
        );
        return Ok(Reason::MaxSupersteps);
    }
    if reason == Reason::MaxSupersteps && settings.max_supersteps.is_none() {
        say_default_limit(&resources.job);
    }
    Ok(reason)
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
