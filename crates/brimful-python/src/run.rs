//! `run`, `algorithms` and `Result`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use brimful::algos::registry::{ALGORITHMS, Finished, Parameter, Request, run_request};
use brimful::engine::table::Value;
use brimful::engine::{Error as EngineError, Layout, ResultTable, Stats};
use brimful::graph::ids::ExternalId;
use brimful::store::memory::peak_resident_bytes;
use brimful::store::{Content, Moved};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::arrow_out::{ResultReader, capsule};
use crate::call::{Limits, with_job, with_resources};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::imports::phases;
use crate::vertex::{Shown, Vertex};

/// The algorithms, their parameters and value columns.
#[pyfunction]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for info in ALGORITHMS {
        let parameters = PyList::empty(py);
        for parameter in info.parameters {
            let one = PyDict::new(py);
            one.set_item("name", parameter.name)?;
            one.set_item("default", parameter.default)?;
            one.set_item("meaning", parameter.meaning)?;
            parameters.append(one)?;
        }
        let one = PyDict::new(py);
        one.set_item("name", info.name)?;
        one.set_item("computes", info.computes)?;
        one.set_item("column", info.column)?;
        let takes = [
            (info.takes.source, "source"),
            (info.takes.tolerance, "tolerance"),
            (info.takes.precision, "precision"),
            (info.takes.weights, "weighted"),
            (info.takes.asynchronous, "mode"),
            (info.takes.layouts, "layout"),
        ];
        let takes: Vec<&str> = takes.into_iter().filter(|(taken, _)| *taken).map(|(_, name)| name).collect();
        one.set_item("takes", takes)?;
        one.set_item("parameters", parameters)?;
        out.append(one)?;
    }
    Ok(out)
}

fn parameters(given: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, Parameter>> {
    given
        .iter()
        .map(|(key, value)| {
            let parameter = match value.extract::<f64>() {
                Ok(number) => Parameter::Number(number),
                Err(_) => Parameter::Word(value.str()?.to_string()),
            };
            Ok((key.extract()?, parameter))
        })
        .collect()
}

/// Runs an algorithm on a graph.
#[pyfunction]
#[pyo3(signature = (graph, algorithm, params, *, source, precision, mode, tolerance, max_supersteps, weighted, layout, threads, budget, process_budget, reserve_bytes, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    algorithm: String,
    params: &Bound<'py, PyDict>,
    source: Option<Vertex>,
    precision: &str,
    mode: &str,
    tolerance: Option<f64>,
    max_supersteps: Option<u64>,
    weighted: bool,
    layout: &str,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Result> {
    let narrow = match precision {
        "f64" => false,
        "f32" => true,
        _ => {
            let what = format!("there is no precision {precision:?}; choose f64 or f32");
            return Err(Failure::from(EngineError::Usage(what)).into());
        }
    };
    let asynchronous = match mode {
        "sync" => false,
        "async" => true,
        _ => {
            let what = format!("there is no mode {mode:?}; choose sync or async");
            return Err(Failure::from(EngineError::Usage(what)).into());
        }
    };
    let request = Request {
        algorithm,
        parameters: parameters(params)?,
        source: source.map(ExternalId::from),
        narrow,
        weighted,
        asynchronous,
        layout: Layout::from_name(layout).map_err(Failure::from)?,
        tolerance,
        max_supersteps,
    };
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    let inner = Arc::clone(&graph.get().inner);
    let finished =
        with_resources(py, progress, limits, |resources| Ok(run_request(&request, &inner, resources)?))?;
    let stats = stats(py, &request, &finished, precision, limits)?.unbind();
    Ok(Result { table: Arc::new(finished.table), stats })
}

fn stats<'py>(
    py: Python<'py>,
    request: &Request,
    finished: &Finished,
    precision: &str,
    limits: Limits,
) -> PyResult<Bound<'py, PyDict>> {
    let (stats, graph, out) = (&finished.stats, finished.table.graph().description(), PyDict::new(py));
    out.set_item("algorithm", &request.algorithm)?;
    out.set_item("variant", finished.variant)?;
    out.set_item("precision", precision)?;
    out.set_item("mode", if request.asynchronous { "async" } else { "sync" })?;
    out.set_item("layout", request.layout.name())?;
    out.set_item("store", py.None())?;
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
    out.set_item("resumed_from", py.None())?;
    Ok(out)
}

/// Bytes read, written and found in memory, in all and by what they are.
pub(crate) fn bytes_moved(out: &Bound<'_, PyDict>, moved: Moved) -> PyResult<()> {
    let by_content = |bytes: &dyn Fn(Content) -> u64| {
        let by = PyDict::new(out.py());
        Content::ALL.into_iter().try_for_each(|content| by.set_item(content.name(), bytes(content)))?;
        PyResult::Ok(by)
    };
    out.set_item("bytes_read", moved.bytes_read())?;
    out.set_item("bytes_read_by", by_content(&|content| moved.read(content))?)?;
    out.set_item("bytes_written", moved.bytes_written())?;
    out.set_item("bytes_written_by", by_content(&|content| moved.written(content))?)?;
    out.set_item("bytes_found", moved.bytes_found())?;
    out.set_item("bytes_found_by", by_content(&|content| moved.found(content))?)
}

fn superstep_figures(out: &Bound<'_, PyDict>, stats: &Stats) -> PyResult<()> {
    out.set_item("superstep_seconds", stats.durations.first())?;
    let spread = stats.durations.spread();
    for (at, name) in ["superstep_min", "superstep_median", "superstep_max"].into_iter().enumerate() {
        out.set_item(name, spread.map(|spread| spread[at]))?;
    }
    out.set_item("superstep_total", stats.durations.total())?;
    out.set_item("sparse_supersteps", stats.sparse_supersteps)
}

/// The result of a run: one value per vertex.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Result {
    table: Arc<ResultTable>,
    stats: Py<PyDict>,
}

fn to_python<'py>(py: Python<'py>, value: Value, shown: &mut Shown<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Float(number) => number.into_bound_py_any(py),
        Value::Integer(number) => number.into_bound_py_any(py),
        Value::Id(number) => shown.number(py, number),
        Value::Null => Ok(py.None().into_bound(py)),
    }
}

#[pymethods]
impl Result {
    #[getter]
    fn column(&self) -> &'static str {
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
        let graph = self.table.graph();
        let internal = vertex.find(graph).map_err(Failure::from)?;
        to_python(py, self.table.value_at(internal).map_err(Failure::from)?, &mut Shown::new(graph))
    }

    fn top<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyList>> {
        let rows = py.detach(|| self.table.top(n)).map_err(Failure::from)?;
        let (out, mut shown) = (PyList::empty(py), Shown::new(self.table.graph()));
        for (vertex, value) in rows {
            out.append((shown.number(py, vertex)?, to_python(py, value, &mut shown)?))?;
        }
        Ok(out)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to ignore the request: the consumer casts.
        let _ = requested_schema;
        capsule(py, ResultReader::new(Arc::clone(&self.table)))
    }

    #[pyo3(signature = (path, *, overwrite))]
    fn write_csv(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        with_job(py, None, |job| Ok(self.table.write_csv(&path, overwrite, job)?))
    }
}
