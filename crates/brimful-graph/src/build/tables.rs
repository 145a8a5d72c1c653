//! Adds a table to a graph, or replaces the present one.
//!
//! Another library writes the file. Invariant: a new manifest publishes the table when it is
//! complete and durable; until then, and after a crash before, the graph is unchanged.

use std::path::PathBuf;

use brimful_store::checksummed_file::ChecksummedFile;
use brimful_store::external::FolderLock;
use brimful_store::file::{list_names, remove_if_present};
use brimful_store::{Error as StoreError, Job, manifest};

use crate::error::{Error, Result};
use crate::read::graph::Graph;
use crate::read::tables::{Table, TableName, file_name};

/// A table that is being written, under the lock of the graph.
#[derive(Debug)]
pub struct NewTable {
    /// The graph as it was when the lock was taken.
    graph: Graph,
    table: TableName,
    number: u64,
    published: bool,
    /// Dropped last.
    _lock: FolderLock,
}

impl NewTable {
    /// Waits until no other process changes `graph`, and removes the files that a killed process
    /// left.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the graph was removed or replaced; a store error if it is not
    /// writable.
    pub fn begin(graph: &Graph, table: TableName, job: &Job) -> Result<Self> {
        let lock = FolderLock::wait(graph.path(), job).map_err(|error| match error {
            error if error.is_missing() => Error::Replaced { path: graph.path().into() },
            error => error.into(),
        })?;
        let graph = graph.reopened()?;
        sweep(&graph, table)?;
        let number = graph.manifest_number() + 1;
        Ok(Self { graph, table, number, published: false, _lock: lock })
    }

    /// The graph, with the tables that it has on disk.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The path of the file to write.
    pub fn path(&self) -> PathBuf {
        self.graph.path().join(file_name(&self.name()))
    }

    fn name(&self) -> String {
        format!("{}-{}", self.table.name(), self.number)
    }

    /// Publishes the file, whose last `footer_bytes` bytes are its footer.
    ///
    /// # Errors
    /// Errors of reading and writing files. The graph is then unchanged, unless the manifest was
    /// already published.
    pub fn publish(mut self, footer_bytes: u64, job: &Job) -> Result<()> {
        let (folder, traffic) = (self.graph.folder(), self.graph.traffic());
        let whole =
            ChecksummedFile::seal(folder, &file_name(&self.name()), footer_bytes, job, traffic)?;
        folder.sync().map_err(|e| StoreError::io(folder.path(), "sync", e))?;
        let mut description = self.graph.description().clone();
        description.tables.insert(self.table, Table::new(self.name(), whole));
        Graph::publish(folder, self.number, &mut description, traffic)?;
        self.published = true;
        manifest::sweep(folder, self.number)?;
        sweep(&self.graph.reopened()?, self.table)
    }
}

impl Drop for NewTable {
    fn drop(&mut self) {
        if !self.published {
            // A manifest may name the file even if its publication failed, so the manifest is read
            // again. Files that cannot be removed now are swept before the next table is written.
            let _ = self.graph.reopened().and_then(|latest| sweep(&latest, self.table));
        }
    }
}

/// Removes the files of `table` that the manifest of `graph` does not name.
fn sweep(graph: &Graph, table: TableName) -> Result<()> {
    let (folder, prefix) = (graph.folder(), format!("{}-", table.name()));
    let kept = graph.description().tables.get(&table).map(Table::file_name);
    let names = list_names(folder)?;
    let left = |name: &&String| {
        name.starts_with(&prefix) && name.ends_with(".parquet") && Some(*name) != kept.as_ref()
    };
    Ok(names.iter().filter(left).try_for_each(|name| remove_if_present(folder, name))?)
}
