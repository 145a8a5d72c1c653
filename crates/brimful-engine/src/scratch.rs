//! The folder for scratch files of runs: next to the graph if that is writable, else the system's
//! folder for temporary files.

use std::path::PathBuf;

use brimful_graph::Graph;
use brimful_store::scratch::ScratchArray;
use brimful_store::{DiskFolder, Error as StoreError, Folder, Resources};
use bytemuck::Pod;

use crate::error::Result;

/// Calls `make` with the folder for scratch files.
///
/// # Errors
/// Errors of `make`.
pub fn in_scratch<T>(
    graph: &Graph,
    make: &dyn Fn(&dyn Folder) -> brimful_store::Result<T>,
) -> Result<T> {
    // A graph may be read-only, or removed while it is open.
    match make(graph.folder()) {
        Err(error) if error.is_unwritable() || error.is_missing() => {
            Ok(make(&DiskFolder::new(std::env::temp_dir()))?)
        }
        made => Ok(made?),
    }
}

/// The path of the folder for scratch files.
///
/// # Errors
/// I/O: no folder is writable.
pub fn scratch_folder(graph: &Graph) -> Result<PathBuf> {
    in_scratch(graph, &|folder| match folder.scratch() {
        Ok(_) => Ok(folder.path().into()),
        Err(error) => Err(StoreError::io(folder.path(), "create a scratch file in", error)),
    })
}

/// An array of `len` records in windows of `window`, in memory if it is `resident`, else in
/// scratch.
///
/// # Errors
/// I/O.
pub fn scratch_array<T: Pod + Send>(
    resident: bool,
    (len, window): (usize, usize),
    graph: &Graph,
    resources: &Resources,
) -> Result<ScratchArray<T>> {
    if resident {
        return Ok(ScratchArray::resident(len, window));
    }
    in_scratch(graph, &|folder| ScratchArray::paged(len, window, folder, &resources.job))
}

/// An array of `len` records per vertex with edges, in memory or in scratch; its windows are the
/// intervals.
pub(crate) fn vertex_array<T: Pod + Send>(
    len: usize,
    resident: bool,
    graph: &Graph,
    resources: &Resources,
) -> Result<ScratchArray<T>> {
    let (vertices, window) = (graph.connected() as usize, 1 << graph.description().interval_bits);
    scratch_array(resident, (vertices * len, window * len), graph, resources)
}
