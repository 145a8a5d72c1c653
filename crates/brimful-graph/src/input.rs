//! What an import reads: files, streams and generators.
//!
//! Invariant: a stream is pulled once, in order, and what it says of itself holds when it has
//! ended.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::columns::Columns;
use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::formats::TextFormat;
use crate::formats::parser::Rejection;
use crate::ids::IdType;
use crate::input_position::InputPart;
use crate::names::NameBatch;

/// Vertices given as the sources of edges that are none.
pub type Listed = Box<dyn EdgeSource + Send>;

/// A stream of edges that is pulled batch by batch, once.
pub trait EdgeStream: Send {
    /// Replaces `batch` by the next edges (any number, also none); false at the end.
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool>;
    /// What messages call the stream.
    fn name(&self) -> &Path;
    /// True if edges have weights.
    fn weighted(&self) -> bool;
    /// How ids are read, known at the latest when the stream has ended.
    fn id_type(&self) -> Result<IdType>;
    /// The vertices with these ids exist, whatever the edges are.
    fn declared(&self) -> Range<u64> {
        0..0
    }
    /// True if edges have no direction, unless the user says otherwise.
    fn undirected(&self) -> bool {
        false
    }
    /// Replaces `batch` by the vertices without an edge that came with the last edges, as their
    /// sources.
    fn next_vertices(&mut self, batch: &mut EdgeBatch) {
        batch.clear();
    }
    /// The same for strings.
    fn next_vertex_names(&mut self, batch: &mut NameBatch) {
        batch.clear();
    }
    /// Compares what was read with what the stream says of itself, when it has ended: the number of
    /// its vertices, if it says that.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) if they differ.
    fn check(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// True if ids are strings: then [`EdgeStream::next_names`] is asked for edges.
    fn has_names(&self) -> bool {
        false
    }
    /// Replaces `batch` by the ends of the next edges; false at the end.
    fn next_names(&mut self, batch: &mut NameBatch) -> Result<bool> {
        batch.clear();
        Ok(false)
    }
    /// Strings that are vertices without an edge, when the stream has ended.
    fn listed_names(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Vertices that exist beside them without an edge, when the stream has ended.
    fn listed(&mut self) -> Option<Listed> {
        None
    }
    /// What was left out, by reason, when the stream has ended.
    fn rejections(&self) -> Vec<Rejection> {
        Vec::new()
    }
    /// The columns that were taken, if it is a table.
    fn columns(&self) -> Option<Columns> {
        None
    }
    /// Adds positions to all following batches; a stream without positions does nothing.
    fn note_places(&mut self) {}
    /// The parts of the input that positions refer to, when the stream has ended.
    fn inputs(&self) -> Vec<InputPart> {
        vec![(self.name().into(), u64::MAX)]
    }
}

/// Where edges come from.
pub enum Input<'a> {
    /// Text edge lists, perhaps compressed; `-` is standard input.
    EdgeList(Vec<PathBuf>),
    /// Text of any format whose files stand alone.
    Text(TextFormat, Vec<PathBuf>),
    /// Graphs of a vertex and an edge file each, named by any of their files.
    Graphalytics(Vec<PathBuf>),
    /// A graph in the BV format, named by any of its files.
    WebGraph(PathBuf),
    /// Little-endian pairs of 32-bit ids.
    Pairs(Vec<PathBuf>),
    /// Anything else that yields batches.
    Stream(&'a mut dyn EdgeStream),
    /// Edges among the vertices 0 to n - 1, all of them declared.
    Numbered(&'a dyn EdgeSource, u64),
}

impl Input<'_> {
    /// The name of a binary format, whose ids are integers.
    pub(crate) fn numbered(&self) -> Option<&'static str> {
        match self {
            Self::WebGraph(_) => Some("webgraph"),
            Self::Pairs(_) => Some("u32pairs"),
            Self::Numbered(..) => Some("generated graphs"),
            _ => None,
        }
    }

    /// What messages call it: its first file.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::EdgeList(files)
            | Self::Pairs(files)
            | Self::Text(_, files)
            | Self::Graphalytics(files) => files.first().cloned().unwrap_or_default(),
            Self::WebGraph(path) => path.clone(),
            Self::Stream(stream) => stream.name().into(),
            Self::Numbered(..) => "(generator)".into(),
        }
    }
}
