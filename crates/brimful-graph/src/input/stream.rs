//! A stream of edges, and its statements about itself.
//!
//! Invariant: a stream is read once, in order; its statements about itself are final when it has
//! ended.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::ids::external::IdType;
use crate::ids::names::NameBatch;
use crate::input::columns::Columns;
use crate::input_position::InputPart;

/// Vertices, stored as the sources of edges.
pub type Listed = Box<dyn EdgeSource + Send>;

/// The entries that were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason.
    pub reason: &'static str,
    /// The number of entries.
    pub count: u64,
    /// The input of the first entry.
    pub path: PathBuf,
    /// The line of the first entry (or its row in a table), counted from 1.
    pub line: u64,
    /// The offending text of the first entry, shortened.
    pub found: String,
}

/// A stream of edges that is read once, batch by batch.
pub trait EdgeStream: Send {
    /// Replaces `batch` by the next edges (any number, even none); false at the end.
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool>;
    /// The name of the stream in messages.
    fn name(&self) -> &Path;
    /// True if edges have weights.
    fn weighted(&self) -> bool;
    /// The id type; it is final when the stream has ended.
    fn id_type(&self) -> Result<IdType>;
    /// The ids of vertices that exist even without edges.
    fn declared(&self) -> Range<u64> {
        0..0
    }
    /// True if edges are undirected, unless the user overrides it.
    fn undirected(&self) -> bool {
        false
    }
    /// Replaces `batch` by the isolated vertices that came with the last edges, as sources.
    fn next_vertices(&mut self, batch: &mut EdgeBatch) {
        batch.clear();
    }
    /// The same for string ids.
    fn next_vertex_names(&mut self, batch: &mut NameBatch) {
        batch.clear();
    }
    /// Compares the stream's contents with its own statements, when it has ended. Returns the
    /// number of vertices that it declares, if any.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) if they differ.
    fn check(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// True if ids are strings. Then edges are read with [`EdgeStream::next_names`].
    fn has_names(&self) -> bool {
        false
    }
    /// Replaces `batch` by the ends of the next edges; false at the end.
    fn next_names(&mut self, batch: &mut NameBatch) -> Result<bool> {
        batch.clear();
        Ok(false)
    }
    /// The string ids of isolated vertices, when the stream has ended.
    fn listed_names(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Further isolated vertices, when the stream has ended.
    fn listed(&mut self) -> Option<Listed> {
        None
    }
    /// The lines that were left out, by reason, when the stream has ended.
    fn rejections(&self) -> Vec<Rejection> {
        Vec::new()
    }
    /// The chosen columns, if the input is a table.
    fn columns(&self) -> Option<Columns> {
        None
    }
    /// Adds input positions to all following batches; does nothing in a stream without positions.
    fn note_positions(&mut self) {}
    /// The parts of the input that positions refer to, when the stream has ended.
    fn inputs(&self) -> Vec<InputPart> {
        vec![(self.name().into(), u64::MAX)]
    }
}
