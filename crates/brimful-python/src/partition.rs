//! Measures of a partition, the result of a run.

use std::sync::Arc;

use brimful::algos::partition;
use pyo3::prelude::*;

use crate::call::{GivenResources, with_resources};
use crate::run::{Figures, Result};

/// The modularity of a partition.
#[pyfunction]
#[pyo3(signature = (partition, resolution, *, weighted, resources))]
pub(crate) fn modularity(
    py: Python<'_>,
    partition: &Bound<'_, Result>,
    resolution: f64,
    weighted: bool,
    resources: GivenResources<'_>,
) -> PyResult<f64> {
    let table = Arc::clone(&partition.get().table);
    let GivenResources { limits, progress } = resources;
    with_resources(py, progress.as_ref(), limits, |resources| {
        Ok(partition::modularity(&table, (resolution, weighted), resources)?)
    })
}

/// For each vertex the conductance of its community.
#[pyfunction]
#[pyo3(signature = (partition, *, weighted, resources))]
pub(crate) fn conductance(
    py: Python<'_>,
    partition: &Bound<'_, Result>,
    weighted: bool,
    resources: GivenResources<'_>,
) -> PyResult<Result> {
    let table = Arc::clone(&partition.get().table);
    let GivenResources { limits, progress } = resources;
    let (finished, request) = with_resources(py, progress.as_ref(), limits, |resources| {
        Ok(partition::conductance(&table, weighted, resources)?)
    })?;
    let figures = Figures { request: &request, precision: "f64", limits, scratch: 0 };
    Result::new(py, finished, &figures, None)
}
