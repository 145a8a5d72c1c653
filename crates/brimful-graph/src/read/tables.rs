//! The tables of a graph: files with further columns of its vertices or edges.
//!
//! Their format is Parquet, which other libraries write and read. Invariant: opening a graph checks
//! length and footer of each; `verify` checks every byte.

use std::sync::Arc;

use brimful_store::checksummed_file::ChecksummedFile;
use brimful_store::{Folder, Job, Traffic};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The content of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableName {
    /// A row for each vertex, by ascending external id, without the ids.
    Vertices,
    /// A row for each input edge, sorted by source and target.
    Edges,
}

impl TableName {
    /// The name in the manifest, and the beginning of the file's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vertices => "vertices",
            Self::Edges => "edges",
        }
    }

    /// The table called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "vertices" => Ok(Self::Vertices),
            "edges" => Ok(Self::Edges),
            _ => {
                let problem = format!("there is no table {name:?}; choose from: vertices, edges");
                Err(Error::Usage(problem))
            }
        }
    }
}

/// A table of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The name of its file, without the suffix.
    pub name: String,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// XXH3-64 of the file.
    pub checksum: u64,
    /// Length of its footer in bytes: the end of the file.
    pub footer_bytes: u64,
    /// XXH3-64 of its footer.
    pub footer_checksum: u64,
}

impl Table {
    /// The entry of the file that begins with `name`.
    pub(crate) fn new(name: String, whole: ChecksummedFile) -> Self {
        Self {
            name,
            bytes: whole.bytes,
            checksum: whole.checksum,
            footer_bytes: whole.tail_bytes,
            footer_checksum: whole.tail_checksum,
        }
    }

    fn whole(&self) -> ChecksummedFile {
        ChecksummedFile {
            bytes: self.bytes,
            checksum: self.checksum,
            tail_bytes: self.footer_bytes,
            tail_checksum: self.footer_checksum,
        }
    }

    /// The name of the file.
    pub fn file_name(&self) -> String {
        file_name(&self.name)
    }

    /// Checks length and footer.
    pub(crate) fn check(&self, folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<()> {
        Ok(self.whole().check(folder, &self.file_name(), traffic)?)
    }

    /// Checks every byte.
    pub(crate) fn verify(
        &self,
        folder: &dyn Folder,
        job: &Job,
        traffic: &Arc<Traffic>,
    ) -> Result<()> {
        Ok(self.whole().verify(folder, &self.file_name(), job, traffic)?)
    }
}

/// The name of the file of a table.
pub(crate) fn file_name(name: &str) -> String {
    format!("{name}.parquet")
}
