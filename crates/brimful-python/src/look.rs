//! `look`: the facts that an input states about its graph before its import.

use std::path::PathBuf;

use brimful::graph::build::import::ImportOptions;
use brimful::graph::build::look::{Seen, look as look_at};
use brimful::graph::input::columns::ColumnChoice;
use pyo3::prelude::*;

use crate::columns::Wanted;
use crate::imports::{input_of, on_error_of};

/// Edges, largest id, whether edges have weights and whether they are undirected. None if the input
/// does not tell; options that the import will refuse are one such case.
#[pyfunction]
#[pyo3(signature = (paths, *, format, columns, directed, on_error))]
pub(crate) fn look(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    format: &str,
    columns: Wanted,
    directed: bool,
    on_error: &str,
) -> Option<(u64, u64, bool, bool)> {
    let input = input_of(format, paths).ok()?;
    let (columns, on_error) = (ColumnChoice::try_from(columns).ok()?, on_error_of(on_error).ok()?);
    let options = ImportOptions { columns, directed, on_error, ..ImportOptions::default() };
    let Seen { edges, largest, weighted, undirected } =
        py.detach(move || look_at(&input, &options))?;
    Some((edges, largest, weighted, undirected))
}
