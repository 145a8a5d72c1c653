//! The compression and the format of files, and the choice of the columns with the edges.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful::graph::Error as GraphError;
use brimful::graph::input::columns::{ColumnChoice, Columns, Roles};
use brimful::graph::input::decompress::{self, first_bytes};
use brimful::graph::input::formats::foreign;
use brimful::store::Job;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;

/// `brimful.options.imports.EdgeColumns`.
#[derive(FromPyObject)]
pub(crate) struct EdgeColumns {
    source: Option<String>,
    target: Option<String>,
    weight: Option<String>,
    header: Option<bool>,
    delimiter: Option<char>,
    ignore_extra: bool,
}

impl TryFrom<EdgeColumns> for ColumnChoice {
    type Error = Failure;

    fn try_from(wanted: EdgeColumns) -> Result<Self, Failure> {
        let EdgeColumns { source, target, weight, header, delimiter, ignore_extra } = wanted;
        let byte = |c: char| {
            let byte = u8::try_from(c)
                .ok()
                .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n'));
            byte.ok_or_else(|| {
                let problem = format!(
                    "the delimiter must be an ASCII character other than a quote or line end, not \
                     {c:?}"
                );
                Failure::from(GraphError::Usage(problem))
            })
        };
        let delimiter = delimiter.map(byte).transpose()?;
        Ok(Self { source, target, weight, header, delimiter, ignore_extra })
    }
}

/// Positions, from 0, of source, target and weight among the columns of a table.
type Places = (usize, usize, Option<usize>);

/// The columns of the table `name` that contain the edges.
#[pyfunction]
pub(crate) fn pick_columns(
    name: PathBuf,
    names: Vec<String>,
    wanted: EdgeColumns,
) -> PyResult<Places> {
    let choice = ColumnChoice::try_from(wanted)?;
    let picked = choice.of_names(&names).map_err(|doubt| Failure::from(doubt.error(&name)));
    let Roles { source, target, weight, .. } = picked?;
    Ok((source, target, weight))
}

/// A sentence about a file that begins with `start`, if its format is not supported.
#[pyfunction]
pub(crate) fn foreign_format(path: PathBuf, start: &[u8]) -> Option<String> {
    foreign::sentence(Path::new(&path), start)
}

/// The compression of a regular file: `gz`, `xz`, `zst` or `bz2`, or None.
#[pyfunction]
pub(crate) fn compression(path: PathBuf) -> PyResult<Option<&'static str>> {
    let start = first_bytes(&path, &Arc::new(Job::new())).map_err(Failure::from)?;
    Ok(decompress::compression(&start))
}

/// The chosen columns as a dict; None if the format defines them.
pub(crate) fn described<'py>(
    py: Python<'py>,
    columns: Option<&Columns>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(columns) = columns else { return Ok(None) };
    let out = PyDict::new(py);
    out.set_item("source", &columns.source)?;
    out.set_item("target", &columns.target)?;
    out.set_item("weight", &columns.weight)?;
    out.set_item("ignored", &columns.ignored)?;
    out.set_item("header", columns.header)?;
    out.set_item("delimiter", &columns.delimiter)?;
    Ok(Some(out))
}
