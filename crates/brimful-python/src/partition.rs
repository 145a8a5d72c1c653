//! Measures of a partition, the result of a run.

use std::sync::Arc;

use brimful::algos::partition;
use pyo3::prelude::*;

use crate::call::{Limits, with_resources};
use crate::run::{Figures, Result};

/// The modularity of a partition.
#[pyfunction]
#[pyo3(signature = (
    partition, resolution, *, weighted, threads, budget, process_budget, reserve_bytes, progress
))]
pub(crate) fn modularity(
    py: Python<'_>,
    partition: &Bound<'_, Result>,
    resolution: f64,
    weighted: bool,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<f64> {
    let table = Arc::clone(&partition.get().table);
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    with_resources(py, progress, limits, |resources| {
        Ok(partition::modularity(&table, (resolution, weighted), resources)?)
    })
}

/// For each vertex the conductance of its community.
#[pyfunction]
#[pyo3(signature = (
    partition, *, weighted, threads, budget, process_budget, reserve_bytes, progress
))]
pub(crate) fn conductance(
    py: Python<'_>,
    partition: &Bound<'_, Result>,
    weighted: bool,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Result> {
    let table = Arc::clone(&partition.get().table);
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    let (finished, request) = with_resources(py, progress, limits, |resources| {
        Ok(partition::conductance(&table, weighted, resources)?)
    })?;
    let figures = Figures { request: &request, precision: "f64", limits, scratch: 0 };
    Result::new(py, finished, &figures, None)
}
