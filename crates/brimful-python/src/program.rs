//! `run_program`: programs written in Python, on vertices in a store.
//!
//! States and signals are any objects; between two calls they are bytes from a serializer. Workers
//! take turns at the interpreter. A program sees external ids of vertices; inside they are ranks.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use brimful::algos::registry::StoreChoice;
use brimful::engine::Reason;
use brimful::engine::checkpoint::{self, CheckpointOptions, Every};
use brimful::execution::checkpoint::RunCheckpoints;
use brimful::execution::from_graph::{StoreOptions, by_external_id, of_one_run, start};
use brimful::execution::{
    Delivery, Error, ExecutionOptions, ExecutionStats, RunLimits, RunMode, VertexOf, VertexProgram,
};
use brimful::graph::Graph as Inner;
use brimful::graph::lookup::Lookup;
use brimful::graph::names::NameCursor;
use brimful::store::{Reservation, Resources};
use brimful::vertices::serializer::Compact;
use brimful::vertices::{Edge, Edges, Growth, Loan, Schemes};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::call::{self, with_resources};
use crate::errors::Failure;
use crate::graph::{Graph, Stream};
use crate::run::{Store, checkpoint_options, store_figures, where_to_go_on};
use crate::vertex::{Vertex, integer};

/// A vertex, as a program sees it.
#[pyclass(frozen, module = "brimful._native", name = "ProgramVertex")]
pub(crate) struct Seen {
    #[pyo3(get)]
    id: Py<PyAny>,
    #[pyo3(get)]
    state: Py<PyAny>,
    #[pyo3(get)]
    degree: usize,
}

/// An exception of a program, and its vertex.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) vertex: Py<PyAny>,
    pub(crate) error: PyErr,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Raised {}

/// The external ids of a graph's vertices, by rank.
struct Ids {
    graph: Arc<Inner>,
    lookup: Lookup,
    bits: Vec<u64>,
    names: Mutex<NameCursor>,
    _memory: Reservation,
}

impl Ids {
    fn new(graph: &Arc<Inner>, resources: &Resources) -> Result<Self, Error> {
        let memory = resources.budget.reserve(8 * graph.vertices(), "for the ids of vertices")?;
        let mut bits = vec![0; graph.vertices() as usize];
        graph.external_ids(0, &mut bits)?;
        let lookup = Lookup::new(Arc::clone(graph));
        Ok(Self {
            graph: Arc::clone(graph),
            lookup,
            bits,
            names: Mutex::default(),
            _memory: memory,
        })
    }

    fn get<'py>(&self, py: Python<'py>, rank: u64) -> PyResult<Bound<'py, PyAny>> {
        let bits = self.bits.get(rank as usize).copied().unwrap_or_default();
        match self.graph.longest_name() {
            None => integer(py, self.graph.id_type().number(bits)),
            Some(_) => {
                let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                names.label(&self.graph, bits).map_err(Failure::from)?.into_bound_py_any(py)
            }
        }
    }
}

/// The methods of a program in Python, and its serializer.
struct Program {
    ids: Arc<Ids>,
    program: Py<PyAny>,
    delivery: Delivery,
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
}

type Outcome<T> = Result<T, brimful::execution::Failure>;

impl Program {
    /// Calls `work` with the interpreter; exceptions are attributed to the vertex of this rank.
    fn at<T>(&self, rank: u64, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Outcome<T> {
        Python::attach(|py| {
            work(py).map_err(|error| match self.ids.get(py, rank) {
                Ok(vertex) => Raised { vertex: vertex.unbind(), error }.into(),
                Err(_) => error.into(),
            })
        })
    }

    fn load<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.loads.bind(py).call1((PyBytes::new(py, bytes),))
    }

    fn dump(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.dumps.bind(py).call1((value,))?.extract()
    }

    fn seen(
        &self,
        py: Python<'_>,
        rank: u64,
        state: Option<&[u8]>,
        degree: usize,
    ) -> PyResult<Seen> {
        let state = match state {
            Some(bytes) => self.load(py, bytes)?.unbind(),
            None => py.None(),
        };
        Ok(Seen { id: self.ids.get(py, rank)?.unbind(), state, degree })
    }
}

impl VertexProgram for Program {
    type Id = u64;
    type State = Vec<u8>;
    type Edge = f64;
    type Signal = Vec<u8>;

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn combine(&self, held: &mut Vec<u8>, signal: Vec<u8>) -> Outcome<()> {
        *held = Python::attach(|py| {
            let both = (self.load(py, held)?, self.load(py, &signal)?);
            self.dump(py, &self.program.bind(py).call_method1("combine", both)?)
        })?;
        Ok(())
    }

    fn initial(&self, id: &u64, edges: &Edges<u64, f64>) -> Outcome<Vec<u8>> {
        self.at(*id, |py| {
            let vertex = self.seen(py, *id, None, edges.len())?;
            self.dump(py, &self.program.bind(py).call_method1("initial_state", (vertex,))?)
        })
    }

    fn signal(
        &self,
        source: &VertexOf<Self>,
        edge: Edge<'_, u64, f64>,
    ) -> Outcome<Option<Vec<u8>>> {
        self.at(*source.id(), |py| {
            let vertex = self.seen(py, *source.id(), Some(&source.state), source.edges().len())?;
            let target = self.ids.get(py, *edge.target)?;
            let signal =
                self.program.bind(py).call_method1("signal", (vertex, target, *edge.data))?;
            if signal.is_none() { Ok(None) } else { self.dump(py, &signal).map(Some) }
        })
    }

    fn collect(&self, vertex: &mut Loan<'_, VertexOf<Self>>, signals: &[Vec<u8>]) -> Outcome<()> {
        let state = self.at(*vertex.id(), |py| {
            let seen = self.seen(py, *vertex.id(), Some(&vertex.state), vertex.edges().len())?;
            let heard = PyList::empty(py);
            signals.iter().try_for_each(|signal| heard.append(self.load(py, signal)?))?;
            self.dump(py, &self.program.bind(py).call_method1("collect", (seen, heard))?)
        })?;
        if state != vertex.state {
            vertex.state = state;
        }
        Ok(())
    }
}

/// The options of a run.
struct Settings {
    delivery: Delivery,
    mode: RunMode,
    max_supersteps: Option<u64>,
    weighted: bool,
    checkpoints: Option<CheckpointOptions>,
}

/// Runs a program of Python methods on a graph.
#[pyfunction]
#[pyo3(signature = (graph, program, *, delivery, dumps, loads, mode, max_supersteps, weighted, store, checkpoint_every, checkpoint_dir, resume, identity, threads, budget, process_budget, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run_program(
    py: Python<'_>,
    graph: &Bound<'_, Graph>,
    program: Py<PyAny>,
    delivery: &str,
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    mode: &str,
    max_supersteps: Option<u64>,
    weighted: bool,
    store: Store,
    checkpoint_every: Option<&str>,
    checkpoint_dir: Option<PathBuf>,
    resume: bool,
    identity: Vec<(String, String)>,
    threads: Option<usize>,
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
        weighted,
        checkpoints,
    };
    if max_supersteps.is_some() && mode == "async" {
        let what = "the asynchronous mode has no supersteps to limit; leave max_supersteps= out";
        return Err(Failure::from(Error::Usage(what.into())).into());
    }
    let limits = call::Limits { threads, budget, process_budget, reserve_bytes: 0 };
    let run = |resources: &Resources| {
        let ids = Arc::new(Ids::new(&inner, resources)?);
        let program = Program { ids, program, delivery: settings.delivery, dumps, loads };
        Ok(run(program, &inner, &settings, &choice, resources)?)
    };
    let (mut states, done, resumed_from) = with_resources(py, progress, limits, run)
        .map_err(|error| where_to_go_on(py, error, folder.as_deref()))?;
    let out = PyDict::new(py);
    out.set_item("mode", mode)?;
    out.set_item("supersteps", done.supersteps)?;
    out.set_item("reason", done.reason.map(Reason::phrase))?;
    out.set_item("seconds", done.seconds)?;
    out.set_item("signals", done.signals_sent)?;
    out.set_item("resumed_from", resumed_from)?;
    store_figures(&out, &store, Some(&done))?;
    states.stats = Some(out.unbind());
    Ok(states)
}

/// Bytes of each state in the result that are reserved before the run.
const SMALL_STATE: u64 = 32;

/// Adds the vertex to an error of `combine`, which does not know the target of its signals.
fn with_vertex(mut error: Error, ids: &Ids) -> Error {
    if let Error::Program { vertex, source, .. } = &mut error
        && let (Some(raised), Ok(rank)) = (source.downcast_ref::<PyErr>(), vertex.parse())
    {
        let raised = Python::attach(|py| {
            let vertex = ids.get(py, rank).ok()?.unbind();
            Some(Raised { vertex, error: raised.clone_ref(py) })
        });
        if let Some(raised) = raised {
            *source = Box::new(raised);
        }
    }
    error
}

fn run(
    program: Program,
    graph: &Arc<Inner>,
    settings: &Settings,
    store: &StoreChoice,
    resources: &Resources,
) -> Result<(States, ExecutionStats, Option<u64>), Error> {
    let ids = Arc::clone(&program.ids);
    let schemes = Schemes::default();
    let (url, _folder) = of_one_run(&store.url, &schemes)?;
    let stores = StoreOptions { store: &url, schemes: &schemes, cache: store.cache };
    let lists = ExecutionOptions { lists: store.lists, ..ExecutionOptions::default() };
    // Reserved before the work; the size of larger states is not known yet.
    let mut memory = Growth::new(&resources.budget, "for the result")?;
    memory.take(
        graph.vertices() * (size_of::<Vec<u8>>() + size_of::<u64>()) as u64
            + graph.vertices() * SMALL_STATE,
    )?;
    let most = settings.max_supersteps.unwrap_or(u64::MAX);
    let open = |chosen| RunCheckpoints::open(chosen, (settings.mode, most), graph, &[], resources);
    let mut checkpoints = settings.checkpoints.as_ref().map(open).transpose()?;
    let (part, stores) = ((&**graph, settings.weighted), (&stores, &lists));
    let mut execution =
        start(program, part, stores, &|| Ok(Box::new(Compact)), checkpoints.as_mut(), resources)?;
    let mut limits = RunLimits {
        max_supersteps: most - most.min(execution.stats()?.supersteps),
        ..RunLimits::default()
    };
    if let Some(Every::Time(time)) = settings.checkpoints.as_ref().and_then(|chosen| chosen.every) {
        limits.check_every = time;
    }
    let done = execution.run(settings.mode, &limits, |execution| {
        if let Some(checkpoints) = &mut checkpoints {
            execution.checkpoint(checkpoints, &mut Compact)?;
        }
        Ok(false)
    });
    let reason = done.map_err(|error| by_external_id(with_vertex(error, &ids), graph))?;
    let mut states = vec![Vec::new(); graph.vertices() as usize];
    execution.for_each(&mut |vertex| {
        memory.take((vertex.state.len() as u64).saturating_sub(SMALL_STATE))?;
        if let Some(state) = states.get_mut(*vertex.id() as usize) {
            state.clone_from(&vertex.state);
        }
        Ok(())
    })?;
    let figures = execution.stats()?;
    let mut order: Vec<u64> = (0..graph.vertices()).collect();
    order.sort_unstable_by_key(|rank| {
        graph.id_type().order_key(ids.bits.get(*rank as usize).copied().unwrap_or_default())
    });
    let resumed_from = checkpoints.as_ref().and_then(RunCheckpoints::resumed_from);
    checkpoints.map(RunCheckpoints::finish).transpose()?;
    if let Some(chosen) = settings.checkpoints.as_ref().filter(|_| reason == Reason::NoChange) {
        // The checkpoints are no longer needed.
        checkpoint::discard(&chosen.folder)?;
    }
    Ok((States { ids, order, states, stats: None }, figures, resumed_from))
}

/// The states at the end of a run, as bytes from the serializer.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct States {
    ids: Arc<Ids>,
    /// Ranks in the order of external ids.
    order: Vec<u64>,
    /// By rank.
    states: Vec<Vec<u8>>,
    stats: Option<Py<PyDict>>,
}

#[pymethods]
impl States {
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stats.as_ref().map_or_else(|| Ok(PyDict::new(py)), |stats| stats.bind(py).copy())
    }

    fn __len__(&self) -> usize {
        self.order.len()
    }

    fn state<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyBytes>> {
        let rank = py.detach(|| self.ids.lookup.find(&vertex.into())).map_err(Failure::from)?;
        Ok(PyBytes::new(py, self.states.get(rank as usize).map_or(&[], Vec::as_slice)))
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
        let out = PyList::empty(py);
        for rank in self.order.iter().skip(start).take(count) {
            let state = self.states.get(*rank as usize).map_or(&[][..], Vec::as_slice);
            out.append((self.ids.get(py, *rank)?, PyBytes::new(py, state)))?;
        }
        Ok(out)
    }
}
