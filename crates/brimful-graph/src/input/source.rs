//! The inputs of an import: files, streams and generators.

use std::path::PathBuf;

use crate::edges::EdgeSource;
use crate::input::distributed::{DistributedFiles, DistributedKind};
use crate::input::formats::TextFormat;
use crate::input::stream::EdgeStream;

/// An input of an import.
pub enum Input<'a> {
    /// Text edge lists, optionally compressed; `-` is standard input.
    EdgeList(Vec<PathBuf>),
    /// Text of any format whose files stand alone.
    Text(TextFormat, Vec<PathBuf>),
    /// Graphs of a vertex and an edge file each, named by any of their files.
    Graphalytics(Vec<PathBuf>),
    /// Files that other processes read, and whose edges they keep.
    Distributed(DistributedFiles<'a>),
    /// A graph in the BV format, named by any of its files.
    WebGraph(PathBuf),
    /// Little-endian pairs of 32-bit ids.
    Pairs(Vec<PathBuf>),
    /// Any other stream of batches.
    Stream(&'a mut dyn EdgeStream),
    /// Edges among the vertices 0 to n - 1, which are all declared.
    Numbered(&'a dyn EdgeSource, u64),
}

impl Input<'_> {
    /// The name of an input whose ids are always integers; `None` for text and streams.
    pub(crate) fn numbered(&self) -> Option<&'static str> {
        match self {
            Self::WebGraph(_) => Some("webgraph"),
            Self::Pairs(_) => Some("u32pairs"),
            Self::Numbered(..) => Some("generated graphs"),
            _ => None,
        }
    }

    /// The name in messages: the first file.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::EdgeList(files)
            | Self::Pairs(files)
            | Self::Text(_, files)
            | Self::Graphalytics(files) => files.first().cloned().unwrap_or_default(),
            Self::Distributed(DistributedFiles {
                kind: DistributedKind::Tables(stream), ..
            }) => stream.name().into(),
            Self::Distributed(files) => files.paths.first().cloned().unwrap_or_default(),
            Self::WebGraph(path) => path.clone(),
            Self::Stream(stream) => stream.name().into(),
            Self::Numbered(..) => "(generator)".into(),
        }
    }

    /// The files that a decoder may read; none if others are found by their names.
    pub(crate) fn files(&self) -> &[PathBuf] {
        match self {
            Self::EdgeList(files) | Self::Pairs(files) | Self::Text(_, files) => files,
            _ => &[],
        }
    }
}
