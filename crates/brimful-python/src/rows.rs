//! `run_rows` and `Rows`: algorithms whose result is a table of rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful::algos::planning::Subject;
use brimful::algos::registry::{Pairs, run_rows_request};
use brimful::engine::RowTable;
use brimful::engine::result::row_table::TopOfRows;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrow_in::ArrowEdges;
use crate::arrow_names::ColumnIds;
use crate::arrow_out::{RowReader, capsule};
use crate::call::{GivenResources, with_job, with_resources, with_stream};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::plan::Prediction;
use crate::request::{Asked, request};
use crate::run::{Figures, TopRows, stats, store_figures};

/// A table of pairs, as given from Python: the stream, its name, its columns, and its kind of ids.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PairTable<'py> {
    stream: Bound<'py, PyAny>,
    name: String,
    source: String,
    target: String,
    ids: String,
}

impl PairTable<'_> {
    fn open(&self) -> PyResult<Pairs> {
        let ids = ColumnIds::from_name(&self.ids).map_err(Failure::from)?;
        let (origin, ends) = (Path::new(&self.name), (&self.source, &self.target));
        let edges = ArrowEdges::open(&self.stream, origin, ends.0, ends.1, None, ids, None)?;
        Ok(Pairs::new(edges))
    }
}

/// Runs an algorithm whose result is a table of rows.
#[pyfunction]
#[pyo3(signature = (graph, asked, *, pairs, resources))]
pub(crate) fn run_rows<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    asked: Asked<'py>,
    pairs: Option<PairTable<'py>>,
    resources: GivenResources<'py>,
) -> PyResult<Rows> {
    let inner = Arc::clone(&graph.get().inner);
    let mut request = request(&asked)?;
    let GivenResources { limits, progress } = resources;
    // A run without a forecast is still valid.
    let forecast = Prediction::new(&request, Subject::Graph(&inner), limits, 0).ok();
    request.pairs = pairs.as_ref().map(PairTable::open).transpose()?;
    let run = |resources: &brimful::store::Resources| {
        let finished = run_rows_request(&request, &inner, resources)?;
        Ok((finished, resources.job.traffic().max_scratch()))
    };
    let (finished, scratch) = match &pairs {
        Some(pairs) => with_stream(py, progress.as_ref(), limits, &pairs.stream, run)?,
        None => with_resources(py, progress.as_ref(), limits, run)?,
    };
    let figures = Figures { request: &request, precision: &asked.precision, limits, scratch };
    let stats = stats(py, &figures, &finished, finished.table.graph())?;
    stats.set_item("rows", finished.table.len())?;
    store_figures(&stats, &asked.store, None)?;
    stats.set_item("forecast", forecast.map(|forecast| forecast.figures(py)).transpose()?)?;
    Ok(Rows { table: Arc::new(finished.table), stats: stats.unbind() })
}

/// The result of a run: a table of rows.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Rows {
    table: Arc<RowTable>,
    stats: Py<PyDict>,
}

#[pymethods]
impl Rows {
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.table.names()
    }

    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stats.bind(py).copy()
    }

    fn __len__(&self) -> usize {
        self.table.len() as usize
    }

    /// The `n` rows with the largest values in the last column, in lists.
    fn top(&self, n: u64) -> PyResult<TopRows> {
        let mut top = TopOfRows::new(Arc::clone(&self.table), n).map_err(Failure::from)?;
        let next = move |most| Ok(top.next_batch(most)?);
        Ok(TopRows::new(Arc::clone(self.table.graph()), Box::new(next)))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows us to ignore the request: the consumer casts.
        let _ = requested_schema;
        capsule(py, RowReader::new(Arc::clone(&self.table)))
    }

    #[pyo3(signature = (path, *, overwrite))]
    fn write_csv(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        with_job(py, None, |job| Ok(self.table.write_csv(&path, overwrite, job)?))
    }
}
