//! `run`, `algorithms` and `Result`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use brimful::algos::planning::Subject;
use brimful::algos::registry::{self, Accepts, FAMILIES, Finished, Request, run_request};
use brimful::engine::checkpoint::{self};
use brimful::engine::result::stats::{Traversal, Work};
use brimful::engine::result::table::{Top, Value, write_csv};
use brimful::engine::{ResultTable, Stats};
use brimful::execution::{self, ListLocation, SuperstepFigures};
use brimful::graph::Graph as Inner;
use brimful::graph::read::lookup::Lookup;
use brimful::store::memory::peak_resident_bytes;
use brimful::vertices::Schemes;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::arrow_out::{ResultReader, capsule};
use crate::call::{GivenResources, Limits, with_job};
use crate::errors::{Failure, internal};
use crate::figures::{bytes_moved, phases};
use crate::graph::Graph;
use crate::plan::Prediction;
use crate::plugin::{library_bytes, with_store};
use crate::request::{Asked, GivenCheckpoints, Store, request, with_resume_advice};
use crate::vertex::{Shown, Vertex};

/// The algorithms, their parameters and value columns.
#[pyfunction]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    let families = FAMILIES.iter();
    for (family, info) in
        families.flat_map(|own| own.algorithms.iter().map(|info| (own.name, info)))
    {
        let parameters = PyList::empty(py);
        for parameter in info.parameters {
            let one = PyDict::new(py);
            one.set_item("name", parameter.name)?;
            one.set_item("default", parameter.default_text())?;
            one.set_item("meaning", parameter.meaning)?;
            let (kind, words) = match parameter.values {
                Accepts::Number(_) => ("number", None),
                Accepts::Count(_) | Accepts::CountOrNone(_) => ("count", None),
                Accepts::Numbers(_) => ("numbers", None),
                Accepts::Words(words) => ("word", Some(words)),
            };
            one.set_item("type", kind)?;
            one.set_item("choices", words)?;
            parameters.append(one)?;
        }
        let one = PyDict::new(py);
        one.set_item("name", info.name)?;
        one.set_item("family", family)?;
        one.set_item("computes", info.computes)?;
        one.set_item("column", info.column)?;
        one.set_item("columns", info.columns())?;
        one.set_item("rows", info.has_rows())?;
        let options = info.takes.options().into_iter();
        let takes: Vec<&str> = options.filter(|(_, taken)| *taken).map(|(name, _)| name).collect();
        one.set_item("takes", takes)?;
        one.set_item("parameters", parameters)?;
        out.append(one)?;
    }
    Ok(out)
}

/// The forms of store URLs; PATH stands for the folder of a store on disk.
#[pyfunction]
pub(crate) fn stores() -> Vec<String> {
    Schemes::default().forms().map(str::to_owned).collect()
}

/// Refuses a request whose options make no sense, before workers of a cluster are started for it.
#[pyfunction]
#[pyo3(signature = (asked, *, checkpoints))]
pub(crate) fn check_request(asked: Asked<'_>, checkpoints: GivenCheckpoints<'_>) -> PyResult<()> {
    let mut request = request(&asked)?;
    request.checkpoints = checkpoints.options(PathBuf::new)?;
    Ok(registry::check_request(&request).map_err(Failure::from)?)
}

/// Runs an algorithm on a graph.
#[pyfunction]
#[pyo3(signature = (graph, asked, *, checkpoints, resources))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    asked: Asked<'py>,
    checkpoints: GivenCheckpoints<'py>,
    resources: GivenResources<'py>,
) -> PyResult<Result> {
    let inner = Arc::clone(&graph.get().inner);
    let mut request = request(&asked)?;
    let usual_folder = || checkpoint::default_folder(&inner, &request.algorithm);
    request.checkpoints = checkpoints.options(usual_folder)?;
    let GivenResources { limits, progress } = resources;
    let opener = asked.store.opener.as_ref();
    let library = library_bytes(opener)?;
    // A run without a forecast is still valid. There is none for several processes.
    let alone = request.communicator.is_none();
    let predict = || Prediction::new(&request, Subject::Graph(&inner), limits, library).ok();
    let forecast = alone.then(predict).flatten();
    let limits = forecast.as_ref().map_or(limits.beside(library), Prediction::limits);
    let folder = request.checkpoints.as_ref().map(|chosen| chosen.folder.clone());
    let (finished, scratch) = with_store(py, progress.as_ref(), limits, opener, |resources| {
        let finished = run_request(&request, &inner, resources)?;
        Ok((finished, resources.job.traffic().max_scratch()))
    })
    .map_err(|error| with_resume_advice(py, error, folder.as_deref()))?;
    let store = finished.stats.store.clone();
    let figures = Figures { request: &request, precision: &asked.precision, limits, scratch };
    let result = Result::new(py, finished, &figures, folder)?;
    let stats = result.stats.bind(py);
    store_figures(stats, &asked.store, store.as_ref())?;
    let forecast = forecast.map(|forecast| forecast.figures(py)).transpose()?;
    stats.set_item("forecast", forecast)?;
    Ok(result)
}

/// The facts of a run that its figures mention.
pub(crate) struct Figures<'r> {
    pub(crate) request: &'r Request,
    pub(crate) precision: &'r str,
    pub(crate) limits: Limits,
    /// The most bytes of scratch files.
    pub(crate) scratch: u64,
}

impl Result {
    /// The result of a finished run, whose checkpoints are in `folder`.
    pub(crate) fn new(
        py: Python<'_>,
        finished: Finished,
        figures: &Figures<'_>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        Self::with_fields(py, finished, Vec::new(), figures, folder)
    }

    /// The same, with more columns besides the first.
    pub(crate) fn with_fields(
        py: Python<'_>,
        finished: Finished,
        more: Vec<ResultTable>,
        figures: &Figures<'_>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let stats = stats(py, figures, &finished, finished.table.graph())?;
        let checkpoints = folder.filter(|_| finished.stats.converged());
        let lookup = Lookup::new(Arc::clone(finished.table.graph()));
        let table = Arc::new(finished.table);
        let more = more.into_iter().map(Arc::new).collect();
        Ok(Self { table, more, lookup, stats: stats.unbind(), checkpoints })
    }

    /// All columns, the first one first.
    fn tables(&self) -> impl Iterator<Item = &Arc<ResultTable>> {
        std::iter::once(&self.table).chain(&self.more)
    }
}

/// The figures of a finished run.
pub(crate) fn stats<'py, T>(
    py: Python<'py>,
    figures: &Figures<'_>,
    finished: &Finished<T>,
    graph: &Inner,
) -> PyResult<Bound<'py, PyDict>> {
    let Figures { request, precision, limits, scratch } = *figures;
    let (stats, graph, out) = (&finished.stats, graph.description(), PyDict::new(py));
    out.set_item("algorithm", &request.algorithm)?;
    out.set_item("variant", finished.variant)?;
    out.set_item("precision", precision)?;
    out.set_item("mode", if request.asynchronous { "async" } else { "sync" })?;
    out.set_item("threads", stats.threads)?;
    out.set_item("vertices", graph.vertices)?;
    out.set_item("edges", graph.edges)?;
    out.set_item("arcs", graph.arcs)?;
    out.set_item("directed", graph.directed)?;
    out.set_item("supersteps", stats.supersteps)?;
    out.set_item("converged", stats.converged())?;
    out.set_item("reason", stats.reason.phrase())?;
    out.set_item("seconds", stats.seconds)?;
    out.set_item("index_seconds", stats.index_seconds)?;
    out.set_item("phases", phases(py, &stats.phases)?)?;
    superstep_figures(&out, stats)?;
    bytes_moved(&out, stats.moved)?;
    out.set_item("peak_rss_bytes", peak_resident_bytes())?;
    out.set_item("budget_bytes", limits.budget_bytes())?;
    out.set_item("signals", stats.signals)?;
    out.set_item("edge_visits", stats.edges_visited)?;
    out.set_item("resumed_from", stats.resumed_from)?;
    out.set_item("scratch_bytes", scratch)?;
    out.set_item("cluster", py.None())?;
    Ok(out)
}

/// The options and figures of the store; None if there was none.
pub(crate) fn store_figures(
    out: &Bound<'_, PyDict>,
    store: &Store,
    figures: Option<&execution::ExecutionStats>,
) -> PyResult<()> {
    let (cache, done) = (PyDict::new(out.py()), PyDict::new(out.py()));
    if let Some((name, used)) =
        store.cache.as_ref().zip(figures.and_then(|figures| figures.caches.first()))
    {
        cache.set_item("name", name)?;
        cache.set_item("hits", used.hits)?;
        cache.set_item("misses", used.misses)?;
        cache.set_item("hit_ratio", used.hit_ratio())?;
        cache.set_item("evicted", used.evicted)?;
        cache.set_item("written", used.written)?;
    }
    if let Some(figures) = figures {
        let by_superstep = PyList::empty(out.py());
        for one in &figures.by_superstep {
            by_superstep.append(superstep_of_store(out.py(), one)?)?;
        }
        let counts = [
            ("memory_bytes", figures.store_memory_bytes),
            ("disk_bytes", figures.store_disk_bytes),
            ("vertices_signalled", figures.vertices_signalled),
            ("vertices_collected", figures.vertices_collected),
            ("signals_combined", figures.signals_combined),
            ("signals_undelivered", figures.signals_undelivered),
            ("spills", figures.spills),
            ("spilled_bytes", figures.spilled_bytes),
            ("vertices_read", figures.vertices_read),
            ("vertices_written", figures.vertices_written),
        ];
        counts.into_iter().try_for_each(|(name, count)| done.set_item(name, count))?;
        done.set_item("supersteps", by_superstep)?;
    }
    let lists = figures.map(|_| store.lists.as_deref().unwrap_or(ListLocation::default().name()));
    out.set_item("store", &store.url)?;
    out.set_item("serializer", &store.serializer)?;
    out.set_item("cache", (!cache.is_empty()).then_some(cache))?;
    out.set_item("lists", lists)?;
    out.set_item("scheduler", &store.scheduler)?;
    out.set_item("partitioner", &store.partitioner)?;
    out.set_item("store_figures", (!done.is_empty()).then_some(done))
}

fn superstep_of_store<'py>(
    py: Python<'py>,
    figures: &SuperstepFigures,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("superstep", figures.superstep)?;
    out.set_item("signal_seconds", figures.signal_seconds)?;
    out.set_item("collect_seconds", figures.collect_seconds)?;
    out.set_item("memory_bytes", figures.memory_bytes)?;
    out.set_item("frontier", figures.frontier)?;
    out.set_item("edges", figures.edges)?;
    out.set_item("bytes_read", figures.bytes_read)?;
    out.set_item("bytes_written", figures.bytes_written)?;
    out.set_item("vertex_reads", figures.vertex_reads)?;
    out.set_item("vertex_writes", figures.vertex_writes)?;
    out.set_item("cache_hits", figures.cache_hits)?;
    out.set_item("cache_misses", figures.cache_misses)?;
    out.set_item("signals", figures.signals)?;
    out.set_item("spills", figures.spills)?;
    Ok(out)
}

/// Durations and work of supersteps, a list each.
pub(crate) fn work_figures(out: &Bound<'_, PyDict>, listed: &[Work]) -> PyResult<()> {
    let list = |name: &str, count: &dyn Fn(&Work) -> Option<u64>| {
        let each: Vec<_> = listed.iter().map(count).collect();
        out.set_item(format!("superstep_{name}"), each)
    };
    let seconds: Vec<f64> = listed.iter().map(|work| work.seconds).collect();
    out.set_item("superstep_seconds", seconds)?;
    list("frontier", &|work| work.frontier)?;
    list("signals", &|work| Some(work.swept.signals))?;
    list("edges", &|work| Some(work.swept.edges))?;
    list("bytes_read", &|work| work.bytes_read)?;
    list("bytes_written", &|work| work.bytes_written)
}

fn superstep_figures(out: &Bound<'_, PyDict>, stats: &Stats) -> PyResult<()> {
    work_figures(out, stats.durations.listed())?;
    out.set_item("largest_frontier", stats.durations.largest_frontier())?;
    let spread = stats.durations.spread();
    for (at, name) in ["superstep_min", "superstep_median", "superstep_max"].into_iter().enumerate()
    {
        out.set_item(name, spread.map(|spread| spread[at]))?;
    }
    out.set_item("superstep_total", stats.durations.total())?;
    let traversals = PyDict::new(out.py());
    for traversal in Traversal::ALL {
        let count = stats.durations.count(traversal);
        if count > 0 {
            traversals.set_item(traversal.name(), count)?;
        }
    }
    out.set_item("traversals", traversals)?;
    out.set_item("last_traversal", stats.durations.last_traversal().map(Traversal::name))?;
    out.set_item("sparse_supersteps", stats.durations.count(Traversal::Sparse))
}

/// The result of a run: one value per vertex, or several.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Result {
    pub(crate) table: Arc<ResultTable>,
    /// Further columns, of a program whose states have several fields.
    more: Vec<Arc<ResultTable>>,
    lookup: Lookup,
    pub(crate) stats: Py<PyDict>,
    /// The folder of checkpoints that can be deleted once the result is safe.
    checkpoints: Option<PathBuf>,
}

pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: Value,
    shown: &mut Shown<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Float(number) => number.into_bound_py_any(py),
        Value::Integer(number) => number.into_bound_py_any(py),
        Value::Id(number) => shown.number(py, number),
        Value::Null => Ok(py.None().into_bound(py)),
    }
}

/// Takes a count, and finds at most this many of the next rows; `None` at the end.
type NextRows = dyn FnMut(usize) -> std::result::Result<Option<Vec<Vec<Value>>>, Failure> + Send;

/// Rows with the largest values, found on demand: an iterator of lists of tuples.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct TopRows {
    graph: Arc<Inner>,
    next: Mutex<Box<NextRows>>,
}

/// Rows of one list; their names may be long.
const TOP_BATCH_ROWS: usize = 64;

impl TopRows {
    pub(crate) fn new(graph: Arc<Inner>, next: Box<NextRows>) -> Self {
        Self { graph, next: Mutex::new(next) }
    }
}

#[pymethods]
impl TopRows {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let next = || self.next.lock().unwrap_or_else(PoisonError::into_inner)(TOP_BATCH_ROWS);
        let Some(rows) = py.detach(next)? else {
            return Ok(None);
        };
        let (out, mut shown) = (PyList::empty(py), Shown::new(&self.graph));
        for row in rows {
            let values = row.into_iter().map(|value| to_python(py, value, &mut shown));
            out.append(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?)?;
        }
        Ok(Some(out))
    }
}

#[pymethods]
impl Result {
    #[getter]
    fn column(&self) -> &str {
        self.table.name()
    }

    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stats.bind(py).copy()
    }

    fn __len__(&self) -> usize {
        self.table.len() as usize
    }

    fn value<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyAny>> {
        let value = || self.table.value_at(self.lookup.find(&vertex.into())?);
        let value = py.detach(value).map_err(Failure::from)?;
        to_python(py, value, &mut Shown::new(self.table.graph()))
    }

    /// The values of a vertex in all columns.
    fn values<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyList>> {
        let values = || -> std::result::Result<Vec<Value>, Failure> {
            let internal = self.lookup.find(&vertex.into())?;
            self.tables().map(|table| Ok(table.value_at(internal)?)).collect()
        };
        let (out, mut shown) = (PyList::empty(py), Shown::new(self.table.graph()));
        for value in py.detach(values)? {
            out.append(to_python(py, value, &mut shown)?)?;
        }
        Ok(out)
    }

    /// Adds to the figures of the run.
    pub(crate) fn add_stats(&self, py: Python<'_>, more: &Bound<'_, PyDict>) -> PyResult<()> {
        self.stats.bind(py).update(more.as_mapping())
    }

    /// The `n` largest values of a column, in lists.
    #[pyo3(signature = (n, column = 0))]
    fn top(&self, n: u64, column: usize) -> PyResult<TopRows> {
        let table = self
            .tables()
            .nth(column)
            .ok_or_else(|| internal(format!("the result has no column {column}")))?;
        let mut top = Top::new(Arc::clone(table), n);
        let row = |(vertex, value)| vec![Value::Id(vertex), value];
        let next = move |most| {
            let rows = top.next_batch(most)?;
            Ok(rows.map(|rows| rows.into_iter().map(row).collect()))
        };
        Ok(TopRows::new(Arc::clone(table.graph()), Box::new(next)))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows us to ignore the request: the consumer casts.
        let _ = requested_schema;
        capsule(py, ResultReader::new(self.table.graph(), self.tables().cloned().collect()))
    }

    /// Removes the checkpoints of the run, if it converged.
    fn discard_checkpoints(&self, py: Python<'_>) -> PyResult<()> {
        let discard = || self.checkpoints.as_deref().map_or(Ok(()), checkpoint::discard);
        Ok(py.detach(discard).map_err(Failure::from)?)
    }

    #[pyo3(signature = (path, *, overwrite))]
    fn write_csv(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        let tables: Vec<&ResultTable> = self.tables().map(Arc::as_ref).collect();
        with_job(py, None, |job| Ok(write_csv(self.table.graph(), &tables, &path, overwrite, job)?))
    }
}
