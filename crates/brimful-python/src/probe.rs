//! `probe`: the facts that an input states about its graph before its import.

use std::path::PathBuf;

use brimful::graph::build::import::ImportOptions;
use brimful::graph::build::probe::{InputEstimate, probe as probe_input};
use brimful::graph::input::columns::ColumnChoice;
use pyo3::prelude::*;

use crate::columns::EdgeColumns;
use crate::imports::input_of;
use crate::parsed::on_error_of;

/// Edges, largest id, whether edges have weights and whether they are undirected. None if the input
/// does not show this, for example with options that the import will refuse.
#[pyfunction]
#[pyo3(signature = (paths, *, format, columns, undirected, on_error))]
pub(crate) fn probe(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    format: &str,
    columns: EdgeColumns,
    undirected: Option<bool>,
    on_error: &str,
) -> Option<(u64, u64, bool, bool)> {
    let input = input_of(format, paths).ok()?;
    let (columns, on_error) = (ColumnChoice::try_from(columns).ok()?, on_error_of(on_error).ok()?);
    let (directed, is_undirected) = (undirected == Some(false), undirected == Some(true));
    let options = ImportOptions {
        columns,
        directed,
        undirected: is_undirected,
        on_error,
        ..ImportOptions::default()
    };
    let InputEstimate { edges, largest, weighted, undirected } =
        py.detach(move || probe_input(&input, &options))?;
    Some((edges, largest, weighted, undirected))
}
