//! `NewTable`: a table of a graph while pyarrow writes it.

use brimful::graph::Error as GraphError;
use brimful::graph::build::tables;
use brimful::graph::read::tables::TableName;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

use crate::call::with_job;
use crate::errors::Failure;
use crate::fs_path::FsPath;
use crate::graph::Graph;

/// A table of a graph under construction; removed unless it is published.
#[pyclass(module = "brimful._native")]
pub(crate) struct NewTable {
    #[pyo3(get)]
    path: FsPath,
    graph: std::path::PathBuf,
    table: Option<tables::NewTable>,
}

#[pymethods]
impl NewTable {
    /// Waits until no other process changes the graph.
    #[new]
    fn new(py: Python<'_>, graph: &Graph, name: &str) -> PyResult<Self> {
        let name = TableName::from_name(name).map_err(Failure::from)?;
        let inner = Arc::clone(&graph.inner);
        let table = with_job(py, None, |job| Ok(tables::NewTable::begin(&inner, name, job)?))?;
        let graph = table.graph().path().to_path_buf();
        Ok(Self { path: FsPath::new(table.path()), graph, table: Some(table) })
    }

    /// The graph as it is on disk now.
    fn graph(&self, py: Python<'_>) -> PyResult<Graph> {
        crate::graph::Graph::open_path(py, self.graph.clone())
    }

    /// Publishes the file as the table of the graph. `footer_bytes` is the size of the footer at
    /// its end.
    fn publish(&mut self, py: Python<'_>, footer_bytes: u64) -> PyResult<()> {
        let Some(table) = self.table.take() else {
            let problem = "the table is closed; start a new one".to_owned();
            return Err(Failure::from(GraphError::Usage(problem)).into());
        };
        with_job(py, None, |job| Ok(table.publish(footer_bytes, job)?))
    }

    /// Removes the file unless it was published; a second call does nothing.
    fn close(&mut self, py: Python<'_>) {
        let table = self.table.take();
        py.detach(|| drop(table));
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&mut self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
